"""Split conformal prediction: ranks, normalisation, crepes."""

import numpy as np
import pytest

from cases import INF
from reproduction.comparators import SplitConformal


@pytest.mark.parametrize(
    ("q", "level", "r"),
    [(9, 0.9, 9), (8, 0.9, None), (19, 0.9, 18), (19, 0.95, 19), (99, 0.99, 99), (98, 0.99, None), (499, 0.9, 450)],
)
def test_ranks(q, level, r):
    y = np.random.default_rng(0).permutation(np.arange(1.0, q + 1)) * np.where(np.arange(q) % 2, 1, -1)
    model = SplitConformal().calibrate(np.zeros(q), np.ones(q), y)
    half = INF if r is None else r
    np.testing.assert_array_equal(model.intervals([1.0], [1.0], level), [[1 - half, 1 + half]])


@pytest.mark.parametrize("gamma", [1.0, 2.0, 4.0, INF])
def test_scores_are_divided_by_a_root_of_the_variance(gamma):
    rng = np.random.default_rng(1)
    mean, y = rng.normal(size=(2, 19))
    std = rng.uniform(0.5, 2.0, 19)
    model = SplitConformal(gamma=gamma).calibrate(mean, std, y)
    t = np.sort(np.abs(y - mean) / (std**2) ** (1 / gamma))[17]
    half = t * 9.0 ** (1 / gamma)
    np.testing.assert_allclose(model.intervals([2.0], [3.0], 0.9), [[2 - half, 2 + half]])


def test_an_infinite_interval_at_no_standard_deviation():
    model = SplitConformal().calibrate(np.zeros(5), np.ones(5), np.arange(5))
    np.testing.assert_array_equal(model.intervals([1.0], [0.0], [0.5, 0.9]), [[[1.0, -INF], [1.0, INF]]])


@pytest.mark.parametrize("q", [37, 38, 88, 115])  # crepes takes floors of floats: not where δ (q + 1) is whole
@pytest.mark.parametrize("gamma", [2.0, INF])
def test_equals_crepes(q, gamma):
    crepes = pytest.importorskip("crepes", reason="crepes is not installed")
    rng = np.random.default_rng(q)
    mean, y = rng.normal(size=(2, q))
    std = rng.uniform(0.5, 2.0, q)
    test_mean, test_std = rng.normal(size=7), rng.uniform(0.5, 2.0, 7)
    model = SplitConformal(gamma=gamma).calibrate(mean, std, y)
    theirs = crepes.ConformalRegressor().fit(y - mean, sigmas=std if gamma == 2 else None)
    for level in (0.8, 0.9, 0.95):
        found = theirs.predict_int(test_mean, sigmas=test_std if gamma == 2 else None, confidence=level)
        np.testing.assert_allclose(model.intervals(test_mean, test_std, level), found, rtol=1e-12)
