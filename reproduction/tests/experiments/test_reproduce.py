"""From a selection to tables, figures and a page."""

from pathlib import Path

import numpy as np
import pytest

from reproduction.experiments import figures, methods, protocol
from reproduction.experiments.methods import LEVELS, Found
from reproduction.experiments.paper import Row, rows_of
from reproduction.experiments.protocol import one_fold, tasks
from reproduction.experiments.reproduce import reproduce
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


def test_a_figure_that_fails_leaves_the_old_one(tmp_path, monkeypatch):
    figure = pytest.importorskip("matplotlib.figure", reason="the extra plot is not installed")

    def full(self, file, **options):
        file.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(figure.Figure, "savefig", full)
    (tmp_path / "a.png").write_text("old figure")
    with pytest.raises(OSError, match="no space left"), figures._figure("a", tmp_path, 1, 1, (2, 2)):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
    assert (tmp_path / "a.png").read_text() == "old figure"


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


def test_unknown_selections_are_named(tmp_path):
    with pytest.raises(ValueError, match="table5"):
        reproduce(["table5"], runs=1, jobs=1, out=tmp_path)


def test_no_processes_at_all_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="jobs"):
        reproduce(["table1"], runs=1, jobs=0, out=tmp_path)


def test_folds_of_two_seeds_do_not_mix(tmp_path):
    out = tmp_path
    for seed in (0, 1):
        reproduce(["table1"], runs=1, jobs=1, out=out, seed=seed)
    first, second = (one_fold("artificial_well_specified", "SE", seed, 0, 0) for seed in (0, 1))
    width = summarise([second])["artificial_well_specified", Row("GPR", "SE")].cell(90).width
    assert f"SE,,90,{width:.6g}," in (out / "table1.csv").read_text()
    assert first["found"] != second["found"]
