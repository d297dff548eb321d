"""``conformal-gp predict`` and ``fit``: the library's numbers, in the table they belong to."""

import io
import json

import numpy as np
import pytest

from cli_cases import noisy_tables, rows

pytest.importorskip("typer", reason="the command line is an extra: pip install 'conformal-gp[cli]'")

import pandas as pd

from conformal_gp import ConformalGPRegressor
from conformal_gp.persistence import load_model, save_model
from conformal_gp.tables import Columns, read_table


def expected(train, new, levels):
    """Means and intervals by way of the library."""
    table = read_table(train)
    columns = Columns.learn(table, "y")
    (X, *_), y = columns.training_rows(table)
    model = ConformalGPRegressor(random_state=0).fit(X, y)
    inputs = columns.design(read_table(new)).X
    return model.predict(inputs), model.predict_interval(inputs, levels)


def test_the_librarys_numbers(command_line, train, new):
    result = command_line("predict", train, new, "--target", "y", "--confidence", "0.8", "90%")
    frame = pd.read_csv(io.StringIO(result.stdout), float_precision="round_trip")
    mean, intervals = expected(train, new, [0.8, 0.9])
    ends = ["y_lower_80", "y_upper_80", "y_lower_90", "y_upper_90"]
    assert list(frame.columns) == ["a", "b", "kind", "y_mean", *ends, "y_beyond_training"]
    np.testing.assert_array_equal(frame["y_mean"], mean)
    np.testing.assert_array_equal(frame[["y_lower_80", "y_upper_80"]], intervals[:, :, 0])
    np.testing.assert_array_equal(frame[["y_lower_90", "y_upper_90"]], intervals[:, :, 1])
    assert "Exact" in result.stderr
    assert "text columns are categories (one 0/1 input a category): kind: low, middle, top" in result.stderr


@pytest.mark.parametrize(
    "levels",
    [
        ["--confidence", "0.9", "95%", "0.8"],
        ["--confidence", "0.9", "--confidence", "95%", "-c", "80%"],
        ["-c", "80%,0.9,95 %"],
        ["-c", "0.8", "0.90", "90%", "0.95"],
        ["-c", "95", "90", "80"],
    ],
)
def test_ways_to_write_levels(command_line, train, new, levels):
    assert command_line.json("predict", train, new, "-t", "y", *levels)["levels"] == [0.8, 0.9, 0.95]


@pytest.mark.parametrize(
    ("level", "word"),
    [
        ("1", "strictly between"),
        ("0%", "strictly between"),
        ("100%", "strictly between"),
        ("abc", "such as 0.95 or 95%"),
        ("nan", "such as 0.95 or 95%"),
    ],
)
def test_levels_that_are_none(command_line, train, new, level, word):
    assert word in command_line.error("predict", train, new, "-t", "y", "--confidence", level)


def test_json(command_line, train, new):
    document = command_line.json("predict", train, new, "-t", "y", "-c", "90%", "99%")
    mean, intervals = expected(train, new, [0.9])
    assert [row["mean"] for row in document["rows"]] == mean.tolist()
    assert [row["lower"][0] for row in document["rows"]] == intervals[:, 0, 0].tolist()
    assert document["rows"][0]["upper"][1] is None  # 99% needs 99 rows: infinite, and JSON has no infinity
    assert any("needs at least 99 rows" in notice for notice in document["notices"])
    assert document["inputs"] == ["a", "b", "kind=low", "kind=middle", "kind=top"]
    assert document["training_rows"] == 60
    assert document["coverage"] is None


def test_infinite_ends_in_a_table(command_line, train, new):
    result = command_line("predict", train, new, "-t", "y", "-c", "99%")
    frame = pd.read_csv(io.StringIO(result.stdout))
    assert (frame["y_lower_99"] == -np.inf).all()
    assert (frame["y_upper_99"] == np.inf).all()
    assert "needs at least 99 rows to rank, the model has" in result.stderr


