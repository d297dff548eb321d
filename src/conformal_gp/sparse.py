"""Full conformal prediction for very many rows: a low-rank Gaussian process behind the same front door."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from conformal_gp.base import CONSTRAINTS, ConformalRegressor, all_or_nothing
from conformal_gp.comparisons import GroupsLike
from conformal_gp.constraints import Interval, StrOptions, without_gone
from conformal_gp.frames import encoded_inputs
from conformal_gp.gp.inducing import SELECTIONS
from conformal_gp.gp.inputs import Points
from conformal_gp.gp.lowrank import APPROXIMATIONS
from conformal_gp.groups import check_length
from conformal_gp.predictors.base import Predictor
from conformal_gp.rows import ArrayRows, Rows
from conformal_gp.tuning.choices import check_bounds, check_domain
from conformal_gp.tuning.design import drawn
from conformal_gp.tuning.low_rank import LowRankModel, design_size, low_rank
from conformal_gp.tuning.methods import Fitted
from conformal_gp.tuning.settings import WarpChoice, check_design, resolved_mean
from conformal_gp.types import Array
from conformal_gp.types import Rows as Numbers
from conformal_gp.validation import check_inputs, check_known_noise, check_labels, check_squares, check_unmasked

__all__ = ["SparseConformalGPRegressor"]


class SparseConformalGPRegressor(ConformalRegressor):
    r"""Gaussian process regression with guaranteed prediction intervals, for up to millions of rows.

    Full conformal prediction in a low-rank model: a Gaussian process that sees all inputs through a few *inducing
    inputs*. Every row trains; every row but the design rows also calibrates. Scaling, hyperparameters and inducing
    inputs come from the design rows alone, which stay in the model, so coverage is exact: for rows that are
    exchangeable, a region of confidence level :math:`1 - \delta` holds a new label with probability at least
    :math:`1 - \delta`.

    A fit reads all rows twice and costs :math:`O(l m^2)` for l rows and m inducing inputs. A prediction needs only
    the rows that can decide it, some m of them. Rows are read in blocks: from arrays, memory maps, or Dask arrays and
    dataframes.

    Parameters
    ----------
    kernel, gamma
        As in :class:`ConformalGPRegressor`; several of them are chosen among by the design rows.
    mean, noise_variance, length_scales, warp, difficulty, y_bounds, scale_inputs, unseen_categories
        As in :class:`ConformalGPRegressor`.
    n_restarts, random_state
        As in :class:`ConformalGPRegressor`.
    n_inducing : int or None, default=None
        Number of inducing inputs; fewer are taken if the design rows have fewer that are independent. None takes 512,
        or 1536 where the exact process of 2000 design rows knows more than they do.
    inducing : {"kmeans", "greedy", "random"} or array-like of shape (n_inducing, n_features), default="kmeans"
        How to take them from the design rows: centres of k-means, the row of largest variance given those before, or
        at random. Or the inputs themselves, which may not come from rows that are ranked.
    approximation : {"fitc", "dtc"}, default="fitc"
        Whether the variance that the inducing inputs do not explain at an input is noise there, or is left out.
    tuning : {"holdout", "fixed"}, default="holdout"
        Hyperparameters by maximum likelihood on design rows, or as ``kernel`` and ``noise_variance`` have them.
    design : int, float in (0, 1), array-like of int, or None, default=None
        Design rows: how many, which share, or their row numbers. None takes seven rows in ten, at most 20,000.
        Hyperparameters are learnt from at most 600 of them, inducing inputs from 4000, and the difficulty from all.
    block_rows : int, default=8192
        Training rows that a thread works on at a time: memory is in proportion. Results agree to rounding.
    n_jobs : int or None, default=None
        Threads over blocks of rows. None takes as many as BLAS would; -1 takes all cores. Results do not depend on it.
    verbose : bool, default=False
        Show progress over blocks of rows on the standard error stream.

    Attributes
    ----------
    kernel_, noise_variance_, mean_, mean_coef_, log_marginal_likelihood_, gamma_, warp_, difficulty_
        As in :class:`ConformalGPRegressor`; the likelihood is that of the low-rank model.
    design_, guarantee_, input_range_, n_features_in_, feature_names_in_
        As in :class:`ConformalGPRegressor`.
    inducing_ : ndarray of shape (at most n_inducing, n_features)
        Inducing inputs, on inputs scaled as ``scale_inputs`` says.

    See Also
    --------
    ConformalGPRegressor : The exact Gaussian process, for up to some ten thousand rows.

    Notes
    -----
    NumPy arrays are copied. Memory maps and Dask collections are read again by the predict methods, so they have to
    stay as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp import SparseConformalGPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(5000, 2))
    >>> y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(5000)
    >>> model = SparseConformalGPRegressor(n_inducing=50, design=200, n_restarts=0, random_state=0).fit(X, y)
    >>> model.predict_interval([[1.0, 1.0]], confidence_level=[0.9, 0.99]).round(1)
    array([[[0.7, 0.6],
            [1. , 1.1]]])
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        **CONSTRAINTS,
        "n_inducing": [Interval(Integral, 1, None, closed="left"), None],
        "inducing": [StrOptions(set(SELECTIONS)), "array-like"],
        "approximation": [StrOptions(set(APPROXIMATIONS))],
        "tuning": [StrOptions({"holdout", "fixed"})],
        "block_rows": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
    }

    _result: LowRankModel

    @without_gone
    def __init__(
        self,
        kernel: str | Kernel | Sequence[str | Kernel] = "matern52",
        *,
        n_inducing: int | None = None,
        inducing: str | ArrayLike = "kmeans",
        approximation: str = "fitc",
        mean: str = "auto",
        noise_variance: float | None = None,
        gamma: float | Sequence[float] = 2.0,
        tuning: str = "holdout",
        design: int | float | ArrayLike | None = None,
        length_scales: str = "each",
        warp: WarpChoice = "auto",
        difficulty: Any = "auto",
        y_bounds: str | tuple[float | None, float | None] | None = "auto",
        scale_inputs: bool = True,
        unseen_categories: str = "error",
        n_restarts: int = 3,
        block_rows: int = 8192,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        self.kernel = kernel
        self.n_inducing = n_inducing
        self.inducing = inducing
        self.approximation = approximation
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
        self.block_rows = block_rows
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        noise_variance: ArrayLike | None = None,
        *,
        groups: GroupsLike = None,
        unseen_groups: str = "error",
    ) -> Self:
        """Fit to training rows.

        Parameters
        ----------
        X : array-like, memory map, Dask array or Dask dataframe of shape (n_samples, n_features)
            Inputs.
        y : array-like, Dask array or Dask series of shape (n_samples,)
            Labels.
        noise_variance : array-like of shape (n_samples,) or None, default=None
            As in :meth:`ConformalGPRegressor.fit`; with a Dask collection of inputs also a Dask array or series.
        groups, unseen_groups
            As in :meth:`ConformalGPRegressor.fit`; labels may also be a Dask array or series.

        Returns
        -------
        self : SparseConformalGPRegressor
            The fitted model.

        Examples
        --------
        >>> import numpy as np
        >>> from conformal_gp import SparseConformalGPRegressor
        >>> X = np.linspace(0.0, 3.0, 60)[:, None]
        >>> model = SparseConformalGPRegressor("se", n_inducing=5, tuning="fixed", noise_variance=0.1, random_state=0)
        >>> model.fit(X, np.sin(X[:, 0])).inducing_.shape
        (5, 1)
        """
        with all_or_nothing(self):
            X = self._learn_groups(X, groups, unseen_groups)
            for message in self._fit(X, y, noise_variance).warnings:
                warnings.warn(message, UserWarning, stacklevel=3)  # past scikit-learn's wrapper: the caller's line
        return self

    def _fit(self, X: Any, y: Any, noise_variance: ArrayLike | None) -> LowRankModel:
        """Check the rows, learn from design rows, and make the predictor."""
        rows = self._rows(X, y, noise_variance)
        if self._groups is not None:
            check_length(self._groups.codes, rows.n_rows)
        rng = check_random_state(self.random_state)
        mean = resolved_mean(self.mean, rows.n_rows, self._n_inputs)
        design = self._design_rows(mean, rows.n_rows, rng)
        inducing = self.inducing
        if self._encoding is not None and not isinstance(inducing, str):
            inducing = encoded_inputs(self, inducing, reset=False)
        elif not isinstance(inducing, str):
            check_unmasked("inducing", inducing)
            inducing = validate_data(self, inducing, reset=False, dtype=np.float64)
            check_squares("inducing", inducing)
        settings = self._common_settings(mean, known_noise=noise_variance is not None)
        settings = settings.resolved(self.tuning, rows.n_rows, self._n_inputs)
        if isinstance(rows, ArrayRows):
            check_domain(settings, rows.y)
        result = low_rank(
            settings,
            rows,
            design,
            rng,
            tuning=self.tuning,
            inducing=inducing,
            n_inducing=self.n_inducing,
            approximation=self.approximation,
        )
        self._training_rows = rows
        low, high = rows.each(_extremes, "ranges of inputs")
        self.input_range_ = np.stack([low.min(axis=1), high.max(axis=1)])
        self.inducing_ = result.inducing.copy()
        self._keep(result, result.fitted_to(rows, self.n_jobs))
        return result

    def _fitted_with(self, rows: Points, y: Array) -> Fitted:
        """See ConformalRegressor."""
        earlier = self._training_rows
        if not isinstance(earlier, ArrayRows) or not earlier.in_memory:
            raise ValueError(
                "partial_fit is for rows in memory, and fit was given a memory map or a Dask collection: call fit with "
                "a collection of all rows, or begin with arrays in memory."
            )
        self._training_rows = earlier.extended(rows, y)
        return self._result.fitted_to(self._training_rows, self.n_jobs)

    def _predictor_again(self) -> Predictor:
        """See ConformalRegressor."""
        return self._result.fitted_to(self._training_rows, self.n_jobs).predictor

    def _each_training_row(self, function: Callable[[Points, Array], Array]) -> Array:
        """See Comparisons."""
        return self._training_rows.each(function, "likelihood ratios")

    def _rows(self, X: Any, y: Any, noise_variance: ArrayLike | None) -> Rows:
        """Training rows as something that is read in blocks."""
        self._encoding = self._frame = None
        self._knows_noise = noise_variance is not None
        if _is_dask(X):
            from conformal_gp.dask_rows import dask_rows

            return dask_rows(self, X, y, noise_variance, self.block_rows, bool(self.verbose))
        if isinstance(X, np.memmap):  # not read as a whole: only the first rows are looked at here
            check_inputs(self, X[:2], reset=True, y=y)
            inputs: NDArray[Any] = X
        else:
            inputs = encoded_inputs(self, X, reset=True, y=y).copy()
        known = None if noise_variance is None else check_known_noise(noise_variance, inputs)
        names = getattr(self, "feature_names_in_", None)
        labels = check_labels(y, inputs).copy()
        check_bounds(self.y_bounds, labels)
        return ArrayRows(inputs, labels, known, self.block_rows, self.n_jobs, bool(self.verbose), names)

    def _design_rows(self, mean: str, n_rows: int, rng: np.random.RandomState) -> Numbers:
        """Design rows: given, or at random."""
        design = check_design(self.design, n_rows)
        if isinstance(design, np.ndarray):
            return design
        if design is None:
            design = design_size(n_rows)
        return drawn(mean, design, n_rows, self._n_inputs, rng)

    def _checked_inputs(self, X: Any) -> Array:
        check_is_fitted(self)
        X = self._inputs_of(X)
        return encoded_inputs(self, X.compute() if _is_dask(X) else X, reset=False)


def _extremes(rows: Points, y: Array) -> Array:
    """Least and greatest value of each input, (2, d, 1)."""
    return np.stack([rows.X.min(axis=0), rows.X.max(axis=0)])[:, :, None]


def _is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; Dask itself is not imported for that."""
    return hasattr(X, "__dask_graph__")
