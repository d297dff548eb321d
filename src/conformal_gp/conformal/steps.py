r"""Distribution functions with equal steps, and how well they foretold labels.

The continuous ranked probability score of a distribution function F for a label y is
:math:`\int (F(x) - 1\{y \le x\})^2 dx`. With n equal steps at :math:`x_1 \le \dots \le x_n` it is the mean over i of
twice the pinball loss of :math:`x_i` as the quantile :math:`(i - 1/2) / n` (Laio and Tamea, 2007):

.. math:: \frac{2}{n} \sum_i \left( 1\{y < x_i\} - \frac{i - 1/2}{n} \right) (x_i - y) .
"""

from __future__ import annotations

import numpy as np

from conformal_gp.types import Array


def pinball_losses(y: Array, values: Array, quantiles: Array) -> Array:
    """Loss of each value as a quantile of a label, (m, n).

    Parameters
    ----------
    y : ndarray of shape (m,)
        Labels.
    values : ndarray of shape (m, n)
        Predicted quantiles.
    quantiles : ndarray of shape (n,)
        Which quantiles they are.
    """
    return ((y[:, None] < values) - quantiles) * (values - y[:, None])


def step_scores(y: Array, steps: Array) -> Array:
    """Continuous ranked probability score of each label, (m,); ``steps`` is (m, n), sorted.

    >>> step_scores(np.array([0.0, 3.0]), np.array([[0.0, 2.0], [0.0, 2.0]]))
    array([0.5, 1.5])
    """
    n = steps.shape[1]
    return 2.0 * pinball_losses(y, steps, (np.arange(n) + 0.5) / n).mean(axis=1)
