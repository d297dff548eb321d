r"""Explanations of intervals: the factors of their widths, and the training rows that determine their bounds.

A bound of an interval is a value at which the test row's score ties with that of a calibration row: that row
*determines* it. Scores of rows of variance s and scale g are residuals over :math:`s^{1/\gamma} g`, so widths are in
proportion to these; docs/explaining.md names the factors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from conformal_gp.answers import Block, Model, Part, Question
from conformal_gp.arrays import Array, Indices, Mask
from conformal_gp.calibration import GroupsLike, RatioLike, effective_rows, split_ratio, training_ratios
from conformal_gp.conformal import lines, search
from conformal_gp.conformal.curves import Curves
from conformal_gp.conformal.levels import Needed, rank, read_one_level, rows_needed
from conformal_gp.extrapolation import beyond
from conformal_gp.gp.covariance import covariance, shared_variance
from conformal_gp.gp.inputs import NewInputs
from conformal_gp.predictions import Predictions
from conformal_gp.rows import Rows
from conformal_gp.threads import slices

__all__ = ["Explanation"]

# Most correlations of test rows with training rows that are held at a time.
CORRELATIONS = 2**24
# Factors within this of 1 are not worth a word; words for those by which rows differ, above and below 1.
WORTH_A_WORD = 1.1
IN_WORDS = {
    "distance": ("farther from training rows than most", "nearer to training rows than most"),
    "noise": ("more noise than usual", "less noise than usual"),
    "difficulty": ("harder to predict than most", "easier to predict than most"),
}
DECIDERS = {
    "rows": "several rows that tie",
    "bound": "a bound of the target",
    "limit": "a limit of detection",
    "nothing": "the end of the range of the target",
}


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why intervals are as wide as they are; made by ``explain_interval``, an entry for each test row.

    The width is that of the standard GP at a typical calibration row times ``distance * noise * difficulty * rank *
    scores``, before values are transformed back and intervals cut.

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> print(model.explain_interval([[1.0]]))
    Width inf: 95% needs 19 calibration rows, there are 3; at 75%, ... Nearest training rows: 1, 0, 2.
    """

    confidence_level: float
    n_calibration: Indices
    """(n,): number of rows that each test row is compared with."""
    interval: Array
    """(n, 2): as ``predict_interval`` gives it."""
    row: Indices
    """(n, 2): numbers of the training rows, from 0, that determine the bounds; -1 where not one row does."""
    decided_by: NDArray[np.str_]
    """(n, 2): "row", or why it is not one: "rows" (several tie), "rank" (too few calibration rows for the level),
    "mean" (the training rows do not determine the mean function there), "bound" (targets end there), "limit" (true
    values beyond a limit of detection are not known), "nothing" (the set has no end)."""
    next_width: Array
    """(n,): width if the next rows determined the bounds; with too few calibration rows, at the level they support."""
    distance: Array
    """(n,): factor of the variance at the usual noise, relative to the median over calibration rows."""
    noise: Array
    """(n,): of the noise, relative to the median over training rows, or tuning rows of a low-rank GP."""
    difficulty: Array
    """(n,): of the scale of residuals, relative to the median over calibration rows."""
    rank: Array
    """(n,): of the level that so few calibration rows support."""
    scores: Array
    """(n,): of the residuals of calibration rows, relative to what the GP expects."""
    nearest: Indices
    """(n, n_nearest): numbers of the training rows of the highest correlation with each test row under ``kernel_``."""

    @property
    def width(self) -> Array:
        """Widths of the intervals, in units of the target."""
        return self.interval[:, 1] - self.interval[:, 0]

    def sentences(self, row_names: Sequence[Any] | None = None) -> list[str]:
        """Sentences on each interval; ``row_names`` is what the training rows are called."""
        name = str if row_names is None else lambda row: str(row_names[row])
        found = [f"Width {width:.3g}{self._why(i, name)}." for i, width in enumerate(self.width)]
        if not self.nearest.shape[1]:
            return found
        near = [", ".join(map(name, rows)) for rows in self.nearest]
        return [f"{said} Nearest training rows: {rows}." for said, rows in zip(found, near, strict=True)]

    def _why(self, i: int, name: Callable[[int], str]) -> str:
        n = self.n_calibration[i]
        level = f"{100 * self.confidence_level:.3g}%"
        if "rank" in self.decided_by[i]:
            needed = rows_needed(Fraction(self.confidence_level).limit_denominator(10**6))
            can = f"at {100 * n / (n + 1):.3g}%, the highest level that they support, it is {self.next_width[i]:.3g}"
            return f": {level} needs {needed} calibration rows, there are {n}; {can}"
        if "mean" in self.decided_by[i]:
            return ": the training rows do not determine the mean function there"
        if "limit" in self.decided_by[i] and not np.isfinite(self.width[i]):
            return ": the interval reaches a limit of detection, beyond which true values are not known"
        if not np.isfinite(self.width[i]):
            return ": scores of some rows grow with the target as fast as its own"
        own = float(self.distance[i] * self.noise[i] * self.difficulty[i])
        expected = f"The GP expects {own:.2g}x the width of a typical row"
        reasons = [_in_words(getattr(self, factor)[i], *words) for factor, words in IN_WORDS.items()]
        if any(reasons):
            expected += f": {', '.join(filter(None, reasons))}"
        few = _in_words(self.rank[i], f"{n} calibration rows are few for {level}", "")
        errors = "Calibration errors are {} than the GP expects"
        scores = _in_words(self.scores[i], errors.format("larger"), errors.format("smaller"))
        return ". " + ". ".join(filter(None, [expected, few, scores, self._decided(i, name)]))

    def _decided(self, i: int, name: Callable[[int], str]) -> str:
        """What determines the bounds, and the width if the next rows did."""
        each = zip(self.row[i], self.decided_by[i], strict=True)
        lower, upper = (DECIDERS.get(by, f"row {name(row)}") for row, by in each)
        said = f"The lower bound is determined by {lower}, the upper one by {upper}"
        if lower == upper:
            said = f"Both bounds are determined by {lower}"
        if self.width[i] > WORTH_A_WORD * self.next_width[i]:
            said += f"; with the next rows the width would be {self.next_width[i]:.3g}"
        return said

    def __str__(self) -> str:
        return "\n".join(self.sentences())


