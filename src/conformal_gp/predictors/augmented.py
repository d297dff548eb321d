r"""Hyperparameters chosen inside the bag: anew for every candidate label, from a finite set.

Candidate g has covariance :math:`a (K_g + \rho_g I)` with the amplitude a profiled out. By the block form of the
inverse, adding a test row with label y to the l training rows turns its restricted likelihood, to the power
:math:`-2 / \nu` with :math:`\nu = l + 1 - p`, into

.. math:: c_g \left( Q_g + (y - \mu_g)^2 / s_g \right), \qquad c_g = (D_g s_g)^{1 / \nu},

a parabola in y: Q is the training rows' quadratic form, D the determinant of their restricted likelihood, and
:math:`\mu_g, s_g` the mean and variance of the test row's label. The candidate in use at y is the one whose parabola is
lowest. A candidate's handicap of h nats, which makes its likelihood count less, multiplies D by :math:`e^{2 h}`.

Weights and lines are needed only for candidates that are in use where their own region can be. At :math:`\gamma = 2`
the region of g ends within :math:`\sqrt{s_g}\, \beta_g` of :math:`\mu_g`, where :math:`\beta_g` is the k-th largest
:math:`(|\alpha_i| / P_{ii}) (\sqrt{P_{ii}} + 2 \sqrt{1/\rho_g - P_{ii}})`: an end is
:math:`|\alpha_i| (d_i + |v_i|) / P_{ii}` with :math:`d_i^2 = s_g P_{ii} + v_i^2`, and :math:`v_i^2 \le s_g (1/\rho_g -
P_{ii})` because no leave-one-out variance in the bag is below the noise. Stretches outside are left out, and the result
is exactly the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.conformal.envelope import lower_envelope, select
from conformal_gp.conformal.lines import Lines, normalised_residual_lines
from conformal_gp.conformal.pvalues import p_values
from conformal_gp.conformal.regions import hulls, regions
from conformal_gp.gp.candidates import Candidate
from conformal_gp.gp.inputs import Inputs, NewInputs
from conformal_gp.gp.scaling import Scaling, SymmetricScaling
from conformal_gp.gp.spectral import Moments, SpectralPosterior
from conformal_gp.gp.threads import map_threads
from conformal_gp.predictors.base import Predictor

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Scalings that only some test rows have, kept for the next call.
KEPT_SCALINGS = 3


class KernelGroup(NamedTuple):
    """Candidates that share a kernel."""

    kernel: Kernel
    noise_variances: Array
    handicaps: Array


class Choice(NamedTuple):
    """The candidate that is best on the training rows by themselves, which plain predictions use."""

    kernel: Kernel
    noise_variance: float
    amplitude: float
    coefficients: Array
    log_likelihood: float


class Bag:
    """All candidates on the training rows, under one scaling of the inputs.

    Candidates that share a kernel share its eigendecomposition. They are numbered kernel by kernel.
    """

    def __init__(
        self,
        by_kernel: Sequence[KernelGroup],
        X: Array,
        y: Array,
        scaling: Scaling,
        mean: str,
        ranked: Rows | slice,
        gamma: float,
        n_jobs: int | None,
    ):
        self.inputs = Inputs(X, scaling, mean)
        self._ranked = ranked
        self._gamma = gamma
        self.inputs.pairs.squared_distances  # noqa: B018 (shared by all kernels: computed before the threads start)
        self.posteriors = list(
            map_threads(
                lambda group: SpectralPosterior(group.kernel, group.noise_variances, self.inputs, y), by_kernel, n_jobs
            )
        )
        self._owner = [(i, r) for i, posterior in enumerate(self.posteriors) for r in range(posterior.alpha.shape[0])]
        self._quadratic = np.concatenate([p.quadratic for p in self.posteriors])
        handicap = np.concatenate([group.handicaps for group in by_kernel])
        self._log_determinant = np.concatenate([p.log_determinant for p in self.posteriors]) + 2.0 * handicap
        self._degrees = self.posteriors[0].degrees_of_freedom
        with np.errstate(divide="ignore"):
            self.best = int(np.argmin(self._degrees * np.log(self._quadratic) + self._log_determinant))
        self._reach = np.concatenate([self._sorted_reach(p) for p in self.posteriors])

    def _sorted_reach(self, posterior: SpectralPosterior) -> Array:
        """β of the module's text for every rank, k = 1 first."""
        P = posterior.diagonal[:, self._ranked]
        if self._gamma != 2.0:
            return np.full(P.shape, np.inf)
        leverage = np.sqrt(np.maximum(1.0 / posterior.noise_variances[:, None] - P, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.abs(posterior.alpha[:, self._ranked]) / P * (np.sqrt(P) + 2.0 * leverage)
        reach[P == 0.0] = np.inf  # a row that alone determines a coefficient may cover the whole line
        return (1.0 + 1e-9) * np.sort(reach, axis=1)[:, ::-1]  # a margin for rounding

    def choice(self) -> Choice:
        """The candidate that is best on the training rows."""
        i, r = self._owner[self.best]
        posterior = self.posteriors[i]
        nu = self._degrees
        amplitude = float(posterior.quadratic[r]) / nu
        with np.errstate(divide="ignore"):
            profile = nu * (1.0 + np.log(2.0 * np.pi * amplitude)) + posterior.log_determinant[r]
        coefficients = self.inputs.coefficients(posterior.coefficients[r])
        return Choice(
            posterior.kernel, float(posterior.noise_variances[r]), amplitude, coefficients, -0.5 * float(profile)
        )

    def plain(self, new: NewInputs) -> tuple[Array, Array]:
        """Mean and variance under the best candidate, in units of the labels."""
        i, r = self._owner[self.best]
        moments = self.posteriors[i].moments(new)
        return moments.mean[r], moments.variance[r] * (self._quadratic[self.best] / self._degrees)

    def moments(self, new: NewInputs) -> list[Moments]:
        """Means and variances of new labels, kernel by kernel."""
        new.pairs.squared_distances  # noqa: B018 (shared by all kernels)
        return [posterior.moments(new) for posterior in self.posteriors]

    def parabolas(self, moments: list[Moments]) -> tuple[Array, Array, Array]:
        """Base, curvature and vertex of every candidate at every new row, (G, m)."""
        mean = np.concatenate([part.mean for part in moments])
        variance = np.concatenate([part.variance for part in moments])
        log_c = (self._log_determinant[:, None] + np.log(variance)) / (self._degrees + 1)
        c = np.exp(log_c - log_c.min(axis=0, initial=np.inf))  # a common factor leaves the envelope as it is
        return c * self._quadratic[:, None], c / variance, mean

    def lines(self, g: int, moments: list[Moments], rows: Rows) -> Lines:
        """Lines of the ranked rows under candidate g, for some of the new rows."""
        i, r = self._owner[g]
        posterior, part = self.posteriors[i], moments[i]
        return normalised_residual_lines(
            posterior.alpha[r, self._ranked],
            posterior.diagonal[r, self._ranked],
            posterior.weights(part, r, rows)[:, self._ranked],
            part.mean[r, rows],
            part.variance[r, rows],
            self._gamma,
        )

    def regions(self, new: NewInputs, ranks: Sequence[int], prune: bool) -> list[list[Array]]:
        """Regions by new row, then by level; ranks are above 0."""
        moments = self.moments(new)
        base, curvature, vertex = self.parabolas(moments)
        deviation = np.sqrt(np.concatenate([part.variance for part in moments]))
        reach = deviation * self._reach[:, min(ranks) - 1, None] if prune else np.full(base.shape, np.inf)
        stretches = []
        in_use: dict[int, list[int]] = {}
        for j in range(base.shape[1]):
            envelope = lower_envelope(base[:, j], curvature[:, j], vertex[:, j])
            kept = [
                (low, high, g)
                for low, high, g in zip(envelope.breaks[:-1], envelope.breaks[1:], envelope.owner.tolist(), strict=True)
                if low <= vertex[g, j] + reach[g, j] and high >= vertex[g, j] - reach[g, j]
            ]
            stretches.append(kept)
            for g in {g for _, _, g in kept}:
                in_use.setdefault(g, []).append(j)
        region_of = {
            (g, j): region
            for g, rows in in_use.items()
            for j, region in zip(rows, self._regions_of(g, moments, np.array(rows), ranks), strict=True)
        }
        return [
            [_union([_clip(region_of[g, j][level], low, high) for low, high, g in kept]) for level in range(len(ranks))]
            for j, kept in enumerate(stretches)
        ]

    def _regions_of(self, g: int, moments: list[Moments], rows: Rows, ranks: Sequence[int]) -> list[list[Array]]:
        """Regions of candidate g alone, by row, then by level."""
        lines = self.lines(g, moments, rows)
        if self._gamma == 2.0:  # one interval each: all levels in one selection
            return [[ends[None, :, level] for level in range(len(ranks))] for ends in hulls(lines, ranks)]
        by_level = [regions(lines, rank) for rank in ranks]
        return [list(levels) for levels in zip(*by_level, strict=True)]

    def p_values(self, new: NewInputs, y: Array, tie_breaks: Array | None) -> Array:
        """p-value of one label for each new row, under the candidate that the label selects."""
        moments = self.moments(new)
        chosen = select(*self.parabolas(moments), y)
        p = np.empty(y.size)
        for g in np.unique(chosen):
            rows = np.flatnonzero(chosen == g)
            ties = None if tie_breaks is None else tie_breaks[rows]
            p[rows] = p_values(self.lines(int(g), moments, rows), y[rows], ties)
        return p


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
        Threads over kernels and over blocks of test rows.
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
        ranked: Rows | None,
        gamma: float,
        n_jobs: int | None,
        prune: bool = True,
    ):
        self._by_kernel = _group(candidates)
        self._X = X
        self._y = y
        self._scaling = scaling
        self._mean = mean
        self._ranked: Rows | slice = slice(None) if ranked is None else ranked
        self._gamma = gamma
        self._prune = prune
        self.n_jobs = n_jobs
        self.n_rows = y.size
        self.n_ranked = y.size if ranked is None else ranked.size
        self._bags: dict[bytes, Bag] = {}
        key = scaling.training_key() if isinstance(scaling, SymmetricScaling) else np.empty(0, dtype=np.int64)
        self._main_key = key.tobytes()
        self.main = self._bag(key)

    def _bag(self, key: Rows) -> Bag:
        """Candidates under the scaling that ``key`` names; the training rows' own is never let go."""
        name = key.tobytes()
        if name not in self._bags:
            others = [known for known in self._bags if known != self._main_key]
            if len(others) >= KEPT_SCALINGS:
                del self._bags[others[0]]
            scaling = self._scaling.scaling(key) if isinstance(self._scaling, SymmetricScaling) else self._scaling
            self._bags[name] = Bag(
                self._by_kernel, self._X, self._y, scaling, self._mean, self._ranked, self._gamma, self.n_jobs
            )
        return self._bags[name]

    def _by_bag(self, X: Array) -> list[tuple[Rows, Bag]]:
        """Test rows grouped by their scaling."""
        if not isinstance(self._scaling, SymmetricScaling):
            return [(np.arange(X.shape[0]), self.main)]
        keys, member = np.unique(self._scaling.keys(X), axis=0, return_inverse=True)
        member = member.ravel()
        return [(np.flatnonzero(member == i), self._bag(key)) for i, key in enumerate(keys)]

    def mean(self, X: Array) -> Array:
        """See Predictor."""
        return self.mean_and_variance(X)[0]

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """See Predictor."""
        blocks = self.map_blocks(lambda rows: self.main.plain(self.main.inputs.new(X[rows])), np.arange(X.shape[0]))
        mean, variance = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return mean, variance

    def hulls(self, X: Array, ranks: Sequence[int]) -> Array:
        """See Predictor."""
        ends = np.empty((X.shape[0], 2, len(ranks)))
        for level, pieces in enumerate(self._regions_by_level(X, ranks)):
            ends[:, 0, level] = [region[0, 0] for region in pieces]
            ends[:, 1, level] = [region[-1, 1] for region in pieces]
        return ends

    def regions(self, X: Array, rank: int) -> list[Array]:
        """See Predictor."""
        return self._regions_by_level(X, [rank])[0]

    def _regions_by_level(self, X: Array, ranks: Sequence[int]) -> list[list[Array]]:
        line = np.array([[-np.inf, np.inf]])
        found: list[list[Array]] = [[line] * X.shape[0] for _ in ranks]
        levels = [level for level, rank in enumerate(ranks) if rank > 0]
        wanted = [ranks[level] for level in levels]

        def fill(bag: Bag, rows: Rows) -> None:
            rows, new = _determined(bag, X, rows)
            for row, by_level in zip(rows, bag.regions(new, wanted, self._prune), strict=True):
                for level, region in zip(levels, by_level, strict=True):
                    found[level][row] = region

        if levels:
            for members, bag in self._by_bag(X):
                self.map_blocks(partial(fill, bag), members)
        return found

    def p_values(self, X: Array, y: Array, tie_breaks: Array | None) -> Array:
        """See Predictor."""
        p = np.ones(y.size) if tie_breaks is None else tie_breaks.copy()  # where all rows tie

        def fill(bag: Bag, rows: Rows) -> None:
            rows, new = _determined(bag, X, rows)
            p[rows] = bag.p_values(new, y[rows], None if tie_breaks is None else tie_breaks[rows])

        for members, bag in self._by_bag(X):
            self.map_blocks(partial(fill, bag), members)
        return p


def _group(candidates: Sequence[Candidate]) -> list[KernelGroup]:
    """Kernels, each with the noise variances that come with it."""
    kernels: list[Kernel] = []
    members: list[list[Candidate]] = []
    for candidate in candidates:
        if candidate.kernel not in kernels:
            kernels.append(candidate.kernel)
            members.append([])
        members[kernels.index(candidate.kernel)].append(candidate)
    return [
        KernelGroup(kernel, np.array([c.noise_variance for c in group]), np.array([c.handicap for c in group]))
        for kernel, group in zip(kernels, members, strict=True)
    ]


def _determined(bag: Bag, X: Array, rows: Rows) -> tuple[Rows, NewInputs]:
    """Those rows whose mean the training rows determine; of the others' labels nothing is known."""
    new = bag.inputs.new(X[rows])
    if not new.undetermined.any():
        return rows, new
    return rows[~new.undetermined], new.take(np.flatnonzero(~new.undetermined))


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
