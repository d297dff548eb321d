r"""Noise of each row: learnt, the same for all rows or varying with the inputs, and known beforehand.

The label of row i carries noise of variance

.. math:: \lambda_i = \sigma^2 w_i + v_i, \qquad \log w_i = \ell \tanh (c' f(x_i) / \ell),

where :math:`v_i \ge 0` is known and comes with the row, and :math:`\sigma^2` is learnt. The *weight* :math:`w_i` is 1
where the noise is constant. Where it varies, f(x) holds each input and the :class:`Trend`, what the process with
constant noise predicts there, because noise often grows with the label. Each of these, standardised to z by the rows
that the coefficients c are learnt from, has an entry z and another :math:`(z^2 - 1) / \sqrt 2`, each less its mean over
these rows, so :math:`\sigma^2` is about the geometric mean of the learnt noise there. Beyond two and a half standard
deviations an input or the trend counts as that far out, and :math:`\ell = \log 100` keeps weights between 1/100 and
100: no test row has noise of another kind than the rows had.

The coefficients have a normal prior of mean 0 and variance :math:`(d + 1)^{-1/2}` for d inputs, between that of a few
that matter much and that of many that matter little. They are 0 unless the rows say otherwise (:func:`is_supported`).

Inside a bag there is no trend, which would depend on labels: f(x) holds the inputs and their squares
(:func:`input_features`), and the coefficients are more coordinates of the lattice, each 0 unless the rows say otherwise
(:func:`spiked_penalty`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.stats import chi2
from sklearn.gaussian_process.kernels import Kernel
from sklearn.preprocessing import StandardScaler

from conformal_gp._compiled import compiled
from conformal_gp.gp.covariance import Pairs, covariance
from conformal_gp.types import Array

# Farthest that an input counts as being out, in standard deviations.
FARTHEST = 2.5
# Largest |log w|, l: standard deviations of the noise differ by up to a factor of 10 from the typical one.
LARGEST_LOG_WEIGHT = float(np.log(100.0))
# Probability of at most this that constant noise is taken for varying noise. It was about 0.01 in 90 draws of the
# study's constant noise with other seeds, as the prior takes a part of the gain.
SIGNIFICANCE = 0.05
# What each coefficient that is not 0 costs inside a bag, in minus twice the log density.
SPIKE = 6.0


@dataclass(frozen=True)
class Trend:
    r"""The mean that a process predicts from m rows, :math:`b_0 + b'x + k(x, Z)' a` at scaled inputs x.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> trend = Trend(RBF(), np.zeros((1, 1)), np.array([2.0]), np.array([5.0, 1.0]))
    >>> trend(np.array([[0.0], [100.0]])).tolist()
    [7.0, 105.0]
    """

    kernel: Kernel
    rows: Array
    """(m, d): Z."""
    weights: Array
    """(m,): a."""
    mean_coef: Array
    """(1 + d,): b."""

    def __call__(self, X: Array) -> Array:
        """The trend at the rows of ``X``, (n,)."""
        K = covariance(self.kernel, Pairs(X, self.rows))[0]
        return self.mean_coef[0] + X @ self.mean_coef[1:] + K @ self.weights


@dataclass(frozen=True)
class VaryingNoise:
    """Weights of the noise as a function of scaled inputs.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> X = np.array([[-1.0], [1.0]])
    >>> none = Trend(RBF(), X, np.zeros(2), np.zeros(2))
    >>> shape = VaryingNoise.learn(X, none).with_coefficients(np.array([1.0, 0.0, 0.0, 0.0]))
    >>> shape.weight(np.array([[0.0], [np.log(2.0)]])).round(2).tolist()
    [1.0, 1.99]
    """

    trend: Trend
    location: Array
    """(d + 1,): means of the inputs and the trend over the rows learnt from."""
    scale: Array
    """(d + 1,): their standard deviations."""
    centre: Array
    """(2 (d + 1),): means of the features over these rows."""
    coefficients: Array
    """(2 (d + 1),): c."""

    @classmethod
    def learn(cls, X: Array, trend: Trend) -> Self:
        """Features that are standardised over some rows, with coefficients 0."""
        scaler = StandardScaler().fit(np.column_stack([X, trend(X)]))
        nothing = np.zeros(2 * scaler.n_features_in_)
        raw = cls(trend, scaler.mean_, scaler.scale_, nothing, nothing)
        return replace(raw, centre=raw.features(X).mean(axis=0))

    def with_coefficients(self, coefficients: Array) -> Self:
        """The same features with other coefficients."""
        return replace(self, coefficients=coefficients)

    def features(self, X: Array) -> Array:
        """f at the rows of ``X``, (n, 2 (d + 1)): of the inputs, of the trend, then of their squares."""
        return input_features((np.column_stack([X, self.trend(X)]) - self.location) / self.scale) - self.centre

    def weight(self, X: Array) -> Array:
        """w at the rows of ``X``, (n,)."""
        return weights(self.features(X), self.coefficients)[0]


def input_features(z: Array) -> Array:
    """Standardised numbers z of each row, (n, k), none farther out than it counts, then their squares: (n, 2 k)."""
    z = np.clip(z, -FARTHEST, FARTHEST)
    return np.hstack([z, (z**2 - 1.0) / np.sqrt(2.0)])


def weights(features: Array, coefficients: Array) -> tuple[Array, Array]:
    """w of rows of features, (n,), and its derivative with respect to c'f."""
    bent = np.tanh(features @ coefficients / LARGEST_LOG_WEIGHT)
    w = np.exp(LARGEST_LOG_WEIGHT * bent)
    return w, w * (1.0 - bent**2)