def _in_words(factor: float, above: str, below: str) -> str:
    """Words for a factor, with the factor; nothing where it is near 1."""
    said = ""
    if factor > WORTH_A_WORD:
        said = above
    elif factor < 1.0 / WORTH_A_WORD:
        said = below
    return said and f"{said} ({factor:.2g}x)"


class ExplainedIntervals(Predictions):
    """Explanations of both regressors' intervals: see ``docs/explaining.md``."""

    kernel_: Kernel
    noise_variance_: float
    gamma_: float
    y_bounds_: tuple[float, float]

    def explain_interval(
        self,
        X: ArrayLike,
        confidence_level: float = 0.95,
        n_nearest: int = 3,
        y_variance: ArrayLike | None = None,
        *,
        groups: GroupsLike = None,
    ) -> Explanation:
        """Explain why each interval is as wide as it is, and which training rows determine its bounds.

        Parameters
        ----------
        X, y_variance, groups
            As in :meth:`predict_interval`; likelihood ratios are not taken.
        confidence_level : float, default=0.95
            One level strictly between 0 and 1.
        n_nearest : int, default=3
            How many of the nearest training rows to find, by correlation under ``kernel_``.

        Returns
        -------
        explanation : Explanation
            Arrays with an entry for each row, and a sentence for each by ``sentences()`` or ``print``.

        Examples
        --------
        >>> import numpy as np
        >>> from conformal_gp import ConformalGPRegressor
        >>> X = np.linspace(0, 3, 40)[:, None]
        >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.cos(50 * X[:, 0])
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.01, scale_inputs=False).fit(X, y)
        >>> found = model.explain_interval([[1.0], [3.2]], confidence_level=0.9)
        >>> found.row.tolist(), found.nearest.tolist(), found.distance.round(2)
        ([[5, 5], [35, 13]], [[13, 12, 14], [39, 38, 37]], array([0.99, 1.64]))
        """
        rows = self._test_rows(X, y_variance, groups, None)
        level = read_one_level(confidence_level, "explain_interval")
        if isinstance(n_nearest, bool) or not isinstance(n_nearest, int | np.integer) or n_nearest < 0:
            raise ValueError(f"n_nearest must be a whole number of at least 0, got {n_nearest!r}.")
        with np.errstate(divide="ignore", invalid="ignore"):
            found = [self._explained(level, part) for part in rows.parts]
        columns: dict[str, Any] = {name: rows.joined([part[name] for part in found]) for name in found[0]}
        columns["row"] = self._numbers(columns["row"])
        nearest = self._numbers(self._nearest(rows.new, int(n_nearest)))
        return Explanation(float(level), nearest=nearest, **columns)

    def effective_rows(self, likelihood_ratio: RatioLike) -> float | dict[Any, float]:
        r"""Effective number of calibration rows under a likelihood ratio.

        Parameters
        ----------
        likelihood_ratio : callable or pair of arrays
            As in :meth:`predict_interval`; of a pair, only the training rows' ratios are used.

        Returns
        -------
        n_effective : float, or dict from group to float
            :math:`(\sum w)^2 / \sum w^2` over the calibration rows; of each group, where ``fit`` was given groups. With
            equal ratios it is their number, and it falls to 1 as one row outweighs the others.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> model.effective_rows(lambda X: X[:, 0])
        1.8
        """
        check_is_fitted(self)
        weights = training_ratios(self, split_ratio(likelihood_ratio)[0])
        if self._groups is None:
            return effective_rows(weights[self._answers.model.calibration])
        found = [effective_rows(weights[answers.model.calibration]) for answers in self._group_answers]
        return dict(zip(self._groups.labels, found, strict=True))

    def beyond_training(self, X: ArrayLike) -> Mask:
        """Find inputs far outside the training range, where intervals rely on the model alone.

        They exceed ``input_range_`` by more than a tenth, and by more than inputs of fewer than one in a hundred rows
        that are exchangeable with the training rows. Predictions for such rows come with an
        :class:`~conformal_gp.ExtrapolationWarning`. Rows that are unusual only in combination are not found.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test inputs.

        Returns
        -------
        beyond : ndarray of bool of shape (n_samples, n_features)
            True where the input is out of range; use ``.any(axis=1)`` per row.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> model.beyond_training([[2.3], [230.0]]).tolist()
        [[False], [True]]
        """
        return beyond(self._checked_inputs(X), self._input_box)

    def _explained(self, level: Fraction, part: Part) -> dict[str, Any]:
        """Explanations of test rows that are compared with the same calibration rows, without nearest rows."""
        new = part.new
        answers = part.answers
        case = answers.cases[0]
        model = case.model
        n = answers.n_calibration
        k = rank(level, n)
        ranks = [k, min(k + 1, n)]
        recorded = answers.of_recorded.about(new).intervals([1 - Fraction(one, n + 1) for one in ranks])
        both = answers.target.limits.extend(recorded)
        beyond_limit = (both != recorded)[:, :, 0]
        # rows that are not among those of the case, being outside bounds, cover all values in question
        n_outside = n - model.calibration.size
        (inner,) = case.ends(new, [(0, Needed.of_ranks([max(k - n_outside, 0)]))])
        inner = inner[:, :, 0]
        ends = both[:, :, 0]
        widths = both[:, 1] - both[:, 0]
        finite = np.isfinite(inner)
        tied, row = _deciding(model, new, np.where(finite, inner, 0.0))
        cut = np.isfinite(ends) & np.isin(ends, self.y_bounds_)
        if n_outside:  # an end beyond, which a value beyond makes possible
            cut |= np.isfinite(ends) & ((ends < self.y_bounds_[0]) | (ends > self.y_bounds_[1]))
        variance = model.moments(new)[1]
        typical, typical_scale = model.typical()
        reasons = [k == 0, beyond_limit, cut, finite & (tied == 1), finite, np.isinf(variance)[:, None]]
        decided_by = np.select(reasons, ["rank", "limit", "bound", "row", "rows", "mean"], "nothing")
        unit = self._tuned.target.unit**2
        noise = self._noise(model.inputs.new(new)) / unit
        typical_noise = np.median(self._noise(model.inputs)) / unit
        at_typical_noise = np.maximum(variance - noise, 0.0) + typical_noise
        scale = np.ones(len(new.X))
        if model.difficulty is not None:
            scale = model.difficulty(new).scale
        factors = {
            "distance": (at_typical_noise / typical) ** (1.0 / self.gamma_),
            "noise": (variance / at_typical_noise) ** (1.0 / self.gamma_),
            "difficulty": scale / typical_scale,
        }
        z, z_had = -ndtri([float(1 - level) / 2, k / (n + 1) / 2])
        expected = 2.0 * z_had * np.sqrt(typical) * np.prod([*factors.values()], axis=0)
        return factors | {
            "n_calibration": np.full(len(new.X), n),
            "interval": ends,
            "row": np.where(decided_by == "row", row, -1),
            "decided_by": decided_by,
            "next_width": widths[:, 1] if k < n else np.zeros(len(new.X)),
            "rank": np.full(len(new.X), z_had / z),
            "scores": (inner[:, 1] - inner[:, 0]) / expected,
        }

    def _noise(self, rows: Any) -> Array:
        """Noise variances of rows as the kernel sees them, white noise inside the kernel included."""
        white = self.kernel_.diag(rows.X) - shared_variance(self.kernel_, rows.X)
        return rows.noise(self.noise_variance_) + white

    def _nearest(self, new: Rows, n: int) -> Indices:
        """Training rows of highest correlation with each test row, from the nearest on."""
        n = min(n, self._source.n_rows)
        see = self._answers.model.inputs.new
        found = np.empty((len(new.X), n), dtype=np.int64)
        for part in slices(len(new.X), max(1, CORRELATIONS // self._source.n_rows)) if n else ():
            correlations = partial(_correlations, self.kernel_, see, see(new.take(part)).X)
            found[part] = np.argsort(-self._source.each(correlations, "correlations"), axis=1, kind="stable")[:, :n]
        return found


def _deciding(model: Model, new: Rows, ends: Array) -> tuple[Indices, Indices]:
    """How many calibration rows tie with test rows at ends of their intervals, (m, 2), and the number of one.

    ``ends`` are in units of the model, without bounds.
    """
    tied = np.empty(ends.shape, dtype=np.int64)
    row = np.empty(ends.shape, dtype=np.int64)
    for column, values in enumerate(ends.T):

        def fill(block: Block, column: int = column, values: Array = values) -> None:
            if isinstance(block.scores, Curves):
                ties, nearest = search.tied_rows(block.scores, values[block.rows])
            else:
                ties, nearest = lines.tied_rows(block.scores, values[block.rows])
            if block.calibration is not None:
                nearest = block.calibration[nearest]
            tied[block.rows, column] = ties
            row[block.rows, column] = model.calibration[nearest]

        model.visit(new, Question(labels=values), fill)
    return tied, row


def _correlations(kernel: Kernel, see: Callable[[Rows], NewInputs], new: Array, rows: Rows, y: Array) -> Array:
    """Of new inputs with a block of training rows, (m, n); up to a factor for each new input."""
    X = see(rows).X
    return covariance(kernel, new, X)[0] / np.sqrt(np.maximum(shared_variance(kernel, X), np.finfo(float).tiny))
