"""Limits of detection in tables: "<0.02" and ">500" in the column of the target."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from conformal_gp import ConformalGPRegressor
from conformal_gp.cli.columns import Columns
from conformal_gp.cli.options import parse
from conformal_gp.cli.predict import _limits
from conformal_gp.cli.reading import read_table
from conformal_gp.cli.tables import Format, Table
from conformal_gp.targets.target import Limits

NEW = "depth\n0.1\n1.4\n2.9\n"


def values(n=40, limit=0.08):
    """Depths, recorded values and codes."""
    rng = np.random.default_rng(0)
    depth = rng.uniform(0, 3, n).round(3)
    conc = np.exp(-2 * depth + 0.3 * rng.standard_normal(n)).round(4)
    return depth, np.maximum(conc, limit), -(conc <= limit).astype(int)


def cells(recorded, codes, mark="<"):
    return [f"{mark}{value:g}" if code else f"{value:g}" for value, code in zip(recorded, codes, strict=True)]


@pytest.fixture
def table(command_line):
    depth, recorded, codes = values()
    rows = [f"{a},{b}" for a, b in zip(depth, cells(recorded, codes), strict=True)]
    return command_line.write("wells.csv", "\n".join(["depth,conc", *rows]) + "\n")


@pytest.mark.parametrize("mark", ["<", "< ", "<=", "≤"])
def test_predictions_are_those_of_the_regressor(command_line, mark):
    depth, recorded, codes = values()
    rows = [f"{a};{b}".replace(".", ",") for a, b in zip(depth, cells(recorded, codes, mark), strict=True)]
    train = command_line.write("wells.csv", "\n".join(["depth;conc", *rows]) + "\n")
    new = command_line.write("new.csv", NEW.replace(".", ","))
    options = ("-t", "conc", "-c", "80%", "99%", "--tuning", "holdout")
    found = command_line.json("predict", train, new, *options)
    model = ConformalGPRegressor(tuning="holdout", random_state=0)
    model.fit(pd.DataFrame({"depth": depth}), recorded, censoring=codes)
    expected = model.predict_interval(pd.DataFrame({"depth": [0.1, 1.4, 2.9]}), 0.8)
    assert np.isinf(expected[2, 0])
    for row, (low, high) in zip(found["rows"], expected, strict=True):
        assert row["upper_80"] == pytest.approx(high, rel=0.02)
        assert row["upper_80"] >= high
        assert row["lower_80"] == (pytest.approx(low, abs=0.01) if np.isfinite(low) else None)
        assert row["limit_80"] == ("" if np.isfinite(low) else f"<{max(row['upper_80'], 0.08):.12g}".replace(".", ","))
        assert row["limit_99"] == ""  # which so few rows do not support
    assert "lower limits of detection of new rows are at most 0.08" in found["guarantee"]
    assert f"{np.count_nonzero(codes)} of 40 values of conc are limits of detection" in " ".join(found["notices"])


def test_bounds_that_round_to_a_limit_do_not_reach_it():
    limits = Limits(low=0.05, high=1.2)
    model = SimpleNamespace(_tuned=SimpleNamespace(target=SimpleNamespace(limits=limits)))
    wells = Table("wells.csv", pd.DataFrame(), Format(decimal=","))
    exact = pd.DataFrame({"lower_90": [0.0508, -np.inf, 0.3, -np.inf], "upper_90": [0.4, 0.4561, np.inf, np.inf]})
    found = exact.replace({0.0508: 0.05, 0.4561: 0.457})
    assert _limits(model, wells, exact, found, [Fraction(9, 10)]) == {"limit_90": ["", "<0,457", ">0,3", ""]}


def test_output_and_upper_limits(command_line, table):
    new = command_line.write("new.csv", NEW)
    command_line("predict", table, new, "-t", "conc", "-c", "80%", "-o", "out.csv", "--tuning", "holdout")
    lines = (command_line.folder / "out.csv").read_text().splitlines()
    assert lines[0] == "depth,conc_mean,conc_lower_80,conc_upper_80,conc_limit_80,conc_beyond_training"
    assert lines[1].split(",")[4] == ""
    lower, upper, limit = lines[3].split(",")[2:5]
    assert lower == "-inf"
    assert limit == f"<{max(float(upper), 0.08):g}"
    depth, recorded, codes = values()
    rows = [f"{a},{b}" for a, b in zip(depth, cells(100 - recorded, codes, ">"), strict=True)]
    upper_limits = command_line.write("upper.csv", "\n".join(["depth,conc", *rows]) + "\n")
    found = command_line.json("predict", upper_limits, new, "-t", "conc", "-c", "80%", "--tuning", "holdout")
    assert found["rows"][2]["upper_80"] is None
    assert found["rows"][2]["limit_80"].startswith(">99.")


def test_a_saved_model_and_new_rows_with_limits(command_line, table):
    command_line("fit", table, "-t", "conc", "-o", "m", "--tuning", "holdout", "-q")
    new = command_line.write("new.csv", "depth,conc\n0.1,0.8\n2.5,<0.08\n2.9,<0.08\n")
    run = command_line("predict", new, "-m", "m", "-c", "80%")
    assert "80% intervals covered" in run.stderr
    assert "<0.08" in run.stdout


def test_evaluation_report_and_picture(command_line, table):
    found = command_line.json("evaluate", table, "-t", "conc", "-c", "80%", "--folds", 4, "--tuning", "holdout")
    conformal = found["findings"][0]
    assert conformal["n_infinite"] == 0
    assert 0.6 < conformal["coverage"] < 1.0
    assert any("rows are beyond a limit of detection" in sentence for sentence in found["words"])
    assert not any("nan" in sentence for sentence in found["words"])
    command_line("report", table, "-t", "conc", "-o", "r.html", "--folds", 3, "--tuning", "holdout", "-q")
    page = (command_line.folder / "r.html").read_text()
    assert "rows are beyond a limit of detection" in page
    assert "True values beyond limits are covered if" in page
    pytest.importorskip("matplotlib")
    command_line("plot", table, "-t", "conc", "-o", "p.svg", "--folds", 3, "--tuning", "holdout", "-q")


def test_workbooks(command_line):
    pytest.importorskip("openpyxl")
    _, recorded, codes = values(6)
    codes[:3] = [0, -1, -1]
    frame = pd.DataFrame({"depth": np.arange(6.0), "conc": [recorded[0], "<0,02", "< 0.02", 0.5, ">1,234", 7]})
    path = command_line.folder / "wells.xlsx"
    frame.to_excel(path, index=False)
    options = parse("evaluate", [str(path), "-t", "conc"])
    table = read_table(str(path), options)
    with pytest.raises(ValueError, match="'>1,234' is not a number"):
        Columns.learn(table, "conc", options).targets(table)
    frame.loc[4, "conc"] = ">12,5"
    frame.to_excel(path, index=False)
    table = read_table(str(path), options)
    found = Columns.learn(table, "conc", options).targets(table)
    assert found["y"].tolist()[1:] == [0.02, 0.02, 0.5, 12.5, 7.0]
    assert found["censoring"].tolist() == [0, -1, -1, 0, 1, 0]


def test_limits_of_inputs_are_refused(command_line):
    rows = "".join(f"{i}.5,{i},{i % 3}\n" for i in range(20))
    path = command_line.write("wells.csv", f"depth,salt,conc\n{rows}1,<0.1,2\n")
    message = command_line.error("evaluate", path, "-t", "conc")
    assert "column 'salt', row 22: '<0.1' is not a number (limits are read in the target alone" in message
    assert "missing" not in message
    wrong = command_line.write("wrong.csv", "depth,conc\n1,2\n2,<abc\n3,4\n")
    assert "'<abc' is not a number" in command_line.error("evaluate", wrong, "-t", "conc")
