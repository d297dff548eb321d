r"""What counts as a tie: scores that differ by no more than the rounding errors that they carry.

Equal rows must tie, and so must rows whose residuals are opposite, as they are in tables of few different values. In
floating point they tie up to rounding. A Cholesky factorisation solves :math:`(A + E) \alpha = y` with some E of the
size of rounding errors of A, so row i's weighted residual is off by :math:`(A^{-1} E \alpha)_i` or, for random errors,
by about :math:`\epsilon\, a\, |A^{-1} e_i|\, |\alpha|` with :math:`a = \max A_{ii}`. Over
:math:`\sqrt{P_{ii}}`, that is in units of scores, it is at most

.. math:: \epsilon\, \sqrt{c}\, (a\, |\alpha| + \max |y|), \qquad c = \max P_{ii},

where the last term is for the labels' own rounding. It is a function of the bag, the same whichever row is the test
row. Measured on rows that are equal, at noise from 1e-1 to 1e-11 of the signal and 10 to 500 rows, scores are off by at
most 5.4 times as much, and typically by a third of it (tests/test_ties.py).

A tie counts in full for p-values. Regions are widened by half of what counts as a tie: so a label that ties is in the
region, and an end of a region, handed back as a label, has a p-value that says so. At so little noise that this would
be more than :data:`MOST_WIDENING` of the largest label, ends are not known better than that, and are left there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conformal_gp.types import Array

# Scores that differ by less than this share of their size are tied in any case.
TIE = 1e-10
# A label is known to rounding only, and so then is its distance from the mean.
LABEL_ROUNDING = 8.0 * np.finfo(float).eps
# The formula above is multiplied by this.
SAFETY = 16.0
# Ends of regions are put out by no more than this share of the largest label.
MOST_WIDENING = 2e-7


class Rounding(NamedTuple):
    """Error of scores in units of the label: ``floor + share * t`` at distance t from the mean."""

    floor: Array
    """(m,)"""
    share: Array
    """(m,)"""
    most: float
    """Most that ends of regions are put out on account of it."""


class Slack(NamedTuple):
    """By how much ends of regions are put out, at distance t: ``floor + share * t + min(more + steeper * t, most)``."""

    floor: Array
    """(m,)"""
    share: Array
    """(m,)"""
    more: Array
    """(m,)"""
    steeper: Array
    """(m,)"""
    most: Array
    """(m,)"""

    @classmethod
    def of(cls, centre: Array, rounding: Rounding | None) -> Slack:
        """For test rows with regions about some centres."""
        none = np.zeros(centre.size)
        more, steeper, most = (none, none, 0.0) if rounding is None else rounding
        share = np.full(centre.size, TIE + LABEL_ROUNDING)
        return cls(*(0.5 * part for part in (LABEL_ROUNDING * np.abs(centre), share, more, steeper, most + none)))

    def put_out(self, reach: Array) -> Array:
        """Ends at some distances, (m, levels), put out; a negative one is on the other side of the centre."""
        floor, share, more, steeper, most = (part[:, None] for part in self)
        t = np.where(np.isfinite(reach), np.abs(reach), 0.0)
        return reach + (floor + share * t + np.minimum(more + steeper * t, most))

    def each(self) -> Array:
        """One row for each test row."""
        return np.stack(self, axis=1)


def rounding(
    sizes: tuple[float, float, float, float], weight: Array, variance: Array, unequal: Array | float = 1.0
) -> Rounding:
    r"""Error of the scores of some test rows and of the rows that they are compared with.

    Parameters
    ----------
    sizes : tuple of four floats
        a, c, :math:`|\alpha|` and :math:`\max |y|` of the training rows.
    weight : ndarray of shape (m,)
        Length of the vector of weights of each test row.
    variance : ndarray of shape (m,)
        Variance of each test row's label; nothing is off where it is infinite.
    unequal : ndarray of shape (m,), default=1.0
        A factor for scores that are not in units of standard deviations.

    Returns
    -------
    rounding : Rounding
        For each test row.
    """
    largest_variance, precision, residual, label = sizes
    known = np.isfinite(variance)
    s = np.where(known, variance, 1.0)
    # the test row's own inverse variance is 1/s; with its label the residuals become longer by t (1 + |v|) / s
    unit = SAFETY * np.finfo(float).eps * np.sqrt(np.maximum(s * precision, 1.0)) * unequal
    floor = unit * (largest_variance * residual + label)
    share = unit * largest_variance * (1.0 + weight) / s
    return Rounding(np.where(known, floor, 0.0), np.where(known, share, 0.0), MOST_WIDENING * label)
