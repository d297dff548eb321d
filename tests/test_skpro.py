"""The door to skpro: its own checks, and the same answers behind its frames."""

import numpy as np
import pandas as pd
import pytest

from cases import fixed_model, make_data
from conformal_gp import SparseConformalGPRegressor

pytest.importorskip("skpro", reason="skpro is not installed: pip install 'conformal-gp[skpro]'")

from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from skpro.metrics import CRPS, PinballLoss
from skpro.model_selection import GridSearchCV
from skpro.regression.compose import Pipeline
from skpro.utils import check_estimator

from conformal_gp.skpro import ConformalProbaRegressor

NAMES = ["width", "height"]


def frames(seed, n_rows):
    X, y = make_data(seed, n_rows)
    index = [f"row {i}" for i in range(n_rows)]
    return pd.DataFrame(X, index, NAMES[: X.shape[1]]), pd.DataFrame({"price": y}, index)


X, Y = frames(0, 39)
NEW, LABELS = frames(1, 6)


@pytest.fixture(scope="module")
def model():
    return ConformalProbaRegressor(fixed_model()).fit(X, Y)


def test_skpros_own_checks():
    found = check_estimator(ConformalProbaRegressor, verbose=False)
    assert len(found) > 50
    assert not {name: error for name, error in found.items() if error != "PASSED"}


def test_answers_are_the_regressors(model):
    inside = fixed_model().fit(X, Y["price"])
    assert model.estimator_.guarantee_ == inside.guarantee_
    quantiles = model.predict_quantiles(NEW, [0.9, 0.1, 0.5])
    np.testing.assert_array_equal(quantiles, inside.predict_quantiles(NEW, [0.9, 0.1, 0.5]))
    assert quantiles.columns.tolist() == [("price", 0.9), ("price", 0.1), ("price", 0.5)]
    intervals = model.predict_interval(NEW, [0.8, 0.9])
    expected = inside.predict_interval(NEW, [0.8, 0.9], tails="equal").transpose(0, 2, 1).reshape(6, 4)
    np.testing.assert_array_equal(intervals, expected)
    distribution = inside.predict_distribution(NEW)
    np.testing.assert_allclose(model.predict_var(NEW)["price"], distribution.std**2)
    np.testing.assert_allclose(model.predict(NEW)["price"], distribution.mean)
    assert (model.predict(NEW).index == NEW.index).all()
    plain = ConformalProbaRegressor(fixed_model()).fit(X.to_numpy(), Y.to_numpy()[:, 0])
    np.testing.assert_array_equal(plain.predict_quantiles(NEW.to_numpy(), 0.9), model.predict_quantiles(NEW, 0.9))


def test_distributions_and_scores_are_ours(model):
    theirs, ours = model.predict_proba(NEW), model.estimator_.predict_distribution(NEW)
    np.testing.assert_allclose(
        theirs.cdf(LABELS)["price"], [np.mean(s <= y) for s, y in zip(ours.steps, LABELS["price"], strict=True)]
    )
    assert CRPS()(LABELS, theirs) == pytest.approx(ours.crps(LABELS["price"]).mean())
    quantiles = model.predict_quantiles(NEW, [0.1, 0.9])
    losses = [mean_pinball_loss(LABELS["price"], quantiles["price", q], alpha=q) for q in (0.1, 0.9)]
    expected = np.mean(losses)
    assert PinballLoss()(LABELS, quantiles) == pytest.approx(expected)


def test_pipelines_searches_and_parameters(model):
    chain = Pipeline([("scale", StandardScaler()), ("process", ConformalProbaRegressor(fixed_model()))]).fit(X, Y)
    assert chain.predict_quantiles(NEW, [0.1, 0.9]).shape == (6, 2)
    grid = {"estimator__noise_variance": [0.1, 1e6]}
    search = GridSearchCV(model.clone(), KFold(2), grid, scoring=CRPS()).fit(X, Y)
    assert search.best_params_ == {"estimator__noise_variance": 0.1}
    given = SparseConformalGPRegressor(tuning="fixed", noise_variance=1.0, design=8, n_inducing=5, random_state=0)
    fitted = ConformalProbaRegressor(given).fit(X, Y)
    assert not hasattr(given, "guarantee_")
    assert np.isfinite(fitted.predict_interval(NEW)).to_numpy().all()


def test_bad_input(model):
    with pytest.raises(ValueError, match="y must have one column, got 2"):
        ConformalProbaRegressor(fixed_model()).fit(X, pd.concat([Y, Y.rename(columns={"price": "cost"})], axis=1))
    with pytest.warns(UserWarning, match="quantile=0.99 needs at least 99 rows"):
        assert np.isinf(model.predict_quantiles(NEW, 0.99)).to_numpy().all()
