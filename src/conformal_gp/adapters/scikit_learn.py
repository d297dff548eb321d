"""A fitted ``GaussianProcessRegressor`` of scikit-learn."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.utils.validation import check_is_fitted

from conformal_gp.adapters.process import from_process
from conformal_gp.kernels import multiplied
from conformal_gp.regressor import ConformalGPRegressor


def from_sklearn(
    gpr: GaussianProcessRegressor, *, design: ArrayLike | None = None, gamma: float = 2.0
) -> ConformalGPRegressor:
    r"""Full conformal regressor of a fitted ``GaussianProcessRegressor``, with the hyperparameters that it learnt.

    The noise is its ``alpha``, beside any ``WhiteKernel`` in the kernel. With ``normalize_y`` it models
    :math:`(y - c) / s`, c and s the mean and the standard deviation of the labels; that is the same as kernel and noise
    times :math:`s^2`, and the mean function c.

    Parameters
    ----------
    gpr : GaussianProcessRegressor
        Fitted, to one label a row, with one ``alpha`` for all rows.
    design, gamma
        As in :func:`from_process`. Where hyperparameters were learnt from some of its rows, it was fitted twice:
        ``GaussianProcessRegressor(learnt.kernel_, optimizer=None).fit(X, y)``. With ``normalize_y``, which learns from
        all rows, ``design`` must be None.

    Returns
    -------
    model : ConformalGPRegressor
        Fitted to the rows of ``gpr``; ``guarantee_`` says what holds.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from conformal_gp.adapters import from_sklearn
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.cos(50 * X[:, 0])
    >>> gpr = GaussianProcessRegressor(RBF(0.7), alpha=0.01, optimizer=None).fit(X, y)
    >>> model = from_sklearn(gpr, design=[])  # nothing was learnt
    >>> bool(abs(model.predict([[1.0]]) - gpr.predict([[1.0]])) < 1e-10)
    True
    >>> model.predict_interval([[1.0]], confidence_level=0.9).round(2)
    array([[0.79, 1.03]])
    """
    if not isinstance(gpr, GaussianProcessRegressor):
        raise ValueError(f"gpr must be a GaussianProcessRegressor, got {type(gpr).__name__}.")
    check_is_fitted(gpr, "X_train_")
    if np.ndim(gpr.y_train_) != 1:
        raise ValueError(f"gpr must have one label a row, got {np.shape(gpr.y_train_)[1]}; fit one model for each.")
    if np.ptp(gpr.alpha) > 0.0:
        raise ValueError("gpr has an alpha for each row, which says nothing of a new row's noise; give one for all.")
    if gpr.normalize_y and design is not None:
        raise ValueError("design must be None with normalize_y=True, which learns the labels' scale from all rows.")
    centre, scale = (float(np.ravel(value)[0]) for value in (gpr._y_train_mean, gpr._y_train_std))
    model = from_process(
        multiplied(gpr.kernel_, scale**2) if gpr.normalize_y else gpr.kernel_,
        gpr.X_train_,
        centre + scale * gpr.y_train_,
        noise_variance=float(np.mean(gpr.alpha)) * scale**2,
        mean=centre,
        design=design,
        gamma=gamma,
    )
    if hasattr(gpr, "feature_names_in_"):
        model.feature_names_in_ = gpr.feature_names_in_
    return model
