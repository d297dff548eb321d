"""
When exchangeability fails: cars of another decade
==================================================

The guarantee is for new rows that are like the training rows: any order of all of them as likely as any other. Cars
of 1980 are not like cars of 1974. The second oil crisis and new rules made them use less fuel at the same weight and
power.
"""

# %%
# Learn from the cars of 1970 to 1976, predict those after; the model year is not among the inputs. Then the same with
# as many cars of all years, drawn at random.

import matplotlib.pyplot as plt
import numpy as np

from conformal_gp import ConformalGPRegressor
from conformal_gp.datasets import load_auto_mpg
from conformal_gp.metrics import coverage, mean_width

cars = load_auto_mpg(as_frame=True)
year, y = cars.data["model_year"].to_numpy(), cars.target.to_numpy()
X = cars.data.drop(columns="model_year").to_numpy()
old = year <= 76
shuffled = np.zeros(y.size, dtype=bool)
shuffled[np.random.default_rng(0).permutation(y.size)[: old.sum()]] = True

level = 0.9
inside = {}
for name, train in {"learnt from 1970-76": old, "learnt from all years": shuffled}.items():
    model = ConformalGPRegressor(random_state=0).fit(X[train], y[train])
    intervals = model.predict_interval(X[~train], level)
    hit = (intervals[:, 0] <= y[~train]) & (y[~train] <= intervals[:, 1])
    inside[name] = {when: hit[year[~train] == when].mean() for when in np.unique(year[~train])}
    print(
        f"{name:22} {coverage(y[~train], intervals):.1%} covered at {level:.0%}, mean width {mean_width(intervals):.1f}"
    )

# %%
# Learnt from old cars, coverage falls to about one in six for cars of 1980 to 1982. Nothing in the fit shows it: the
# old cars agree with each other. With rows drawn from all years it is near its level over all cars together. That is
# what is guaranteed, not 90% in each year.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, shares), marker, style in zip(inside.items(), "os", ("-", ":"), strict=True):
    ax.plot([1900 + when for when in shares], list(shares.values()), marker + style, color="black", label=name)
ax.axhline(level, color="0.5", linewidth=1, label=f"nominal {level:.0%}")
ax.axvspan(1969.5, 1976.5, color="0.93", zorder=0)
ax.set_ylim(0, 1.03)
ax.set_xlabel("model year of the cars predicted")
ax.set_ylabel("coverage")
ax.legend(frameon=False, loc="lower left")
ax.spines[["top", "right"]].set_visible(False)

# %%
# It helps to use the model year as an input: the model can follow the trend, and its uncertainty grows outside the
# training range. That is better, but it relies on the model, not on the theorem. The theorem covers rows in random
# order from the population you predict. To notice a shift, watch the p-values of new observations: of exchangeable
# rows, one in ten has a p-value of at most 0.1.

late = year >= 80
without_year = ConformalGPRegressor(random_state=0).fit(X[old], y[old])
p = without_year.predict_p(X[late], y[late])
print(f"cars of 1980-82: {np.mean(p <= 0.1):.0%} have p <= 0.1")
with_year = ConformalGPRegressor(random_state=0).fit(cars.data[old], y[old])
intervals = with_year.predict_interval(cars.data[late], level)
print(f"with the year as an input: {coverage(y[late], intervals):.1%} covered, mean width {mean_width(intervals):.1f}")

plt.show()
