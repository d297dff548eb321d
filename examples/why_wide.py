"""
Why is this interval wide?
==========================

An interval can be wide because no training row is near, because similar rows are hard to predict, because there are
few calibration rows, or because one of them has an unusual target. ``explain_interval`` distinguishes these cases, and
names the rows that determine the interval.
"""

# %%
# Rows that are noisy on the left, sparse on the right, and one mistyped target value.

import matplotlib.pyplot as plt
import numpy as np

from conformal_gp import ConformalGPRegressor

rng = np.random.default_rng(0)
x = rng.permutation(np.concatenate([rng.uniform(-3, 0.5, 292), rng.uniform(0.5, 3, 8)]))
y = np.sin(2 * x) + np.where(x < -1.5, 0.3, 0.1) * rng.standard_normal(300)
mistaken = 250 + int(np.argmin(np.abs(x[250:])))
y[mistaken] += 0.8

model = ConformalGPRegressor(tuning_rows=np.arange(201), random_state=0).fit(x[:, None], y)
rows = np.array([[-2.0], [0.0], [2.7]])
for sentence in model.explain_interval(rows, confidence_level=0.99).sentences():
    print(sentence)

# %%
# With 99 calibration rows, the row with the largest score determines every 99% interval: the mistaken one. With the
# next rows intervals are a fraction as wide, so this value is worth checking. The other factors differ between rows:
# difficulty on the left, distance on the right.

grid = np.linspace(-3, 3, 400)
found = model.explain_interval(grid[:, None], confidence_level=0.99, n_nearest=0)
print(f"Row {mistaken} determines {np.mean(found.row == mistaken):.0%} of the endpoints.")

figure, (above, below) = plt.subplots(2, 1, figsize=(7.5, 6), sharex=True, layout="constrained")
middle = model.predict(grid[:, None])
above.fill_between(grid, *found.interval.T, color="#9ecae1", alpha=0.6, label="99% interval")
for side in (-0.5, 0.5):
    label = "if the next rows determined it" if side > 0 else None
    above.plot(grid, middle + side * found.next_width, color="#3b6ea5", linewidth=1, linestyle="--", label=label)
above.plot(x, y, ".", color="0.4", markersize=3)
above.plot(x[mistaken], y[mistaken], "o", color="#d62728", label=f"row {mistaken}, which determines it")
above.set_ylabel("y")
above.legend(frameon=False, loc="upper right", fontsize=9)
for name, color in (("distance", "#3b6ea5"), ("difficulty", "#e6820e")):
    below.plot(grid, getattr(found, name), color=color, label=f"factor of {name}")
below.axhline(1, color="0.7", linewidth=1, zorder=0)
below.set(xlabel="x", ylabel="times the typical width", ylim=(0, None))
below.legend(frameon=False, fontsize=9)
for ax in (above, below):
    ax.spines[["top", "right"]].set_visible(False)

plt.show()
