"""A Gaussian process's own error bars."""

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
