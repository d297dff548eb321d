"""``evaluate --by`` and ``--by-time``: folds like the rows that are to be predicted; ``--batch``: new batches."""

import html
import json
import re
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from conformal_gp.cli.evaluate import held_out_by
from conformal_gp.evaluation import HeldOut, chance_range
from conformal_gp.evaluation.held_out import in_comparison

FAST = ("--tuning", "holdout", "-c", "80%")


@pytest.fixture
def batches(command_line):
    """Twelve batches with an offset each, which a reading of the instrument gives away within a batch."""
    rng = np.random.default_rng(0)
    lot = np.repeat([f"L{i}" for i in range(12)], 10)
    x = rng.normal(size=120)
    frame = pd.DataFrame(
        {
            "lot": lot,
            "x": x,
            "reading": np.repeat(rng.normal(size=12), 10),
            "y": x + np.repeat(2.0 * rng.normal(size=12), 10) + 0.1 * rng.normal(size=120),
        }
    )
    frame.to_csv("batches.csv", index=False)
    return "batches.csv"


def test_whole_batches(command_line, batches):
    run = command_line("evaluate", batches, "-t", "y", "--by", "lot", *FAST, "--details")
    assert "For comparison: the same rows held out at random" in run.stdout
    assert "Whole batches are held out together: 12 batches in 120 rows." in run.stdout
    assert "too few rows to tell whether rows of a new lot differ from them" in run.stdout
    assert "'lot' names batches and is no input" in run.stderr
    found = command_line.json("evaluate", batches, "-t", "y", "--by", "lot", "--folds", 4, *FAST)
    assert found["inputs"] == ["x", "reading"]
    whole, _ = found["findings"]
    alone, _ = found["random_folds"]
    assert whole["coverage"] < 0.6 < alone["coverage"]
    assert whole["n_rows"] == alone["n_rows"] == 120
    assert " of rows of a new lot (median width " in found["words"][1]


