"""What both regressors share: predictions, intervals, regions and p-values of a fitted model."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from conformal_gp.conformal.levels import rank, read_levels, warn_where_infinite
from conformal_gp.constraints import HasMethods, Interval, StrOptions
from conformal_gp.distributions import PredictiveDistributions
from conformal_gp.explanation import ExplainedIntervals
from conformal_gp.frames import UNSEEN, Encoding, encoded_inputs
from conformal_gp.gp.inputs import MEAN_NAMES, Points, points
from conformal_gp.gp.warps import Bounds
from conformal_gp.kernels import KERNEL_NAMES
from conformal_gp.predictors.base import Predictor
from conformal_gp.predictors.transformed import WarpedPredictor
from conformal_gp.rows import ArrayRows
from conformal_gp.tuning.methods import UNSEEN_CONDITION, Fitted, TuningResult
from conformal_gp.tuning.settings import LEARNT_WARPS, Settings, WarpChoice, check_warp
from conformal_gp.types import Array, Mask
from conformal_gp.validation import (
    beyond,
    check_known_noise,
    check_labels,
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
    "y_bounds": [tuple, list, None],
    "scale_inputs": ["boolean"],
    "unseen_categories": [StrOptions(set(UNSEEN))],
    "n_restarts": [Interval(Integral, 0, None, closed="left")],
    "random_state": ["random_state"],
    "n_jobs": [Interval(Integral, None, -1, closed="right"), Interval(Integral, 1, None, closed="left"), None],
}


# Parameters that have gone, and what to use instead.
GONE = {
    "noise": "Widths follow the difficulty of rows by default: difficulty='auto' is what noise='varying' was for",
    "length_scale_prior": "Whether inputs have length scales of their own is now chosen by BIC; length_scales='one' "
    "gives them one",
}


def without_gone(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that warns of parameters that have gone; its signature stays what it is."""

    @wraps(init)
    def checked(self: BaseEstimator, *arguments: Any, **options: Any) -> None:
        for name in GONE.keys() & options.keys():
            warnings.warn(f"{name}= has gone and changes nothing. {GONE[name]}.", FutureWarning, stacklevel=2)
            del options[name]
        init(self, *arguments, **options)

    return checked


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
    y_bounds: tuple[float | None, float | None] | None
    scale_inputs: bool
    n_restarts: int
    n_jobs: int | None
    unseen_categories: str
    input_range_: Array
    _predictor: Predictor
    _encoding: Encoding | None = None
    _knows_noise: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """Without the predictor, which follows from plan and rows, unless these would have to be read from afar."""
        state = super().__getstate__()
        at_hand = isinstance(state.get("_training_rows"), tuple | ArrayRows)
        return {name: value for name, value in state.items() if name != "_predictor" or not at_hand}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_result" in state and "_predictor" not in state:
            self._predictor = self._within_bounds(self._predictor_again())

    def _keep(self, result: TuningResult, fitted: Fitted) -> None:
        """Keep what tuning has decided, which makes the predictor again from a saved model, and its attributes."""
        self._result = result
        self._predictor = self._within_bounds(fitted.predictor)
        self.kernel_ = clone(fitted.kernel)
        self.noise_variance_ = fitted.noise_variance
        self.mean_coef_ = fitted.mean_coef
        self.log_marginal_likelihood_ = fitted.log_marginal_likelihood
        self.mean_ = result.mean
        self.gamma_ = result.gamma
        self.warp_ = result.warp
        self.difficulty_ = None if result.difficulty is None else result.difficulty.regressor
        self.design_ = result.design.copy()
        unseen = self._encoding is not None and self._encoding.unseen != "error"
        self.guarantee_ = f"{result.guarantee} {UNSEEN_CONDITION}" if unseen else result.guarantee

    @abstractmethod
    def _predictor_again(self) -> Predictor:
        """The predictor of what tuning has decided and the training rows; nothing is learnt."""

    def _within_bounds(self, predictor: Predictor) -> Predictor:
        """A predictor whose regions are cut at bounds of the labels, if there are any."""
        return predictor if self.y_bounds is None else WarpedPredictor(predictor, Bounds.of(self.y_bounds))

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
            **chosen,
        )

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
        inputs = self._test_inputs(X, noise_variance)
        levels, single = read_levels(confidence_level)
        if tails not in ("joint", "equal"):
            raise ValueError(f"tails must be 'joint' or 'equal', got {tails!r}.")
        n = self._predictor.n_ranked
        each = levels if tails == "joint" else [(1 + level) / 2 for level in levels]
        warn_where_infinite("confidence_level", zip(levels, each, strict=True), n, "intervals")
        ranks = [rank(level, n) for level in each]
        if tails == "joint":
            intervals = self._predictor.hulls(inputs, ranks)
        else:
            intervals = self._predictor.bounds(inputs, ranks, ranks).reshape(-1, 2, len(levels))
        return intervals[:, :, 0] if single else intervals

    def predict_set(
        self, X: ArrayLike, confidence_level: float = 0.95, noise_variance: ArrayLike | None = None
    ) -> list[Array]:
        """Exact prediction regions, holes and all.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test inputs.
        confidence_level : float, default=0.95
            One level strictly between 0 and 1.
        noise_variance
            As in :meth:`predict_interval`.

        Returns
        -------
        regions : list of ndarrays of shape (n_pieces, 2)
            For each row the closure of its region, as sorted, disjoint, closed intervals. With ``gamma=2`` there is
            always one, unless hyperparameters are chosen inside the bag (``tuning_`` is "augmented"), where gaps can
            occur; where they are searched, a region of a low level can be empty.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
        >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> [region.round(2) for region in model.predict_set([[1.0]], confidence_level=0.5)]
        [array([[0.51, 1.22]])]
        """
        inputs = self._test_inputs(X, noise_variance)
        levels, single = read_levels(confidence_level)
        if not single:
            raise ValueError(f"confidence_level must be one number for predict_set, got {confidence_level!r}.")
        return self._predictor.regions(inputs, rank(levels[0], self._predictor.n_ranked))

    def predict_p(
        self,
        X: ArrayLike,
        y: ArrayLike,
        smoothing: bool = False,
        random_state: int | np.random.RandomState | None = None,
        noise_variance: ArrayLike | None = None,
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
        noise_variance
            As in :meth:`predict_interval`.

        Returns
        -------
        p : ndarray of shape (n_samples,)
            The label ``y[i]`` is in the region of level ``1 - delta`` of ``X[i]`` exactly when ``p[i] > delta``
            (without smoothing). Ends of regions count as inside, up to rounding, with one exception: where tuning is
            inside the bag and other hyperparameters begin at an end, its own p-value may be of either side.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
        >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> model.predict_p([[1.0], [1.0]], [0.8, 5.0])
        array([1.  , 0.25])
        """
        inputs = self._test_inputs(X, noise_variance)
        labels = check_labels(y, inputs.X)
        ties = check_random_state(random_state).uniform(size=labels.size) if smoothing else None
        return self._predictor.p_values(inputs, labels, ties)

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
        return encoded_inputs(self, X, reset=False)

    def _test_inputs(self, X: Any, noise_variance: Any = None, needs_noise: bool = True) -> Points:
        """Test rows for a method that a user called; warns of those beyond the training rows."""
        inputs = self._checked_inputs(X)
        if self._knows_noise and noise_variance is None and needs_noise:
            raise ValueError(
                "noise_variance is needed, one for each test row: fit was given those of the training rows, and test "
                "rows must be like these."
            )
        if noise_variance is not None and not self._knows_noise:
            raise ValueError(
                "noise_variance of test rows is taken if fit was given those of the training rows, and it was not."
            )
        warn_beyond(inputs, self.input_range_, self._input_names(), stacklevel=3)
        return points(inputs, None if noise_variance is None else check_known_noise(noise_variance, inputs))
