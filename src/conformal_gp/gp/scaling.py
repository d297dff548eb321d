"""Scaling of inputs: none, by training rows, or symmetric in training rows and test row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

Array = NDArray[np.float64]
Keys = NDArray[np.int64]

# Symmetric scales are powers of this. Coarser, and nearly all test rows share the scales of the training rows; finer,
# and inputs are closer to unit standard deviation.
STEP = np.sqrt(2.0)


@dataclass(frozen=True)
class Scaling:
    """Inputs x become (x - location) / scale."""

    location: Array
    scale: Array

    @classmethod
    def none(cls, X: Array) -> Scaling:
        """Leave inputs as they are."""
        return cls(np.zeros(X.shape[1]), np.ones(X.shape[1]))

    @classmethod
    def standard(cls, X: Array) -> Scaling:
        """Mean 0 and standard deviation 1 over the rows given; constant columns are only shifted."""
        scaler = StandardScaler().fit(X)
        return cls(scaler.mean_, scaler.scale_)

    def transform(self, X: Array) -> Array:
        """Scaled inputs."""
        return (X - self.location) / self.scale


class SymmetricScaling:
    """Scaling by training rows *and* test row, so that no row is treated differently.

    The standard deviation of each input over the l + 1 rows is rounded to a power of √2. Adding a test row changes the
    rounded value only if it lies close to an edge, so one scaling serves nearly all test rows; a *key* names the
    scaling of each. Kernels that are not stationary also need a common origin: the mean over the l + 1 rows, rounded to
    a quarter of the rounded scale.

    Parameters
    ----------
    X : ndarray of shape (l, d)
        Training inputs.
    stationary : bool
        Whether the model is unchanged by a shift of the inputs; the origin is then the training rows' mean, for the
        sake of rounding alone.
    """

    def __init__(self, X: Array, stationary: bool):
        self._n = X.shape[0]
        self._mean = X.mean(axis=0)
        self._sum_of_squares = ((X - self._mean) ** 2).sum(axis=0)
        self._stationary = stationary

    def training_key(self) -> Keys:
        """Key of the training rows by themselves, (2 d,)."""
        return self._keys(self._mean[None, :], self._sum_of_squares[None, :], self._n)[0]

    def keys(self, X: Array) -> Keys:
        """Key of the training rows with each test row, (m, 2 d)."""
        n = self._n + 1
        away = X - self._mean
        return self._keys(self._mean + away / n, self._sum_of_squares + away**2 * (self._n / n), n)

    def _keys(self, mean: Array, sum_of_squares: Array, n: int) -> Keys:
        with np.errstate(divide="ignore"):
            exponent = np.log(np.sqrt(sum_of_squares / n)) / np.log(STEP)
        # A column that is constant but for rounding has no scale of its own.
        constant = sum_of_squares <= (1e-14 * np.abs(mean)) ** 2 * n
        exponent = np.where(constant | ~np.isfinite(exponent), 0.0, np.round(exponent))
        origin = np.zeros_like(exponent) if self._stationary else np.round(4.0 * mean / STEP**exponent)
        return np.concatenate([exponent, origin], axis=-1).astype(np.int64)

    def scaling(self, key: Keys) -> Scaling:
        """The scaling that a key names."""
        exponent, origin = np.split(key.astype(float), 2)
        scale = STEP**exponent
        return Scaling(self._mean if self._stationary else 0.25 * origin * scale, scale)
