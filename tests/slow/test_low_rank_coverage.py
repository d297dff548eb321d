"""The theorem in the low-rank model: coverage is at least nominal, whatever the inducing inputs and hyperparameters.

Labels of one data set share their training rows, so standard errors are those of the data sets' own shares.
"""

import warnings

import numpy as np
import pytest

from cases import INF
from conformal_gp import ConformalGPRegressor

pytestmark = pytest.mark.slow

N_SETS, N_NEW, N_TRAIN, N_INPUTS = 400, 50, 89, 3
LEVELS = np.array([0.8, 0.9])


def shares_covered(**settings):
    """Share of new labels in their intervals, for each data set and level."""
    rng = np.random.default_rng(0)
    shares = np.empty((N_SETS, LEVELS.size))
    for i in range(N_SETS):
        X = rng.normal(size=(N_TRAIN + N_NEW, N_INPUTS))
        y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_t(3, size=X.shape[0])
        model = ConformalGPRegressor(n_restarts=0, random_state=i, n_jobs=1, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ends = model.fit(X[:N_TRAIN], y[:N_TRAIN]).predict_interval(X[N_TRAIN:], LEVELS)
        inside = (y[N_TRAIN:, None] >= ends[:, 0]) & (y[N_TRAIN:, None] <= ends[:, 1])
        shares[i] = inside.mean(axis=0)
    return shares


@pytest.mark.parametrize("gamma", [1.0, 2.0, INF])
@pytest.mark.parametrize("n_inducing", [3, 30])
def test_coverage_is_at_least_nominal(n_inducing, gamma):
    # 30 tuning rows leave 59 to rank: 60 is a multiple of 5 and 10, so coverage is at the level and not above
    shares = shares_covered(low_rank=n_inducing, gamma=gamma, tuning_rows=30)
    coverage, error = shares.mean(axis=0), shares.std(axis=0, ddof=1) / np.sqrt(N_SETS)
    assert (error < 0.01).all()
    assert (coverage >= LEVELS - 3 * error).all(), (coverage, error)
    if gamma == 2.0:  # one interval: coverage is no larger than it must be
        assert (coverage <= LEVELS + 4 * error).all(), (coverage, error)
