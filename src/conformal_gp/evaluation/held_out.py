"""Results of a cross-validation: findings on all rows and on subgroups, what they depend on, comparisons and advice.

The guarantee is over all rows together, and misses may gather in a subgroup. Many subgroups are tested, so the error
probability of the judgement on each of m subgroups is :math:`1 / m` of the usual one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from conformal_gp.arrays import Array, Indices, Mask
from conformal_gp.conformal.levels import read_levels, rows_needed
from conformal_gp.evaluation.findings import EXPECTED_MISSES, USUAL, Finding, Judgement, Level, one_set_range
from conformal_gp.extrapolation import Grid, columns_of
from conformal_gp.formatting import number, percent

N_PARTS = 5
# Misses are one-sided below this p-value of a sign test.
ONE_SIDED = 0.01
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
# Options of the command for the parameters that advice names.
OPTIONS = {
    "(difficulty=)": "(in Python: difficulty=a regressor)",
    "(groups=)": "(--groups)",
    "target_transform='yeo-johnson'": "--target-transform yeo-johnson",
    " or equal tails (tails='equal')": "",
    "(tuning='holdout', tuning_rows=their row numbers)": "(in Python: tuning='holdout', tuning_rows=their row numbers)",
}


def in_options(advice: str) -> str:
    """Name options of the command where advice names parameters."""
    for parameter, option in OPTIONS.items():
        advice = advice.replace(parameter, option)
    return advice


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

    def at(self, confidence_level: Level | Iterable[Level]) -> HeldOut:
        """Return the same at some of the levels."""
        levels = read_levels(confidence_level)[0]
        places = [self.levels.index(level) for level in levels]
        intervals = {name: every[:, :, places] for name, every in self.intervals.items()}
        return replace(self, levels=levels, intervals=intervals)

    def findings(self) -> list[Finding]:
        """Findings on each method at each level."""
        return [self._finding(name, level) for level in self.levels for name in self.intervals]

    def by_group(self) -> list[Finding]:
        """Findings on the first method in each group, at each level; empty without groups."""
        if self.groups is None:
            return []
        name = next(iter(self.intervals))
        labels = dict.fromkeys(self.groups)
        return [
            self._finding(name, level, self.groups == label, among=f"group {label}", n_parts=len(labels))
            for level in self.levels
            for label in labels
        ]

    def by_part(self, X: Any = None) -> list[Finding]:
        """Findings on the first method by fifths of its prediction and of each column, or by category, at each level.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features), or None, default=None
            Inputs of these rows; None takes the prediction alone.

        Returns
        -------
        parts : list of Finding
            ``among`` names the rows. Equal values stay together, so a column may have fewer than five parts, or none.

        Examples
        --------
        Noise that grows with the input, and intervals that do not:

        >>> import numpy as np
        >>> from fractions import Fraction
        >>> from conformal_gp.evaluation import HeldOut
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(size=1000)
        >>> ends = {"a": np.tile([[-3.0], [3.0]], (1000, 1, 1))}
        >>> held_out = HeldOut(3 * x * rng.standard_normal(1000), [Fraction(9, 10)], {"a": np.zeros(1000)}, ends)
        >>> [(part.among, part.judgement.value) for part in held_out.by_part(x[:, None])][-1]
        ('x0 is 0.8133 to 0.9995', 'too narrow')
        """
        name = next(iter(self.intervals))
        columns = {"prediction": self.prediction[name]}
        if X is not None:
            columns |= columns_of(X)
        parts = [(f"{column} is {where}", rows) for column, values in columns.items() for where, rows in _parts(values)]
        return [
            self._finding(name, level, rows, among=among, n_parts=len(parts))
            for level in self.levels
            for among, rows in parts
        ]

    def too_narrow(self, X: Any = None) -> list[Finding]:
        """Groups and parts whose intervals are significantly too narrow, the worst first."""
        narrow = [part for part in self.by_group() + self.by_part(X) if part.judgement == Judgement.TOO_NARROW]
        return sorted(narrow, key=lambda part: part.coverage)

    def _finding(self, name: str, level: Fraction, rows: Any = ..., **described: Any) -> Finding:
        """Finding on some rows."""
        n_batches = 0
        if self.batches is not None:
            n_batches = np.unique(self.batches[rows]).size
        ends = self.intervals[name][rows, :, self.levels.index(level)]
        on_grid = self.grid is not None
        return Finding.of(name, level, self.y[rows], ends, on_grid=on_grid, n_batches=n_batches, **described)

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

    def conditions(self) -> dict[str, str]:
        """What verdicts depend on, in sentences by topic."""
        sentences = {"Held out together": self.together, "Replicates": self.replicates}
        if self.censoring is not None:
            name, ends = next(iter(self.intervals.items()))
            n_open = (np.isinf(ends).sum(axis=1) == 1).sum(axis=0)
            counts = [f"{n} at {percent(level)}" for n, level in zip(n_open, self.levels, strict=True)]
            sentences["Limits of detection"] = (
                f"{np.count_nonzero(self.censoring)} of {self.y.size} rows are beyond a limit of detection, and count "
                "as covered where the interval contains the limit. Open beyond a limit are "
                f"{', '.join(counts)} of the {name} intervals."
            )
        n_beyond = int(self.beyond.sum())
        if n_beyond:
            which = f"{n_beyond:,} of {self.y.size:,} held-out rows lie outside the range of the training rows"
            sentences["Extrapolation"] = f"{which}; the guarantee does not apply to such rows."
        if self.grid is not None:
            sentences["Designed experiment"] = self.grid.condition
        return {topic: sentence for topic, sentence in sentences.items() if sentence}

    def error(self) -> str:
        """Describe the errors of the first method's predictions, in a sentence: medians, as one row may be far off."""
        miss = np.median(np.abs(self.y - next(iter(self.prediction.values()))))
        scatter = np.median(np.abs(self.y - np.median(self.y)))
        return f"Median absolute error {number(miss)} (always predicting the median: {number(scatter)})."

    def advice(self, X: Any = None, *, command: bool = False) -> str:
        """Advise in a sentence what would improve the first method's intervals most; empty if figures show nothing.

        Tested, in this order: a designed grid, too few rows for a level, a subgroup with too narrow intervals, misses
        on one side, and too few rows for a verdict. ``X`` has the inputs of the held-out rows. Advice names options of
        the ``command``, or parameters in Python.

        Examples
        --------
        >>> import numpy as np
        >>> from fractions import Fraction
        >>> from conformal_gp.evaluation import HeldOut
        >>> ends = {"mine": np.tile([[-np.inf], [np.inf]], (40, 1, 1))}
        >>> HeldOut(np.zeros(40), [Fraction(99, 100)], {"mine": np.zeros(40)}, ends).advice()
        'More rows, or a lower level: 99% needs at least 99 calibration rows.'
        """
        if self.grid is not None:
            helps_most = self.grid.remedy
        else:
            level = min(self.levels, key=lambda level: abs(level - USUAL[0]))
            usual = self.at([level])
            finding = usual.findings()[0]
            helps_most = self._more_rows() or usual._more_alike(X) or _one_sided(finding) or _too_few(finding)
        if command:
            helps_most = in_options(helps_most)
        return helps_most

    def _more_rows(self) -> str:
        """Advise more rows where intervals are infinite for lack of them.

        With limits of detection an interval may also reach a lower and an upper one.
        """
        name = next(iter(self.intervals))
        lacking = [
            level
            for level in self.levels
            if self._finding(name, level).n_infinite
            and (self.censoring is None or rows_needed(level) > self.n_calibration)
        ]
        if not lacking:
            return ""
        what = self.calibration
        needed = f"{percent(min(lacking))} needs at least {rows_needed(min(lacking))} calibration {what}"
        if self.groups is not None:
            needed += " in each group"
        return f"More {what}, or a lower level: {needed}."

    def _more_alike(self, X: Any) -> str:
        """Advise groups or a difficulty where a part has too narrow intervals."""
        narrow = [part for part in self.by_part(X) if part.judgement == Judgement.TOO_NARROW]
        if not narrow:
            return ""
        worst = min(narrow, key=lambda part: part.coverage)
        where = f"where {worst.among}, {percent(worst.level)} intervals covered only {percent(worst.coverage, 1)}"
        column = worst.among.rsplit(" is ", 1)[0]
        if X is not None and column in columns_of(X) and columns_of(X)[column].dtype.kind == "U":
            return f"More rows of this kind, or intervals valid in each category (groups=): {where}."
        return f"More rows of this kind, or a difficulty model (difficulty=): {where}."


