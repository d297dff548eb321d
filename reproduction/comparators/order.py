"""Order statistics with exact ranks, infinite where there are too few values for the rank."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from conformal_gp.conformal.levels import rank
from conformal_gp.types import Array


def lower_end(values: Array, levels: Sequence[Fraction]) -> Array:
    """The floor(δ (n + 1))-th smallest of n values along the last axis, for each level; rank 0 is -inf.

    >>> lower_end(np.arange(1.0, 20.0), [Fraction(9, 10), Fraction(99, 100)])
    array([  2., -inf])
    """
    return _padded(values)[..., [rank(level, values.shape[-1]) for level in levels]]


def upper_end(values: Array, levels: Sequence[Fraction]) -> Array:
    """The ceil((1 - δ) (n + 1))-th smallest of n values along the last axis, for each level; rank n + 1 is +inf.

    >>> upper_end(np.arange(1.0, 20.0), [Fraction(9, 10), Fraction(99, 100)])
    array([18., inf])
    """
    n = values.shape[-1]
    return _padded(values)[..., [n + 1 - rank(level, n) for level in levels]]


def scaled(ends: Array, scale: Array) -> Array:
    """Ends multiplied by the scale of each row; an infinite end stays infinite at scale 0.

    >>> scaled(np.array([1.0, np.inf]), np.array([[2.0], [0.0]]))
    array([[ 2., inf],
           [ 0., inf]])
    """
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(ends), ends, scale * ends)


def one_sided(levels: Sequence[Fraction]) -> list[Fraction]:
    """Levels of the two one-sided ends of an interval of each level: δ/2 on either side."""
    return [(1 + level) / 2 for level in levels]


def _padded(values: Array) -> Array:
    """Sorted values, with an infinity at either end."""
    infinity = np.full((*values.shape[:-1], 1), np.inf)
    return np.concatenate([-infinity, np.sort(values, axis=-1), infinity], axis=-1)
