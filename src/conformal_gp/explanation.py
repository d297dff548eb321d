r"""Why an interval is as wide as it is, and which training rows decide its ends.

An end of an interval is a label at which the test row's score ties with that of a ranked row: that row *decides* it. In
the notation of docs/theory.md the scores of rows of variance s and difficulty g are residuals over :math:`s^{1/\gamma}
g`, so widths are in proportion to these. Let :math:`\nu` be the noise in s, :math:`s_*`, :math:`\nu_*` and :math:`g_*`
those of a typical row, and :math:`z_c` the number of standard deviations on either side of the mean that hold a share c
of a Gaussian distribution. The width at level c is

.. math::
    \underbrace{2 z_c \sqrt{s_*}}_\text{reference} \cdot
    \underbrace{\left( \frac{s - \nu + \nu_*}{s_*} \right)^{1/\gamma}}_\text{distance} \cdot
    \underbrace{\left( \frac{s}{s - \nu + \nu_*} \right)^{1/\gamma}}_\text{noise} \cdot
    \underbrace{\frac{g}{g_*}}_\text{difficulty} \cdot
    \underbrace{\frac{z_{1 - k/(n + 1)}}{z_c}}_\text{rank} \cdot \text{scores},

where k is the rank among the n ranked rows, and the last factor is what is left: how much larger residuals of ranked
rows are than the process says, at the place that decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.conformal.levels import rank, read_levels, rows_needed
from conformal_gp.gp.covariance import covariance, shared_variance
from conformal_gp.gp.inputs import NewInputs, Points
from conformal_gp.predictors.base import Predictor
from conformal_gp.rows import ArrayRows
from conformal_gp.threads import slices
from conformal_gp.types import Array, Rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Explanation"]

# Test rows whose nearest training rows are found together; training rows that are read, and test rows that are compared
# with them, at a time.
BATCH_ROWS = 4096
BLOCK_ROWS = 8192
COMPARED_ROWS = 256
# An end that stays where it is if its interval is made narrower by this share lies at the end of the labels' range.
INWARDS = 1e-3
# Factors within this of 1 are not worth a word.
WORTH_A_WORD = 1.1
# Words for factors above and below 1 by which rows differ.
IN_WORDS = {
    "distance": ("farther from training rows than most", "nearer to training rows than most"),
    "noise": ("more noise than usual", "less noise than usual"),
    "difficulty": ("harder to predict than most", "easier to predict than most"),
    "transformation": ("widened by the map of labels", "narrowed by the map or the bounds of labels"),
}
# What gives a region an end.
WITH_END = {"row", "hyperparameters", "bound"}


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why intervals are as wide as they are; made by ``explain_interval``, an entry for each test row.

    The width is ``reference * distance * noise * difficulty * rank * scores``. With ``warp`` that is the width of the
    transformed label's interval, and with ``y_bounds`` it is before the interval is cut.

    Parameters
    ----------
    confidence_level : float
        The level.
    n_ranked : int
        Number of ranked rows.
    interval : ndarray of shape (n_samples, 2)
        Lower and upper end, as ``predict_interval`` gives them.
    row : ndarray of int of shape (n_samples, 2)
        Numbers of the training rows, from 0, that decide the ends: one of them, if several tie. -1 where none does.
    decided_by : ndarray of str of shape (n_samples, 2)
        "row", or why there is none: "rank" (too few ranked rows for the level), "mean" (the training rows do not
        determine the mean function there), "hyperparameters" (inside the bag, other ones begin at that label), "bound"
        (labels end there, by ``y_bounds`` or by the range of ``warp``), "nothing" (the region goes on for ever).
    next_width : ndarray of shape (n_samples,)
        The width if at each end the next row decided: if the row that does were mistaken, and conformed well. Where the
        level has too few rows, the width at the highest level that has enough.
    reference : float
        Width of the plain process' interval at a typical ranked row, with Gaussian quantiles.
    distance, noise, difficulty : ndarray of shape (n_samples,)
        Factors of the variance without noise, of the noise (1 unless noise variances of rows are known) and of the
        difficulty, each relative to the median over ranked rows; of the noise over training rows, or design rows where
        the process is low-rank. Inside the bag with the hyperparameters that the training rows choose by themselves.
    transformation : ndarray of shape (n_samples,)
        Width over that of the interval that is as wide in transformed labels and has the median training label in its
        middle: 1, but for ``warp`` and ``y_bounds``.
    rank : float
        Factor of the level that can be had, 1 - k / (n_ranked + 1) with a whole number k, at or above that asked for.
    scores : ndarray of shape (n_samples,)
        The factor that is left: above 1 where ranked rows err by more than the process says.
    noise_share : ndarray of shape (n_samples,)
        Share of the new label's variance that is noise: more training rows do not lower it.
    nearest, correlation : ndarrays of shape (n_samples, n_nearest)
        Numbers of the training rows of the highest correlation with the test row under ``kernel_``, and these.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp import ConformalGPRegressor
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.cos(50 * X[:, 0])
    >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.01, scale_inputs=False).fit(X, y)
    >>> found = model.explain_interval([[1.0], [3.2]], confidence_level=0.9)
    >>> found
    <Explanation of 2 intervals at 90%>
    >>> found.row.tolist(), found.nearest.tolist(), found.distance.round(2)
    ([[5, 5], [35, 13]], [[13, 12, 14], [39, 38, 37]], array([0.99, 1.64]))
    >>> print(found)  # doctest: +NORMALIZE_WHITESPACE
    Width 0.221, 0.99 times that of a typical row. For all rows: ranked rows err less than the process says (0.63x).
      Noise is 90.4% of the variance. Both ends are decided by row 5. Nearest training rows: 13, 12, 14.
    Width 0.376, 1.6 times that of a typical row: farther from training rows than most (1.6x). For all rows: ranked rows
      err less than the process says (0.65x). Noise is 33.2% of the variance. Ends are decided by row 35 and row 13.
      Nearest training rows: 39, 38, 37.
    """

    confidence_level: float
    n_ranked: int
    interval: Array
    row: Rows
    decided_by: NDArray[np.str_]
    next_width: Array
    reference: float
    distance: Array
    noise: Array
    difficulty: Array
    transformation: Array
    rank: float
    scores: Array
    noise_share: Array
    nearest: Rows
    correlation: Array

    @property
    def width(self) -> Array:
        """Widths of the intervals, in units of the labels."""
        return self.interval[:, 1] - self.interval[:, 0]

    def to_frame(self, row_names: Sequence[Any] | None = None) -> pd.DataFrame:
        """A pandas frame, a row for each test row; ``row_names`` is what the training rows are called, as an index."""
        import pandas as pd

        def named(numbers: Rows) -> pd.Series:
            missing = pd.Series(numbers, dtype="Int64").where(numbers >= 0)
            return missing if row_names is None else missing.map(lambda row: row_names[row], na_action="ignore")

        columns: dict[str, Any] = {"lower": self.interval[:, 0], "upper": self.interval[:, 1], "width": self.width}
        for side, end in enumerate(("lower", "upper")):
            columns |= {f"{end}_decided_by": self.decided_by[:, side], f"{end}_row": named(self.row[:, side])}
        names = ("next_width", "distance", "noise", "difficulty", "transformation", "rank", "scores", "noise_share")
        columns |= {name: getattr(self, name) for name in names}
        for j in range(self.nearest.shape[1]):
            columns |= {f"nearest_{j + 1}": named(self.nearest[:, j]), f"correlation_{j + 1}": self.correlation[:, j]}
        return pd.DataFrame(columns)

    def sentences(self, row_names: Sequence[Any] | None = None) -> list[str]:
        """What there is to say of each interval; ``row_names`` is what the training rows are called."""
        name = str if row_names is None else lambda row: str(row_names[row])
        return [self._sentence(i, name) for i in range(len(self.interval))]

    def _sentence(self, i: int, name: Callable[[int], str]) -> str:
        if not WITH_END.issuperset(self.decided_by[i]) or np.isinf(self.width[i]):
            said = [self._why_endless(i)]
        elif self.width[i] == 0.0:
            said = ["Width 0."]
        else:
            own = float(self.distance[i] * self.noise[i] * self.difficulty[i] * self.transformation[i])
            factors = [_in_words(getattr(self, name)[i], *words) for name, words in IN_WORDS.items()]
            reasons = f": {', '.join(filter(None, factors))}" if any(factors) else ""
            said = [f"Width {self.width[i]:.3g}, {own:.2g} times that of a typical row{reasons}."]
            few = f"{self.n_ranked} ranked rows are few for {_percent(self.confidence_level)}"
            err = "ranked rows err {} than the process says"
            every = [_in_words(self.rank, few, ""), _in_words(self.scores[i], err.format("more"), err.format("less"))]
            said += [f"For all rows: {', '.join(filter(None, every))}."] if any(every) else []
            said += [f"Noise is {_percent(self.noise_share[i])} of the variance.", self._who_decides(i, name)]
        if self.nearest.shape[1]:
            said.append(f"Nearest training rows: {', '.join(map(name, self.nearest[i]))}.")
        return " ".join(said)

    def _why_endless(self, i: int) -> str:
        width, level = self.width[i], Fraction(self.confidence_level).limit_denominator(10**6)
        what = "No finite width" if np.isinf(width) else f"Width {width:.3g}, between bounds of the labels"
        if "rank" in self.decided_by[i]:
            return (
                f"{what}: {_percent(self.confidence_level)} needs {rows_needed(level)} ranked rows, there are "
                f"{self.n_ranked}. At {_percent(self.n_ranked / (self.n_ranked + 1))}, the highest level that they "
                f"support, it is {self.next_width[i]:.3g}."
            )
        if "mean" in self.decided_by[i]:
            return f"{what}: the training rows do not determine the mean function there."
        return f"{what}: scores of some rows grow with the label as fast as its own, or labels have no end there."

    def _who_decides(self, i: int, name: Callable[[int], str]) -> str:
        words = {"hyperparameters": "a change of hyperparameters", "bound": "a bound of the labels"}
        both = zip(self.row[i], self.decided_by[i], strict=True)
        who = [f"row {name(row)}" if by == "row" else words[by] for row, by in both]
        ends = f"Both ends are decided by {who[0]}" if who[0] == who[1] else f"Ends are decided by {' and '.join(who)}"
        narrower = self.width[i] > WORTH_A_WORD * self.next_width[i]
        return f"{ends}; with the next rows the width is {self.next_width[i]:.3g}." if narrower else f"{ends}."

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def __repr__(self) -> str:
        return f"<Explanation of {len(self.interval)} intervals at {_percent(self.confidence_level)}>"


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def _in_words(factor: float, above: str, below: str) -> str:
    """Words for a factor, with the factor; nothing where it is near 1."""
    if factor > WORTH_A_WORD or (below and factor < 1.0 / WORTH_A_WORD):
        return f"{above if factor > 1.0 else below} ({factor:.2g}x)"
    return ""


