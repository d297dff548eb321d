"""Gaussian process regression with guaranteed prediction intervals."""

from conformal_gp.kernels import NeuralNetwork
from conformal_gp.regressor import ConformalGPRegressor
from conformal_gp.sparse import SparseConformalGPRegressor
from conformal_gp.validation import ExtrapolationWarning

__all__ = ["ConformalGPRegressor", "ExtrapolationWarning", "NeuralNetwork", "SparseConformalGPRegressor"]
__version__ = "0.2.0"