def test_many_batches_can_tell():
    """The verdict in words, from held-out rows as they might be."""
    batches = np.repeat(np.arange(40), 5)
    random_folds = held(np.arange(200) % 10 < 9)
    differ = in_comparison(held(batches % 2 == 0), random_folds, "lot", batches)
    covered = "90% intervals covered 50.0% of rows of a new lot (median width 2), and 90.0% of rows at random (2)."
    assert differ.startswith(covered)
    assert "and rows of a new lot differ from them: expect the first coverage" in differ
    few = in_comparison(held(batches < 30), random_folds, "lot", batches // 10)
    assert "too few rows to tell" in few
    assert "too few rows to tell" not in in_comparison(held(batches < 30), random_folds, "lot", np.arange(200))
    assert "no sign that later rows differ" in in_comparison(held(np.arange(200) % 10 < 9), random_folds, None, None)


def held(covered):
    """Held-out rows of which intervals cover these."""
    ends = np.tile([[[-1.0], [1.0]]], (covered.size, 1, 1))
    y = np.where(covered, 0.0, 5.0)
    return HeldOut(y, [Fraction(9, 10)], {"conformal": 0.0 * y}, {"conformal": ends}, rows=np.arange(y.size))


def test_batches_that_make_no_difference(command_line):
    rng = np.random.default_rng(1)
    x = rng.normal(size=90)
    y = x + 0.3 * rng.normal(size=90)
    pd.DataFrame({"day": np.repeat(range(9), 10), "x": x, "y": y}).to_csv("days.csv", index=False)
    said = command_line("evaluate", "days.csv", "-t", "y", "--by", "day", *FAST).stdout
    assert "there is no sign that rows of a new day differ" in said


def test_later_rows_are_predicted_from_earlier_ones(command_line):
    rng = np.random.default_rng(2)
    x = rng.normal(size=120)
    y = x + np.linspace(0, 8, 120) + 0.2 * rng.normal(size=120)
    pd.DataFrame({"x": x, "y": y}).to_csv("drifting.csv", index=False)
    found = command_line.json("evaluate", "drifting.csv", "-t", "y", "--by-time", *FAST)
    later, _ = found["findings"]
    alone, _ = found["random_folds"]
    assert later["n_rows"] == 100
    assert later["coverage"] < 0.5 < alone["coverage"]
    assert "later rows differ from them" in found["words"][1]


def test_rows_are_taken_in_order_of_their_dates(command_line):
    rng = np.random.default_rng(2)
    days = pd.to_datetime("2024-01-01") + pd.to_timedelta(range(60), unit="D")
    y = np.linspace(0, 8, 60) + 0.2 * rng.normal(size=60)
    frame = pd.DataFrame({"day": days, "x": rng.normal(size=60), "y": y})
    frame.to_csv("sorted.csv", index=False)
    frame.sample(frac=1.0, random_state=0).to_csv("mixed.csv", index=False)
    options = ("-t", "y", "--by-time", "--dates", "elapsed", *FAST)
    alike = [command_line.json("evaluate", name, *options) for name in ("sorted.csv", "mixed.csv")]
    assert alike[0]["findings"] == alike[1]["findings"]
    assert "rows are taken in order of 'day'" in alike[1]["notices"]
    assert "rows are taken in order of 'day'" not in alike[0]["notices"]


def test_replicates(command_line):
    rng = np.random.default_rng(3)
    dose = np.repeat(np.linspace(0, 4, 15), 3)
    pd.DataFrame({"dose": dose, "y": dose + 0.2 * rng.normal(size=45)}).to_csv("replicates.csv", index=False)
    said = command_line("evaluate", "replicates.csv", "-t", "y", *FAST).stdout
    assert "Rows with equal inputs are held out together: 15 distinct inputs in 45 rows." in said


def test_mistakes(command_line, batches):
    assert "give --by COL or --by-time, not both" in command_line.error(
        "evaluate", batches, "-t", "y", "--by", "lot", "--by-time"
    )
    assert "give --by COL or --batch COL, not both" in command_line.error(
        "evaluate", batches, "-t", "y", "--by", "lot", "--batch", "lot"
    )
    assert "has no column 'lott'. Did you mean 'lot'?" in command_line.error(
        "evaluate", batches, "-t", "y", "--by", "lott"
    )
    gap = command_line.write("gap.csv", "lot,x,y\na,1,2\n,2,3\nb,3,5\na,4,4\n")
    assert "column 'lot', row 3 has no value, and batches need one" in command_line.error(
        "evaluate", gap, "-t", "y", "--by", "lot"
    )


def test_intervals_for_rows_of_new_batches(command_line, batches):
    new = command_line.write("new.csv", "lot,x,reading\nL99,0.5,0.1\nL3,0.5,0.1\n")
    said = command_line.error("predict", batches, new, "-t", "y")
    assert "'L99' is not among the categories" in said
    assert "If 'lot' names batches, --batch 'lot' is for rows of new ones" in said
    run = command_line("predict", batches, new, "-t", "y", "--batch", "lot")
    assert "95% intervals need 29 batches here; 99% intervals need 301 batches here" in run.stderr
    assert "one row of each of the other 9 batches, drawn at random, is a calibration row" in run.stderr
    header, first, second = run.stdout.splitlines()
    assert header == "lot,x,reading,y_mean,y_lower_90,y_upper_90,y_beyond_training"
    assert first.removeprefix("L99") == second.removeprefix("L3")


def test_new_batches_are_evaluated_on_whole_batches(command_line, batches):
    found = command_line.json("evaluate", batches, "-t", "y", "--batch", "lot", "-c", "80%")
    conformal, _ = found["findings"]
    assert conformal["n_batches"] == 12
    assert conformal["judgement"] == "too few rows to tell"
    assert 0.6 < conformal["coverage"] <= 1.0
    assert found["inputs"] == ["x", "reading"]


def test_the_page_counts_batches(command_line, batches):
    command_line("report", batches, "-t", "y", "--batch", "lot", "-o", "page.html", "--tuning", "holdout", "--folds", 4)
    page = html.unescape((command_line.folder / "page.html").read_text())
    assert re.search(r"if new batches are exchangeable with these, \d+% intervals cover", page)
    assert "An interval is for a single new measurement, its noise included." in page
    assert "Held out together.</strong> Whole batches are held out together: 12 batches in 120 rows." in page
    assert "More batches, or a lower level: 90% needs at least 9 calibration batches." in page
    chart = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    assert chart["chance"][30] == pytest.approx(chance_range(0.8, 12), abs=1e-4)


def test_batches_are_held_out_in_folds_however_many_rows(command_line, batches, monkeypatch):
    monkeypatch.setattr("conformal_gp.cli.evaluate.ROWS_FOR_ALL_FOLDS", 50)
    training = SimpleNamespace(y=np.zeros(120), options=SimpleNamespace(batch="lot", folds=None))
    assert held_out_by(training, None) == 10


def test_few_batches_do_not_pretend(command_line, batches):
    few = pd.read_csv(batches).query("lot in ['L0', 'L1', 'L2', 'L3', 'L4', 'L5']")
    few.to_csv("few.csv", index=False)
    new = command_line.write("new.csv", "x,reading\n0.5,0.1\n")
    run = command_line("predict", "few.csv", new, "-t", "y", "--batch", "lot", "-c", "90%")
    assert run.stdout.splitlines()[1].split(",")[3:5] == ["-inf", "inf"]
    assert "needs at least 9 calibration batches, by default of 10 batches, there are 4 of 6" in run.stderr
    assert "The highest level is 80%; 90% takes 10 batches." in run.stderr


def test_a_saved_model_for_new_batches(command_line, batches):
    command_line("fit", batches, "-t", "y", "--batch", "lot", "-o", "lots.model")
    new = command_line.write("new.csv", "x,reading,lot\n0.5,0.1,L99\n")
    run = command_line("predict", new, "--model", "lots.model", "-c", "80%")
    assert run.stdout.splitlines()[1].startswith("0.5,0.1,L99,")
    assert "--batch is for fitting" in command_line.error("predict", new, "--model", "lots.model", "--batch", "lot")
