"""``conformal-gp fit`` and ``predict``: the library's numbers, in the table they belong to."""

import io
import re
import sys

import numpy as np
import pandas as pd
import pytest

from conformal_gp import ConformalGPRegressor
from conformal_gp.saving import load, save

FAST = ("--tuning", "holdout")


def table(result):
    return pd.read_csv(io.StringIO(result.stdout), keep_default_na=False)


def library(train, new):
    """The command's model and its inputs, by way of the library."""
    frame = pd.read_csv(train).astype({"kind": "category"})
    model = ConformalGPRegressor(tuning="holdout", random_state=0).fit(frame.drop(columns="y"), frame["y"])
    return model, pd.read_csv(new)


def test_the_librarys_numbers(command_line, train, new):
    common = ("predict", train, new, "--target", "y", *FAST, "--confidence", "0.8", "90%", "--quantiles", "5%", "50%")
    command_line(*common, "-o", "out.parquet")
    frame = pd.read_parquet("out.parquet")
    model, inputs = library(train, new)
    ends = ["y_lower_80", "y_upper_80", "y_lower_90", "y_upper_90"]
    added = ["y_mean", *ends, "y_quantile_5", "y_quantile_50", "y_beyond_training"]
    assert list(frame.columns) == ["a", "b", "kind", *added]
    intervals = model.predict_interval(inputs, [0.8, 0.9])
    expected = np.column_stack([model.predict(inputs), intervals[:, :, 0], intervals[:, :, 1]])
    expected = np.column_stack([expected, model.predict_quantiles(inputs, [0.05, 0.5])])
    np.testing.assert_array_equal(frame[added[:-1]], expected)
    document = command_line.json(*common)
    np.testing.assert_allclose([row["lower_80"] for row in document["rows"]], intervals[:, 0, 0], rtol=0, atol=0.01)
    assert document["calibration_rows"] == model.n_calibration_
    assert document["inputs"] == ["a", "b", "kind = low", "kind = middle", "kind = top"]


