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

from conformal_gp._compiled import compiled
from conformal_gp.conformal.upper_envelope import outstanding
from conformal_gp.gp.inputs import Inputs, NewInputs
from conformal_gp.gp.posterior import Posterior, Prediction, Without
from conformal_gp.gp.whitened_basis import EXPLAINED
from conformal_gp.predictors.base import score_lines
from conformal_gp.predictors.segments import NOTHING, TEST_ROW, UNKNOWN, Segments
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

    def helps(self, new: Any, old: Any, gain: float, other: Bag | None = None) -> bool:
        """Whether the training rows by themselves are likelier at a point than at another, by some gain in F.

        The old point may be one of ``other``: the same rows with other hyperparameters to choose from.
        """
        (q_new, d_new), (q_old, d_old) = self.criterion(new), (other or self).criterion(old)
        if not (np.isfinite(d_new) and q_new > 0.0 and q_old > 0.0):
            return False
        return bool(self.degrees * np.log(q_new / q_old) + d_new < d_old - gain)


class AtPoint(NamedTuple):
    """What is known of a block's test rows at a point; not a number where nothing is yet."""

    mean: Array
    """(m,): means of their labels."""
    variance: Array
    """(m,): variances of their labels."""
    aside: dict[int, Aside]
    """What it takes to set training rows aside."""


class Aside(NamedTuple):
    """A training row that may be set aside, at a point."""

    precision: float
    """P_ii; 0 if the row by itself determines a coefficient, and cannot be set aside."""
    quadratic: float
    """y'Py of the others."""
    weight: Array
    """(m,): the row's weight in the means of the test rows; not a number where it is not known."""
    mean: Array
    """(m,): means of the test rows' labels that the others give."""


