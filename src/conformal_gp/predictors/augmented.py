r"""Hyperparameters chosen inside the bag: anew for every candidate label, from a finite set.

Candidate g has covariance :math:`a (K_g + \rho_g I)` with the amplitude a profiled out. By the block form of the
inverse, adding a test row with label y to the l training rows turns its restricted likelihood, to the power
:math:`-2 / \nu` with :math:`\nu = l + 1 - p`, into

.. math:: c_g \left( Q_g + (y - \mu_g)^2 / s_g \right), \qquad c_g = (D_g s_g)^{1 / \nu},

a parabola in y: Q is the training rows' quadratic form, D the determinant of their restricted likelihood, and
:math:`\mu_g, s_g` the mean and variance of the test row's label. The candidate in use at y is the one whose parabola is
lowest.

Most candidates are never in use where it matters, and a bound finds them at the price of their means. With h the
candidate that is best on the training rows:

- :math:`s_g \ge \rho_g`, so the parabola of g is nowhere below :math:`(D_g \rho_g)^{1/\nu} Q_g`. Candidate g can be in
  use only where that of h is above this: farther than some :math:`r_g` from :math:`\mu_h`.
- At :math:`\gamma = 2` the region of g ends within :math:`\sqrt{s_g}\, \beta_g` of :math:`\mu_g`, where
  :math:`\beta_g` is the k-th largest :math:`(|\alpha_i| / P_{ii}) (\sqrt{P_{ii}} + 2 \sqrt{1/\rho_g - P_{ii}})`,
  because :math:`v_i^2 \le s_g (1/\rho_g - P_{ii})`: no leave-one-out variance in the bag is below the noise. So it ends
  within some :math:`R_g` of :math:`\mu_h`.

Keep h, every g with :math:`r_g < R_g`, and every g with :math:`r_g` below the largest R of those kept. What is left out
is not in use at any label inside the region of a kept candidate, nor inside its own region: the result is exactly the
same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from conformal_gp.conformal.envelope import lower_envelope, select
from conformal_gp.conformal.lines import Lines
from conformal_gp.conformal.pvalues import p_values
from conformal_gp.conformal.regions import hulls, regions
from conformal_gp.gp.candidates import Candidate
from conformal_gp.gp.inputs import Inputs, NewInputs
from conformal_gp.gp.posterior import Posterior, Prediction
from conformal_gp.gp.scaling import Scaling, SymmetricScaling
from conformal_gp.gp.threads import map_threads
from conformal_gp.predictors.base import Predictor
from conformal_gp.predictors.single import lines_of

Array = NDArray[np.float64]

# Factors of a bag kept in memory, in bytes, and how much less likely on the training rows than the best a candidate may
# be to keep its own. Other factors are made anew in the rare case that a test row needs them.
FACTOR_MEMORY = 2**29
FACTOR_NATS = 40.0
# Scalings that only some test rows have, kept for the next call.
KEPT_SCALINGS = 3


class Bag:
    """All candidates on the training rows, under one scaling of the inputs."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        X: Array,
        y: Array,
        scaling: Scaling,
        mean: str,
        ranked: NDArray[np.int64] | slice,
        gamma: float,
        n_jobs: int | None,
    ):
        self.inputs = Inputs(X, scaling, mean)
        self._ranked = ranked
        self._gamma = gamma
        self.inputs.pairs.squared_distances  # noqa: B018 (shared by all candidates: computed before the threads start)
        best = np.inf

        def condition(candidate: Candidate) -> Posterior:
            nonlocal best
            posterior = Posterior(*candidate, self.inputs, y, flat_prior=True)
            best = min(best, _deviance(posterior))
            if _deviance(posterior) > best + 2.0 * FACTOR_NATS:
                posterior.release()
            return posterior

        self.posteriors = list(map_threads(condition, candidates, n_jobs))
        deviance = np.array([_deviance(p) for p in self.posteriors])
        self.best = int(np.argmin(deviance))
        for place, g in enumerate(np.argsort(deviance)):
            if 8 * y.size**2 * (place + 1) > FACTOR_MEMORY or deviance[g] > deviance.min() + 2.0 * FACTOR_NATS:
                self.posteriors[g].release()
        self.log_determinant = np.array([p.log_determinant for p in self.posteriors])
        self.quadratic = np.array([p.quadratic for p in self.posteriors])
        self.noise = np.array([p.noise_variance for p in self.posteriors])
        self._nu = self.posteriors[0].degrees_of_freedom + 1
        self._log_scale = self.log_determinant.min() / self._nu  # a common factor of all parabolas, against overflow
        self._reach = np.array([self._sorted_reach(p) for p in self.posteriors])

    def _sorted_reach(self, posterior: Posterior) -> Array:
        """β of the module's text for every rank, k = 1 first."""
        if posterior.noise_variance == 0.0 or self._gamma != 2.0:
            return np.full(posterior.alpha[self._ranked].size, np.inf)
        alpha, P = posterior.alpha[self._ranked], posterior.diagonal[self._ranked]
        leverage = np.maximum(1.0 / posterior.noise_variance - P, 0.0)
        return np.sort(np.abs(alpha) / P * (np.sqrt(P) + 2.0 * np.sqrt(leverage)))[::-1]

    def parabola(self, g: int, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        """Base, curvature and vertex of candidate g at test rows with this mean and variance."""
        c = np.exp((self.log_determinant[g] + np.log(variance)) / self._nu - self._log_scale)
        return c * self.quadratic[g], c / variance, mean

    def _floor(self) -> Array:
        """What each candidate's parabola is nowhere below, for any test row."""
        return self.quadratic * np.exp((self.log_determinant + np.log(self.noise)) / self._nu - self._log_scale)

    def eligible(self, new: NewInputs, y: Array) -> NDArray[np.bool_]:
        """Which candidates (G, m) may be in use at the label ``y[j]`` of test row j."""
        reference = self.posteriors[self.best].predict(new)
        base, curvature, vertex = self.parabola(self.best, reference.mean, reference.variance)
        eligible = self._floor()[:, None] <= base + curvature * (y - vertex) ** 2
        eligible[self.best] = True
        return eligible

    def needed(self, new: NewInputs, rank: int) -> NDArray[np.bool_]:
        """Which candidates (G, m) can matter to regions of this rank or more, by the bound of the module's text."""
        n_candidates, m = len(self.posteriors), new.H.shape[0]
        if rank == 0 or np.isinf(self._reach[:, rank - 1]).any():
            return np.ones((n_candidates, m), dtype=bool)
        reference = self.posteriors[self.best].predict(new)
        base, curvature, _ = self.parabola(self.best, reference.mean, reference.variance)
        unused = np.sqrt(np.maximum(self._floor()[:, None] - base, 0.0) / curvature)  # r
        reach = np.empty((n_candidates, m))  # R
        for g, posterior in enumerate(self.posteriors):
            mean, bound = posterior.mean_and_variance_bound(new)
            reach[g] = np.abs(mean - reference.mean) + np.sqrt(bound) * self._reach[g, rank - 1]
        needed = unused < reach
        needed[self.best] = True
        while True:
            farthest = np.where(needed, reach, 0.0).max(axis=0)
            grown = needed | (unused < farthest)
            if (grown == needed).all():
                return needed
            needed = grown

    def predictions(self, new: NewInputs, needed: NDArray[np.bool_]) -> dict[int, tuple[NDArray[np.int64], Prediction]]:
        """For each candidate that any test row needs: those test rows, and its predictions for them."""
        found = {}
        for g in np.flatnonzero(needed.any(axis=1)):
            rows = np.flatnonzero(needed[g])
            found[int(g)] = rows, self.posteriors[g].predict(new if rows.size == needed.shape[1] else new.take(rows))
        return found


class AugmentedPredictor(Predictor):
    """Full conformal prediction with hyperparameters chosen inside the bag.

    Parameters
    ----------
    candidates : sequence of Candidate
        The finite set; it may not depend on the ranked rows.
    X : ndarray of shape (l, d)
        Training inputs, unscaled.
    y : ndarray of shape (l,)
        Training labels.
    scaling : SymmetricScaling or Scaling
        Symmetric in the bag, or fixed beforehand.
    mean : {"zero", "constant", "linear"}
        Mean function; its coefficients have a flat prior.
    ranked : ndarray of int, or None
        Rows that are ranked; None ranks all.
    gamma : float
        Root of the variance in the nonconformity measure.
    n_jobs : int or None
        Threads over candidates.
    prune : bool, default=True
        Whether to leave out candidates that cannot matter; the result is the same.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        X: Array,
        y: Array,
        scaling: SymmetricScaling | Scaling,
        mean: str,
        ranked: NDArray[np.int64] | None,
        gamma: float,
        n_jobs: int | None,
        prune: bool = True,
    ):
        self._candidates = candidates
        self._X = X
        self._y = y
        self._scaling = scaling
        self._mean = mean
        self._ranked: NDArray[np.int64] | slice = slice(None) if ranked is None else ranked
        self._gamma = gamma
        self.n_jobs = n_jobs
        self._prune = prune
        self.n_rows = y.size
        self.n_ranked = y.size if ranked is None else ranked.size
        self._bags: dict[bytes, Bag] = {}
        key = scaling.training_key() if isinstance(scaling, SymmetricScaling) else np.empty(0, dtype=np.int64)
        self._main_key = key.tobytes()
        self.main = self._bag(key)

    def _bag(self, key: NDArray[np.int64]) -> Bag:
        """Candidates under the scaling that ``key`` names; the training rows' own is never let go."""
        name = key.tobytes()
        if name not in self._bags:
            others = [known for known in self._bags if known != self._main_key]
            if len(others) >= KEPT_SCALINGS:
                del self._bags[others[0]]
            scaling = self._scaling.scaling(key) if isinstance(self._scaling, SymmetricScaling) else self._scaling
            self._bags[name] = Bag(
                self._candidates, self._X, self._y, scaling, self._mean, self._ranked, self._gamma, self.n_jobs
            )
        return self._bags[name]

    def _by_bag(self, X: Array) -> list[tuple[NDArray[np.int64], Bag]]:
        """Test rows grouped by their scaling."""
        if not isinstance(self._scaling, SymmetricScaling):
            return [(np.arange(X.shape[0]), self.main)]
        keys, member = np.unique(self._scaling.keys(X), axis=0, return_inverse=True)
        member = member.ravel()
        return [(np.flatnonzero(member == i), self._bag(key)) for i, key in enumerate(keys)]

    @property
    def amplitude(self) -> float:
        """Profiled amplitude of the candidate that is best on the training rows, which plain predictions use."""
        posterior = self.main.posteriors[self.main.best]
        return posterior.quadratic / posterior.degrees_of_freedom

    def mean(self, X: Array) -> Array:
        """See Predictor."""
        return self.main.posteriors[self.main.best].mean(self.main.inputs.new(X))

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """See Predictor."""
        best = self.main.posteriors[self.main.best]
        blocks = self.map_blocks(lambda rows: best.predict(self.main.inputs.new(X[rows]))[1:], np.arange(X.shape[0]))
        mean, variance = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return mean, variance * self.amplitude

    def hulls(self, X: Array, ranks: Sequence[int]) -> Array:
        """See Predictor."""
        ends = np.empty((X.shape[0], 2, len(ranks)))
        for level, pieces in enumerate(self._all_regions(X, ranks)):
            ends[:, 0, level] = [region[0, 0] for region in pieces]
            ends[:, 1, level] = [region[-1, 1] for region in pieces]
        return ends

    def regions(self, X: Array, rank: int) -> list[Array]:
        """See Predictor."""
        return self._all_regions(X, [rank])[0]

    def _all_regions(self, X: Array, ranks: Sequence[int]) -> list[list[Array]]:
        """Regions by level, then by test row."""
        line = np.array([[-np.inf, np.inf]])
        found: list[list[Array]] = [[line] * X.shape[0] for _ in ranks]
        levels = [level for level, rank in enumerate(ranks) if rank > 0]
        if not levels:
            return found
        wanted = [ranks[level] for level in levels]

        def fill(bag: Bag, rows: NDArray[np.int64]) -> None:
            new = bag.inputs.new(X[rows])
            determined = np.flatnonzero(~new.undetermined)
            regions_of_bag = self._bag_regions(bag, new.take(determined), wanted)
            for row, by_level in zip(rows[determined], regions_of_bag, strict=True):
                for level, region in zip(levels, by_level, strict=True):
                    found[level][row] = region

        for members, bag in self._by_bag(X):
            self.map_blocks(partial(fill, bag), members)
        return found

    def _bag_regions(self, bag: Bag, new: NewInputs, ranks: Sequence[int]) -> list[list[Array]]:
        """Regions by test row, then by level, for ranks above 0."""
        m = new.H.shape[0]
        needed = bag.needed(new, min(ranks)) if self._prune else np.ones((len(bag.posteriors), m), dtype=bool)
        predictions = bag.predictions(new, needed)
        base, curvature, vertex = (np.full(needed.shape, np.nan) for _ in range(3))
        for g, (rows, block) in predictions.items():
            base[g, rows], curvature[g, rows], vertex[g, rows] = bag.parabola(g, block.mean, block.variance)
        stretches: list[list[tuple[float, float, int]]] = []
        for j in range(m):
            members = np.flatnonzero(needed[:, j])
            envelope = lower_envelope(base[members, j], curvature[members, j], vertex[members, j])
            owners = members[envelope.owner]
            stretches.append(list(zip(envelope.breaks[:-1], envelope.breaks[1:], owners.tolist(), strict=True)))
        in_use: dict[int, list[int]] = {}
        for j, pieces in enumerate(stretches):
            for g in {owner for _, _, owner in pieces}:
                in_use.setdefault(g, []).append(j)
        region_of = {
            (g, j): region
            for g, users in in_use.items()
            for j, region in zip(users, self._candidate_regions(bag, g, users, predictions[g], ranks), strict=True)
        }
        return [
            [
                _union([_clip(region_of[g, j][level], low, high) for low, high, g in stretches[j]])
                for level in range(len(ranks))
            ]
            for j in range(m)
        ]

    def _candidate_regions(
        self,
        bag: Bag,
        g: int,
        users: list[int],
        prediction: tuple[NDArray[np.int64], Prediction],
        ranks: Sequence[int],
    ) -> list[list[Array]]:
        """Regions of candidate g alone, by test row, then by level."""
        lines = self._candidate_lines(bag, g, np.array(users), prediction)
        if self._gamma == 2.0:  # one interval each: all levels in one selection
            return [[ends[None, :, level] for level in range(len(ranks))] for ends in hulls(lines, ranks)]
        by_level = [regions(lines, rank) for rank in ranks]
        return [list(levels) for levels in zip(*by_level, strict=True)]

    def p_values(self, X: Array, y: Array, tie_breaks: Array | None) -> Array:
        """See Predictor."""
        p = np.ones(y.size)

        def fill(bag: Bag, rows: NDArray[np.int64]) -> None:
            new = bag.inputs.new(X[rows])
            determined = np.flatnonzero(~new.undetermined)
            rows = rows[determined]
            p[rows] = self._bag_p_values(
                bag, new.take(determined), y[rows], None if tie_breaks is None else tie_breaks[rows]
            )

        for members, bag in self._by_bag(X):
            self.map_blocks(partial(fill, bag), members)
        return p

    def _bag_p_values(self, bag: Bag, new: NewInputs, y: Array, tie_breaks: Array | None) -> Array:
        predictions = bag.predictions(new, bag.eligible(new, y))
        base, curvature, vertex = np.full((3, len(bag.posteriors), y.size), np.inf)
        for g, (rows, block) in predictions.items():
            base[g, rows], curvature[g, rows], vertex[g, rows] = bag.parabola(g, block.mean, block.variance)
        chosen = select(base, curvature, vertex, y)
        p = np.empty(y.size)
        for g in np.unique(chosen):
            users = np.flatnonzero(chosen == g)
            lines = self._candidate_lines(bag, int(g), users, predictions[int(g)])
            p[users] = p_values(lines, y[users], None if tie_breaks is None else tie_breaks[users])
        return p

    def _candidate_lines(
        self, bag: Bag, g: int, users: NDArray[np.int64], prediction: tuple[NDArray[np.int64], Prediction]
    ) -> Lines:
        """Lines of candidate g for some of the test rows that it was predicted for."""
        rows, block = prediction
        place = np.searchsorted(rows, users)
        part = Prediction(block.weights[place], block.mean[place], block.variance[place])
        return lines_of(bag.posteriors[g], part, self._ranked, self._gamma)


def _deviance(posterior: Posterior) -> float:
    """Minus twice the restricted log likelihood of the training rows, amplitude profiled out, up to a constant."""
    with np.errstate(divide="ignore"):
        return float(posterior.degrees_of_freedom * np.log(posterior.quadratic) + posterior.log_determinant)


def _clip(region: Array, low: float, high: float) -> Array:
    """Part of a region between two labels."""
    clipped = np.clip(region, low, high)
    return clipped[(region[:, 0] <= high) & (region[:, 1] >= low)]


def _union(parts: list[Array]) -> Array:
    """Union of closed intervals that come from left to right: those that touch become one."""
    pieces = np.concatenate(parts)
    merged = [pieces[0].copy()]
    for piece in pieces[1:]:
        if piece[0] <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], piece[1])
        else:
            merged.append(piece.copy())
    return np.array(merged)
