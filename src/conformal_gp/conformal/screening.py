r"""Screening of very many calibration rows: those that can decide a region, and those that can be left out.

By a bound :math:`|v_i| \le c_i \omega` of its weight, row i covers the candidates up to between two factors,
:math:`A_-` and :math:`A_+`, times :math:`s^{1/\gamma}` times its *base score*, by which rows are sorted once. Rows of
large :math:`c_i`, the rows of *high leverage*, are few: they are left out of the factors and always looked at. Of the
others, the rows of *low leverage*, most cover all candidates in question or none: lemma 1 of docs/theory_large.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conformal_gp.arrays import Array, Indices
from conformal_gp.conformal.lines import LABEL_ROUNDING
from conformal_gp.targets.difficulty import Spread

# Larger bounds are not used: no row is left out.
LARGEST_SLOPE = 0.5
# Bounds are widened by this share of themselves, to be safe from rounding and, for p-values, from what counts as a tie.
WIDER = 1e-6


class Weighed(NamedTuple):
    """Weights of calibration rows, in order of their base scores."""

    before: Array
    """(low + 1,): of the rows of low leverage before each place."""
    high: float
    """Of all rows of high leverage."""


class Windows(NamedTuple):
    """For each test row, a range of the rows of low leverage, in order of descending base score."""

    start: Indices
    """(k, ...): rows before it cover every candidate in question."""
    stop: Indices
    """(k, ...): rows from it on cover none."""


class Ranking:
    """Calibration rows in order of their base scores.

    ``bound`` is c, ``spread`` what scores are measured from and by. ``sign`` 0 ranks by absolute scores, 1 by signed
    ones, -1 by those with their signs changed. Rows of ``low_leverage`` are in order of descending base score.
    """

    def __init__(self, alpha: Array, diagonal: Array, bound: Array, gamma: float, spread: Spread, sign: int = 0):
        self._power = 1.0 - 1.0 / gamma
        self._sign = sign
        unit = diagonal**self._power
        base, slope = self._seen(alpha / unit - spread.location) / spread.scale, bound / (unit * spread.scale)
        squares = (bound * diagonal ** (self._power - 1.0)) ** 2
        self.high_leverage = _high_leverage(slope, typical=float(np.sqrt(squares.sum() / max(1, squares.size))))
        low = np.delete(np.arange(alpha.size), self.high_leverage)
        self.low_leverage = low[np.argsort(-base[low], kind="stable")]
        self._minus_base = -base[self.low_leverage]  # ascending, for searching
        self._slope = float(slope[low].max(initial=0.0))
        self._root_slope = float((bound[low] / np.sqrt(diagonal[low])).max(initial=0.0))
        self._location = float((np.abs(spread.location) / spread.scale)[low].max(initial=0.0))
        self._slack = 1e-12 * float(np.abs(base).max(initial=0.0))  # of the largest score, for rounding

    def _seen(self, values: Array) -> Array:
        """Residuals, or distances of values from the mean, as they are compared."""
        return self._sign * values if self._sign else np.abs(values)

    def _factors(self, variance: Array, size: Array, spread: Spread) -> tuple[Array, Array, Array]:
        """A₋, A₊ and D' of each test row; 0, infinity and 0 where they would exclude nothing."""
        # eta = omega s^-e max c_i P_ii^-e, kappa = omega s^(-1/2) max c_i P_ii^(-1/2)
        steepness = self._slope * size / variance**self._power
        eta, kappa = steepness * spread.scale, self._root_slope * size / np.sqrt(variance)
        useful, longer = eta <= LARGEST_SLOPE, np.sqrt(1.0 + kappa**2)
        # A- = 1 / ((1 + kappa^2)^e + eta), A+ = 1 / (1 - eta)
        lower = np.where(useful, (1.0 - WIDER) / ((1.0 + kappa**2) ** self._power + eta), 0.0)
        upper = np.where(useful, (1.0 + WIDER) / (1.0 - np.minimum(eta, LARGEST_SLOPE)), np.inf)
        # D' = D (1 + kappa^2)^(1/2)
        moved = longer * np.abs(spread.location) * steepness + (longer - 1.0) * self._location
        return lower, upper, np.where(useful, (1.0 + WIDER) * moved, 0.0)

    def _between(self, low: Array, high: Array) -> Windows:
        """Rows of low leverage with base scores from ``low`` to ``high``."""
        start = np.searchsorted(self._minus_base, -(high + self._slack), side="left")
        stop = np.searchsorted(self._minus_base, -(low - self._slack), side="right")
        return Windows(start, np.maximum(start, stop))

    def weighed(self, weights: Array | None) -> Weighed:
        """Weights of the calibration rows (n,), or 1 each, in order of base scores."""
        if weights is None:
            return Weighed(np.arange(self.low_leverage.size + 1.0), float(self.high_leverage.size))
        before = np.append(0.0, np.cumsum(weights[self.low_leverage]))
        return Weighed(before, float(weights[self.high_leverage].sum()))

    def for_level(self, least: Array, weighed: Weighed, variance: Array, size: Array, spread: Spread) -> Windows:
        """With the rows of high leverage, all rows that can decide regions.

        ``least`` is T of each of k test rows, (k,): calibration rows of more weight must cover a value. The weight of
        the rows before ``start`` is to be taken off it. ``variance``, ``size`` and ``spread`` are s, ω and c and g.
        """
        lower, upper, moved = self._factors(variance, size, spread)
        base = np.append(-self._minus_base, -np.inf)  # of the row at each place from 0; there is none after the last
        # the first places with w_1 + ... + w_k > T, and > T - H
        rest = least - weighed.high
        lowest = base[np.searchsorted(weighed.before[1:], least, side="right")]
        highest = np.where(rest < 0.0, np.inf, base[np.searchsorted(weighed.before[1:], rest, side="right")])
        lowest, highest = lowest - moved, highest + moved
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.minimum(lowest * (upper / lower), lowest * (lower / upper))
            high = np.maximum(highest * (upper / lower), highest * (lower / upper))
        return self._where_useful(lower, low - moved, high + moved)

    def _where_useful(self, lower: Array, low: Array, high: Array) -> Windows:
        """Rows with base scores from ``low`` to ``high``; all, where the factors would exclude nothing."""
        useful = lower > 0.0
        return self._between(np.where(useful, low, -np.inf), np.where(useful, high, np.inf))

    def for_label(
        self, y: Array, mean: Array, variance: Array, size: Array, spread: Spread, off: Array | float = 0.0
    ) -> Windows:
        """With the rows of high leverage, all rows whose score may or may not reach that of the test row at ``y``.

        The rows before score higher by more than a tie. Rounding may put scores off by ``off``, in units of the value.
        """
        lower, upper, moved = self._factors(variance, size, spread)
        unit = variance ** (1.0 - self._power) * spread.scale
        distance = self._seen(y - mean - np.sqrt(variance) * spread.location)
        rounding = 2.0 * (LABEL_ROUNDING * np.abs(y) + off)
        least, most = (distance - rounding) / unit, (distance + rounding) / unit
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = np.minimum(least / upper, least / lower), np.maximum(most / upper, most / lower)
        return self._where_useful(lower, low - moved, high + moved)


def _high_leverage(slope: Array, typical: float) -> Indices:
    """Rows to set apart, so that those and the ones left undecided by the others' largest slope are fewest.

    Undecided is about every row whose base score is within ``slope * typical`` of the deciding one, as a share of it.
    """
    order = np.argsort(-slope, kind="stable")
    cost = np.arange(slope.size) + slope.size * typical * slope[order]
    return order[: int(np.argmin(cost))] if slope.size else order
