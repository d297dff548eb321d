"""Gaussian process regression with guaranteed prediction intervals."""

from conformal_gp.kernels import NeuralNetwork
from conformal_gp.regressor import ConformalGPRegressor

__all__ = ["ConformalGPRegressor", "NeuralNetwork"]
__version__ = "0.1.0"