def test_regions_with_holes_are_reported(command_line, train, new):
    arguments = ("predict", train, new, "-t", "y", "-c", "90%", "--gamma", "1", "--tuning", "augmented")
    document = command_line.json(*arguments)
    with_holes = [row["row"] for row in document["rows"] if len(row["regions"][0]) > 1]
    assert with_holes
    for row in document["rows"]:
        assert row["lower"][0] == row["regions"][0][0][0]
        assert row["upper"][0] == row["regions"][0][-1][1]
    result = command_line(*arguments, "--regions")
    first = with_holes[0]
    assert f"regions in several pieces at 90%: {len(with_holes)} (row {first} (line {first + 1})" in result.stderr
    regions = pd.read_csv(io.StringIO(result.stdout))["y_region_90"]
    assert [i + 1 for i, region in enumerate(regions) if region.count("[") > 1] == with_holes


def test_files_of_every_kind(command_line, train, new):
    reference = pd.read_csv(io.StringIO(command_line("predict", train, new, "-t", "y", "-q").stdout))
    pd.read_csv(train).to_parquet("train.parquet")
    pd.read_csv(new).to_parquet("new.parquet")
    pd.read_csv(new).to_csv("new.tsv", sep="\t", index=False)
    pd.read_csv(train).to_csv("train-excel.csv", sep=";", decimal=",", index=False, encoding="utf-8-sig")
    for first, second, out in (
        ("train.parquet", "new.tsv", "out.tsv"),
        ("train-excel.csv", "new.parquet", "out.parquet"),
        ("train.parquet", "new.csv", "out.csv"),
    ):
        assert command_line("predict", first, second, "-t", "y", "-o", out, "-q").stdout == ""
        frame = pd.read_parquet(out) if out.endswith("parquet") else pd.read_csv(out, sep="\t" if "tsv" in out else ",")
        assert frame.pop("y_beyond_training").isna().all()
        pd.testing.assert_frame_equal(frame, reference.drop(columns="y_beyond_training"), check_dtype=False)


def test_decimal_commas_come_back(command_line, train, new):
    pd.read_csv(new).to_csv("new-excel.csv", sep=";", decimal=",", index=False)
    command_line("predict", train, "new-excel.csv", "-t", "y", "-o", "out.csv")
    frame = pd.read_csv("out.csv", sep=";", decimal=",", float_precision="round_trip")
    np.testing.assert_array_equal(frame["y_mean"], expected(train, new, [0.9])[0])


def test_standard_input_and_output(command_line, train, new):
    reference = command_line("predict", train, new, "-t", "y", "-q").stdout
    assert command_line("predict", "-", new, "-t", "y", "-q", "-o", "-", stdin=train.read_text()).stdout == reference
    assert command_line("predict", train, "-", "-t", "y", "-q", stdin=new.read_bytes()).stdout == reference
    assert "only one file can be read from standard input" in command_line.error(
        "predict", "-", "-", "-t", "y", stdin=reference
    )
    assert "standard input is empty" in command_line.error("predict", train, "-", "-t", "y", stdin="")


def test_quiet_says_nothing_but_the_result(command_line, train, new):
    result = command_line("predict", train, new, "-t", "y", "-q", "-c", "99%")
    assert result.stderr == ""
    assert result.stdout.startswith("a,b,kind,y_mean")


def test_labels_in_new_are_checked_against(command_line, train):
    new = command_line.write("labelled.csv", rows(200, seed=3))
    document = command_line.json("predict", train, new, "-t", "y", "-c", "90%")
    assert 0.8 < document["coverage"][0] < 1.0
    assert "labelled.csv has labels" in command_line("predict", train, new, "-t", "y", "-c", "90%").stderr


def test_extra_and_missing_columns_are_named(command_line, train):
    extra = command_line.write("extra.csv", "colour,kind,b,a\nred,top,1,2\n")
    assert "not used: colour" in command_line("predict", train, extra, "-t", "y").stderr
    lacking = command_line.write("lacking.csv", "a,kind\n1,top\n")
    assert "lacking.csv lacks 'b'" in command_line.error("predict", train, lacking, "-t", "y")


