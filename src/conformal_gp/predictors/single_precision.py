r"""Intervals at gamma = 2: single precision finds which rows decide, double precision computes the ends.

In the notation of :func:`conformal_gp.conformal.lines.normalised_residual_lines`, let
:math:`z_i = v_i / \sqrt{s P_{ii}}`. Because :math:`(d_i - v_i)(d_i + v_i) = s P_{ii}`, row i covers the candidates up
to its *reach*

.. math::
    \frac{s |\alpha_i|}{d_i \pm v_i} = \sqrt s\, \frac{|\alpha_i|}{\sqrt{P_{ii}}}\, e^{\mp \operatorname{asinh} z_i}

on either side of the mean, and an end of the interval is the k-th largest reach on its side. The inverse hyperbolic
sine nowhere rises faster than its argument. So weights for which every :math:`z_i` is off by at most :math:`\epsilon`
give every reach, and with it the k-th largest, to a factor of :math:`e^\epsilon`; a row whose rough reach differs from
the rough k-th largest by more than a factor of :math:`e^{2 \epsilon}` is on the side where it seems to be. The others
are few: their weights are computed in double precision, one by one, and the right one among them is the end.

Weights are :math:`v_i = u_i' h`, with :math:`u_i` a column of the inverse Cholesky root. In single precision (unit
roundoff u), :math:`u_i` and h scaled to unit length, the inner product is off by at most (l + 3) u, whatever order the
sums are taken in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformal_gp._compiled import compiled
from conformal_gp.conformal.regions import select_largest
from conformal_gp.types import Array, Rows

Single = NDArray[np.float32]

ROUNDOFF = 2.0**-24
# Rounding of a reach in single precision, on top of that of its weight: some ten operations.
ROUNDING = 16.0 * ROUNDOFF
# Reaches below this share of the largest base score are not trusted to their relative precision.
SMALLEST_TRUSTED = 1e-30
# Largest ε n, to which the number of undecided rows is proportional, that is taken; measured to pay up to 17.
MOST_UNDECIDED = 10.0


class RoughRows(NamedTuple):
    """Ranked rows, prepared for single precision."""

    numbers: Rows
    """(n,): columns of the root."""
    root: Array
    """(l, l): inverse Cholesky root, lower triangular, in Fortran's order."""
    unit_root: Single
    """(l, l): the same with columns of unit length."""
    alpha: Array
    """(n,): weighted residuals."""
    diagonal: Array
    """(n,): inverse leave-one-out variances, none of them zero."""
    base: Single
    """(n,): absolute weighted residual over P_ii^(1/2), the largest 1."""
    slope: Single
    """(n,): what turns the cosine of u and h into z, but for the test row's |h| / s^(1/2); with the sign of alpha."""


def prepare(numbers: Rows, root: Array, alpha: Array, diagonal: Array) -> RoughRows:
    """Ranked rows in single precision.

    Parameters
    ----------
    numbers : ndarray of shape (n,)
        Which columns of the root are the ranked rows'.
    root : ndarray of shape (l, l)
        Inverse Cholesky root.
    alpha, diagonal : ndarray of shape (n,)
        Weighted residuals and inverse leave-one-out variances of the ranked rows.

    Returns
    -------
    rows : RoughRows
        Those rows.
    """
    base = np.abs(alpha) / np.sqrt(diagonal)
    length = np.sqrt(np.einsum("ij,ij->j", root, root))
    unit_root = np.empty_like(root, dtype=np.float32)
    np.divide(root, length, out=unit_root, casting="same_kind")
    slope = np.copysign(length[numbers] / np.sqrt(diagonal), alpha)
    share = base / (base.max(initial=0.0) or 1.0)
    return RoughRows(numbers, root, unit_root, alpha, diagonal, share.astype(np.float32), slope.astype(np.float32))


def _precision(rows: RoughRows, ratio: Array) -> Array:
    """Bound ε on the error of every z, and of a reach besides, for test rows of ``ratio`` |h| / s^(1/2)."""
    steepest = float(np.abs(rows.slope).max(initial=0.0))
    return ratio * steepest * (rows.root.shape[0] + 4) * ROUNDOFF + ROUNDING


def pays(rows: RoughRows, square: Array, variance: Array) -> bool:
    """Whether single precision would leave few rows undecided, for test rows of these |h|² and s."""
    undecided = _precision(rows, np.sqrt(square / variance)) * rows.numbers.size
    return bool(np.isfinite(variance).all() and (undecided <= MOST_UNDECIDED).all())


