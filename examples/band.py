"""
A band over one input
=====================

Miles per gallon against horsepower alone, so that the whole model fits in a picture: nested intervals at three
levels.
"""

# %%
# The band widens with the level. Its edges have kinks: one training row decides each, and another takes over.

import matplotlib.pyplot as plt

from conformal_gp import ConformalGPRegressor
from conformal_gp.datasets import load_auto_mpg
from conformal_gp.plotting import PredictionBandDisplay

cars = load_auto_mpg(as_frame=True)
X, y = cars.data[["horsepower"]], cars.target

model = ConformalGPRegressor().fit(X, y)
PredictionBandDisplay.from_estimator(model, X, y, confidence_level=(0.5, 0.8, 0.95), target_name="miles per gallon")

plt.show()
