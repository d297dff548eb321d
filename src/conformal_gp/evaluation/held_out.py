"""Results of a cross-validation: predictions and intervals of rows that were held out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformal_gp.arrays import Array, Indices, Mask
from conformal_gp.conformal.levels import read_levels, rows_needed
from conformal_gp.design import Grid
from conformal_gp.evaluation.findings import USUAL, Finding, Level, one_set_range
from conformal_gp.formatting import number, percent


@dataclass(frozen=True)
class HeldOut:
    """Predictions of n rows that were held out, by one or several methods; made by :func:`cross_validate_intervals`.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp.evaluation import HeldOut
    >>> intervals = {"mine": np.array([[[0.0], [2.0]], [[1.0], [3.0]]])}
    >>> HeldOut(np.array([1.0, 9.0]), [0.5], {"mine": np.array([1.0, 2.0])}, intervals).findings()[0].n_outside
    1
    """

    y: Array
    """True values of the target, (n,)."""
    levels: list[Fraction]
    prediction: dict[str, Array]
    """Predictions of each method, (n,)."""
    intervals: dict[str, Array]
    """Lower and upper bounds of each method, (n, 2, levels)."""
    importance: dict[str, float] = field(default_factory=dict)
    """Permutation importance: relative increase of the first method's mean absolute error, the greatest first."""
    beyond: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    """Rows outside the range of the training rows of their fold, (n,)."""
    rows: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Row numbers of the held-out rows in the data, (n,)."""
    n_calibration: int = 0
    """Calibration rows of the first method, in the last fold; 0 if unknown."""
    groups: NDArray[Any] | None = None
    """Groups of the rows, (n,), if coverage is guaranteed within each."""
    p_values: Array = field(default_factory=lambda: np.zeros(0))
    """Conformal p-values of the true values under the first method, (n,); empty if it has none."""
    grid: Grid | None = None
    """The designed grid that the rows of the data are, if they are one."""
    together: str = ""
    """What rows were held out together, in a sentence; empty if rows were held out at random."""
    replicates: str = ""
    """How much replicates differ, beside the noise of the models, in a sentence; empty without replicates."""
    batches: NDArray[Any] | None = None
    """Batches of the rows, (n,), if whole batches were held out."""
    calibration: str = "rows"
    """What calibrates: "rows", or one row of each of some "batches"."""
    censoring: Indices | None = None
    """Whether true values are at most ``y`` (-1), at least ``y`` (1) or equal, (n,); None if all were observed."""

    def one_set(self) -> str:
        """Describe the variability of coverage over training sets, in a sentence; empty if it is unknown."""
        level = next((level for level in self.levels if level >= USUAL[0]), self.levels[-1])
        if rows_needed(level) > self.n_calibration:
            return ""
        low, high = 100.0 * one_set_range(level, self.n_calibration)
        return (
            "The guarantee is an average over training sets. With a training set of this size, actual coverage of "
            f"{percent(level)} intervals is between {low:.0f}% and {high:.0f}% in nine cases out of ten."
        )

    def limits(self) -> str:
        """Describe intervals that reach a limit of detection, in a sentence; empty if all targets were observed."""
        if self.censoring is None:
            return ""
        name, ends = next(iter(self.intervals.items()))
        one_ended = np.isinf(ends).sum(axis=1) == 1
        n_open = [f"{one_ended[:, i].sum()} at {percent(level)}" for i, level in enumerate(self.levels)]
        return (
            f"{np.count_nonzero(self.censoring)} of {self.y.size} rows are beyond a limit of detection, and count as "
            f"covered where the interval contains the limit. Open beyond a limit are {', '.join(n_open)} of the "
            f"{name} intervals."
        )

    def conditions(self) -> list[str]:
        """What verdicts depend on: rows held out together, limits of detection, extrapolation, a designed grid."""
        sentences = [self.together, self.replicates, self.limits()]
        n_beyond = int(self.beyond.sum())
        if n_beyond:
            sentences.append(
                f"{n_beyond} of {self.y.size} rows lie outside the range of the training data; the guarantee does not "
                "apply to them."
            )
        if self.grid is not None:
            sentences.append(self.grid.condition)
        return [sentence for sentence in sentences if sentence]

    def lacks_rows(self, level: Fraction) -> bool:
        """Whether an infinite interval is for lack of rows; it may also reach a lower and an upper limit of detection.

        Rows are not lacking where there are enough calibration rows, which are not known with groups.
        """
        return self.censoring is None or rows_needed(level) > self.n_calibration

    def error(self) -> str:
        """Describe the errors of the first method's predictions, in a sentence: medians, as one row may be far off."""
        miss = np.median(np.abs(self.y - next(iter(self.prediction.values()))))
        scatter = np.median(np.abs(self.y - np.median(self.y)))
        return f"Median absolute error {number(miss)} (always predicting the median: {number(scatter)})."

    def at(self, levels: Sequence[Fraction]) -> HeldOut:
        """Return the same at some of the levels."""
        places = [self.levels.index(level) for level in levels]
        intervals = {name: every[:, :, places] for name, every in self.intervals.items()}
        return replace(self, levels=list(levels), intervals=intervals)

    def findings(self, confidence_level: Iterable[Level] | None = None) -> list[Finding]:
        """Findings on each method at each level, or at each of those given."""
        return [
            Finding.of(
                name,
                level,
                self.y,
                intervals[:, :, self.levels.index(level)],
                on_grid=self.grid is not None,
                n_batches=self.n_batches(),
            )
            for level in self._read(confidence_level)
            for name, intervals in self.intervals.items()
        ]

    def n_batches(self, rows: Any = ...) -> int:
        """Number of batches of some rows; 0 if rows were not held out in batches."""
        if self.batches is None:
            return 0
        return np.unique(self.batches[rows]).size

    def by_group(self, confidence_level: Iterable[Level] | None = None) -> list[Finding]:
        """Findings on the first method in each group, at each level or each of those given; empty without groups."""
        if self.groups is None:
            return []
        name, intervals = next(iter(self.intervals.items()))
        labels = dict.fromkeys(self.groups)
        described: dict[str, Any] = {"n_parts": len(labels), "on_grid": self.grid is not None}
        found = []
        for level in self._read(confidence_level):
            ends = intervals[:, :, self.levels.index(level)]
            for label in labels:
                rows = self.groups == label
                described |= {"among": f"group {label}", "n_batches": self.n_batches(rows)}
                found.append(Finding.of(name, level, self.y[rows], ends[rows], **described))
        return found

    def _read(self, confidence_level: Iterable[Level] | None) -> list[Fraction]:
        if confidence_level is None:
            return self.levels
        return read_levels(confidence_level)[0]
