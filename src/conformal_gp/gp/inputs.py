"""Inputs as a model has them: missing values filled, scaled, and with the basis of the mean function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler

from conformal_gp.arrays import Array, Mask
from conformal_gp.rows import Rows

# Symmetric scales are powers of this. Coarser, and nearly all test rows share the scales of the training rows; finer,
# and inputs are closer to unit standard deviation.
STEP = 2.0
# Shares of the rows below and above the range that gives a scale; the first range that is not a single value counts.
TAILS = (1 / 4, 1 / 10, 1 / 40, 0)

# Inputs whose fourth moment exceeds this times their squared variance have heavy tails: that of a Laplace distribution.
HEAVY_TAILS = 6.0

MEAN_NAMES = ("zero", "constant", "linear")
"""Mean functions; "auto" is the constant or the linear one."""


def medians(X: Array) -> Array:
    """Medians of the observed values of each input; 0 if there are none.

    >>> medians(np.array([[1.0, np.nan], [3.0, np.nan]])).tolist()
    [2.0, 0.0]
    """
    return np.ma.median(np.ma.masked_invalid(X), axis=0).filled(0.0)


def filled(X: Array, fill: Array) -> Array:
    """Inputs with a value for each column in place of missing ones."""
    return np.where(np.isnan(X), fill, X)


def _compressed(X: Array, centre: Array, reach: Array) -> Array:
    """The inverse hyperbolic sine of inputs with a finite reach: linear to about there, then a logarithm."""
    finite = np.isfinite(reach)
    x = X.astype(np.float64)
    x[:, finite] = np.arcsinh((x[:, finite] - centre[finite]) / reach[finite])
    return x


@dataclass(frozen=True)
class Scaling:
    """Inputs x become (x - location) / scale, missing ones after they are filled, those of heavy tails compressed."""

    location: Array | float = 0.0
    scale: Array | float = 1.0
    fill: Array | None = None
    """(d,): what stands in place of missing values; None if there are none."""
    centre: Array | None = None
    """(d,): centres of compressed inputs; None if none are."""
    reach: Array | None = None
    """(d,): distances from the centre beyond which inputs are compressed; infinite for those that are not."""

    @classmethod
    def standard(cls, X: Array, compress: bool = False) -> Scaling:
        """Mean 0 and standard deviation 1, after inputs of heavy tails are compressed; constant ones are only shifted.

        >>> scaling = Scaling.standard(np.exp(np.arange(-6.0, 7.0))[:, None], compress=True)
        >>> scaling.transform(np.exp([[-6.0], [0.0], [6.0]])).ravel().round(2)
        array([-0.86, -0.59,  1.98])
        """
        scaler = StandardScaler().fit(X)
        usual = cls(scaler.mean_, scaler.scale_)
        tails = np.mean(usual.transform(X) ** 4, axis=0) > HEAVY_TAILS
        if not (compress and tails.any()):
            return usual
        centre = np.median(X, axis=0)
        reach = np.full(X.shape[1], np.inf)
        for column in np.flatnonzero(tails):
            distance = np.abs(X[:, column] - centre[column])
            reach[column] = np.median(distance[distance > 0.0])
        scaler = StandardScaler().fit(_compressed(X, centre, reach))
        return cls(scaler.mean_, scaler.scale_, None, centre, reach)

    def filled(self, X: Array) -> Array:
        """Unscaled inputs without missing values."""
        if self.fill is None:
            return X
        return filled(X, self.fill)

    def transform(self, X: Array) -> Array:
        """Scaled inputs."""
        X = self.filled(X)
        if self.centre is not None and self.reach is not None:
            X = _compressed(X, self.centre, self.reach)
        return (X - self.location) / self.scale


class SymmetricScaling:
    """Scaling by training rows *and* test row, so that no row is treated differently.

    The scale of an input is the range of the middle half of the l + 1 rows, over 1.5, rounded to a power of 2 times the
    range of all but the lowest and the highest. If the middle half has one value, wider ranges are taken (TAILS), and
    then 1. One row moves such a range by a neighbour at most, so one scaling serves nearly all test rows; a *key* names
    the scaling of each. Kernels that are not stationary also need a common origin: the median, rounded to a quarter of
    the rounded scale from the least value on. For stationary ones it is the training rows' median, to reduce rounding.
    """

    def __init__(self, X: Array, stationary: bool):
        self._sorted = np.sort(X, axis=0)
        self._median = np.median(X, axis=0)
        self._stationary = stationary

    def keys(self, X: Array | None = None) -> Array:
        """Key of the training rows with each test row, (m, 4 d), or by themselves, (1, 4 d)."""
        n, order_statistic = _with_one_more(self._sorted, X)
        scale = np.zeros(1)
        for tail in TAILS:
            k = max(1, int(tail * n))  # never the outermost rows, of which one may be far out
            low, high = order_statistic(min(k, (n - 1) // 2)), order_statistic(max(n - 1 - k, n // 2))
            # half of uniform rows lie within 1.73 standard deviations, half of normal ones within 1.35
            scale = np.where(scale > 0.0, scale, _width(low, high) / 1.5)
        low = order_statistic(min(1, (n - 1) // 2))
        high = order_statistic(max(n - 2, n // 2))
        varies = scale > 0.0
        low = np.where(varies, low, 0.0)
        high = np.where(varies, high, 1.0)
        exponent = np.round(np.log(np.where(varies, scale / (high - low), 1.0)) / np.log(STEP))
        origin = np.zeros_like(exponent)
        if not self._stationary:
            origin = np.round(4.0 * (order_statistic((n - 1) // 2) - low) / ((high - low) * STEP**exponent))
        return np.concatenate([exponent, origin, low, high], axis=-1)

    def scaling(self, key: Array) -> Scaling:
        """The scaling that a key names."""
        exponent, origin, low, high = np.split(key, 4)
        scale = (high - low) * STEP**exponent
        return Scaling(self._median if self._stationary else low + 0.25 * origin * scale, scale)


def _width(low: Array, high: Array) -> Array:
    """Range of an input; a range within rounding counts as zero."""
    width = high - low
    return np.where(width > 1e-14 * np.maximum(np.abs(low), np.abs(high)), width, 0.0)


class SymmetricFill:
    """Fill by training rows *and* test row, so that no row is treated differently.

    The fill of an input is the lower median of the observed values of the l + 1 rows, rounded to a quarter of their
    middle half's range, which itself is rounded to a power of 2. So one fill serves nearly all test rows.

    >>> fill = SymmetricFill(np.array([[1.0], [2.0], [3.0], [4.0], [np.nan]]))
    >>> fill.training().tolist(), fill.rows(np.array([[np.nan], [9.0]])).tolist()
    ([2.0], [[2.0], [3.0]])
    """

    def __init__(self, X: Array):
        missing = np.isnan(X)
        self._n_inputs = X.shape[1]
        self._gaps = np.flatnonzero(missing.any(axis=0))
        self._observed = [np.sort(X[~missing[:, column], column]) for column in self._gaps]

    def training(self) -> Array:
        """Fill of the training rows by themselves, (d,); 0 for inputs without missing values."""
        return self.rows(np.full((1, self._n_inputs), np.nan))[0]

    def rows(self, X: Array) -> Array:
        """Fill of the training rows with each test row, (m, d)."""
        found = np.zeros(X.shape)
        for column, observed in zip(self._gaps, self._observed, strict=True):
            values = X[:, column]
            missing = np.isnan(values)
            found[missing, column] = _rounded_median(observed, None)
            found[~missing, column] = _rounded_median(observed, values[~missing])
        return found


def _with_one_more(ordered: Array, own: Array | None) -> tuple[int, Callable[[int], Array]]:
    """Number of ascending values, (n, ...), and the k-th of them with each of m further ones, (m, ...), or None."""
    n = len(ordered)
    if own is None:
        return n, lambda k: ordered[[min(k, n - 1)]]

    def order_statistic(k: int) -> Array:
        low = ordered[k - 1] if k > 0 else -np.inf
        high = ordered[k] if k < n else np.inf
        return np.clip(own, low, high)

    return n + 1, order_statistic


def _rounded_median(observed: Array, own: Array | None) -> Array:
    n, order_statistic = _with_one_more(observed, own)
    median = order_statistic((n - 1) // 2)
    width = order_statistic(n - 1 - n // 4) - order_statistic(n // 4)
    wide: Mask = width > 1e-14 * np.abs(median)  # not within rounding
    step = np.ones(median.size)
    # finer steps, and more test rows have fills of their own; coarser ones, and fills are farther from the median
    step[wide] = 2.0 ** np.round(np.log2(width[wide])) / 4.0
    return np.where(wide, step * np.round(median / step), median)


def basis(mean: str, X: Array) -> Array:
    """Rows h(x) of the mean function h(x)'β at the rows of ``X``: none, ones, or ones and the inputs."""
    ones = np.ones((X.shape[0], 1))
    return {"zero": ones[:, :0], "constant": ones, "linear": np.hstack([ones, X])}[mean]


