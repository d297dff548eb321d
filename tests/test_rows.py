"""Rows in memory and in memory maps, tuning rows, progress, and bad input."""

import io
import pickle
import re
import tracemalloc
from contextlib import redirect_stderr

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

from cases import make_data
from conformal_gp import ConformalGPRegressor, rows
from conformal_gp.rows import ArrayRows
from conformal_gp.threads import slices

INPUTS, LABELS = make_data(99, 6)


def small(**options):
    return ConformalGPRegressor(**{"low_rank": 15, "n_restarts": 0, "random_state": 0, **options})


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_memory_maps_are_read_in_blocks(tmp_path, dtype, monkeypatch):
    X, y = make_data(1, 500)
    X = X.astype(dtype)
    mapped = np.memmap(tmp_path / "X", dtype=dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    read = []
    inner = ArrayRows.take
    monkeypatch.setattr(
        ArrayRows, "take", lambda self, some: read.append(np.arange(500)[some].size) or inner(self, some)
    )
    monkeypatch.setattr(rows, "BLOCK_ROWS", 64)
    given = np.arange(0, 500, 4)  # in memory they are drawn by their content, which a memory map does not sort
    model = small(tuning_rows=given).fit(np.memmap(tmp_path / "X", dtype=dtype, mode="r", shape=X.shape), y)
    assert len(read) > 5
    assert max(read) <= 125  # a block, or the tuning rows
    expected = small(tuning_rows=given).fit(X.astype(np.float64), y).predict_interval(INPUTS, [0.5, 0.9])
    np.testing.assert_allclose(model.predict_interval(INPUTS, [0.5, 0.9]), expected, rtol=1e-10)
    mapped[321, 1] = np.nan
    with pytest.raises(ValueError, match=r"X contains NaN in row 321, column 1"):
        small(tuning_rows=np.arange(100), missing="error").fit(mapped, y)
    mapped[::7, 1] = np.nan
    model = small(tuning_rows=given).fit(mapped, y)
    expected = small(tuning_rows=given).fit(np.array(mapped, dtype=np.float64), y).predict_interval(INPUTS, [0.5, 0.9])
    np.testing.assert_allclose(model.predict_interval(INPUTS, [0.5, 0.9]), expected, rtol=1e-10)
    assert model._source.take(np.array([321]))[0].X.shape == (1, 3)


def test_memory_follows_the_block_not_the_rows(tmp_path, monkeypatch):
    n_rows, n_inducing = 60_000, 40
    X, y = make_data(1, n_rows)
    mapped = np.memmap(tmp_path / "X", dtype=float, mode="w+", shape=X.shape)
    mapped[:] = X
    inputs, _ = make_data(2, 200)

    def peak(block_rows):
        monkeypatch.setattr(rows, "BLOCK_ROWS", block_rows)
        tracemalloc.start()
        model = small(low_rank=n_inducing, tuning_rows=300, difficulty=None, n_jobs=1)
        model.fit(mapped, y).predict_interval(inputs)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    features = 8 * n_rows * n_inducing  # 19 MB; weights of the test rows on all rows would take 96 MB, targets take 0.5
    assert peak(500) < 0.58 * features
    assert peak(500) + 8 * 20_000 * n_inducing < peak(30_000)


def test_a_model_keeps_its_rows_and_pickles_answer_alike():
    X, y = make_data(1, 300)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = small().fit(X, y)
    named = small().fit(frame, pd.Series(y))
    before = model.predict_interval(INPUTS, 0.9)
    X += 1.0
    y[:] = 0.0
    np.testing.assert_array_equal(model.predict_interval(INPUTS, 0.9), before)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_interval(INPUTS, 0.9), before)
    with pytest.raises(ValueError, match="feature names"):
        named.predict_interval(frame[["b", "a"]])


@pytest.mark.parametrize(("n_rows", "block_rows"), [(1, 1), (10, 3), (10, 10), (10, 50), (1000, 7)])
def test_blocks_hold_every_row_once(n_rows, block_rows):
    blocks = slices(n_rows, block_rows)
    np.testing.assert_array_equal(np.concatenate([np.arange(n_rows)[block] for block in blocks]), np.arange(n_rows))
    assert all(0 < block.stop - block.start <= block_rows for block in blocks)


def test_progress_is_shown(monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_ROWS", 100)
    shown = io.StringIO()
    with redirect_stderr(shown):
        small(verbose=True).fit(*make_data(1, 300))
    assert re.search(r"fit: 3 of 3 blocks of rows", shown.getvalue())
    assert re.search(r"scores: 3 of 3 blocks of rows", shown.getvalue())
    with redirect_stderr(shown := io.StringIO()):
        small().fit(*make_data(1, 300))
    assert shown.getvalue() == ""


@pytest.mark.parametrize("inducing", [15, make_data(1, 300)[0][:15]])
def test_inducing_inputs_by_number_or_given(inducing):
    model = small(low_rank=inducing).fit(*make_data(1, 300))
    assert model.inducing_.shape == (15, 2)
    assert model.score(*make_data(2, 300)) > 0.7
    assert ("inducing inputs that were given must not come from" in model.guarantee_) == (not isinstance(inducing, int))
    assert model.tuning_rows_.size == 221


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tuning_rows": 300}, "tuning_rows must leave calibration rows: got 300 of n_samples=300"),
        ({"low_rank": 0}, "'low_rank' parameter"),
        ({"low_rank": True}, "low_rank must be 'auto', False, a number"),
        ({"low_rank": "magic"}, "'low_rank' parameter"),
        ({"low_rank": np.zeros((3, 5))}, "5 features"),
        ({"kernel": RBF([1.0, 1.0, 1.0])}, "does not take 2 inputs"),
        ({"tuning": "train"}, "low_rank is for tuning='holdout' or 'fixed', not for tuning='train'"),
        ({"tuning": "fixed"}, "noise_variance must be a number"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(options, message):
    with pytest.raises((ValueError, np.linalg.LinAlgError), match=message):
        small(**options).fit(*make_data(1, 300))


def test_a_tuning_row_that_is_alone_in_its_category_does_not_stop_a_fit():
    # it determines a coefficient of the linear mean by itself; the noise of its label is then not to be told
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-2, 2, size=(400, 2)), np.zeros((400, 1))])
    X[7, 2] = 1.0
    y = np.sin(X[:, 0]) + 30.0 * X[:, 2] + 0.1 * rng.standard_normal(400)
    tuning_rows = np.arange(130)
    for seed in range(3):
        options = {"low_rank": 20 + 10 * seed, "n_restarts": 0, "random_state": seed, "mean": "linear"}
        model = ConformalGPRegressor(tuning_rows=tuning_rows, **options).fit(X[:380], y[:380])
        low, high = model.predict_interval(X[380:], 0.9).T
        assert ((high - low) < 0.5).all()
