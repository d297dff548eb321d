"""
A surrogate of an expensive simulator
=====================================

A simulator gives the same answer for the same inputs, and each run is expensive. Engineers fit a Gaussian process to
some sixty runs, a surrogate, and read its error bars. Without noise these are narrow, and whether they are right
depends on the model alone. Conformal intervals of a Gaussian process attain their level.
"""

# %%
# The simulator: two inputs that matter differently, no noise. Sixty runs, thirty times over, and fifty inputs to
# predict each time.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from conformal_gp import ConformalGPRegressor
from conformal_gp.metrics import coverage, mean_width


def simulate(X):
    """One run for each row of inputs."""
    u, v = 15 * X[:, 0] - 5, 15 * X[:, 1]
    return (v - 0.129 * u**2 + 1.59 * u - 6) ** 2 + 9.6 * np.cos(u) + 10


warnings.simplefilter("ignore")  # scikit-learn's, of bounds and searches
rng = np.random.default_rng(0)
levels = [0.8, 0.9, 0.95]
shares = {"kriging": [], "conformal": []}
widths = {"kriging": [], "conformal": []}
for _ in range(30):
    X, X_new = rng.uniform(size=(60, 2)), rng.uniform(size=(50, 2))
    y, y_new = simulate(X), simulate(X_new)

    kernel = ConstantKernel(1.0, (1e-5, 1e7)) * Matern([1.0, 1.0], (1e-2, 1e3), nu=2.5)
    kernel += WhiteKernel(1e-6, (1e-10, 1.0))
    plain = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0).fit(X, y)
    mean, std = plain.predict(X_new, return_std=True)
    half = std[:, None] * norm.ppf(0.5 + 0.5 * np.array(levels))
    bars = np.stack([mean[:, None] - half, mean[:, None] + half], axis=1)

    conformal = ConformalGPRegressor().fit(X, y).predict_interval(X_new, levels)
    for name, intervals in (("kriging", bars), ("conformal", conformal)):
        shares[name].append(coverage(y_new, intervals))
        widths[name].append(mean_width(intervals))

for name in shares:
    share, width = np.mean(shares[name], axis=0), np.mean(widths[name], axis=0)
    print(
        name,
        *(f"{level:.0%}: {s:.1%} inside, width {w:.2f};" for level, s, w in zip(levels, share, width, strict=True)),
    )

# %%
# Kriging's error bars are far from their level, here by being too wide: a process that is smoother in the middle than
# at the rims spreads its doubt evenly. In other simulators they are too short. Nobody can tell which beforehand. The
# conformal ones attain their level, and are narrower if the bars were too wide.

figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ax.plot([0.75, 1], [0.75, 1], color="0.7", linewidth=1)
for name, marker in (("kriging", "s"), ("conformal", "o")):
    ax.plot(levels, np.mean(shares[name], axis=0), marker, label=name)
ax.set_xlabel("level")
ax.set_ylabel("share of new runs inside")
ax.legend()
ax.spines[["top", "right"]].set_visible(False)

plt.show()
