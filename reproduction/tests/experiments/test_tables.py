"""The three formats of the tables, on the paper's own numbers."""

import csv
import io

import pytest
from printed_results import as_results

from reproduction.experiments.protocol import TABLES
from reproduction.experiments.tables import comma_separated, latex, markdown


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
