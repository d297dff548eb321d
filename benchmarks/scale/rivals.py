"""What people would take instead, on the same rows: sparse GPs and trees with split conformal, a subset of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from benchmarks.scale.data import DATA, Split
from benchmarks.scale.measure import N_INDUCING, assess
from conformal_gp import ConformalGPRegressor
from conformal_gp.gp.inputs import Scaling
from reproduction.comparators import SplitConformal

EACH_INPUT = ConstantKernel(10.0, (1e-3, 1e6)) * Matern(np.full(8, 3.0), (1e-2, 1e3), nu=2.5)
SIZES = {"rough": (20_000, 10_000), "flights": (50_000, 20_000)}
SUBSET = 2000
CALIBRATION = 0.2


class Torch(RegressorMixin, BaseEstimator):
    """GPyTorch's sparse GP on batches (SVGP), as ours: the same kernel and mean, inducing inputs from k-means."""

    def __init__(self, steps: int, batch: int = 1024):
        self.steps = steps
        self.batch = batch

    def fit(self, X: np.ndarray, y: np.ndarray) -> Torch:
        """Train by Adam, on standardised labels."""
        import gpytorch
        import torch

        torch.manual_seed(0)
        self.scaling_ = Scaling.standard(X)
        self.label_mean_, self.label_std_ = y.mean(), y.std()
        scaled = self.scaling_.transform(X)
        some = scaled[np.random.default_rng(0).permutation(len(y))[:4000]]
        centres = KMeans(N_INDUCING, n_init=1, random_state=0).fit(some).cluster_centers_
        inputs, labels, Z = (
            torch.as_tensor(part, dtype=torch.float32)
            for part in (scaled, (y - self.label_mean_) / self.label_std_, centres)
        )
        self.likelihood_, self.model_ = gpytorch.likelihoods.GaussianLikelihood(), _svgp(gpytorch, Z)
        loss = gpytorch.mlls.VariationalELBO(self.likelihood_, self.model_, num_data=len(y))
        parameters = [*self.model_.parameters(), *self.likelihood_.parameters()]
        optimiser = torch.optim.Adam(parameters, lr=0.01)
        self.model_.train()
        self.likelihood_.train()
        for _ in range(self.steps):
            batch = torch.randint(len(y), (self.batch,))
            optimiser.zero_grad()
            value = -loss(self.model_(inputs[batch]), labels[batch])
            value.backward()
            optimiser.step()
        self.model_.eval()
        self.likelihood_.eval()
        return self

    def predict(self, X: np.ndarray, return_std: bool = False) -> Any:
        """Mean, and standard deviation of a new label."""
        import torch

        inputs = torch.as_tensor(self.scaling_.transform(X), dtype=torch.float32)
        with torch.no_grad():
            parts = [self.likelihood_(self.model_(part)) for part in inputs.split(2000)]
            mean = np.concatenate([part.mean.numpy() for part in parts]).astype(float)
            std = np.concatenate([part.stddev.numpy() for part in parts]).astype(float)
        mean = self.label_mean_ + self.label_std_ * mean
        return (mean, self.label_std_ * std) if return_std else mean


def _svgp(gpytorch: Any, Z: Any) -> Any:
    class Model(gpytorch.models.ApproximateGP):
        def __init__(self) -> None:
            distribution = gpytorch.variational.CholeskyVariationalDistribution(Z.shape[0])
            super().__init__(
                gpytorch.variational.VariationalStrategy(self, Z, distribution, learn_inducing_locations=True)
            )
            self.mean = gpytorch.means.LinearMean(Z.shape[1])
            matern = gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=Z.shape[1])
            self.covariance = gpytorch.kernels.ScaleKernel(matern)

        def forward(self, X: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(X), self.covariance(X))

    return Model()


class Trees(HistGradientBoostingRegressor):
    """Gradient-boosted trees; a standard deviation of one, as they have none."""

    def predict(self, X: np.ndarray, return_std: bool = False) -> Any:
        """Mean, and ones."""
        mean = super().predict(X)
        return (mean, np.ones_like(mean)) if return_std else mean


def _split(estimator: Any, **options: Any) -> Callable[[Split], Any]:
    model = SplitConformal(estimator, calibration_size=CALIBRATION, random_state=0, **options)
    return lambda rows: model.fit(rows.X, rows.y)


def _subset(rows: Split) -> Any:
    some = np.random.default_rng(0).permutation(rows.y.size)[:SUBSET]
    return ConformalGPRegressor(EACH_INPUT, tuning="holdout", random_state=0).fit(rows.X[some], rows.y[some])


def _ours(rows: Split) -> Any:
    return ConformalGPRegressor(EACH_INPUT, low_rank=N_INDUCING, random_state=0).fit(rows.X, rows.y)


RIVALS: dict[str, Callable[[Split], Any]] = {
    "ours": _ours,
    "SVGP (GPyTorch), split conformal": _split(Torch(steps=2000)),
    f"exact GPR-CP on {SUBSET} of the rows": _subset,
    "boosted trees (scikit-learn), split conformal": _split(Trees(random_state=0), gamma=np.inf),
}


def compare(data: str, rival: str) -> dict[str, Any]:
    """One method on one data set."""
    rows = DATA[data](*SIZES[data])
    return assess(lambda: RIVALS[rival](rows), rows)
