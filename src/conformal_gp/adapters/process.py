"""A Gaussian process given by its kernel, noise, mean and training rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.frames import encoded_inputs
from conformal_gp.regressor import ConformalGPRegressor
from conformal_gp.threads import one_blas_thread
from conformal_gp.tuning import fixed
from conformal_gp.tuning.plan import FIXED_GUARANTEE, TRAIN_GUARANTEE, holdout_guarantee
from conformal_gp.tuning.settings import check_design
from conformal_gp.types import Array
from conformal_gp.validation import check_labels


def from_process(
    kernel: Kernel,
    X: Any,
    y: ArrayLike,
    *,
    noise_variance: float,
    mean: float | ArrayLike = 0.0,
    design: ArrayLike | None = None,
    gamma: float = 2.0,
) -> ConformalGPRegressor:
    r"""Full conformal regressor of a Gaussian process whose hyperparameters you have.

    Nothing is learnt: the process is :math:`y = m(x) + f(x) + \varepsilon` with the kernel, the noise variance and the
    mean function m as given. A given mean function is not the same as ``mean="constant"`` or ``"linear"`` of
    :class:`~conformal_gp.ConformalGPRegressor`, which estimate coefficients. Here :math:`m` is subtracted from the
    labels, whose process then has mean zero, and added to every answer; as candidate labels of the test row are treated
    likewise, the guarantee stays.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Covariance function, with the values of its hyperparameters.
    X : array-like or data frame of shape (n_samples, n_features)
        Training inputs, scaled as the process has them: no others are made here.
    y : array-like of shape (n_samples,)
        Training labels.
    noise_variance : float >= 0
        Variance of the noise on each label.
    mean : float or array-like of shape (1 + n_features,), default=0.0
        The mean function: a constant, or a constant and a coefficient of each input. Of any other m, give
        ``y - m(X)``, and add ``m(X_test)`` to what is predicted.
    design : array-like of int or None, default=None
        Row numbers of the training rows that hyperparameters and mean were learnt from. None is all of them: coverage
        is that of ``tuning="train"``, not exact. Where it is some of the rows, these stay in the process, the others
        are ranked, and coverage is exact. An empty list says that none had a part, as with values fixed beforehand, or
        learnt from other data: all rows are ranked, and coverage is exact. That it is true, only you know.
    gamma : float in [1, inf], default=2.0
        As in :class:`~conformal_gp.ConformalGPRegressor`.

    Returns
    -------
    model : ConformalGPRegressor
        Fitted; ``guarantee_`` says what holds. Its parameters are those of ``tuning="fixed"``, so a clone of it that is
        fitted to other rows keeps kernel and noise, and estimates the mean's coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from conformal_gp.adapters import from_process
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> y = 5.0 + np.sin(2 * X[:, 0]) + 0.1 * np.cos(50 * X[:, 0])
    >>> model = from_process(RBF(0.7), X, y, noise_variance=0.01, mean=5.0, design=[])
    >>> model.predict_interval([[1.0], [2.0]], confidence_level=0.9).round(2)
    array([[5.79, 6.03],
           [4.13, 4.37]])
    >>> from_process(RBF(0.7), X, y, noise_variance=0.01, mean=5.0).guarantee_[:9]
    'Not exact'
    """
    coefficients = _coefficients(mean)
    name = {0: "zero", 1: "constant"}.get(coefficients.size, "linear")
    model = ConformalGPRegressor(
        kernel, mean=name, noise_variance=noise_variance, gamma=gamma, tuning="fixed", scale_inputs=False
    )
    model._validate_params()
    inputs = encoded_inputs(model, X, reset=True, y=y).copy()
    labels = check_labels(y, inputs).copy()
    if name == "linear" and coefficients.size != 1 + inputs.shape[1]:
        raise ValueError(
            f"mean must be a number, or 1 + n_features={1 + inputs.shape[1]} coefficients; got {coefficients.size}."
        )
    rows, guarantee = _learnt_from(design, labels.size)
    with one_blas_thread(rows=labels.size):
        made = fixed.plan(
            model._settings(labels.size, inputs.shape[1], "fixed"), inputs, labels, np.random.RandomState(0)
        )
        made = replace(made, mean_coef=coefficients, design=rows, guarantee=guarantee)
        return model._carry_out(made, "fixed", inputs, labels)


def _coefficients(mean: Any) -> Array:
    """Coefficients of the mean function, constant first; none if it is zero everywhere."""
    coefficients = np.atleast_1d(np.asarray(mean, dtype=np.float64))
    if coefficients.ndim != 1 or coefficients.size == 0 or not np.isfinite(coefficients).all():
        raise ValueError(f"mean must be a number, or a list of finite coefficients, constant first; got {mean!r}.")
    return coefficients if coefficients.any() else coefficients[:0]


def _learnt_from(design: Any, n_rows: int) -> tuple[Any, str]:
    """Design rows, and what they guarantee."""
    nobody = np.empty(0, dtype=np.int64)
    if design is None:
        return nobody, TRAIN_GUARANTEE
    if np.shape(design) == (0,):
        return nobody, FIXED_GUARANTEE
    if np.ndim(design) == 0:
        raise ValueError(f"design must be a list of row numbers, an empty list or None, got {design!r}.")
    rows = np.asarray(check_design(design, n_rows))
    return rows, holdout_guarantee(rows.size, n_rows - rows.size)
