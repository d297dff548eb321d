"""Rows in Dask collections, on one machine and on a cluster; workers that die are in tests/slow/test_cluster.py."""

import numpy as np
import pandas as pd
import pytest

from cases import make_data
from conformal_gp import ConformalGPRegressor, dask_rows
from conformal_gp.models import low_rank

pytest.importorskip("dask", reason="Dask is an extra: pip install '.[dask]'")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

X, Y = make_data(1, 1500)
WHOLE = pd.DataFrame(X, columns=["a", "b"]).assign(y=Y)
FRAME = dd.from_pandas(WHOLE, npartitions=5)
ARRAY = da.from_array(X, chunks=(400, 1))
INPUTS, LABELS = make_data(2, 20)
ROWS = np.arange(0, 1500, 10)  # in memory they are drawn by their content, which Dask does not sort
NAMED = pd.DataFrame(INPUTS, columns=["a", "b"])


def small(**options):
    settings = {"low_rank": 25, "tuning_rows": ROWS, "n_restarts": 0, "random_state": 0}
    return ConformalGPRegressor(**settings | options)


@pytest.fixture(autouse=True)
def blocks_are_small(monkeypatch):
    monkeypatch.setattr(dask_rows, "BLOCK_ROWS", 128)


def answers(model, inputs=INPUTS, labels=LABELS):
    """All that a model can be asked."""
    return np.concatenate(
        [
            np.ravel(model.predict(inputs, return_std=True)),
            model.predict_interval(inputs, [0.5, 0.9, 0.99]).ravel(),
            np.concatenate(model.predict_set(inputs, 0.8)).ravel(),
            model.predict_p(inputs, labels),
        ]
    )


@pytest.fixture(scope="module")
def expected():
    return answers(small().fit(X, Y))


@pytest.mark.parametrize(
    ("inputs", "labels"),
    [
        (ARRAY, Y),
        (ARRAY, da.from_array(Y[:, None], chunks=350)),
        (FRAME[["a", "b"]].to_dask_array(), FRAME["y"].to_dask_array()),  # of unknown sizes
        (da.concatenate([da.empty((0, 2)), ARRAY, da.empty((0, 2))]), Y),
        (FRAME[["a", "b"]], FRAME["y"]),
    ],
)
def test_answers_are_those_of_rows_in_memory(inputs, labels, expected):
    model = small().fit(inputs, labels)
    new = NAMED if inputs is not ARRAY and hasattr(inputs, "columns") else INPUTS
    np.testing.assert_allclose(answers(model, new), expected, rtol=1e-10, atol=1e-10)
    if new is NAMED:
        np.testing.assert_array_equal(model.feature_names_in_, ["a", "b"])
    else:
        found = answers(model, da.from_array(INPUTS, chunks=(7, 2)), da.from_array(LABELS, chunks=6))
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_rows_that_do_not_come_together_come_in_portions(expected, monkeypatch, capsys):
    monkeypatch.setattr(low_rank, "GATHERED_ROWS", 200)
    np.testing.assert_allclose(answers(small(verbose=True).fit(ARRAY, Y)), expected, rtol=1e-10, atol=1e-10)
    assert "100% Completed" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["arrays", "frames", "in memory"])
def test_known_noise_of_rows(form):
    v = np.exp(np.random.default_rng(3).standard_normal(Y.size)) / 100.0
    whole = small().fit(X, Y, y_variance=v)
    inputs, labels, noise = {
        "arrays": (ARRAY, da.from_array(Y, chunks=350), da.from_array(v, chunks=500)),
        "frames": (FRAME[["a", "b"]], FRAME["y"], dd.from_pandas(pd.Series(v), npartitions=3)),
        "in memory": (ARRAY, Y, v),
    }[form]
    model = small().fit(inputs, labels, y_variance=noise)
    new, known = NAMED if form == "frames" else INPUTS, np.linspace(0.0, 0.5, len(INPUTS))
    found = model.predict_interval(new, 0.9, y_variance=known)
    np.testing.assert_allclose(found, whole.predict_interval(INPUTS, 0.9, y_variance=known), rtol=1e-9)


NUMBERS = da.from_array(np.arange(1500), chunks=400)


@pytest.mark.parametrize(
    ("inputs", "labels", "noise", "message"),
    [
        (da.from_array(X[:, 0], chunks=100), Y, None, "two-dimensional"),
        (ARRAY, Y[:-1], None, r"1500.*1499"),
        (ARRAY, da.from_array(Y[:-1], chunks=100), None, "X and y have inconsistent numbers of samples: 1500 and 1499"),
        (ARRAY, da.from_array(np.stack([Y, Y], axis=1), chunks=100), None, "one-dimensional"),
        (da.from_array(X[:0], chunks=1), Y[:0], None, "no rows"),
        (da.where(NUMBERS[:, None] == 777, np.nan, ARRAY), Y, None, "NaN in row 777"),
        (ARRAY, da.where(NUMBERS == 888, np.inf, Y), None, r"infinity.* in row 888"),
        (ARRAY, Y, da.from_array(Y[1:], chunks=400), "X and y_variance have inconsistent numbers"),
        (ARRAY, Y, da.where(NUMBERS == 905, -1.0, 0.1), r"y_variance is -1\.0 in row 905"),
        (FRAME.assign(a="text")[["a", "b"]], Y, None, "columns of text: 'a'"),
    ],
)
def test_bad_rows_are_refused(inputs, labels, noise, message):
    with pytest.raises(ValueError, match=message):
        small().fit(inputs, labels, y_variance=noise)


def test_a_cluster_gives_the_same(expected):
    with (
        # workers in this process start fast; tests/slow/test_cluster.py has processes
        distributed.LocalCluster(n_workers=2, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        assert len(client.scheduler_info()["workers"]) == 2
        model = small().fit(ARRAY, da.from_array(Y, chunks=350))
        np.testing.assert_allclose(answers(model), expected, rtol=1e-10, atol=1e-10)