@pytest.mark.parametrize("form", ["csv", "tsv", "xlsx", "json"])
def test_digits_follow_the_width_of_the_interval(command_line, form):
    """Pressures near 101325 Pa that differ by a tenth: six significant digits would make every interval a point."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 6, 80)
    frame = pd.DataFrame({"x": x, "p": 101325 + 0.1 * np.sin(x) + 0.01 * rng.standard_normal(80)})
    frame[:60].to_csv("train.csv", index=False)
    frame[60:].drop(columns="p").to_csv("new.csv", index=False)
    common = ("predict", "train.csv", "new.csv", "-t", "p", *FAST, "-c", "80", "95", "--quantiles", "25")
    command_line(*common, "-o", "exact.parquet")
    exact = pd.read_parquet("exact.parquet").drop(columns=["p_beyond_training"])
    if form == "json":
        found = pd.DataFrame(command_line.json(*common)["rows"]).add_prefix("p_")
    else:
        command_line(*common, "-o", f"out.{form}")
        found = pd.read_excel("out.xlsx") if form == "xlsx" else pd.read_csv(f"out.{form}", sep=None, engine="python")
    for level in ("80", "95"):
        lower, upper = f"p_lower_{level}", f"p_upper_{level}"
        width = exact[upper] - exact[lower]
        for rounding in (exact[lower] - found[lower], found[upper] - exact[upper]):
            assert (rounding >= 0.0).all()
            assert (rounding <= 0.01 * width).all()
            assert rounding.any()
        assert ((found[lower] <= found["p_mean"]) & (found["p_mean"] <= found[upper])).all()
    assert (found["p_quantile_25"] <= exact["p_quantile_25"]).all()
    assert max(len(repr(value)) for value in found["p_lower_80"]) <= len("101325.0001")


def test_infinite_bounds_and_points_are_written(command_line):
    from conformal_gp.cli.output import rounded

    exact = pd.DataFrame(
        {"mean": [1.23456, 2.0, 0.1], "lower_90": [-np.inf, 2.0, -np.inf], "upper_90": [7.6543, 2.0, np.inf]}
    )
    assert rounded(exact).to_numpy().tolist() == [
        [1.2, -np.inf, 7.7],
        [2.0, 2.0, 2.0],
        [0.1, -np.inf, np.inf],
    ]


def test_explain_adds_a_sentence_for_each_row(command_line, train, new):
    gap = command_line.write(
        "gap.csv", train.read_text().replace("\n", "\n,1,low,1\n", 1)
    )  # a row to drop, below the header
    common = (new, "-t", "y", *FAST, "-c", "80", "90", "--explain")
    model, inputs = library(train, new)
    sentences = model.explain_interval(inputs, 0.9).sentences(range(2, 62))
    assert table(command_line("predict", train, *common))["y_why"].tolist() == sentences
    dropped = command_line.json("predict", gap, *common, "--missing", "drop")
    assert [row["why"] for row in dropped["rows"]] == model.explain_interval(inputs, 0.9).sentences(range(3, 63))
    wrong = ("-t", "y", "--explain", "--quantiles", "50")
    assert "--explain is for intervals" in command_line.error("predict", train, new, *wrong)


def test_words_are_plain(command_line, train, new):
    for tuning in ("holdout", "integrated"):
        said = command_line("predict", train, new, "-t", "y", "--tuning", tuning, "-c", "60").stderr
        assert "Valid" in said
        for word in ("augmented", "1 - delta", "the bag", "several pieces", "kind=top"):
            assert word not in said


def test_default_levels_are_those_that_the_rows_support(command_line, train, new):
    result = command_line("predict", train, new, "-t", "y", *FAST)
    assert [name for name in table(result) if "lower" in name] == ["y_lower_90", "y_lower_95"]
    assert "99% intervals need 301 rows here" in result.stderr
    ten = command_line.write("ten.csv", command_line.rows(10))
    assert "inf" not in command_line("predict", ten, new, "-t", "y", *FAST).stdout
    asked = command_line("predict", train, new, "-t", "y", *FAST, "-c", "99")
    assert (table(asked)["y_upper_99"] == np.inf).all()
    assert "needs at least 99 calibration rows" in asked.stderr
    assert command_line.json("predict", train, new, "-t", "y", *FAST, "-c", "99")["rows"][0]["upper_99"] is None


def test_ways_to_write_levels(command_line, train, new):
    levels = ("--confidence", "0.9", "95%", "80", "-c", "99%", "50%")
    assert command_line.json("predict", train, new, "-t", "y", *FAST, *levels)["levels"] == [0.5, 0.8, 0.9, 0.95, 0.99]


@pytest.mark.parametrize(
    ("level", "word"),
    [
        ("0.05", "asks for intervals that cover 5% of rows, and levels are from 50% on; did you mean 95%?"),
        ("5", "did you mean 95%?"),
        ("0.1%", "did you mean 99.9%?"),
        *(
            (level, "takes levels strictly between 0 and 1")
            for level in ("1.5", "1", "0", "100%", "105", "abc", "nan", "-0.5")
        ),
        ("0." + "9" * 100, "takes levels strictly between"),
        ("1e-100000000", "takes levels strictly between"),
    ],
)
def test_levels_that_are_none(command_line, level, word):
    assert word in command_line.error("predict", "no.csv", "no.csv", "-t", "y", f"--confidence={level}")


# Tables


def test_standard_input_and_output(command_line, train, new):
    reference = command_line("predict", train, new, "-t", "y", *FAST, "-q").stdout
    given = command_line("predict", train, "-", "-t", "y", *FAST, "-q", stdin=new.read_bytes().replace(b"\n", b"\r\n"))
    assert (given.stdout, given.stderr) == (reference, "")
    assert "only one file can be read" in command_line.error("predict", "-", "-", "-t", "y", stdin=reference)


def test_mistakes_are_told_before_the_fit(command_line, train, new, monkeypatch):
    monkeypatch.setattr(ConformalGPRegressor, "fit", None)
    written = {
        "lacking.csv": ("a,kind\n1,top\n", "lacking.csv lacks 'b'"),
        "other.csv": ("a,b,kind\n1,2,best\n", "'best' is not among the categories"),
        "text.csv": ("a,b,kind\n1,2,top\n1,x,top\n", "column 'b', row 3: 'x' is not a number"),
        "gap.csv": ("a,b,kind\n1,,top\n", "column 'b', row 2 has no value"),
    }
    for name, (text, word) in written.items():
        assert word in command_line.error("predict", train, command_line.write(name, text), "-t", "y")
    assert "has no column 'Y'. Did you mean 'y'?" in command_line.error("predict", train, new, "-t", "Y")
    assert "out.xls must be CSV" in command_line.error("predict", train, new, "-t", "y", "-o", "out.xls")
    assert "no such folder" in command_line.error("predict", train, new, "-t", "y", "-o", "no/out.csv")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "openpyxl", None)
        said = command_line.error("predict", train, new, "-t", "y", "-o", "out.xlsx")
        assert "out.xlsx needs pip install '.[excel]'" in said
    assert "give two tables" in command_line.error("predict", new, "-t", "y")
    two = command_line.write("two.csv", command_line.rows(2).replace("low", "top").replace("middle", "top"))
    assert "at least 3 are needed" in command_line.error("predict", two, new, "-t", "y")


def test_rows_that_cannot_be_predicted_are_left_empty(command_line, train):
    new = command_line.write("gaps.csv", "a,b,kind,colour\n1,,top,red\n1,2,best,red\n1,2,top,red\n")
    common = ("predict", train, new, "-t", "y", *FAST, "-c", "80")
    result = command_line(*common, "--missing", "drop")
    assert (table(result)["y_mean"] == "").tolist() == [True, True, False]
    assert "1 of 3 rows of" in result.stderr
    assert "gaps.csv with a category that no training row has: 1" in result.stderr
    new.write_text(new.read_text().replace("best", "top"))
    result = command_line(
        *common, "--missing", "impute"
    )  # no row of TRAIN lacks a value: nothing is known of the first
    assert (table(result)["y_mean"] == "").tolist() == [True, False, False]


def test_a_table_without_a_row_that_can_be_predicted_is_refused(command_line, train):
    new = command_line.write("gaps.csv", "a,b,kind,colour\n1,,top,red\n1,2,best,red\n")
    said = command_line.error("predict", train, new, "-t", "y", *FAST, "--missing", "drop")
    assert "gaps.csv has no row that can be predicted" in said
    assert "1 of 2 rows of" in said
    assert "with a category that no training row has: 1" in said


def test_rows_beyond_the_training_rows_are_marked(command_line, train):
    far = command_line.write("far.csv", "a,b,kind\n0,0,top\n50,0,top\n-50,99,low\n")
    result = command_line("predict", train, far, "-t", "y", *FAST, "-c", "80")
    assert table(result)["y_beyond_training"].tolist() == ["", "a", "a; b"]
    assert "far.csv (rows 3, 4), which lie outside the training range" in result.stderr


def test_values_that_the_model_fills_leave_the_guarantee(command_line, train):
    """Five rows and more that lack a value: medians of tuning rows, indicators, and a category for what is missing.

    The one row that lacks another column is left out.
    """
    frame = pd.read_csv(train)
    frame.loc[::6, "a"] = np.nan
    frame.loc[3::7, "kind"] = None
    frame.loc[5, "b"] = np.nan
    frame.to_csv("gaps.csv", index=False)
    command_line.write("new.csv", "a,b,kind\n,0,top\n1,0,\n1,0,top\n")
    common = ("-t", "y", *FAST, "--missing", "impute", "-c", "80")
    document = command_line.json("predict", "gaps.csv", "new.csv", *common)
    assert document["guarantee"].startswith("Valid: ")
    assert "a is missing" in document["inputs"]
    frame.drop(5).to_csv("complete.csv", index=False)
    model, inputs = library("complete.csv", "new.csv")
    ends = model.predict_interval(inputs.astype({"kind": "category"}), 0.8)
    np.testing.assert_allclose([row["lower_80"] for row in document["rows"]], ends[:, 0], rtol=0, atol=0.01)
    said = command_line("predict", "gaps.csv", "new.csv", *common).stderr
    assert "1 of 60 rows of gaps.csv lack a value and are left out; column 'b' alone lacks 1" in said
    assert command_line.json("evaluate", "gaps.csv", *common, "--folds", "3")["rows"] == 59
    page = command_line("report", "gaps.csv", *common[:-2], "--folds", "3", "-o", "-").stdout
    assert "Not guaranteed" not in page
    command_line("fit", "gaps.csv", "-t", "y", *FAST, "--missing", "impute", "-o", "m", "-q")
    saved = command_line.json("predict", "new.csv", "-m", "m", "-c", "80")
    assert [row["lower_80"] for row in saved["rows"]] == [
        row["lower_80"] for row in command_line.json("predict", "gaps.csv", "new.csv", *common)["rows"]
    ]


def test_rows_between_the_levels_of_a_grid_are_pointed_out(command_line):
    runs = pd.DataFrame([(a, b) for a in (0, 1, 2, 3) for b in (10, 20, 30, 40)], columns=["a", "b"])
    runs.assign(y=np.sin(runs["a"]) * runs["b"] + 0.001 * runs["b"] ** 2).to_csv("grid.csv", index=False)
    command_line.write("new.csv", "a,b\n1,20\n1.5,20\n2,35\n")
    common = ("new.csv", "-c", "60")
    command_line("fit", "grid.csv", "-t", "y", "-o", "m", "-q", *FAST)
    for given in (("predict", "grid.csv", *common, "-t", "y", *FAST), ("predict", *common, "-m", "m", "-q")):
        said = " ".join(command_line(*given).stderr.split())
        assert "2 of 3 rows of new.csv (rows 3, 4), which lie between the levels of a grid" in said
        assert "4 levels of 'a', 4 of 'b'; 16 of 16 combinations" in said
        assert "19 additional runs at random points" in said
        assert "(in Python: tuning='holdout', tuning_rows=their row numbers)" in said
    document = command_line.json("predict", "grid.csv", *common, "-t", "y", *FAST)
    assert "2 of 3 rows of new.csv (rows 3, 4), which lie between" in document["guarantee"]
    command_line.write("at.csv", "a,b\n1,20\n")
    assert "lie between" not in command_line("predict", "at.csv", "-m", "m", "-c", "60").stderr


def test_labels_in_new_are_held_against_intervals(command_line, train):
    labelled = command_line.write("labelled.csv", command_line.rows(200, seed=3))
    said = command_line("predict", train, labelled, "-t", "y", *FAST, "-c", "90").stderr
    assert re.search(r"labelled.csv: 90% intervals covered \d+\.\d%", said)


def test_new_columns_do_not_replace_old_ones(command_line, train, new):
    command_line("predict", train, new, "-t", "y", *FAST, "-o", "once.csv")
    assert "already has 'y_mean'" in command_line.error("predict", train, "once.csv", "-t", "y", *FAST)


def test_predictions_end_where_labels_do(command_line):
    x = np.random.default_rng(0).uniform(0, 3, 40).round(3)
    pd.DataFrame({"x": x, "n": np.maximum(x - 1.0, 0.0).round(3)}).to_csv("counts.csv", index=False)
    common = ("predict", "counts.csv", "counts.csv", "-t", "n", *FAST, "-c", "80")
    free, cut = table(command_line(*common)), table(command_line(*common, "--lower-bound", "0"))
    assert (free["n_lower_80"] < 0.0).any()
    assert (cut["n_lower_80"] >= 0.0).all()
    assert "must enclose the target" in command_line.error(*common, "--upper-bound", "1")


def test_a_column_of_known_noise_variances(command_line):
    rng = np.random.default_rng(0)
    a, v = rng.uniform(0, 3, 70), rng.choice([0.01, 0.4], 70)
    frame = pd.DataFrame({"a": a, "v": v, "y": np.sin(2 * a) + np.sqrt(v) * rng.standard_normal(70)})
    frame[:60].to_csv("noisy.csv", index=False)
    frame[60:].drop(columns="y").to_csv("new.csv", index=False)
    options = ("-t", "y", "--noise-column", "v", *FAST)
    found = table(command_line("predict", "noisy.csv", "new.csv", *options, "-c", "80"))
    model = ConformalGPRegressor(tuning="holdout", random_state=0)
    model.fit(frame[["a"]][:60], frame["y"][:60], y_variance=frame["v"][:60])
    ends = model.predict_interval(frame[["a"]][60:], 0.8, y_variance=frame["v"][60:])
    np.testing.assert_allclose(found[["y_lower_80", "y_upper_80"]].astype(float), ends, atol=0.011)
    frame.assign(v=np.sqrt(v))[:60].to_csv("noisy-sd.csv", index=False)
    frame.assign(v=np.sqrt(v))[60:].drop(columns="y").to_csv("new-sd.csv", index=False)
    deviations = ("noisy-sd.csv", "new-sd.csv", "-t", "y", "--sd-column", "v", *FAST)
    squared = table(command_line("predict", *deviations, "-c", "80"))
    np.testing.assert_allclose(squared["y_upper_80"], found["y_upper_80"], atol=0.02)
    assert "not both" in command_line.error("predict", *deviations, "--noise-column", "v")
    command_line("fit", "noisy.csv", *options, "-o", "m", "-q")
    assert table(command_line("predict", "new.csv", "-m", "m", "-c", "80")).equals(found)
    assert "has no column 'w'" in command_line.error(
        "predict", "noisy.csv", "new.csv", "-t", "y", "--noise-column", "w"
    )


def test_new_rows_need_their_known_noise(command_line):
    rng = np.random.default_rng(0)
    rows = "\n".join(f"{a},{a + b},0.1" for a, b in rng.normal(size=(20, 2)).round(3))
    noisy = command_line.write("noisy.csv", f"x,y,sd\n{rows}\n")
    new = command_line.write("fresh.csv", "x\n0.5\n")
    said = command_line.error("predict", noisy, new, "-t", "y", "--sd-column", "sd")
    assert "noisy.csv has. An interval includes the noise of the new measurement, which has to be known" in said
    assert "same value in every row" not in said


def test_a_column_of_groups(command_line, train):
    frame = pd.read_csv(train).astype({"kind": "category"})
    frame[:7].drop(columns="y").to_csv("new.csv", index=False)
    options = ("-t", "y", "--groups", "kind", *FAST)
    found = table(command_line("predict", train, "new.csv", *options, "-c", "60"))
    model = ConformalGPRegressor(tuning="holdout", random_state=0).fit(
        frame.drop(columns="y"), frame["y"], groups="kind"
    )
    expected = model.predict_interval(frame.drop(columns="y")[:7], 0.6)
    np.testing.assert_allclose(found[["y_lower_60", "y_upper_60"]].astype(float), expected, atol=0.011)
    command_line("fit", train, *options, "-o", "m", "-q")
    assert table(command_line("predict", "new.csv", "-m", "m", "-c", "60")).equals(found)
    assert "'kind'; got 'kin'. Did you mean 'kind'?" in command_line.error("fit", train, "-ty", "--groups=kin", "-on")


# Saved models


def test_fit_and_predict_from_the_model(command_line, train, new, model):
    reference = command_line("predict", train, new, "-t", "y", *FAST, "-q").stdout
    assert command_line("predict", "--model", "m", new, "-q").stdout == reference
    assert command_line("predict", "-", "--model", "m", "-q", stdin=new.read_bytes()).stdout == reference
    assert list(load("m").feature_names_in_) == ["a", "b", "kind"]


def test_a_model_reads_new_rows_as_its_training_rows(command_line, train):
    pd.read_csv(train).to_csv("train.csv", sep=";", decimal=",", index=False)
    command_line("fit", "train.csv", "-t", "y", "-o", "m", "-q", *FAST)
    command_line.write("new.csv", "a;b;kind\n1,234;0;top\n1,234;none;top\n")
    options = ("predict", "new.csv", "-m", "m", "-c", "80", "--na", "none")
    found = command_line(*options, "--missing", "drop", "-q").stdout
    assert found.splitlines()[0] == "a;b;kind;y_mean;y_lower_80;y_upper_80;y_beyond_training"
    assert found.splitlines()[2] == "1,234;none;top;;;;"
    points = command_line.write("points.csv", "a;b;kind\n1.234;0;top\n")
    assert "'1.234' is not a number (the decimal mark is ','" in command_line.error("predict", points, "-m", "m")


def test_models_that_are_none(command_line, train, new, model):
    command_line.write("short", model.read_bytes()[:-100])
    assert "short is not a saved model, or is damaged" in command_line.error("predict", new, "-m", "short")
    assert "train.csv is not a saved model" in command_line.error("predict", new, "-m", train)
    assert "nowhere: No such file" in command_line.error("predict", new, "-m", "nowhere")
    assert "predicts 'y', not 'z'" in command_line.error("predict", new, "-m", "m", "-t", "z")
    save(ConformalGPRegressor("se"), "python.model")
    assert "but in Python" in command_line.error("predict", new, "-m", "python.model")
    for option in ("--kernel=se", "--drop=a", "--noise-column=a", "--sd-column=a", "--groups=a"):
        assert f"{option.partition('=')[0]} is for fitting" in command_line.error("predict", new, "-m", "m", option)


# Outputs


def test_an_input_is_never_overwritten(command_line, train, new, model):
    for given, out in (((train, "-t", "y"), "./train.csv"), ((train, "-t", "y"), "new.csv"), (("-m", model), "m")):
        assert "which is an input" in command_line.error("predict", *given, new, "-o", out)
    for command in ("fit", "report"):
        assert "which is an input" in command_line.error(command, train, "-t", "y", "-o", train)


def test_warnings_name_rows_of_the_file(command_line):
    rng = np.random.default_rng(0)
    y = rng.uniform(1, 2, size=16)
    y[9] = -0.25
    table = pd.DataFrame({"x": rng.normal(size=16), "y": y})
    rows = table.to_csv(index=False).splitlines()
    path = command_line.write("titled.csv", "\n".join(["Run of May", "", *rows]))
    new = command_line.write("new.csv", "x\n0.1\n")
    assert "y has -0.25 in row 13 and no other" in command_line("predict", path, new, "-t", "y").stderr
    said = command_line("evaluate", path, "-t", "y", "--folds", 2).stderr
    assert said.count("y has -0.25 in one row and no other value like it") == 1
