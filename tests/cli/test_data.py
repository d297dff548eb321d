"""What people's files are like: a clear word or the right answer for each."""

import io

import numpy as np
import pytest

from cli_cases import rows

pytest.importorskip("typer", reason="the command line is an extra: pip install 'conformal-gp[cli]'")

import pandas as pd

from conformal_gp import ConformalGPRegressor
from conformal_gp.cli import training


def test_wrong_target_name(command_line, train, new):
    assert "has no column 'Y'. Did you mean 'y'?" in command_line.error("predict", train, new, "-t", "Y")


@pytest.mark.parametrize("command", ["predict", "evaluate", "fit", "plot", "report"])
def test_empty_file(command_line, new, command):
    empty = command_line.write("empty.csv", "")
    arguments = [command, empty, "-t", "y"]
    if command == "predict":
        arguments.insert(2, new)
    if command in ("fit", "plot", "report"):
        arguments += ["-o", "out.png"]
    assert "empty.csv is empty" in command_line.error(*arguments)


def test_a_file_that_is_not_there(command_line, new):
    assert "nowhere.csv: there is no such file" in command_line.error("predict", "nowhere.csv", new, "-t", "y")


def test_an_out_that_cannot_be_written(command_line, train, new):
    assert "no-folder/out.csv" in command_line.error("predict", train, new, "-t", "y", "-o", "no-folder/out.csv")


def test_ten_rows(command_line, new):
    ten = command_line.write("ten.csv", rows(10))
    result = command_line("predict", ten, new, "-t", "y", "-c", "80%", "95%", "--categories", "codes")
    frame = pd.read_csv(io.StringIO(result.stdout))
    assert np.isfinite(frame[["y_lower_80", "y_upper_80"]]).all(axis=None)
    assert np.isinf(frame[["y_lower_95", "y_upper_95"]]).all(axis=None)
    assert "confidence_level=0.95 needs at least 19 rows to rank, the model has 10" in result.stderr


def test_ten_rows_evaluated(command_line):
    ten = command_line.write("ten.csv", rows(10))
    document = command_line.json("evaluate", ten, "-t", "y", "-c", "80%", "95%", "--categories", "codes")
    judgement = {(f["method"], f["level"]): f["judgement"] for f in document["findings"]}
    assert judgement["GPR-CP", 0.95] == "infinite"
    assert any("infinite, for want of rows, at 95%" in sentence for sentence in document["verdict"])


def test_two_rows(command_line, new):
    two = command_line.write("two.csv", rows(2))
    assert "at least 3 are needed" in command_line.error("predict", two, new, "-t", "y", "--categories", "codes")


def test_constant_column(command_line, new):
    frame = pd.read_csv(io.StringIO(rows(60))).assign(b=1.0)
    frame.to_csv("constant.csv", index=False)
    same = pd.read_csv(new).assign(b=1.0)
    same.to_csv("same.csv", index=False)
    result = command_line("predict", "constant.csv", "same.csv", "-t", "y", "-c", "90%")
    assert "the same value in every row of constant.csv: 'b'" in result.stderr
    found = pd.read_csv(io.StringIO(result.stdout))
    inputs = pd.get_dummies(frame.drop(columns="y"), dtype=float)
    expected = ConformalGPRegressor(random_state=0).fit(inputs.to_numpy(), frame["y"])
    intervals = expected.predict_interval(pd.get_dummies(same, dtype=float).to_numpy(), 0.9)
    np.testing.assert_allclose(found[["y_lower_90", "y_upper_90"]], intervals)
    # a new row with another value there: nothing is known, so nothing is claimed
    result = command_line("predict", "constant.csv", new, "-t", "y", "-c", "90%", "--mean", "linear")
    assert np.isinf(pd.read_csv(io.StringIO(result.stdout))["y_upper_90"]).all()


def test_constant_target(command_line, new):
    frame = pd.read_csv(io.StringIO(rows(40))).assign(y=3.0)
    frame.to_csv("flat.csv", index=False)
    result = command_line("predict", "flat.csv", new, "-t", "y", "-c", "90%")
    assert "the intervals have no width" in result.stderr
    np.testing.assert_allclose(pd.read_csv(io.StringIO(result.stdout))["y_upper_90"], 3.0)


def test_a_thousand_columns(command_line):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(52, 1000)), columns=[f"c{i}" for i in range(1000)])
    frame["y"] = frame["c0"] + 0.1 * rng.normal(size=52)
    frame[:50].to_csv("wide.csv", index=False)
    frame[50:].to_csv("new.csv", index=False)
    document = command_line.json("predict", "wide.csv", "new.csv", "-t", "y", "-c", "80%")
    assert len(document["inputs"]) == 1000
    assert np.isfinite([row["lower"][0] for row in document["rows"]]).all()
    assert "1001 coefficients" in command_line.error("predict", "wide.csv", "new.csv", "-t", "y", "--mean", "linear")


