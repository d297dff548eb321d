"""What people who come with a table of their own stumble over."""

import io
import re

import numpy as np
import pytest

from cli_cases import rows

pytest.importorskip("typer", reason="the command line is an extra: pip install 'conformal-gp[cli]'")

import pandas as pd

from conformal_gp.cli.stopping import TERMINATED, Terminated


def test_excel_in_and_out(command_line, train, new):
    pytest.importorskip("openpyxl", reason="workbooks need the extra: pip install 'conformal-gp[excel]'")
    pd.read_csv(train).to_excel("train.xlsx", index=False)
    pd.read_csv(new).to_excel("new.xlsx", index=False)
    command_line("predict", "train.xlsx", "new.xlsx", "-t", "y", "-o", "out.xlsx", "-q")
    reference = pd.read_csv(io.StringIO(command_line("predict", train, new, "-t", "y", "-q").stdout))
    # Infinite ends are text in Excel, which has no such number.
    found = pd.read_excel("out.xlsx").replace({"inf": np.inf, "-inf": -np.inf})
    pd.testing.assert_frame_equal(found, reference, check_dtype=False)


def test_an_output_of_no_known_kind_is_refused_before_the_fit(command_line, train, new, monkeypatch):
    monkeypatch.setattr("conformal_gp.cli.predict.read_training", None)
    error = command_line.error("predict", train, new, "-t", "y", "-o", "out.xls")
    assert "out.xls ends in .xls, which is no kind of table that is known" in error


@pytest.mark.parametrize("name", ["train.csv", "new.csv", "m"])
def test_an_input_is_never_overwritten(command_line, train, new, name):
    command_line("fit", train, "-t", "y", "-o", "m", "-q")
    before = (command_line.folder / name).read_bytes()
    given = ("-m", "m") if name == "m" else (train, "-t", "y")
    assert "would be overwritten" in command_line.error("predict", *given, new, "-o", f"./{name}")
    assert (command_line.folder / name).read_bytes() == before


def test_unseen_categories_can_be_left_blank(command_line, train):
    new = command_line.write("new.csv", "a,b,kind\n1,2,top\n1,2,unheard-of\n1,,top\n")
    error = command_line.error("predict", train, new, "-t", "y", "--missing", "drop")
    assert "'unheard-of' is not among the categories" in error
    assert "--unseen blank leaves the predictions of such rows empty" in error
    for missing, blank in (("drop", [False, True, True]), ("impute", [False, True, False])):
        result = command_line("predict", train, new, "-t", "y", "--unseen", "blank", "--missing", missing, "-c", "80")
        assert pd.read_csv(io.StringIO(result.stdout))["y_mean"].isna().tolist() == blank
        assert f"with a category that {train} has not: 1 (row 2 (line 3)); their predictions are left" in result.stderr
    command_line("fit", train, "-t", "y", "-o", "m", "-q")
    result = command_line("predict", new, "-m", "m", "--unseen", "blank", "--missing", "drop")
    assert "that lack a value: 1; " in result.stderr


def test_imputation_is_spoken_of_only_where_something_was_imputed(command_line, train, new):
    assert "no longer exact" not in command_line("predict", train, new, "-t", "y", "--missing", "impute").stderr
    gaps = command_line.write("gaps.csv", rows(60).replace(",top,", ",,", 2))
    said = command_line("predict", gaps, new, "-t", "y", "--missing", "impute").stderr
    assert "2 missing values of " in said
    assert "guarantee is no longer exact" in said
    command_line("fit", train, "-t", "y", "-o", "m", "-q")
    gap = command_line.write("gap.csv", "a,b,kind\n1,,top\n")
    said = command_line("predict", gap, "-m", "m", "--missing", "impute").stderr
    assert "1 missing values of " in said


