"""The data as the paper splits it: ten-fold cross-validation of four data sets, and draws from a Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import KFold

from conformal_gp import datasets
from conformal_gp.arrays import Array
from reproduction.experiments.artificial import make_gp_data

N_FOLDS = 10
TRAINING_ROWS, TEST_ROWS = 500, 1000
"""Sizes of an artificial data set."""
OUTLIERS = {"artificial_well_specified": 0.0, "artificial_outliers": 0.1}
"""Artificial data sets, with the probability that a row is an outlier."""
BENCHMARKS = ("boston", "auto_mpg", "cpu", "servo")


@dataclass(frozen=True)
class Fold:
    """Training rows, test rows, and the seed of the methods."""

    data_set: str
    X: Array
    y: Array
    X_test: Array
    y_test: Array
    seed: int


def folds_in_run(data_set: str) -> int:
    """Number of folds of a run; a run of an artificial data set is one new data set and one split."""
    return 1 if data_set in OUTLIERS else N_FOLDS


def make_fold(data_set: str, seed: int, run: int, fold: int) -> Fold:
    """One fold of one run, numbered from 0: the split depends on seed and run, the seed of the methods on all three.

    >>> fold = make_fold("servo", seed=0, run=0, fold=3)
    >>> fold.X.shape, fold.X_test.shape
    ((150, 4), (17, 4))
    """
    run_seed, fold_seed = _derived(seed, run), _derived(seed, run, fold + 1)
    if data_set in OUTLIERS:
        X, y = make_gp_data(TRAINING_ROWS + TEST_ROWS, outlier_fraction=OUTLIERS[data_set], random_state=run_seed)
        train, test = np.split(np.arange(y.size), [TRAINING_ROWS])
    else:
        X, y = getattr(datasets, f"load_{data_set}")(return_X_y=True)
        splits = KFold(N_FOLDS, shuffle=True, random_state=run_seed).split(X)
        train, test = list(splits)[fold]
    return Fold(data_set, X[train], y[train], X[test], y[test], fold_seed)


def _derived(*numbers: int) -> int:
    """A different seed for each tuple of numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])
