"""``conformal-gp predict`` with quantiles, one-sided bounds and equal tails."""

import io

import numpy as np
import pytest

from cli_cases import rows

pytest.importorskip("typer", reason="the command line is an extra: pip install 'conformal-gp[cli]'")

import pandas as pd

from conformal_gp import ConformalGPRegressor
from conformal_gp.tables import Columns, read_table


def fitted(train, new):
    """The command's model and inputs, by way of the library."""
    table = read_table(train)
    columns = Columns.learn(table, "y")
    (X, *_), y = columns.training_rows(table)
    return ConformalGPRegressor(random_state=0).fit(X, y), columns.design(read_table(new)).X


def test_the_librarys_quantiles_and_bounds(command_line, train, new):
    asked = ("--quantiles", "95%", "5%", "50%", "0.5", "--upper", "0.9", "--lower", "80%", "90%")
    table = io.StringIO(command_line("predict", train, new, "-t", "y", *asked, "-q").stdout)
    frame = pd.read_csv(table, float_precision="round_trip")  # older ones of pandas else round
    quantiles = ["y_quantile_5", "y_quantile_50", "y_quantile_95"]
    lower = ["y_lower_bound_80", "y_lower_bound_90"]
    added = ["y_mean", *quantiles, "y_upper_bound_90", *lower, "y_beyond_training"]
    assert list(frame.columns) == ["a", "b", "kind", *added]
    model, inputs = fitted(train, new)
    np.testing.assert_array_equal(frame[quantiles], model.predict_quantiles(inputs, [0.05, 0.5, 0.95]))
    np.testing.assert_array_equal(frame["y_upper_bound_90"], model.predict_bound(inputs, 0.9))
    np.testing.assert_array_equal(frame[lower], model.predict_bound(inputs, [0.8, 0.9], side="lower"))


def test_intervals_with_equal_tails_beside_quantiles(command_line, train, new):
    document = command_line.json("predict", train, new, "-t", "y", "-c", "80%", "--tails", "equal", "--quantiles", ".5")
    model, inputs = fitted(train, new)
    found = [[row["lower"][0], row["upper"][0]] for row in document["rows"]]
    np.testing.assert_array_equal(found, model.predict_interval(inputs, 0.8, tails="equal"))
    assert [row["quantiles"] for row in document["rows"]] == model.predict_quantiles(inputs, [0.5]).tolist()
    assert (document["tails"], document["levels"], document["quantiles"]) == ("equal", [0.8], [0.5])


def test_bounds_beyond_the_rows_are_infinite_and_said_to_be(command_line, train, new):
    result = command_line("predict", train, new, "-t", "y", "--upper", "99%", "--quantiles", "1%")
    frame = pd.read_csv(io.StringIO(result.stdout))
    assert (frame["y_upper_bound_99"] == np.inf).all()
    assert (frame["y_quantile_1"] == -np.inf).all()
    assert "quantile=0.01 needs at least 99 rows to rank" in result.stderr


def test_labels_in_new_are_held_against_bounds(command_line, train):
    new = command_line.write("labelled.csv", rows(200, seed=3))
    said = command_line("predict", train, new, "-t", "y", "--upper", "90%", "--lower", "80%").stderr
    model, inputs = fitted(train, new)
    labels = pd.read_csv(new)["y"].to_numpy()
    above = np.mean(labels <= model.predict_bound(inputs, 0.9))
    below = np.mean(labels >= model.predict_bound(inputs, 0.8, side="lower"))
    assert f"{100 * above:.1f}% at most the 90% upper bound" in said
    assert f"{100 * below:.1f}% at least the 80% lower bound" in said


@pytest.mark.parametrize(
    ("option", "given", "words"),
    [
        ("--quantiles", "105%", "--quantiles takes quantiles strictly between 0 and 1 (0% and 100%), got '105%'"),
        ("--quantiles", "0", "--quantiles takes quantiles strictly between"),
        ("--quantiles", "median", "--quantiles takes quantiles such as 0.95 or 95%, got 'median'"),
        ("--quantiles", ",", "--quantiles takes quantiles such as 0.95 or 95%, got none"),
        ("--upper", "195", "--upper takes levels strictly between 0 and 1 (0% and 100%), got '195'"),
        ("--lower", "nan", "--lower takes levels such as 0.95 or 95%, got 'nan'"),
    ],
)
def test_mistakes_are_named(command_line, train, new, option, given, words):
    assert words in command_line.error("predict", train, new, "-t", "y", option, given)


def test_equal_tails_have_no_regions(command_line, train, new):
    words = command_line.error("predict", train, new, "-t", "y", "--tails", "equal", "--regions")
    assert "--regions gives the regions of --tails joint" in words
