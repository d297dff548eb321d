"""
First intervals: fuel consumption of cars
=========================================

Fit, predict, and check coverage, on the bundled Auto-mpg data: 392 cars of the years 1970 to 1982,
seven inputs, miles per gallon as the target.
"""

# %%
# Rows in random order, 300 to learn from and 92 to check with. ``predict_interval`` takes any number of levels at
# once.

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from conformal_gp import ConformalGPRegressor
from conformal_gp.datasets import load_auto_mpg
from conformal_gp.metrics import coverage, mean_width
from conformal_gp.plotting import CoverageDisplay, IntervalDisplay, PredictionBandDisplay

X, y = load_auto_mpg(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=300, random_state=0)

model = ConformalGPRegressor(random_state=0).fit(X_train, y_train)
levels = [0.8, 0.9, 0.95]
intervals = model.predict_interval(X_test, levels)
for level, share, width in zip(levels, coverage(y_test, intervals), mean_width(intervals), strict=True):
    print(f"level {level:.0%}: {share:.1%} of {y_test.size} cars covered, mean width {width:.1f} miles per gallon")

# %%
# The 90% intervals of all test cars, sorted by prediction. Misses are marked: about one in ten.

IntervalDisplay.from_estimator(model, X_test, y_test, confidence_level=0.9, target_name="miles per gallon")

# %%
# One fit serves all levels. Coverage follows the level, up to the variability of 92 test cars, which the band shows.

CoverageDisplay.from_estimator(model, X_test, y_test)

# %%
# Miles per gallon against weight alone, so that the whole model fits in a picture: nested intervals at three levels.
# Heavy cars are similar; light ones differ more, and widths follow.

weight = X_train[["weight"]]
one_input = ConformalGPRegressor(random_state=0).fit(weight, y_train)
PredictionBandDisplay.from_estimator(
    one_input, weight, y_train, confidence_level=(0.5, 0.8, 0.95), target_name="miles per gallon"
)

# %%
# ``guarantee_`` states what the fit guarantees:

print(model.guarantee_)

plt.show()
