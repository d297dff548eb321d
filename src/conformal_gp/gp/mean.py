"""Mean functions: a basis whose coefficients are learnt, or given a flat prior."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MEAN_NAMES = ("zero", "constant", "linear")
"""Mean functions; "auto" is the constant or the linear one."""


def basis(mean: str, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows h(x) of the mean function h(x)'β at the rows of ``X``.

    ``"zero"`` has no columns, ``"constant"`` a column of ones, ``"linear"`` ones and the inputs.
    """
    ones = np.ones((X.shape[0], 1))
    return {"zero": ones[:, :0], "constant": ones, "linear": np.hstack([ones, X])}[mean]


class IndependentColumns:
    """An orthonormal basis of the span of some columns, for any rows of the same columns.

    Inputs may be collinear (indicator columns, constant columns); generalised least squares then has no unique
    coefficients. This keeps the directions R of the coefficient space that the training rows determine: ``H R`` has
    orthonormal columns. Columns after the first, which is constant, are shifted by their median and scaled to length
    one before their directions are found: neither an offset nor a far-out input hides a direction.
    """

    def __init__(self, H: NDArray[np.float64]):
        self.n_columns = H.shape[1]
        self._shift = np.zeros(self.n_columns)
        self._shift[1:] = np.median(H[:, 1:], axis=0)
        length = np.linalg.norm(H - self._shift, axis=0)
        self._length = np.where(length > 1e-14 * (1.0 + np.abs(self._shift)) * np.sqrt(H.shape[0]), length, 1.0)
        _, singular, directions = np.linalg.svd(self._shifted(H), full_matrices=False)
        cutoff = max(H.shape) * np.finfo(float).eps * (singular[0] if singular.size else 0.0)
        kept = singular > cutoff
        self.rank = int(kept.sum())
        self._directions = directions[kept].T / singular[kept]
        self._unseen = np.eye(self.n_columns) - directions[kept].T @ directions[kept]

    def _shifted(self, H: NDArray[np.float64]) -> NDArray[np.float64]:
        return (H - self._shift) / self._length

    def reduce(self, H: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coordinates of rows ``H`` in the kept directions."""
        return self._shifted(H) @ self._directions

    def coefficients(self, reduced: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients on the columns, from those on the kept directions."""
        shifted = self._directions @ reduced / self._length
        if shifted.size > 1:
            shifted[0] -= self._shift[1:] @ shifted[1:]
        return shifted

    def leaves(self, H: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each row points where the training rows determine nothing."""
        shifted = self._shifted(H)
        outside = np.linalg.norm(shifted @ self._unseen, axis=1)
        return outside > 1e-8 * (1.0 + np.linalg.norm(shifted, axis=1))
