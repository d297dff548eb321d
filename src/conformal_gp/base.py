"""What both regressors share: predictions, intervals, regions and p-values of a fitted model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from conformal_gp.comparisons import GroupsLike, RatioLike
from conformal_gp.conformal.levels import read_levels
from conformal_gp.constraints import HasMethods, Interval, StrOptions
from conformal_gp.distributions import PredictiveDistributions
from conformal_gp.explanation import ExplainedIntervals
from conformal_gp.frames import UNSEEN, encoded_inputs
from conformal_gp.gp.inputs import MEAN_NAMES, Points, points
from conformal_gp.gp.warps import Bounds
from conformal_gp.groups import Groups
from conformal_gp.kernels import KERNEL_NAMES
from conformal_gp.predictors.base import Predictor
from conformal_gp.predictors.bounded import BoundedPredictor
from conformal_gp.rows import ArrayRows
from conformal_gp.tuning.choices import check_bounds, mapped
from conformal_gp.tuning.methods import UNSEEN_CONDITION, Fitted, TuningResult
from conformal_gp.tuning.settings import LEARNT_WARPS, Settings, WarpChoice, check_warp
from conformal_gp.types import Array, Mask
from conformal_gp.validation import (
    beyond,
    check_known_noise,
    check_labels,
    need_labels,
    warn_beyond,
)

# What both regressors ask of the parameters that they share, as scikit-learn writes it.
CONSTRAINTS: dict[str, list] = {
    "kernel": [StrOptions(set(KERNEL_NAMES)), Kernel, list, tuple],
    "mean": [StrOptions({"auto", *MEAN_NAMES})],
    "noise_variance": [Interval(Real, 0, None, closed="left"), None],
    "gamma": [Interval(Real, 1, None, closed="both"), "array-like"],
    "design": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="neither"), "array-like", None],
    "length_scales": [StrOptions({"each", "one"})],
    "warp": [StrOptions({"log", "sqrt", *LEARNT_WARPS}), tuple, list, None],
    "difficulty": [StrOptions({"auto"}), HasMethods(["fit", "predict"]), None],
    "y_bounds": [StrOptions({"auto"}), tuple, list, None],
    "scale_inputs": ["boolean"],
    "unseen_categories": [StrOptions(set(UNSEEN))],
    "n_restarts": [Interval(Integral, 0, None, closed="left")],
    "random_state": ["random_state"],
    "n_jobs": [Interval(Integral, None, -1, closed="right"), Interval(Integral, 1, None, closed="left"), None],
}


def _bounds_in_use(y_bounds: Any, result: TuningResult) -> tuple[float, float]:
    bounds = result.bounds if isinstance(y_bounds, str) else None if y_bounds is None else Bounds.of(y_bounds)
    return (-np.inf, np.inf) if bounds is None else (bounds.low, bounds.high)


@contextmanager
def all_or_nothing(model: BaseEstimator) -> Iterator[None]:
    """A fit that fails, or is interrupted, leaves the model as it was."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise


