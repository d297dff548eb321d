"""What a user would take instead, each through its own library at sensible defaults.

A peer gives the ends of intervals at all levels, (test rows, 2, levels); infinite where it has too few rows for a
level. Trees get leaves of at least 20 rows, as is their default, or of a twentieth of the training rows where that is
less: with the default, tables of 40 rows could not be split at all. Whoever sets rows apart for calibration sets a
quarter apart, or 40 if that is more, but never more than half.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

Array = NDArray[np.float64]
Intervals = Callable[[Array, Array, Array, tuple[float, ...], int], Array]


class Method(NamedTuple):
    """Intervals from training rows, and the largest number of training rows for which they are computed."""

    intervals: Intervals
    most_rows: int = 10**9


def _leaf(n_rows: int) -> int:
    return max(1, min(20, n_rows // 20))


def _lightgbm(n_rows: int, seed: int, **options: Any) -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(min_child_samples=_leaf(n_rows), random_state=seed, n_jobs=1, verbose=-1, **options)


def _forest(seed: int, **options: Any) -> RandomForestRegressor:
    return RandomForestRegressor(random_state=seed, n_jobs=1, **options)


def _calibration(X: Array, y: Array, seed: int) -> list[Array]:
    """Rows to learn from and rows to calibrate on: X, X, y, y."""
    size = min(y.size // 2, max(40, y.size // 4))
    return train_test_split(X, y, test_size=size, random_state=seed)


def _enough(n_rows: int, level: float) -> bool:
    """Whether MAPIE takes so few rows to calibrate on: 20 at 95%, 10 at 90%."""
    return round(n_rows * (1.0 - level), 9) >= 1.0


def quantile_boosting(X: Array, y: Array, X_new: Array, levels: tuple[float, ...], seed: int) -> Array:
    """Conformalised quantile regression (MAPIE) with LightGBM."""
    from mapie.regression import ConformalizedQuantileRegressor

    X_fit, X_rest, y_fit, y_rest = _calibration(X, y, seed)
    found = np.full((len(X_new), 2, len(levels)), [[-np.inf], [np.inf]])
    for i, level in enumerate(levels):
        if _enough(y_rest.size, level):
            model = ConformalizedQuantileRegressor(_lightgbm(y_fit.size, seed, objective="quantile", alpha=0.5), level)
            model.fit(X_fit, y_fit).conformalize(X_rest, y_rest)
            found[:, :, i] = model.predict_interval(X_new, symmetric_correction=True)[1][:, :, 0]
    return found


def cross_quantile_boosting(X: Array, y: Array, X_new: Array, levels: tuple[float, ...], seed: int) -> Array:
    """Conformalised quantile regression by CV+ (MAPIE), five folds, with LightGBM."""
    from mapie.regression import CrossConformalizedQuantileRegressor

    found = []
    for level in levels:
        model = CrossConformalizedQuantileRegressor(
            _lightgbm(y.size, seed, objective="quantile", alpha=0.5),
            level,
            random_state=seed,
            fit_central_estimator=False,
        )
        found.append(model.fit_conformalize(X, y).predict_interval(X_new)[1].reshape(-1, 2))
    return np.stack(found, axis=2)


def _cross(estimator: Any, X: Array, y: Array, X_new: Array, levels: tuple[float, ...], seed: int) -> Array:
    """CV+ (MAPIE) with five folds, its default."""
    from mapie.regression import CrossConformalRegressor

    model = CrossConformalRegressor(estimator, list(levels), random_state=seed)
    return model.fit_conformalize(X, y).predict_interval(X_new)[1]


def cross_boosting(X: Array, y: Array, X_new: Array, levels: tuple[float, ...], seed: int) -> Array:
    """CV+ with LightGBM."""
    return _cross(_lightgbm(y.size, seed), X, y, X_new, levels, seed)


def cross_forest(X: Array, y: Array, X_new: Array, levels: tuple[float, ...], seed: int) -> Array:
    """CV+ with random forests."""
    return _cross(_forest(seed), X, y, X_new, levels, seed)


def split_boosting(X: Array, y: Array, X_new: Array, levels: tuple[float, ...], seed: int) -> Array:
    """Split conformal (MAPIE) with scikit-learn's boosted trees."""
    from mapie.regression import SplitConformalRegressor

    X_fit, X_rest, y_fit, y_rest = _calibration(X, y, seed)
    trees = HistGradientBoostingRegressor(min_samples_leaf=_leaf(y_fit.size), random_state=seed).fit(X_fit, y_fit)
    found = np.full((len(X_new), 2, len(levels)), [[-np.inf], [np.inf]])
    for i, level in enumerate(levels):
        if _enough(y_rest.size, level):
            model = SplitConformalRegressor(trees, level).conformalize(X_rest, y_rest)
            found[:, :, i] = model.predict_interval(X_new)[1][:, :, 0]
    return found


