"""Rows in Dask collections, on one machine and on a cluster; workers that die are in tests/slow/test_cluster.py."""

import numpy as np
import pandas as pd
import pytest

from cases import make_data
from conformal_gp import SparseConformalGPRegressor
from conformal_gp.predictors import lowrank

pytest.importorskip("dask", reason="Dask is an extra: pip install 'conformal-gp[dask]'")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

from conformal_gp.dask_rows import read_folder  # noqa: E402 (needs Dask)

X, Y = make_data(1, 1500)
FRAME = pd.DataFrame(X, columns=["a", "b"])
INPUTS, LABELS = make_data(2, 20)
LEVELS = [0.5, 0.9, 0.99]


def small(**options):
    settings = {"n_inducing": 25, "design": 150, "n_restarts": 0, "random_state": 0, "block_rows": 128}
    return SparseConformalGPRegressor(**settings | options)


def answers(model, inputs=INPUTS, labels=LABELS):
    """All that a model can be asked."""
    return np.concatenate(
        [
            np.ravel(model.predict(inputs, return_std=True)),
            model.predict_interval(inputs, LEVELS).ravel(),
            np.concatenate(model.predict_set(inputs, 0.8)).ravel(),
            model.predict_p(inputs, labels),
        ]
    )


@pytest.fixture(scope="module")
def expected():
    return answers(small().fit(X, Y))


@pytest.fixture(scope="module")
def expected_of_frame():
    return answers(small().fit(FRAME, Y), pd.DataFrame(INPUTS, columns=["a", "b"]))


def array(chunks=400):
    return da.from_array(X, chunks=(chunks, 1))


def frame(n_partitions=4):
    whole = FRAME.assign(y=Y)
    return dd.from_pandas(whole, npartitions=n_partitions)


@pytest.mark.parametrize("labels", [Y, da.from_array(Y, chunks=350), da.from_array(Y[:, None], chunks=350)])
def test_arrays(labels, expected):
    np.testing.assert_allclose(answers(small().fit(array(), labels)), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("form", ["arrays", "frames", "in memory"])
def test_known_noise_of_rows(form):
    v = np.exp(np.random.default_rng(3).standard_normal(Y.size)) / 100.0
    whole = small().fit(X, Y, noise_variance=v)
    inputs, labels, noise = {
        "arrays": (array(), da.from_array(Y, chunks=350), da.from_array(v, chunks=500)),
        "frames": (frame()[["a", "b"]], frame()["y"], dd.from_pandas(pd.Series(v), npartitions=3)),
        "in memory": (array(), Y, v),
    }[form]
    model = small().fit(inputs, labels, noise_variance=noise)
    new = INPUTS if form != "frames" else pd.DataFrame(INPUTS, columns=["a", "b"])
    known = np.linspace(0.0, 0.5, len(INPUTS))
    np.testing.assert_allclose(
        model.predict_interval(new, 0.9, noise_variance=known),
        whole.predict_interval(INPUTS, 0.9, noise_variance=known),
        rtol=1e-9,
    )
    with pytest.raises(ValueError, match="noise_variance is needed"):
        model.predict_interval(new, 0.9)


def test_bad_noise_of_rows():
    v = np.full(Y.size, 0.1)
    with pytest.raises(ValueError, match="X and noise_variance have inconsistent numbers of samples: 1500 and 1499"):
        small().fit(array(), Y, noise_variance=da.from_array(v[1:], chunks=400))
    v[905] = -1.0
    with pytest.raises(ValueError, match=r"noise_variance is -1\.0 in row 905"):
        small().fit(array(), Y, noise_variance=da.from_array(v, chunks=400))


def test_rows_that_do_not_come_together_come_in_portions(expected, monkeypatch):
    monkeypatch.setattr(lowrank, "GATHERED_ROWS", 200)
    np.testing.assert_allclose(answers(small().fit(array(), Y)), expected, rtol=1e-10, atol=1e-10)


def test_test_rows_in_arrays(expected):
    model = small().fit(array(), Y)
    found = answers(model, da.from_array(INPUTS, chunks=(7, 2)), da.from_array(LABELS, chunks=6))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_dataframes(expected_of_frame):
    rows = frame()
    model = small().fit(rows[["a", "b"]], rows["y"])
    np.testing.assert_array_equal(model.feature_names_in_, ["a", "b"])
    inputs = dd.from_pandas(pd.DataFrame(INPUTS, columns=["a", "b"]), npartitions=2)
    np.testing.assert_allclose(answers(model, inputs), expected_of_frame, rtol=1e-10, atol=1e-10)


def test_arrays_of_unknown_chunks_and_empty_chunks(expected):
    rows = frame(5)
    unknown = rows[["a", "b"]].to_dask_array()
    np.testing.assert_allclose(answers(small().fit(unknown, rows["y"].to_dask_array())), expected, atol=1e-10)
    padded = da.concatenate([da.empty((0, 2)), array(), da.empty((0, 2))])
    np.testing.assert_allclose(answers(small().fit(padded, Y)), expected, atol=1e-10)


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet"])
def test_csv_and_parquet_files_and_folders(tmp_path, form, expected_of_frame):
    if form == "parquet":
        pytest.importorskip("pyarrow")
        frame(3).to_parquet(tmp_path / "folder", write_index=False)
        FRAME.assign(y=Y).to_parquet(tmp_path / "file.parquet")
    else:
        frame(3).to_csv(str(tmp_path / "folder" / f"*.{form}"), index=False, compression="infer")
        FRAME.assign(y=Y).to_csv(tmp_path / f"file.{form}", index=False)
    inputs = pd.DataFrame(INPUTS, columns=["a", "b"])
    for path in (tmp_path / "folder", tmp_path / f"file.{form}"):
        found = answers(small().fit(*read_folder(path, "y")), inputs)
        np.testing.assert_allclose(found, expected_of_frame, rtol=1e-10, atol=1e-10)
    with pytest.raises(ValueError, match=r"label must be a column.*'price'; columns are a, b, y"):
        read_folder(tmp_path / "folder", "price")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_folder(tmp_path / "nowhere", "y")


def test_progress_is_shown(capsys):
    small(verbose=True).fit(array(), Y)
    assert "100% Completed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        (da.from_array(X[:, 0], chunks=100), Y, "two-dimensional"),
        (array(), Y[:-1], r"1500.*1499"),
        (array(), da.from_array(Y[:-1], chunks=100), r"1500 and 1499"),
        (array(), da.from_array(np.stack([Y, Y], axis=1), chunks=100), "one-dimensional"),
        (da.from_array(X[:0], chunks=1), Y[:0], "no rows"),
        (da.where(da.from_array(np.arange(1500)[:, None], chunks=400) == 777, np.nan, array()), Y, "NaN in row 777"),
        (array(), da.where(da.from_array(np.arange(1500), chunks=400) == 888, np.inf, Y), "infinity.* in row 888"),
    ],
)
def test_bad_rows_are_refused(inputs, labels, message):
    with pytest.raises(ValueError, match=message):
        small().fit(inputs, labels)


def test_a_cluster_gives_the_same(expected, capsys):
    with (
        # workers in this process start fast; tests/slow/test_cluster.py has processes
        distributed.LocalCluster(n_workers=2, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        assert len(client.scheduler_info()["workers"]) == 2
        model = small(verbose=True).fit(array(), da.from_array(Y, chunks=350))
        np.testing.assert_allclose(answers(model), expected, rtol=1e-10, atol=1e-10)
    assert "100% Completed" in capsys.readouterr().out
