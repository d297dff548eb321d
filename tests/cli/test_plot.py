"""``conformal-gp plot``."""

import pytest

FAST = ("--tuning", "holdout", "--folds", "3")
PNG = b"\x89PNG"


def test_plot_draws_the_intervals_of_new_rows(command_line, train, new, monkeypatch):
    from conformal_gp.plotting import IntervalDisplay

    drawn, plot = [], IntervalDisplay.plot
    monkeypatch.setattr(IntervalDisplay, "plot", lambda self, *ax: drawn.append(self) or plot(self, *ax))
    command_line("plot", train, new, "-t", "y", *FAST, "-o", "new.png")
    assert (command_line.folder / "new.png").read_bytes().startswith(PNG)
    (display,) = drawn
    assert len(display.intervals) == 8
    assert display.y_true is None
    assert display.training[0].size == 60


@pytest.mark.parametrize("kind", ["intervals", "coverage", "band"])
def test_plot(command_line, train, kind):
    result = command_line("plot", train, "-t", "y", "--kind", kind, *FAST, "-o", "p.svg")
    assert "Picture: p.svg" in result.stderr
    assert (command_line.folder / "p.svg").read_text().startswith("<?xml")


def test_plot_mistakes(command_line, train, new):
    common = ("-t", "y", "-o", "p.png")
    assert "--out must end in .png" in command_line.error("plot", train, "-t", "y", "-o", "p.xyz")
    assert "Did you mean 'kind'" in command_line.error("plot", train, *common, "--kind", "band", "--input", "kidn")
    assert "takes DATA alone" in command_line.error("plot", train, new, *common, "--kind", "band")
    picture = command_line.write("train.png", b"x")
    assert "which is an input" in command_line.error("plot", train, picture, "-t", "y", "-o", picture)
