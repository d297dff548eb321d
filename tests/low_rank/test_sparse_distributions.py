"""Bounds, quantiles and distribution functions of the low-rank regressor against a dense inverse over all rows."""

import dense_lowrank
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from cases import GAMMAS, make_basis, make_data
from conformal_gp import SparseConformalGPRegressor
from signed_oracle import check_against_lines

KERNEL = ConstantKernel(1.5) * Matern(0.9, nu=1.5)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("approximation", ["fitc", "dtc"])
def test_low_rank_equals_brute_force(approximation, gamma):
    X, y = make_data(1, 54)
    design = np.arange(3, 54, 4)
    options = {"tuning": "fixed", "scale_inputs": False, "design": design, "n_inducing": 12, "noise_variance": 0.1}
    model = SparseConformalGPRegressor(KERNEL, mean="linear", gamma=gamma, approximation=approximation, **options).fit(
        X, y
    )
    ranked = np.setdiff1d(np.arange(54), design)
    for x in np.array([[0.2, -0.4], [2.0, 1.0], [-4.0, 6.0]]):
        a, b = dense_lowrank.lines(
            KERNEL, 0.1, model.inducing_, X, y, x, lambda bag: make_basis("linear", bag), gamma, approximation
        )
        check_against_lines(model, x, a, b, ranked, y)
