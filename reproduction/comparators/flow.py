r"""GPR-RM: modular conformal calibration by a monotone neural flow (Marx, Zhao, Neiswanger and Ermon, ICML 2022).

The sorted scores of the q calibration rows have the levels j / (q + 1). An increasing function of the level is fitted
to these pairs; its values are the quantiles of a new label. Here the function is one layer of a neural autoregressive
flow with H units,

.. math::
    N(u) = \operatorname{logit} \sum_h p_h g_h, \quad
    g_h = \operatorname{sigmoid}(e^{v_h} u + b_h), \quad p = \operatorname{softmax}(w),

increasing in u whatever its parameters v, b and w are. With :math:`\bar g = \sum_h p_h g_h` its gradient is

.. math::
    \frac{\partial N}{\partial b_h} = \frac{p_h g_h (1 - g_h)}{\bar g (1 - \bar g)}, \quad
    \frac{\partial N}{\partial v_h} = \frac{\partial N}{\partial b_h} e^{v_h} u, \quad
    \frac{\partial N}{\partial w_h} = \frac{p_h (g_h - \bar g)}{\bar g (1 - \bar g)}.

Training follows the authors' code (TorchUQ), in double precision. Theirs trains a second flow, from scores to levels,
at the same time. Intervals do not use it, but its error counts in the decisions to halve the step size and to stop. It
is left out here. On folds of two data sets this changed mean widths by no more than another random start does, 5%.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_expit, log_softmax, logsumexp, softmax
from sklearn.utils import check_random_state

from conformal_gp.arrays import Array
from reproduction.comparators.adam import Adam
from reproduction.comparators.isotonic import QuantileRecalibration
from reproduction.comparators.split import CALIBRATION_SHARE

# Spread of the log slopes at the start: most units are steps, or nearly constant.
LOG_SLOPE_SPREAD = 5.0
# The loss is checked every LOOK_EVERY steps. When more than PATIENCE checks in a row find no fall by LEAST_GAIN, the
# step size is halved. Training ends when the step size or the loss is small enough.
LOOK_EVERY = 100
LEAST_GAIN = 1e-2
PATIENCE = 2
LEAST_STEP_SIZE = 1e-5
LEAST_LOSS = 1e-5


class FlowRecalibration(QuantileRecalibration):
    """Modular conformal calibration with a neural autoregressive flow, fitted to levels less 1/2.

    Parameters
    ----------
    estimator, calibration_size, random_state
        See :class:`~reproduction.comparators.split.SplitRegressor`. The seed is also that of the flow's start.
    units : int, default=200
        Units H of the flow.
    step_size : float, default=1e-3
        Adam's step size at the start.
    max_steps : int, default=50_000
        Training steps at most.

    Attributes
    ----------
    parameters_ : ndarray of shape (3, units)
        Log slopes, offsets and log weights of the flow.
    n_steps_, loss_ : int, float
        Training steps taken, and the mean squared error before the last of them.

    Examples
    --------
    Normal errors need nearly no recalibration; a Gaussian interval is 3.3 wide:

    >>> from scipy.stats import norm
    >>> method = FlowRecalibration(units=50, max_steps=5000, random_state=0)
    >>> method = method.calibrate(np.zeros(49), np.ones(49), norm.ppf(np.arange(1, 50) / 50))
    >>> float(np.diff(method.intervals([0.0], [1.0], 0.9))[0, 0].round(1))
    3.1
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        calibration_size: float = CALIBRATION_SHARE,
        random_state: int | np.random.RandomState | None = None,
        units: int = 200,
        step_size: float = 1e-3,
        max_steps: int = 50_000,
    ):
        super().__init__(estimator, calibration_size=calibration_size, random_state=random_state)
        self.units = units
        self.step_size = step_size
        self.max_steps = max_steps

    def _learn(self, predicted: Array) -> None:
        start = check_random_state(self.random_state).standard_normal((3, self.units))
        start[0] *= LOG_SLOPE_SPREAD
        levels = np.linspace(0.0, 1.0, predicted.size)
        self.parameters_, self.n_steps_, self.loss_ = train_flow(
            start, levels, predicted - 0.5, self.step_size, self.max_steps
        )

    def _predicted(self, levels: Array) -> Array:
        return flow(self.parameters_, levels) + 0.5


def flow(parameters: Array, levels: Array) -> Array:
    """Values of the flow N at some levels in [0, 1]; the parameters are log slopes v, offsets b and log weights w.

    One unit is the line :math:`e^v u + b`:

    >>> flow(np.array([[0.0], [0.25], [3.0]]), np.array([0.0, 0.5, 1.0])).round(6)
    array([0.25, 0.75, 1.25])
    """
    log_slopes, offsets, log_weights = parameters
    arguments = np.exp(log_slopes) * levels[:, None] + offsets
    weights = log_softmax(log_weights)
    return logsumexp(weights + log_expit(arguments), axis=1) - logsumexp(weights + log_expit(-arguments), axis=1)


def loss_and_gradient(parameters: Array, levels: Array, scores: Array) -> tuple[float, Array]:
    """Mean squared error of the flow at levels in [0, 1], and its gradient."""
    slopes, offsets = np.exp(parameters[0]), parameters[1]
    weights = softmax(parameters[2])
    away = np.exp(-(np.outer(levels, slopes) + offsets))  # levels are not negative: no overflow
    on = 1.0 / (1.0 + away)
    off = np.multiply(away, on, out=away)
    mean_on, mean_off = on @ weights, off @ weights
    error = np.log(mean_on / mean_off) - scores
    pull = 2.0 * error / (levels.size * mean_on * mean_off)
    by_weight = pull @ on - pull @ mean_on
    both = np.multiply(on, off, out=off)
    gradient = np.stack([((pull * levels) @ both) * slopes, pull @ both, by_weight]) * weights
    return float(np.mean(error**2)), gradient


def train_flow(
    start: Array, levels: Array, scores: Array, step_size: float, max_steps: int
) -> tuple[Array, int, float]:
    """Fit a flow to scores at levels in [0, 1] by Adam: its parameters, the steps taken and the last loss."""
    parameters = start.copy()
    adam = Adam(parameters.shape)
    best, stalled, loss = np.inf, 0, np.inf
    while adam.n_steps < max_steps:
        loss, gradient = loss_and_gradient(parameters, levels, scores)
        adam.step(parameters, gradient, step_size)
        if adam.n_steps % LOOK_EVERY == 0:
            if loss < best * (1.0 - LEAST_GAIN):
                best, stalled = loss, 0
            else:
                stalled += 1
            if stalled > PATIENCE:
                step_size, stalled = step_size / 2.0, 0
            if step_size < LEAST_STEP_SIZE or loss < LEAST_LOSS:
                break
    return parameters, adam.n_steps, loss
