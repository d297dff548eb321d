"""
A sequential design
===================

Runs of a simulator are dear, so each next run goes where the prediction is least certain. Runs that were chosen are not
like random ones, and intervals that rank them promise nothing. Twenty-nine runs at random inputs, which no choice looks
at, bring the promise back: the chosen runs are *design rows*, which teach the process and are not ranked.
"""

# %%
# A simulator of two inputs. The design starts with ten random runs; of 500 possible inputs the one of the largest
# standard deviation comes next, thirty times.

import numpy as np

from conformal_gp import ConformalGPRegressor
from conformal_gp.metrics import coverage, mean_width


def simulate(X):
    """One run for each row."""
    return np.sin(8 * X[:, 0] ** 2) * X[:, 1] + np.cos(5 * X[:, 1])


rng = np.random.default_rng(0)
chosen = rng.uniform(size=(10, 2))
for _ in range(30):
    process = ConformalGPRegressor(tuning="train", noise_variance=0, mean="constant", n_restarts=0, random_state=0)
    pool = rng.uniform(size=(500, 2))
    std = process.fit(chosen, simulate(chosen)).predict(pool, return_std=True)[1]
    chosen = np.vstack([chosen, pool[np.argmax(std)]])

# %%
# Now the random runs: all predict, these alone are ranked.

random_runs = rng.uniform(size=(29, 2))
X = np.vstack([chosen, random_runs])
model = ConformalGPRegressor(tuning="holdout", design=np.arange(len(chosen)), noise_variance=0, random_state=0)
model.fit(X, simulate(X))
print(model.guarantee_)

new = rng.uniform(size=(1000, 2))
intervals = model.predict_interval(new, confidence_level=0.9)
print(
    f"90% intervals hold {coverage(simulate(new), intervals):.1%} of the labels; mean width {mean_width(intervals):.3f}"
)
