"""Results of a cross-validation: predictions and intervals of rows that were held out, and comparisons of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformal_gp.arrays import Array, Indices, Mask
from conformal_gp.conformal.levels import read_levels, rows_needed
from conformal_gp.evaluation.findings import USUAL, Finding, Judgement, Level, one_set_range
from conformal_gp.extrapolation import Grid
from conformal_gp.formatting import number, percent

# Differences of coverage of less than this many standard errors may be chance.
STANDARD_ERRORS = 2.0
# What the guarantee bought, by the verdict on the standard GP, the worst first, and by that on conformal intervals.
OPENINGS = {
    Judgement.TOO_NARROW: "The guarantee raised coverage",
    Judgement.IN_DOUBT: "The guarantee raised coverage, if not by chance",
    Judgement.TOO_WIDE: "The guarantee lowered coverage to its level",
    Judgement.WITHIN: "On this table the guarantee bought assurance, not coverage",
    Judgement.TOO_FEW: "So few rows cannot tell what the guarantee bought",
    Judgement.AT_LEVELS: "These rows cannot tell what the guarantee buys between the levels of the grid",
    Judgement.INFINITE: "The guarantee made intervals finite",
}
OWN_OPENINGS = {
    Judgement.TOO_NARROW: "The guarantee needs exchangeable rows, and these seem not to be",
    Judgement.AT_LEVELS: OPENINGS[Judgement.AT_LEVELS],
}


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
    beyond: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    """Rows outside the range of the training rows of their fold, (n,)."""
    rows: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Row numbers of the held-out rows in the data, (n,)."""
    n_calibration: int = 0
    """Calibration rows of the first method, in the last fold; 0 if unknown."""
    groups: NDArray[Any] | None = None
    """Groups of the rows, (n,), if coverage is guaranteed within each."""
    p_values: Array = field(default_factory=lambda: np.zeros(0))
    """Conformal p-values of the true values under the first method, (n,); NaN if it has none."""
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

    def _limits(self) -> str:
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

    def conditions(self) -> dict[str, str]:
        """What verdicts depend on, in sentences by topic."""
        sentences = {
            "Held out together": self.together,
            "Replicates": self.replicates,
            "Limits of detection": self._limits(),
        }
        n_beyond = int(self.beyond.sum())
        if n_beyond:
            which = f"{n_beyond:,} of {self.y.size:,} held-out rows lie outside the range of the training rows"
            sentences["Extrapolation"] = f"{which}; the guarantee does not apply to such rows."
        if self.grid is not None:
            sentences["Designed experiment"] = self.grid.condition
        return {topic: sentence for topic, sentence in sentences.items() if sentence}

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


def bought(held_out: HeldOut, ours: str, standard: str) -> str:
    """State in a sentence what the guarantee bought over the standard GP, at the level where that one is worst.

    Examples
    --------
    >>> import numpy as np
    >>> from fractions import Fraction
    >>> from conformal_gp.evaluation import HeldOut
    >>> y = np.arange(200.0)
    >>> ends = {name: np.tile([[low], [199.0]], (200, 1, 1)) for name, low in (("ours", 20.0), ("GP", 50.0))}
    >>> bought(HeldOut(y, [Fraction(9, 10)], {"ours": y, "GP": y}, ends), "ours", "GP")[:71]
    'The guarantee raised coverage: at 90% the GP covered 75.0%, ours 90.0%,'
    """
    findings = held_out.findings()
    worst_first = [*OPENINGS]
    other = min(
        (each for each in findings if each.method == standard),
        key=lambda each: (worst_first.index(each.judgement), abs(each.level - USUAL[0])),
    )
    own = next(each for each in findings if each.method == ours and each.level == other.level)
    if own.judgement == Judgement.INFINITE:
        return f"At {percent(own.level)} there are too few rows for the guarantee."
    opening = OPENINGS[other.judgement]
    if own.judgement in OWN_OPENINGS:
        opening = OWN_OPENINGS[own.judgement]
    width = ""
    if 0.0 < other.median_width < math.inf and own.median_width < math.inf:
        times = number(own.median_width / other.median_width, 2)
        width = f", with intervals {times} times as wide"
        if times == "1":
            width = ", with intervals as wide"
    return (
        f"{opening}: at {percent(own.level)} the {standard} covered {percent(other.coverage, 1)}, {ours} "
        f"{percent(own.coverage, 1)}{width}."
    )


def in_comparison(held_out: HeldOut, random_folds: HeldOut, by: str | None, batches: NDArray[Any] | None) -> str:
    """Compare coverage and width of conformal intervals, in a sentence that says which of both to expect."""
    own = held_out.findings()[0]
    other = random_folds.findings()[0]
    what = "later rows, predicted from earlier ones"
    which = "later rows"
    if by is not None:
        what = f"rows of a new {by}"
        which = what
    said = (
        f"{percent(own.level)} intervals covered {percent(own.coverage, 1)} of {what} "
        f"(median width {number(own.median_width)}), and {percent(other.coverage, 1)} of rows at random "
        f"({number(other.median_width)})."
    )
    variance = own.coverage * own.miscoverage / own.n_rows
    if batches is not None:
        variance = _variance_by_batches(held_out, batches[held_out.rows])
    spread = (variance + other.coverage * other.miscoverage / other.n_rows) ** 0.5
    guarantee = "The guarantee is for rows like the training rows"
    if own.coverage >= min(float(own.level), other.coverage):
        return f"{said} {guarantee}; there is no sign that {which} differ from them."
    if other.coverage - own.coverage > STANDARD_ERRORS * spread:
        return f"{said} {guarantee}, and {which} differ from them: expect the first coverage, not the second."
    return f"{said} {guarantee}; there are too few rows to tell whether {which} differ from them."


def _variance_by_batches(held_out: HeldOut, batches: NDArray[Any]) -> float:
    """Variance of the coverage, batches being independent and their rows not."""
    low, high = next(iter(held_out.intervals.values()))[:, :, 0].T
    covered = (low <= held_out.y) & (held_out.y <= high)
    names = np.unique(batches)
    excess = [float((covered[batches == name] - covered.mean()).sum()) for name in names]
    return float(np.sum(np.square(excess))) / covered.size**2 * names.size / (names.size - 1)
