"""``conformal-gp plot``."""

import numpy as np
import pytest

FAST = ("--tuning", "holdout", "--folds", "3")
PNG = b"\x89PNG"


@pytest.fixture
def drawn(monkeypatch):
    """Displays that were drawn."""
    pytest.importorskip("matplotlib")
    from conformal_gp.plotting.frame import Display

    displays, plot = [], Display.plot
    monkeypatch.setattr(Display, "plot", lambda self, *ax: displays.append(self) or plot(self, *ax))
    return displays


def test_intervals_of_new_rows(command_line, train, new, drawn):
    command_line("plot", train, new, "-t", "y", *FAST, "-o", "new.png")
    assert (command_line.folder / "new.png").read_bytes().startswith(PNG)
    (display,) = drawn
    assert len(display.intervals) == 8
    assert np.isnan(display.y_true).all()
    assert display.names is None


def test_names_and_known_targets_of_new_rows(command_line, train, drawn):
    header, *lines = command_line.rows(6, seed=2).splitlines()
    named = "\n".join([f"sample,{header}", *(f"S-{i},{line}" for i, line in enumerate(lines))])
    trained = command_line.rows(60).splitlines()
    rows = [f"sample,{trained[0]}", *(f"T-{i},{line}" for i, line in enumerate(trained[1:]))]
    both = command_line.write("named.csv", "\n".join(rows))
    command_line("plot", both, command_line.write("new.csv", named), "-t", "y", *FAST, "-o", "new.svg")
    (display,) = drawn
    assert list(display.names) == [f"S-{i}" for i in range(6)]
    np.testing.assert_array_equal(display.y_true, [float(line.rsplit(",", 1)[1]) for line in lines])


@pytest.mark.parametrize("kind", ["intervals", "band", "residuals", "width"])
def test_each_kind(command_line, train, kind, drawn):
    result = command_line("plot", train, "-t", "y", "--kind", kind, *FAST, "-o", "p.svg")
    assert "Picture: p.svg" in result.stderr
    assert (command_line.folder / "p.svg").read_text().startswith("<?xml")
    if kind == "width":
        assert drawn[0].ax_.get_xlabel().startswith("a\n")
        assert drawn[0].ax_.get_ylabel() == "b"
    if kind == "intervals":  # row numbers of the file
        assert sorted(map(int, drawn[0].names)) == list(range(2, 62))


def test_of_a_saved_model(command_line, model, new, train, drawn):
    command_line("plot", new, "--model", model, "-o", "p.svg")
    command_line("plot", "--model", model, "--kind", "residuals", "-o", "p.svg")
    command_line("plot", train, "--model", model, "-o", "p.svg")
    command_line("plot", new, "--model", model, "--kind", "width", "--input", "b", "--input", "a", "-o", "p.svg")
    intervals, residuals, known, width = drawn
    assert len(intervals.intervals) == 8
    assert residuals.target_name == "y"
    assert known.n_rows == 60
    assert np.isfinite(known.y_true).all()
    assert width.feature_names[1] == "a"
    common = ("--model", model, "-o", "p.svg")
    assert "--kind band of --model FILE takes one table" in command_line.error("plot", *common, "--kind", "band")
    assert "--kernel is for fitting" in command_line.error("plot", new, *common, "--kernel", "se")


def test_mistakes(command_line, train, new):
    common = ("-t", "y", "-o", "p.png")
    assert "--out must end in .png" in command_line.error("plot", train, "-t", "y", "-o", "p.xyz")
    assert "give DATA and --target COL" in command_line.error("plot", train, "-o", "p.png")
    assert "Did you mean 'kind'" in command_line.error("plot", train, *common, "--kind", "band", "--input", "kidn")
    wrong = command_line.error("plot", train, *common, "--kind", "width", "--input", "a")
    assert "--kind width takes 2 --input, got 1" in wrong
    assert "takes DATA alone" in command_line.error("plot", train, new, *common, "--kind", "band")
    picture = command_line.write("train.png", b"x")
    assert "which is an input" in command_line.error("plot", train, picture, "-t", "y", "-o", picture)
