"""Pictures of prediction intervals, after scikit-learn's display convention.

Every display holds what it draws. ``from_estimator`` and ``from_predictions`` compute and draw; ``plot`` draws again,
say into other axes. Colours are safe for colour-blind readers, and whatever a colour tells, a hatch, line style or
marker tells too. Drawing needs Matplotlib: ``pip install 'conformal-gp[plot]'``.
"""

from conformal_gp.plotting.band import PredictionBandDisplay
from conformal_gp.plotting.comparison import ComparisonDisplay
from conformal_gp.plotting.coverage import CoverageDisplay
from conformal_gp.plotting.intervals import IntervalDisplay
from conformal_gp.plotting.pvalues import PValueDisplay
from conformal_gp.plotting.widths import WidthDisplay

__all__ = [
    "ComparisonDisplay",
    "CoverageDisplay",
    "IntervalDisplay",
    "PValueDisplay",
    "PredictionBandDisplay",
    "WidthDisplay",
]
