"""Methods that conformal Gaussian process regression is compared with, each a regressor with ``predict_interval``."""

from .cross_conformal import CrossConformal
from .gaussian import GaussianIntervals
from .isotonic import IsotonicRecalibration
from .jackknife import Jackknife, JackknifePlus
from .predictive_system import SplitPredictiveSystem
from .split_conformal import SplitConformal

__all__ = [
    "CrossConformal",
    "GaussianIntervals",
    "IsotonicRecalibration",
    "Jackknife",
    "JackknifePlus",
    "SplitConformal",
    "SplitPredictiveSystem",
]
