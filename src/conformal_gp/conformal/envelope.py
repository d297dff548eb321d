r"""Lower envelope of parabolas: which of several candidate models each label selects.

When a model is chosen anew for every candidate label y, by a criterion that is a parabola in y for each model, the
model in use changes at finitely many labels only. The region is then the union, over the stretches between them, of
each stretch's part of its own model's region.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Envelope(NamedTuple):
    """Stretches of the line, from left to right, and the parabola that is lowest on each."""

    breaks: Array
    """(stretches + 1,): ends of the stretches, from -inf to inf."""
    owner: NDArray[np.int64]
    """(stretches,): index of the lowest parabola."""


def lower_envelope(base: Array, curvature: Array, vertex: Array) -> Envelope:
    """Lower envelope of the parabolas ``base + curvature * (y - vertex)**2``.

    Parameters
    ----------
    base, curvature, vertex : ndarray of shape (G,)
        The parabolas; curvatures are positive.

    Returns
    -------
    envelope : Envelope
        At most 2 G - 1 stretches.

    Examples
    --------
    >>> lower_envelope(np.array([0.0, 1.0]), np.array([2.0, 1.0]), np.array([0.0, 0.0]))
    Envelope(breaks=array([-inf,  -1.,   1.,  inf]), owner=array([1, 0, 1]))
    """
    breaks = np.empty(2 * base.size + 1)
    owner = np.empty(2 * base.size, dtype=np.int64)
    n = _walk(base, curvature, vertex, breaks, owner)
    return Envelope(breaks[: n + 1].copy(), owner[:n].copy())


def select(base: Array, curvature: Array, vertex: Array, y: Array) -> NDArray[np.int64]:
    """Index of the lowest parabola at ``y[j]``, for parabolas in columns j of (G, m) arrays; the first of equals."""
    return np.argmin(base + curvature * (y - vertex) ** 2, axis=0)


@njit(cache=True, nogil=True)
def _walk(
    base: Array, curvature: Array, vertex: Array, breaks: Array, owner: NDArray[np.int64]
) -> int:  # pragma: no cover
    """Walk from left to right, at each stretch's end to the parabola that dips below first."""
    current = 0  # lowest at -inf: least curvature, then leftmost vertex, then least base
    for g in range(1, base.size):
        if (curvature[g], vertex[g], base[g]) < (curvature[current], vertex[current], base[current]):
            current = g
    breaks[0] = -np.inf
    owner[0] = current
    n = 1
    while n < owner.size:
        here, following, steepness = np.inf, -1, 0.0
        for g in range(base.size):
            if g == current:
                continue
            crossing = _dips_below(base, curvature, vertex, g, current)
            if not crossing > breaks[n - 1] or crossing > here or crossing == np.inf:
                continue
            slope = curvature[g] * (crossing - vertex[g])
            if crossing < here or slope < steepness:
                here, following, steepness = crossing, g, slope
        if following < 0:
            break
        breaks[n] = here
        owner[n] = following
        current = following
        n += 1
    breaks[n] = np.inf
    return n


@njit(cache=True, nogil=True)
def _dips_below(base: Array, curvature: Array, vertex: Array, g: int, h: int) -> float:  # pragma: no cover
    """Where parabola g, from left to right, goes from above h to below it; infinite if nowhere."""
    # Their difference, measured from the vertex of h: a u² + b u + c
    shift = vertex[g] - vertex[h]
    a = curvature[g] - curvature[h]
    b = -2.0 * curvature[g] * shift
    c = base[g] - base[h] + curvature[g] * shift * shift
    if a == 0.0:
        return vertex[h] - c / b if b < 0.0 else np.inf
    discriminant = b * b - 4.0 * a * c
    if discriminant <= 0.0:
        return np.inf
    # The difference falls through zero at the smaller root if a > 0, at the larger if a < 0: the same formula for both.
    root = np.sqrt(discriminant)
    u = 2.0 * c / (-b + root) if b < 0.0 else (-b - root) / (2.0 * a)
    return vertex[h] + u
