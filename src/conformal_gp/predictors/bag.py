r"""Candidates for the hyperparameters on the training rows, and which of them a new label selects.

Candidate g has covariance :math:`a (K_g + \rho_g I)` with the amplitude a profiled out. By the block form of the
inverse, adding a test row with label y to the l training rows turns its restricted likelihood, to the power
:math:`-2 / \nu` with :math:`\nu = l + 1 - p`, into

.. math:: c_g \left( Q_g + (y - \mu_g)^2 / s_g \right), \qquad c_g = (D_g s_g)^{1 / \nu},

a parabola in y: Q is the training rows' quadratic form, D the determinant of their restricted likelihood, and
:math:`\mu_g, s_g` the mean and variance of the test row's label. Of two candidates the one whose parabola is lower is
the likelier. A candidate's handicap of h nats, which makes its likelihood count less, multiplies D by
:math:`e^{2 h}`.

Weights and lines are needed only for candidates that are in use where their own region can be. At :math:`\gamma = 2`
the region of g ends within :math:`\sqrt{s_g}\, \beta_g` of :math:`\mu_g`, where :math:`\beta_g` is the k-th largest
:math:`(|\alpha_i| / P_{ii}) (\sqrt{P_{ii}} + 2 \sqrt{1/\rho_g - P_{ii}})`: an end is
:math:`|\alpha_i| (d_i + |v_i|) / P_{ii}` with :math:`d_i^2 = s_g P_{ii} + v_i^2`, and :math:`v_i^2 \le s_g (1/\rho_g -
P_{ii})` because no leave-one-out variance in the bag is below the noise. Stretches outside are left out, and the result
is exactly the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.conformal.lines import Lines, normalised_residual_lines
from conformal_gp.conformal.pvalues import counts, shares
from conformal_gp.conformal.regions import hulls, regions
from conformal_gp.gp.inputs import Inputs, NewInputs
from conformal_gp.gp.spectral import Moments, SpectralPosterior

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# A score, in units of the test row's, that no label is so far out as to reach.
BEYOND = 1e200


class Use(NamedTuple):
    """A candidate: the numbers of its kernel and of its noise variance."""

    kernel: int
    noise: int


class Stretch(NamedTuple):
    """Labels between two ends, all of which select the same candidate."""

    low: float
    high: float
    use: Use
    first: tuple[int, ...] = ()
    """Ranked rows whose scores count as larger than the test row's, whatever the candidate says."""


class Choice(NamedTuple):
    """The candidate that is best on the training rows by themselves, which plain predictions use."""

    kernel: Kernel
    noise_variance: float
    amplitude: float
    coefficients: Array
    log_likelihood: float


class Parabolas(NamedTuple):
    """Criteria ``base + curvature (y - vertex)²`` of G candidates at m new rows, (G, m) each."""

    base: Array
    curvature: Array
    vertex: Array


def parabolas(quadratic: Array, log_determinant: Array, degrees: int, mean: Array, variance: Array) -> Parabolas:
    """Criteria of candidates, from ``quadratic`` and ``log_determinant`` (G,) and moments (G, m); ν is ``degrees``."""
    log_c = (log_determinant[:, None] + np.log(variance)) / degrees
    c = np.exp(log_c - log_c.min(axis=0, initial=np.inf))  # a common factor leaves their order as it is
    return Parabolas(c * quadratic[:, None], c / variance, mean)


class Selection(ABC):
    """Which candidates are in use at which labels, for a block of new rows."""

    @abstractmethod
    def stretches(self) -> list[list[Stretch]]:
        """For every new row, from left to right; the test row's score is the largest at labels that are left out."""

    @abstractmethod
    def at(self, y: Array) -> list[Stretch | None]:
        """The stretch, as far as it is known, in which label ``y[j]`` of new row j is; None where there is none."""

    @abstractmethod
    def mean_and_variance(self, use: Use, j: int) -> tuple[float, float]:
        """Mean and variance of new row j's label under a candidate."""

    @abstractmethod
    def moments(self, kernel: int, rows: Rows) -> Moments:
        """Means, variances and what weights are made from, for some of the new rows."""


