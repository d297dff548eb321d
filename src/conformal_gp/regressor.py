"""The front door: a scikit-learn regressor with guaranteed prediction intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from conformal_gp.base import ConformalRegressor
from conformal_gp.fitting import Fitted, Settings, automatic, fit_augmented, fit_fixed, fit_holdout, fit_train
from conformal_gp.gp.mean import MEAN_NAMES
from conformal_gp.kernels import KERNEL_NAMES
from conformal_gp.threads import one_blas_thread
from conformal_gp.validation import check_candidates, check_design, check_inputs, check_labels

__all__ = ["ConformalGPRegressor"]

Array = NDArray[np.float64]

_WAYS: dict[str, Callable[..., Fitted]] = {
    "fixed": fit_fixed,
    "train": fit_train,
    "holdout": fit_holdout,
    "augmented": fit_augmented,
}


class ConformalGPRegressor(ConformalRegressor):
    r"""Gaussian process regression whose prediction intervals have guaranteed coverage.

    Full (transductive) conformal prediction on exact Gaussian process regression, after Papadopoulos (2024): for rows
    that are exchangeable, a region of confidence level :math:`1 - \delta` holds a new label with probability at least
    :math:`1 - \delta`, however wrong the model is. ``guarantee_`` says whether that is exact for a given fit.

    Parameters
    ----------
    kernel : str, scikit-learn kernel, or list of these, default="matern52"
        Covariance function. The names "se", "rq", "nn", "matern32" and "matern52" are squared
        exponential, rational quadratic, neural network, Matérn 3/2 and Matérn 5/2, with an amplitude and one length
        scale at the scale of the data. A kernel object (sums, products, a
        length scale for each input, your own) is used as it is, with its own start and bounds. Of several, the
        likelihood chooses one.
    mean : {"zero", "constant", "linear"}, default="linear"
        Mean function; "linear" is a constant and a term for each input.
    noise_variance : float >= 0 or None, default=None
        Variance of the noise on each label: where it starts, or its value with ``tuning="fixed"``. None starts at a
        tenth of the labels' variance. 0 means no noise of our own (say, with a ``WhiteKernel`` in ``kernel``). Not
        used where candidates bring their own.
    gamma : float in [1, inf] or list of such, default=2.0
        Root of the leave-one-out variance by which residuals are divided. 2 divides by the standard deviation, and
        for given hyperparameters always gives one bounded interval. ``np.inf`` does not divide; 1 takes the plain
        residual of a fit to all rows. Of several, the design rows choose the one of narrowest intervals.
    tuning : {"auto", "augmented", "holdout", "train", "fixed"}, default="auto"
        How hyperparameters are chosen.

        - "augmented": inside the bag of training rows and test row, anew for every label, from a finite set of
          candidates, or, for a length scale for each input, by a search. Exact.
        - "holdout": on design rows, by maximum likelihood; all rows predict, the others are ranked. Exact.
        - "auto": "augmented" for named kernels and up to 1000 rows, for kernel objects and up to 200 rows, or where
          ``candidates`` are given; else "holdout".
        - "train": by maximum likelihood on the training rows, the paper's way. Not exact.
        - "fixed": ``kernel`` and ``noise_variance`` as they are. Exact with ``scale_inputs=False``.

        In the exact ways the coefficients of the mean have a flat prior inside the bag.
    design : float in (0, 1), array-like of int, or None, default=None
        Design rows, as a share drawn at random or as row numbers. None takes about half with "holdout". With
        "augmented" it takes a fifth to two fifths, four for each hyperparameter, where they have to propose candidates
        or choose among several ``gamma``, else none. The number of ranked rows, and one, is then a multiple of 20 (of
        10 for few rows), which meets the usual levels exactly.
    candidates : list of (kernel, noise variance) pairs, or None, default=None
        Candidates for "augmented"; each counts up to a common factor of signal and noise. They may not come from the
        training rows. None takes a lattice of length scales and noise ratios for named kernels; a search for the inputs
        that matter for a kernel with an amplitude and a length scale for each of up to 20 inputs, with up to 200 rows;
        and proposals of design rows for other kernels, or where ``design`` is given.
    scale_inputs : bool, default=True
        Standardise inputs to mean 0 and standard deviation 1: over the training rows, with "holdout" over the design
        rows, or with "augmented" over all rows of the bag, rounded (see the documentation).
    n_restarts : int, default=3
        Random starts of the optimiser besides the given one.
    random_state : int, RandomState instance or None, default=None
        Seed of the random starts and of the choice of design rows.
    n_jobs : int or None, default=None
        Threads over starts, candidates and blocks of test rows. None takes as many as BLAS would; -1 takes all
        cores. Results do not depend on it.

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
    tuning_ : str
        The way that was taken; it differs from ``tuning`` only for "auto".
    gamma_ : float
        The gamma in use.
    design_ : ndarray of int
        Design rows; empty when there are none.
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
        "kernel": [StrOptions(set(KERNEL_NAMES)), Kernel, list, tuple],
        "mean": [StrOptions(set(MEAN_NAMES))],
        "noise_variance": [Interval(Real, 0, None, closed="left"), None],
        "gamma": [Interval(Real, 1, None, closed="both"), "array-like"],
        "tuning": [StrOptions({"auto", *_WAYS})],
        "design": [Interval(Real, 0, 1, closed="neither"), "array-like", None],
        "candidates": [list, tuple, None],
        "scale_inputs": ["boolean"],
        "n_restarts": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        kernel: str | Kernel | Sequence[str | Kernel] = "matern52",
        *,
        mean: str = "linear",
        noise_variance: float | None = None,
        gamma: float | Sequence[float] = 2.0,
        tuning: str = "auto",
        design: float | ArrayLike | None = None,
        candidates: Sequence[tuple[Kernel, float]] | None = None,
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
        self.design = design
        self.candidates = candidates
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
        inputs = check_inputs(self, X, reset=True, y=y).copy()  # they are kept: the caller may change his own
        labels = check_labels(y, inputs).copy()
        settings = self._settings(labels.size)
        self.tuning_ = automatic(settings, labels.size) if self.tuning == "auto" else self.tuning
        with one_blas_thread(rows=labels.size):
            fitted = _WAYS[self.tuning_](settings, inputs, labels, check_random_state(self.random_state))
        return self._take(fitted, inputs, labels)

    def _take(self, fitted: Fitted, inputs: Array, labels: Array) -> Self:
        """Make a fit one's own; the training rows are kept for :mod:`conformal_gp.persistence`."""
        self._training_rows = inputs, labels
        self._recipe = fitted.recipe
        self._predictor = fitted.predictor
        self.kernel_ = fitted.kernel
        self.noise_variance_ = fitted.noise_variance
        self.mean_coef_ = fitted.mean_coef
        self.log_marginal_likelihood_ = fitted.log_marginal_likelihood
        self.gamma_ = fitted.recipe.gamma
        self.design_ = fitted.recipe.design
        self.guarantee_ = fitted.recipe.guarantee
        return self

    def _settings(self, n_rows: int) -> Settings:
        """Parameters as one checked value."""
        kernels, gammas = self._kernels_and_gammas()
        return Settings(
            kernels,
            self.mean,
            None if self.noise_variance is None else float(self.noise_variance),
            gammas,
            self.scale_inputs,
            self.n_restarts,
            self.n_jobs,
            check_design(self.design, n_rows),
            check_candidates(self.candidates),
        )
