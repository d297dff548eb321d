"""Pages of the studies from results that are known, and their methods on small data."""

import numpy as np
import pytest

from reproduction.comparators import SplitConformal
from reproduction.experiments.folds import N_FOLDS
from reproduction.studies import (
    agreement,
    benchmark_sets,
    coverage,
    distributions,
    replicates,
    scatter,
    shifts,
    simulators,
    starts,
)
from reproduction.studies.cells import CELLS
from reproduction.studies.functions import FUNCTIONS, draw

CELL = CELLS[0]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_methods_of_the_coverage_study():
    X, y, X_test, _ = CELL.draw(0)
    (_, found), half = next(coverage.split(CELL, X, y, X_test)), y.size // 2
    fitted = coverage.model(CELL, "train").fit(X[:half], y[:half])
    method = SplitConformal().calibrate(*fitted.predict(X[half:], return_std=True), y[half:])
    np.testing.assert_allclose(found, method.intervals(*fitted.predict(X_test, return_std=True), coverage.LEVELS))
    ways = (coverage.on_training_rows, coverage.split, coverage.known)
    result = coverage.one_data_set(CELL, 0, ways)
    assert set(result["methods"]) == {"train", "GPR", "jackknife+", "split", "known"}
    assert all(0.0 <= share <= 1.0 for each in result["methods"].values() for share in each["coverage"])
    assert result["methods"]["split"]["infinite"][-1] == 1.0  # ten calibration rows are too few for 95%


def test_the_page_of_the_coverage_study(tmp_path):
    cells = [cell for cell in CELLS if cell.l == 99]
    rng, found = np.random.default_rng(0), []
    factors = {"train": 1.0, "integrated": 1.2, "known": 1.1, "holdout": 2.0, "jackknife+": 1.3, "split": 3.0}
    for cell in cells:
        for _ in range(20):
            methods = {}
            for name, factor in factors.items():
                inside = np.array([0.8, 0.8 if name == "train" else 0.9, 0.95]) + rng.choice([-0.02, 0.02])
                methods[name] = {"coverage": inside.tolist(), "infinite": [0.0] * 3, "seconds": 1.0}
                methods[name] |= {"width": [factor] * 3, "median": [factor] * 3}
            found.append({"cell": cell.name, "methods": methods})
    coverage.write(found, tmp_path, "--rows 99")
    text = (tmp_path / "coverage.md").read_text()
    assert f"| train | 0 | {len(cells)} | 0 | {len(cells)} |" in text
    assert f"| integrated | 0 | 0 | 0 | {len(cells)} |" in text
    assert "| 99 | 1.20 | 1.10 | 0.40 | 0.60 |" in text
    assert "l19-" not in text
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(before) == {"coverage.md", "coverage.csv", "coverage.svg", "widths.svg"}
    coverage.write(found, tmp_path, "--rows 99")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_page_of_the_shift_study(tmp_path):
    results = [shifts.one_data_set(n_rows, seed) for n_rows in shifts.ROWS for seed in (1, 2)]
    shifts.write(results, tmp_path)
    text = (tmp_path / "shifts.md").read_text()
    assert text.count("| split, true ratio |") == len(shifts.ROWS)
    rng = np.random.default_rng(0)
    X = shifts.inputs(rng, 20_000, shifted=False)  # weighted by the ratio, training inputs are as test inputs
    weighted = np.average(X[:, 0], weights=shifts.ratio(X))
    assert weighted == pytest.approx(shifts.inputs(rng, 20_000, shifted=True)[:, 0].mean(), abs=0.03)


def test_the_page_of_the_simulators_study(tmp_path):
    task = simulators.one_task("Branin", 20, 0.2, 1, "kriging")
    assert len(task["covered"]) == len(task["score"]) == 2
    cells = {}
    for method, score in (("default", 3.0), ("holdout", 4.0), ("kriging", 6.0)):
        found = {"covered": [0.9, 0.95], "score": [score] * 2, "rmse": score, "seconds": 0.25}
        cells[20, 0.0, method] = [found] * len(FUNCTIONS)
    simulators.write(cells, tmp_path)
    text = (tmp_path / "simulators.md").read_text()
    assert "| 20 | 0 | kriging | 90.0% | 95.0% | 0.50 | 0.50 | 0.2 |" in text
    assert "--draws 1 --peers kriging`" in text


@pytest.mark.parametrize("name", FUNCTIONS)
def test_test_functions_have_the_noise_that_is_asked_for(name):
    quiet, noisy = (draw(name, 2000, noise, 3) for noise in (0.0, 0.2))
    np.testing.assert_array_equal(quiet[0], noisy[0])
    assert np.std(noisy[1] - quiet[1]) == pytest.approx(0.2 * np.std(quiet[1]), rel=0.15)