class ExplainedIntervals:
    """Explanations of both regressors' intervals: see ``docs/groups_and_shifts.md``."""

    kernel_: Kernel
    noise_variance_: float
    gamma_: float
    n_jobs: int | None
    _predictor: Predictor
    _training_rows: Any

    def _test_inputs(self, X: ArrayLike, noise_variance: ArrayLike | None = None) -> Points:
        raise NotImplementedError

    def explain_interval(
        self,
        X: ArrayLike,
        confidence_level: float = 0.95,
        n_nearest: int = 3,
        noise_variance: ArrayLike | None = None,
    ) -> Explanation:
        """Why each interval is as wide as it is, and which training rows decide its ends.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test inputs.
        confidence_level : float, default=0.95
            One level strictly between 0 and 1.
        n_nearest : int, default=3
            How many of the nearest training rows to find, by correlation under ``kernel_``. With very many rows that is
            what takes longest; 0 finds none.
        noise_variance
            As in :meth:`predict_interval`.

        Returns
        -------
        explanation : Explanation
            Arrays with an entry for each row, a sentence for each by ``sentences()`` or ``print``, a pandas frame by
            ``to_frame()``.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
        >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> model.explain_interval([[1.0]], n_nearest=0).sentences()[0][:68]
        'No finite width: 95% needs 19 ranked rows, there are 3. At 75%, the '
        >>> model.explain_interval([[1.0]], confidence_level=0.5).row
        array([[2, 0]])
        """
        inputs = self._test_inputs(X, noise_variance)
        levels, single = read_levels(confidence_level)
        if not single:
            raise ValueError(f"confidence_level must be one number for explain_interval, got {confidence_level!r}.")
        if isinstance(n_nearest, bool) or not isinstance(n_nearest, int | np.integer) or n_nearest < 0:
            raise ValueError(f"n_nearest must be a whole number of at least 0, got {n_nearest!r}.")
        predictor, process = self._predictor, self._predictor.process
        n, k = predictor.n_ranked, rank(levels[0], predictor.n_ranked)
        hulls, variance = process.hulls(inputs, [k, min(k + 1, n)]), process.mean_and_variance(inputs)[1]
        ends, width, typical = hulls[:, :, 0], hulls[:, 1, 0] - hulls[:, 0, 0], process.typical()
        z, z_had = -ndtri([float(1 - levels[0]) / 2, k / (n + 1) / 2])
        nearest, correlation = self._nearest(inputs, min(int(n_nearest), predictor.n_rows))
        with np.errstate(divide="ignore", invalid="ignore"):
            narrower, middle = (np.outer(width, [-share, share]) for share in (-INWARDS, 0.5))
            moved = np.stack([ends + narrower, typical.label + middle], axis=2)
            mapped = predictor.from_process(np.concatenate([hulls, moved], axis=2))
            widths = mapped[:, 1] - mapped[:, 0]
            finite = np.isfinite(ends)
            cut = finite & (mapped[:, :, 0] == mapped[:, :, 2]) & (width > 0.0)[:, None]
            row = np.where(finite & ~cut, process.decided(inputs, np.where(finite, ends, 0.0)), -1)
            no_end = np.where(k == 0, "rank", np.where(np.isinf(variance), "mean", "nothing"))[:, None]
            noise, typical_noise = self._noise(process.inputs.new(inputs)), np.median(self._noise(process.inputs))
            at_typical_noise = np.maximum(variance - noise, 0.0) + typical_noise
            factors = {
                "distance": (at_typical_noise / typical.variance) ** (1.0 / self.gamma_),
                "noise": (variance / at_typical_noise) ** (1.0 / self.gamma_),
                "difficulty": process.difficulty(inputs) / typical.difficulty,
            }
            expected = 2.0 * z_had * np.sqrt(typical.variance) * np.prod([*factors.values()], axis=0)
            return Explanation(
                confidence_level=float(levels[0]),
                n_ranked=n,
                interval=mapped[:, :, 0],
                row=row,
                decided_by=np.select([cut, row >= 0, finite], ["bound", "row", "hyperparameters"], no_end),
                next_width=widths[:, 1] if k < n else np.zeros(width.size),
                reference=float(2.0 * z * np.sqrt(typical.variance)),
                **factors,
                transformation=widths[:, 0] / widths[:, 3],
                rank=float(z_had / z),
                scores=width / expected,
                noise_share=np.minimum(noise / variance, 1.0),
                nearest=nearest,
                correlation=correlation,
            )

    def _noise(self, rows: Any) -> Array:
        """Noise variances of rows as the kernel sees them, white noise inside the kernel included."""
        white = self.kernel_.diag(rows.X) - shared_variance(self.kernel_, rows.X)
        return self.noise_variance_ + rows.known + white

    def _nearest(self, inputs: Points, n: int) -> tuple[Rows, Array]:
        """Training rows of highest correlation with each test row, from the nearest on, and their correlations."""
        nearest, correlation = np.empty((len(inputs.X), n), dtype=np.int64), np.empty((len(inputs.X), n))
        rows, see = self._training_rows, self._predictor.process.inputs.new
        if isinstance(rows, tuple):
            X, y = rows
            rows = ArrayRows(X, y, None, BLOCK_ROWS, self.n_jobs)
        for batch in slices(len(inputs.X), BATCH_ROWS) if n else ():
            new = see(inputs.take(batch)).X
            found, place, size = rows.each(partial(_nearest_in, self.kernel_, see, new, n), "nearest rows")
            first = np.append(0, np.cumsum(size[0, ::n]))[:-1]  # of each block
            best = np.argsort(-found, axis=1, kind="stable")[:, :n]
            nearest[batch] = np.take_along_axis(place + np.repeat(first, n), best, axis=1)
            correlation[batch] = np.take_along_axis(found, best, axis=1)
        return nearest, correlation


def _nearest_in(
    kernel: Kernel, see: Callable[[Points], NewInputs], new: Array, n: int, rows: Points, y: Array
) -> Array:
    """(3, m, n) of a block of training rows: highest correlations with new inputs, places in the block, its size."""
    X, least = see(rows).X, np.finfo(float).tiny
    found = np.empty((3, len(new), n))
    found[0], found[1], found[2] = -np.inf, 0, len(X)
    spread, own = (np.sqrt(np.maximum(shared_variance(kernel, Z), least)) for Z in (X, new))
    held = min(n, len(X))
    for part in slices(len(new), COMPARED_ROWS):
        correlations = covariance(kernel, new[part], X)[0] / spread / own[part, None]
        best = np.argpartition(-correlations, held - 1, axis=1)[:, :held]
        found[0, part, :held], found[1, part, :held] = np.take_along_axis(correlations, best, axis=1), best
    return found
