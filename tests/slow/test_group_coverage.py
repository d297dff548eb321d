"""Coverage in each group by itself, and under a known shift, after tuning; without either it falls short.

Labels of one data set share their training rows, so standard errors are those of the data sets' own shares.
"""

import warnings

import numpy as np
import pytest

from conformal_gp import ConformalGPRegressor

pytestmark = pytest.mark.slow

N_SETS, N_NEW, LEVEL = 250, 60, 0.8
MODELS = {
    "integrated": (33, {}),
    "split": (90, {"tuning": "holdout", "n_restarts": 0}),
    "low rank": (150, {"low_rank": 15, "n_restarts": 0, "tuning_rows": 70}),
}


def ratio(X):
    return np.exp(1.2 * X[:, 0])


def draw(rng, n, shifted):
    X = rng.uniform(-2, 2, (n, 2))
    if shifted:  # density in proportion to the ratio
        low, high = np.exp([-2.4, 2.4])
        X[:, 0] = np.log(low + rng.uniform(size=n) * (high - low)) / 1.2
    groups = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    scale = np.array([0.1, 0.4, 1.2])[groups] * np.exp(0.8 * X[:, 0])
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + scale * rng.standard_t(3, n), groups


def shortfalls(name, shifted, **how):
    """How far coverage is below its level in each group, in standard errors."""
    n, options = MODELS[name]
    rng = np.random.default_rng([sum(map(ord, name)), shifted])
    shares = np.full((N_SETS, 3), np.nan)
    for i in range(N_SETS):
        (X, y, groups), (new, labels, new_groups) = draw(rng, n, False), draw(rng, N_NEW, shifted)
        seen = np.isin(new_groups, groups)
        new, labels, new_groups = new[seen], labels[seen], new_groups[seen]
        with warnings.catch_warnings(action="ignore"):
            model = ConformalGPRegressor(random_state=i, n_jobs=1, **options)
            by_group = {"groups": new_groups} if "groups" in how else {}
            model.fit(X, y, **({"groups": groups} if by_group else {}))
            weighted = {"likelihood_ratio": ratio} if "ratio" in how else {}
            inside = model.predict_p(new, labels, **by_group, **weighted) > 1 - LEVEL
        for group in range(3):
            own = (new_groups == group) & (group in groups)
            shares[i, group] = inside[own].mean() if own.any() else np.nan
    error = np.nanstd(shares, axis=0, ddof=1) / np.sqrt((~np.isnan(shares)).sum(axis=0))
    return (LEVEL - np.nanmean(shares, axis=0)) / error


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("shifted", [False, True])
def test_each_group_keeps_the_level(name, shifted):
    assert (shortfalls(name, shifted, groups=True, **({"ratio": True} if shifted else {})) < 3).all()


def test_without_groups_and_ratio_it_falls_short():
    assert shortfalls("split", False)[2] > 5
    assert (shortfalls("split", True, groups=True) > 5).any()
