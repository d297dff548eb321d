"""Split conformal predictive system: sanity values, exact coverage, crepes."""

import numpy as np
import pytest

from reproduction.comparators import SplitPredictiveSystem


def calibrated(scores):
    scores = np.asarray(scores, dtype=float)
    return SplitPredictiveSystem().calibrate(np.zeros(scores.size), np.ones(scores.size), scores)


def test_sanity_values():
    model = calibrated(np.arange(-19, 20))
    found = model.intervals([0.0], [1.0], [0.95, 0.9, 0.99])[0]
    np.testing.assert_array_equal(found, [[-19, -18, -np.inf], [19, 18, np.inf]])
    found = calibrated(np.arange(38)).intervals([0.0], [1.0], 0.95)
    np.testing.assert_array_equal(found, [[-np.inf, np.inf]])


@pytest.mark.parametrize(
    ("q", "level", "k"),
    [
        *[(114, 0.9, 5), (114, 0.95, 2), (88, 0.9, 4), (88, 0.95, 2)],
        *[(47, 0.9, 2), (47, 0.95, 1), (38, 0.9, 1), (38, 0.95, 0)],
        *[(19, 0.9, 1), (59, 0.9, 3), (9, 0.8, 1), (198, 0.99, 0), (199, 0.99, 1)],
    ],
)
def test_ranks_of_the_benchmark_sets_and_at_exact_multiples(q, level, k):
    found = calibrated(np.arange(1, q + 1)).intervals([0.0], [1.0], level)[0]
    np.testing.assert_array_equal(found, [k, q + 1 - k] if k else [-np.inf, np.inf])


def test_ends_follow_mean_and_standard_deviation():
    rng = np.random.default_rng(0)
    mean, std, y = rng.normal(size=(3, 40))
    std = np.exp(std)
    found = SplitPredictiveSystem().calibrate(mean, std, y).intervals([5.0], [3.0], 0.9)[0]
    np.testing.assert_allclose(found, 5.0 + 3.0 * np.sort((y - mean) / std)[[1, 38]])


def test_miscoverage_is_what_theory_says():
    # 20 000 draws of 38 calibration rows and a test row; the standard error of the share missed is 0.0016
    scores = np.random.default_rng(1).normal(size=(20_000, 39))
    ordered = np.sort(scores[:, :38], axis=1)
    ends = calibrated(np.arange(38)).intervals([0.0], [1.0], 0.9)[0].astype(int)
    missed = (scores[:, 38] < ordered[:, ends[0]]) | (scores[:, 38] > ordered[:, ends[1]])
    assert missed.mean() == pytest.approx(2 / 39, abs=0.005)


@pytest.mark.parametrize("q", [37, 38, 47, 88, 114, 240])
@pytest.mark.filterwarnings("ignore:the no. of calibration examples:UserWarning")
def test_equals_crepes_where_its_floating_ranks_are_right(q):
    crepes = pytest.importorskip("crepes", reason="crepes is not installed")
    rng = np.random.default_rng(q)
    mean, y = rng.normal(size=(2, q))
    std = rng.uniform(0.5, 2.0, q)
    test_mean, test_std = rng.normal(size=7), rng.uniform(0.5, 2.0, 7)
    model = SplitPredictiveSystem().calibrate(mean, std, y)
    theirs = crepes.ConformalPredictiveSystem().fit(y - mean, sigmas=std)
    for level in (0.9, 0.95, 0.99):
        found = theirs.predict_int(test_mean, sigmas=test_std, confidence=level)
        np.testing.assert_allclose(model.intervals(test_mean, test_std, level), found, rtol=1e-12)
