"""
Tuning on few rows
==================

The usual way to tune a Gaussian process, maximum likelihood on the training rows, makes the training rows look better
than new ones. With few rows that voids the guarantee of anything built on top, conformal prediction included. The
default way (``tuning="auto"``) keeps it. Measured on scikit-learn's diabetes data: 442 patients, ten inputs.
"""

# %%
# Thirty times: 30 patients drawn at random to learn from, 60 others to check with, intervals of nominal 90%.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.datasets import load_diabetes

from conformal_gp import ConformalGPRegressor
from conformal_gp.metrics import coverage, mean_width

X, y = load_diabetes(return_X_y=True)
shares: dict[str, list[float]] = {"standard GP": [], 'conformal, tuning="train"': [], 'conformal, tuning="auto"': []}
widths: dict[str, list[float]] = {name: [] for name in shares}
warnings.simplefilter("ignore", UserWarning)  # of tuning="train", and of extrapolation

for draw in range(30):
    rows = np.random.default_rng(draw).permutation(y.size)
    train, test = rows[:30], rows[30:90]
    tuned = ConformalGPRegressor("se", tuning="train", n_restarts=0, random_state=draw).fit(X[train], y[train])
    mean, std = tuned.predict(X[test], return_std=True)
    ours = ConformalGPRegressor("se").fit(X[train], y[train])
    ends = {
        "standard GP": mean[:, None] + norm.ppf(0.95) * std[:, None] * np.array([-1, 1]),
        'conformal, tuning="train"': tuned.predict_interval(X[test], 0.9),
        'conformal, tuning="auto"': ours.predict_interval(X[test], 0.9),
    }
    for name, intervals in ends.items():
        shares[name].append(float(coverage(y[test], intervals)))
        widths[name].append(float(mean_width(intervals)))

for name in shares:
    error = np.std(shares[name]) / np.sqrt(30)
    print(f"{name:26}  {np.mean(shares[name]):.1%} ± {error:.1%} inside, mean width {np.mean(widths[name]):.0f}")

# %%
# Each dot is one draw of 30 patients. A dozen hyperparameters learnt from 30 rows make the residuals of these rows far
# too small, and conformal calibration cannot repair that. Averaged over with weights of training rows and test row
# together, they do no harm. These intervals are wider because the others are too short. The coverage of one draw varies
# about the level, since only 30 rows calibrate.

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for place, values in enumerate(shares.values()):
    jitter = np.random.default_rng(0).uniform(-0.12, 0.12, len(values))
    ax.plot(values, place + jitter, "o", color="0.45", markersize=4, alpha=0.7)
    ax.plot(np.mean(values), place, "D", color="black", markersize=7)
ax.axvline(0.9, color="black", linestyle="--", linewidth=1)
ax.annotate("nominal", (0.9, 1), xycoords=("data", "axes fraction"), ha="center", va="bottom", fontsize=9)
ax.set_yticks(range(3), list(shares))
ax.invert_yaxis()
ax.set_xlabel("coverage of 90% intervals on 60 patients (diamond: mean of 30 draws)")
ax.spines[["top", "right"]].set_visible(False)

plt.show()
