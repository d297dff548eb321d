"""The front door: a scikit-learn regressor with guaranteed prediction intervals."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Self, TypeVar

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context, clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from conformal_gp.conformal.levels import rank, read_levels, rows_needed
from conformal_gp.conformal.lines import Lines, normalised_residual_lines
from conformal_gp.conformal.pvalues import p_values
from conformal_gp.conformal.regions import hulls, regions
from conformal_gp.gp.mean import MEAN_NAMES, IndependentColumns, basis
from conformal_gp.gp.posterior import Posterior, Prediction
from conformal_gp.gp.threads import map_threads, one_blas_thread
from conformal_gp.gp.tuning import maximise_likelihood
from conformal_gp.kernels import KERNEL_NAMES, kernel_from_name
from conformal_gp.validation import check_inputs, check_labels

__all__ = ["ConformalGPRegressor"]

Array = NDArray[np.float64]
Part = TypeVar("Part")

# Test rows are taken in blocks whose weights fill about two megabytes: large enough for the matrix product, small
# enough for the cache. Memory does not grow with the number of test rows.
BLOCK_ENTRIES = 2**18


class ConformalGPRegressor(RegressorMixin, BaseEstimator):
    r"""Gaussian process regression whose prediction intervals have guaranteed coverage.

    Full (transductive) conformal prediction on exact Gaussian process regression, after Papadopoulos (2024): for rows
    that are exchangeable, a region of confidence level :math:`1 - \delta` holds a new label with probability at least
    :math:`1 - \delta`, however wrong the model is. ``guarantee_`` says whether that is exact for a given fit.

    Parameters
    ----------
    kernel : {"se", "rq", "nn", "matern32", "matern52"} or scikit-learn kernel, default="matern52"
        Covariance function. A name is squared exponential, rational quadratic, neural network, Matérn 3/2 or
        Matérn 5/2, with an amplitude and one length scale that start at the scale of the data. A kernel object
        (sums, products, a length scale for each input, your own) is used as it is, with its own start and bounds.
    mean : {"zero", "constant", "linear"}, default="linear"
        Mean function; "linear" is a constant and a term for each input.
    noise_variance : float >= 0 or None, default=None
        Variance of the noise on each label: where it starts, or its value with ``tuning="fixed"``. None starts at a
        tenth of the labels' variance. 0 means no noise of our own (say, with a ``WhiteKernel`` in ``kernel``).
    gamma : float in [1, inf], default=2.0
        Root of the leave-one-out variance by which residuals are divided. 2 divides by the standard deviation, and
        always gives one bounded interval. ``np.inf`` does not divide; 1 takes the plain residual of a fit to all rows.
    tuning : {"fixed", "train", "holdout", "augmented"}, default="train"
        How hyperparameters are chosen. "fixed" takes ``kernel`` and ``noise_variance`` as they are and gives the
        coefficients of the mean a flat prior inside the bag of training rows and test row. "train" learns all of them
        by maximum likelihood on the training rows, the paper's way. The other two are not available yet.
    scale_inputs : bool, default=True
        Standardise inputs to mean 0 and standard deviation 1 over the training rows.
    n_restarts : int, default=3
        Random starts of the optimiser besides the given one.
    random_state : int, RandomState instance or None, default=None
        Seed of the random starts.
    n_jobs : int or None, default=None
        Threads over starts and over blocks of test rows. None takes as many as BLAS would; -1 takes all cores. Results
        do not depend on it.

    Attributes
    ----------
    kernel_ : sklearn.gaussian_process.kernels.Kernel
        Kernel with the hyperparameters in use, on inputs scaled as ``scale_inputs`` says.
    noise_variance_ : float
        Noise variance in use.
    mean_coef_ : ndarray of shape (0,), (1,) or (1 + n_features,)
        Coefficients of the mean function on scaled inputs, constant first.
    log_marginal_likelihood_ : float
        Log marginal likelihood of the training labels at these values.
    guarantee_ : str
        Whether the coverage of this fit is exact, and why.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of str
        Names of the inputs, when ``X`` had names.

    See Also
    --------
    sklearn.gaussian_process.GaussianProcessRegressor : Gaussian process regression without the guarantee.

    References
    ----------
    H. Papadopoulos, "Guaranteed Coverage Prediction Intervals with Gaussian Process Regression", IEEE Transactions on
    Pattern Analysis and Machine Intelligence, 2024.

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.datasets import load_servo
    >>> X, y = load_servo(return_X_y=True)
    >>> model = ConformalGPRegressor(random_state=0).fit(X[:150], y[:150])
    >>> model.predict_interval(X[150:], confidence_level=0.9).shape
    (17, 2)
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        "kernel": [StrOptions(set(KERNEL_NAMES)), Kernel],
        "mean": [StrOptions(set(MEAN_NAMES))],
        "noise_variance": [Interval(Real, 0, None, closed="left"), None],
        "gamma": [Interval(Real, 1, None, closed="both")],
        "tuning": [StrOptions({"fixed", "train", "holdout", "augmented"})],
        "scale_inputs": ["boolean"],
        "n_restarts": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        kernel: str | Kernel = "matern52",
        *,
        mean: str = "linear",
        noise_variance: float | None = None,
        gamma: float = 2.0,
        tuning: str = "train",
        scale_inputs: bool = True,
        n_restarts: int = 3,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ):
        self.kernel = kernel
        self.mean = mean
        self.noise_variance = noise_variance
        self.gamma = gamma
        self.tuning = tuning
        self.scale_inputs = scale_inputs
        self.n_restarts = n_restarts
        self.random_state = random_state
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to training rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self : ConformalGPRegressor
            The fitted model.
        """
        if self.tuning in ("holdout", "augmented"):
            raise NotImplementedError(f"tuning={self.tuning!r} is not available yet; use 'train' or 'fixed'.")
        X_checked = check_inputs(self, X, reset=True, y=y)
        labels = check_labels(y, X_checked)
        with one_blas_thread(rows=labels.size):
            self._fit_checked(X_checked, labels)
        self.guarantee_ = self._describe_guarantee()
        return self

    def _fit_checked(self, X: Array, y: Array) -> None:
        self._scaler = StandardScaler().fit(X) if self.scale_inputs else None
        inputs = self._scaled(X)
        H = basis(self.mean, inputs)
        self._columns = IndependentColumns(H)
        if H.shape[1] and self._columns.rank >= y.size:
            raise ValueError(
                f"mean={self.mean!r} has {H.shape[1]} coefficients, too many for n_samples={y.size} rows; use "
                "mean='constant' (at least 2 rows) or mean='zero'."
            )
        self._fit_process(inputs, y, self._columns.reduce(H))

    def _fit_process(self, X: Array, y: Array, H: Array) -> None:
        with np.errstate(over="ignore"):
            label_variance = float(np.mean((y - H @ (H.T @ y)) ** 2))  # H has orthonormal columns
            label_size = float(np.mean(y**2))
        if not np.isfinite(label_size):
            raise ValueError(f"y reaches {np.abs(y).max():.1e}, whose square overflows; divide y by a constant.")
        explained = label_variance <= 1e-26 * label_size  # all but rounding
        kernel, noise = self._start(X, 1.0 if explained else label_variance)
        if explained:
            warnings.warn(
                f"y is reproduced exactly by mean={self.mean!r}: the intervals have no width.",
                UserWarning,
                stacklevel=5,
            )
        elif self.tuning == "train":
            optimum = maximise_likelihood(
                kernel,
                noise,
                X,
                y,
                H,
                label_variance=label_variance,
                n_restarts=self.n_restarts,
                random_state=check_random_state(self.random_state),
                n_jobs=self.n_jobs,
            )
            kernel, noise = optimum.kernel, optimum.noise_variance
        self._posterior = self._condition(kernel, noise, X, y, H)
        self.kernel_ = kernel
        self.noise_variance_ = self._posterior.noise_variance
        self.mean_coef_ = self._columns.directions @ self._posterior.coefficients
        self.log_marginal_likelihood_ = self._posterior.log_marginal_likelihood

    def _condition(self, kernel: Kernel, noise: float, X: Array, y: Array, H: Array) -> Posterior:
        """Posterior; noise that was learnt may be raised until the covariance matrix is well conditioned."""
        if self.tuning == "fixed":
            return Posterior(kernel, noise, X, y, H, flat_prior=True)
        floor = 1e-14 * float(kernel.diag(X).max())
        for jitter in (0.0, *(floor * 10.0**step for step in range(8))):
            try:
                posterior = Posterior(kernel, noise + jitter, X, y, H)
            except LinAlgError as error:
                last_error = error
                continue
            if jitter:
                warnings.warn(
                    f"The covariance matrix was numerically singular: the noise variance was raised by {jitter:.1e}.",
                    UserWarning,
                    stacklevel=6,
                )
            return posterior
        raise last_error

    def _start(self, X: Array, label_variance: float) -> tuple[Kernel, float]:
        """Kernel and noise variance to start from; for ``tuning="fixed"``, those to use."""
        if self.tuning == "fixed":
            if self.noise_variance is None:
                raise ValueError(
                    "noise_variance must be a number with tuning='fixed', got None (0 if the kernel has its own noise)."
                )
            kernel = kernel_from_name(self.kernel) if isinstance(self.kernel, str) else clone(self.kernel)
            noise = float(self.noise_variance)
        else:
            noise = 0.1 * label_variance if self.noise_variance is None else float(self.noise_variance)
            if isinstance(self.kernel, str):
                # the root mean square distance between rows, over the square root of two
                spread = float(np.sqrt(X.var(axis=0).sum())) or 1.0
                kernel = kernel_from_name(self.kernel, amplitude=label_variance, length_scale=spread)
            else:
                kernel = clone(self.kernel)
        try:
            kernel(X[:1])
        except ValueError as error:
            raise ValueError(f"kernel {kernel} does not take {X.shape[1]} inputs: {error}") from error
        return kernel, noise

    def _describe_guarantee(self) -> str:
        if self.tuning == "train":
            return (
                "Not exact: hyperparameters and mean function were learnt from the training rows alone, so coverage "
                "can fall below the level, most with few rows or many hyperparameters."
            )
        if self.scale_inputs:
            return (
                "Not exact: inputs were scaled by the training rows alone, so coverage can differ slightly from the "
                "level; with scale_inputs=False it is exact."
            )
        return (
            "Exact: kernel and noise were fixed beforehand and all rows enter alike, so for exchangeable rows the "
            "region of level 1 - delta holds the label of a new row with probability at least 1 - delta."
        )

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Plain Gaussian process prediction, without the guarantee.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test inputs.
        return_std : bool, default=False
            Also return the standard deviation of a new label, noise included.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Predictive mean.
        std : ndarray of shape (n_samples,)
            Predictive standard deviation; only with ``return_std``.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
        >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> mean, std = model.predict([[1.0], [3.0]], return_std=True)
        >>> mean.round(3), std.round(3)
        (array([ 0.802, -0.333]), array([0.424, 0.84 ]))
        """
        if not return_std:
            return np.concatenate(self._by_blocks(X, self._block_mean))
        parts = self._by_blocks(X, self._block_prediction)
        mean = np.concatenate([part.mean for part in parts])
        return mean, np.sqrt(np.concatenate([part.variance for part in parts]))

    def predict_interval(self, X: ArrayLike, confidence_level: float | ArrayLike = 0.95) -> Array:
        """Prediction intervals: the convex hull of each row's region.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test inputs.
        confidence_level : float or sequence of floats, default=0.95
            Level or levels, each strictly between 0 and 1.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2) or (n_samples, 2, n_levels)
            Lower and upper ends; three-dimensional when a sequence of levels is given. Ends are infinite where the
            training rows cannot support the level.

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
        """
        check_is_fitted(self)
        levels, single = read_levels(confidence_level)
        n = self._posterior.alpha.size
        ranks = [rank(level, n) for level in levels]
        for level, k in zip(levels, ranks, strict=True):
            if k == 0:
                warnings.warn(
                    f"confidence_level={float(level):g} needs at least {rows_needed(level)} rows, the model has {n}; "
                    "its intervals are infinite.",
                    UserWarning,
                    stacklevel=2,
                )
        intervals = np.concatenate(self._by_blocks(X, lambda x: hulls(self._block_lines(x), ranks)))
        return intervals[:, :, 0] if single else intervals

    def predict_set(self, X: ArrayLike, confidence_level: float = 0.95) -> list[Array]:
        """Exact prediction regions, holes and all.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test inputs.
        confidence_level : float, default=0.95
            One level strictly between 0 and 1.

        Returns
        -------
        regions : list of ndarrays of shape (n_pieces, 2)
            For each row its region as sorted, disjoint, closed intervals. With ``gamma=2`` there is always one.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
        >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> [region.round(2) for region in model.predict_set([[1.0]], confidence_level=0.5)]
        [array([[0.51, 1.22]])]
        """
        check_is_fitted(self)
        levels, single = read_levels(confidence_level)
        if not single:
            raise ValueError(f"confidence_level must be one number for predict_set, got {confidence_level!r}.")
        k = rank(levels[0], self._posterior.alpha.size)
        parts = self._by_blocks(X, lambda x: regions(self._block_lines(x), k))
        return [region for part in parts for region in part]

    def predict_p(
        self,
        X: ArrayLike,
        y: ArrayLike,
        smoothing: bool = False,
        random_state: int | np.random.RandomState | None = None,
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

        Returns
        -------
        p : ndarray of shape (n_samples,)
            The label ``y[i]`` is in the region of level ``1 - delta`` of ``X[i]`` exactly when ``p[i] > delta``
            (without smoothing).

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
        >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> model.predict_p([[1.0], [1.0]], [0.8, 5.0])
        array([1.  , 0.25])
        """
        check_is_fitted(self)
        inputs = check_inputs(self, X, reset=False)
        labels = check_labels(y, inputs)
        ties = check_random_state(random_state).uniform(size=labels.size) if smoothing else None

        def block(rows: slice) -> Array:
            lines = self._block_lines(inputs[rows])
            return p_values(lines, labels[rows], None if ties is None else ties[rows])

        return np.concatenate(list(map_threads(block, self._slices(labels.size), self.n_jobs)))

    def _by_blocks(self, X: ArrayLike, function: Callable[[Array], Part]) -> list[Part]:
        """``function`` of each block of checked test rows, in order."""
        check_is_fitted(self)
        inputs = check_inputs(self, X, reset=False)
        return list(map_threads(lambda rows: function(inputs[rows]), self._slices(inputs.shape[0]), self.n_jobs))

    def _slices(self, n_rows: int) -> list[slice]:
        step = max(64, BLOCK_ENTRIES // self._posterior.alpha.size)
        return [slice(start, start + step) for start in range(0, n_rows, step)]

    def _block_mean(self, X: Array) -> Array:
        inputs = self._scaled(X)
        return self._posterior.mean(inputs, self._columns.reduce(basis(self.mean, inputs)))

    def _block_prediction(self, X: Array) -> Prediction:
        inputs = self._scaled(X)
        H = basis(self.mean, inputs)
        block = self._posterior.predict(inputs, self._columns.reduce(H))
        if self.tuning == "fixed":
            # a flat prior says nothing where the training rows determine no coefficient
            block.variance[self._columns.leaves(H)] = np.inf
        return block

    def _block_lines(self, X: Array) -> Lines:
        block = self._block_prediction(X)
        return normalised_residual_lines(
            self._posterior.alpha, self._posterior.diagonal, *block, gamma=float(self.gamma)
        )

    def _scaled(self, X: Array) -> Array:
        return X if self._scaler is None else self._scaler.transform(X)