def _one_sided(finding: Finding) -> str:
    """Advise a target transformation where misses are on one side."""
    if not finding.n_outside or binomtest(finding.n_above, finding.n_outside).pvalue >= ONE_SIDED:
        return ""
    sides = f"{finding.n_above} values lie above their {percent(finding.level)} intervals and {finding.n_below} below"
    return f"A target transformation (target_transform='yeo-johnson') or equal tails (tails='equal'): {sides}."


def _too_few(finding: Finding) -> str:
    """Advise more rows where there are too few for a verdict."""
    if finding.judgement != Judgement.TOO_FEW:
        return ""
    enough = math.ceil(EXPECTED_MISSES / (1 - finding.level))
    what = "batches" if finding.n_batches else "rows"
    return (
        f"More {what}: a verdict on {percent(finding.level)} needs about {enough}, and there are "
        f"{finding.n_independent}."
    )


def _parts(values: NDArray[Any]) -> Iterator[tuple[str, Mask]]:
    """Yield a name and the rows of each category, or of each fifth of the values."""
    distinct = np.unique(values)
    if distinct.size == 1:
        return
    if values.dtype.kind == "U":
        for value in distinct:
            yield str(value), values == value
        return
    edges = distinct
    if distinct.size > N_PARTS:
        edges = np.unique(np.quantile(values, np.linspace(0.0, 1.0, N_PARTS + 1)[1:], method="inverted_cdf"))
    fifth = np.searchsorted(edges, values)
    for k in np.unique(fifth):
        rows = fifth == k
        low = number(values[rows].min())
        high = number(values[rows].max())
        if low == high:
            yield low, rows
        else:
            yield f"{low} to {high}", rows


def bought(held_out: HeldOut, ours: str, standard: str) -> str:
    """State in a sentence what the guarantee bought over the standard GP, at the level where that one is worst."""
    findings = held_out.findings()
    worst_first = [*OPENINGS]
    other = min(
        (each for each in findings if each.method == standard),
        key=lambda each: (worst_first.index(each.judgement), abs(each.level - USUAL[0])),
    )
    own = next(each for each in findings if each.method == ours and each.level == other.level)
    if own.judgement == Judgement.INFINITE:
        return f"At {percent(own.level)} there are too few rows for the guarantee."
    opening = OWN_OPENINGS.get(own.judgement, OPENINGS[other.judgement])
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
