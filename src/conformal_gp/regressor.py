"""The front door: a scikit-learn regressor with guaranteed prediction intervals."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state

from conformal_gp.base import CONSTRAINTS, ConformalRegressor, all_or_nothing
from conformal_gp.comparisons import GroupsLike
from conformal_gp.constraints import StrOptions, without_gone
from conformal_gp.frames import encoded_inputs
from conformal_gp.gp.inputs import Points, points
from conformal_gp.groups import check_length
from conformal_gp.predictors.base import Predictor, Process
from conformal_gp.threads import one_blas_thread
from conformal_gp.tuning.choices import check_bounds, check_domain
from conformal_gp.tuning.design import ROWS_FOR_EXACT, automatic
from conformal_gp.tuning.integrated import Integrated, integrated
from conformal_gp.tuning.low_rank import low_rank_holdout
from conformal_gp.tuning.methods import Fitted, TuningResult, fixed, holdout, train
from conformal_gp.tuning.settings import (
    Settings,
    WarpChoice,
    check_design,
)
from conformal_gp.types import Array
from conformal_gp.validation import check_known_noise, check_labels

__all__ = ["ConformalGPRegressor"]

METHODS: dict[str, Callable[[Settings, Points, Array, np.random.RandomState], TuningResult]] = {
    "integrated": integrated,
    "holdout": holdout,
    "train": train,
    "fixed": fixed,
}


class ConformalGPRegressor(ConformalRegressor):
    r"""Gaussian process regression whose prediction intervals have guaranteed coverage.

    Full (transductive) conformal prediction on Gaussian process regression, after Papadopoulos (2024): for rows
    that are exchangeable, a region of confidence level :math:`1 - \delta` holds a new label with probability at least
    :math:`1 - \delta`, however wrong the model is. ``guarantee_`` says whether that holds for a given fit.

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
        Mean function; "linear" is a constant and a term for each input, with a flat prior. "auto" is a constant and,
        with "integrated", a linear term in the kernel, which has a proper prior; with other methods it is linear if
        there are at least 20 rows for each coefficient, else constant.
    noise_variance : float >= 0 or None, default=None
        Variance of the noise on each label: its value with ``tuning="fixed"``, where it starts with "holdout" and
        "train" (None: at a tenth of the labels' variance). 0 is for simulators: labels are interpolated, with a nugget
        that double precision can tell from none, and none at all with "fixed" or with a ``WhiteKernel`` in ``kernel``.
    gamma : float in [1, inf] or list of such, default=2.0
        Normalisation exponent (equation 19 of the paper): residuals are divided by their leave-one-out variance to the
        power 1 / gamma. 2 divides by the standard deviation, and for given hyperparameters always gives one bounded
        interval. ``np.inf`` does not divide; 1 takes the plain residual of a fit to all rows. Of several, the design
        rows choose the one of narrowest intervals.
    tuning : {"auto", "integrated", "holdout", "train", "fixed"}, default="auto"
        How hyperparameters are tuned.

        - "integrated": averaged over draws, weighted by the likelihood of all training rows and the test row with each
          candidate label. All rows are calibration rows and nothing is split. Valid up to 12 rows, where draws come
          from the prior; beyond, where they come from a Markov chain, valid up to Monte Carlo error. Takes ``gamma=2``,
          one kernel, no ``design`` and no given ``difficulty``.
        - "holdout": by maximum likelihood on design rows; all rows predict, the others are calibration rows. Valid.
        - "auto": "integrated" up to 500 rows if the other parameters allow it, else "holdout". Beyond 2000 rows the
          process is a low-rank one, as in :class:`SparseConformalGPRegressor`; up to 10,000 rows only if noise is not
          so little that the exact one knows more.
        - "train": by maximum likelihood on the training rows, the paper's way. Not valid in general.
        - "fixed": ``kernel`` and ``noise_variance`` as they are. Valid with ``scale_inputs=False``, or where inputs are
          scaled by ``design`` rows.

        Except with "train", the coefficients of the mean function have a flat prior.
    design : int, float in (0, 1), array-like of int, or None, default=None
        Design rows, from which everything is learnt and which are not ranked: how many, which share, or their row
        numbers. None takes seven rows in ten, at most 1000 (20,000 for a low-rank process), so that (number of ranked
        rows + 1) is a multiple of 20, which meets the usual levels exactly. An error with
        "integrated" and "train", which have none.
    length_scales : {"each", "one"}, default="each"
        Whether named kernels may have a length scale for each input. With "holdout" they then have one for all or one
        for each, whichever has the better BIC; with "integrated" and "train" one for each. "rq" and "nn" always have
        one. With more than 50 inputs (30 with "integrated") those of the categories of one variable share theirs;
        where there still are more than 30, "integrated" has one for all.
    warp : {"auto", "log", "sqrt", "box-cox", "yeo-johnson"}, pair of functions, or None, default="auto"
        A monotone transformation of the labels, of which the process then is; every answer is in the labels' own units.
        "log" is for labels above 0, "sqrt" for 0 and above; "box-cox" (labels above 0) and "yeo-johnson" (any) are
        powers whose exponent is learnt. With "integrated", "auto" and "box-cox" average over Box and Cox's exponent,
        "auto" where all targets are positive. With "holdout", "auto" is the identity, the square root or the logarithm,
        as design rows choose together with ``difficulty``; elsewhere it is the identity. A pair (forward, backward) is
        a monotone function of arrays and its inverse, fixed beforehand.
    difficulty : "auto", scikit-learn regressor or None, default="auto"
        What widths follow besides the standard deviation, learnt from design rows. "auto" regresses the lower and the
        upper quantile of their standardised leave-one-out residuals on inputs and prediction by small boosted trees:
        intervals then follow noise, skewness and places where the process is wrong. It is None with "integrated", and
        where there are fewer than 100 design rows or where their cross-validated interval score is not clearly better.
        A regressor is cloned and fitted to the size of the residuals.
    y_bounds : pair (low, high), "auto" or None, default="auto"
        Bounds that labels cannot pass, either of them None. Regions are cut there, which keeps their guarantee. With
        "integrated", "auto" is 0 as long as at most one row of training rows and test row together is below it. With
        "holdout" it takes bounds that design rows suggest: 0 if none of their labels is negative, or the least or
        greatest label if one in a hundred is equal to it. Should more than one other row lie outside, they are dropped.
    scale_inputs : bool, default=True
        Bring inputs to a common scale: mean 0 and standard deviation 1 over design rows ("holdout") or training rows;
        with "integrated" and up to 12 rows each input is divided by the range of the middle half of training rows and
        test row together, over 1.5, rounded to a power of 2, so that no row is treated differently.
    n_restarts : int, default=3
        Random starts of the optimiser besides the given one.
    unseen_categories : {"error", "zeros"}, default="error"
        What to do with a test row whose category ``fit`` did not see: an error, or a row that has none of the
        categories. The latter is exact only if categories were listed before rows were divided.
    random_state : int, RandomState instance or None, default=None
        Seed of the random starts, of the choice of design rows and of the Markov chain, which with None always is the
        same.
    n_jobs : int or None, default=None
        Threads over starts and blocks of test rows. None takes as many as BLAS would; -1 takes all cores. Results do
        not depend on it.

    Attributes
    ----------
    kernel_ : sklearn.gaussian_process.kernels.Kernel
        Kernel with the hyperparameters in use, on inputs scaled as ``scale_inputs`` says; with "integrated", those
        of the posterior mean; its linear term has a slope for each input, in place of which the mean one stands.
    noise_variance_ : float
        Learnt noise variance in use; with ``warp``, like the kernel, of transformed labels.
    mean_coef_ : ndarray of shape (0,), (1,) or (1 + n_features,)
        Coefficients of the mean function on scaled inputs, constant first.
    log_marginal_likelihood_ : float
        Log marginal likelihood of the training labels at these values.
    tuning_ : str
        The tuning method in use.
    mean_ : str
        The mean function in use.
    gamma_ : float
        The gamma in use.
    warp_ : Warp or None
        The transformation of labels in use, with its exponent.
    difficulty_ : fitted regressor, pair of these or None
        The difficulty in use: of the size of residuals, or of their lower and upper quantile.
    y_bounds_ : tuple of two floats
        Bounds of the labels in use, infinite where there are none.
    design_ : ndarray of int
        Design rows; empty when there are none.
    guarantee_ : str
        Whether the coverage of this fit is guaranteed, and why.
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
    }

    @without_gone
    def __init__(
        self,
        kernel: str | Kernel | Sequence[str | Kernel] = "matern52",
        *,
        mean: str = "auto",
        noise_variance: float | None = None,
        gamma: float | Sequence[float] = 2.0,
        tuning: str = "auto",
        design: int | float | ArrayLike | None = None,
        length_scales: str = "each",
        warp: WarpChoice = "auto",
        difficulty: Any = "auto",
        y_bounds: str | tuple[float | None, float | None] | None = "auto",
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
        self.length_scales = length_scales
        self.warp = warp
        self.difficulty = difficulty
        self.y_bounds = y_bounds
        self.scale_inputs = scale_inputs
        self.unseen_categories = unseen_categories
        self.n_restarts = n_restarts
        self.random_state = random_state
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        noise_variance: ArrayLike | None = None,
        *,
        groups: GroupsLike = None,
        unseen_groups: str = "error",
    ) -> Self:
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
            test rows too. ``warp`` does not take it.
        groups : array-like of shape (n_samples,), callable, str or None, default=None
            Groups of rows, in each of which coverage is to hold by itself: labels of any kind, a function of X that
            gives them, or the name of a column of a frame. That column is an input too if it holds numbers, booleans or
            categories, and else it is left out of the inputs. One model of all rows predicts, and each test row is
            ranked among the rows of its group.
        unseen_groups : {"error", "all"}, default="error"
            What to do with test rows of a group that is not among these: an error, or rank them among all rows, which
            a warning says.

        Returns
        -------
        self : ConformalGPRegressor
            The fitted model.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
        >>> model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]).guarantee_[:5]
        'Valid'
        """
        with all_or_nothing(self):
            X = self._learn_groups(X, groups, unseen_groups)
            for message in self._fit(X, y, noise_variance).warnings:
                warnings.warn(message, UserWarning, stacklevel=3)  # past scikit-learn's wrapper: the caller's line
        return self

    def _fit(self, X: ArrayLike, y: ArrayLike, noise_variance: ArrayLike | None) -> TuningResult:
        """Check the rows, choose a tuning method, and follow it."""
        inputs = encoded_inputs(self, X, reset=True, y=y).copy()  # kept: the caller may change theirs
        labels = check_labels(y, inputs).copy()
        if self._groups is not None:
            check_length(self._groups.codes, labels.size)
        check_bounds(self.y_bounds, labels)
        n_rows, n_inputs = inputs.shape
        known = None if noise_variance is None else check_known_noise(noise_variance, inputs)
        settings = self._settings(n_rows, known is not None)
        tuning = automatic(settings, n_rows) if self.tuning == "auto" else self.tuning
        settings = settings.resolved(tuning, n_rows, n_inputs)
        check_domain(settings, labels)
        with one_blas_thread(rows=n_rows):
            rows = points(inputs, known)
            fixed_seed = tuning == "integrated" and self.random_state is None
            rng = check_random_state(0 if fixed_seed else self.random_state)
            many = self.tuning == "auto" and tuning == "holdout" and n_rows > ROWS_FOR_EXACT
            method = low_rank_holdout if many else METHODS[tuning]
            result = method(settings, rows, labels, rng)
            self._training_rows = inputs, labels
            self._training_noise, self._knows_noise = known, known is not None
            self.tuning_ = tuning
            self.input_range_ = np.stack([inputs.min(axis=0), inputs.max(axis=0)])
            self._keep(result, result.fitted(rows, labels, self.n_jobs))
        return result

    def _fitted_with(self, rows: Points, y: Array) -> Fitted:
        """See ConformalRegressor."""
        if self.tuning_ == "train":
            raise ValueError(
                "partial_fit is for tuning methods other than 'train', which learns from all training rows: call fit "
                "with all rows, or give tuning='holdout'."
            )
        inputs, labels = self._training_rows
        self._training_rows = np.vstack([inputs, rows.X]), np.append(labels, y)
        if self._training_noise is not None:
            self._training_noise = np.append(self._training_noise, rows.known)
        if isinstance(self._result, Integrated):
            inputs, labels = self._training_rows
            with one_blas_thread(rows=labels.size):
                self._result = self._result.with_rows(points(inputs, self._training_noise), labels, self.n_jobs)
        return self._fitted(self._predictor.process)

    def _fitted(self, earlier: Process | None = None) -> Fitted:
        """The predictor of the training rows; nothing is learnt."""
        inputs, labels = self._training_rows
        with one_blas_thread(rows=labels.size):
            return self._result.fitted(points(inputs, self._training_noise), labels, self.n_jobs, earlier)

    def _predictor_again(self) -> Predictor:
        """See ConformalRegressor."""
        return self._fitted().predictor

    def _each_training_row(self, function: Callable[[Points, Array], Array]) -> Array:
        """See Comparisons."""
        inputs, labels = self._training_rows
        return function(points(inputs, self._training_noise), labels)

    def _settings(self, n_rows: int, known_noise: bool) -> Settings:
        """Parameters as one checked value."""
        return self._common_settings(
            self.mean,
            design=check_design(self.design, n_rows),
            known_noise=known_noise,
        )