def normalised_forest(X: Array, y: Array, X_new: Array, levels: tuple[float, ...], seed: int) -> Array:
    """Random forest of 200 trees, out of bag, normalised by the variance of its trees (crepes).

    ``beta``, what is added to the variance, is 0.1: on rows made up for this, 0.01, its default, was much worse.
    """
    from crepes import WrapRegressor
    from crepes.extras import DifficultyEstimator

    forest = WrapRegressor(_forest(seed, n_estimators=200, oob_score=True))
    forest.fit(X, y)
    difficulty = DifficultyEstimator()
    difficulty.fit(X=X, learner=forest.learner, scaler=True, beta=0.1, oob=True)
    forest.calibrate(X, y, de=difficulty, oob=True, seed=seed)
    return np.stack([forest.predict_int(X_new, confidence=level) for level in levels], axis=2)


def quantile_forest(X: Array, y: Array, X_new: Array, levels: tuple[float, ...], seed: int) -> Array:
    """Quantile forest of 200 trees, conformalised on its out-of-bag quantiles (quantile-forest).

    Leaves of five rows, all of which count: on the made tables better than leaves of one or ten, or one row of a leaf.
    """
    from quantile_forest import RandomForestQuantileRegressor

    options = {"n_estimators": 200, "min_samples_leaf": 5, "max_samples_leaf": None, "n_jobs": 1}
    forest = RandomForestQuantileRegressor(**options, random_state=seed).fit(X, y)
    quantiles = _quantiles(levels)
    return _conformalised(
        forest.predict(X, quantiles=quantiles, oob_score=True), y, forest.predict(X_new, quantiles=quantiles), levels
    )


def catboost(X: Array, y: Array, X_new: Array, levels: tuple[float, ...], seed: int) -> Array:
    """Conformalised quantile regression with CatBoost, one model for the quantiles of all levels."""
    from catboost import CatBoostRegressor

    X_fit, X_rest, y_fit, y_rest = _calibration(X, y, seed)
    loss = "MultiQuantile:alpha=" + ",".join(f"{q:.10g}" for q in _quantiles(levels))
    options = {"thread_count": 1, "verbose": False, "allow_writing_files": False}
    trees = CatBoostRegressor(loss_function=loss, random_seed=seed, **options).fit(X_fit, y_fit)
    return _conformalised(trees.predict(X_rest), y_rest, trees.predict(X_new), levels)


def _quantiles(levels: tuple[float, ...]) -> list[float]:
    """Lower and upper quantile of each level in turn."""
    return [q for level in levels for q in ((1.0 - level) / 2.0, (1.0 + level) / 2.0)]


def _conformalised(held_out: Array, y: Array, new: Array, levels: tuple[float, ...]) -> Array:
    """Quantiles of new rows, widened by what the quantiles of held-out rows miss: Romano, Patterson, Candès (2019).

    The score of a row is E = max(lower - y, y - upper), and both ends move by the ceil(level (n + 1))-th smallest E.
    """
    ends = []
    for i, level in enumerate(levels):
        lower, upper = held_out[:, 2 * i], held_out[:, 2 * i + 1]
        scores = np.sort(np.maximum(lower - y, y - upper))
        rank = int(np.ceil(round(level * (y.size + 1), 9)))
        margin = scores[rank - 1] if rank <= y.size else np.inf
        ends.append(np.column_stack([new[:, 2 * i] - margin, new[:, 2 * i + 1] + margin]))
    return np.stack(ends, axis=2)


def plain_process(X: Array, y: Array, X_new: Array, levels: tuple[float, ...], seed: int) -> Array:
    """scikit-learn's Gaussian process, a length scale for each input, plus or minus z standard deviations."""
    kernel = ConstantKernel(1.0, (1e-4, 1e4)) * Matern(np.ones(X.shape[1]), (1e-2, 1e4), nu=2.5)
    process = GaussianProcessRegressor(
        kernel + WhiteKernel(0.1, (1e-8, 1e2)), normalize_y=True, n_restarts_optimizer=1, random_state=seed
    )
    mean, std = make_pipeline(StandardScaler(), process).fit(X, y).predict(X_new, return_std=True)
    z = norm.ppf([(1 + level) / 2 for level in levels])
    return mean[:, None, None] + std[:, None, None] * np.array([[-1.0], [1.0]]) * z


def gpyconform(X: Array, y: Array, X_new: Array, levels: tuple[float, ...], seed: int) -> Array:
    """gpyconform: GPyTorch's exact process, tuned on the training rows, and full conformal intervals from it."""
    from reproduction.studies.gpyconform import gpyconform_intervals

    kept = X.std(axis=0) > 0.0
    centre, scale = y.mean(), y.std()
    ends = gpyconform_intervals(X[:, kept], (y - centre) / scale, X_new[:, kept], levels, True, seed)
    return centre + scale * ends


PEERS = {
    "CQR, LightGBM": Method(quantile_boosting),
    "CQR, CatBoost": Method(catboost),
    "CQR by CV+, LightGBM": Method(cross_quantile_boosting, 1_000),
    "CV+, LightGBM": Method(cross_boosting),
    "CV+, forest": Method(cross_forest, 2_000),
    "normalised forest": Method(normalised_forest, 10_000),
    "quantile forest, out of bag": Method(quantile_forest, 10_000),
    "split, boosted trees": Method(split_boosting),
    "GP ± z sd": Method(plain_process, 200),
    "gpyconform": Method(gpyconform, 110),
}