class Bag(ABC):
    """Candidates on the training rows, under one scaling of the inputs.

    Parameters
    ----------
    inputs : Inputs
        Training inputs under the scaling.
    y : ndarray of shape (l,)
        Training labels.
    ranked : ndarray of int or slice
        Rows that are ranked.
    gamma : float
        Root of the variance in the nonconformity measure.
    """

    def __init__(self, inputs: Inputs, y: Array, ranked: Rows | slice, gamma: float):
        self.inputs = inputs
        self._y = y
        self._ranked = ranked
        self._gamma = gamma
        self._degrees = y.size - inputs.H.shape[1]
        self._n_ranked = y.size if isinstance(ranked, slice) else ranked.size
        self._reaches: dict[int, Array] = {}

    @abstractmethod
    def posterior(self, kernel: int) -> SpectralPosterior:
        """The process with a kernel, given the training rows."""

    @property
    @abstractmethod
    def best(self) -> Use:
        """The candidate that the training rows by themselves select."""

    @abstractmethod
    def select(self, new: NewInputs) -> Selection:
        """What new rows select."""

    def choice(self) -> Choice:
        """The candidate that is best on the training rows."""
        kernel, r = self.best
        posterior = self.posterior(kernel)
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
        kernel, r = self.best
        posterior = self.posterior(kernel)
        moments = posterior.moments(new)
        return moments.mean[r], moments.variance[r] * (posterior.quadratic[r] / self._degrees)

    def regions(self, new: NewInputs, ranks: Sequence[int], prune: bool) -> list[list[Array]]:
        """Regions by new row, then by level; ranks are above 0."""
        selection = self.select(new)
        stretches = selection.stretches()
        if prune:
            stretches = [
                [stretch for stretch in row if self.within_reach(selection, j, stretch, min(ranks))]
                for j, row in enumerate(stretches)
            ]
        rows_of: dict[tuple[Use, tuple[int, ...]], list[int]] = defaultdict(list)
        for j, row in enumerate(stretches):
            for known in dict.fromkeys((stretch.use, stretch.first) for stretch in row):
                rows_of[known].append(j)
        region_of = {
            (known, j): region
            for known, rows in rows_of.items()
            for j, region in zip(rows, self._regions_of(*known, selection, np.array(rows), ranks), strict=True)
        }
        return [
            [
                _union([_clip(region_of[(use, first), j][level], low, high) for low, high, use, first in row])
                for level in range(len(ranks))
            ]
            for j, row in enumerate(stretches)
        ]

    def within_reach(self, selection: Selection, j: int, stretch: Stretch, rank: int) -> bool:
        """Whether the candidate's own region can be on a stretch of new row j."""
        mean, variance = selection.mean_and_variance(stretch.use, j)
        reach = np.sqrt(variance) * self._reach(stretch.use, rank - len(stretch.first))
        return bool(stretch.low <= mean + reach and stretch.high >= mean - reach)

    def _reach(self, use: Use, rank: int) -> float:
        """β of the module's text."""
        if rank <= 0:
            return np.inf
        if use.kernel not in self._reaches:
            self._reaches[use.kernel] = self._sorted_reach(self.posterior(use.kernel))
        return float(self._reaches[use.kernel][use.noise, rank - 1])

    def _sorted_reach(self, posterior: SpectralPosterior) -> Array:
        """β for every noise variance and rank, k = 1 first."""
        P = posterior.diagonal[:, self._ranked]
        if self._gamma != 2.0:
            return np.full(P.shape, np.inf)
        leverage = np.sqrt(np.maximum(1.0 / posterior.noise_variances[:, None] - P, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.abs(posterior.alpha[:, self._ranked]) / P * (np.sqrt(P) + 2.0 * leverage)
        reach[P == 0.0] = np.inf  # a row that alone determines a coefficient may cover the whole line
        return (1.0 + 1e-9) * np.sort(reach, axis=1)[:, ::-1]  # a margin for rounding

    def _regions_of(
        self, use: Use, first: tuple[int, ...], selection: Selection, rows: Rows, ranks: Sequence[int]
    ) -> list[list[Array]]:
        """Regions of one candidate alone, by row, then by level."""
        lines = self.lines(use, selection, rows, first)
        if self._gamma == 2.0:  # one interval each: all levels in one selection
            return [[ends[None, :, level] for level in range(len(ranks))] for ends in hulls(lines, ranks)]
        by_level = [regions(lines, rank) for rank in ranks]
        return [list(levels) for levels in zip(*by_level, strict=True)]

    def lines(self, use: Use, selection: Selection, rows: Rows, first: tuple[int, ...] = ()) -> Lines:
        """Lines of the ranked rows under one candidate, for some of the new rows."""
        kernel, r = use
        posterior, moments = self.posterior(kernel), selection.moments(kernel, rows)
        lines = normalised_residual_lines(
            posterior.alpha[r, self._ranked],
            posterior.diagonal[r, self._ranked],
            posterior.weights(moments, r)[:, self._ranked],
            moments.mean[r],
            moments.variance[r],
            self._gamma,
        )
        lines.offset[:, first] = BEYOND
        return lines

    def p_values(self, new: NewInputs, y: Array, tie_breaks: Array | None) -> Array:
        """p-value of one label for each new row, under the candidate that the label selects."""
        selection = self.select(new)
        rows_of: dict[tuple[Use, tuple[int, ...]], list[int]] = defaultdict(list)
        for j, stretch in enumerate(selection.at(y)):
            if stretch is not None:
                rows_of[stretch.use, stretch.first].append(j)
        at_least, greater = np.zeros(y.size, dtype=np.int64), np.zeros(y.size, dtype=np.int64)
        for (use, first), members in rows_of.items():
            rows = np.array(members)
            at_least[rows], greater[rows] = counts(self.lines(use, selection, rows, first), y[rows])
        return shares(at_least, greater, self._n_ranked, tie_breaks)


def _clip(region: Array, low: float, high: float) -> Array:
    """Part of a region between two labels."""
    clipped = np.clip(region, low, high)
    return clipped[(region[:, 0] <= high) & (region[:, 1] >= low)]


def _union(parts: list[Array]) -> Array:
    """Union of closed intervals that come from left to right: those that touch become one."""
    pieces = np.concatenate([np.empty((0, 2)), *parts])
    if pieces.shape[0] == 0:
        return pieces
    merged = [pieces[0].copy()]
    for piece in pieces[1:]:
        if piece[0] <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], piece[1])
        else:
            merged.append(piece.copy())
    return np.array(merged)
