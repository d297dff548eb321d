"""The theorem after tuning: coverage of the valid ways is at least nominal where training-row tuning falls short.

Labels of one data set share their training rows, so standard errors are those of the data sets' own shares.
"""

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from conformal_gp import ConformalGPRegressor

pytestmark = pytest.mark.slow

N_SETS, N_NEW, N_TRAIN, N_INPUTS = 400, 50, 29, 4
LEVELS = np.array([0.8, 0.9])
ARD = ConstantKernel(1.0) * Matern(np.full(N_INPUTS, 2.0), (1e-2, 1e3), nu=2.5)


def shortfalls(**settings):
    """How far mean coverage is below each level, in standard errors."""
    rng = np.random.default_rng(0)
    shares = np.empty((N_SETS, LEVELS.size))
    for i in range(N_SETS):
        X = rng.normal(size=(N_TRAIN + N_NEW, N_INPUTS))
        y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_t(3, size=X.shape[0])
        model = ConformalGPRegressor(mean="constant", n_restarts=0, random_state=i, n_jobs=1, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            p = model.fit(X[:N_TRAIN], y[:N_TRAIN]).predict_p(X[N_TRAIN:], y[N_TRAIN:])
        shares[i] = (p[:, None] > 1.0 - LEVELS).mean(axis=0)  # in the region: no search over all other labels
    return (LEVELS - shares.mean(axis=0)) / (shares.std(axis=0, ddof=1) / np.sqrt(N_SETS))


@pytest.mark.parametrize(
    ("tuning", "kernel"),
    [("integrated", "matern52"), ("holdout", "matern52"), ("holdout", ARD)],
    ids=["integrated", "holdout", "holdout, a length scale for each input"],
)
def test_valid_ways_keep_the_level(tuning, kernel):
    assert (shortfalls(kernel=kernel, tuning=tuning) < 3).all()


def test_training_row_tuning_does_not():
    assert (shortfalls(kernel=ARD, tuning="train") > 5).all()
