r"""How fast the likelihood of a bag changes with its hyperparameters, as a function of a candidate label.

With the notation of :mod:`conformal_gp.predictors.bag`, :math:`F = \nu \log (y'Py) + \log D`, and with
:math:`A = K + \rho I`, :math:`w = P y`,

.. math:: \partial F = - \nu \frac{w' \, \partial A \, w}{y'Py} + \operatorname{tr} (P \, \partial A) .

Beside training rows with weighted residuals α, a test row with weights v, variance s and label :math:`\mu + t` makes it
:math:`w = a + b t` with :math:`a = (\alpha, 0)` and :math:`b = (-v, 1) / s`, and adds :math:`s\, b'\, \partial A\, b`
to the trace. So both are quadratics in the label. A training row i is set aside by
:math:`v - P_i v_i / P_{ii}` and :math:`P - P_i P_i' / P_{ii}`, and in α by replacing its label by what the others
predict: a difference would take digits from the others where it is far out.

For a stationary covariance with slope :math:`S = -2\, dk / dr^2`,
:math:`\partial A_{kl} / \partial \log \ell_j = S_{kl} (x_{kj} - x_{lj})^2 / \ell_j^2`. In the coefficients of varying
noise (:mod:`conformal_gp.gp.noise`) and in the logarithm of the common variance, A has diagonal derivatives.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from conformal_gp._compiled import compiled
from conformal_gp.gp.stationary import MATERN32, SQUARED_EXPONENTIAL
from conformal_gp.types import Array, Rows

_SUMS = {"reassoc", "contract"}


class Shape(NamedTuple):
    """A stationary kernel: the number of its shape in :mod:`conformal_gp.gp.stationary`, amplitude, length scales."""

    number: int
    scale: float
    length_scale: float | Array


@compiled(error_model="numpy")
def _slope(r2: float, shape: int) -> float:  # pragma: no cover
    """-2 dk / dr²."""
    if shape == SQUARED_EXPONENTIAL:
        return math.exp(-0.5 * r2)
    if shape == MATERN32:
        return 3.0 * math.exp(-math.sqrt(3.0 * r2))
    t = math.sqrt(5.0 * r2)
    return (5.0 / 3.0) * (1.0 + t) * math.exp(-t)


@compiled(error_model="numpy", fastmath=_SUMS)
def slopes_and_trace(
    X: Array, P: Array, shape: int, scale: float, noise: Array, features: Array
) -> tuple[Array, Array]:  # pragma: no cover
    """Lower triangle of S, and tr(P ∂A) for each input's length scale, coefficient of varying noise, and the noise."""
    (d, n), f = X.shape, features.shape[1]
    S, trace = np.zeros((n, n)), np.zeros(d + f + 1)
    for k in range(n):
        for j in range(d):
            x = X[j, k]
            for m in range(k):
                S[k, m] += (x - X[j, m]) ** 2
        for m in range(k):
            S[k, m] = scale * _slope(S[k, m], shape)
        for j in range(d):
            x, total = X[j, k], 0.0
            for m in range(k):
                total += P[k, m] * S[k, m] * (x - X[j, m]) ** 2
            trace[j] += 2.0 * total
        for j in range(f):
            trace[d + j] += noise[1, k] * features[k, j] * P[k, k]
        trace[d + f] += noise[0, k] * P[k, k]
    return S, trace


@compiled(error_model="numpy", fastmath=_SUMS)
def beside(
    X: Array,
    P: Array,
    alpha: Array,
    S: Array,
    trace: Array,
    shape: int,
    scale: float,
    noise: Array,
    features: Array,
    new: Array,
    new_noise: Array,
    new_features: Array,
    weights: Array,
    variance: Array,
    aside: Rows,
) -> Array:  # pragma: no cover
    """Slopes with a test row each, and a training row set aside.

    Parameters
    ----------
    X : ndarray of shape (d, l)
        Training inputs in units of the length scales, one input a row.
    P : ndarray of shape (m, l)
        The row of the precision matrix, the mean basis projected out, that belongs to the row set aside; 0 for none.
    alpha : ndarray of shape (m, l)
        P times the labels, the label of the row set aside replaced by what the others predict.
    S, trace : ndarray of shape (l, l) and (d + 1,)
        From :func:`slopes_and_trace`; of S the lower triangle is read.
    shape, scale : int, float
        The kernel's shape and amplitude.
    noise : ndarray of shape (2 or more, l)
        Noise variances, and their derivatives in what is linear in features.
    features : ndarray of shape (l, k)
        The features.
    new : ndarray of shape (m, d)
        Test inputs in units of the length scales.
    new_noise, new_features : ndarray of shape (2,) and (k,)
        Noise of the test rows, the same for all.
    weights : ndarray of shape (m, l)
        Weights v of the training rows.
    variance : ndarray of shape (m,)
        Variance s of the test row's label; one of infinity has no say.
    aside : ndarray of shape (m,)
        The training row that is set aside, negative for none.

    Returns
    -------
    slopes : ndarray of shape (m, 4, d + k + 1)
        a'∂A a, a'∂A b, b'∂A b and tr(P ∂A) for the logarithm of each length scale, each coefficient of varying noise
        and the logarithm of the common noise.
    """
    (d, n), f = X.shape, features.shape[1]
    found = np.zeros((variance.size, 4, d + f + 1))
    for e in range(variance.size):
        aa, ab, bb, tr = found[e]
        a, b, s, i, p = alpha[e].copy(), np.zeros(n), variance[e], aside[e], P[e]
        own = 0.0
        if s < np.inf:
            for k in range(n):
                b[k] = weights[e, k]
        if i >= 0:
            own = 1.0 / p[i]
            if s < np.inf:
                s += own * b[i] ** 2
                share = own * b[i]
                for k in range(n):
                    b[k] -= p[k] * share
            a[i] = b[i] = 0.0
        test = 1.0 / s
        for k in range(n):
            b[k] *= -test
        for j in range(d):
            x = X[j]
            for k in range(n):
                xk, to_a, to_b, to_p = x[k], 0.0, 0.0, 0.0
                for m in range(k):
                    g = S[k, m] * (xk - x[m]) ** 2
                    to_a += g * a[m]
                    to_b += g * b[m]
                    to_p += g * p[m]
                aa[j] += 2.0 * a[k] * to_a
                ab[j] += a[k] * to_b + b[k] * to_a
                bb[j] += 2.0 * b[k] * to_b
                tr[j] -= 2.0 * own * p[k] * to_p
        for k in range(n):
            if test > 0.0:
                r2 = 0.0
                for j in range(d):
                    r2 += (new[e, j] - X[j, k]) ** 2
                slope = scale * _slope(r2, shape) * test
                for j in range(d):
                    g = slope * (new[e, j] - X[j, k]) ** 2
                    ab[j] += g * a[k]
                    bb[j] += 2.0 * g * b[k]
            for j in range(f + 1):
                g = noise[1, k] * features[k, j] if j < f else noise[0, k]
                aa[d + j] += g * a[k] ** 2
                ab[d + j] += g * a[k] * b[k]
                bb[d + j] += g * b[k] ** 2
                tr[d + j] -= g * own * p[k] ** 2
        for j in range(f + 1):
            g = new_noise[1] * new_features[j] if j < f else new_noise[0]
            bb[d + j] += g * test**2
        for j in range(d + f + 1):
            tr[j] += trace[j]
            if test > 0.0:
                tr[j] += s * bb[j]
    return found