@pytest.mark.parametrize(
    ("name", "numbers", "named"),
    [
        ("x", range(60), True),  # without a gap
        ("x", np.random.default_rng(0).permutation(60), True),
        ("x", np.arange(60) * 7 + 3, True),  # in order
        ("car_id", np.random.default_rng(0).permutation(600)[:60], True),
        ("carId", np.random.default_rng(0).permutation(600)[:60], True),
        ("humid", np.random.default_rng(0).permutation(600)[:60], False),
        ("x", np.arange(60) // 2, False),  # not all different
        ("x", np.random.default_rng(0).normal(size=60), False),
    ],
)
def test_row_numbers_and_identifiers_are_pointed_out(command_line, name, numbers, named):
    lines = rows(60).splitlines()
    table = [f"{name},{lines[0]}", *(f"{number},{line}" for number, line in zip(numbers, lines[1:], strict=True))]
    path = command_line.write("numbered.csv", "\n".join(table) + "\n")
    said = command_line("fit", path, "-t", "y", "-o", "m").stderr
    assert (f"whole numbers that are all different, as row numbers and identifiers are: '{name}'" in said) is named
    assert (f"Leave them out with --drop {name}" in said) is named
    assert "all different" not in command_line("fit", path, "-t", "y", "-o", "m", "--drop", name).stderr


def test_predicting_training_rows_has_a_caveat(command_line, train):
    new = command_line.write("some.csv", rows(60).splitlines()[0] + "\n" + "\n".join(rows(60).splitlines()[50:]))
    said = command_line("predict", train, new, "-t", "y").stderr
    assert "Of these 11 rows 11 are training rows, with the same inputs and label" in said
    fresh = command_line.write("fresh.csv", rows(20, seed=5))
    assert "training rows, with the same" not in command_line("predict", train, fresh, "-t", "y").stderr


def test_shares_inside_say_what_chance_does(command_line, train):
    new = command_line.write("labelled.csv", rows(200, seed=3))
    said = command_line("predict", train, new, "-t", "y", "-c", "90", "--upper", "80").stderr
    assert "inside at 90% (by chance 85.5 to 94.0%)" in said
    assert "the 80% upper bound (by chance 74.5 to 85.5%)" in said


@pytest.mark.parametrize("option", ["--kernel=se", "--jobs=1", "--dates=parts", "--categories=codes", "--sample=9"])
def test_options_of_the_model_are_refused_with_a_model(command_line, train, new, option):
    command_line("fit", train, "-t", "y", "-o", "m", "-q")
    name = option.partition("=")[0]
    assert f"{name} says how to fit" in command_line.error("predict", new, "-m", "m", option)


def test_dates_as_parts(command_line):
    lines = rows(60).splitlines()
    days = pd.date_range("2024-01-30", periods=60).strftime("%Y-%m-%d")
    dated = [f"day,{lines[0]}", *(f"{day},{line}" for day, line in zip(days, lines[1:], strict=True))]
    path = command_line.write("dated.csv", "\n".join(dated) + "\n")
    assert "--dates parts" in command_line.error("fit", path, "-t", "y", "-o", "m")
    document = command_line.json("fit", path, "-t", "y", "-o", "m", "--dates", "parts")
    assert document["inputs"][:3] == ["day (year)", "day (month)", "day (day of week)"]
    assert any("dates are inputs as year, month" in notice for notice in document["notices"])
    assert len(command_line.json("predict", path, "-m", "m", "-c", "80")["rows"]) == 60


def test_rows_beyond_the_training_rows_are_marked(command_line, train, new):
    far = command_line.write("far.csv", "a,b,kind\n0,0,top\n50,0,top\n-50,99,low\n")
    result = command_line("predict", train, far, "-t", "y", "-c", "80")
    marks = pd.read_csv(io.StringIO(result.stdout), keep_default_na=False)["y_beyond_training"]
    assert marks.tolist() == ["", "a", "a; b"]
    assert "rows beyond the training rows: 2 of 3 (row 2 (line 3), row 3 (line 4)), in a, b: outside" in result.stderr
    assert "the guarantee does not reach them" in result.stderr
    document = command_line.json("predict", train, far, "-t", "y", "-c", "80")
    assert [row["beyond_training"] for row in document["rows"]] == [[], ["a"], ["a", "b"]]
    near = command_line.write("near.csv", "a,b,kind\n0,0,top\n")
    assert "beyond the training rows" not in command_line("predict", train, near, "-t", "y").stderr
    command_line("fit", train, "-t", "y", "-o", "m", "-q")
    assert command_line("predict", far, "-m", "m", "-c", "80", "-q").stdout == result.stdout


def test_labels_on_a_logarithmic_scale(command_line, new):
    table = pd.read_csv(io.StringIO(rows(60)))
    table.assign(y=np.exp(3 * table["y"])).to_csv("positive.csv", index=False)
    document = command_line.json("predict", "positive.csv", new, "-t", "y", "-c", "80", "--log")
    assert min(row["lower"][0] for row in document["rows"]) > 0.0
    command_line("fit", "positive.csv", "-t", "y", "-o", "m", "-q", "--warp", "log")
    assert command_line.json("predict", new, "-m", "m", "-c", "80")["rows"] == document["rows"]
    assert "--log says how to fit" in command_line.error("predict", new, "-m", "m", "--log")
    both = command_line.error("fit", "positive.csv", "-t", "y", "-o", "m", "--log", "--warp", "sqrt")
    assert "--log is short for --warp log" in both
    command_line.write("negative.csv", rows(60))
    assert "log" in command_line.error("fit", "negative.csv", "-t", "y", "-o", "m", "--log")


def test_several_columns_are_dropped_by_one_option(command_line, train, new):
    frame = pd.read_csv(train)
    frame["c,d"] = range(len(frame))
    frame.to_csv(train, index=False)
    common = ("predict", train, new, "--target", "y", "--tuning", "holdout")
    said = command_line(*common, "--drop", "b,kind", "--drop", "c,d").stdout
    assert said == command_line(*common, *(f"--drop={name}" for name in ("b", "kind", "c,d"))).stdout
    assert "has no column 'e'" in command_line.error(*common, "--drop", "b,e")


def test_a_column_that_is_mostly_empty_is_better_left_out(command_line, train):
    frame = pd.read_csv(train)
    frame["rare"] = [1.0] + [None] * (len(frame) - 1)
    frame.to_csv(train, index=False)
    said = command_line.error("evaluate", train, "--target", "y", "--no-picture")
    assert "column 'rare' has no value in row 2 (line 3) and 58 more, of 60 rows: better leave the column out" in said


def test_large_numbers_are_whole_in_the_table(command_line, train):
    frame = pd.read_csv(train)
    frame["y"] = 1e7 * (frame["y"] - frame["y"].min() + 1.0)
    frame.to_csv(train, index=False)
    said = command_line("evaluate", train, "--target", "y", "--tuning", "holdout", "--no-picture", "-c", "80").stdout
    assert "…" not in said
    assert "e+" not in said
    assert re.search(r"split conformal .* \d{7,9} +\d{7,9} ", said)


def test_a_stop_that_compiled_code_hides_is_a_stop(command_line, train, monkeypatch):
    def stopped(*_, **__):
        raise SystemError("<function> returned a result with an exception set") from Terminated()

    monkeypatch.setattr("conformal_gp.cli.evaluate.cross_validate_intervals", stopped)
    result = command_line("evaluate", train, "--target", "y", "--no-picture", code=TERMINATED)
    assert "stopped" in result.stderr
    assert "a fault" not in result.stderr
