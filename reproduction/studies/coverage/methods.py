"""The methods compared: each gives intervals of shape (n, 2, levels) for test rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from conformal_gp import ConformalGPRegressor
from conformal_gp.conformal.levels import rank, read_level
from conformal_gp.gp.inputs import Inputs, Scaling
from conformal_gp.gp.posterior import Posterior
from reproduction.studies.coverage.cells import LEVELS, Cell, grades

Intervals = Callable[[np.ndarray, np.ndarray, np.ndarray], Iterator[tuple[str, np.ndarray]]]


def model(cell: Cell, tuning: str) -> ConformalGPRegressor:
    """Our regressor as this cell asks for it, two restarts, gamma 2; with "augmented" at its default settings."""
    if tuning == "augmented":
        return ConformalGPRegressor(n_jobs=1)
    kernel = "matern52"
    if cell.ard:
        kernel = ConstantKernel(1.0) * Matern(np.full(cell.d, np.sqrt(cell.d)), (1e-2, 1e3), nu=2.5)
    return ConformalGPRegressor(kernel, mean=cell.mean, tuning=tuning, n_restarts=2, random_state=0, n_jobs=1)


def exact_ways(cell: Cell, X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The two ways whose coverage is exact."""
    for tuning in ("holdout", "augmented"):
        yield tuning, model(cell, tuning).fit(X, y).predict_interval(X_test, LEVELS)


def training_row_ways(cell: Cell, X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Ways that share one maximum likelihood fit to all training rows: the paper's, plain GPR, jackknife+."""
    fitted = model(cell, "train").fit(X, y)
    yield "train", fitted.predict_interval(X_test, LEVELS)
    mean, std = fitted.predict(X_test, return_std=True)
    z = norm.ppf(0.5 + np.array(LEVELS) / 2)
    yield "GPR", mean[:, None, None] + np.array([-1.0, 1.0])[:, None] * std[:, None, None] * z
    yield "jackknife+", _jackknife_plus(fitted, cell, X, y, X_test)


def known(cell: Cell, X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Kernel and noise variance that the data were drawn with: a yardstick for ways that learn them."""
    if cell.truth == "linear" and cell.mean == "linear":
        kernel = ConstantKernel(1e-6) * Matern(1.0)  # the mean function is all there is
    elif cell.truth == "linear":
        kernel = ConstantKernel(1.0 / cell.d) * DotProduct(1e-9)
    elif cell.truth == "rough":
        kernel = Matern(np.sqrt(cell.d), nu=0.5)
    elif cell.truth == "smooth":
        kernel = RBF(1.5 * np.sqrt(cell.d / 2))
    elif cell.truth == "graded":
        kernel = RBF(grades(cell.d))
    else:
        kernel = RBF(np.where(np.arange(cell.d) < 2, 1.0, 1e5))
    fixed = ConformalGPRegressor(
        kernel, mean=cell.mean, noise_variance=cell.noise_variance, tuning="fixed", scale_inputs=False, n_jobs=1
    )
    yield "known", fixed.fit(X, y).predict_interval(X_test, LEVELS)


def split(cell: Cell, X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Split conformal prediction, normalised: half the rows fit the process, half calibrate it."""
    half = y.size // 2
    fitted = model(cell, "train").fit(X[:half], y[:half])
    mean, std = fitted.predict(X[half:], return_std=True)
    scores = np.sort(np.abs(y[half:] - mean) / std)[::-1]
    mean, std = fitted.predict(X_test, return_std=True)
    ends = np.empty((mean.size, 2, len(LEVELS)))
    for i, level in enumerate(LEVELS):
        k = rank(read_level(level), scores.size)
        radius = np.inf if k == 0 else scores[k - 1] * std
        ends[:, 0, i], ends[:, 1, i] = mean - radius, mean + radius
    yield "split", ends


def _jackknife_plus(
    fitted: ConformalGPRegressor, cell: Cell, X: np.ndarray, y: np.ndarray, X_test: np.ndarray
) -> np.ndarray:
    """Leave-one-out means and residuals in closed form, hyperparameters those of all rows.

    With residual R_i = alpha_i / C_ii, row i left out moves the mean at a test input by -v_i R_i.
    """
    inputs = Inputs(X, Scaling.standard(X), cell.mean)
    posterior = Posterior(fitted.kernel_, fitted.noise_variance_, inputs, y)
    block = posterior.predict(inputs.new(X_test))
    residual = posterior.alpha / posterior.diagonal
    means = block.mean[:, None] - block.weights * residual
    low, high = np.sort(means - np.abs(residual), axis=1), np.sort(means + np.abs(residual), axis=1)[:, ::-1]
    ends = np.empty((X_test.shape[0], 2, len(LEVELS)))
    for i, level in enumerate(LEVELS):
        k = rank(read_level(level), y.size)
        ends[:, 0, i], ends[:, 1, i] = (-np.inf, np.inf) if k == 0 else (low[:, k - 1], high[:, k - 1])
    return ends


def gpyconform(cell: Cell, X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The paper's own package, trained as its documentation shows; an extra, and slow."""
    yield "gpyconform", gpyconform_intervals(X, y, X_test, LEVELS, cell.ard)


def gpyconform_intervals(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, levels: Sequence[float], each: bool, seed: int = 0
) -> np.ndarray:
    """Ends of gpyconform's intervals, (m, 2, levels): Matérn 5/2, a length scale for each input or one."""
    import gpytorch
    import torch
    from gpyconform import ExactGPCP

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    scale = lambda Z: (Z - X.mean(axis=0)) / X.std(axis=0)  # noqa: E731
    tensor = lambda a: torch.as_tensor(a, dtype=torch.float64)  # noqa: E731
    ard = X.shape[1] if each else None

    class Process(ExactGPCP):
        def __init__(self, train_x: torch.Tensor, train_y: torch.Tensor, likelihood: gpytorch.likelihoods.Likelihood):
            super().__init__(train_x, train_y, likelihood, cpmode="symmetric")
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=ard))

        def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    process = Process(tensor(scale(X)), tensor(y), likelihood).double()
    likelihood.double()
    process.train()
    likelihood.train()
    optimiser = torch.optim.Adam(process.parameters(), lr=0.1)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, process)
    for _ in range(100):
        optimiser.zero_grad()
        loss = -objective(process(*process.train_inputs), process.train_targets)
        loss.backward()
        optimiser.step()
    process.eval()
    likelihood.eval()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = process(tensor(scale(X_test)), gamma=2, confs=levels)
    return np.stack([np.asarray(found(level)) for level in levels], axis=-1)


METHODS = (exact_ways, training_row_ways, split, known)
