"""The paper as carried over, its folds and methods, and the way from a selection to tables, figures and a page."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from conformal_gp import ConformalGPRegressor
from conformal_gp.datasets import load_servo
from reproduction.__main__ import reproduce
from reproduction.experiments import methods, protocol
from reproduction.experiments.folds import BENCHMARKS, N_FOLDS, make_fold
from reproduction.experiments.methods import COVARIANCES, LEVELS, UNITS, Found, units_for
from reproduction.experiments.paper import Row, printed, rows_of
from reproduction.experiments.protocol import one_fold, tasks
from reproduction.experiments.results import summarise
from reproduction.experiments.runner import run


def quick_units() -> dict[str, methods.Unit]:
    """Units of the paper's rows that cost nothing: intervals about zero, wider for higher levels."""

    def unit_of(name: str) -> methods.Unit:
        def unit(fold):
            rng = np.random.default_rng(fold.seed)
            for row in rows_of(fold.data_set):
                if name == (row.covariance if row.method in {"GPR", "GPR-CP"} else row.method):
                    half = np.outer(rng.uniform(1, 2, fold.y_test.size), LEVELS)
                    log_likelihood = -1.0 if row.method == "GPR" else None
                    yield Found(row, np.stack([-half, half], axis=1), log_likelihood)

        return unit

    return {name: unit_of(name) for name in (*methods.COVARIANCES, "GPR-RI", "GPR-RB", "RR-CP", "kNNR-CP")}


@pytest.fixture
def cheap(monkeypatch):
    units = quick_units()
    for module in (methods, protocol):
        monkeypatch.setattr(module, "UNITS", units)


def test_tasks_of_a_selection():
    named = tasks(["servo"], runs=10, seed=7)
    names = [name for name, _ in named]
    assert len(set(names)) == len(names)
    assert "7/servo/SE/9/9" in names
    assert len(tasks(["artificial_outliers"], runs=10, seed=0)) == 10
    assert {arguments[4] for _, arguments in tasks(["cpu"], runs=1, seed=0, most_folds=2)} == {0, 1}


@pytest.mark.filterwarnings("error")
def test_a_fold_keeps_sums_and_counts():
    kept = one_fold("servo", "SE", 0, 0, 0)
    assert kept["n"] == 17
    found = {Row(*each["row"]): each for each in kept["found"]}
    assert len(found) == 7
    widths = found[Row("GPR-CP", "SE", 2.0)]
    assert sum(widths["widths"][0]) == pytest.approx(widths["width"][LEVELS.index(0.9)], rel=1e-4)
    assert all(0 <= missed <= 17 for missed in widths["missed"])
    assert np.isfinite(found[Row("GPR", "SE")]["log_likelihood"])


def found(raw: Path, **where) -> list[dict]:
    """What two units find on a fold, run somewhere."""
    return [result["found"] for result in run(raw, tasks(["servo"], runs=1, seed=5)[:2], one_fold, **where)]


def test_the_same_seed_gives_the_same_numbers_wherever_folds_run(tmp_path):
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    here = found(tmp_path / "1.jsonl", jobs=1)
    assert found(tmp_path / "2.jsonl", jobs=2) == here
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, worker_dashboard_address=None
    ) as cluster:
        assert found(tmp_path / "3.jsonl", jobs=1, cluster=cluster.scheduler_address) == here


