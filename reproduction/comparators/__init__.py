"""Methods to compare conformal Gaussian process regression with: regressors with ``predict_interval``."""

from .beta import BetaRecalibration
from .cross_conformal import CrossConformal
from .flow import FlowRecalibration
from .gaussian import GaussianIntervals
from .isotonic import IsotonicRecalibration
from .jackknife import Jackknife, JackknifePlus
from .neighbours import ConformalNeighbours
from .predictive_system import SplitPredictiveSystem
from .ridge import ConformalRidge
from .split_conformal import SplitConformal

__all__ = [
    "BetaRecalibration",
    "ConformalNeighbours",
    "ConformalRidge",
    "CrossConformal",
    "FlowRecalibration",
    "GaussianIntervals",
    "IsotonicRecalibration",
    "Jackknife",
    "JackknifePlus",
    "SplitConformal",
    "SplitPredictiveSystem",
]