def test_rows_that_lack_a_value(command_line, train):
    new = command_line.write("gaps.csv", "a,b,kind\n1,,top\n1,2,\n1,2,top\n")
    assert "gaps.csv: column 'b' has no value in row 1 (line 2)" in command_line.error("predict", train, new, "-t", "y")
    result = command_line("predict", train, new, "-t", "y", "--missing", "drop", "-c", "80%")
    frame = pd.read_csv(io.StringIO(result.stdout))
    assert frame["y_mean"].isna().tolist() == [True, True, False]
    assert "gaps.csv that lack a value: 2" in result.stderr
    result = command_line("predict", train, new, "-t", "y", "--missing", "impute", "-c", "80%")
    assert pd.read_csv(io.StringIO(result.stdout))["y_mean"].notna().all()
    assert "guarantee is no longer exact" in result.stderr


def test_new_columns_do_not_replace_old_ones(command_line, train, new):
    command_line("predict", train, new, "-t", "y", "-o", "once.csv")
    assert "already has 'y_mean'" in command_line.error("predict", train, "once.csv", "-t", "y")
    frame = pd.read_csv(io.StringIO(command_line("predict", train, "once.csv", "-t", "y", "--prefix", "p_").stdout))
    np.testing.assert_array_equal(frame["p_mean"], frame["y_mean"])


def test_fit_and_predict_from_the_model(command_line, train, new):
    reference = command_line("predict", train, new, "-t", "y", "-q").stdout
    assert "Saved to cars.model" in command_line("fit", train, "-t", "y", "-o", "cars.model").stderr
    assert command_line("predict", "--model", "cars.model", new, "-q").stdout == reference
    assert command_line("predict", new, "-m", "cars.model", "-t", "y", "-q").stdout == reference
    assert list(load_model("cars.model").feature_names_in_) == ["a", "b", "kind=low", "kind=middle", "kind=top"]


def test_a_model_through_pipes(command_line, train, new):
    model = command_line("fit", "-", "-t", "y", "-o", "-", "-q", stdin=train.read_bytes()).stdout_bytes
    reference = command_line("predict", train, new, "-t", "y", "-q").stdout
    assert command_line("predict", new, "--model", "-", "-q", stdin=model).stdout == reference


def test_models_that_are_none(command_line, train, new):
    command_line("fit", train, "-t", "y", "-o", "m", "-q")
    content = (command_line.folder / "m").read_bytes()
    command_line.write("short", content[:-100])
    assert "short is truncated or damaged" in command_line.error("predict", new, "-m", "short")
    assert "train.csv is not a conformal-gp model" in command_line.error("predict", new, "-m", train)
    assert "nowhere" in command_line.error("predict", new, "-m", "nowhere")
    assert "predicts 'y', not 'z'" in command_line.error("predict", new, "-m", "m", "-t", "z")
    assert "give one table (NEW)" in command_line.error("predict", train, new, "-m", "m")
    other = command_line.write("other.csv", "a,b,kind\n1,2,unheard-of\n")
    assert "'unheard-of' is not among the categories" in command_line.error("predict", other, "-m", "m")


def test_models_saved_from_python(command_line, new):
    frame = pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30.0) % 7})
    save_model(ConformalGPRegressor("se").fit(frame, np.sin(frame["a"])), "named.model")
    header = command_line("predict", new, "-m", "named.model", "-t", "wave", "-c", "80%").stdout.splitlines()[0]
    assert header == "a,b,kind,wave_mean,wave_lower_80,wave_upper_80,wave_beyond_training"
    save_model(ConformalGPRegressor("se").fit(frame.to_numpy(), np.sin(frame["a"])), "nameless.model")
    assert "inputs without names" in command_line.error("predict", new, "-m", "nameless.model")


def test_fit_json(command_line, train):
    document = command_line.json("fit", train, "-t", "y", "-o", "m")
    assert document["training_rows"] == 60
    assert document["model"] == "m"
    assert "cannot both go" in command_line.error("fit", train, "-t", "y", "-o", "-", "--json")


def test_errors_as_json(command_line, train, new):
    result = command_line("predict", train, new, "-t", "x", "--json", code=2)
    assert "has no column 'x'" in json.loads(result.stdout)["error"]


