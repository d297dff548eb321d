"""Means, standard errors, agreement, claims and formats of the tables, on the paper's own numbers and changed ones."""

import csv
import dataclasses
import io
from pathlib import Path

import numpy as np
import pytest

from reproduction.experiments.checks import agreement, claims
from reproduction.experiments.methods import LEVELS
from reproduction.experiments.paper import PAPER_LEVELS, Row, printed
from reproduction.experiments.protocol import TABLES
from reproduction.experiments.results import Outcome, Results, summarise
from reproduction.experiments.tables import comma_separated, latex, markdown

STORED = Path(__file__).parents[1] / "results" / "paper"


def as_results(runs: int = 2) -> Results:
    """Outcomes whose runs all give what the paper printed; nothing at other levels."""
    results: Results = {}
    for (data_set, row, _), _ in printed().items():
        widths, misses = np.full((2, runs, len(LEVELS)), np.nan)
        for percent in PAPER_LEVELS:
            cell = printed()[data_set, row, percent]
            widths[:, LEVELS.index(percent / 100)] = cell.width
            misses[:, LEVELS.index(percent / 100)] = cell.miscoverage
        results[data_set, row] = Outcome(widths, misses, np.nan, None)
    return results


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


def anything(data_set: str, row: Row) -> bool:
    return True


def isotonic(data_set: str, row: Row) -> bool:
    return row.method == "GPR-RI"


def test_the_papers_own_numbers_agree_with_the_paper():
    counts = agreement(anything, as_results())
    assert counts.cells == counts.finite + counts.infinite == counts.miscoverage == 372
    assert counts.infinite_too == counts.infinite == 13
    assert set(counts.within.values()) == {counts.finite}


def test_deviations_are_counted_at_their_size():
    results = {key: dataclasses.replace(found, widths=1.05 * found.widths) for key, found in as_results().items()}
    counts = agreement(isotonic, results)
    assert counts.within == {3: 0, 8: 12, 10: 12, 20: 12}


def test_miscoverage_is_judged_by_its_standard_error():
    key = "servo", Row("GPR-RI", "SE")
    results = as_results()
    results[key].misses[0] += 1.0  # two runs that differ by 1: mean 0.5 off, standard error 0.5
    assert agreement(isotonic, results).miscoverage == 12
    results[key].misses[:] += 2.5
    assert agreement(isotonic, results).miscoverage == 9


def test_missing_methods_are_left_out():
    results = {key: found for key, found in as_results().items() if key[1].method in {"GPR", "GPR-CP"}}
    assert agreement(anything, results).cells == 300
    assert not any("RR-CP" in check.claim or "recalibration" in check.claim for check in claims(results))


def test_the_papers_claims_hold_in_its_own_numbers():
    checks = claims(as_results())
    assert len(checks) >= 15
    assert [check for check in checks if not check.passed] == []


def test_a_claim_fails_where_the_numbers_say_otherwise():
    results = as_results()
    results["boston", Row("GPR-CP", "SE", 2.0)].misses[:] = 20.0
    results["boston", Row("RR-CP", "SE")].widths[:] = 1.0
    failed = [check.claim for check in claims(results) if not check.passed]
    assert any("GPR-CP: well calibrated" in claim for claim in failed)
    assert any("narrower than RR-CP" in claim for claim in failed)


@pytest.fixture(scope="module")
def results():
    return as_results()


def test_markdown_has_ours_above_the_papers_in_every_cell(results):
    text = markdown(TABLES["table3"], results)
    rows = [line for line in text.splitlines() if line.startswith(("| GPR", "| RR", "| kNN"))]
    assert len(rows) == 2 * 29
    assert all(line.count("<br>") == 6 and line.count("|") == 10 for line in rows)
    assert "8.277 ± 0.000<br>8.277" in text


def test_best_widths_are_those_that_the_paper_prints_in_bold(results):
    text = markdown(TABLES["table3"] + TABLES["table4"], results)
    bold = {part.split(" ±")[0] for part in text.split("**")[1::2]}
    assert bold == {
        *("8.140", "10.589", "19.106", "7.737", "10.013", "18.920"),
        *("106.65", "154.14", "253.38", "1.423", "2.772", "5.832"),
    }


def test_asterisks_stand_where_calibration_holds(results):
    text = markdown(TABLES["table4"], results)
    assert r"| RR-CP \* |" in text
    assert "| GPR-RI |" in text


def test_latex_has_the_papers_columns(results):
    text = latex(TABLES["table4"], results)
    rows = [line for line in text.splitlines() if line.startswith(("GPR", "RR", r"\textit{paper}", "$k$NN"))]
    assert len(rows) == 2 * 29
    assert all(line.count("&") == 14 for line in rows)
    assert r"$\infty$" in text
    assert "∞" not in text


def test_csv_is_one_line_a_cell(results):
    lines = list(csv.DictReader(io.StringIO(comma_separated(TABLES["table3"], results))))
    assert len(lines) == 2 * 29 * 3
    assert all(line["width"] == f"{float(line['paper_width']):.6g}" for line in lines)
    assert {line["runs"] for line in lines} == {"2"}


def test_the_stored_tables_have_all_cells_beside_the_papers():
    lines = [line for name in TABLES for line in csv.DictReader((STORED / f"{name}.csv").open())]
    assert len(lines) == len(printed()) == 372
    for line in lines:
        row = Row(line["method"], line["covariance"], float(line["gamma"]) if line["gamma"] else None)
        cell = printed()[line["data_set"], row, int(line["confidence"])]
        assert (float(line["paper_width"]), float(line["paper_miscoverage"])) == cell
        assert line["runs"] == "10"
