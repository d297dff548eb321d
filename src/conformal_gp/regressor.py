"""The front door: a scikit-learn regressor with guaranteed prediction intervals."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state

from conformal_gp.base import CONSTRAINTS, ConformalRegressor, all_or_nothing
from conformal_gp.constraints import StrOptions
from conformal_gp.frames import encoded_inputs
from conformal_gp.gp.inputs import points
from conformal_gp.predictors.base import Predictor
from conformal_gp.threads import one_blas_thread
from conformal_gp.tuning.choices import check_domain
from conformal_gp.tuning.design import automatic
from conformal_gp.tuning.methods import METHODS, TuningResult
from conformal_gp.tuning.settings import (
    Settings,
    WarpChoice,
    check_candidates,
    check_design,
    resolved_mean,
)
from conformal_gp.validation import check_known_noise, check_labels

__all__ = ["ConformalGPRegressor"]


class ConformalGPRegressor(ConformalRegressor):
    r"""Gaussian process regression whose prediction intervals have guaranteed coverage.

    Full (transductive) conformal prediction on exact Gaussian process regression, after Papadopoulos (2024): for rows
    that are exchangeable, a region of confidence level :math:`1 - \delta` holds a new label with probability at least
    :math:`1 - \delta`, however wrong the model is. ``guarantee_`` says whether that is exact for a given fit.

    Parameters
    ----------
    kernel : str, scikit-learn kernel, or list of these, default="matern52"
        Covariance function. The names "se", "rq", "nn", "matern32" and "matern52" are squared exponential, rational
        quadratic, neural network, Matérn 3/2 and Matérn 5/2, with an amplitude and length scales (see
        ``length_scales``). A kernel object (sums, products, your own) keeps its form, its bounds and what it holds
        fixed; where something is learnt, its length scales keep their proportions at the start but not their size,
        which comes from the data, and its amplitude counts in units of the labels' variance. Of several kernels, the
        likelihood chooses one.
    mean : {"auto", "zero", "constant", "linear"}, default="auto"
        Mean function; "linear" is a constant and a term for each input. "auto" is linear if there are at least 20 rows
        for each of its coefficients, else constant.
    noise_variance : float >= 0 or None, default=None
        Variance of the noise on each label: its value with ``tuning="fixed"``, where it starts with "holdout" and
        "train" (None: at a tenth of the labels' variance). "augmented" has a start of its own. 0 is the deterministic
        mode, for simulators: labels are interpolated, with the least noise that the arithmetic bears (about 1e-12 of
        the kernel's variance, more with many rows), and none with "fixed", or with a ``WhiteKernel`` in ``kernel``,
        which is then the noise. Not used where candidates bring their own.
    noise : {"constant", "varying"}, default="constant"
        Whether the learnt noise is the same for all rows, or may vary: its logarithm is then linear in the inputs, in
        what is predicted there (not with "augmented"), and in their squares, and constant unless the rows that it is
        learnt from say otherwise. "auto" is then "augmented" with up to 100 rows and 10 inputs, else "holdout". See
        :doc:`/labels_and_noise`.
    gamma : float in [1, inf] or list of such, default=2.0
        Root of the leave-one-out variance by which residuals are divided. 2 divides by the standard deviation, and
        for given hyperparameters always gives one bounded interval. ``np.inf`` does not divide; 1 takes the plain
        residual of a fit to all rows. Of several, the design rows choose the one of narrowest intervals.
    tuning : {"auto", "augmented", "holdout", "train", "fixed"}, default="auto"
        How hyperparameters are chosen.

        - "augmented": inside the bag of training rows and test row, anew for every label, by a descent on a lattice of
          hyperparameters. The descent treats all rows of the bag alike and is followed exactly over all labels, with
          no grid. With ``candidates`` it chooses the likeliest of these instead. Exact.
        - "holdout": on design rows, by maximum likelihood; all rows predict, the others are ranked. Exact.
        - "auto": "augmented" for up to 1000 rows and 10 inputs (15 with up to 100 rows; any number for
          named kernels with one length scale), or where ``candidates`` are given; else "holdout", which it also is
          where rows differ in their noise.
        - "train": by maximum likelihood on the training rows, the paper's way. Not exact.
        - "fixed": ``kernel`` and ``noise_variance`` as they are. Exact with ``scale_inputs=False``.

        In the exact ways the coefficients of the mean have a flat prior inside the bag.
    design : int, float in (0, 1), array-like of int, or None, default=None
        Design rows, which are not ranked: how many, which share, or their row numbers. None takes about half with
        "holdout". With "augmented" it takes about a fifth where there are several ``gamma`` to choose from, or a
        ``warp`` to learn, else none. Their number is then chosen so that (number of ranked rows + 1) is a multiple of
        20 (of 10 for few rows), which meets the usual levels exactly. An error with "train" and "fixed", which have no
        use for them.
    candidates : list of (kernel, noise variance) pairs, or None, default=None
        Candidates of your own for "augmented", instead of the descent; each counts up to a common factor of signal and
        noise. They may not come from the training rows. An error with other ways of tuning.
    length_scales : {"each", "one"}, default="each"
        Whether named kernels have a length scale for each input or one for all; "rq" and "nn" always have one. With
        more than 50 inputs and "holdout" or "train", inputs side by side that are the categories of one variable (of
        which exactly one is on in each row learnt from) share theirs.
    length_scale_prior : float > 0, "auto" or None, default="auto"
        How far the logarithms of the length scales of different inputs scatter about their median, in a prior that
        keeps them alike unless the rows say otherwise. "auto" is 0.5, but none with ``tuning="train"``; "augmented"
        drops it after coarse steps where the rows have much to say, and no other number. None is a flat prior.
    warp : {"log", "sqrt", "box-cox", "yeo-johnson", "auto"}, pair of functions, or None, default=None
        A map of the labels, of which the process then is; every answer is in the labels' own units. "log" is for labels
        above 0, "sqrt" for 0 and above. "box-cox" (labels above 0) and "yeo-johnson" (any) are powers whose exponent is
        learnt; "auto" is the identity, the square root or the logarithm, for any labels. They are learnt on the design
        rows ("holdout"), on the training rows ("train"), or, with "augmented", on about a fifth of the rows, which are
        then not ranked. A pair (forward, backward) is a monotone function of arrays and its inverse, fixed beforehand.
        See :doc:`/labels_and_noise`.
    scale_inputs : bool, default=True
        Bring inputs to a common scale. With "augmented" each input is divided by the range of the middle half of all
        rows of the bag, over 1.5, rounded to a power of the square root of 2, so that no row is treated differently.
        Else inputs have mean 0 and standard deviation 1 over the design rows ("holdout") or the training rows.
    unseen_categories : {"error", "zeros"}, default="error"
        What to do with a test row whose category ``fit`` did not see: an error, or a row that has none of the
        categories. The latter is not exact (see ``docs/guides/scikit-learn.md``).
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
        Learnt noise variance in use; with ``warp``, like the kernel, of mapped labels. Where it varies, about its
        geometric mean over the rows learnt from.
    noise_coef_ : ndarray of shape (0,), (2 * (n_features + 1),) or (2 * n_features,)
        Coefficients of the logarithm of varying noise: of the inputs and of what is predicted there with constant
        noise, standardised over the rows learnt from, then of their squares (z² - 1) / √2. With "augmented" of the
        inputs, as the bag scales them, and their squares alone: what the training rows by themselves select. Empty
        where the noise is constant.
    mean_coef_ : ndarray of shape (0,), (1,) or (1 + n_features,)
        Coefficients of the mean function on scaled inputs, constant first.
    log_marginal_likelihood_ : float
        Log marginal likelihood of the training labels at these values.
    tuning_ : str
        The way that was taken; it differs from ``tuning`` only for "auto".
    mean_ : str
        The mean function in use; it differs from ``mean`` only for "auto".
    gamma_ : float
        The gamma in use.
    warp_ : Warp or None
        The map of labels in use, with its exponent.
    design_ : ndarray of int
        Design rows; empty when there are none.
    guarantee_ : str
        Whether the coverage of this fit is exact, and why.
    input_range_ : ndarray of shape (2, n_features)
        Least and greatest value of each input in the training rows; see :meth:`beyond_training`.
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
        **CONSTRAINTS,
        "tuning": [StrOptions({"auto", *METHODS})],
        "candidates": [list, tuple, None],
    }

    def __init__(
        self,
        kernel: str | Kernel | Sequence[str | Kernel] = "matern52",
        *,
        mean: str = "auto",
        noise_variance: float | None = None,
        gamma: float | Sequence[float] = 2.0,
        tuning: str = "auto",
        design: int | float | ArrayLike | None = None,
        candidates: Sequence[tuple[Kernel, float]] | None = None,
        length_scales: str = "each",
        warp: WarpChoice = "auto",
        difficulty: Any = "auto",
        scale_inputs: bool = True,
        n_restarts: int = 3,
        unseen_categories: str = "error",
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
        self.length_scales = length_scales
        self.warp = warp
        self.difficulty = difficulty
        self.scale_inputs = scale_inputs
        self.unseen_categories = unseen_categories
        self.n_restarts = n_restarts
        self.random_state = random_state
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, noise_variance: ArrayLike | None = None) -> Self:
        """Fit to training rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Inputs: numbers, booleans, and in frames of pandas or polars also columns of categories, by dtype
            (``category``, ``Categorical``, ``Enum``). A category becomes an input that is 1 in its rows and 0 in
            others.
        y : array-like of shape (n_samples,)
            Labels.
        noise_variance : array-like of shape (n_samples,) or None, default=None
            Known variance of the noise on each label, as of a measurement, in units of the labels' squares. Learnt
            noise is added to it. It is a part of the row, so coverage stays exact, and predict methods need it for
            test rows too. "auto" is then "holdout"; "augmented" and ``warp`` do not take it.

        Returns
        -------
        self : ConformalGPRegressor
            The fitted model.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
        >>> model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]).guarantee_[:5]
        'Exact'
        """
        with all_or_nothing(self):
            for message in self._fit(X, y, noise_variance).warnings:
                warnings.warn(message, UserWarning, stacklevel=3)  # past scikit-learn's wrapper: the caller's line
        return self

    def _fit(self, X: ArrayLike, y: ArrayLike, noise_variance: ArrayLike | None) -> TuningResult:
        """Check the rows, choose a tuning method, and follow it."""
        inputs = encoded_inputs(self, X, reset=True, y=y).copy()  # kept: the caller may change theirs
        labels = check_labels(y, inputs).copy()
        n_rows, n_inputs = inputs.shape
        known = None if noise_variance is None else check_known_noise(noise_variance, inputs)
        settings = self._settings(n_rows, n_inputs, known is not None)
        tuning = automatic(settings, n_rows) if self.tuning == "auto" else self.tuning
        settings = settings.resolved(tuning)
        check_domain(settings, labels)
        with one_blas_thread(rows=n_rows):
            rows = points(inputs, known)
            result = METHODS[tuning](settings, rows, labels, check_random_state(self.random_state))
            self._training_rows = inputs, labels
            self._training_noise, self._knows_noise = known, known is not None
            self.tuning_ = tuning
            self.input_range_ = np.stack([inputs.min(axis=0), inputs.max(axis=0)])
            self._keep(result, result.fitted(rows, labels, self.n_jobs))
        return result

    def _predictor_again(self) -> Predictor:
        """See ConformalRegressor."""
        inputs, labels = self._training_rows
        with one_blas_thread(rows=labels.size):
            return self._result.fitted(points(inputs, self._training_noise), labels, self.n_jobs).predictor

    def _settings(self, n_rows: int, n_inputs: int, known_noise: bool) -> Settings:
        """Parameters as one checked value."""
        return self._common_settings(
            resolved_mean(self.mean, n_rows, n_inputs),
            design=check_design(self.design, n_rows),
            candidates=check_candidates(self.candidates),
            known_noise=known_noise,
        )
