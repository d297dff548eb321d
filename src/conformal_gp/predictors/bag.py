r"""Training rows and one test row: the restricted likelihood of all of them, at any hyperparameters and label.

At hyperparameters :math:`\theta` the process has covariance :math:`a (K_\theta + \rho_\theta I)` with the amplitude a
profiled out. Of n rows with a mean basis of p columns, minus twice its restricted log likelihood is, but for
constants, :math:`\nu \log (y'Py) + \log D` with :math:`\nu = n - p` and :math:`D = |K + \rho I| |H'CH|`. By the block
form of the inverse, adding a test row with label y to training rows with quadratic form Q and determinant D gives

.. math:: F(\theta, y) = \nu \log \left( Q + (y - \mu)^2 / s \right) + \log (D s) + \text{penalty}(\theta),

where :math:`\mu` and s are mean and variance of the test row's label. Setting training row i aside turns Q, D, μ and s
into :math:`Q - \alpha_i^2 / P_{ii}, D P_{ii}, \mu - v_i \alpha_i / P_{ii}` and :math:`s + v_i^2 / P_{ii}`.

So :math:`F(\theta', y) < F(\theta, y) - g` is a comparison of two parabolas in y: a quadratic inequality.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import RLock
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.gp.inputs import Inputs, NewInputs
from conformal_gp.gp.posterior import Posterior, Prediction
from conformal_gp.predictors.segments import NOTHING, Segments
from conformal_gp.types import Array, Rows

# Factorisations that are kept, in bytes; others are computed again when they are needed.
KEPT_BYTES = 2**29


class Choices(Protocol):
    """Hyperparameters to choose from: a lattice, or a list."""

    def kernel(self, point: Any) -> Kernel:
        """Kernel at a point."""

    def noise_variance(self, point: Any) -> float:
        """Noise variance at a point."""

    def penalty(self, point: Any) -> float:
        """What is added to minus twice the log likelihood there."""


class Criterion(NamedTuple):
    """What of F does not depend on a test row."""

    quadratic: float
    log_determinant: float
    """Penalty included; infinite where the covariance matrix is numerically singular."""


class Bag:
    """Training rows under one scaling of their inputs, and the process at any point.

    Parameters
    ----------
    choices : Choices
        The hyperparameters.
    inputs : Inputs
        Training inputs.
    y : ndarray of shape (l,)
        Training labels.
    """

    def __init__(self, choices: Choices, inputs: Inputs, y: Array):
        self.choices = choices
        self.inputs = inputs
        self.y = y
        self.degrees = y.size - inputs.H.shape[1]
        """Degrees of freedom of the training rows alone, or of as many with the test row among them."""
        self._criteria: dict[Hashable, Criterion] = {}
        self._posteriors: OrderedDict[Hashable, Posterior] = OrderedDict()
        self._lock = RLock()
        self._most_kept = max(2, KEPT_BYTES // (8 * y.size**2))

    def __getstate__(self) -> dict[str, Any]:
        """All but the factorisations, which would be most of a pickle, and what comes from them."""
        return {**self.__dict__, "_posteriors": OrderedDict(), "_criteria": {}, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = RLock()

    def posterior(self, point: Any) -> Posterior:
        """The process at a point, given the training rows."""
        with self._lock:
            if point in self._posteriors:
                self._posteriors.move_to_end(point)
            else:
                self._posteriors[point] = Posterior(
                    self.choices.kernel(point),
                    self.choices.noise_variance(point),
                    self.inputs,
                    self.y,
                    flat_prior=True,
                    checked=False,
                )
                if len(self._posteriors) > self._most_kept:
                    self._posteriors.popitem(last=False)
            return self._posteriors[point]

    def criterion(self, point: Any) -> Criterion:
        """What of F does not depend on a test row, at a point."""
        known = self._criteria.get(point)
        if known is None:
            try:
                posterior = self.posterior(point)
                value = posterior.log_determinant + self.choices.penalty(point)
                known = Criterion(posterior.quadratic, value)
            except LinAlgError:
                known = Criterion(1.0, np.inf)
            self._criteria[point] = known
        return known

    def helps(self, new: Any, old: Any, gain: float) -> bool:
        """Whether the training rows by themselves are likelier at a point than at another, by some gain in F."""
        (q_new, d_new), (q_old, d_old) = self.criterion(new), self.criterion(old)
        if not (np.isfinite(d_new) and q_new > 0.0 and q_old > 0.0):
            return False
        return bool(self.degrees * np.log(q_new / q_old) + d_new < d_old - gain)


class Block:
    """A block of test rows beside the training rows of a bag."""

    def __init__(self, bag: Bag, new: NewInputs):
        self.bag = bag
        self.new = new
        self.n_rows = new.H.shape[0]
        self._mean: dict[Hashable, Array] = {}
        self._variance: dict[Hashable, Array] = {}
        self._weight: dict[tuple[Hashable, int], Array] = {}
        self._own: dict[tuple[Hashable, int], tuple[float, float]] = {}

    def _learn(self, point: Any, segments: Segments) -> None:
        """Moments at a point, and weights of rows that are set aside, for test rows of which they are not known yet."""
        if point not in self._mean:
            self._mean[point], self._variance[point] = np.full((2, self.n_rows), np.nan)
        missing = np.isnan(self._mean[point][segments.row])
        aside = np.unique(segments.aside[segments.aside >= 0]).tolist()
        for i in aside:
            weight = self._weight.setdefault((point, i), np.full(self.n_rows, np.nan))
            missing |= (segments.aside == i) & np.isnan(weight[segments.row])
        if not missing.any():
            return
        rows = np.unique(segments.row[missing])
        posterior = self.bag.posterior(point)
        moments = posterior.moments(self.new.take(rows), by_root=False)
        self._mean[point][rows], self._variance[point][rows] = moments.mean, moments.variance
        for i in aside:
            column, precision = posterior.row(i)
            self._own[point, i] = float(posterior.alpha[i]), precision
            self._weight[point, i][rows] = moments.half @ column

    def _parts(self, point: Any, segments: Segments) -> tuple[Array, Array, Array, Array]:
        """Q, log D s, μ and s of F on each segment, with what is set aside."""
        self._learn(point, segments)
        quadratic, log_determinant = self.bag.criterion(point)
        mean, variance = self._mean[point][segments.row], self._variance[point][segments.row]
        q, log_d = np.full(segments.size, quadratic), np.full(segments.size, log_determinant)
        for i in np.unique(segments.aside[segments.aside >= 0]).tolist():
            alpha, precision = self._own[point, i]
            if precision <= 0.0:
                continue
            here = segments.aside == i
            weight = self._weight[point, i][segments.row[here]]
            q[here] = max(quadratic - alpha**2 / precision, 0.0)
            log_d[here] += np.log(precision)
            mean[here] -= weight * (alpha / precision)
            variance[here] += weight**2 / precision
        return q, log_d + np.log(variance), mean, variance

    def where_it_helps(
        self, new: Any, old: Any, segments: Segments, gain: float, other: Block | None = None
    ) -> tuple[Segments, Segments]:
        """Parts of segments on which F is lower at a point than at another by more than some gain, and others.

        The old point may be one of ``other``: the same rows with other hyperparameters to choose from.
        """
        beside = other or self
        none = segments.take(np.empty(0, dtype=np.int64))
        if not np.isfinite(self.bag.criterion(new).log_determinant):
            return none, segments
        if not np.isfinite(beside.bag.criterion(old).log_determinant):
            return segments, none
        q_new, d_new, mean_new, variance_new = self._parts(new, segments)
        q_old, d_old, mean_old, variance_old = beside._parts(old, segments)
        degrees = self.bag.degrees + (segments.aside == NOTHING)
        ratio = np.exp((d_old - d_new - gain) / degrees)
        shift = mean_new - mean_old
        return segments.where_negative(
            1.0 / variance_new - ratio / variance_old,
            -2.0 * shift / variance_new,
            q_new + shift**2 / variance_new - ratio * q_old,
            mean_old,
        )

    def mean_and_variance(self, point: Any, segments: Segments) -> tuple[Array, Array]:
        """Mean and variance of the test row's label for each segment."""
        self._learn(point, segments)
        return self._mean[point][segments.row], self._variance[point][segments.row]

    def predict(self, point: Any, rows: Rows) -> Prediction:
        """Weights of all training rows, means and variances, for some of the test rows."""
        return self.bag.posterior(point).predict(self.new.take(rows))
