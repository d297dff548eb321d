"""A fitted model passed on: to other processes by pickle or skops, and to other threads as it is."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cases import make_data
from conformal_gp import ConformalGPRegressor, SparseConformalGPRegressor

X, Y = make_data(3, 200)
NEW, LABELS = make_data(4, 40)


def fitted(way):
    if way == "low rank":
        return SparseConformalGPRegressor(n_inducing=20, n_restarts=0, random_state=0).fit(X, Y)
    return ConformalGPRegressor("se", tuning=way, noise_variance=0.1, n_restarts=0, random_state=0).fit(X, Y)


def answers(model):
    return model.predict(NEW), model.predict_interval(NEW, [0.8, 0.95]), model.predict_p(NEW, LABELS)


@pytest.mark.parametrize("way", ["augmented", "holdout", "train", "fixed", "low rank"])
@pytest.mark.filterwarnings("ignore:tuning='train'")
def test_a_pickle_is_not_ten_times_the_rows_also_after_predictions(way):
    model = fitted(way)
    expected = answers(model)
    saved = pickle.dumps(model)
    assert len(saved) <= 10 * (X.nbytes + Y.nbytes)
    for answer, again in zip(expected, answers(pickle.loads(saved)), strict=True):
        np.testing.assert_array_equal(answer, again)


@pytest.mark.parametrize("way", ["augmented", "holdout", "low rank"])
def test_skops_keeps_a_fitted_model(way):
    io = pytest.importorskip("skops.io")
    model = fitted(way)
    expected = answers(model)
    saved = io.dumps(model)
    types = io.get_untrusted_types(data=saved)
    assert all(name.startswith(("conformal_gp.", "sklearn.")) for name in types)
    for answer, again in zip(expected, answers(io.loads(saved, trusted=types)), strict=True):
        np.testing.assert_array_equal(answer, again)


def test_skops_keeps_the_default_model_in_a_file(tmp_path):
    io = pytest.importorskip("skops.io")
    model = ConformalGPRegressor().fit(X[:60], Y[:60])
    io.dump(model, tmp_path / "model.skops")
    types = io.get_untrusted_types(file=tmp_path / "model.skops")
    loaded = io.load(tmp_path / "model.skops", trusted=types)
    np.testing.assert_array_equal(loaded.predict_interval(NEW), model.predict_interval(NEW))


@pytest.mark.parametrize("way", ["augmented", "holdout", "low rank"])
def test_eight_threads_predict_from_one_model(way):
    model = fitted(way)
    expected = answers(fitted(way))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: answers(model), range(16)))
    for one in found:
        for answer, again in zip(expected, one, strict=True):
            np.testing.assert_array_equal(answer, again)
