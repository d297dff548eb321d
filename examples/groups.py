"""
Coverage in every group
=======================

Marginal coverage can be too high in one group of rows and too low in another. With ``groups`` each test row is
calibrated on the training rows of its own group, and coverage is guaranteed in each group. There is still one model of
all rows.
"""

# %%
# Cars of three origins; American ones are more than half. Half of the cars train and calibrate the model, half test it,
# in twenty random splits.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from conformal_gp import ConformalGPRegressor
from conformal_gp.datasets import load_auto_mpg

cars = load_auto_mpg(as_frame=True)
X, y = cars.data, cars.target.to_numpy()
origin = X["origin"].to_numpy()
names = {1: "America", 2: "Europe", 3: "Japan"}
level, shares = 0.8, {"all rows together": [], "by group": []}
for seed in range(20):
    order = np.random.default_rng(seed).permutation(y.size)
    train, test = order[: y.size // 2], order[y.size // 2 :]
    model = ConformalGPRegressor(
        tuning_rows=100, n_restarts=0, difficulty=None, target_transform=None, random_state=seed
    )
    with warnings.catch_warnings(action="ignore"):
        intervals = {
            "all rows together": model.fit(X.iloc[train], y[train]).predict_interval(X.iloc[test], level),
            "by group": model.fit(X.iloc[train], y[train], groups="origin").predict_interval(X.iloc[test], level),
        }
    for how, (low, high) in ((how, ends.T) for how, ends in intervals.items()):
        inside = (low <= y[test]) & (y[test] <= high)
        shares[how].append([inside[origin[test] == number].mean() for number in names])

for how, found in shares.items():
    means = np.mean(found, axis=0)
    print(f"{how:18}", ", ".join(f"{name} {share:.0%}" for name, share in zip(names.values(), means, strict=True)))

# %%
# Calibrated on all rows, European and Japanese cars are covered less often than stated, and American ones more often.
# By group each has its 80%, a little more if a group has few calibration rows.

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for (how, found), nudge, colour in zip(shares.items(), (-0.12, 0.12), ("#d55e00", "#0072b2"), strict=True):
    error = 2 * np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    ax.errorbar(np.arange(3) + nudge, np.mean(found, axis=0), error, fmt="o", color=colour, capsize=3, label=how)
ax.axhline(level, color="0.5", linewidth=1)
ax.set_xticks(range(3), [f"{name}, {np.sum(origin == number)} cars" for number, name in names.items()])
ax.set_ylabel("coverage")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)

plt.show()
