"""Predictions, intervals, sets and p-values of a fitted model."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from conformal_gp.answers import Answers, TestRows
from conformal_gp.arrays import Array, Indices
from conformal_gp.calibration import GroupsLike, RatioLike, compared
from conformal_gp.conformal.levels import read_levels, read_one_level, rows_needed
from conformal_gp.encoding import Encoding, interval_frame
from conformal_gp.extrapolation import Grid, warn_beyond
from conformal_gp.groups import Batches, Groups
from conformal_gp.models.tuned import Tuned, fitted
from conformal_gp.rows import ArrayRows, Rows, RowSource
from conformal_gp.threads import one_blas_thread
from conformal_gp.validation import check_known_noise, check_labels, read_inputs, warn_caller

# Reasons of infinite bounds.
UNDETERMINED = (
    "the training rows do not determine the mean function there, as where an input that is constant in them takes "
    "another value; mean='constant' avoids it"
)
COVERING = (
    "however large its target is, calibration rows score as high (with gamma other than 2, with a difficulty, with "
    "hardly any noise at a repeated input, or where a calibration row is outside bounds that were learnt)"
)
TRANSFORMED = "transformed back, an endpoint is infinite; another target_transform avoids it"


class Predictions:
    """Predict methods that compare values of the target by their scores; ``fit`` sets what they need."""

    n_jobs: int | None
    n_features_in_: int
    n_calibration_: int
    _encoding: Encoding | None
    _has_y_variance: bool
    _groups: Groups | None
    _batches: Batches | None
    _tuned: Tuned
    _source: RowSource
    _answers: Answers
    _group_answers: list[Answers]
    _input_box: Array
    _grid: Grid | None

    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        y_variance: ArrayLike | None = None,
    ) -> Array | tuple[Array, Array]:
        """Point predictions, which lie in every joint interval, and the Gaussian process' own uncertainty.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test inputs.
        return_std : bool, default=False
            Also return standard deviations of new observations under the Gaussian process, noise included.
        return_cov : bool, default=False
            Also return their covariance matrix; not with ``return_std``, nor with a transformed target.
        y_variance
            As in :meth:`predict_interval`; predictions alone do not need it.

        Returns
        -------
        prediction : ndarray of shape (n_samples,)
            The value whose p-value is 1: the predictive mean, or with a difficulty the middle that it expects; of
            transformed targets, transformed back.
        std : ndarray of shape (n_samples,)
            Only with ``return_std``. Of a transformed target, half the length of the interval from one standard
            deviation below the transformed mean to one above, transformed back.
        cov : ndarray of shape (n_samples, n_samples)
            Only with ``return_cov``.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
        >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> mean, std = model.predict([[1.0], [3.0]], return_std=True)
        >>> mean.round(3), std.round(3)
        (array([ 0.802, -0.333]), array([0.424, 0.84 ]))
        """
        check_is_fitted(self)
        # the location of a difficulty is in units of the standard deviation, of which the noise is a part
        needs_variance = return_std or return_cov or self._tuned.difficulty is not None
        rows = self._checked_test_rows(X, y_variance, needs_variance)
        transformation = self._tuned.target.transformation
        if return_cov and (return_std or transformation is not None):
            raise ValueError(
                "return_cov=True cannot be combined with return_std=True or a transformed target: got "
                f"return_std={return_std!r} and the transformation {transformation!r}. sample_y draws such "
                "targets, and target_transform=None leaves the target as it is."
            )
        prediction = self._answers.predict(rows)
        if return_cov:
            return prediction, self._answers.covariance(rows)
        if return_std:
            return prediction, self._answers.standard_deviation(rows)
        return prediction

    def predict_interval(
        self,
        X: ArrayLike,
        confidence_level: float | ArrayLike = 0.95,
        tails: str = "joint",
        y_variance: ArrayLike | None = None,
        *,
        groups: GroupsLike = None,
        likelihood_ratio: RatioLike = None,
        as_frame: bool = False,
    ) -> Any:
        """Prediction intervals: the convex hull of each row's region, or the part between two one-sided bounds.

        Of pipelines and searches see :func:`conformal_gp.pipeline.predict_interval`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test inputs.
        confidence_level : float or sequence of floats, default=0.95
            Level or levels, each strictly between 0 and 1.
        tails : {"joint", "equal"}, default="joint"
            "joint" is the hull of the region of absolute scores. "equal" takes lower and upper bounds at half of delta
            each: targets miss it on either side with probability at most delta / 2. Such intervals follow skewed noise
            and need twice as many rows. They contain the median, not always the mean.
        y_variance : array-like of shape (n_samples,) or None, default=None
            Known noise variance of each test row's target; needed if ``fit`` was given them, else an error.
        groups : array-like of shape (n_samples,), callable, str or None, default=None
            Groups of the test rows, as ``fit`` takes them; None takes the function or the column that ``fit`` was
            given. An error if ``fit`` was given no groups.
        likelihood_ratio : callable, pair of arrays or None, default=None
            Density of the test inputs over that of the training inputs, up to a factor: a function of X, or ratios of
            the training rows and of the test rows. Coverage is then valid for test rows of that distribution of inputs.
            Bounds are infinite where a test row's ratio is more than delta of the sum.
        as_frame : bool, default=False
            Return a pandas frame with the index of ``X``, if that is a pandas frame.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2) or (n_samples, 2, n_levels), or frame
            Lower and upper bounds; three-dimensional for a sequence of levels. They are infinite where the training
            rows cannot support the level. Joint intervals contain the prediction and those of lower levels that are
            asked for with them. A frame has the columns "lower" and "upper", for each of several levels.

        Examples
        --------
        >>> import numpy as np
        >>> from conformal_gp import ConformalGPRegressor
        >>> X = np.linspace(0, 3, 40)[:, None]
        >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.cos(50 * X[:, 0])
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.01, scale_inputs=False).fit(X, y)
        >>> model.predict_interval([[1.0], [2.0]], confidence_level=0.9).round(2)
        array([[ 0.8 ,  1.02],
               [-0.87, -0.65]])
        >>> model.predict_interval([[1.0]], confidence_level=0.9, tails="equal").round(2)
        array([[0.8 , 1.01]])
        """
        rows = self._test_rows(X, y_variance, groups, likelihood_ratio)
        levels, single = read_levels(confidence_level)
        if tails not in ("joint", "equal"):
            raise ValueError(f"tails must be 'joint' or 'equal', got {tails!r}.")
        if tails == "joint":
            each = levels
            intervals = rows.intervals(each)
        else:
            each = [(1 + level) / 2 for level in levels]
            intervals = np.stack(rows.bounds(each, each), axis=1)
        self._warn_infinite(rows, "confidence_level", list(zip(levels, each, strict=True)), "intervals", intervals)
        if single:
            intervals = intervals[:, :, 0]
        if as_frame:
            return interval_frame(intervals, confidence_level, X)
        return intervals

    def predict_set(
        self,
        X: ArrayLike,
        confidence_level: float = 0.95,
        y_variance: ArrayLike | None = None,
        *,
        groups: GroupsLike = None,
        likelihood_ratio: RatioLike = None,
    ) -> list[Array]:
        """Exact prediction sets (unions of intervals).

        Parameters
        ----------
        X, y_variance, groups, likelihood_ratio
            As in :meth:`predict_interval`.
        confidence_level : float, default=0.95
            One level strictly between 0 and 1.

        Returns
        -------
        regions : list of ndarrays of shape (n_pieces, 2)
            Sorted, disjoint, closed intervals of each row; one with ``gamma=2`` and without a difficulty. With
            "integrated" regions are searched on a grid, a third of a standard deviation wide near the prediction:
            smaller gaps are not found, and regions are widened by up to 1e-4 standard deviations.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
        >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> [region.round(2) for region in model.predict_set([[1.0]], confidence_level=0.5)]
        [array([[0.51, 1.22]])]
        """
        rows = self._test_rows(X, y_variance, groups, likelihood_ratio)
        level = read_one_level(confidence_level, "predict_set")
        sets = rows.sets(level)
        ends = np.array([[pieces.min(initial=0.0), pieces.max(initial=0.0)] for pieces in sets])
        self._warn_infinite(rows, "confidence_level", [(level, level)], "regions", ends[:, :, None])
        return sets

    def predict_p(
        self,
        X: ArrayLike,
        y: ArrayLike,
        smoothing: bool = False,
        random_state: int | np.random.RandomState | None = None,
        y_variance: ArrayLike | None = None,
        *,
        groups: GroupsLike = None,
        likelihood_ratio: RatioLike = None,
    ) -> Array:
        """p-values of candidate values: how well each agrees with the training rows.

        Parameters
        ----------
        X, y_variance, groups, likelihood_ratio
            As in :meth:`predict_interval`.
        y : array-like of shape (n_samples,)
            One candidate value for each row.
        smoothing : bool, default=False
            Break ties at random: p-values of true targets are then exactly uniform, else a little larger.
        random_state : int, RandomState instance or None, default=None
            Seed of the tie breaks.

        Returns
        -------
        p : ndarray of shape (n_samples,)
            ``y[i]`` is in the region of level ``1 - delta`` of ``X[i]`` exactly when ``p[i] > delta`` (without
            smoothing); endpoints up to rounding, or 1e-4 standard deviations where hyperparameters are averaged over.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
        >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> model.predict_p([[1.0], [1.0]], [0.8, 5.0])
        array([1.  , 0.25])
        """
        rows = self._test_rows(X, y_variance, groups, likelihood_ratio)
        labels = check_labels(y, rows.new.X)
        return rows.shares(labels, tie_breaks(labels.size, 1.0, smoothing, random_state))

    def _test_rows(self, X: Any, y_variance: Any, groups: GroupsLike, likelihood_ratio: RatioLike) -> TestRows:
        """Test rows for a method that a user called, with the calibration rows that each is compared with."""
        return self._compared(X, self._checked_test_rows(X, y_variance), groups, likelihood_ratio)

    def _compared(self, X: Any, new: Rows, groups: GroupsLike, likelihood_ratio: RatioLike) -> TestRows:
        if self._groups is None and groups is None and likelihood_ratio is None:
            return self._answers.about(new)
        return compared(self, X, new, groups, likelihood_ratio)

    def _warn_infinite(
        self, rows: TestRows, name: str, asked: list[tuple[Fraction, Fraction]], what: str, ends: Array | None = None
    ) -> None:
        """Warn of levels that the calibration rows do not support, and once of infinite ends at other levels.

        ``asked`` is what the caller of a public method asked for, each with the level of the set that it takes. Ends
        are (m, ends, levels), or None where unsupported sets are not infinite.
        """
        what_follows = what if ends is None else f"{what} are infinite"
        for (value, level), part in product(asked, rows.parts):
            lacking = part.needed([level]).least < 0.0
            if not lacking.any():
                continue
            n_calibration = part.answers.n_calibration
            why = f"needs at least {rows_needed(level)} calibration rows, {part.name} has {n_calibration}; its"
            if self._batches is not None:
                why = f"{self._batches.lacking(level)}; its"
            elif part.weights is not None:
                share = f"weights alone are more than {float(1 - level):.3g} of all those of {part.name}"
                why = f"is too high for {lacking.sum()} of {lacking.size} rows, whose {share}; their"
            warn_caller(f"{name}={float(value):g} {why} {what_follows}.")
        if ends is None:
            return
        limits = rows.target.limits
        wanted = np.isinf(rows.target.range) & np.isinf([limits.low, limits.high])  # beyond limits ends are infinite
        found = ((np.isneginf(ends) & wanted[0]) | (np.isposinf(ends) & wanted[1])).any(axis=1)
        found &= rows.supported([level for _, level in asked])
        if not found.any():
            return
        row, place = np.argwhere(found)[0]
        model = self._answers.model
        reason = COVERING
        with np.errstate(all="ignore"):
            variance = model.moments(rows.new.take(slice(row, row + 1)))[1]
        if np.isinf(variance[0]):
            reason = UNDETERMINED
        elif model.one_interval and rows.target.transformation is not None:
            reason = TRANSFORMED
        message = f"{found.any(axis=1).sum()} of {len(ends)} rows have infinite {what}; row {row} at "
        warn_caller(f"{message}{name}={float(asked[place][0]):g}: {reason}.")

    def _set_answers(self, answers: Answers) -> None:
        """Keep answers, and those by the calibration rows of each group."""
        self._answers = answers
        self._group_answers = []
        if self._groups is not None:
            calibration = self._groups.divided(answers.model.calibration)
            self._group_answers = [answers.among(rows) for rows in calibration]

    def __getstate__(self) -> dict[str, Any]:
        """Without the model, which follows from numbers and rows, unless the rows live on disk or on a cluster."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        at_hand = isinstance(state.get("_source"), ArrayRows)
        follow = ("_answers", "_group_answers")
        return {name: value for name, value in state.items() if name not in follow or not at_hand}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        if "_tuned" in state and "_answers" not in state:
            with one_blas_thread(rows=self._source.n_rows):
                self._set_answers(fitted(self._tuned, self._source, self.n_jobs).answers)

    def __copy__(self) -> Self:
        """A shallow copy, which shares the model."""
        other = object.__new__(type(self))
        other.__dict__.update(vars(self))
        return other

    def _numbers(self, rows: Indices) -> Indices:
        """Numbers among the rows that fit was given, of rows of the model; -1 stays."""
        if self._batches is None:
            return rows
        return np.where(rows < 0, -1, self._batches.rows[rows])

    @property
    def _most_calibration(self) -> int:
        """Most calibration rows that a test row is compared with."""
        return max((each.n_calibration for each in self._group_answers), default=self._answers.n_calibration)

    def _checked_inputs(self, X: Any) -> Array:
        check_is_fitted(self)
        for columns in (self._groups, self._batches):
            if columns is not None:
                X = columns.inputs(X)
        if hasattr(X, "__dask_graph__"):
            X = X.compute()
        return read_inputs(self, X)

    def _checked_test_rows(self, X: Any, y_variance: Any = None, needs_variance: bool = True) -> Rows:
        """Test rows for a method that a user called; warns of those outside the training range."""
        rows = self._checked_rows(X, y_variance, needs_variance)
        warn_beyond(self, rows.X, self._input_box)
        if self._grid is not None:
            self._grid.warn_between(self._design_columns(rows.X))
        return rows

    def _design_columns(self, X: Array) -> dict[str, NDArray[Any]]:
        """Split inputs into the columns that they come from."""
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        if self._encoding is not None:
            return self._encoding.columns(X, names)
        return {str(name): column for name, column in zip(names, X.T, strict=False)}  # without indicators

    def _checked_rows(self, X: Any, y_variance: Any, needs_variance: bool = True) -> Rows:
        """Rows like the training rows."""
        inputs = self._checked_inputs(X)
        if y_variance is None:
            if self._has_y_variance and needs_variance:
                raise ValueError("y_variance is needed, one for each row, because fit was called with y_variance.")
            return Rows(inputs)
        if not self._has_y_variance:
            raise ValueError("y_variance was given, but fit was called without it.")
        return Rows(inputs, check_known_noise(y_variance, inputs))


def tie_breaks(n_rows: int, share: float, smoothing: bool, random_state: Any) -> Array:
    """Share of a tie that counts for each row: the same for all, or at random."""
    if smoothing:
        return check_random_state(random_state).uniform(size=n_rows)
    return np.full(n_rows, share)
