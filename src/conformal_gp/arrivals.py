r"""Rows that come later: a model with them, and rank tests of whether they look exchangeable with the calibration rows.

Of a row that is exchangeable with n calibration rows, the ranks u of its score and of its inputs among theirs, over n +
1, are uniform. Of m rows :math:`\sum (u - 1/2)` has variance :math:`m (n + m + 1) / (12 n)` (Mann and Whitney), and
:math:`\sum (|u - 1/2| - 1/4)` a quarter of that, nearly. Ranks among all rows before are independent, so sums and
variances go on from call to call.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from conformal_gp.arrays import Array
from conformal_gp.calibration import GroupsLike, check_groups
from conformal_gp.groups import Groups
from conformal_gp.models.draws import redrawn
from conformal_gp.models.tuned import censored, fitted
from conformal_gp.predictions import Predictions
from conformal_gp.rows import ArrayRows, Rows
from conformal_gp.targets.target import check_within
from conformal_gp.targets.transformation import Logarithms, transformed
from conformal_gp.threads import one_blas_thread
from conformal_gp.validation import check_labels, input_names, need_labels, warn_caller

# Chance of a warning at a call, if rows are exchangeable.
LEVEL = 1e-3


@dataclass(frozen=True)
class Arrivals:
    """Sums over the rows that came later.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> calibration = rng.uniform(size=(50, 1))
    >>> Arrivals.none(1).extended(np.full(20, 0.5), rng.uniform(size=(20, 1)), calibration).departs()
    array([], dtype=int64)
    >>> Arrivals.none(1).extended(np.full(20, 0.5), 1.0 + rng.uniform(size=(20, 1)), calibration).departs()
    array([1])
    """

    shifts: Array
    """(1 + d,): sums of u - 1/2, of scores and of each input."""
    spreads: Array
    """(1 + d,): sums of |u - 1/2| - 1/4; 0 for scores, and for inputs with ties."""
    variance: float = 0.0
    """Variance of the first of these."""

    @classmethod
    def none(cls, n_inputs: int) -> Arrivals:
        """No rows yet."""
        return cls(np.zeros(1 + n_inputs), np.zeros(1 + n_inputs))

    def extended(self, p: Array, X: Array, calibration: Array) -> Arrivals:
        """These and further rows, by p-values (m,) with half of the ties, inputs, and those of calibration rows."""
        n = len(calibration)
        below = np.empty(X.shape)
        ties = np.empty(X.shape)
        for j, column in enumerate(np.sort(calibration, axis=0).T):
            below[:, j] = np.searchsorted(column, X[:, j], "left")
            ties[:, j] = np.searchsorted(column, X[:, j], "right") - below[:, j]
        ranks = np.column_stack([p, (below + 0.5 * ties + 0.5) / (n + 1.0)])
        spread = np.sum(np.abs(ranks - 0.5) - 0.25, axis=0)
        spread[1:] = np.where(ties.any(axis=0), 0.0, spread[1:])
        spread[0] = 0.0
        # m (n + m + 1) / (12 n): Mann and Whitney (1947)
        variance = len(X) * (n + len(X) + 1.0) / (12.0 * n)
        return Arrivals(self.shifts + np.sum(ranks - 0.5, axis=0), self.spreads + spread, self.variance + variance)

    def departs(self) -> NDArray[np.int64]:
        """Places of the sums that are larger than chance explains: 0 for scores, then inputs."""
        largest = np.maximum(np.abs(self.shifts), 2.0 * np.abs(self.spreads)) / np.sqrt(self.variance)
        d = max(largest.size - 1, 1)
        share = np.append(0.5, np.full(largest.size - 1, 0.25 / d))  # half for scores, half for inputs by two sums
        return np.flatnonzero(largest > norm.isf(0.5 * LEVEL * share))

    def warn(self, names: NDArray[np.str_]) -> None:
        """Warn if the rows do not look exchangeable with the calibration rows."""
        found = self.departs()
        if found.size == 0:
            return
        what = ["their errors"] * (0 in found) + [f"input {names[place - 1]!r}" for place in found[found > 0][:5]]
        warn_caller(
            f"rows that partial_fit added differ from the calibration rows, in {', '.join(what)}, by more than chance "
            f"explains (rank tests at level {LEVEL:g}). Coverage is not guaranteed if they are not exchangeable, as "
            "rows that were chosen by the model, or measured under other conditions: call fit with such rows as "
            "tuning_rows."
        )


class LaterRows(Predictions):
    """Rows that are added to a fitted model: see ``docs/later_rows.md``."""

    fit: Callable[..., Self]
    _keep: Callable[..., None]
    _arrivals: Arrivals | None
    input_range_: Array
    y_bounds: Any
    target_transform: Any
    tuning_: str

    def partial_fit(
        self,
        X: Any,
        y: Any,
        y_variance: ArrayLike | None = None,
        *,
        groups: GroupsLike = None,
        censoring: ArrayLike | None = None,
    ) -> Self:
        """Add calibration rows that come later; nothing is tuned again.

        The model is that of a fit to all rows at the tuning rows and hyperparameters that it has, with the same
        guarantee. Rows that the model chose, such as those of largest expected improvement, are not exchangeable with
        the others, and void it; a warning says so where they differ from the others by more than chance. With l rows,
        each costs :math:`O(l^2)`. A low-rank GP reads all rows once a call. With "integrated", draws are weighted
        again, and drawn again where too few of them would count.

        Parameters
        ----------
        X, y, y_variance
            Rows as in ``fit``; variances are needed if ``fit`` was given those of its rows, else an error.
        groups : array-like of shape (n_samples,), callable, str or None, default=None
            Groups of these rows, as predict methods take them; a group that is new becomes one of the model's.
        censoring : array-like of shape (n_samples,) or None, default=None
            As in ``fit``.

        Returns
        -------
        self : ConformalGPRegressor
            The model, fitted if it was not. Rows cannot be added with ``tuning="train"``, nor to memory maps or Dask
            collections.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
        >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> model.partial_fit([[0.5]], [0.6]).predict_p([[1.0]], [5.0])
        array([0.2])
        """
        if not hasattr(self, "_answers"):
            return self.fit(X, y, y_variance, groups=groups, censoring=censoring)
        if self._batches is not None:
            raise ValueError("partial_fit is not for a model that was fitted with batches: call fit with all rows.")
        rows, targets, all_groups = self._later_rows(X, y, y_variance, groups)
        arrivals = self._with_arrivals(rows, targets)
        self.__dict__.update(vars(self._with_rows(rows, targets, all_groups, censoring)))
        self._arrivals = arrivals
        arrivals.warn(input_names(self))
        return self

    def _later_rows(self, X: Any, y: Any, y_variance: Any, groups: GroupsLike) -> tuple[Rows, Array, Groups | None]:
        """Checked rows that come later, their targets, and groups of all rows."""
        need_labels(self, y)
        rows = self._checked_rows(X, y_variance)
        targets = check_labels(y, rows.X)
        check_within(self.y_bounds, targets)
        if not isinstance(self._tuned.target.transformation, Logarithms):
            transformed(self._tuned.target.transformation, targets)  # an error names the row among these
        check_groups(self, groups)
        every = self._groups
        if every is not None:
            every = every.extended(X, groups, targets.size)
        return rows, targets, every

    def _with_rows(self, rows: Rows, y: Array, groups: Groups | None, censoring: Any = None) -> Self:
        """The model with more calibration rows; this one stays as it is."""
        if self.tuning_ == "train":
            raise ValueError("partial_fit is not for tuning='train': call fit with all rows, or give tuning='holdout'.")
        if not isinstance(self._source, ArrayRows) or not self._source.in_memory:
            raise ValueError(
                "partial_fit is for rows in memory, and fit was given a memory map or a Dask collection: call fit with "
                "a collection of all rows, or begin with arrays in memory."
            )
        model = copy(self)
        model._groups = groups
        ends = np.vstack([self.input_range_, rows.X])
        model.input_range_ = np.stack([np.fmin.reduce(ends), np.fmax.reduce(ends)])
        source = self._source.extended(rows, y)
        later = ArrayRows(rows.X, y, rows.y_variance, self.n_jobs)
        tuned = censored(self._tuned, later, censoring, self.target_transform)
        with one_blas_thread(rows=source.n_rows):
            if tuned.averaging is not None:
                tuned = redrawn(tuned, tuned.averaging, source.rows, source.y, self.n_jobs)
            model._keep(tuned, source, fitted(tuned, source, self.n_jobs, self._answers.model))
        return model

    def _with_arrivals(self, rows: Rows, y: Array) -> Arrivals:
        """Return ranks of the rows that came later, these among them, while they are not in the model."""
        earlier = self._arrivals or Arrivals.none(rows.X.shape[1])
        if not isinstance(self._source, ArrayRows) or self.n_calibration_ == 0:
            return earlier
        with one_blas_thread(rows=self._source.n_rows):
            p = self._answers.about(rows).shares(y, np.full(y.size, 0.5))
        return earlier.extended(p, rows.X, self._source.rows.X[self._answers.model.calibration])
