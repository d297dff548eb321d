r"""Scores as functions of the candidate value, averaged over draws with weights that depend on it.

They are :math:`|e_i|` of equation (4) of docs/theory_averaging.md, or :math:`e_i` itself for signed scores.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import NamedTuple

import numpy as np

from conformal_gp.arrays import Array, Indices, Mask
from conformal_gp.targets.transformation import LARGEST_LOG, SMALLEST_LOG, inverse_power, power

LARGEST_LABEL = 1e100
# The least standard deviation of a new target, as labels are given, relative to their size: ends are then apart.
ROUNDING = 1e-10


class Signs(NamedTuple):
    """What is known of the signs of the targets, for the rule on targets that are not positive.

    If at most one row of the augmented set is not positive, its score is infinite; else, if at most one row is
    negative, its score is infinite. With signed scores, it is minus infinity.
    """

    zero: float
    """The label 0, as labels are given; minus infinity where they are given as logarithms."""
    y: Array
    """(n,): targets of the calibration rows, as labels are given."""
    others: tuple[int, int]
    """How many of the other training rows are at most 0, and below 0."""

    def outside(self, labels: Array) -> tuple[Mask, Mask]:
        """Whether the score of the test row, (...), and of each row, (..., n), is infinite at some labels."""
        at_most = self.others[0] + (self.y <= self.zero).sum() + (labels <= self.zero)
        below = self.others[1] + (self.y < self.zero).sum() + (labels < self.zero)
        first, second = at_most <= 1, below <= 1
        own = np.where(first, labels <= self.zero, second & (labels < self.zero))
        rows = np.where(first[..., None], self.y <= self.zero, second[..., None] & (self.y < self.zero))
        return own, rows


class Draws(NamedTuple):
    """What the draws say of the training rows, and of m test rows."""

    alpha: Array
    """(M, n): alpha of the calibration rows."""
    diagonal: Array
    """(M, n): inverse leave-one-out variances."""
    quadratic: Array
    """(M,): Q."""
    degrees: int | None
    """Degrees of freedom; None where amplitudes are not integrated out: tau is then 1, and the likelihood Gaussian."""
    log_ratio: Array
    """(M, m): log c, up to a constant."""
    exponent: Array | None
    """(M,): exponents λ of the transformations; labels are then given as logarithms."""
    slope: Array
    """(M,): how the log weight changes with the label's logarithm, besides Q; 0 without transformations."""
    weights: Array
    """(M, n, m): v of the calibration rows."""
    mean: Array
    """(M, m): μ."""
    variance: Array
    """(M, m): s."""