@pytest.mark.usefixtures("cheap")
def test_everything_is_written(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra plot is not installed")
    page = reproduce(["all"], runs=1, jobs=1, out=tmp_path, raw=tmp_path / "raw", command="the command")
    for name in ("table1", "table2", "table3", "table4"):
        assert all((tmp_path / f"{name}.{ending}").stat().st_size for ending in ("md", "csv", "tex"))
    for name in ("widths-boston", "widths-servo", "miscoverage"):
        assert (tmp_path / f"{name}.png").read_bytes()[1:4] == b"PNG"
        assert "<svg" in (tmp_path / f"{name}.svg").read_text()
    assert (tmp_path / "results.md").read_text() == page + "\n"
    assert "the command" in page
    assert "Only a sample" not in page
    assert "**fails**" in page  # such intervals hold nothing that the paper claims


@pytest.mark.usefixtures("cheap")
def test_quick_says_that_it_is_a_sample(tmp_path):
    page = reproduce(["table4"], runs=10, jobs=1, out=tmp_path, quick=True)
    assert "Only a sample" in page
    assert "fails" not in page
    assert "Only a sample" in (tmp_path / "table4.md").read_text()
    assert not (tmp_path / "table3.md").exists()
    assert not (tmp_path / "miscoverage.png").exists()


@pytest.mark.usefixtures("cheap")
def test_a_full_run_takes_over_what_a_quick_one_did(tmp_path):
    reproduce(["table4"], runs=2, jobs=1, out=tmp_path, quick=True)
    lines = (tmp_path / "folds.jsonl").read_text().splitlines()
    reproduce(["table4"], runs=2, jobs=1, out=tmp_path)
    assert (tmp_path / "folds.jsonl").read_text().splitlines()[: len(lines)] == lines


def test_folds_of_two_seeds_do_not_mix(tmp_path):
    out = tmp_path
    for seed in (0, 1):
        reproduce(["table1"], runs=1, jobs=1, out=out, seed=seed)
    first, second = (one_fold("artificial_well_specified", "SE", seed, 0, 0) for seed in (0, 1))
    width = summarise([second])["artificial_well_specified", Row("GPR", "SE")].cell(90).width
    assert f"SE,,90,{width:.6g}," in (out / "table1.csv").read_text()
    assert first["found"] != second["found"]


def test_each_row_is_tested_once_a_run():
    _, y = load_servo(return_X_y=True)
    folds = [make_fold("servo", seed=0, run=2, fold=i) for i in range(N_FOLDS)]
    assert sorted(np.concatenate([fold.y_test for fold in folds])) == sorted(y)
    assert all(fold.y.size + fold.y_test.size == y.size for fold in folds)


def test_runs_and_seeds_split_differently():
    tests = [make_fold("servo", seed=seed, run=run, fold=0).y_test for seed in (0, 1) for run in (0, 1)]
    assert len({test.tobytes() for test in tests}) == 4


def test_the_same_numbers_give_the_same_fold():
    one, other = (make_fold("cpu", seed=3, run=1, fold=4) for _ in range(2))
    np.testing.assert_array_equal(one.X, other.X)
    assert one.seed == other.seed


def test_methods_draw_differently_on_each_fold():
    seeds = {make_fold("servo", 0, run, fold).seed for run in range(3) for fold in range(N_FOLDS)}
    assert len(seeds) == 3 * N_FOLDS


@pytest.mark.parametrize("data_set", ["artificial_well_specified", "artificial_outliers"])
def test_artificial_data_have_the_papers_size(data_set):
    fold = make_fold(data_set, seed=0, run=0, fold=0)
    assert (fold.X.shape, fold.X_test.shape) == ((500, 5), (1000, 5))


def test_outliers_are_added_to_the_same_function():
    plain, outliers = (make_fold(f"artificial_{kind}", 0, 0, 0) for kind in ("well_specified", "outliers"))
    np.testing.assert_array_equal(plain.X, outliers.X)
    share = np.mean(np.abs(plain.y - outliers.y) > 1e-9)
    assert 0.05 < share < 0.15


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


@pytest.fixture(scope="module")
def fold():
    return make_fold("servo", seed=0, run=0, fold=0)


@pytest.fixture(scope="module")
def squared_exponential(fold):
    return {found.row: found for found in UNITS["SE"](fold)}


def papers_model(fold, **options):
    """One length scale, a linear mean, maximum likelihood on the training rows."""
    return ConformalGPRegressor(
        "se",
        mean="linear",
        tuning="train",
        ard=False,
        n_restarts=3,
        random_state=fold.seed,
        n_jobs=1,
        **options,
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_one_posterior_serves_every_gamma(fold, squared_exponential):
    for row, found in squared_exponential.items():
        if row.method == "GPR-CP":
            refitted = papers_model(fold, gamma=row.gamma).fit(fold.X, fold.y).predict_interval(fold.X_test, LEVELS)
            np.testing.assert_allclose(found.intervals, refitted, rtol=1e-9)


def test_gpr_intervals_are_gaussian_quantiles_of_the_same_fit(fold, squared_exponential):
    (plain,) = (found for row, found in squared_exponential.items() if row.method == "GPR")
    model = papers_model(fold)
    mean, std = model.fit(fold.X, fold.y).predict(fold.X_test, return_std=True)
    np.testing.assert_allclose(plain.intervals[:, 1, LEVELS.index(0.9)], mean + norm.ppf(0.95) * std)
    assert plain.log_likelihood == pytest.approx(model.log_marginal_likelihood_)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit != "SE"])
def test_every_unit_gives_intervals_at_all_levels(fold, unit):
    for found in UNITS[unit](fold):
        assert found.intervals.shape == (fold.y_test.size, 2, len(LEVELS))
        assert not np.isnan(found.intervals).any()
        assert found.row in rows_of("servo")
        widths = found.intervals[:, 1] - found.intervals[:, 0]
        assert np.all(widths[:, LEVELS.index(0.99)] >= widths[:, LEVELS.index(0.9)])


def test_units_cover_the_papers_tables():
    for data_set in ("artificial_well_specified", "artificial_outliers"):
        assert units_for(data_set) == ["SE"]
    for data_set in BENCHMARKS:
        names = {row.covariance if row.method in {"GPR", "GPR-CP"} else row.method for row in rows_of(data_set)}
        assert names == set(units_for(data_set))


def test_known_hyperparameters_are_the_data_s_own():
    fold = make_fold("artificial_well_specified", seed=0, run=0, fold=0)
    found = list(UNITS["SE"](fold))
    assert [each.row.gamma for each in found] == [None, 1.0, 2.0, np.inf]
    at_90 = found[0].intervals[:, :, LEVELS.index(0.9)]
    outside = np.mean((fold.y_test < at_90[:, 0]) | (fold.y_test > at_90[:, 1]))
    assert abs(outside - 0.1) < 0.04  # four standard errors of 1000 labels