# Share of a row that is outside what the training rows span, from which on that is not rounding.
UNSEEN = 1e-11


class IndependentColumns:
    """An orthonormal basis of the span of some columns, which may be collinear, for any rows of the same columns.

    It has the directions of the coefficients that the training rows determine. Columns after the first, which is
    constant, are shifted by their median and scaled to length one before: neither an offset nor a far-out input hides a
    direction.
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
        """Coordinates of rows ``H`` in the kept directions; those of equal rows are equal to the last bit."""
        return np.einsum("ij,jk->ik", self._shifted(H), self._directions)

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


class NewInputs(NamedTuple):
    """A block of m new inputs as the model has them."""

    X: Array
    """(m, d): scaled inputs."""
    H: Array
    """(m, p): mean basis."""
    undetermined: Mask
    """(m,): whether the mean there depends on a coefficient that the training rows do not determine."""
    y_variance: Array | None
    """(m,): known noise variances; None where they were not given."""

    def noise(self, learnt: float) -> Array:
        """Noise variances of the targets, (m,): what was learnt, and what is known."""
        return _noise(learnt, self)


class Inputs:
    """Training inputs under a scaling and a mean function: scaled X, and their mean basis H of orthonormal columns."""

    def __init__(self, rows: Rows, scaling: Scaling, mean: str):
        self.scaling = scaling
        self.mean = mean
        self.X = _scaled(scaling, rows.X)
        self.y_variance = rows.y_variance
        H = basis(mean, self.X)
        self._columns = IndependentColumns(H)
        if H.shape[1] and self._columns.rank >= H.shape[0]:
            raise ValueError(
                f"mean={mean!r} has {H.shape[1]} coefficients, too many for n_samples={H.shape[0]} rows; use "
                "mean='constant' (at least 2 rows) or mean='zero'."
            )
        self.H = self._columns.reduce(H)

    def noise(self, learnt: float) -> Array:
        """Noise variances of the training targets, (l,): what was learnt, and what is known."""
        return _noise(learnt, self)

    def new(self, rows: Rows) -> NewInputs:
        """New inputs as the model has them."""
        scaled = _scaled(self.scaling, rows.X)
        H = basis(self.mean, scaled)
        return NewInputs(scaled, self._columns.reduce(H), self._columns.leaves(H), rows.y_variance)

    def coefficients(self, reduced: Array) -> Array:
        """Coefficients on the columns of the mean function, from those on the orthonormal basis."""
        return self._columns.coefficients(reduced)


def label_variance(inputs: Inputs, y: Array) -> float:
    """Mean square of the targets about their mean function; 0 when that is rounding."""
    residual = y - inputs.H @ (inputs.H.T @ y)  # H has orthonormal columns
    variance, size = float(np.mean(residual**2)), float(np.mean(y**2))
    return variance if variance > 1e-26 * size else 0.0


def _noise(learnt: float, rows: Inputs | NewInputs) -> Array:
    noise = np.full(len(rows.X), learnt)
    if rows.y_variance is not None:
        noise += rows.y_variance
    return noise


def _scaled(scaling: Scaling, X: Array) -> Array:
    """Scaled inputs, or a ValueError if their squares, of which distances are made, overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = scaling.transform(X)
        largest = np.abs(scaled).max(axis=0, initial=0.0)
        fine = largest < 1e152  # squares are summed over inputs and rows
    if fine.all():
        return scaled
    column = int(np.argmin(fine))
    raise ValueError(
        f"X reaches {np.abs(X[:, column]).max():.1e} in column {column}, too far from the other rows for distances to "
        "be computed; leave such rows out."
    )
