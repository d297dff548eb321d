"""Scaling of inputs: none, by training rows, or symmetric in training rows and test row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import StandardScaler

from conformal_gp.types import Array, Rows

OrderStatistic = Callable[[int], Array]

# Symmetric scales are powers of this. Coarser, and nearly all test rows share the scales of the training rows; finer,
# and inputs are closer to unit standard deviation.
STEP = np.sqrt(2.0)
# Shares of the rows below and above the range that gives a scale; the first range that is not a single value counts.
TAILS = (1 / 4, 1 / 10, 1 / 40, 0)
# Half of the rows of a uniform distribution lie within 1.73 standard deviations, of a normal one within 1.35.
QUARTILES_APART = 1.5


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

    The scale of an input is the range of the middle half of the l + 1 rows, over 1.5, rounded to a power of √2. If
    the middle half has one value, wider ranges are taken: of the middle 80%, of the middle 95%, of all rows but the
    lowest and the highest. An input with one value in all these has scale 1. One row moves such a range by a neighbour
    at most, however far out it lies, so one scaling serves nearly all test rows; a *key* names the scaling of each.
    Kernels that are not stationary also need a common origin: the median, rounded to a quarter of the rounded scale.

    Parameters
    ----------
    X : ndarray of shape (l, d)
        Training inputs.
    stationary : bool
        Whether the model is unchanged by a shift of the inputs; the origin is then the training rows' median, only to
        reduce rounding.
    """

    def __init__(self, X: Array, stationary: bool):
        self._sorted = np.sort(X, axis=0)
        self._median = np.median(X, axis=0)
        self._stationary = stationary

    def training_key(self) -> Rows:
        """Key of the training rows by themselves, (2 d,)."""
        n = self._sorted.shape[0]
        return self._keys(lambda k: self._sorted[min(k, n - 1)][None, :], n)[0]

    def keys(self, X: Array) -> Rows:
        """Key of the training rows with each test row, (m, 2 d)."""
        l = self._sorted.shape[0]

        def order_statistic(k: int) -> Array:
            """The k-th of the l + 1 values of each input, from 0: the test row's lies among its neighbours."""
            low = self._sorted[k - 1] if k > 0 else np.full(X.shape[1], -np.inf)
            high = self._sorted[k] if k < l else np.full(X.shape[1], np.inf)
            return np.clip(X, low, high)

        return self._keys(order_statistic, l + 1)

    def _keys(self, order_statistic: OrderStatistic, n: int) -> Rows:
        scale = np.zeros(1)
        for tail in TAILS:
            k = max(1, int(tail * n))  # never the outermost rows, of which one may be far out
            low, high = order_statistic(min(k, (n - 1) // 2)), order_statistic(max(n - 1 - k, n // 2))
            width = (high - low) / QUARTILES_APART
            # a range within rounding counts as zero
            width = np.where(width > 1e-14 * np.maximum(np.abs(low), np.abs(high)), width, 0.0)
            scale = np.where(scale > 0.0, scale, width)
        with np.errstate(divide="ignore"):
            exponent = np.where(scale > 0.0, np.round(np.log(scale) / np.log(STEP)), 0.0)
        origin = np.zeros_like(exponent)
        if not self._stationary:
            origin = np.round(4.0 * order_statistic((n - 1) // 2) / STEP**exponent)
        return np.concatenate([exponent, origin], axis=-1).astype(np.int64)

    def scaling(self, key: Rows) -> Scaling:
        """The scaling that a key names."""
        exponent, origin = np.split(key.astype(float), 2)
        scale = STEP**exponent
        return Scaling(self._median if self._stationary else 0.25 * origin * scale, scale)
