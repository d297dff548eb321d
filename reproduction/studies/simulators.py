"""Computer experiments: the default, the split and kriging of other libraries on test functions.

``python -m reproduction.studies.simulators [--rows L ...] [--draws N] [--peers smt openturns]``. Each task is written
as soon as it is done, so an interrupted run resumes. No constant of the package was chosen on these draws.
"""

from __future__ import annotations

import os
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from itertools import product
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from conformal_gp import ConformalGPRegressor
from conformal_gp.arrays import Array
from conformal_gp.metrics import interval_score
from reproduction.comparators import gaussian_intervals
from reproduction.experiments.runner import finished, run
from reproduction.studies import common
from reproduction.studies.functions import FUNCTIONS, draw

FIRST_SEED = 5000
ROWS = (20, 40, 80, 160, 320)
NOISES = (0.0, 0.01)
LEVELS = (0.9, 0.95)
N_TEST = 100
OURS = ("default", "holdout")
Cells = dict[tuple[int, float, str], list[dict]]
"""Results by number of rows, noise and method, of the same draws in the same order."""


def ours(method: str, X: Array, y: Array, X_new: Array) -> tuple[Array, Array]:
    """Predictions, and intervals at all levels, (m, 2, levels)."""
    tuning = "auto" if method == "default" else "holdout"
    model = ConformalGPRegressor(tuning=tuning, random_state=0, n_jobs=1).fit(X, y)
    return model.predict(X_new), model.predict_interval(X_new, LEVELS)


