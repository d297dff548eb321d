"""Standard test functions of computer experiments, on the unit cube."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class TestFunction(NamedTuple):
    """A function of inputs between 0 and 1."""

    n_inputs: int
    value: Callable[[Array], Array]


def _ranges(X: Array, *ranges: tuple[float, float]) -> Array:
    """Inputs between 0 and 1 as the function's own variables, one a row."""
    low, high = np.transpose(ranges)
    return (low + (high - low) * X).T


def _branin(X: Array) -> Array:
    x, y = _ranges(X, (-5, 10), (0, 15))
    return (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10


def _borehole(X: Array) -> Array:
    ranges = (0.05, 0.15), (100, 50000), (63070, 115600), (990, 1110), (63.1, 116), (700, 820), (1120, 1680)
    rw, r, Tu, Hu, Tl, Hl, L, Kw = _ranges(X, *ranges, (9855, 12045))
    ratio = np.log(r / rw)
    return 2 * np.pi * Tu * (Hu - Hl) / (ratio * (1 + 2 * L * Tu / (ratio * rw**2 * Kw) + Tu / Tl))


def _friedman(X: Array) -> Array:
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


_HARTMANN_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
_HARTMANN_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def _hartmann(X: Array) -> Array:
    distance = (_HARTMANN_A * (X[:, None] - _HARTMANN_P) ** 2).sum(axis=2)
    return -np.exp(-distance) @ np.array([1.0, 1.2, 3.0, 3.2])


def _circuit(X: Array) -> Array:
    Rb1, Rb2, Rf, Rc1, Rc2, beta = _ranges(X, (50, 150), (25, 70), (0.5, 3), (1.2, 2.5), (0.25, 1.2), (50, 300))
    gain = beta * (Rc2 + 9)
    return (
        (12 * Rb2 / (Rb1 + Rb2) + 0.74) * gain / (gain + Rf)
        + 11.35 * Rf / (gain + Rf)
        + 0.74 * Rf * gain / ((gain + Rf) * Rc1)
    )


def _piston(X: Array) -> Array:
    ranges = (30, 60), (0.005, 0.02), (0.002, 0.01), (1000, 5000), (90000, 110000), (290, 296), (340, 360)
    M, S, V0, k, P0, Ta, T0 = _ranges(X, *ranges)
    A = P0 * S + 19.62 * M - k * V0 / S
    V = S / (2 * k) * (np.sqrt(A**2 + 4 * k * P0 * V0 / T0 * Ta) - A)
    return 2 * np.pi * np.sqrt(M / (k + S**2 * P0 * V0 * Ta / (T0 * V**2)))


def _wing(X: Array) -> Array:
    ranges = (150, 200), (220, 300), (6, 10), (-10, 10), (16, 45), (0.5, 1), (0.08, 0.18), (2.5, 6), (1700, 2500)
    Sw, Wf, A, sweep, q, taper, tc, Nz, Wd, Wp = _ranges(X, *ranges, (0.025, 0.08))
    cosine = np.cos(np.deg2rad(sweep))
    lift = 0.036 * Sw**0.758 * Wf**0.0035 * (A / cosine**2) ** 0.6 * q**0.006 * taper**0.04
    return lift * (100 * tc / cosine) ** -0.3 * (Nz * Wd) ** 0.49 + Sw * Wp


def _robot_arm(X: Array) -> Array:
    """Distance of the end of an arm of four segments from the origin."""
    angles = np.cumsum(2.0 * np.pi * X[:, :4], axis=1)
    lengths = X[:, 4:]
    return np.hypot((lengths * np.cos(angles)).sum(axis=1), (lengths * np.sin(angles)).sum(axis=1))


def _ishigami(X: Array) -> Array:
    x, y, z = _ranges(X, *[(-np.pi, np.pi)] * 3)
    return np.sin(x) + 7.0 * np.sin(y) ** 2 + 0.1 * z**4 * np.sin(x)


FUNCTIONS = {
    "Branin": TestFunction(2, _branin),
    "borehole": TestFunction(8, _borehole),
    "Friedman": TestFunction(5, _friedman),
    "Hartmann 6": TestFunction(6, _hartmann),
    "OTL circuit": TestFunction(6, _circuit),
    "piston": TestFunction(7, _piston),
    "wing weight": TestFunction(10, _wing),
    "robot arm": TestFunction(8, _robot_arm),
    "Ishigami": TestFunction(3, _ishigami),
}


def draw(name: str, n_rows: int, noise: float, seed: int) -> tuple[Array, Array]:
    """Uniform inputs and labels with noise, relative to the standard deviation of the function."""
    function = FUNCTIONS[name]
    rng = np.random.default_rng([seed, n_rows])
    X = rng.uniform(size=(n_rows, function.n_inputs))
    spread = function.value(np.random.default_rng(0).uniform(size=(5000, function.n_inputs))).std()
    return X, function.value(X) + noise * spread * rng.standard_normal(n_rows)
