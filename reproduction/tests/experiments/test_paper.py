"""The paper's tables as carried over."""

import math

from reproduction.experiments.folds import BENCHMARKS
from reproduction.experiments.methods import COVARIANCES
from reproduction.experiments.paper import Row, printed, rows_of


def test_all_cells_of_the_four_tables_are_there():
    assert len(printed()) == 372
    assert all(math.isfinite(cell.miscoverage) and cell.width > 0 for cell in printed().values())


def test_infinite_widths_are_read():
    assert math.isinf(printed()["servo", Row("GPR-RC", "SE"), 95].width)
    assert math.isinf(printed()["cpu", Row("RR-CP", "SE"), 90].width)


def test_rows_come_in_the_papers_order():
    for data_set in BENCHMARKS:
        rows = rows_of(data_set)
        assert len(rows) == 29
        assert [row.covariance for row in rows[:5]] == list(COVARIANCES)
        assert rows[10] == Row("kNNR-CP")
        assert [row.gamma for row in rows[11:17]] == [1, 2, 3, 4, 8, math.inf]