def kriging(X: Array, y: Array, X_new: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of scikit-learn's regressor, a length scale for each input."""
    kernel = ConstantKernel(1.0, (1e-6, 1e6)) * Matern(np.ones(X.shape[1]), (1e-2, 1e4), nu=2.5)
    plain = GaussianProcessRegressor(
        kernel + WhiteKernel(1e-4, (1e-10, 1e2)), normalize_y=True, n_restarts_optimizer=2, random_state=0
    )
    return plain.fit(X, y).predict(X_new, return_std=True)


def smt(X: Array, y: Array, X_new: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of SMT's KRG, with its nugget estimated."""
    from smt.surrogate_models import KRG

    model = KRG(corr="matern52", eval_noise=True, print_global=False, seed=0)
    model.set_training_values(X, y)
    model.train()
    # SMT's noise is a share of the variance of its GP, as the diagonal of its correlation matrix is 1 + noise.
    noise = float(np.ravel(model.optimal_noise)[0] * np.ravel(model.optimal_par["sigma2"])[0])
    variance = np.maximum(model.predict_variances(X_new)[:, 0], 0.0) + noise
    return model.predict_values(X_new)[:, 0], np.sqrt(variance)


def openturns(X: Array, y: Array, X_new: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of OpenTURNS' GaussianProcessRegression, its nugget estimated, from three starts."""
    import openturns as library

    d = X.shape[1]
    shift, scale = y.mean(), y.std()
    covariance = library.MaternModel([0.5] * d, [1.0], 2.5)
    covariance.activateNuggetFactor(True)
    trend = library.ConstantBasisFactory(d).build()
    targets = library.Sample(((y - shift) / scale)[:, None])
    fitter = library.GaussianProcessFitter(library.Sample(X), targets, covariance, trend)
    fitter.setOptimizationBounds(library.Interval([1e-2] * d + [1e-8], [1e2] * d + [1.0]))
    rng = np.random.default_rng(0)
    starts = np.column_stack([rng.uniform(-1.0, 1.0, (3, d)), rng.uniform(-5.0, -1.0, 3)])
    fitter.setOptimizationAlgorithm(library.MultiStart(library.TNC(), library.Sample(10.0**starts)))
    fitter.run()
    regression = library.GaussianProcessRegression(fitter.getResult())
    regression.run()
    result = regression.getResult()
    mean = np.asarray(result.getMetaModel()(library.Sample(X_new)))[:, 0]
    conditional = library.GaussianProcessConditionalCovariance(result)
    variance = np.asarray(conditional.getConditionalMarginalVariance(library.Sample(X_new)))[:, 0]
    found = result.getCovarianceModel()
    noise = found.getNuggetFactor() * found.getAmplitude()[0] ** 2
    return shift + scale * mean, scale * np.sqrt(np.maximum(variance, 0.0) + noise)


def gpytorch(X: Array, y: Array, X_new: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of GPyTorch's exact GP, a length scale for each input, 200 steps of Adam."""
    import gpytorch as library
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    shift, scale = y.mean(), y.std()
    inputs, targets = torch.tensor(X), torch.tensor((y - shift) / scale)

    class Model(library.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(inputs, targets, likelihood)
            self.mean_module = library.means.ConstantMean()
            shape = library.kernels.MaternKernel(nu=2.5, ard_num_dims=X.shape[1])
            self.covar_module = library.kernels.ScaleKernel(shape)

        def forward(self, x):
            return library.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    constraint = library.constraints.GreaterThan(1e-6)
    likelihood = library.likelihoods.GaussianLikelihood(noise_constraint=constraint).double()
    model = Model(likelihood).double()
    model.train()
    likelihood.train()
    objective = library.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(200):
        optimiser.zero_grad()
        loss = -objective(model(inputs), targets)
        loss.backward()
        optimiser.step()
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        found = likelihood(model(torch.tensor(X_new)))
    return shift + scale * found.mean.numpy(), scale * found.stddev.numpy()


PEERS: dict[str, Callable[[Array, Array, Array], tuple[Array, Array]]] = {
    "kriging": kriging,
    "smt": smt,
    "openturns": openturns,
    "gpytorch": gpytorch,
}


def one_task(name: str, n_rows: int, noise: float, seed: int, method: str) -> dict:
    """Error, coverage, interval scores and processor time of one method on one draw."""
    X, y = draw(name, n_rows, noise, seed)
    X_new, y_new = draw(name, N_TEST, noise, seed + 10**6)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method in OURS:
            prediction, ends = ours(method, X, y, X_new)
        else:
            prediction, deviation = PEERS[method](X, y, X_new)
            ends = gaussian_intervals(prediction, deviation, LEVELS)
    seconds = time.process_time() - start
    labels = y_new[:, None]
    return {
        "key": [name, n_rows, noise, seed, method],
        "rmse": float(np.sqrt(np.mean((prediction - y_new) ** 2))),
        "covered": ((ends[:, 0] <= labels) & (labels <= ends[:, 1])).mean(axis=0).tolist(),
        "score": np.atleast_1d(interval_score(y_new, ends, LEVELS)).tolist(),
        "seconds": seconds,
    }


def ratio(cells: Cells, n_rows: int, noise: float, other: str, what: str) -> float:
    """Geometric mean over draws of the default's score at 90%, or error, over another method's."""
    logs = []
    for own, peer in zip(cells[n_rows, noise, "default"], cells[n_rows, noise, other], strict=True):
        if what == "score":
            logs.append(np.log(own["score"][0] / peer["score"][0]))
        else:
            logs.append(np.log(own["rmse"] / peer["rmse"]))
    return float(np.exp(np.mean(logs)))


def rows_of(cells: Cells) -> list[dict]:
    """A row for each number of rows, noise and method."""
    found = []
    for n_rows, noise, method in sorted(cells):
        tasks = cells[n_rows, noise, method]
        row: dict = {"rows": n_rows, "noise": noise, "method": method, "draws": len(tasks)}
        for i, level in enumerate(LEVELS):
            row[f"coverage {level:.0%}"] = float(np.mean([task["covered"][i] for task in tasks]))
        row["default's score over it"] = ratio(cells, n_rows, noise, method, "score")
        row["default's RMSE over it"] = ratio(cells, n_rows, noise, method, "rmse")
        row["seconds"] = float(np.median([task["seconds"] for task in tasks]))
        found.append(row)
    return found


def write(cells: Cells, out: Path) -> None:
    """Table and page."""
    rows = rows_of(cells)
    common.write_csv(out / "simulators.csv", rows)
    heads = ["rows", "noise", "method", "coverage 90%", "95%", "score ratio", "RMSE ratio", "seconds"]
    table = [
        [row["rows"], f"{row['noise']:g}", row["method"]]
        + [f"{row[f'coverage {level:.0%}']:.1%}" for level in LEVELS]
        + [f"{row[k]:.2f}" for k in ("default's score over it", "default's RMSE over it")]
        + [f"{row['seconds']:.1f}"]
        for row in rows
    ]
    draws = min(row["draws"] for row in rows) // len(FUNCTIONS)
    peers = [name for name in PEERS if any(row["method"] == name for row in rows)]
    lines = [
        "# Test functions of computer experiments",
        "",
        f"`python -m reproduction.studies.simulators --draws {draws} --peers {' '.join(peers)}`:",
        f"{len(FUNCTIONS)} functions, uniform inputs, {N_TEST} test rows a draw; noise is relative to the function's",
        "standard deviation. Ratios are geometric means over draws: mean interval score at 90%, and root mean square",
        "error, of the default over each method (below 1 the default is better). Seconds are the processor's, for a",
        "fit and the predictions, medians over draws. Kriging is scikit-learn's GaussianProcessRegressor with a",
        "length scale for each input.",
        "",
        *common.markdown(heads, table),
    ]
    common.write_page(out / "simulators.md", lines)


def main() -> None:
    """Run what is missing, then write the page."""
    parser = common.options("simulators", __doc__, draws=(4, "draws of each kind of data"))
    parser.add_argument("--rows", type=int, nargs="+", choices=ROWS, default=ROWS, help="training rows")
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=["kriging"], help="other libraries")
    given = parser.parse_args()
    methods = [*OURS, *given.peers]
    seeds = range(FIRST_SEED, FIRST_SEED + given.draws)
    keys = [key for seed in seeds for key in product(FUNCTIONS, given.rows, NOISES, [seed], methods)]
    run(given.raw, [("/".join(map(str, key)), key) for key in keys], one_task, given.jobs)
    done = {tuple(task["key"]): task for task in finished(given.raw)}
    cells: Cells = defaultdict(list)
    for (name, n_rows, noise, seed, method), task in sorted(done.items()):
        if all((name, n_rows, noise, seed, other) in done for other in methods):
            cells[n_rows, noise, method].append(task)
    write(cells, given.out)


if __name__ == "__main__":
    main()