class Block:
    """A block of test rows beside the training rows of a bag."""

    def __init__(self, bag: Bag, new: NewInputs):
        self.bag = bag
        self.new = new
        self.n_rows = new.H.shape[0]
        self._known: dict[Hashable, AtPoint] = {}

    def _learn(self, point: Any, segments: Segments, aside: list[int]) -> AtPoint:
        """Moments at a point, and weights of rows that are set aside, for test rows of which they are not known yet."""
        known = self._at(point)
        missing = np.isnan(known.mean[segments.row])
        for i in aside:
            one = known.aside.get(i)
            unknown = True if one is None else np.isnan(one.weight[segments.row])
            missing |= (segments.aside == i) & unknown
        if missing.any():
            rows = np.unique(segments.row[missing])
            posterior = self.bag.posterior(point)
            new = self.new.take(rows)
            moments = posterior.moments(new, by_root=False)
            known.mean[rows], known.variance[rows] = moments.mean, moments.variance
            if aside:
                others = posterior.without(np.array(aside))
                means = moments.half @ others.target.T + new.H @ others.first_fit.T
                self._remember(known, rows, aside, others, moments.half @ others.columns.T, means)
        return known

    def _at(self, point: Any) -> AtPoint:
        if point not in self._known:
            mean, variance = np.full((2, self.n_rows), np.nan)
            self._known[point] = AtPoint(mean, variance, {})
        return self._known[point]

    def _remember(
        self, known: AtPoint, rows: Rows, aside: list[int], others: Without, weights: Array, means: Array
    ) -> None:
        """Keep the weights of rows that are set aside, and the means that the others give."""
        for k, i in enumerate(aside):
            if i not in known.aside:
                unknown = np.full((2, self.n_rows), np.nan)
                known.aside[i] = Aside(float(others.precision[k]), float(others.quadratic[k]), *unknown)
            known.aside[i].weight[rows], known.aside[i].mean[rows] = weights[:, k], means[:, k]

    def set_aside(self, point: Any, segments: Segments, ranked: Rows) -> Segments:
        """Parts of segments by the row that stands out most at a point; those of which it is known stay as they are."""
        known_already = segments.aside != UNKNOWN
        if known_already.all():
            return segments
        others = segments.take(known_already)
        found = self._find_aside(point, segments.take(~known_already), ranked)
        return Segments.concatenate([others, found])

    def _find_aside(self, point: Any, segments: Segments, ranked: Rows) -> Segments:
        silent = self.new.undetermined[segments.row]
        if silent.any():
            own, rest = segments.take(silent).forget(self._stands_out(point, ranked)), segments.take(~silent)
            return Segments.concatenate([own, self._find_aside(point, rest, ranked)]) if rest.size else own
        rows, members = np.unique(segments.row, return_inverse=True)
        posterior = self.bag.posterior(point)
        weights, mean, variance = prediction = self.predict(point, rows)
        lines = score_lines(posterior, ranked, prediction, 2.0)
        segment, low, high, row = outstanding(lines, members, segments.low, segments.high)
        row = np.where(row >= 0, ranked[np.maximum(row, 0)], row)
        row[np.isinf(variance[members[segment]])] = TEST_ROW  # of its label nothing is known
        known, aside = self._at(point), np.unique(row[row >= 0])
        known.mean[rows], known.variance[rows] = mean, variance
        if aside.size:
            others = posterior.without(aside)
            means = weights @ others.labels.T + self.new.H[rows] @ others.first_fit.T
            self._remember(known, rows, aside.tolist(), others, weights[:, aside], means)
        return Segments(segments.row[segment], low, high, row)

    def _stands_out(self, point: Any, ranked: Rows) -> int:
        """The training row that stands out most beside a test row that alone determines a coefficient.

        Such a row scores 0, also when it is a training row, and then another is set aside; so here too.
        """
        posterior = self.bag.posterior(point)
        zero = np.zeros(1)
        unit = np.array([1.0 / (posterior.sizes.precision or 1.0)])
        lines = score_lines(posterior, ranked, Prediction(np.zeros((1, self.bag.y.size)), zero, unit), 2.0)
        row = int(outstanding(lines, np.zeros(1, dtype=np.int64), zero, zero)[3][0])
        return int(ranked[row]) if row >= 0 else NOTHING

    def _parts(
        self, point: Any, segments: Segments, aside: list[int], which: Rows
    ) -> tuple[Array, Array, Array, Array]:
        """Q, log D s, μ and s of F on each segment, with what is set aside: ``aside[which]``, or nothing."""
        known = self._learn(point, segments, aside)
        own = [known.aside[i] for i in aside]
        return _parts(
            *self.bag.criterion(point),
            known.mean,
            known.variance,
            np.array([(one.precision, one.quadratic) for one in own]).reshape(-1, 2),
            np.array([one.weight for one in own]).reshape(-1, self.n_rows),
            np.array([one.mean for one in own]).reshape(-1, self.n_rows),
            segments.row,
            which,
        )

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
        rows, which = np.unique(segments.aside, return_inverse=True)
        aside = rows[rows >= 0].tolist()
        which -= rows.size - len(aside)
        q_new, d_new, mean_new, variance_new = self._parts(new, segments, aside, which)
        q_old, d_old, mean_old, variance_old = beside._parts(old, segments, aside, which)
        silent = np.isinf(variance_old)  # the test row takes a coefficient of its own, and has no say
        degrees = self.bag.degrees + (segments.aside == NOTHING) - silent
        ratio = np.exp((d_old - d_new - gain) / degrees)
        shift = mean_new - mean_old
        a = 1.0 / variance_new - ratio / variance_old
        b, c = -2.0 * shift / variance_new, q_new + shift**2 / variance_new - ratio * q_old
        # where the mean function explains all rows that are kept, nothing helps, whatever rounding says
        explained = (q_new == 0.0) & (q_old == 0.0)
        if explained.any():
            spread = np.maximum(variance_old / beside.bag.posterior(old).largest_variance, 1.0)
            spread[silent] = 1.0
            rounding = (EXPLAINED * np.abs(self.bag.y).max()) ** 2 * spread
            b, c = np.where(explained, 0.0, b), np.where(explained, np.abs(a) * rounding, c)
        return segments.where_negative(a, b, c, mean_old)

    def mean_and_variance(self, point: Any, segments: Segments) -> tuple[Array, Array]:
        """Mean and variance of the test row's label for each segment."""
        known = self._learn(point, segments, [])
        return known.mean[segments.row], known.variance[segments.row]

    def predict(self, point: Any, rows: Rows) -> Prediction:
        """Weights of all training rows, means and variances, for some of the test rows."""
        return self.bag.posterior(point).predict(self.new.take(rows))


@compiled(error_model="numpy")
def _parts(
    quadratic: float,
    log_determinant: float,
    mean: Array,
    variance: Array,
    own: Array,
    weights: Array,
    means: Array,
    row: Rows,
    which: Rows,
) -> tuple[Array, Array, Array, Array]:  # pragma: no cover
    q, log_d = np.full(row.size, quadratic), np.full(row.size, log_determinant)
    mu, s = mean[row], variance[row]
    for n in range(row.size):
        i = which[n]
        if i >= 0 and own[i, 0] > 0.0:
            precision, q[n] = own[i]
            log_d[n] += np.log(precision)
            mu[n] = means[i, row[n]]
            s[n] += weights[i, row[n]] ** 2 / precision
        if s[n] < np.inf:  # else the test row has no say
            log_d[n] += np.log(s[n])
    return q, log_d, mu, s