def test_the_page_of_the_scatter_study(tmp_path):
    task = scatter.one_task("Branin", 30, 0.2, 1, "holdout")
    assert task["calibration"] == 15
    assert 0.5 < task["inside"] <= 1.0
    rng = np.random.default_rng(0)  # counted labels inside, by the Beta law itself
    inside = rng.binomial(scatter.N_TEST, rng.beta(18, 2, size=4000)) / scatter.N_TEST
    assert scatter.beta_law(19) == (pytest.approx(inside.mean(), abs=0.004), pytest.approx(inside.std(), rel=0.03))
    scatter.write({("holdout", 60, 0.0): [{"inside": share, "calibration": 19} for share in (0.85, 0.95)]}, tmp_path)
    assert "| holdout | 60 | 19 | 0 | 90.0 | 7.1 | 6.6 | 85.0 |" in (tmp_path / "scatter.md").read_text()


def test_the_page_of_the_distributions_study(tmp_path):
    results = []
    for kind, n in (("skewed", 49), ("servo", 167)):
        for seed in range(8):
            share = [0.9 + 0.01 * (-1) ** seed, 0.95]
            own = {"lower": share, "upper": share, "infinite": [0.0, 1.0], "crps": 1.0}
            plain = own | {"upper": [0.8, 0.95], "crps": 2.0}
            results.append({"kind": kind, "rows": n, "methods": {"ours": own, "plain": plain, "crepes": own}})
    distributions.write(results, tmp_path)
    text = (tmp_path / "distributions.md").read_text()
    assert "0 of 4 tails of ours, 1 of 4 of the plain process" in text
    assert "| servo | 167 | 1.000 ± 0.000 | 0.500 ± 0.000 |" in text
    assert "infinite with 49 rows" in text


def test_tables_of_the_benchmark_sets_and_of_starts():
    results = [
        {"set": name, "way": way, "run": run, "rows": 10, "width": [10.0, 20.0, "inf"]} | {"missed": [1, run, 0]}
        for name in benchmark_sets.SETS
        for way in benchmark_sets.WAYS
        for run in range(2)
    ]
    lines, ratios = benchmark_sets.lines_of(results)
    assert ["cpu", "default", "1", "2", "inf", "10.0%", "5.0%", "0.0%"] in lines
    (paper,) = (line for line in lines if line[:2] == ["servo", "the paper's narrowest"])
    assert ratios[0] == pytest.approx(1.0 / float(paper[2]), rel=1e-3)
    assert len(ratios) == len(benchmark_sets.SETS) * len(benchmark_sets.LEVELS)
    folds = [
        {"covariance": "SE", "log_likelihood": [-10.0, -20.0 if fold < 5 else -10.0]}
        | {"widths": np.stack([np.full((4, 3), 100.0), np.full((4, 3), 200.0 if fold < 5 else 100.0)]).tolist()}
        for fold in range(N_FOLDS)
    ]
    assert starts.line("SE", folds)[:4] == ["SE", "-10.0", "50%", "10"]


@pytest.mark.parametrize("name", ["fixed, groups", "holdout, no noise", "low rank, difficulty"])
def test_answers_agree(name, monkeypatch):
    n, _, options = agreement.MODELS[name]
    monkeypatch.setitem(agreement.MODELS, name, (n, 40, options))
    results = [agreement.one_model(name, kind, 1) for kind in ("few values", "offset")]
    found = agreement.totals(results)
    assert sum(n for n, _ in found.values()) > 5000
    assert not any(failures for _, failures in found.values()), [result["first"] for result in results]


def test_failures_are_found():
    checks = agreement.Checks()
    checks.add("order", np.array([[True, False]]), np.array([[1.0, 2.0]]))
    assert checks.counts == {"order": [2, 1]}
    assert "(0, 1)" in checks.first["order"]
    assert "2.0" in checks.first["order"]


def test_the_page_of_the_replicates_study(tmp_path):
    drawn = replicates.one_draw("6 doses x 2", 1)
    assert drawn["rows"] == 12
    assert len(drawn["width"]) == len(drawn["covered"]) == 2
    found = [{"design": name, "rows": 24, "width": [3.0, 2.0], "covered": [0.9, 0.95]} for name in replicates.DESIGNS]
    replicates.write(found, tmp_path)
    assert "| 8 doses x 3 | 24 | 1 | 3.00 | 1.50 | 90.0% | 95.0% |" in (tmp_path / "replicates.md").read_text()
