"""
Widths that follow the difficulty
=================================

A Gaussian process with one noise variance gives intervals of one width, for easy and for hard rows. Beyond 500 rows the
default learns from tuning rows where errors are larger than the GP expects, and divides scores by this
*difficulty*. Tuning rows do not calibrate, so the guarantee is kept.
"""

# %%
# Noise that grows with the input: 600 rows to learn from, and 4,000 to check with.

import matplotlib.pyplot as plt
import numpy as np

from conformal_gp import ConformalGPRegressor
from conformal_gp.metrics import coverage, interval_score

rng = np.random.default_rng(0)


def draw(n):
    """Rows whose noise grows fortyfold."""
    x = rng.uniform(-2, 2, size=n)
    return x[:, None], np.sin(2 * x) + 0.02 * np.exp(0.9 * (x + 2)) * rng.standard_normal(n)


X, y = draw(600)
X_new, y_new = draw(4000)
level = 0.9
models = {
    "difficulty=None": ConformalGPRegressor(difficulty=None, random_state=0).fit(X, y),
    'difficulty="auto"': ConformalGPRegressor(random_state=0).fit(X, y),
}

# %%
# Coverage over all rows is what is guaranteed, and both have it. In fifths of the input only one is near it.

fifths = np.digitize(X_new[:, 0], [-1.2, -0.4, 0.4, 1.2])
for name, model in models.items():
    ends = model.predict_interval(X_new, level)
    inside = (ends[:, 0] <= y_new) & (y_new <= ends[:, 1])
    parts = " ".join(f"{inside[fifths == part].mean():4.0%}" for part in range(5))
    score = interval_score(y_new, ends, level)
    print(f"{name:18} {coverage(y_new, ends):.1%} covered at 90%; in fifths {parts}; interval score {score:.2f}")

# %%
# The bands with the new rows.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
grid = np.linspace(-2, 2, 400)[:, None]
for ax, (name, model) in zip(axes, models.items(), strict=True):
    low, high = model.predict_interval(grid, level).T
    ax.plot(X_new[::3, 0], y_new[::3], ".", color="0.6", markersize=2)
    ax.fill_between(grid[:, 0], low, high, color="#9ecae1", alpha=0.8, label="90% interval")
    ax.plot(grid[:, 0], model.predict(grid), color="black", linewidth=1)
    ax.set_title(name, loc="left", fontsize=10)
    ax.set_xlabel("x")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("y")
axes[0].legend(frameon=False, loc="lower left")

plt.show()
