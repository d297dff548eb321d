"""Inputs as a model sees them: scaled, paired with the training inputs, and with the basis of the mean function."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conformal_gp.gp.covariance import Pairs
from conformal_gp.gp.scaling import Scaling
from conformal_gp.types import Array, Mask, Rows

MEAN_NAMES = ("zero", "constant", "linear")
"""Mean functions; "auto" is the constant or the linear one."""


def basis(mean: str, X: Array) -> Array:
    """Rows h(x) of the mean function h(x)'β at the rows of ``X``.

    ``"zero"`` has no columns, ``"constant"`` a column of ones, ``"linear"`` ones and the inputs.
    """
    ones = np.ones((X.shape[0], 1))
    return {"zero": ones[:, :0], "constant": ones, "linear": np.hstack([ones, X])}[mean]


# Share of a row that is outside what the training rows span, from which on that is not rounding.
UNSEEN = 1e-11


class IndependentColumns:
    """An orthonormal basis of the span of some columns, for any rows of the same columns.

    Inputs may be collinear (indicator columns, constant columns); generalised least squares then has no unique
    coefficients. This keeps the directions R of the coefficient space that the training rows determine: ``H R`` has
    orthonormal columns. Columns after the first, which is constant, are shifted by their median and scaled to length
    one before their directions are found: neither an offset nor a far-out input hides a direction.
    """

    def __init__(self, H: Array):
        self.n_columns = H.shape[1]
        self._shift = np.zeros(self.n_columns)
        self._shift[1:] = np.median(H[:, 1:], axis=0)
        length = np.linalg.norm(H - self._shift, axis=0)
        rounding = 1e-14 * (1.0 + np.abs(self._shift)) * np.sqrt(H.shape[0])
        # a constant column has a length at which a row that differs by more than rounding counts as different
        self._length = np.where(length > rounding, length, rounding / UNSEEN)
        _, singular, directions = np.linalg.svd(self._shifted(H), full_matrices=False)
        cutoff = max(H.shape) * np.finfo(float).eps * (singular[0] if singular.size else 0.0)
        kept = singular > cutoff
        self.rank = int(kept.sum())
        self._directions = directions[kept].T / singular[kept]
        self._unseen = np.eye(self.n_columns) - directions[kept].T @ directions[kept]

    def _shifted(self, H: Array) -> Array:
        return (H - self._shift) / self._length

    def reduce(self, H: Array) -> Array:
        """Coordinates of rows ``H`` in the kept directions."""
        return self._shifted(H) @ self._directions

    def coefficients(self, reduced: Array) -> Array:
        """Coefficients on the columns, from those on the kept directions."""
        shifted = self._directions @ reduced / self._length
        if shifted.size > 1:
            shifted[0] -= self._shift[1:] @ shifted[1:]
        return shifted

    def leaves(self, H: Array) -> Mask:
        """Whether each row depends on a direction that the training rows do not determine."""
        shifted = self._shifted(H)
        outside = np.linalg.norm(shifted @ self._unseen, axis=1)
        return outside > UNSEEN * (1.0 + np.linalg.norm(shifted, axis=1))


# Larger inputs, in units of their scale, would have squares that overflow, summed over inputs or rows.
LARGEST = 1e152


class NewInputs(NamedTuple):
    """A block of m new inputs."""

    pairs: Pairs
    """New rows against training rows, scaled."""
    H: Array
    """(m, p): mean basis."""
    undetermined: Mask
    """(m,): whether the mean there depends on a coefficient that the training rows do not determine."""

    def take(self, rows: Rows) -> NewInputs:
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
        scaled = _scaled(scaling, X)
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
        scaled = _scaled(self._scaling, X)
        H = basis(self._mean, scaled)
        return NewInputs(Pairs(scaled, self.pairs.X), self._columns.reduce(H), self._columns.leaves(H))

    def coefficients(self, reduced: Array) -> Array:
        """Coefficients on the columns of the mean function, from those on the orthonormal basis."""
        return self._columns.coefficients(reduced)


def _scaled(scaling: Scaling, X: Array) -> Array:
    """Scaled inputs, or a ValueError if their squares, of which distances are made, overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = scaling.transform(X)
        largest = np.abs(scaled).max(axis=0, initial=0.0)
        fine = largest < LARGEST
    if fine.all():
        return scaled
    column = int(np.argmin(fine))
    raise ValueError(
        f"X reaches {np.abs(X[:, column]).max():.1e} in column {column}, too far from the other rows for distances to "
        "be computed; leave such rows out."
    )
