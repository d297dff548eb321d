"""Pictures of prediction intervals, after scikit-learn's display convention.

A display keeps the values that it draws. ``from_estimator`` and ``from_predictions`` compute and draw; ``plot`` draws
again, for example into other axes. ``ax_`` and ``figure_`` are where it was drawn. Drawing needs Matplotlib
(extra ``plot``).
"""

from conformal_gp.plotting.intervals import CoverageDisplay, IntervalDisplay, ResidualDisplay
from conformal_gp.plotting.slices import PredictionBandDisplay, WidthContourDisplay

__all__ = [
    "CoverageDisplay",
    "IntervalDisplay",
    "PredictionBandDisplay",
    "ResidualDisplay",
    "WidthContourDisplay",
]
