"""The page of the coverage study, from results that are known."""

import numpy as np
import pytest

from reproduction.studies.coverage.cells import CELLS, DESIGN
from reproduction.studies.coverage.page import summarise, write_page

RUN = [cell for cell in CELLS if cell.l == 99]
N = 400


def data_sets(cell, rng):
    """Widths of "train" around 1, those of "augmented" and "known" independent of it and larger."""
    factor = {"train": 1.0, "augmented": 1.2 if cell in DESIGN else 1.5, "known": 1.1}
    factor |= {"holdout": 2.0, "jackknife+": 1.3, "split": 3.0}
    for _ in range(N):
        methods = {}
        for name, times in factor.items():
            width = times * (1.0 + 0.1 * rng.standard_normal())
            inside = np.array([0.8, 0.8 if name == "train" else 0.9, 0.95]) + rng.choice([-0.02, 0.02])
            methods[name] = {
                "coverage": inside.tolist(),
                "infinite": [0.0] * 3,
                "width": [width] * 3,
                "median": [width] * 3,
                "seconds": 1.0,
            }
        yield {"cell": cell.name, "methods": methods}


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    return [data_set for cell in RUN for data_set in data_sets(cell, rng)]


@pytest.fixture(scope="module")
def page(found, tmp_path_factory):
    out = tmp_path_factory.mktemp("study")
    write_page(found, out, "--rows 99")
    return out


def test_ratios_to_train_come_with_their_standard_errors(page):
    own = _ratios(page, RUN[0].name)
    ratio, error = own[1]  # of means: their relative errors are 0.1 / sqrt(N) each
    assert ratio == pytest.approx(1.2, abs=4 * error)
    assert error == pytest.approx(1.2 * np.sqrt(2.0) * 0.1 / np.sqrt(N), rel=0.15)
    assert own[0][1] > error  # medians vary more


def test_averages_are_over_the_design_and_over_all_cells(page):
    names = ("average of the design's 6 with 99 rows", "average of all 10 with 99 rows")
    (ratio, error), (of_all, _) = (_ratios(page, name)[1] for name in names)
    np.testing.assert_allclose([ratio, of_all], [1.2, 1.32], atol=0.02)
    assert error == pytest.approx(_ratios(page, RUN[0].name)[1][1] / np.sqrt(6), rel=0.25)  # of six independent cells


def test_shortfalls_are_counted(page):
    text = (page / "coverage.md").read_text()
    assert f"| train | 0 | {len(RUN)} | 0 | {len(RUN)} |" in text
    assert f"| augmented | 0 | 0 | 0 | {len(RUN)} |" in text


def test_only_cells_that_were_run_are_shown(page, found):
    assert {row["cell"] for row in summarise(found)} == {cell.name for cell in RUN}
    assert "l19-" not in (page / "coverage.md").read_text()


def test_the_same_results_give_the_same_files(page, found, tmp_path):
    write_page(found, tmp_path, "--rows 99")
    for file in page.iterdir():
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()


def _ratios(page, name):
    """Ratios of a line of the page, each with its error."""
    lines = [line for line in (page / "coverage.md").read_text().splitlines() if line.startswith(f"| {name} |")]
    (line,) = [line for line in lines if "±" in line]
    return [tuple(map(float, entry.split(" ± "))) for entry in line.strip("| ").split("|") if "±" in entry]