@compiled(error_model="numpy")
def weight_of(total: float) -> tuple[float, float]:  # pragma: no cover
    """w of a row with c'f given, and its derivative: :func:`weights` of one row.

    >>> weight_of(0.0), round(weight_of(1e9)[0], 6)
    ((1.0, 1.0), 100.0)
    """
    bent = math.tanh(total / LARGEST_LOG_WEIGHT)
    w = math.exp(LARGEST_LOG_WEIGHT * bent)
    return w, w * (1.0 - bent * bent)


def coefficients(varying: VaryingNoise | None) -> Array:
    """Coefficients c, a copy; none where the noise is constant."""
    return np.empty(0) if varying is None else varying.coefficients.copy()


def penalty(coefficients: Array) -> tuple[float, Array]:
    """Minus the log density of the prior, but for a constant, and its gradient.

    >>> penalty(np.eye(8)[0])
    (1.0, array([2., 0., 0., 0., 0., 0., 0., 0.]))
    """
    precision = float(np.sqrt(0.5 * coefficients.size))
    return 0.5 * precision * float(coefficients @ coefficients), precision * coefficients


@compiled(error_model="numpy")
def spiked_penalty(coefficient: float, n_coefficients: int) -> tuple[float, float]:  # pragma: no cover
    """Minus twice the log density of a coefficient's prior inside a bag, but for a constant, and its derivative.

    With 2 d coefficients each has a normal prior of variance :math:`d^{-1/2}`, and one that is not 0 costs a number
    more, with which what all rows say of it is compared.

    >>> spiked_penalty(0.0, 2), spiked_penalty(0.5, 2)
    ((0.0, 0.0), (6.25, 1.0))
    """
    if coefficient == 0.0:
        return 0.0, 0.0
    precision = math.sqrt(0.5 * n_coefficients)
    return SPIKE + precision * coefficient * coefficient, 2.0 * precision * coefficient


def is_supported(gain: float, n_coefficients: int) -> bool:
    """Whether rows support varying noise that makes them likelier by ``gain``, in the logarithm, the prior included.

    Twice the gain is at most a likelihood ratio statistic, which is about chi-squared distributed with as many degrees
    of freedom as there are coefficients if the noise is constant; it has to exceed the upper 5% point.

    >>> is_supported(2.9, 2), is_supported(3.1, 2)
    (False, True)
    """
    return bool(2.0 * gain > chi2.isf(SIGNIFICANCE, n_coefficients))
