"""The methods of the paper's tables, in units: a unit is one fit, and gives one or several rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler

from conformal_gp import ConformalGPRegressor
from conformal_gp.arrays import Array
from conformal_gp.conformal.levels import Needed, rank, read_level
from conformal_gp.conformal.lines import hulls, normalised_residual_lines
from conformal_gp.rows import Rows
from conformal_gp.threads import one_blas_thread
from reproduction.comparators import (
    BetaRecalibration,
    ConformalNeighbours,
    ConformalRidge,
    FlowRecalibration,
    IsotonicRecalibration,
    SplitPredictiveSystem,
    gaussian_intervals,
)
from reproduction.comparators.split import SplitRegressor
from reproduction.experiments.folds import OUTLIERS, Fold
from reproduction.experiments.paper import Row

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
"""Confidence levels at which every method gives intervals; the paper's are the 5th, 6th and 8th."""
COVARIANCES = {"SE": "se", "RQ": "rq", "NN": "nn", "Matern32": "matern32", "Matern52": "matern52"}
"""The paper's covariance functions by our kernel names."""
GAMMAS = (1.0, 2.0, np.inf)
MORE_GAMMAS = (1.0, 2.0, 3.0, 4.0, 8.0, np.inf)
"""Values of gamma with the squared exponential covariance on the benchmark data sets."""
N_STARTS = 3
"""Random starts of the optimiser."""
NEIGHBOURS = {"boston": 3, "auto_mpg": 9, "cpu": 2, "servo": 3}
"""Neighbours of kNNR-CP. The paper chose them by cross-validation and does not report them; these match best."""
BETA_STEPS = 256
"""Training steps of GPR-RB. The paper does not report its number; of five tried, this matches best."""


class Found(NamedTuple):
    """Intervals of the test rows of a fold, for one row of a table."""

    row: Row
    intervals: Array
    """(test rows, 2, levels)"""
    log_likelihood: float | None = None


Unit = Callable[[Fold], Iterator[Found]]


def gaussian_process(covariance: str) -> Unit:
    """GPR and GPR-CP with one covariance function: one fit for both, and for every gamma."""

    def unit(fold: Fold) -> Iterator[Found]:
        gammas = MORE_GAMMAS if covariance == "SE" and fold.data_set not in OUTLIERS else GAMMAS
        return plain_and_conformal(_regressor(fold, covariance).fit(fold.X, fold.y), fold, covariance, gammas)

    return unit


def plain_and_conformal(
    model: ConformalGPRegressor, fold: Fold, covariance: str, gammas: Sequence[float]
) -> Iterator[Found]:
    """GPR and GPR-CP from one fitted model: its posterior serves every gamma."""
    intervals = gaussian_intervals(*model.predict(fold.X_test, return_std=True), LEVELS)
    yield Found(Row("GPR", covariance), intervals, model.log_marginal_likelihood_)
    posterior = model._answers.model.posterior
    inputs = model._answers.model.inputs
    with one_blas_thread():
        new = posterior.predict(inputs.new(Rows(fold.X_test)))
    needed = Needed.of_ranks([rank(read_level(level), fold.y.size) for level in LEVELS])
    for gamma in gammas:
        lines = normalised_residual_lines(
            posterior.alpha, posterior.diagonal, new.weights, new.mean, new.variance, gamma
        )
        yield Found(Row("GPR-CP", covariance, gamma), hulls(lines, needed))


def _regressor(fold: Fold, covariance: str) -> ConformalGPRegressor:
    """The paper's settings: hyperparameters learnt from training rows, or known for the first artificial data."""
    if fold.data_set == "artificial_well_specified":
        # Kernels by name have a unit amplitude and length scale, as the data have.
        return ConformalGPRegressor(
            COVARIANCES[covariance],
            mean="zero",
            noise_variance=0.01,
            tuning="fixed",
            ard=False,
            scale_inputs=False,
            n_jobs=1,
        )
    artificial = fold.data_set in OUTLIERS
    return ConformalGPRegressor(
        COVARIANCES[covariance],
        mean="zero" if artificial else "linear",
        tuning="train",
        ard=False,
        scale_inputs=not artificial,
        n_restarts=N_STARTS,
        random_state=fold.seed,
        n_jobs=1,
    )


def recalibration(method: str, calibrated: Callable[..., SplitRegressor]) -> Unit:
    """A method that recalibrates GPR on a quarter of the training rows, the same rows for all such methods."""

    def unit(fold: Fold) -> Iterator[Found]:
        scaler = StandardScaler().fit(fold.X)
        # The paper used scikit-learn's regressor and does not report its settings; these come closest to its rows.
        base = ConformalGPRegressor(
            "se",
            mean="zero",
            tuning="train",
            ard=False,
            scale_inputs=False,
            n_restarts=N_STARTS,
            random_state=fold.seed,
            n_jobs=1,
        )
        model = calibrated(base, random_state=fold.seed).fit(scaler.transform(fold.X), fold.y)
        yield Found(Row(method, "SE"), model.predict_interval(scaler.transform(fold.X_test), LEVELS))

    return unit


def ridge(fold: Fold) -> Iterator[Found]:
    """RR-CP."""
    yield Found(Row("RR-CP", "SE"), ConformalRidge().fit(fold.X, fold.y).predict_interval(fold.X_test, LEVELS))


def neighbours(fold: Fold) -> Iterator[Found]:
    """kNNR-CP."""
    model = ConformalNeighbours(NEIGHBOURS[fold.data_set], random_state=fold.seed).fit(fold.X, fold.y)
    yield Found(Row("kNNR-CP"), model.predict_interval(fold.X_test, LEVELS))


UNITS: dict[str, Unit] = {name: gaussian_process(name) for name in COVARIANCES} | {
    "GPR-RI": recalibration("GPR-RI", IsotonicRecalibration),
    "GPR-RB": recalibration("GPR-RB", partial(BetaRecalibration, max_steps=BETA_STEPS)),
    "GPR-RM": recalibration("GPR-RM", FlowRecalibration),
    "GPR-RC": recalibration("GPR-RC", SplitPredictiveSystem),
    "RR-CP": ridge,
    "kNNR-CP": neighbours,
}
"""Units by name."""


def units_for(data_set: str) -> list[str]:
    """Units that the paper's tables need on a data set."""
    return ["SE"] if data_set in OUTLIERS else list(UNITS)
