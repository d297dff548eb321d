"""The estimator: Gaussian process regression with guaranteed prediction intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context, clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from conformal_gp.arrivals import LaterRows
from conformal_gp.calibration import GroupsLike
from conformal_gp.distributions import PredictiveDistributions
from conformal_gp.explanation import ExplainedIntervals
from conformal_gp.extrapolation import Grid, input_box
from conformal_gp.gp.inputs import MEAN_NAMES
from conformal_gp.gp.kernels import KERNEL_NAMES
from conformal_gp.groups import Batches, Groups, check_length, with_fewer_rows
from conformal_gp.inverse import InversePredictions
from conformal_gp.models.draws import integrated
from conformal_gp.models.settings import LEARNT_TRANSFORMS, Settings, TransformChoice, read_rows, read_settings
from conformal_gp.models.tuned import Fitted, Tuned, censored, fitted
from conformal_gp.models.tuning import fixed, holdout, low_rank, train
from conformal_gp.rows import ArrayRows, RowSource, extremes, stage
from conformal_gp.targets.target import Bounds
from conformal_gp.targets.transformation import Logarithms
from conformal_gp.threads import one_blas_thread
from conformal_gp.validation import refuse_keywords, warn_caller

__all__ = ["ConformalGPRegressor"]

METHODS = {"integrated": integrated, "holdout": holdout, "train": train, "fixed": fixed}


@contextmanager
def all_or_nothing(model: BaseEstimator) -> Iterator[None]:
    """Leave the model as it was if a fit fails, or is interrupted."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise


