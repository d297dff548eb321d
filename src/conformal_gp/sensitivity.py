"""Sobol indices of the predictive mean: which inputs its variation comes from; needs the extra ``sensitivity``."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from conformal_gp.base import ConformalRegressor
from conformal_gp.types import Array
from conformal_gp.validation import ExtrapolationWarning

__all__ = ["SobolIndices", "sobol_indices"]


class SobolIndices(NamedTuple):
    """Shares of the variance of the mean, an entry for each input.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp.sensitivity import SobolIndices
    >>> SobolIndices(["x"], np.ones(1), np.ones(1), np.zeros(1), np.zeros(1)).names
    ['x']
    """

    names: list[str]
    first: Array
    """What an input explains by itself."""
    total: Array
    """What it explains together with all others; the difference to ``first`` are interactions."""
    first_error: Array
    """Half the width of a 95% interval of ``first``, by the bootstrap, for the sampling of inputs alone."""
    total_error: Array
    """The same of ``total``."""


def sobol_indices(
    model: ConformalRegressor, bounds: ArrayLike | None = None, *, n_points: int = 1024, random_state: int | None = 0
) -> SobolIndices:
    r"""First-order and total Sobol indices of the mean function of a fitted model, by SALib.

    With independent inputs, uniform within bounds, the mean :math:`\mu` has for input i the first-order index
    :math:`\operatorname{Var} E[\mu \mid x_i] / \operatorname{Var} \mu` and the total index
    :math:`E \operatorname{Var}[\mu \mid x_{-i}] / \operatorname{Var} \mu`. They are of the mean, not of the truth: a
    model that fits badly has indices that say little.

    Parameters
    ----------
    model : ConformalGPRegressor or SparseConformalGPRegressor
        Fitted to inputs that are numbers.
    bounds : array-like of shape (n_features, 2), or None, default=None
        Least and greatest value of each input; None takes those of the training rows.
    n_points : int, default=1024
        Points of Saltelli's scheme, a power of 2: the mean is predicted ``n_points * (n_features + 2)`` times.
    random_state : int or None, default=0
        Seed of the points and of the bootstrap.

    Returns
    -------
    indices : SobolIndices
        Names, indices and their errors.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.sensitivity import sobol_indices
    >>> X = np.random.default_rng(0).uniform(size=(60, 2))
    >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=1e-4).fit(X, X[:, 0] + 2 * X[:, 1])
    >>> sobol_indices(model, [[0, 1], [0, 1]], n_points=256).first.round(1)
    array([0.2, 0.8])
    """
    try:
        from SALib.analyze import sobol as analysis
        from SALib.sample import sobol as sampling
    except ImportError as error:
        raise ImportError("conformal_gp.sensitivity needs SALib: pip install 'conformal-gp[sensitivity]'") from error
    check_is_fitted(model)
    if model._encoding is not None:
        raise ValueError("model was fitted to categories, which have no range; Sobol indices are of numbers.")
    limits = model.input_range_.T if bounds is None else np.asarray(bounds, dtype=float)
    n_inputs = model.n_features_in_
    if limits.shape != (n_inputs, 2) or not (limits[:, 0] < limits[:, 1]).all():
        raise ValueError(f"bounds must be {n_inputs} pairs (least, greatest) that differ, got {limits.tolist()}.")
    known = model._input_names()
    names = [f"x{i}" for i in range(n_inputs)] if known is None else [str(name) for name in known]
    problem: dict[str, Any] = {"num_vars": n_inputs, "names": names, "bounds": limits.tolist()}
    points = sampling.sample(problem, n_points, calc_second_order=False, seed=random_state)
    with warnings.catch_warnings(action="ignore", category=ExtrapolationWarning):
        mean = np.asarray(model.predict(points))
    found = analysis.analyze(problem, mean, calc_second_order=False, seed=random_state)
    return SobolIndices(names, *(np.asarray(found[key]) for key in ("S1", "ST", "S1_conf", "ST_conf")))
