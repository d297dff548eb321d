"""Gaussian process regression with guaranteed prediction intervals."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conformal_gp.extrapolation import ExtrapolationWarning
    from conformal_gp.gp.kernels import NeuralNetwork
    from conformal_gp.regressor import ConformalGPRegressor

__all__ = ["ConformalGPRegressor", "ExtrapolationWarning", "NeuralNetwork"]
__version__ = "0.3.0"

_MODULES = dict(zip(__all__, ("regressor", "extrapolation", "gp.kernels"), strict=True))


def __getattr__(name: str) -> Any:
    """Import at first use: the command answers mistakes before scikit-learn and SciPy are there."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
