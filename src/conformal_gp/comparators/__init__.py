"""Methods that conformal Gaussian process regression is compared with, each a regressor with ``predict_interval``."""

from .gaussian import GaussianIntervals
from .isotonic import IsotonicRecalibration
from .predictive_system import SplitPredictiveSystem
from .split_conformal import SplitConformal

__all__ = ["GaussianIntervals", "IsotonicRecalibration", "SplitConformal", "SplitPredictiveSystem"]