class ConformalGPRegressor(
    ExplainedIntervals, PredictiveDistributions, InversePredictions, LaterRows, RegressorMixin, BaseEstimator
):
    r"""Gaussian process regression whose prediction intervals have guaranteed coverage.

    Full (transductive) conformal prediction, after Papadopoulos (2024): if training and new observations are
    exchangeable, a prediction set of confidence level :math:`1 - \delta` contains a new observation with probability at
    least :math:`1 - \delta`, even if the model is wrong. ``guarantee_`` states whether that holds for a given fit.

    Parameters
    ----------
    kernel : str, scikit-learn kernel, or list of these, default="matern52"
        *Model.* Covariance function. The names "se" (or "rbf"), "rq", "nn", "matern32" and "matern52" are squared
        exponential, rational quadratic, neural network, Matérn 3/2 and Matérn 5/2, with an amplitude and length scales
        (see ``ard``). With "integrated", "matern52" is a weighted sum of itself and of the squared exponential, whose
        weight is averaged over; with "holdout" and ``noise_variance=0``, the likelihood of the tuning rows chooses
        between these two. A kernel object keeps its form, its bounds and what it holds fixed; when it is tuned, its
        length scales set only the ratios of the starting values. Of a list, tuning rows choose one.
    mean : {"auto", "zero", "constant", "linear"}, default="auto"
        Mean function; "linear" is a constant and a term for each input, with a flat prior. "auto" is a constant and,
        with "integrated", a linear term in the kernel, which has a proper prior; with other methods it is linear if
        there are at least 20 rows for each coefficient, else constant.
    noise_variance : float >= 0 or None, default=None
        Variance of the noise on each observation: its value with "fixed", the starting value with "holdout" and "train"
        (None: a tenth of the target's variance). 0 is for simulators: observations are interpolated, with the smallest
        nugget that numbers allow, and none with "fixed" or a ``WhiteKernel`` in ``kernel``.
    ard : bool, default=True
        Whether named kernels except "rq" and "nn" have a length scale for each input (automatic relevance
        determination). With more than 50 inputs (30 with "integrated"), the categories of one variable share theirs;
        where there still are more than 30, "integrated" has one for all.
    scale_inputs : bool, default=True
        Bring inputs to a common scale: mean 0 and standard deviation 1 over tuning rows ("holdout") or training rows.
        With "holdout" and named kernels, inputs of heavy tails (a fourth moment of more than 6 squared variances) are
        compressed first, logarithmically far from their median. With "integrated" and up to 12 rows each input is
        divided by a robust range of training rows and test row together, rounded to a power of 2.
    tuning : {"auto", "integrated", "holdout", "train", "fixed"}, default="auto"
        *Tuning and calibration.* How hyperparameters are tuned.

        - "integrated": averaged over draws, weighted by the likelihood of the augmented set. All rows are calibration
          rows. Valid up to 12 rows, with draws from the prior; beyond, with a Markov chain, valid up to Monte Carlo
          error. Takes ``gamma=2``, one kernel, no ``tuning_rows`` and no given ``difficulty``.
        - "holdout": by maximum likelihood on tuning rows. All rows are training data of the Gaussian process; the
          others are calibration rows. Valid.
        - "auto": "integrated" up to 500 rows if the other parameters allow it, else "holdout".
        - "train": by maximum likelihood on the training rows, the paper's way. Not valid in general.
        - "fixed": ``kernel`` and ``noise_variance`` as they are. Valid with ``scale_inputs=False``, or where inputs are
          scaled by ``tuning_rows``.

        Except with "train", the coefficients of the mean function have a flat prior.
    tuning_rows : int, array-like of int, or None, default=None
        Rows that are tuned on and are not calibration rows: how many, or their row numbers. None takes seven in ten, at
        most 1000 (20,000 for a low-rank GP), such that the number of calibration rows plus one is a multiple of 20: 80,
        90 and 95% are then attained without rounding. An error with "integrated" and "train", which have none.
    low_rank : "auto", False, int or array-like of shape (n_inducing, n_features), default="auto"
        Whether the Gaussian process is low-rank (FITC): "auto" for more than 2000 rows with "holdout", unless there are
        at most 10,000 and the data are nearly noise-free; and for memory maps and Dask collections. A number is that of
        the inducing inputs, or the inputs themselves are given, which may not come from calibration rows. "auto" takes
        512, or 1536 where the exact GP of 2000 tuning rows predicts better.
    n_restarts : int, default=3
        Random starts of the optimiser in addition to the given one; "holdout" tries six times as many on 150 rows.
    gamma : float in [1, inf], default=2.0
        Normalisation exponent (equation 19 of the paper): 2 divides residuals by the predictive standard deviation,
        ``np.inf`` does not normalise, 1 takes residuals of a fit to all rows.
    target_transform : {"auto", "log", "sqrt", "box-cox", "yeo-johnson"}, pair of functions, or None, default="auto"
        *Adaptive intervals.* Monotone transformation of the target, applied before the Gaussian process is fitted;
        predictions are transformed back. "log" is for targets above 0, "sqrt" for 0 and above; "box-cox" (above 0) and
        "yeo-johnson" (any) are powers whose exponent is learnt. With "integrated", "box-cox" averages over exponents,
        and so does "auto" where all targets are positive. With "holdout", "auto" takes an exponent from 0, the
        logarithm, to 1, the identity, by likelihood and interval score of the tuning rows, if no target is negative. A
        pair (forward, backward) is a monotone function of arrays and its inverse, fixed beforehand.
    difficulty : "auto", scikit-learn regressor or None, default="auto"
        Model of the local scale of the residuals, learnt from tuning rows. "auto" regresses the lower and the upper
        quantile of their standardised leave-one-out residuals on inputs and prediction by small boosted trees. It is
        None with "integrated", with fewer than 100 tuning rows, and where their cross-validated interval score is not
        clearly better. A regressor is cloned and fitted to the size of the residuals.
    y_bounds : pair (low, high), "auto" or None, default="auto"
        Bounds that the target cannot pass, either of them None. Prediction sets are cut there, which keeps their
        guarantee. With "integrated", "auto" is 0 as long as at most one row of the augmented set is below it. With
        "holdout" it takes bounds that tuning rows suggest: 0 if no target is negative, or the least or greatest value
        if one in a hundred is equal to it, and more than to the next; they are ignored if more than one calibration
        target violates them.
    missing : {"auto", "error"}, default="auto"
        Missing inputs (NaN, None, ``pandas.NA``). "auto" gives each input that some training rows lack an indicator as
        a further input, and fills it by the median of tuning rows, or with "integrated" by a rounded median of the
        augmented set, and with "fixed" and ``scale_inputs=False`` by 0. Missing categories are a category. A value that
        is missing in a test row, but in no training row, is an error. Dask collections may lack none.
    random_state : int, RandomState instance or None, default=None
        *Computation.* Seed of the random starts, of the choice of tuning rows and of the Markov chain, which with None
        always is the same. The order of rows in memory does not matter.
    n_jobs : int or None, default=None
        Threads, which results do not depend on. None takes as many as BLAS would; -1 takes all cores.
    verbose : bool, default=False
        Name the stages of a fit on the standard error stream, and count blocks of rows with a low-rank GP.

    Attributes
    ----------
    kernel_ : sklearn.gaussian_process.kernels.Kernel
        Kernel with the hyperparameters in use, on scaled inputs; with "integrated", those of the posterior mean, and
        one slope for those of its linear term.
    noise_variance_ : float
        Noise variance in use; of a transformed target, like the kernel, in its units.
    guarantee_ : str
        Whether coverage is valid, valid up to Monte Carlo error or not valid in general, and on what condition.
    n_calibration_ : int
        Number of calibration rows.
    tuning_ : str
        The tuning method in use.
    tuning_rows_ : ndarray of int
        Rows that were tuned on.
    mean_, gamma_ : str, float
        Mean function and normalisation exponent in use.
    mean_coef_ : ndarray of shape (0,), (1,) or (1 + n_features,)
        Coefficients of the mean function on scaled inputs, constant first.
    log_marginal_likelihood_ : float
        That of the training rows at these values.
    target_transform_ : Transformation or None
        The transformation of the target in use, with its exponent; None where exponents are averaged over.
    difficulty_ : fitted regressor, pair of these or None
        The difficulty in use: of the size of residuals, or of their lower and upper quantile.
    y_bounds_ : tuple of two floats
        Bounds of the target in use, or infinite.
    inducing_ : ndarray of shape (n_inducing, n_features) or None
        Scaled inducing inputs of a low-rank GP.
    input_range_ : ndarray of shape (2, n_features)
        Least and greatest value of each input; see :meth:`beyond_training`.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of inputs, and their names.

    See Also
    --------
    conformal_gp.pipeline.predict_interval : Intervals of a pipeline or a search that ends in this regressor.

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
        "mean": [StrOptions({"auto", *MEAN_NAMES})],
        "noise_variance": [Interval(Real, 0, None, closed="left"), None],
        "ard": ["boolean"],
        "scale_inputs": ["boolean"],
        "tuning": [StrOptions({"auto", *METHODS})],
        "tuning_rows": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "low_rank": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left"), "array-like", "boolean"],
        "n_restarts": [Interval(Integral, 0, None, closed="left")],
        "gamma": [Interval(Real, 1, None, closed="both")],
        "target_transform": [StrOptions({"log", "sqrt", *LEARNT_TRANSFORMS}), tuple, list, None],
        "difficulty": [StrOptions({"auto"}), HasMethods(["fit", "predict"]), None],
        "y_bounds": [StrOptions({"auto"}), tuple, list, None],
        "missing": [StrOptions({"auto", "error"})],
        "random_state": ["random_state"],
        "n_jobs": [Interval(Integral, None, -1, closed="right"), Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        kernel: str | Kernel | Sequence[str | Kernel] = "matern52",
        *,
        mean: str = "auto",
        noise_variance: float | None = None,
        ard: bool = True,
        scale_inputs: bool = True,
        tuning: str = "auto",
        tuning_rows: int | ArrayLike | None = None,
        low_rank: str | bool | int | ArrayLike = "auto",
        n_restarts: int = 3,
        gamma: float = 2.0,
        target_transform: TransformChoice = "auto",
        difficulty: Any = "auto",
        y_bounds: str | tuple[float | None, float | None] | None = "auto",
        missing: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        self.kernel = kernel
        self.mean = mean
        self.noise_variance = noise_variance
        self.ard = ard
        self.scale_inputs = scale_inputs
        self.tuning = tuning
        self.tuning_rows = tuning_rows
        self.low_rank = low_rank
        self.n_restarts = n_restarts
        self.gamma = gamma
        self.target_transform = target_transform
        self.difficulty = difficulty
        self.y_bounds = y_bounds
        self.missing = missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "auto"
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        y_variance: ArrayLike | None = None,
        *,
        groups: GroupsLike = None,
        batches: ArrayLike | str | None = None,
        censoring: ArrayLike | None = None,
        **unknown: Any,
    ) -> Self:
        """Fit to training rows.

        Parameters
        ----------
        X : array-like, data frame, memory map or Dask collection of shape (n_samples, n_features)
            Inputs: numbers, booleans, and in frames of pandas or polars also columns of categories, by dtype
            (``category``, ``Categorical``, ``Enum``), each of which becomes an input that is 1 in its rows and 0 in
            others; ordered categories of pandas become their places in the order. Memory maps and Dask collections
            are read again by the predict methods, in blocks.
        y : array-like, Dask array or Dask series of shape (n_samples,)
            Target.
        y_variance : array-like of shape (n_samples,) or None, default=None
            Known variance of each observation, as of a measurement, to which learnt noise is added. It is a part of the
            row, so predict methods need it for test rows too. It cannot be combined with ``target_transform``.
        groups : array-like of shape (n_samples,), callable, str or None, default=None
            Groups of rows; coverage is guaranteed within each. Values of any kind, a function of X that gives
            them, or the name of a column, which is an input too if it holds numbers, booleans or categories.
        batches : array-like of shape (n_samples,), str or None, default=None
            Batches of rows, such as lots, plates or days: intervals are then for rows of *new* batches. Values, or the
            name of a column of a frame, which is no input then and may be missing in test rows. Whole batches are tuned
            on; of each other batch one row is a calibration row, drawn at random, and its other rows are not used. K
            calibration batches support levels up to K / (K + 1): by default 90% takes 10 batches, 95% 29, fewer with a
            smaller ``tuning_rows``. For "holdout", which "auto" is here, and "fixed".
        censoring : array-like of shape (n_samples,) or None, default=None
            -1 in rows whose true value is at most ``y``, their lower limit of detection; 1 where it is at least ``y``;
            0 where it was observed. The model is fitted to ``y``, and prediction sets contain *true* values: a set
            that reaches down to the largest lower limit contains everything below, to -inf or the given lower bound of
            the target: 0 with ``y_bounds=(0, None)`` or ``target_transform="log"``. The p-value of a value below the
            limit is the largest of the values from it to the limit. Upper limits are treated in the same way. Coverage
            is valid if no new row has a larger lower limit, or a smaller upper one; where limits vary by chance, that
            adds at most 1 / (n + 1) to the probability of a miss. Not for Dask collections.
        **unknown
            An error, which for ``sample_weight`` says what to give instead.

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
        refuse_keywords(unknown)
        with all_or_nothing(self):
            self._arrivals = None
            self._batches = None
            self._groups = None
            if batches is not None:
                self._batches = Batches.learn(X, batches)
            if groups is not None:
                self._groups = Groups.learn(X, groups)
            for columns in (self._groups, self._batches):
                if columns is not None:
                    X = columns.inputs(X)
            source = read_rows(self, X, y, y_variance)
            if self._groups is not None:
                check_length(self._groups.codes, source.n_rows)
            with one_blas_thread(rows=source.n_rows):
                settings = read_settings(self, source)
                if self._batches is not None:
                    source, settings, censoring = with_fewer_rows(self, source, settings, censoring)
                self.tuning_ = settings.tuning
                with stage(f"tuning {source.n_rows} rows by {settings.tuning!r}", bool(self.verbose)):
                    tuned = _tuned(settings, source, self.random_state)
                tuned = censored(tuned, source, censoring, self.target_transform)
                low, high = source.each(extremes, "ranges of inputs")
                self.input_range_ = np.stack([np.fmin.reduce(low, axis=1), np.fmax.reduce(high, axis=1)])
                with stage("calibration", bool(self.verbose)):
                    self._keep(tuned, source, fitted(tuned, source, self.n_jobs))
            for message in tuned.warnings:
                warn_caller(message)
        return self

    def _keep(self, tuned: Tuned, source: RowSource, made: Fitted) -> None:
        """Keep what tuning has decided, from which the model is made again when it is loaded, and its attributes."""
        self._tuned = tuned
        self._source = source
        X = None
        self._grid = None
        if isinstance(source, ArrayRows) and source.in_memory:
            X = source.rows.X
            self._grid = Grid.find(self._design_columns(X), most_repeated=1)
        self._input_box = input_box(self.input_range_, X, source.n_rows)
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
        self.difficulty_ = getattr(tuned.difficulty, "fitted", None)
        bounds = tuned.target.bounds or Bounds()
        self.y_bounds_ = (bounds.low, bounds.high)
        self.tuning_rows_ = self._numbers(tuned.tuning_rows.copy())
        self.inducing_ = tuned.inducing
        self.guarantee_ = tuned.guarantee.format(n_calibration=self.n_calibration_)
        if self._batches is not None:
            self._batches = self._batches.tuned_on(self.tuning_rows_)
            self.guarantee_ = self._batches.guarantee(self.guarantee_)
        if self.guarantee_.startswith("Valid"):
            if self._groups is not None:
                self.guarantee_ += f" That holds in each of {len(self._groups.labels)} groups separately."
            self.guarantee_ += tuned.target.limits.sentence()
        if self._grid is not None:
            self.guarantee_ += f" {self._grid.condition}"


def _tuned(settings: Settings, source: RowSource, random_state: Any) -> Tuned:
    """Follow the tuning method; what it decides."""
    if settings.tuning == "integrated" and random_state is None:
        random_state = 0  # without a seed, draws of a chain are the same at every fit
    rng = check_random_state(random_state)
    if settings.low_rank:
        return low_rank(settings, source, rng)
    if not isinstance(source, ArrayRows):
        raise ValueError("low_rank must not be False for a Dask collection.")
    return METHODS[settings.tuning](settings, source.rows, source.y, rng)
