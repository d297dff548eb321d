"""
Inputs that are categories
==========================

A Gaussian process measures distances between rows, so categories need numbers. The bundled Servo data have two, motor
and screw, with five values each, besides two gain settings; the label is a rise time in seconds. Whatever the
numbers, the guarantee holds. What changes is the width.
"""

# %%
# Three ways, each by ten-fold cross-validation:
#
# - *codes*: 0 to 4 in alphabetical order, as in the paper, and one length scale for all inputs;
# - *one-hot*: a column for each value, and one length scale;
# - *codes, a scale each*: a length scale for each of the four inputs, so that an input may count for little.
#
# The encoders get the categories beforehand instead of learning them: what is learnt from the training rows alone
# treats the test row differently.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.gaussian_process.kernels import ConstantKernel, Matern
from sklearn.model_selection import KFold
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from conformal_gp import ConformalGPRegressor
from conformal_gp.datasets import load_servo
from conformal_gp.metrics import coverage, mean_width
from conformal_gp.plotting import CoverageDisplay

servo = load_servo(raw=True, as_frame=True)
print(servo.data.head(3))
X, y = servo.data, servo.target.to_numpy()
columns, values = ["motor", "screw"], [list("ABCDE")] * 2

codes = make_column_transformer((OrdinalEncoder(categories=values), columns), remainder="passthrough")
one_hot = make_column_transformer((OneHotEncoder(categories=values), columns), remainder="passthrough")
scale_each = ConstantKernel() * Matern(np.ones(4), nu=2.5)
ways = {
    "codes": (codes, ConformalGPRegressor()),
    "one-hot": (one_hot, ConformalGPRegressor()),
    "codes, a scale each": (codes, ConformalGPRegressor(scale_each, tuning="augmented", random_state=2)),
}

levels = (0.9, 0.95)
intervals = {}
for name, (encoder, model) in ways.items():
    inputs = encoder.fit_transform(X)
    intervals[name] = np.empty((y.size, 2, len(levels)))
    for train, test in KFold(10, shuffle=True, random_state=0).split(inputs):
        intervals[name][test] = model.fit(inputs[train], y[train]).predict_interval(inputs[test], levels)
    for level, share, width in zip(levels, coverage(y, intervals[name]), mean_width(intervals[name]), strict=True):
        print(f"{name:20} {level:.0%}: {share:.1%} inside, mean width {width:.2f} s")

# %%
# Codes beat one-hot columns here, although their order means nothing: with one length scale for all, ten columns of
# zeros and ones outweigh the two gains. A length scale for each input helps more.

CoverageDisplay.from_predictions(y, intervals, confidence_level=levels)

plt.show()