class ConformalRegressor(PredictiveDistributions, ExplainedIntervals, RegressorMixin, BaseEstimator):
    """A regressor whose ``fit`` makes a predictor, which all predict methods call."""

    kernel: str | Kernel | Sequence[str | Kernel]
    gamma: float | Sequence[float]
    noise_variance: float | None
    length_scales: str
    warp: WarpChoice
    difficulty: Any
    y_bounds: str | tuple[float | None, float | None] | None
    scale_inputs: bool
    n_restarts: int
    n_jobs: int | None
    unseen_categories: str
    input_range_: Array
    _result: TuningResult
    _knows_noise: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """Without the predictor, which follows from plan and rows, unless these would have to be read from afar."""
        state = super().__getstate__()
        follow = ("_predictor", "_group_predictors")
        at_hand = isinstance(state.get("_training_rows"), tuple | ArrayRows)
        return {name: value for name, value in state.items() if name not in follow or not at_hand}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_result" in state and "_predictor" not in state:
            self._set_predictor(self._within_bounds(self._predictor_again()))

    def _keep(self, result: TuningResult, fitted: Fitted) -> None:
        """Keep what tuning has decided, which makes the predictor again from a saved model, and its attributes."""
        self._result = result
        self._set_predictor(self._within_bounds(fitted.predictor))
        self.kernel_ = clone(fitted.kernel)
        self.noise_variance_ = fitted.noise_variance
        self.mean_coef_ = fitted.mean_coef
        self.log_marginal_likelihood_ = fitted.log_marginal_likelihood
        self.mean_ = result.mean
        self.gamma_ = result.gamma
        self.warp_ = result.warp
        self.difficulty_ = None if result.difficulty is None else result.difficulty.fitted
        self.y_bounds_ = _bounds_in_use(self.y_bounds, result)
        self.design_ = result.design.copy()
        unseen = self._encoding is not None and self._encoding.unseen != "error"
        guarantee = result.guarantee.format(n_ranked=self._predictor.n_ranked)
        self.guarantee_ = f"{guarantee} {UNSEEN_CONDITION}" if unseen else guarantee
        if self._groups is not None and self.guarantee_.startswith("Valid"):
            self.guarantee_ += f" That holds in each of {len(self._groups.labels)} groups by itself."

    @abstractmethod
    def _predictor_again(self) -> Predictor:
        """The predictor of what tuning has decided and the training rows; nothing is learnt."""

    def _within_bounds(self, predictor: Predictor) -> Predictor:
        """A predictor whose regions are cut at bounds of the labels, if there are any."""
        given = isinstance(self.y_bounds, tuple | list)
        return BoundedPredictor(predictor, Bounds.of(self.y_bounds)) if given else predictor

    def _kernels_and_gammas(self) -> tuple[list[str | Kernel], list[float]]:
        """``kernel`` and ``gamma`` as checked lists."""
        kernels = list(self.kernel) if isinstance(self.kernel, list | tuple) else [self.kernel]
        gammas = [float(gamma) for gamma in np.ravel(self.gamma)]
        for kernel in kernels:
            if not isinstance(kernel, Kernel) and kernel not in KERNEL_NAMES:
                raise ValueError(
                    f"kernel must be one of {', '.join(KERNEL_NAMES)}, a scikit-learn kernel, or a list of these; "
                    f"got {kernel!r}."
                )
        if not kernels or not gammas:
            raise ValueError("kernel and gamma must not be empty.")
        for gamma in gammas:
            if not gamma >= 1.0:
                raise ValueError(f"gamma must be at least 1 (infinity is allowed), got {gamma!r}.")
        return kernels, gammas

    def _common_settings(self, mean: str, **chosen: Any) -> Settings:
        """The parameters that both regressors have as one checked value, and some that one of them has."""
        kernels, gammas = self._kernels_and_gammas()
        return Settings(
            kernels,
            mean,
            None if self.noise_variance is None else float(self.noise_variance),
            gammas,
            self.scale_inputs,
            self.n_restarts,
            self.n_jobs,
            each_length_scale=self.length_scales == "each",
            warp=check_warp(self.warp),
            difficulty=self.difficulty,
            learns_bounds=self.y_bounds == "auto",
            **chosen,
        )

    def partial_fit(
        self, X: Any, y: Any, noise_variance: ArrayLike | None = None, *, groups: GroupsLike = None
    ) -> Self:
        """Add ranked rows that come later; nothing is tuned again.

        The model is that of a fit to all rows at the design rows and hyperparameters that it has, and as exact: given
        the design rows, earlier and later ranked rows and the test row are exchangeable. With l rows, each costs
        :math:`O(l^2)`. A low-rank process reads all rows once a call. With "integrated" draws
        are weighted again, and drawn again where too few of them would count.

        Parameters
        ----------
        X, y, noise_variance
            Rows as in ``fit``; noise variances are needed if ``fit`` was given those of its rows, else an error.
        groups : array-like of shape (n_samples,), callable, str or None, default=None
            Groups of these rows, as predict methods take them; a group that is new becomes one of the model's.

        Returns
        -------
        self : estimator
            The model, fitted if it was not; an error leaves it as it was. Rows cannot be added with ``tuning="train"``,
            which learns from all of them, nor to memory maps or Dask collections.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
        >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> model.partial_fit([[0.5]], [0.6]).predict_p([[1.0]], [5.0])
        array([0.2])
        """
        if not hasattr(self, "_predictor"):
            return self.fit(X, y, noise_variance, groups=groups)
        self.__dict__.update(vars(self._with_rows(*self._later_rows(X, y, noise_variance, groups))))
        return self

    def _later_rows(
        self, X: Any, y: Any, noise_variance: Any, groups: GroupsLike
    ) -> tuple[Points, Array, Groups | None]:
        """Checked rows that come later, their labels, and groups of all rows."""
        need_labels(self, y)
        rows = self._checked_rows(X, noise_variance)
        labels = check_labels(y, rows.X)
        check_bounds(self.y_bounds, labels)
        mapped(self._result.warp, labels)  # an error names the row among these
        self._need_groups(groups)
        return rows, labels, None if self._groups is None else self._groups.extended(X, groups, labels.size)

    def _with_rows(self, rows: Points, y: Array, groups: Groups | None) -> Self:
        """The model with more ranked rows; this one stays as it is."""
        model = object.__new__(type(self))
        model.__dict__.update(vars(self), _groups=groups)
        ends = np.vstack([self.input_range_, rows.X])
        model.input_range_ = np.stack([ends.min(axis=0), ends.max(axis=0)])
        fitted = model._fitted_with(rows, y)
        model._keep(model._result, fitted)
        return model

    @abstractmethod
    def _fitted_with(self, rows: Points, y: Array) -> Fitted:
        """Add rows to the training rows, and make the predictor."""

    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        noise_variance: ArrayLike | None = None,
    ) -> Array | tuple[Array, Array]:
        """Plain Gaussian process prediction, without the guarantee.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test inputs.
        return_std : bool, default=False
            Also return the standard deviation of a new label, noise included.
        return_cov : bool, default=False
            Also return the covariance matrix of new labels, noise included; not with ``return_std``, nor with ``warp``.
        noise_variance : array-like of shape (n_samples,) or None, default=None
            Known noise variance of each test row's label, as in :meth:`predict_interval`; means do not need it.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Predictive mean. With ``warp`` the mean of the mapped label, mapped back, which is the median of the label.
        std : ndarray of shape (n_samples,)
            Predictive standard deviation; only with ``return_std``. With ``warp`` half the length of the interval from
            one standard deviation below the mapped label's mean to one above, mapped back.
        cov : ndarray of shape (n_samples, n_samples)
            Covariances of new labels given the training rows; only with ``return_cov``.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
        >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> mean, std = model.predict([[1.0], [3.0]], return_std=True)
        >>> mean.round(3), std.round(3)
        (array([ 0.802, -0.333]), array([0.424, 0.84 ]))
        """
        inputs = self._test_inputs(X, noise_variance, needs_noise=return_std or return_cov)
        if return_cov:
            if return_std or self.warp_ is not None:
                raise ValueError(
                    "return_cov=True must come without return_std=True and without warp, of whose labels there is no "
                    f"covariance: got return_std={return_std!r}, warp={self.warp_!r}. sample_y draws such labels."
                )
            return self._predictor.mean_and_covariance(inputs)
        if not return_std:
            return self._predictor.mean(inputs)
        mean, variance = self._predictor.mean_and_variance(inputs)
        return mean, np.sqrt(variance)

    def predict_interval(
        self,
        X: ArrayLike,
        confidence_level: float | ArrayLike = 0.95,
        tails: str = "joint",
        noise_variance: ArrayLike | None = None,
        *,
        groups: GroupsLike = None,
        likelihood_ratio: RatioLike = None,
    ) -> Array:
        """Prediction intervals: the convex hull of each row's region, or the part between two one-sided bounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test inputs.
        confidence_level : float or sequence of floats, default=0.95
            Level or levels, each strictly between 0 and 1.
        tails : {"joint", "equal"}, default="joint"
            "joint" is the hull of the region of absolute scores. "equal" takes the lower and the upper bound of signed
            scores at half of delta each: labels miss it on either side with probability at most delta / 2. Such
            intervals follow skewed noise, and need twice as many rows.
        noise_variance : array-like of shape (n_samples,) or None, default=None
            Known noise variance of each test row's label. Needed if ``fit`` was given those of the training rows, else
            an error.
        groups : array-like of shape (n_samples,), callable, str or None, default=None
            Groups of the test rows, as ``fit`` takes them: each row is ranked among the training rows of its group.
            None takes the function or the column that ``fit`` was given. An error if ``fit`` was given no groups.
        likelihood_ratio : callable, pair of arrays or None, default=None
            Density of the test inputs over that of the training inputs, up to a factor: a function of X, or ratios of
            the training rows and of the test rows. Rows are then weighted by it, and coverage is exact for test rows of
            another distribution of inputs. Ends are infinite where a test row's ratio is more than delta of the sum.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2) or (n_samples, 2, n_levels)
            Lower and upper ends; three-dimensional when a sequence of levels is given. Ends are infinite where the
            training rows cannot support the level, and equal where the region is empty.

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
        rows = self._ranked_rows(X, noise_variance, groups, likelihood_ratio)
        levels, single = read_levels(confidence_level)
        if tails not in ("joint", "equal"):
            raise ValueError(f"tails must be 'joint' or 'equal', got {tails!r}.")
        each = levels if tails == "joint" else [(1 + level) / 2 for level in levels]
        rows.warn_where_infinite("confidence_level", zip(levels, each, strict=True), "intervals")
        intervals = rows.hulls(each) if tails == "joint" else rows.bounds(each, each).reshape(-1, 2, len(levels))
        return intervals[:, :, 0] if single else intervals

    def predict_set(
        self,
        X: ArrayLike,
        confidence_level: float = 0.95,
        noise_variance: ArrayLike | None = None,
        *,
        groups: GroupsLike = None,
        likelihood_ratio: RatioLike = None,
    ) -> list[Array]:
        """Exact prediction regions, holes and all.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test inputs.
        confidence_level : float, default=0.95
            One level strictly between 0 and 1.
        noise_variance, groups, likelihood_ratio
            As in :meth:`predict_interval`.

        Returns
        -------
        regions : list of ndarrays of shape (n_pieces, 2)
            For each row the closure of its region, as sorted, disjoint, closed intervals. With ``gamma=2`` and without
            a difficulty there is always one where hyperparameters are fixed or tuned. Where they are averaged over
            (``tuning_`` is "integrated") regions are searched on a grid of labels, which is a third of a standard
            deviation wide near the prediction: smaller gaps are not found, and ends are put out by up to 1e-4 standard
            deviations.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
        >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> [region.round(2) for region in model.predict_set([[1.0]], confidence_level=0.5)]
        [array([[0.51, 1.22]])]
        """
        rows = self._ranked_rows(X, noise_variance, groups, likelihood_ratio)
        levels, single = read_levels(confidence_level)
        if not single:
            raise ValueError(f"confidence_level must be one number for predict_set, got {confidence_level!r}.")
        rows.warn_where_infinite("confidence_level", [(levels[0], levels[0])], "regions")
        return rows.regions(levels[0])

    def predict_p(
        self,
        X: ArrayLike,
        y: ArrayLike,
        smoothing: bool = False,
        random_state: int | np.random.RandomState | None = None,
        noise_variance: ArrayLike | None = None,
        *,
        groups: GroupsLike = None,
        likelihood_ratio: RatioLike = None,
    ) -> Array:
        """p-values of labels: how well each fits in with the training rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test inputs.
        y : array-like of shape (n_samples,)
            One candidate label for each row.
        smoothing : bool, default=False
            Break ties at random: p-values of true labels are then exactly uniform, where without they are a little
            larger.
        random_state : int, RandomState instance or None, default=None
            Seed of the tie breaks.
        noise_variance, groups, likelihood_ratio
            As in :meth:`predict_interval`.

        Returns
        -------
        p : ndarray of shape (n_samples,)
            The label ``y[i]`` is in the region of level ``1 - delta`` of ``X[i]`` exactly when ``p[i] > delta``
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
        rows = self._ranked_rows(X, noise_variance, groups, likelihood_ratio)
        labels = check_labels(y, rows.new.X)
        ties = check_random_state(random_state).uniform(size=labels.size) if smoothing else None
        return rows.shares(labels, ties)

    @property
    def _n_inputs(self) -> int:
        """Inputs of the model, which are more than columns where these hold categories."""
        return self.n_features_in_ if self._encoding is None else self._encoding.n_inputs

    def _input_names(self) -> NDArray[Any] | None:
        """Names of the inputs, where columns had names."""
        names = getattr(self, "feature_names_in_", None)
        return names if names is None or self._encoding is None else np.array(self._encoding.names(names), dtype=object)

    def beyond_training(self, X: ArrayLike) -> Mask:
        """Which inputs lie beyond the training rows, where intervals rest on the model alone.

        An input lies beyond if it is less than the least value of the training rows, or more than the greatest, by more
        than a tenth of the distance between the two. The guarantee is for rows like the training rows, and such rows
        are not. Predictions for them come with an :class:`~conformal_gp.ExtrapolationWarning`. Rows that are unusual in
        combination only are not found.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test inputs.

        Returns
        -------
        beyond : ndarray of bool of shape (n_samples, n_features)
            Whether each input does; ``.any(axis=1)`` is for rows.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> model.beyond_training([[2.1], [2.3]]).tolist()
        [[False], [True]]
        """
        return beyond(self._checked_inputs(X), self.input_range_)

    def _checked_inputs(self, X: Any) -> Array:
        check_is_fitted(self)
        return encoded_inputs(self, self._inputs_of(X), reset=False)

    def _test_inputs(self, X: Any, noise_variance: Any = None, needs_noise: bool = True, stacklevel: int = 3) -> Points:
        """Test rows for a method that a user called; warns of those beyond the training rows."""
        rows = self._checked_rows(X, noise_variance, needs_noise)
        warn_beyond(rows.X, self.input_range_, self._input_names(), stacklevel=stacklevel)
        return rows

    def _checked_rows(self, X: Any, noise_variance: Any, needs_noise: bool = True) -> Points:
        """Rows like the training rows."""
        inputs = self._checked_inputs(X)
        if self._knows_noise and noise_variance is None and needs_noise:
            raise ValueError(
                "noise_variance is needed, one for each test row and each later row: fit was given those of the "
                "training rows, and other rows must be like these."
            )
        if noise_variance is not None and not self._knows_noise:
            raise ValueError(
                "noise_variance of other rows is taken if fit was given those of the training rows, and it was not."
            )
        return points(inputs, None if noise_variance is None else check_known_noise(noise_variance, inputs))
