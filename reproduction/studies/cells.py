"""The design: thirty cells, five more in which inputs matter differently, four with little noise; the data of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

N_TEST = 50
LEVELS = (0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Cell:
    """One kind of data set."""

    l: int
    d: int
    ard: bool
    noise: str
    truth: str

    @property
    def name(self) -> str:
        """Short unique name."""
        return f"l{self.l}-d{self.d}-{'ard' if self.ard else 'iso'}-{self.noise}-{self.truth}"

    @property
    def noise_variance(self) -> float:
        """Variance of the noise, over inputs."""
        return (0.5 * (QUIET if self.noise == "quiet" else 1.0)) ** 2

    @property
    def mean(self) -> str:
        """Mean function of all models: linear where rows allow it."""
        return "linear" if self.d < 10 else "constant"

    def draw(self, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Training and test rows of data set number ``seed``: X, y, X_test, y_test."""
        rng = np.random.default_rng([seed, *self.name.encode()])
        n = self.l + N_TEST
        X = rng.standard_normal((n, self.d))
        f = _TRUTHS[self.truth](X, rng)
        f = (f - f.mean()) / f.std()
        y = f + 0.5 * _NOISES[self.noise](X, rng)
        return X[: self.l], y[: self.l], X[self.l :], y[self.l :]


def _linear(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return X @ rng.standard_normal(X.shape[1])


def _gaussian_process(X: np.ndarray, rng: np.random.Generator, length: float, power: float) -> np.ndarray:
    K = np.exp(-((cdist(X, X) / (length * np.sqrt(X.shape[1]))) ** power)) + 1e-9 * np.eye(X.shape[0])
    return np.linalg.cholesky(K) @ rng.standard_normal(X.shape[0])


def grades(d: int) -> np.ndarray:
    """Length scales of the graded truth: each input matters less than the one before it."""
    return np.geomspace(0.8, 12.8, d)


_TRUTHS = {
    "linear": _linear,
    "smooth": lambda X, rng: _gaussian_process(X, rng, length=1.5, power=2.0),
    "rough": lambda X, rng: _gaussian_process(X, rng, length=1.0, power=1.0),
    "sparse": lambda X, rng: _gaussian_process(X[:, :2], rng, length=1.0, power=2.0),
    "graded": lambda X, rng: _gaussian_process(X / grades(X.shape[1]), rng, np.sqrt(2.0 / X.shape[1]), power=2.0),
}

# Noise of a quiet cell, relative to that of the others.
QUIET = 0.02

_NOISES = {
    "gaussian": lambda X, rng: rng.standard_normal(X.shape[0]),
    "heavy": lambda X, rng: rng.standard_t(3, X.shape[0]) / np.sqrt(3.0),
    "skewed": lambda X, rng: rng.standard_exponential(X.shape[0]) - 1.0,
    "varying": lambda X, rng: rng.standard_normal(X.shape[0]) * np.exp(0.7 * X[:, 0] - 0.49),
    "quiet": lambda X, rng: QUIET * rng.standard_normal(X.shape[0]),
}

# Every l with every number of inputs, with one length scale and with one for each input; noises and truths in turn, so
# that each meets every l and every d about equally often. In these all inputs matter alike.
DESIGN = [
    Cell(l, d, ard, noise=list(_NOISES)[(i + 2 * j + k) % 4], truth=list(_TRUTHS)[(i + j + 2 * k) % 3])
    for i, l in enumerate((19, 39, 59, 99, 199))
    for j, d in enumerate((2, 5, 10))
    for k, ard in enumerate((False, True))
]
# In these they do not, which is what a length scale for each input is for: only two matter, or all do by degrees.
UNLIKE = [
    Cell(99, 5, True, "heavy", "sparse"),
    Cell(99, 10, True, "gaussian", "sparse"),
    Cell(199, 10, True, "skewed", "sparse"),
    Cell(99, 5, True, "gaussian", "graded"),
    Cell(199, 10, True, "gaussian", "graded"),
]
# Next to no noise, as in computer experiments.
LITTLE_NOISE = [
    Cell(39, 2, True, "quiet", "smooth"),
    Cell(59, 5, True, "quiet", "graded"),
    Cell(99, 5, True, "quiet", "graded"),
    Cell(199, 10, True, "quiet", "sparse"),
]
CELLS = DESIGN + UNLIKE + LITTLE_NOISE
