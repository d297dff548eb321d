"""Methods to compare conformal Gaussian process regression with: regressors with ``predict_interval``."""

from .base import gaussian_intervals
from .beta import BetaRecalibration
from .flow import FlowRecalibration
from .isotonic import IsotonicRecalibration
from .left_out import CrossConformal, Jackknife, JackknifePlus
from .neighbours import ConformalNeighbours
from .ridge import ConformalRidge
from .split import SplitConformal, SplitPredictiveSystem

__all__ = [
    "BetaRecalibration",
    "ConformalNeighbours",
    "ConformalRidge",
    "CrossConformal",
    "FlowRecalibration",
    "IsotonicRecalibration",
    "Jackknife",
    "JackknifePlus",
    "SplitConformal",
    "SplitPredictiveSystem",
    "gaussian_intervals",
]
