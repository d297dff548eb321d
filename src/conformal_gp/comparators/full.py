"""Full conformal prediction with scores that are lines in the candidate label, whichever method they come from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from conformal_gp.comparators.base import IntervalRegressor
from conformal_gp.conformal.levels import rank, read_levels
from conformal_gp.conformal.lines import Lines
from conformal_gp.conformal.regions import hulls, regions
from conformal_gp.predictors.base import BLOCK_ENTRIES, BLOCK_ROWS
from conformal_gp.threads import one_blas_thread
from conformal_gp.validation import check_inputs

Array = NDArray[np.float64]
Part = TypeVar("Part")


class FullConformalRegressor(IntervalRegressor):
    """A regressor that ranks all training rows against the test row, which joins them with every candidate label.

    Subclasses give the lines; intervals and regions follow. ``_n_rows``, set by ``_fit``, is the number of training
    rows.
    """

    _n_rows: int

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
            For each row its region as sorted, disjoint, closed intervals.
        """
        check_is_fitted(self)
        inputs = check_inputs(self, X, reset=False)
        levels, single = read_levels(confidence_level)
        if not single:
            raise ValueError(f"confidence_level must be one number for predict_set, got {confidence_level!r}.")
        k = rank(levels[0], self._n_rows)
        return [region for block in self._map_lines(lambda lines: regions(lines, k), inputs) for region in block]

    def _intervals(self, X: Array, levels: Sequence[Fraction]) -> Array:
        ranks = [rank(level, self._n_rows) for level in levels]
        return np.concatenate(self._map_lines(lambda lines: hulls(lines, ranks), X))

    def _map_lines(self, function: Callable[[Lines], Part], X: Array) -> list[Part]:
        """Apply ``function`` to the lines of blocks of test rows: memory does not grow with their number."""
        most = max(BLOCK_ROWS, BLOCK_ENTRIES // self._n_rows)
        with one_blas_thread(rows=self._n_rows):
            return [function(self._lines(X[rows])) for rows in gen_batches(X.shape[0], most)]

    @abstractmethod
    def _lines(self, X: Array) -> Lines:
        """Centred lines of all training rows for a block of checked test rows."""
