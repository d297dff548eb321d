"""Hyperparameters by the variational bound of Titsias (2009), or by the FITC likelihood, on design rows: in PyTorch.

Only to be measured against: the regressor learns by the exact likelihood of fewer rows.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import Kernel

from benchmarks.scale.data import Split
from conformal_gp.gp.inducing import select

Array = NDArray[np.float64]


def learn(
    objective: str, kernel: Kernel, noise: float, rows: Split, design: NDArray[np.int64], n_inducing: int
) -> tuple[Kernel, float, float]:
    """Amplitude, length scale (Matérn 5/2) and noise from a start; inducing inputs are chosen anew once on the way.

    Returns kernel, noise variance and seconds.
    """
    begun = time.perf_counter()
    X, y = rows.X[design], rows.y[design]
    H = np.column_stack([np.ones(y.size), X])
    residual = torch.from_numpy(y - H @ np.linalg.lstsq(H, y, rcond=None)[0])
    inputs = torch.from_numpy(X)
    theta = np.append(kernel.theta, np.log(noise))
    for _ in range(2):
        chosen = select("kmeans", kernel.clone_with_theta(theta[:2]), X, n_inducing, np.random.RandomState(0))
        Z = torch.from_numpy(chosen)

        def value_and_gradient(at: Array, Z: Any = Z) -> tuple[float, Array]:
            point = torch.tensor(at, requires_grad=True)
            value = _negative(objective, point, inputs, residual, Z)
            value.backward()
            return value.item(), point.grad.numpy()

        theta = minimize(value_and_gradient, theta, jac=True, method="L-BFGS-B", options={"maxiter": 40}).x
    return kernel.clone_with_theta(theta[:2]), float(np.exp(theta[2])), time.perf_counter() - begun


def _negative(objective: str, theta: Any, X: Any, y: Any, Z: Any) -> Any:
    amplitude, length_scale, noise = torch.exp(theta)

    def matern(A: Any, B: Any) -> Any:
        t = torch.sqrt(torch.clamp(torch.cdist(A, B) ** 2, min=1e-12)) * (np.sqrt(5.0) / length_scale)
        return amplitude * (1.0 + t + t * t / 3.0) * torch.exp(-t)

    eye = torch.eye(Z.shape[0], dtype=torch.float64)
    L = torch.linalg.cholesky(matern(Z, Z) + 1e-6 * amplitude * eye)
    F = torch.linalg.solve_triangular(L, matern(Z, X), upper=False)
    left = torch.clamp(amplitude - (F**2).sum(0), min=0.0)
    variances = noise + (left if objective == "FITC likelihood" else torch.zeros_like(left))
    R = torch.linalg.cholesky(eye + (F / variances) @ F.T)
    u = torch.linalg.solve_triangular(R, (F @ (y / variances))[:, None], upper=False)
    value = 0.5 * ((y * y / variances).sum() - (u * u).sum() + torch.log(variances).sum())
    value = value + torch.log(torch.diagonal(R)).sum()
    return value + 0.5 * left.sum() / noise if objective == "variational bound" else value