@pytest.mark.parametrize("command", ["evaluate", "plot", "report"])
def test_other_commands_with_many_rows(command_line, monkeypatch, command):
    monkeypatch.setattr(training, "MOST_EXACT_ROWS", 100)
    many = command_line.write("many.csv", rows(300))
    command_line(command, many, "-t", "y", "--folds", "2", "--picture" if command == "evaluate" else "-o", "out.png")
    assert (command_line.folder / "out.png").stat().st_size > 1000


def test_many_rows_take_the_low_rank_model(command_line, new, monkeypatch):
    monkeypatch.setattr(training, "MOST_EXACT_ROWS", 500)
    many = command_line.write("many.csv", rows(600))
    result = command_line("predict", many, new, "-t", "y", "-c", "90%")
    assert "600 rows are too many for the exact Gaussian process (up to 500)" in result.stderr
    assert np.isfinite(pd.read_csv(io.StringIO(result.stdout))["y_upper_90"]).all()
    assert "--sample 500" in command_line.error("predict", many, new, "-t", "y", "--tuning", "train")
    sampled = command_line("predict", many, new, "-t", "y", "-c", "90%", "--sample", "100")
    assert "100 of 600 rows, drawn at random" in sampled.stderr


def test_the_low_rank_model_is_saved(command_line, new, monkeypatch):
    monkeypatch.setattr(training, "MOST_EXACT_ROWS", 500)
    many = command_line.write("many.csv", rows(600))
    document = command_line.json("fit", many, "-t", "y", "-o", "m")
    assert document["training_rows"] == 600
    assert document["tuning"] == "holdout"
    assert document["guarantee"].startswith("Exact")
    arguments = ["-c", "90%", "--regions"]
    direct = command_line("predict", many, new, "-t", "y", *arguments).stdout
    assert command_line("predict", new, "--model", "m", *arguments).stdout == direct


@pytest.mark.parametrize(
    "written",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.replace(",", ";"),
        lambda text: text.replace(",", "\t"),
        lambda text: text.replace(",", ";").replace(".", ","),
        lambda text: text.replace(",", ";").replace(".", ",").replace("\n", "\r\n").encode("utf-8-sig"),
    ],
    ids=["windows", "byte-order-mark", "semicolons", "tabs", "decimal-commas", "all-of-it"],
)
def test_ways_to_write_a_file(command_line, train, new, written):
    reference = command_line.json("predict", train, new, "-t", "y")
    odd = command_line.write("odd.csv", written(train.read_text()))
    odd_new = command_line.write("odd-new.csv", written(new.read_text()))
    assert command_line.json("predict", odd, odd_new, "-t", "y")["rows"] == reference["rows"]


def test_dates_and_missing_values_are_named(command_line, new):
    dated = command_line.write("dated.csv", "day,a,y\n2024-01-01,1,2\n2024-01-02,2,3\n2024-01-03,3,4\n")
    assert "dated.csv: column 'day' holds dates (row 1 (line 2)" in command_line.error(
        "fit", dated, "-t", "y", "-o", "m"
    )
    command_line("fit", dated, "-t", "y", "-o", "m", "--drop", "day")
    gaps = command_line.write("gaps.csv", "a,y\n1,2\n,3\n3,\n4,5\n6,7\n")
    assert "column 'a' has no value in row 2 (line 3)" in command_line.error("fit", gaps, "-t", "y", "-o", "m")
    assert "2 of 5 rows" in command_line("fit", gaps, "-t", "y", "-o", "m", "--missing", "drop").stderr
    unlabelled = command_line.write("unlabelled.csv", "a,y\n1,2\n2,3\n3,\n")
    assert "labels are not imputed" in command_line.error("fit", unlabelled, "-t", "y", "-o", "m")
    imputed = command_line("fit", gaps, "-t", "y", "-o", "m", "--missing", "impute").stderr
    assert "gaps.csv have no label and were left out" in imputed


def test_names_with_markup_are_text(command_line):
    text = rows(30).replace("a,b,kind,y", "[red]a,<script>,kind,[bold]y[/bold]")
    odd = command_line.write("odd.csv", text)
    assert "[red]a" in " ".join(command_line.json("evaluate", odd, "-t", "[bold]y[/bold]", "--folds", "2")["inputs"])
    result = command_line("evaluate", odd, "-t", "[bold]y[/bold]", "--folds", "2", "--no-picture")
    assert "[bold]y[/bold]: 30 rows" in result.stdout
