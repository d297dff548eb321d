"""Bring your own Gaussian process: exact conformal regressors of processes that other libraries fitted."""

from conformal_gp.adapters.gpflow import from_gpflow
from conformal_gp.adapters.gpytorch import from_gpytorch
from conformal_gp.adapters.process import from_process
from conformal_gp.adapters.scikit_learn import from_sklearn

__all__ = ["from_gpflow", "from_gpytorch", "from_process", "from_sklearn"]
