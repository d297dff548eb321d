"""
A band over one input
=====================

Miles per gallon against horsepower alone, so that the whole model fits in a picture: nested intervals at three
levels, and the Gaussian process's own 99% band beside the conformal one.
"""

# %%
# The band widens with the level. Its edges have kinks: one training row decides each, and another takes over.

import matplotlib.pyplot as plt

from conformal_gp import ConformalGPRegressor
from conformal_gp.datasets import load_auto_mpg
from conformal_gp.plotting import ComparisonDisplay, PredictionBandDisplay

cars = load_auto_mpg(as_frame=True)
X, y = cars.data[["horsepower"]], cars.target

model = ConformalGPRegressor().fit(X, y)
PredictionBandDisplay.from_estimator(model, X, y, confidence_level=(0.5, 0.8, 0.95), target_name="miles per gallon")

# %%
# The plain band is what the Gaussian process believes: normal noise of one size. The conformal band is what the cars
# themselves support. At 99% the largest few errors decide, and they are not normal.

ComparisonDisplay.from_estimator(model, X, y, confidence_level=0.99, target_name="miles per gallon")

plt.show()
