"""Mean functions: a basis whose coefficients are learnt, or given a flat prior."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MEAN_NAMES = ("zero", "constant", "linear")


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
    orthonormal columns, and ``β = R γ`` is the solution of least norm.
    """

    def __init__(self, H: NDArray[np.float64]):
        self.n_columns = H.shape[1]
        _, singular, directions = np.linalg.svd(H, full_matrices=False)
        cutoff = max(H.shape) * np.finfo(float).eps * (singular[0] if singular.size else 0.0)
        kept = singular > cutoff
        self.rank = int(kept.sum())
        self.directions = directions[kept].T / singular[kept]
        self._unseen = np.eye(self.n_columns) - directions[kept].T @ directions[kept]

    def reduce(self, H: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coordinates of rows ``H`` in the kept directions."""
        return H @ self.directions

    def leaves(self, H: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each row points where the training rows determine nothing."""
        outside = np.linalg.norm(H @ self._unseen, axis=1)
        return outside > 1e-8 * (1.0 + np.linalg.norm(H, axis=1))
