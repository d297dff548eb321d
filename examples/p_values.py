r"""
p-values: observations that do not fit
======================================

``predict_p`` gives the p-value of an observation: the share of rows whose score is at least as high. At most a share
:math:`\delta` of correct observations has :math:`p \le \delta`, whatever the model. So a p-value is an alarm
with a known rate of false alarms.
"""

# %%
# Two hundred new cars arrive, and twenty of their values are in litres per 100 km instead of miles per gallon.

import matplotlib.pyplot as plt
import numpy as np

from conformal_gp import ConformalGPRegressor
from conformal_gp.datasets import load_auto_mpg

X, y = load_auto_mpg(return_X_y=True)
rng = np.random.default_rng(0)
rows = rng.permutation(y.size)
train, new = rows[:192], rows[192:]
given = y[new].copy()
wrong = np.zeros(new.size, dtype=bool)
wrong[rng.choice(new.size, 20, replace=False)] = True
given[wrong] = 235.215 / given[wrong]

model = ConformalGPRegressor().fit(X[train], y[train])  # up to 500 rows, all are calibration rows
p = model.predict_p(X[new], given)
for delta in (0.01, 0.05):
    flagged = p <= delta
    found, alarms = np.sum(flagged & wrong), np.sum(flagged & ~wrong)
    print(f"p <= {delta}: {found} of {wrong.sum()} wrong values found, {alarms} of {np.sum(~wrong)} others flagged")

# %%
# With 192 rows no p-value is below 1/193. A wrong value near the correct one cannot be found: 235 / 15.3 is 15.3.

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ax.axhspan(0, 0.01, color="0.9")
ax.semilogy(y[new][~wrong], p[~wrong], "o", color="0.55", markersize=4, label="correct value")
ax.semilogy(y[new][wrong], p[wrong], "X", color="black", markersize=8, label="in litres per 100 km")
ax.text(46, 0.011, "p = 0.01", ha="right", va="bottom", fontsize=9)
ax.set_xlabel("true miles per gallon")
ax.set_ylabel("p-value of the given value")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)

# %%
# The predictive distribution of the car with a wrong value whose p-value is least. The mark is its true value, which
# fits; the one that was given does not.

worst = np.flatnonzero(wrong)[np.argmin(p[wrong])]
grid = np.linspace(0, 50, 500)
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot(grid, model.predict_cdf(np.repeat(X[new][[worst]], grid.size, axis=0), grid), color="black")
ax.axvline(y[new][worst], color="black", linestyle=":")
ax.set_xlabel("miles per gallon")
ax.set_ylabel("probability of at most this")

plt.show()
