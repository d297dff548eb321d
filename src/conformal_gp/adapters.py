"""Bring your own Gaussian process: full conformal regressors of GPs that other libraries fitted.

Each function writes the GP as a scikit-learn kernel, a noise variance and a constant mean, and fits a
:class:`~conformal_gp.ConformalGPRegressor` with ``tuning="fixed"`` to its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel, Matern, RationalQuadratic
from sklearn.utils.validation import check_is_fitted

from conformal_gp.arrays import Array
from conformal_gp.gp.kernels import multiplied
from conformal_gp.models.tuning import TRAIN_GUARANTEE
from conformal_gp.regressor import ConformalGPRegressor

__all__ = ["from_gpytorch", "from_process", "from_sklearn"]

# Rows on which both sides are compared.
COMPARED = 20


@dataclass(frozen=True)
class Shift:
    """A constant, added to targets; unlike a lambda it can be saved."""

    by: float

    def __call__(self, y: Array) -> Array:
        return y + self.by


def from_process(
    kernel: Kernel,
    X: Any,
    y: ArrayLike,
    *,
    noise_variance: float,
    mean: float = 0.0,
    tuning_rows: ArrayLike | None = None,
    gamma: float = 2.0,
) -> ConformalGPRegressor:
    r"""Full conformal regressor of a Gaussian process whose hyperparameters you have.

    Nothing is learnt: the model is :math:`y = m + f(x) + \varepsilon`. For a mean function other than a constant, give
    ``y - m(X)`` and add ``m(X_test)`` to predictions. All rows are treated symmetrically, so the guarantee stays.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Covariance function, with the values of its hyperparameters.
    X : array-like or data frame of shape (n_samples, n_features)
        Training inputs, scaled as the GP has them.
    y : array-like of shape (n_samples,)
        Training targets.
    noise_variance : float >= 0
        Variance of the noise on each target.
    mean : float, default=0.0
        The constant m.
    tuning_rows : array-like of int or None, default=None
        Row numbers of the training rows that hyperparameters and mean were learnt from. None is all of them: coverage
        is not guaranteed. Else these stay in the GP, the others are calibration rows, and coverage is guaranteed. An
        empty list states that values were fixed beforehand, or learnt from other data, which nothing can check.
    gamma : float in [1, inf], default=2.0
        As in :class:`~conformal_gp.ConformalGPRegressor`.

    Returns
    -------
    model : ConformalGPRegressor
        Fitted; ``guarantee_`` states which guarantee applies.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from conformal_gp.adapters import from_process
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> y = 5.0 + np.sin(2 * X[:, 0]) + 0.1 * np.cos(50 * X[:, 0])
    >>> model = from_process(RBF(0.7), X, y, noise_variance=0.01, mean=5.0, tuning_rows=[])
    >>> model.predict_interval([[1.0], [2.0]], confidence_level=0.9).round(2)
    array([[5.79, 6.03],
           [4.13, 4.37]])
    """
    if np.ndim(mean) != 0 or not np.isfinite(mean):
        raise ValueError(f"mean must be a finite number, got {mean!r}; of a function m, give y - m(X) as targets.")
    if tuning_rows is not None and np.ndim(tuning_rows) != 1:
        raise ValueError(f"tuning_rows must be a list of row numbers, an empty list or None, got {tuning_rows!r}.")
    model = ConformalGPRegressor(
        kernel,
        mean="zero",
        noise_variance=noise_variance,
        gamma=gamma,
        tuning="fixed",
        tuning_rows=None if tuning_rows is None or np.size(tuning_rows) == 0 else np.asarray(tuning_rows),
        target_transform=None if mean == 0.0 else (Shift(-float(mean)), Shift(float(mean))),
        scale_inputs=False,
    ).fit(X, y)
    if tuning_rows is None:
        model._tuned = replace(model._tuned, guarantee=TRAIN_GUARANTEE)  # so that it stays with later rows
        model.guarantee_ = TRAIN_GUARANTEE
    return model


def from_sklearn(
    gpr: GaussianProcessRegressor, *, tuning_rows: ArrayLike | None = None, gamma: float = 2.0
) -> ConformalGPRegressor:
    r"""Full conformal regressor of a fitted ``GaussianProcessRegressor``, with the hyperparameters that it learnt.

    The noise is its ``alpha``, in addition to any ``WhiteKernel`` in the kernel. With ``normalize_y`` it models
    :math:`(y - c) / s`, c and s the mean and the standard deviation of the targets, or with tuning rows of theirs; that
    is the same as kernel and noise times :math:`s^2`, and the mean c.

    Parameters
    ----------
    gpr : GaussianProcessRegressor
        Fitted, to one target a row, with one ``alpha`` for all rows.
    tuning_rows, gamma
        As in :func:`from_process`. Where hyperparameters were learnt from some of its rows, it was fitted twice:
        ``GaussianProcessRegressor(learnt.kernel_, optimizer=None).fit(X, y)``.

    Returns
    -------
    model : ConformalGPRegressor
        Fitted to the rows of ``gpr``; ``guarantee_`` states which guarantee applies.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from conformal_gp.adapters import from_sklearn
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.cos(50 * X[:, 0])
    >>> gpr = GaussianProcessRegressor(RBF(0.7), alpha=0.01, optimizer=None).fit(X, y)
    >>> model = from_sklearn(gpr, tuning_rows=[])  # nothing was learnt
    >>> model.predict_interval([[1.0]], confidence_level=0.9).round(2)
    array([[0.79, 1.03]])
    """
    if not isinstance(gpr, GaussianProcessRegressor):
        raise ValueError(f"gpr must be a GaussianProcessRegressor, got {type(gpr).__name__}.")
    check_is_fitted(gpr, "X_train_")
    if np.ndim(gpr.y_train_) != 1:
        raise ValueError(f"gpr must have one target a row, got {np.shape(gpr.y_train_)[1]}; fit one model for each.")
    if np.ptp(gpr.alpha) > 0.0:
        raise ValueError("gpr has an alpha for each row, which says nothing of a new row's noise; give one for all.")
    y = gpr._y_train_mean + gpr._y_train_std * gpr.y_train_
    kernel = gpr.kernel_
    noise_variance = float(np.mean(gpr.alpha))
    mean = 0.0
    if gpr.normalize_y:
        if tuning_rows is not None and np.size(tuning_rows) == 0:
            raise ValueError("tuning_rows must not be empty with normalize_y=True, which learns from rows.")
        learnt_from = y if tuning_rows is None else y[np.asarray(tuning_rows)]
        mean = float(np.mean(learnt_from))
        variance = float(np.var(learnt_from)) or 1.0
        kernel = multiplied(kernel, variance)
        noise_variance *= variance
    model = from_process(
        kernel, gpr.X_train_, y, noise_variance=noise_variance, mean=mean, tuning_rows=tuning_rows, gamma=gamma
    )
    if hasattr(gpr, "feature_names_in_"):
        model.feature_names_in_ = gpr.feature_names_in_
    return model


def from_gpytorch(
    model: Any, likelihood: Any, *, tuning_rows: ArrayLike | None = None, gamma: float = 2.0
) -> ConformalGPRegressor:
    """Full conformal regressor of a trained ``ExactGP`` of GPyTorch, or ``SingleTaskGP`` of BoTorch.

    Parameters
    ----------
    model : gpytorch.models.ExactGP
        With a ``covar_module`` made of ``ScaleKernel``, ``RBFKernel``, ``MaternKernel``, ``RQKernel``,
        ``LinearKernel``, their sums and products, and a ``mean_module`` that is ``ZeroMean`` or ``ConstantMean``. That
        its ``forward`` does nothing else is checked on some of the rows. An ``outcome_transform`` must be BoTorch's
        ``Standardize``, learnt from the tuning rows.
    likelihood : gpytorch.likelihoods.GaussianLikelihood
        With one noise for all rows.
    tuning_rows, gamma
        As in :func:`from_process`. Rows to rank are added after training, by
        ``model.set_train_data(X, y, strict=False)``.

    Returns
    -------
    model : ConformalGPRegressor
        Fitted to the training rows of the model; ``guarantee_`` states which guarantee applies.

    Examples
    --------
    With a trained ``model`` and its ``likelihood``:

    >>> from conformal_gp.adapters import from_gpytorch
    >>> conformal = from_gpytorch(model, likelihood)  # doctest: +SKIP
    >>> conformal.predict_interval(X_test, confidence_level=0.9)  # doctest: +SKIP
    """
    for name in ("train_inputs", "train_targets", "covar_module", "mean_module"):
        if getattr(model, name, None) is None:
            raise ValueError(f"model must be an ExactGP of GPyTorch with training rows; it has no {name}.")
    if hasattr(model, "input_transform"):
        raise ValueError("model has an input_transform; transform inputs before the model instead.")
    centre, scale = _outcome_transform(model)
    (X, *others), y = model.train_inputs, model.train_targets
    if others or X.ndim != 2 or y.ndim != 1:
        raise ValueError("model must have one matrix of inputs and one target a row, no batches and no tasks.")
    kernel, mean = _kernel(model.covar_module), _converted(model.mean_module, _MEANS, "mean")
    some, theirs = _numbers(X[:COMPARED]), model.forward(X[:COMPARED])
    # distances are rounded differently
    tolerance = 1e-6
    if "32" in str(X.dtype):
        tolerance = 1e-3
    covariances = np.abs(_numbers(theirs.covariance_matrix) - kernel(some)).max() / np.abs(kernel(some)).max()
    means = np.abs(_numbers(theirs.mean) - mean).max() / (1.0 + abs(mean))
    for what, off in (("covariances", covariances), ("means", means)):
        if not off <= tolerance:
            raise ValueError(f"model has other {what} than its kernel and mean have, by a share of {off:.1e}.")
    return from_process(
        kernel if scale == 1.0 else multiplied(kernel, scale**2),
        _numbers(X),
        centre + scale * _numbers(y),
        noise_variance=_converted(likelihood, _NOISES, "likelihood") * scale**2,
        mean=centre + scale * mean,
        tuning_rows=tuning_rows,
        gamma=gamma,
    )


def _outcome_transform(model: Any) -> tuple[float, float]:
    """What targets were centred at and divided by before the model."""
    transform = getattr(model, "outcome_transform", None)
    if transform is None:
        return 0.0, 1.0
    if type(transform).__name__ != "Standardize":
        raise ValueError(
            f"model has an outcome_transform of type {type(transform).__name__}; only Standardize is supported: "
            "transform targets before the model instead."
        )
    return _one("means of Standardize", transform.means), _one("stdvs of Standardize", transform.stdvs)


def _numbers(tensor: Any) -> Array:
    """A tensor as an array in double precision."""
    return np.asarray(tensor.detach().cpu(), dtype=np.float64)


def _one(name: str, value: Any) -> float:
    """A parameter that must be a single number."""
    if _numbers(value).size != 1:
        raise ValueError(f"{name} must be one number, got {value!r}.")
    return float(_numbers(value).ravel()[0])


def _lengths(kernel: Any) -> Any:
    """A length scale, or one for each input."""
    found = _numbers(kernel.lengthscale).ravel()
    return float(found[0]) if found.size == 1 else found


def _converted(part: Any, known: Mapping[str, Callable[[Any], Any]], what: str) -> Any:
    """A part of a model, by the name of its class; a subclass may be anything, so it is not known."""
    kind = type(part)
    if kind.__module__.partition(".")[0] != "gpytorch" or kind.__name__ not in known:
        raise ValueError(
            f"{what} {kind.__module__}.{kind.__qualname__} is not supported; known are {', '.join(known)}. "
            "conformal_gp.adapters.from_process takes any kernel that is written for scikit-learn."
        )
    return known[kind.__name__](part)


def _kernel(kernel: Any) -> Kernel:
    """A kernel of GPyTorch as one of scikit-learn."""
    if getattr(kernel, "active_dims", None) is not None:
        raise ValueError(f"kernel {type(kernel).__name__} has active_dims, which is not supported.")
    return _converted(kernel, _KERNELS, "kernel")


_KERNELS = {
    "ScaleKernel": lambda k: ConstantKernel(_one("outputscale", k.outputscale)) * _kernel(k.base_kernel),
    "RBFKernel": lambda k: RBF(_lengths(k)),
    "MaternKernel": lambda k: Matern(_lengths(k), nu=k.nu),
    "RQKernel": lambda k: RationalQuadratic(_one("lengthscale of RQKernel", k.lengthscale), _one("alpha", k.alpha)),
    "LinearKernel": lambda k: (
        ConstantKernel(_one("variance of LinearKernel", k.variance)) * DotProduct(0.0, sigma_0_bounds="fixed")
    ),
    "AdditiveKernel": lambda k: reduce(add, map(_kernel, k.kernels)),
    "ProductKernel": lambda k: reduce(mul, map(_kernel, k.kernels)),
}
_MEANS = {"ZeroMean": lambda m: 0.0, "ConstantMean": lambda m: _one("constant of ConstantMean", m.constant)}
_NOISES = {"GaussianLikelihood": lambda likelihood: _one("noise", likelihood.noise)}
