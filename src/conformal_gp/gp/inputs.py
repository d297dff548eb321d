"""Training inputs as a model sees them, and the same for new inputs: scaled, paired, with their mean basis."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformal_gp.gp.covariance import Pairs
from conformal_gp.gp.mean import IndependentColumns, basis
from conformal_gp.gp.scaling import Scaling
from conformal_gp.types import Array, Rows


class NewInputs(NamedTuple):
    """A block of m new inputs."""

    pairs: Pairs
    """New rows against training rows, scaled."""
    H: Array
    """(m, p): mean basis."""
    undetermined: NDArray[np.bool_]
    """(m,): whether the mean there hangs on a coefficient that the training rows do not determine."""

    def take(self, rows: NDArray[np.int64]) -> NewInputs:
        """Some of the rows."""
        return NewInputs(self.pairs.take(rows), self.H[rows], self.undetermined[rows])


class Inputs:
    """Training inputs under a scaling and a mean function.

    Parameters
    ----------
    X : ndarray of shape (l, d)
        Training inputs, unscaled.
    scaling : Scaling
        How to scale them.
    mean : {"zero", "constant", "linear"}
        Mean function.

    Attributes
    ----------
    pairs : Pairs
        Scaled training rows against themselves.
    H : ndarray of shape (l, p)
        Mean basis, orthonormal columns.
    unscaled : ndarray of shape (l, d)
        The inputs as they were given.
    """

    def __init__(self, X: Array, scaling: Scaling, mean: str):
        self.unscaled = X
        self._scaling = scaling
        self._mean = mean
        scaled = scaling.transform(X)
        H = basis(mean, scaled)
        self._columns = IndependentColumns(H)
        if H.shape[1] and self._columns.rank >= X.shape[0]:
            raise ValueError(
                f"mean={mean!r} has {H.shape[1]} coefficients, too many for n_samples={X.shape[0]} rows; use "
                "mean='constant' (at least 2 rows) or mean='zero'."
            )
        self.pairs = Pairs(scaled)
        self.H = self._columns.reduce(H)

    def take(self, rows: Rows) -> Inputs:
        """Some of the rows by themselves, under the same scaling."""
        return Inputs(self.unscaled[rows], self._scaling, self._mean)

    def new(self, X: Array) -> NewInputs:
        """New inputs, unscaled, as the model sees them."""
        scaled = self._scaling.transform(X)
        H = basis(self._mean, scaled)
        return NewInputs(Pairs(scaled, self.pairs.X), self._columns.reduce(H), self._columns.leaves(H))

    def coefficients(self, reduced: Array) -> Array:
        """Coefficients on the columns of the mean function, from those on the orthonormal basis."""
        return self._columns.coefficients(reduced)