class Curves:
    """Scores of n calibration rows and of the test row, for m test rows, at any labels.

    Labels are also given as *positions*: distances from the centre of the predictive distribution in its standard
    deviations, on the scale of the average exponent where targets are transformed. A search looks at ``landmarks``,
    labels (k,), in any case: targets of few distinct values make narrow pieces there.
    """

    def __init__(self, draws: Draws, signs: Signs | None, landmarks: Array):
        self._draws = draws
        self._signs = signs
        self._landmarks = landmarks
        # below, the test row's score is infinite, whatever is computed
        self._floor = -LARGEST_LABEL if draws.exponent is None else SMALLEST_LOG
        self.n_new = draws.mean.shape[1]
        self.n_calibration = draws.alpha.shape[1]
        self._exponent, self._centre, self._scale = self._location()

    def take(self, rows: Indices) -> Curves:
        """Curves of some of the test rows."""
        if rows.size == self.n_new:
            return self
        other = copy(self)
        other.n_new = rows.size
        of_rows = {name: getattr(self._draws, name)[..., rows] for name in ("log_ratio", "mean", "variance")}
        if "_residuals" in self.__dict__:
            other.__dict__["_residuals"] = self._residuals[rows]
        else:
            of_rows["weights"] = self._draws.weights[..., rows]
        other._draws = self._draws._replace(**of_rows)
        other._centre = self._centre[rows]
        other._scale = self._scale[rows]
        return other

    @cached_property
    def _residuals(self) -> Array:
        """a and b side by side, (m, n, 2 M): scores are products with these."""
        draws = self._draws
        M = draws.quadratic.size
        deviation = np.sqrt(draws.variance).T[:, None, :]
        found = np.empty((self.n_new, draws.alpha.shape[1], 2 * M))
        # a = alpha / sqrt(D) and b = -v / sqrt(s D), with D = P_ii + v^2 / s
        b = np.divide(draws.weights.transpose(2, 1, 0), -deviation, out=found[:, :, M:])
        root = b * b
        root += draws.diagonal.T
        np.sqrt(root, out=root)
        root[root == 0.0] = 1.0  # of rows that alone determine a coefficient of the mean: a and b are 0
        b /= root
        np.divide(draws.alpha.T, root, out=found[:, :, :M])
        return found

    @property
    def lowest(self) -> Array:
        """Position of the least label that can be in a region, (m,); minus infinity if there is none."""
        if self._draws.exponent is not None:
            label = SMALLEST_LOG
        elif self._signs is not None and self._signs.outside(np.array(-np.inf))[0]:
            label = self._signs.zero
        else:
            return np.full(self.n_new, -np.inf)
        return self._positions(np.full((self.n_new, 1), label))[:, 0]

    @property
    def landmarks(self) -> Array:
        """Positions that a search looks at in any case, (m, k): landmarks, and the least label in a region."""
        found = self._positions(np.tile(self._landmarks, (self.n_new, 1)))
        lowest = self.lowest[:, None]
        if np.isfinite(lowest).all():
            found = np.concatenate([found, lowest], axis=1)
        return found

    def _location(self) -> tuple[float, Array, Array]:
        """The average exponent, and mean and standard deviation of the new target on its scale, (m,)."""
        draws = self._draws
        log_weight = draws.log_ratio - 0.5 * np.log(draws.variance)
        scale = np.ones(draws.quadratic.size)
        if draws.degrees is not None:
            log_weight = log_weight - 0.5 * draws.degrees * np.log(draws.quadratic)[:, None]
            scale = draws.quadratic / max(draws.degrees, 1)
        weight = np.exp(log_weight - log_weight.max(axis=0))
        weight /= weight.sum(axis=0)
        mean = draws.mean
        variance = draws.variance * scale[:, None]
        average = 0.0
        if draws.exponent is not None:
            average = float((weight.mean(axis=1) * draws.exponent).sum())
            logs = np.clip(inverse_power(mean, draws.exponent[:, None]), SMALLEST_LOG, LARGEST_LOG)
            mean = power(logs, average)
            # the ratio of the slopes of both transformations is y^(average - exponent)
            change = np.clip((average - draws.exponent[:, None]) * logs, -10.0, 10.0)
            variance = variance * np.exp(2.0 * change)
        centre = (weight * mean).sum(axis=0)
        spread = (weight * (variance + (mean - centre) ** 2)).sum(axis=0)
        return average, centre, np.maximum(np.sqrt(spread), ROUNDING * (1.0 + np.abs(centre)))

    def labels(self, positions: Array) -> Array:
        """Labels at positions (m, G), as targets are given; none is below the least that can be in a region."""
        found = np.where(np.isinf(positions), positions, self._unbounded(positions))
        if self._draws.exponent is None and self._signs is not None and np.isfinite(self.lowest).all():
            found = np.maximum(self._at_zero(found), self._signs.zero)
        return found

    def _at_zero(self, labels: Array) -> Array:
        """Labels, of which those that are 0 up to rounding are 0: a position is a label up to rounding."""
        if self._signs is None:
            return labels
        with np.errstate(invalid="ignore"):
            is_zero = np.abs(labels - self._signs.zero) <= ROUNDING * self._scale[:, None]
        return np.where(is_zero, self._signs.zero, labels)

    def _unbounded(self, positions: Array) -> Array:
        found = self._centre[:, None] + self._scale[:, None] * positions
        if self._draws.exponent is None:
            return found
        return np.clip(inverse_power(found, self._exponent), SMALLEST_LOG, LARGEST_LOG)

    def _positions(self, labels: Array) -> Array:
        """The inverse of :meth:`labels`."""
        if self._draws.exponent is not None:
            labels = power(labels, self._exponent)
        return (labels - self._centre[:, None]) / self._scale[:, None]

    def _weights(self, labels: Array) -> tuple[Array, Array, Array]:
        """w, t and 1 / τ at labels (m, G), (m, M, G) each."""
        draws = self._draws
        constant = draws.log_ratio - 0.5 * np.log(draws.variance)
        z = labels[:, None, :]
        slope: Array | float = 0.0
        if draws.exponent is not None:
            slope = draws.slope[:, None] * z
            z = power(z, draws.exponent[:, None])
        t = z - draws.mean.T[:, :, None]  # (T(y) - mu) / sqrt(s)
        t /= np.sqrt(draws.variance).T[:, :, None]
        with np.errstate(over="ignore"):  # of a target so far out the weight is 0
            square = t * t
        square += draws.quadratic[:, None]  # Q + t^2
        if draws.degrees is None:
            inverse_tau = np.ones(t.shape)
            log_weight = -0.5 * square
        else:
            # tau^2 = (Q + t^2) / (nu + 1), and the weight of equation (3) of docs/theory_averaging.md
            inverse_tau = np.sqrt((draws.degrees + 1) / square)
            log_weight = np.log(square, out=square)
            log_weight *= -0.5 * (draws.degrees + 1)
        log_weight += slope
        log_weight += constant.T[:, :, None]
        log_weight -= log_weight.max(axis=1, keepdims=True)
        weight = np.exp(log_weight, out=log_weight)
        weight /= weight.sum(axis=1, keepdims=True)
        return weight, t, inverse_tau

    def own(self, positions: Array) -> Array:
        """Signed scores of the test rows at positions (m, G)."""
        weight, t, inverse_tau = self._weights(self._unbounded(positions))
        weight *= inverse_tau
        weight *= t
        return weight.sum(axis=1)

    def scores(self, positions: Array) -> tuple[Array, Array]:
        """Signed scores of the calibration rows, (m, G, n), and of the test rows, (m, G), at positions (m, G)."""
        labels = self._unbounded(positions)
        if self._draws.exponent is None:  # the label 0 must not be taken for a negative one
            labels = self._at_zero(labels)
        return self.scores_of_labels(labels)

    def scores_of_labels(self, labels: Array) -> tuple[Array, Array]:
        """Signed scores of the calibration rows, (m, G, n), and of the test rows, (m, G), at labels (m, G)."""
        given = labels
        if self._signs is not None:
            labels = np.maximum(labels, self._floor)
        weight, t, inverse_tau = self._weights(labels)
        weight *= inverse_tau
        t *= weight
        # e = sum of w (a + b t) / tau: equation (4) of docs/theory_averaging.md
        scores = (self._residuals @ np.concatenate([weight, t], axis=1)).transpose(0, 2, 1)
        own = t.sum(axis=1)
        if self._signs is None:
            return scores, own
        own_outside, rows_outside = self._signs.outside(given)
        return np.where(rows_outside, -np.inf, scores), np.where(own_outside, -np.inf, own)
