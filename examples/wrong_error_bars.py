"""
When a Gaussian process's error bars are wrong
==============================================

The speed of 209 processors (the bundled CPU data) has a few very fast machines. A Gaussian process with normal noise
makes its bars too wide for most and far too short for the rest. Conformal intervals attain their level.
"""

# %%
# Both methods predict each processor from the other nine folds of a ten-fold cross-validation. Bars of the standard GP
# are Gaussian quantiles of a maximum likelihood fit.

import matplotlib.pyplot as plt
import numpy as np

from conformal_gp import ConformalGPRegressor
from conformal_gp.datasets import load_cpu
from conformal_gp.evaluation import cross_validate_intervals, verdict
from conformal_gp.metrics import coverage, mean_width
from conformal_gp.plotting import CoverageDisplay, IntervalDisplay

X, y = load_cpu(return_X_y=True)
levels = np.round(np.arange(0.50, 0.97, 0.01), 2)
process = ConformalGPRegressor(tuning="train", n_restarts=0, random_state=0)
plain = cross_validate_intervals(process, X, y, levels, standard_gp=True)
ours = cross_validate_intervals(ConformalGPRegressor(random_state=0), X, y, levels)
prediction = plain.prediction["standard GP"]
intervals = ours.intervals | {"standard GP": plain.intervals["standard GP"]}

# %%
# Above the diagonal intervals are wider than they need be, below it they are wrong. The standard GP's bars are both:
# too wide at 50%, too short from 80% on.

CoverageDisplay.from_predictions(y, intervals, confidence_level=levels)

# %%
# At 95% the bars of the standard GP miss more than twice as many true values as their level allows.

for place in np.searchsorted(levels, (0.5, 0.9, 0.95)):
    for name, ends in intervals.items():
        missed = 1 - coverage(y, ends)[place]
        width = mean_width(ends)[place]
        print(f"{levels[place]:.0%}  {name:13}  {missed:5.1%} missed, mean width {width:5.1f}")

# %%
# Some misses are chance. The verdict allows for that:

bars = [finding for finding in plain.at([0.5, 0.9, 0.95]).findings() if finding.method == "standard GP"]
print(*verdict(bars + ours.at([0.5, 0.9, 0.95]).findings()), sep="\n")

# %%
# The 95% intervals of the 60 processors with the highest predictions: most misses of the standard GP's bars are among
# the fast ones.

fast = np.argsort(prediction)[-60:]
figure, axes = plt.subplots(2, 1, figsize=(8, 7), sharex=True, sharey=True, layout="constrained")
for ax, (name, ends) in zip(axes, intervals.items(), strict=True):
    IntervalDisplay.from_predictions(
        y[fast],
        prediction[fast],
        ends[fast, :, np.searchsorted(levels, 0.95)],
        confidence_level=0.95,
        method=name,
        target_name="relative performance",
        ax=ax,
    )
axes[0].set_xlabel("")

plt.show()
