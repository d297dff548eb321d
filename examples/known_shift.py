"""
Inputs of another distribution
==============================

Training inputs are spread evenly, test inputs are where the noise is. Given the inputs, the target has the same
distribution in both. With the ratio of the input densities as weights, the guarantee applies to the test rows too.
"""

# %%
# Test inputs have a density in proportion to exp(1.5 x). The noise grows with x.

import matplotlib.pyplot as plt
import numpy as np

from conformal_gp import ConformalGPRegressor
from conformal_gp.metrics import coverage

rng = np.random.default_rng(1)


def targets(x):
    """A wave with noise that grows tenfold."""
    return np.sin(2 * x) + (0.1 + 0.225 * (x + 2)) * rng.standard_normal(x.size)


def ratio(X):
    """Density of test inputs over that of training inputs, up to a factor."""
    return np.exp(1.5 * X[:, 0])


x = rng.uniform(-2, 2, 300)
pool = rng.uniform(-2, 2, 20_000)
x_new = pool[rng.uniform(size=pool.size) < np.exp(1.5 * (pool - 2))]
y, y_new = targets(x), targets(x_new)
model = ConformalGPRegressor(difficulty=None, random_state=0).fit(x[:, None], y)

# %%
# Without the ratio, intervals are right for rows like the training rows, and too narrow for these. The ratio leaves
# fewer effective rows: the price of asking about other inputs than were measured.

level, grid = 0.9, np.linspace(-2, 2, 300)[:, None]
bands = {}
for name, how in {"no ratio": {}, "likelihood_ratio": {"likelihood_ratio": ratio}}.items():
    bands[name] = model.predict_interval(grid, level, **how)
    print(f"{name:17} {coverage(y_new, model.predict_interval(x_new[:, None], level, **how)):.1%} covered at 90%")
print(f"effective rows: {model.effective_rows(ratio):.0f} of {model.n_calibration_}")

# %%
# The bands with the test rows, and both densities below.

figure, (ax, below) = plt.subplots(2, 1, figsize=(7, 4.6), sharex=True, height_ratios=(4, 1), layout="constrained")
ax.plot(x_new[::4], y_new[::4], ".", color="0.65", markersize=2, label="test rows")
for (name, (low, high)), colour in zip(
    ((name, ends.T) for name, ends in bands.items()), ("#d55e00", "#0072b2"), strict=True
):
    ax.plot(grid, low, color=colour, label=f"90% interval, {name}")
    ax.plot(grid, high, color=colour)
ax.set_ylabel("y")
ax.legend(frameon=False, loc="upper left", fontsize=8)
for inputs, colour, name in ((x, "0.5", "training inputs"), (x_new, "black", "test inputs")):
    below.hist(inputs, bins=40, range=(-2, 2), density=True, histtype="step", color=colour, label=name)
below.legend(frameon=False, loc="upper left", fontsize=8)
below.set_xlabel("x")
below.set_yticks([])
for axes in (ax, below):
    axes.spines[["top", "right"]].set_visible(False)

plt.show()
