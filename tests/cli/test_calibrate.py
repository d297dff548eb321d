"""``conformal-gp calibrate``: unknown inputs from their signals."""

import numpy as np
import pandas as pd
import pytest

from conformal_gp import ConformalGPRegressor
from conformal_gp.cli.calibrate import Scale

FAST = ("--tuning", "holdout", "-c", "80%")
LEVELS = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4]


def standards(seed=1):
    rng = np.random.default_rng(seed)
    conc = np.repeat(LEVELS, 5)
    return conc, (2 * conc / (conc + 1) + 0.03 * rng.standard_normal(conc.size)).round(4)


@pytest.fixture
def tables(command_line):
    conc, density = standards()
    kind = np.tile(["a", "b"], 20)
    frame = pd.DataFrame({"conc": conc, "kind": kind, "density": density})
    frame.to_csv("standards.csv", index=False)
    new = "sample,kind,density,conc\nA,a,0.5,\nB,b,1.2,?\nC,a,1.74,\nD,b,9,\nE,a,,\n"
    return "standards.csv", command_line.write("new.csv", new)


def test_standards_on_a_logarithmic_scale_are_exact():
    """Whichever digits NumPy's logarithm rounds, which depend on the place of a value in its array."""
    scale = Scale((0.0, 400.0), shift=0.1)
    standards = np.repeat([0.0, 0.1, 5.0, 400.0], 12)
    for logs in (scale.scaled(standards), np.nextafter(scale.scaled(standards), 0.0)):
        found = scale.unscaled(logs)
        assert found.min() == 0.0
        assert found.max() == 400.0
        np.testing.assert_allclose(found, standards, rtol=1e-12)


def test_results_are_those_of_the_regressor(command_line, tables):
    conc, density = standards()
    X = pd.DataFrame({"conc": np.log(conc), "kind": pd.Categorical(np.tile(["a", "b"], 20))})
    model = ConformalGPRegressor(tuning="holdout", random_state=0).fit(X, density)
    new = pd.DataFrame({"conc": np.nan, "kind": pd.Categorical(["a", "b", "a", "b"])})
    sets, estimates = model.predict_input(
        [0.5, 1.2, 1.74, 9.0], new, "conc", np.log([0.05, 6.4]), 0.8, return_estimate=True
    )
    found = command_line.json("calibrate", *tables, "-s", "density", "-t", "conc", "--log", *FAST)
    assert found["bounds"] == [0.05, 6.4]
    assert "a set contains its conc with at least its level" in found["guarantee"]
    assert [row["row"] for row in found["rows"]] == [2, 3, 4, 5]  # as in the file
    for row, pieces, estimate in zip(found["rows"], sets, estimates, strict=True):
        assert row["estimate"] == pytest.approx(np.exp(estimate), rel=0.01)
        if len(pieces):
            low, high = np.exp([pieces[0, 0], pieces[-1, 1]])
            assert low * 0.98 <= row["lower_80"] <= low * (1 + 1e-9)
            assert high * (1 - 1e-9) <= row["upper_80"] <= high * 1.02
    assert found["rows"][0]["set_80"] == ""
    assert found["rows"][2]["set_80"] == "reaches the highest standard"
    assert found["rows"][2]["upper_80"] == 6.4
    assert found["rows"][3]["set_80"] == "no value agrees"
    assert found["rows"][3]["estimate"] == 6.4
    assert found["rows"][3]["lower_80"] is None


def test_output_picture_and_notes(command_line, tables):
    pytest.importorskip("matplotlib")
    common = ("-s", "density", "-t", "conc", *FAST)
    run = command_line("calibrate", *tables, *common, "--log", "-o", "out.csv", "--picture", "p.svg")
    assert "conc of 4 rows found from density, by 40 standards." in run.stderr
    lines = (command_line.folder / "out.csv").read_text().splitlines()
    assert lines[0] == "sample,kind,density,conc,conc_estimate,conc_lower_80,conc_upper_80,conc_set_80"
    assert lines[5] == "E,a,,,,,,"
    picture = (command_line.folder / "p.svg").read_text()
    for said in ("conc (logarithmic)", "others held at kind a", "faded: unknowns with other values"):
        assert said in picture
    run = command_line("calibrate", *tables, *common)
    assert "values of conc span a factor of 1.3e+02: --log may suit them better" in run.stderr
    assert "C,a,1.74,," in run.stdout


def test_two_branches_are_both_written(command_line):
    rng = np.random.default_rng(0)
    x = np.linspace(0, 2, 40)
    pd.DataFrame({"x": x, "y": x * (2 - x) + 0.01 * rng.normal(size=40)}).to_csv("curve.csv", index=False)
    command_line.write("new.csv", "y\n0.5\n")
    row = command_line.json("calibrate", "curve.csv", "new.csv", "-s", "y", "-t", "x", *FAST)["rows"][0]
    first, second = row["set_80"].split(" or ")
    assert float(first.split(" to ")[0]) == pytest.approx(row["lower_80"], abs=0.01)
    assert float(second.split(" to ")[1]) == pytest.approx(row["upper_80"], abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("-t", "cnc"),
            "--target must be a column of numbers in TRAIN, one of 'conc'; got 'cnc'. Did you mean 'conc'?",
        ),
        (("-t", "kind"), "--target must be a column of numbers in TRAIN, one of 'conc'; got 'kind'."),
        (("-t", "conc", "--picture", "p.txt"), "--picture must end in .png, .svg, .pdf; got p.txt."),
    ],
)
def test_mistakes(command_line, tables, arguments, message):
    assert message in command_line.error("calibrate", *tables, "-s", "density", *arguments)
    lacking = command_line.write("lacking.csv", "kind\na\n")
    options = ("-s", "density", "-t", "conc")
    for text, word in (
        ("0,1\n0,2\n0,3", "conc must differ between"),
        ("-1,1\n2,2\n3,3", "of at least 0; TRAIN has -1"),
    ):
        wrong = command_line.write("wrong.csv", f"conc,density\n{text}\n")
        assert word in command_line.error("calibrate", wrong, wrong, *options, "--log")
    assert "lacks 'density', which standards.csv has" in command_line.error("calibrate", tables[0], lacking, *options)
    empty = command_line.write("empty.csv", "kind,density\na,\n")
    assert "has no row with a value of density" in command_line.error("calibrate", tables[0], empty, *options)


def test_evaluate_asks_whether_a_target_has_standards(command_line, tables):
    run = command_line("evaluate", tables[0], "-t", "conc", "--folds", 3, *FAST)
    assert "8 distinct values of conc: are these standards?" in run.stderr
    assert "--signal density --target conc finds unknown values" in run.stderr
    assert "standards" not in command_line("evaluate", tables[0], "-t", "density", "--folds", 3, *FAST).stderr


def test_a_blank_among_dilutions(command_line):
    rows = [
        f"{conc},{0.05 + 2 * conc / (conc + 1) + 0.01 * (i % 3):.3f}"
        for i, conc in enumerate([0, 0.1, 0.4, 1.6, 6.4] * 4)
    ]
    train = command_line.write("blank.csv", "\n".join(["conc,density", *rows]))
    new = command_line.write("unknown.csv", "density\n0.5\n")
    plain = command_line("calibrate", train, new, "-s", "density", "-t", "conc", *FAST)
    assert "span a factor of 64: --log may suit them better" in plain.stderr
    found = command_line.json("calibrate", train, new, "-s", "density", "-t", "conc", "--log", *FAST)
    assert "a standard is 0: the curve is fitted over the logarithm of conc + 0.1" in found["notices"]
    assert 0.1 < found["rows"][0]["estimate"] < 0.6
