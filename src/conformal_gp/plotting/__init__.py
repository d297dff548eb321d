"""Pictures of prediction intervals and distributions, after scikit-learn's display convention.

A display keeps the values that it draws. ``from_estimator`` and ``from_predictions`` compute and draw; ``plot`` draws
again, for example into other axes. Colour-blind readers can tell the colours apart, and hatches, line styles or
markers repeat what they show. Drawing needs Matplotlib: ``pip install 'conformal-gp[plot]'``.
"""

from conformal_gp.plotting.band import PredictionBandDisplay
from conformal_gp.plotting.comparison import ComparisonDisplay
from conformal_gp.plotting.coverage import CoverageDisplay
from conformal_gp.plotting.distribution import DistributionDisplay
from conformal_gp.plotting.fan import FanDisplay
from conformal_gp.plotting.importance import ImportanceDisplay
from conformal_gp.plotting.intervals import IntervalDisplay
from conformal_gp.plotting.pit import PITDisplay
from conformal_gp.plotting.pvalues import PValueDisplay
from conformal_gp.plotting.widths import WidthDisplay

__all__ = [
    "ComparisonDisplay",
    "CoverageDisplay",
    "DistributionDisplay",
    "FanDisplay",
    "ImportanceDisplay",
    "IntervalDisplay",
    "PITDisplay",
    "PValueDisplay",
    "PredictionBandDisplay",
    "WidthDisplay",
]
