"""
Rows that come later: intervals that improve without a new fit
==================================================================

Results of an experiment come in batches. The model is tuned on the first rows, and ``partial_fit`` adds the others as
calibration rows. That costs a fraction of a fit, and coverage stays valid.
"""

# %%
# Sixty rows to begin with, 40 of them tuning rows; then batches of twenty. After each, intervals of new rows.

import time

import matplotlib.pyplot as plt
import numpy as np

from conformal_gp import ConformalGPRegressor
from conformal_gp.metrics import coverage, mean_width

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(2500, 3))
curve = np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2]
y = curve + 0.2 * rng.standard_normal(2500)
X, X_new, y, y_new, noise = X[:500], X[500:], y[:500], y[500:], (y - curve)[500:]

levels = [0.8, 0.9, 0.95, 0.975]
model = ConformalGPRegressor(tuning="holdout", tuning_rows=40, random_state=0).fit(X[:60], y[:60])
sizes, widths, seconds = [], [], 0.0
for first in range(60, 500, 20):
    start = time.perf_counter()
    model.partial_fit(X[first : first + 20], y[first : first + 20])
    seconds += time.perf_counter() - start
    sizes.append(first + 20)
    widths.append(mean_width(model.predict_interval(X_new, levels)))
print(model.guarantee_)
print("coverage:", coverage(y_new, model.predict_interval(X_new, levels)).round(3), "at", levels)

# %%
# Hyperparameters stay those of the first 40 rows. But all rows predict, so that widths fall towards those of an oracle
# that is given the curve and has to allow for the noise alone. The 20 calibration rows before the first batch would not
# have supported 97.5%, which needs 39.

start = time.perf_counter()
ConformalGPRegressor(tuning="holdout", tuning_rows=40, random_state=0).fit(X, y)
print(f"{len(sizes)} batches: {seconds:.2f} s, one fit to all rows: {time.perf_counter() - start:.2f} s")

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for level, width, style in zip(levels, np.transpose(widths), ("-", "--", "-.", ":"), strict=True):
    ax.plot(sizes, width, "o" + style, color="black", markersize=3, label=f"{level:.1%}")
    ax.plot(510, np.diff(np.quantile(noise, [(1 - level) / 2, (1 + level) / 2])), "<", color="tab:blue")
ax.plot([], [], "<", color="tab:blue", label="oracle")
ax.set_ylim(0, None)
ax.set_xlabel("rows so far")
ax.set_ylabel("mean width of intervals")
ax.legend(frameon=False, ncols=5, loc="lower center")
ax.spines[["top", "right"]].set_visible(False)

plt.show()
