"""Looking at some rows gives what looking at all gives."""

import numpy as np
import pytest

from conformal_gp.conformal.levels import Needed
from conformal_gp.conformal.lines import counts, mirrored, normalised_residual_lines, regions, upper_bounds
from conformal_gp.conformal.screening import Ranking
from conformal_gp.targets.difficulty import Spread

GAMMAS = [1.0, 1.5, 2.0, 3.0, np.inf]


class Problem:
    """Rows of random features with their exact weights in a few predictions.

    ``n_heavy`` rows have weights so large that, for some gamma, regions have holes and rays. With every fourth seed
    scores are divided by a difficulty, and with gamma = 2 measured from a location.
    """

    def __init__(self, seed, n=4000, n_features=5, n_heavy=3, n_tests=6):
        rng = np.random.default_rng(seed)
        self.alpha = rng.standard_normal(n) * (rng.uniform(size=n) < 0.95)
        self.diagonal = rng.uniform(0.3, 2.0, n)
        G = rng.standard_normal((n, n_features)) / np.sqrt(n)
        G[rng.choice(n, n_heavy, replace=False)] *= 40.0
        W = rng.standard_normal((n_tests, n_features)) * rng.uniform(0.1, 1.0, (n_tests, 1))
        self.weights = W @ G.T
        self.bound, self.size = np.linalg.norm(G, axis=1), np.linalg.norm(W, axis=1)
        self.mean = rng.standard_normal(n_tests)
        self.variance = rng.uniform(0.5, 2.0, n_tests)
        self._spreads = Spread.usual(n), Spread.usual(n_tests)
        if seed % 4 == 3:
            self._spreads = tuple(Spread(4.0 * rng.standard_normal(k), rng.uniform(0.3, 3.0, k)) for k in (n, n_tests))

    def spreads(self, gamma):
        """Location and scale of the calibration rows, and of the test rows."""
        if gamma == 2.0:
            return self._spreads
        return tuple(Spread(np.zeros(spread.scale.size), spread.scale) for spread in self._spreads)

    def ranking(self, gamma, sign=0):
        self.spread = self.spreads(gamma)[1]
        return Ranking(self.alpha, self.diagonal, self.bound, gamma, self.spreads(gamma)[0], sign)

    def lines(self, gamma, j, rows=slice(None)):
        weights = self.weights[[j]][:, rows]
        chosen = self.mean[[j]], self.variance[[j]]
        lines = normalised_residual_lines(self.alpha[rows], self.diagonal[rows], weights, *chosen, gamma)
        calibration, test = self.spreads(gamma)
        return lines.normalised(calibration.take(rows), test.take([j]), self.variance[[j]])

    def needed(self, ranking, rank, by_weight):
        """What labels of the region need, with weights of 1 or others, and windows of rows that decide."""
        needed, rng = Needed.of_ranks([rank]), np.random.default_rng(rank)
        if by_weight:
            weights = rng.exponential(size=self.alpha.size) * (rng.uniform(size=self.alpha.size) < 0.7)
            least = rank / self.alpha.size * weights.sum() * rng.uniform(0.5, 1.5, (self.mean.size, 1))
            needed = Needed(np.minimum(least, 0.999 * weights.sum()), weights)
        weighed, least = ranking.weighed(needed.weights), needed.by_row(self.mean.size)[:, 0]
        return needed, weighed, ranking.for_level(least, weighed, self.variance, self.size, self.spread)

    def windows(self, ranking, rank, size):
        least = np.full(self.mean.size, rank - 0.5)
        return ranking.for_level(least, ranking.weighed(None), self.variance, size * self.size, self.spread)

    def looked_at(self, ranking, windows, j):
        return np.concatenate([ranking.high_leverage, ranking.low_leverage[windows.start[j] : windows.stop[j]]])


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("rank", [1, 40, 2000, 4000])
@pytest.mark.parametrize("by_weight", [False, True])
def test_regions_are_those_of_all_rows(rank, gamma, by_weight):
    several = 0
    for seed in range(4):
        problem = Problem(seed)
        ranking = problem.ranking(gamma)
        needed, weighed, windows = problem.needed(ranking, rank, by_weight)
        for j in range(problem.mean.size):
            own = needed.take([j])
            (expected,) = regions(problem.lines(gamma, j), own)
            rows = problem.looked_at(ranking, windows, j)
            (found,) = regions(problem.lines(gamma, j, rows), own.among(rows, weighed.before[windows.start[j]], [0]))
            np.testing.assert_allclose(found, expected, rtol=1e-12)
            several += len(expected) > 1
    if gamma == 1.0 and rank == 1:
        assert several > 0  # holes were among them


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("signed", [False, True])
def test_counts_are_those_of_all_rows(gamma, signed):
    for seed in range(4):
        problem = Problem(seed)
        ranking = problem.ranking(gamma, sign=int(signed))
        for shift in (-3.0, -0.2, -1e-9, 0.0, 0.01, 1.0, 30.0):
            y = problem.mean + shift
            windows = ranking.for_label(y, problem.mean, problem.variance, problem.size, problem.spread)
            for j in range(y.size):
                rows = problem.looked_at(ranking, windows, j)
                found = np.array(counts(problem.lines(gamma, j, rows), y[[j]], signed)) + windows.start[j]
                np.testing.assert_array_equal(found, counts(problem.lines(gamma, j), y[[j]], signed))


def test_few_rows_are_looked_at():
    problem = Problem(0, n=100_000, n_heavy=5)
    ranking = problem.ranking(2.0)
    assert 5 <= ranking.high_leverage.size < 300
    for rank in (10_000, 1000):
        windows = problem.windows(ranking, rank, 0.1)
        assert (windows.stop - windows.start).max() < 1000


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("rank", [1, 3, 2000, 3701])
@pytest.mark.parametrize("by_weight", [False, True])
def test_one_sided_bounds_are_those_of_all_rows(rank, sign, gamma, by_weight):
    problem = Problem(seed=rank)
    ranking = problem.ranking(gamma, sign)
    needed, weighed, windows = problem.needed(ranking, rank, by_weight)
    turned = mirrored if sign < 0 else lambda lines: lines
    for j in range(problem.mean.size):
        rows, own = problem.looked_at(ranking, windows, j), needed.take([j])
        expected = upper_bounds(turned(problem.lines(gamma, j)), own)
        own = own.among(rows, weighed.before[windows.start[j]], [0])
        np.testing.assert_allclose(upper_bounds(turned(problem.lines(gamma, j, rows)), own), expected, rtol=1e-12)


def test_signed_windows_leave_most_rows_out():
    problem = Problem(seed=3, n_heavy=0)
    ranking = problem.ranking(2.0, sign=1)
    for rank in (40, 2000, 3960):
        windows = problem.windows(ranking, rank, 0.1)
        assert (windows.stop - windows.start).max() < 1200
