"""A Gaussian process's own error bars, and the score of its own predictive distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from conformal_gp.types import Array


def error_bars(mean: ArrayLike, std: ArrayLike, levels: Sequence[Any]) -> Array:
    r"""Central intervals of normal distributions, :math:`\mu \pm \Phi^{-1}((1 + level)/2)\, \sqrt s`, (n, 2, levels).

    >>> error_bars([0.0], [1.0], [0.95]).round(2)
    array([[[-1.96],
            [ 1.96]]])
    """
    mean, std = np.asarray(mean, dtype=float), np.asarray(std, dtype=float)
    z = norm.ppf([(1.0 + float(level)) / 2.0 for level in levels])
    return mean[:, None, None] + np.array([-1.0, 1.0])[:, None] * std[:, None, None] * z


def normal_scores(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Array:
    r"""Continuous ranked probability scores of normal distributions, (n,).

    .. math:: \sigma \left( z (2 \Phi(z) - 1) + 2 \varphi(z) - 1 / \sqrt{\pi} \right), \qquad z = (y - \mu) / \sigma

    >>> normal_scores([0.0, 3.0], [0.0, 0.0], [1.0, 1.0]).round(3)
    array([0.234, 2.437])
    """
    labels, means, stds = (np.asarray(values, dtype=float) for values in (y, mean, std))
    z = (labels - means) / stds
    return stds * (z * (2.0 * norm.cdf(z) - 1.0) + 2.0 * norm.pdf(z) - 1.0 / np.sqrt(np.pi))
