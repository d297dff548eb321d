"""Means and standard errors by hand."""

import numpy as np
import pytest
from printed_results import as_results

from reproduction.experiments.methods import LEVELS
from reproduction.experiments.paper import Row
from reproduction.experiments.results import summarise

ROW = ["GPR-CP", "SE", 2.0]


def fold(run: int, n: int, width: float, missed: int, **more) -> dict:
    levels = len(LEVELS)
    found = {"row": ROW, "width": [n * width] * levels, "missed": [missed] * levels, **more}
    return {"data_set": "servo", "run": run, "n": n, "found": [found]}


def test_rows_count_alike_within_a_run():
    outcome = summarise([fold(0, 10, 1.0, 1), fold(0, 30, 2.0, 1)])["servo", Row(*ROW)]
    cell = outcome.cell(90)
    assert cell.width == pytest.approx(70 / 40)
    assert cell.miscoverage == pytest.approx(100 * 2 / 40)
    assert cell.runs == 1
    assert np.isnan(cell.width_error)


def test_standard_errors_are_over_runs():
    outcome = summarise([fold(0, 10, 1.0, 0), fold(1, 10, 2.0, 1), fold(2, 10, 3.0, 2)])["servo", Row(*ROW)]
    cell = outcome.cell(99)
    assert (cell.width, cell.miscoverage, cell.runs) == (pytest.approx(2.0), pytest.approx(10.0), 3)
    assert cell.width_error == pytest.approx(1 / np.sqrt(3))
    assert cell.miscoverage_error == pytest.approx(10 / np.sqrt(3))


def test_one_infinite_interval_makes_the_mean_infinite():
    cell = summarise([fold(0, 10, np.inf, 0), fold(1, 10, 2.0, 0)])["servo", Row(*ROW)].cell(95)
    assert np.isinf(cell.width)
    assert np.isnan(cell.width_error)


def test_quantiles_are_over_all_rows_and_may_be_infinite():
    widths = [[1.0, 2.0, 3.0, 4.0, np.inf]] * 3
    outcome = summarise([fold(0, 5, 1.0, 0, widths=widths), fold(1, 5, 1.0, 0, widths=widths)])["servo", Row(*ROW)]
    np.testing.assert_array_equal(outcome.quantiles[:, 0], [1, 2, 3, 4, np.inf])


def test_log_likelihoods_are_averaged_over_folds():
    folds = [fold(0, 5, 1.0, 0, log_likelihood=-3.0), fold(0, 5, 1.0, 0, log_likelihood=-5.0)]
    assert summarise(folds)["servo", Row(*ROW)].log_likelihood == -4.0


def test_the_rule_of_calibration_gives_every_asterisk_of_the_paper():
    for (data_set, row), outcome in as_results().items():
        if data_set.startswith("artificial"):
            continue
        starred = row.method in {"GPR-RC", "RR-CP", "kNNR-CP", "GPR-CP"}
        assert outcome.calibrated() == starred, (data_set, row)
