"""Kernels, models and data sets that several test modules share."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, RationalQuadratic

from conformal_gp import ConformalGPRegressor
from conformal_gp.conformal.lines import Lines
from conformal_gp.gp.inputs import NewInputs

INF = np.inf
GAMMAS = [1.0, 2.0, 3.0, 8.0, INF]
MEANS = ["zero", "constant", "linear"]

# With 19 rows these are exactly at ranks 10, 5, 2 and 1: the least error in a rank shows.
LEVELS = [Fraction(1, 2), Fraction(3, 4), Fraction(9, 10), Fraction(19, 20)]


class ArcSine(Kernel):
    """The neural network covariance, straight from its definition: asin(S / sqrt((L + sx)(L + sz)))."""

    def __init__(self, length_scale=1.0):
        self.length_scale = length_scale

    def __call__(self, X, Y=None, eval_gradient=False):
        assert not eval_gradient
        Y = X if Y is None else Y
        size_x, size_y = (self.length_scale**2 + 1 + (Z**2).sum(axis=1) for Z in (X, Y))
        return np.arcsin((1 + X @ Y.T) / np.sqrt(np.outer(size_x, size_y)))

    def diag(self, X):
        size = 1 + (X**2).sum(axis=1)
        return np.arcsin(size / (self.length_scale**2 + size))

    def is_stationary(self):
        return False


def written_out(name, amplitude=1.0, length_scale=1.0):
    """The kernel that a name stands for, without the help of the package."""
    shape = {
        "se": RBF(length_scale),
        "rq": RationalQuadratic(length_scale, 1.0),
        "nn": ArcSine(length_scale),
        "matern32": Matern(length_scale, nu=1.5),
        "matern52": Matern(length_scale, nu=2.5),
    }[name]
    return ConstantKernel(amplitude) * shape


def latin_square(first, *others):
    """Cases in which the values of each argument meet each value of the first two; others go round.

    With one other argument each value of the longer list is met once.
    """
    lists = [list(first), *map(list, others)]
    if len(lists) == 2:
        n = max(map(len, lists))
        return [tuple(values[i % len(values)] for values in lists) for i in range(n)]
    return [
        (one, other, *(values[(i + j) % len(values)] for values in lists[2:]))
        for i, one in enumerate(lists[0])
        for j, other in enumerate(lists[1])
    ]


def fixed_model(kernel="se", noise_variance=0.1, **options):
    """A model that takes its hyperparameters and inputs as they are."""
    settings = {"mean": "zero", "tuning": "fixed", "scale_inputs": False, **options}
    return ConformalGPRegressor(kernel, noise_variance=noise_variance, **settings)


def low_rank_model(n_inducing, **options):
    """A low-rank model that is tuned from one start."""
    settings = {"tuning": "holdout", "n_restarts": 0, "random_state": 0, **options}
    return ConformalGPRegressor(low_rank=n_inducing, **settings)


def training(X, H=None):
    """Training inputs as a posterior takes them, unscaled, with any mean basis."""
    H = np.empty((len(X), 0)) if H is None else H
    return SimpleNamespace(X=X, H=H, y_variance=None, noise=lambda learnt: np.full(len(X), learnt))


def new_inputs(X_new, H_new=None):
    """New inputs as a posterior takes them, unscaled."""
    H_new = np.empty((len(X_new), 0)) if H_new is None else H_new
    return NewInputs(X_new, H_new, np.zeros(len(X_new), dtype=bool), None)


def make_basis(mean, X):
    """Regressors of the mean function at the rows of X."""
    ones = np.ones((len(X), 1))
    return {"zero": None, "constant": ones, "linear": np.hstack([ones, X])}[mean]


def make_data(seed, n_rows, n_inputs=2):
    """Rows of a wavy function with noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n_rows, n_inputs))
    return X, np.sin(2 * X[:, 0]) + X.sum(axis=1) + rng.normal(0, 0.5, n_rows)


def lines_of(rows, centre=0.0):
    """Centred lines of one test row from pairs of offset and slope."""
    p, q = np.array(rows, dtype=float).T
    return Lines(np.array([centre]), p[None, :].copy(), q[None, :].copy())


def contains(pieces, label):
    """Whether a union of closed intervals holds a label."""
    return any(low <= label <= high for low, high in pieces)
