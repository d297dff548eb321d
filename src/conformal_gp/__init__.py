"""Gaussian process regression with guaranteed prediction intervals."""

from conformal_gp.kernels import NeuralNetwork
from conformal_gp.regressor import ConformalGPRegressor
from conformal_gp.sparse import SparseConformalGPRegressor

__all__ = ["ConformalGPRegressor", "NeuralNetwork", "SparseConformalGPRegressor"]
__version__ = "0.2.0"