@pytest.mark.parametrize("kernel", ["se", "rq", "nn", "matern32", "matern52"])
def test_kernels(command_line, train, new, kernel):
    document = command_line.json("predict", train, new, "-t", "y", "-c", "80%", "--kernel", kernel)
    assert np.isfinite([row["lower"][0] for row in document["rows"]]).all()


@pytest.mark.parametrize("tuning", ["auto", "augmented", "holdout", "train"])
def test_tunings(command_line, train, new, tuning):
    document = command_line.json(
        "predict", train, new, "-t", "y", "-c", "60%", "--tuning", tuning, "--mean", "constant"
    )
    assert document["tuning"] == ("holdout" if tuning == "auto" else tuning)  # conftest.py has auto be quick
    assert document["guarantee"].startswith("Not exact" if tuning == "train" else "Exact")


def test_a_column_of_known_noise_variances(command_line):
    frame, train, new = noisy_tables(command_line)
    options = ["-t", "y", "-c", "80%", "--noise-column", "v"]
    found = pd.read_csv(io.StringIO(command_line("predict", train, new, *options, "-q").stdout))
    model = ConformalGPRegressor(random_state=0).fit(frame[["a"]][:60], frame["y"][:60], noise_variance=frame["v"][:60])
    ends = model.predict_interval(frame[["a"]][60:], 0.8, noise_variance=frame["v"][60:])
    np.testing.assert_allclose(found[["y_lower_80", "y_upper_80"]], ends, rtol=1e-9)
    command_line("fit", train, "-t", "y", "--noise-column", "v", "-o", "noisy.model", "-q")
    again = command_line("predict", new, "-m", "noisy.model", "-c", "80%", "--quantiles", "10%", "-q").stdout
    np.testing.assert_array_equal(pd.read_csv(io.StringIO(again))["y_lower_80"], found["y_lower_80"])
    assert "noise-new.csv" not in again
    lacking = command_line.write("lacking.csv", "a\n1\n")
    assert "lacking.csv lacks 'v'" in command_line.error("predict", lacking, "-m", "noisy.model")
    renamed = command_line.write("renamed.csv", (command_line.folder / "noisy-new.csv").read_text().replace("v", "w"))
    others = command_line("predict", renamed, "-m", "noisy.model", "--noise-column", "w", "-c", "80%", "-q").stdout
    np.testing.assert_array_equal(pd.read_csv(io.StringIO(others))["y_lower_80"], found["y_lower_80"])


def test_columns_that_are_no_noise_variances(command_line):
    _, train, new = noisy_tables(command_line)
    told = command_line.error("predict", train, new, "-t", "y", "--noise-column", "w")
    assert "noisy.csv has no column 'w'" in told
    assert "cannot be the target" in command_line.error("predict", train, new, "-t", "y", "--noise-column", "y")
    negative = command_line.write("negative.csv", "a,v\n1,-0.5\n")
    told = command_line.error("predict", train, negative, "-t", "y", "--noise-column", "v")
    assert "variances cannot be negative; column 'v' has -0.5" in told
    empty = command_line.write("empty.csv", "a,v\n1,\n2,0.1\n")
    assert "column 'v' has no value" in command_line.error("predict", train, empty, "-t", "y", "--noise-column", "v")
    dropped = command_line("predict", train, empty, "-t", "y", "--noise-column", "v", "--missing", "drop", "-q").stdout
    assert pd.read_csv(io.StringIO(dropped))["y_mean"].isna().tolist() == [True, False]
    command_line("fit", train, "-t", "y", "--drop", "v", "-o", "m", "-q")
    told = command_line.error("predict", new, "-m", "m", "--noise-column", "v")
    assert "if fit was given those of the training rows" in told


def test_varying_noise(command_line):
    rng = np.random.default_rng(1)
    a = rng.uniform(-2, 2, 120)
    frame = pd.DataFrame({"a": a, "y": np.exp(a) * rng.standard_normal(120)})
    train = command_line.write("spread.csv", frame.to_csv(index=False))
    new = command_line.write("two.csv", "a\n-1.5\n1.5\n")
    found = pd.read_csv(io.StringIO(command_line("predict", train, new, "-t", "y", "--noise", "varying", "-q").stdout))
    low, high = found["y_upper_90"] - found["y_lower_90"]
    assert high > 4 * low