def ends(rows: RoughRows, cosines: Single, half: Array, square: Array, variance: Array, ranks: Sequence[int]) -> Array:
    """How far intervals reach below and above the mean.

    Parameters
    ----------
    rows : RoughRows
        n ranked rows.
    cosines : ndarray of shape (m, n)
        Rough inner products of u and h, both of unit length.
    half : ndarray of shape (m, l)
        h of each test row.
    square : ndarray of shape (m,)
        Its squared length.
    variance : ndarray of shape (m,)
        s of each test row.
    ranks : sequence of int
        For each level, how many rows must cover a label, from 0 (then the interval is the whole line) to n.

    Returns
    -------
    reach : ndarray of shape (2, m, len(ranks))
        Distance of the lower end and of the upper end from the mean.
    """
    reach = np.full((2, variance.size, len(ranks)), np.inf)
    finite = np.array(sorted({k for k in ranks if k > 0}, reverse=True), dtype=np.int64)
    if finite.size == 0:
        return reach
    ratio = np.sqrt(square / variance)
    rough = np.empty((2, *cosines.shape), dtype=np.float32)
    _fill_rough(rows.base, rows.slope, cosines, ratio.astype(np.float32), rough)
    kth = select_largest(rough.copy(), finite)
    spread = np.exp(2.0 * _precision(rows, ratio))
    _settle(rough, kth, spread, finite, rows.numbers, rows.root.T, rows.alpha, rows.diagonal, half, variance)
    for level, k in enumerate(ranks):
        if k > 0:
            reach[:, :, level] = kth[:, :, np.flatnonzero(finite == k)[0]]
    return reach


@compiled(error_model="numpy")
def _fill_rough(base: Single, slope: Single, cosines: Single, ratio: Single, rough: Single) -> None:  # pragma: no cover
    """Reaches below and above, in units of s^(1/2) and of the largest base score."""
    one = np.float32(1.0)
    for j in range(ratio.size):
        cosine, below, above = cosines[j], rough[0, j], rough[1, j]
        for i in range(base.size):
            z = ratio[j] * (slope[i] * cosine[i])
            growth = np.sqrt(one + z * z) + abs(z)
            long, short = base[i] * growth, base[i] / growth
            below[i] = long if z > 0 else short
            above[i] = short if z > 0 else long


@compiled(error_model="numpy")
def _settle(
    rough: Single,
    kth: Array,
    spread: Array,
    ranks: Rows,
    numbers: Rows,
    columns: Array,
    alpha: Array,
    diagonal: Array,
    half: Array,
    variance: Array,
) -> None:  # pragma: no cover
    """Overwrite rough k-th largest reaches with exact ones; ranks are above 0 and descend."""
    n, n_levels = numbers.size, ranks.size
    low, high = np.empty(n_levels, dtype=np.float32), np.empty(n_levels, dtype=np.float32)
    n_beyond, n_close = np.empty(n_levels, dtype=np.int64), np.empty(n_levels, dtype=np.int64)
    close = np.empty((n_levels, n))
    for side in range(2):
        for j in range(variance.size):
            for level in range(n_levels):
                k = kth[side, j, level]
                low[level] = k / spread[j] if k > SMALLEST_TRUSTED else 0.0
                high[level] = max(k * spread[j], SMALLEST_TRUSTED)
            n_beyond[:] = 0
            n_close[:] = 0
            for i in range(n):
                reach = rough[side, j, i]
                if reach < low[0]:  # the lowest, as ranks descend
                    continue
                for level in range(n_levels):
                    if reach > high[level]:
                        n_beyond[level] += 1
                    elif reach >= low[level]:
                        close[level, n_close[level]] = _reach(
                            columns[numbers[i]], half[j], numbers[i], alpha[i], diagonal[i], variance[j], side
                        )
                        n_close[level] += 1
            for level in range(n_levels):
                ascending = np.sort(close[level, : n_close[level]])
                kth[side, j, level] = ascending[n_close[level] - (ranks[level] - n_beyond[level])]


@compiled(error_model="numpy", fastmath={"reassoc"})
def _dot(a: Array, b: Array) -> float:  # pragma: no cover
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@compiled(error_model="numpy")
def _reach(
    column: Array, half: Array, first: int, alpha: float, diagonal: float, variance: float, side: int
) -> float:  # pragma: no cover
    """One row's reach in double precision: below the mean for side 0, above it for side 1."""
    weight = _dot(column[first:], half[first:])  # the root is lower triangular
    z = np.copysign(1.0, alpha) * weight / np.sqrt(variance * diagonal)
    growth = np.sqrt(1.0 + z * z) + abs(z)
    score = np.sqrt(variance / diagonal) * abs(alpha)
    return score * growth if (z > 0) == (side == 0) else score / growth
