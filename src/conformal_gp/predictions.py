"""Predictions, intervals, sets and p-values of a fitted model."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from conformal_gp.answers import Answers
from conformal_gp.arrays import Array, Indices
from conformal_gp.calibration import GroupsLike, RatioLike, TestRows, compared
from conformal_gp.conformal.levels import read_levels, read_one_level
from conformal_gp.encoding import Encoding, interval_frame
from conformal_gp.extrapolation import Grid, input_box, warn_beyond
from conformal_gp.groups import Batches, Groups
from conformal_gp.models.tuned import Fitted, Tuned, fitted
from conformal_gp.rows import ArrayRows, Rows, RowSource
from conformal_gp.targets.target import Bounds
from conformal_gp.targets.transformation import Logarithms
from conformal_gp.threads import one_blas_thread
from conformal_gp.validation import NO_GAPS, check_known_noise, check_labels, read_inputs


class Predictions:
    """Predict methods that compare values of the target by their scores; ``fit`` sets what they need."""

    input_range_: Array
    n_features_in_: int
    target_transform_: Any
    _tuned: Tuned
    _answers: Answers
    _group_answers: list[Answers]
    _source: RowSource
    _groups: Groups | None = None
    _batches: Batches | None = None
    _encoding: Encoding | None = None
    _gaps: Indices = NO_GAPS
    missing: str = "error"
    _frame: str | None = None
    _has_y_variance: bool = False
    _input_box: Array
    _grid: Grid | None = None
    _arrivals: Any = None
    n_jobs: int | None

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
            Also return the standard deviation of a new observation under the Gaussian process, noise included.
        return_cov : bool, default=False
            Also return the covariance matrix of new observations under the Gaussian process, noise included; not with
            ``return_std``, nor with a transformed target.
        y_variance
            As in :meth:`predict_interval`; predictions alone do not need it.

        Returns
        -------
        prediction : ndarray of shape (n_samples,)
            The value whose p-value is 1: the predictive mean, or with a difficulty the middle that it expects. Of a
            transformed target, that of the transformed target, transformed back.
        std : ndarray of shape (n_samples,)
            Standard deviations; only with ``return_std``. Of a transformed target, half the length of the interval from
            one standard deviation below the transformed mean to one above, transformed back.
        cov : ndarray of shape (n_samples, n_samples)
            Covariances of new observations given the training rows; only with ``return_cov``.

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
        prediction = self._answers.predict(rows)
        if return_cov:
            transformation = self._tuned.target.transformation
            if return_std or transformation is not None:
                raise ValueError(
                    "return_cov=True cannot be combined with return_std=True or a transformed target: got "
                    f"return_std={return_std!r} and the transformation {transformation!r}. sample_y draws such "
                    "targets, and target_transform=None leaves the target as it is."
                )
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

        For a pipeline or a search that ends in this regressor there is
        :func:`conformal_gp.pipeline.predict_interval`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test inputs.
        confidence_level : float or sequence of floats, default=0.95
            Level or levels, each strictly between 0 and 1.
        tails : {"joint", "equal"}, default="joint"
            "joint" is the hull of the region of absolute scores. "equal" takes the lower and the upper bound of signed
            scores at half of delta each: targets miss it on either side with probability at most delta / 2. Such
            intervals follow skewed noise and need twice as many rows. They contain the median, not always the mean.
        y_variance : array-like of shape (n_samples,) or None, default=None
            Known noise variance of each test row's target. Needed if ``fit`` was given those of the training rows, else
            an error.
        groups : array-like of shape (n_samples,), callable, str or None, default=None
            Groups of the test rows, as ``fit`` takes them: each row is compared with the calibration rows of its group.
            None takes the function or the column that ``fit`` was given. An error if ``fit`` was given no groups.
        likelihood_ratio : callable, pair of arrays or None, default=None
            Density of the test inputs over that of the training inputs, up to a factor: a function of X, or ratios of
            the training rows and of the test rows. Rows are then weighted by it, and coverage is valid for test rows of
            another distribution of inputs. Ends are infinite where a test row's ratio is more than delta of the sum.
        as_frame : bool, default=False
            Return a pandas frame with the index of ``X``, if that is a pandas frame.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2) or (n_samples, 2, n_levels), or frame
            Lower and upper ends; three-dimensional when a sequence of levels is given. Ends are infinite where the
            training rows cannot support the level, and equal where the region is empty. Joint intervals contain the
            prediction, also where it is outside the region, as of targets that cannot be negative, and those of lower
            levels that are asked for with them. A frame has the
            columns "lower" and "upper", for each of several levels.

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
        >>> model.predict_interval([[1.0]], confidence_level=[0.8, 0.9]).shape
        (1, 2, 2)
        >>> model.predict_interval([[1.0]], confidence_level=0.9, tails="equal").round(2)
        array([[0.8 , 1.01]])
        """
        rows = self._test_rows(X, y_variance, groups, likelihood_ratio)
        levels, single = read_levels(confidence_level)
        if tails not in ("joint", "equal"):
            raise ValueError(f"tails must be 'joint' or 'equal', got {tails!r}.")
        each = levels if tails == "joint" else [(1 + level) / 2 for level in levels]
        intervals = rows.intervals(each) if tails == "joint" else rows.bounds(each, each).reshape(-1, 2, len(levels))
        rows.warn_where_infinite("confidence_level", list(zip(levels, each, strict=True)), "intervals", intervals)
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
            For each row the closure of its region, as sorted, disjoint, closed intervals. With ``gamma=2`` and without
            a difficulty there is always one where hyperparameters are fixed or tuned. Where they are averaged over
            (``tuning_`` is "integrated") regions are searched on a grid of target values, which is a third of a
            standard deviation wide near the prediction: smaller gaps are not found, and ends are widened by up to 1e-4
            standard deviations.

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
        ends = np.array([pieces.ravel()[[0, -1]] if len(pieces) else np.zeros(2) for pieces in sets])
        rows.warn_where_infinite("confidence_level", [(level, level)], "regions", ends[:, :, None])
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
            Break ties at random: p-values of true targets are then exactly uniform, where without they are a little
            larger.
        random_state : int, RandomState instance or None, default=None
            Seed of the tie breaks.

        Returns
        -------
        p : ndarray of shape (n_samples,)
            The value ``y[i]`` is in the region of level ``1 - delta`` of ``X[i]`` exactly when ``p[i] > delta``
            (without smoothing). Ends of regions count as inside, up to rounding, or up to 1e-4 standard deviations
            where hyperparameters are averaged over.

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
        return compared(self, X, self._checked_test_rows(X, y_variance, stacklevel=4), groups, likelihood_ratio)

    def _keep(self, tuned: Tuned, source: RowSource, made: Fitted) -> None:
        """Keep what tuning has decided, from which the model is made again when it is loaded, and its attributes."""
        self._tuned = tuned
        self._source = source
        X = None
        if isinstance(source, ArrayRows) and source.in_memory:
            X = source.rows.X
        self._input_box = input_box(self.input_range_, X, source.n_rows)
        self._grid = None
        if X is not None:
            self._grid = Grid.find(self._design_columns(X), most_repeated=1)
        self._set_answers(made.answers)
        self.kernel_ = clone(made.kernel)
        self.noise_variance_ = made.noise_variance
        self.mean_coef_ = made.mean_coef
        self.log_marginal_likelihood_ = made.log_marginal_likelihood
        self.n_calibration_ = made.answers.n_calibration
        self.mean_ = tuned.mean
        self.gamma_ = tuned.gamma
        self.target_transform_ = tuned.target.transformation
        if isinstance(self.target_transform_, Logarithms):
            self.target_transform_ = None
        self.difficulty_ = None if tuned.difficulty is None else tuned.difficulty.fitted
        bounds = tuned.target.bounds or Bounds(-np.inf, np.inf)
        self.y_bounds_ = (bounds.low, bounds.high)
        self.tuning_rows_ = self._numbers(tuned.tuning_rows.copy())
        self.inducing_ = tuned.inducing
        self.guarantee_ = tuned.guarantee.format(n_calibration=self.n_calibration_)
        if self._batches is not None:
            self.guarantee_ = self._batches.guarantee(self.guarantee_)
        if self._groups is not None and self.guarantee_.startswith("Valid"):
            self.guarantee_ += f" That holds in each of {len(self._groups.labels)} groups separately."
        if tuned.target.limits is not None and self.guarantee_.startswith("Valid"):
            self.guarantee_ += tuned.target.limits.sentence()
        if self._grid is not None:
            self.guarantee_ += f" {self._grid.condition}"

    def _set_answers(self, answers: Answers) -> None:
        """Keep answers, and those by the calibration rows of each group."""
        self._answers = answers
        self._group_answers = []
        if self._groups is not None:
            codes = self._groups.codes[answers.calibration]
            self._group_answers = [
                answers.among(answers.calibration[codes == code]) for code in range(len(self._groups.labels))
            ]

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
        if self._groups is not None:
            X = self._groups.inputs(X)
        if self._batches is not None:
            X = self._batches.inputs(X)
        if hasattr(X, "__dask_graph__"):
            X = X.compute()
        return read_inputs(self, X)

    def _checked_test_rows(
        self, X: Any, y_variance: Any = None, needs_variance: bool = True, stacklevel: int = 3
    ) -> Rows:
        """Test rows for a method that a user called; warns of those outside the training range."""
        rows = self._checked_rows(X, y_variance, needs_variance)
        warn_beyond(self, rows.X, self._input_box, stacklevel=stacklevel)
        if self._grid is not None:
            self._grid.warn_between(self._design_columns(rows.X), stacklevel=stacklevel)
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
        if self._has_y_variance and y_variance is None and needs_variance:
            raise ValueError("y_variance is needed, one for each row, because fit was called with y_variance.")
        if y_variance is not None and not self._has_y_variance:
            raise ValueError("y_variance was given, but fit was called without it.")
        if y_variance is None:
            return Rows(inputs)
        return Rows(inputs, check_known_noise(y_variance, inputs))


def tie_breaks(n_rows: int, share: float, smoothing: bool, random_state: Any) -> Array:
    """Share of a tie that counts for each row: the same for all, or at random."""
    if smoothing:
        return check_random_state(random_state).uniform(size=n_rows)
    return np.full(n_rows, share)
