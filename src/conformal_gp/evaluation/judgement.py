"""How many labels lie outside, and whether chance explains it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from conformal_gp.conformal.levels import read_level, read_levels
from conformal_gp.metrics import mean_width
from conformal_gp.types import Array

Level = float | Fraction

# Central parts of the binomial distribution: beyond the first, intervals are in doubt; beyond the second, wrong.
LIKELY, NEARLY_ALL = 0.95, 0.99


def chance_range(confidence_level: Level | Iterable[Level], n_rows: int, probability: float = LIKELY) -> Array:
    """Shares of labels inside that chance allows, if each label is inside with the probability promised.

    It is the central part of a binomial distribution: less than ``(1 - probability) / 2`` lies beyond either end.

    Parameters
    ----------
    confidence_level : float or sequence of floats
        Level or levels, each strictly between 0 and 1.
    n_rows : int
        Number of labels.
    probability : float in (0, 1), default=0.95
        Probability of the range.

    Returns
    -------
    ends : ndarray of shape (2,) or (n_levels, 2)
        Lowest and highest share; two-dimensional when a sequence of levels is given.

    Examples
    --------
    Intervals of level 95% that are right hold between 92.9% and 96.9% of 392 labels, in 95 of 100 cases:

    >>> from conformal_gp.evaluation import chance_range
    >>> chance_range(0.95, 392).round(3)
    array([0.929, 0.969])
    """
    if not 0.0 < probability < 1.0:
        raise ValueError(f"probability must lie strictly between 0 and 1, got {probability!r}.")
    levels, single = read_levels(confidence_level)
    counts = binom.interval(probability, n_rows, [float(level) for level in levels])
    ends = np.stack(counts, axis=1) / n_rows
    return ends[0] if single else ends


class Judgement(StrEnum):
    """Whether intervals kept their promise; the module's text says how it is decided.

    Examples
    --------
    >>> from conformal_gp.evaluation import Finding
    >>> inside = [[0, 2]] * 200
    >>> Finding.of("mine", 0.9, [1.0] * 200, inside).judgement, Finding.of("mine", 0.9, [3.0] * 200, inside).judgement
    (<Judgement.TOO_WIDE: 'too wide'>, <Judgement.TOO_NARROW: 'too narrow'>)
    """

    KEPT = "kept"
    IN_DOUBT = "in doubt"
    TOO_NARROW = "too narrow"
    TOO_WIDE = "too wide"
    INFINITE = "infinite"


@dataclass(frozen=True)
class Finding:
    """How the intervals of one method and one level did.

    Parameters
    ----------
    method : str
        Name of the method.
    level : Fraction
        Confidence level.
    n_rows : int
        Number of labels.
    n_below, n_above : int
        Labels below, and above, their intervals.
    mean_width, median_width : float
        Mean and median width of the intervals.
    n_infinite : int
        Intervals with an infinite end.

    Examples
    --------
    Nine of 392 labels outside, where 1% was promised:

    >>> from fractions import Fraction
    >>> from conformal_gp.evaluation import Finding
    >>> finding = Finding("plain GPR", Fraction(99, 100), 392, 1, 8, mean_width=13.3, median_width=13.1, n_infinite=0)
    >>> finding.n_outside, finding.judgement.value
    (9, 'in doubt')
    >>> finding.judgement_below.value, finding.judgement_above.value
    ('kept', 'too narrow')
    """

    method: str
    level: Fraction
    n_rows: int
    n_below: int
    n_above: int
    mean_width: float
    median_width: float
    n_infinite: int

    @classmethod
    def of(cls, method: str, confidence_level: Level, y_true: ArrayLike, intervals: ArrayLike) -> Finding:
        """Count labels outside, and measure widths.

        Parameters
        ----------
        method : str
            Name of the method.
        confidence_level : float
            Level of the intervals.
        y_true : array-like of shape (n_samples,)
            Labels.
        intervals : array-like of shape (n_samples, 2)
            Lower and upper ends.

        Returns
        -------
        finding : Finding
            The result.

        Examples
        --------
        >>> from conformal_gp.evaluation import Finding
        >>> finding = Finding.of("mine", 0.9, [1.0, 2.0, 9.0], [[0, 2], [1, 3], [2, 4]])
        >>> finding.n_outside, finding.n_above, finding.mean_width
        (1, 1, 2.0)
        """
        labels, ends = np.asarray(y_true, dtype=np.float64), np.asarray(intervals, dtype=np.float64)
        return cls(
            method,
            read_level(confidence_level),
            labels.size,
            int((labels < ends[:, 0]).sum()),
            int((labels > ends[:, 1]).sum()),
            float(mean_width(ends)),
            float(np.median(ends[:, 1] - ends[:, 0])),
            int((~np.isfinite(ends).all(axis=1)).sum()),
        )

    @property
    def n_outside(self) -> int:
        """Labels outside their intervals."""
        return self.n_below + self.n_above

    @property
    def miscoverage(self) -> float:
        """Share of labels outside."""
        return self.n_outside / self.n_rows

    @property
    def judgement(self) -> Judgement:
        """Whether the intervals kept their promise."""
        return self._judgement(self.level, self.n_outside)

    @property
    def judgement_below(self) -> Judgement:
        """Whether half of what is promised was kept below the intervals."""
        return self._judgement((1 + self.level) / 2, self.n_below)

    @property
    def judgement_above(self) -> Judgement:
        """Whether half of what is promised was kept above the intervals."""
        return self._judgement((1 + self.level) / 2, self.n_above)

    def _judgement(self, level: Fraction, n_outside: int) -> Judgement:
        if self.n_infinite == self.n_rows:
            return Judgement.INFINITE
        inside = (self.n_rows - n_outside) / self.n_rows
        likely = chance_range(level, self.n_rows, LIKELY)
        nearly_all = chance_range(level, self.n_rows, NEARLY_ALL)
        if inside > nearly_all[1]:
            return Judgement.TOO_WIDE
        if inside < nearly_all[0]:
            return Judgement.TOO_NARROW
        return Judgement.IN_DOUBT if inside < likely[0] else Judgement.KEPT
