"""Levels of the page, and how it writes numbers: to a thousandth of the labels' standard deviation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from conformal_gp.evaluation.words import number
from conformal_gp.types import Array

# The two methods of the page.
CONFORMAL, PLAIN = "conformal intervals", "plain Gaussian process"
# The levels of the page, in percent and as fractions.
PERCENTS = tuple(range(50, 100))
LEVELS = tuple(Fraction(number, 100) for number in PERCENTS)
# The quantiles that a row's distribution is drawn through, in percent and as fractions.
QUANTILE_PERCENTS = tuple(range(5, 100, 5))
QUANTILES = tuple(Fraction(number, 100) for number in QUANTILE_PERCENTS)


@dataclass(frozen=True)
class Rounding:
    """Number of decimals of labels, ends and widths."""

    decimals: int

    @classmethod
    def of(cls, labels: Array) -> Rounding:
        """Decimals down to a thousandth of the standard deviation of ``labels``; none if that is above 1.

        >>> Rounding.of(np.array([10.0, 30.0])), Rounding.of(np.array([0.0, 1e6])), Rounding.of(np.full(3, 0.1))
        (Rounding(decimals=2), Rounding(decimals=0), Rounding(decimals=3))
        """
        spread = float(np.std(labels))
        if spread <= 1e-12 * float(np.abs(labels).max()):  # constant up to rounding
            return cls(3)
        return cls(max(0, 3 - math.floor(math.log10(spread))))

    def text(self, value: float) -> str:
        """A number as text, with signs for minus and infinity.

        >>> Rounding(2).text(3.14159), Rounding(2).text(-np.inf)
        ('3.14', '−∞')
        """
        return f"{value:.{self.decimals}f}".replace("inf", "∞").replace("-", "\N{MINUS SIGN}")

    def plain(self, value: float) -> float | None:
        """A number for JSON; None stands for infinity."""
        return round(float(value), self.decimals) if math.isfinite(value) else None

    def differences(self, values: Array) -> list[int | None]:
        """Ascending numbers in units of the last decimal, each as its difference to the one before; None is infinity.

        >>> Rounding(2).differences(np.array([-np.inf, 3.14, 3.17, 3.17]))
        [None, 314, 3, 0]
        """
        finite = np.isfinite(values)
        found = iter(np.diff(np.round(values[finite] * 10.0**self.decimals), prepend=0.0))
        return [int(next(found)) if is_finite else None for is_finite in finite]


def general(value: Any) -> str:
    """A number of unknown size.

    >>> general(1234567.0), general(0.00012), general(3.0)
    ('1234570', '0.00012', '3')
    """
    return number(float(value), 6)
