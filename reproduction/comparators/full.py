"""Full conformal prediction for any method whose residuals are linear in the candidate label."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np
from sklearn.utils import gen_batches

from conformal_gp.conformal.levels import rank
from conformal_gp.conformal.lines import Lines
from conformal_gp.conformal.regions import hulls, regions
from conformal_gp.predictors.base import BLOCK_ENTRIES, BLOCK_ROWS
from conformal_gp.threads import one_blas_thread
from conformal_gp.types import Array
from reproduction.comparators.base import RegionRegressor

Part = TypeVar("Part")


class FullConformalRegressor(RegionRegressor):
    """A regressor that adds the test row to the training rows with each candidate label, and ranks its score.

    Subclasses give the residuals as lines in the candidate label, from which intervals and regions follow.
    ``_n_rows``, set by ``_fit``, is the number of training rows.
    """

    _n_rows: int

    def _regions(self, X: Array, level: Fraction) -> list[Array]:
        k = rank(level, self._n_rows)
        return [region for block in self._map_lines(lambda lines: regions(lines, k), X) for region in block]

    def _intervals(self, X: Array, levels: Sequence[Fraction]) -> Array:
        ranks = [rank(level, self._n_rows) for level in levels]
        return np.concatenate(self._map_lines(lambda lines: hulls(lines, ranks), X))

    def _map_lines(self, function: Callable[[Lines], Part], X: Array) -> list[Part]:
        """Apply ``function`` to the lines of blocks of test rows; memory does not grow with the number of test rows."""
        most = max(BLOCK_ROWS, BLOCK_ENTRIES // self._n_rows)
        with one_blas_thread(rows=self._n_rows):
            return [function(self._lines(X[rows])) for rows in gen_batches(X.shape[0], most)]

    @abstractmethod
    def _lines(self, X: Array) -> Lines:
        """Centred lines of all training rows, for a block of test rows."""
