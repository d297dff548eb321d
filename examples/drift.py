"""
Drift: when did cars change?
============================

The guarantee needs exchangeable rows. Rows in the order of time can be tested: if they are exchangeable, the p-value of
each car among those before it is uniform, and if they are not, a martingale that bets against it grows.
"""

# %%
# The cars of 1970 to 1972 tune the model, without the model year. Later ones come one after the other, in the order of
# the years; then the same cars in random order.

import matplotlib.pyplot as plt
import numpy as np

from conformal_gp import ConformalGPRegressor, drift
from conformal_gp.datasets import load_auto_mpg

cars = load_auto_mpg(as_frame=True)
year, y = cars.data["model_year"].to_numpy(), cars.target.to_numpy()
X = cars.data.drop(columns="model_year").to_numpy()
rng = np.random.default_rng(0)
orders = {"in the order of years": np.lexsort((rng.uniform(size=y.size), year)), "shuffled": rng.permutation(y.size)}

first = int((year <= 72).sum())
found = {}
for name, order in orders.items():
    model = ConformalGPRegressor(tuning="holdout", random_state=0).fit(X[order[:first]], y[order[:first]])
    found[name] = drift.watch(model, X[order[first:]], y[order[first:]], random_state=0)
    print(f"{name}: {found[name]}")

# %%
# In the order of years there is an alarm. This is the most likely car of the change, counted from the first later one:

changed = found["in the order of years"].start
print(f"car {changed} of {y.size - first}, of 19{year[orders['in the order of years'][first + changed - 1]]:.0f}")

# %%
# An alarm may be false: by Ville's inequality at most one in a hundred sequences of exchangeable rows ever comes to
# 100. It may also come late: evidence grows row by row.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
for (name, path), ax in zip(found.items(), axes, strict=True):
    path.plot(ax)
    ax.set_title(name)
axes[1].set_ylabel("")

plt.show()
