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
from conformal_gp.gp.descent import least_gain
from conformal_gp.gp.inputs import Inputs, NewInputs
from conformal_gp.gp.posterior import Posterior, Prediction, Without
from conformal_gp.gp.whitened_basis import EXPLAINED
from conformal_gp.predictors.base import score_lines
from conformal_gp.predictors.segments import NOTHING, TEST_ROW, UNKNOWN, Segments, cut
from conformal_gp.types import Array, Mask, Rows

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
    largest_variance: float
    """Largest prior variance of a training row's label, noise included."""


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
        self.rounding = (EXPLAINED * float(np.abs(y).max(initial=0.0))) ** 2
        """Square of what is rounding in a label, where the mean function explains all of them."""
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
                known = Criterion(posterior.quadratic, value, posterior.largest_variance)
            except LinAlgError:
                known = Criterion(1.0, np.inf, 1.0)
            self._criteria[point] = known
        return known

    def helps(self, new: Any, old: Any, gain: float, other: Bag | None = None) -> bool:
        """Whether the training rows by themselves are likelier at a point than at another, by some gain in F.

        The old point may be one of ``other``: the same rows with other hyperparameters to choose from.
        """
        (q_new, d_new, _), (q_old, d_old, _) = self.criterion(new), (other or self).criterion(old)
        if not (np.isfinite(d_new) and q_new > 0.0 and q_old > 0.0):
            return False
        return bool(self.degrees * np.log(q_new / q_old) + d_new < d_old - gain)

    def step_helps(self, new: Any, old: Any) -> bool:
        """Whether a step of the descent helps the training rows by themselves."""
        return self.helps(new, old, least_gain(self.y.size + 1))


class AtPoint:
    """What is known of a block's test rows at a point; not a number where nothing is yet.

    Parameters
    ----------
    n_rows : int
        Training rows.
    n_new : int
        Test rows of the block.
    """

    def __init__(self, n_rows: int, n_new: int):
        self.mean, self.variance = np.full((2, n_new), np.nan)
        """(m,): means and variances of their labels."""
        self.place = np.full(n_rows, -1)
        """(l,): of each training row that may be set aside, its place in what follows; -1 for all others."""
        self.own = np.empty((0, 2))
        """(k, 2): P_ii, 0 if the row by itself determines a coefficient and cannot be set aside; y'Py of the others."""
        self.weights = np.empty((0, n_new))
        """(k, m): its weights in the means of the test rows; not a number where it is not known."""
        self.means = np.empty((0, n_new))
        """(k, m): means of the test rows' labels that the others give."""

    def parts(self, criterion: Criterion, segments: Segments) -> tuple[Array, Array, Array, Array]:
        """Q, log D s, μ and s of F on each segment, with what is set aside there."""
        return _parts(
            *criterion[:2],
            *(self.mean, self.variance, self.place, self.own, self.weights, self.means),
            *(segments.row, segments.aside),
        )

    def remember(self, rows: Rows, aside: Rows, others: Without, weights: Array, means: Array) -> None:
        """Keep the weights of rows that may be set aside, and the means that the others give, for some test rows."""
        new = np.flatnonzero(self.place[aside] < 0)
        if new.size:
            self.place[aside[new]] = np.arange(new.size) + self.own.shape[0]
            self.own = np.vstack([self.own, np.column_stack([others.precision, others.quadratic])[new]])
            unknown = np.full((new.size, self.mean.size), np.nan)
            self.weights, self.means = np.vstack([self.weights, unknown]), np.vstack([self.means, unknown])
        where = self.place[aside][:, None], rows
        self.weights[where], self.means[where] = weights.T, means.T


class Block:
    """A block of test rows beside the training rows of a bag."""

    def __init__(self, bag: Bag, new: NewInputs):
        self.bag = bag
        self.new = new
        self.n_rows = new.H.shape[0]
        self._known: dict[Hashable, AtPoint] = {}

    def _learn(self, point: Any, segments: Segments) -> AtPoint:
        """Moments at a point, and what it takes to set rows aside, for test rows of which they are not known yet."""
        known = self._at(point)
        missing = _missing(segments.row, segments.aside, known.mean, known.place, known.weights)
        if missing.size:
            rows, aside = np.unique(segments.row[missing]), np.unique(segments.aside)
            posterior = self.bag.posterior(point)
            new = self.new.take(rows)
            moments = posterior.moments(new, by_root=False)
            known.mean[rows], known.variance[rows] = moments.mean, moments.variance
            aside = aside[aside >= 0]
            if aside.size:
                others = posterior.without(aside)
                means = moments.half @ others.target.T + new.H @ others.first_fit.T
                known.remember(rows, aside, others, moments.half @ others.columns.T, means)
        return known

    def _at(self, point: Any) -> AtPoint:
        if point not in self._known:
            self._known[point] = AtPoint(self.bag.y.size, self.n_rows)
        return self._known[point]

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
            known.remember(rows, aside, others, weights[:, aside], means)
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

    def where_it_helps(
        self, new: Any, old: Any, segments: Segments, gain: float, other: Block | None = None
    ) -> tuple[Segments, Segments]:
        """Parts of segments on which F is lower at a point than at another by more than some gain, and others.

        The old point may be one of ``other``: the same rows with other hyperparameters to choose from.
        """
        beside = other or self
        none = segments.take(np.empty(0, dtype=np.int64))
        criterion_new, criterion_old = self.bag.criterion(new), beside.bag.criterion(old)
        if criterion_new.log_determinant == np.inf:
            return none, segments
        if criterion_old.log_determinant == np.inf:
            return segments, none
        outcome = _compare(
            *(segments.low, segments.high, segments.aside == NOTHING),
            *self._learn(new, segments).parts(criterion_new, segments),
            *beside._learn(old, segments).parts(criterion_old, segments),
            *(self.bag.degrees, gain, self.bag.rounding, criterion_old.largest_variance),
        )
        return segments.divided(*outcome)

    def mean_and_variance(self, point: Any, segments: Segments) -> tuple[Array, Array]:
        """Mean and variance of the test row's label for each segment."""
        known = self._learn(point, segments.forget())
        return known.mean[segments.row], known.variance[segments.row]

    def predict(self, point: Any, rows: Rows) -> Prediction:
        """Weights of all training rows, means and variances, for some of the test rows."""
        return self.bag.posterior(point).predict(self.new.take(rows))


@compiled(error_model="numpy")
def _missing(row: Rows, aside: Rows, mean: Array, place: Rows, weights: Array) -> Rows:  # pragma: no cover
    """Segments of whose test row something is not known."""
    missing, count = np.empty(row.size, dtype=np.int64), 0
    for n in range(row.size):
        known = mean[row[n]] == mean[row[n]]
        if known and aside[n] >= 0:
            i = place[aside[n]]
            known = i >= 0 and weights[i, row[n]] == weights[i, row[n]]
        if not known:
            missing[count] = n
            count += 1
    return missing[:count]


@compiled(error_model="numpy")
def _parts(
    quadratic: float,
    log_determinant: float,
    mean: Array,
    variance: Array,
    place: Rows,
    own: Array,
    weights: Array,
    means: Array,
    row: Rows,
    aside: Rows,
) -> tuple[Array, Array, Array, Array]:  # pragma: no cover
    q, log_d = np.full(row.size, quadratic), np.full(row.size, log_determinant)
    mu, s = mean[row], variance[row]
    for n in range(row.size):
        i = place[aside[n]] if aside[n] >= 0 else -1
        if i >= 0 and own[i, 0] > 0.0:
            precision, q[n] = own[i]
            log_d[n] += np.log(precision)
            mu[n] = means[i, row[n]]
            s[n] += weights[i, row[n]] ** 2 / precision
        if s[n] < np.inf:  # else the test row has no say
            log_d[n] += np.log(s[n])
    return q, log_d, mu, s


@compiled(error_model="numpy")
def _compare(
    low: Array,
    high: Array,
    all_kept: Mask,
    q: Array,
    log_d: Array,
    mu: Array,
    s: Array,
    q_old: Array,
    log_d_old: Array,
    mu_old: Array,
    s_old: Array,
    degrees: int,
    gain: float,
    rounding: float,
    largest_variance: float,
) -> tuple[Rows, Array, Array, Mask]:  # pragma: no cover
    """Where F is lower at a point than at an old one by more than a gain: segment, ends and outcome of each part."""
    n = low.size
    which, helps = np.empty(3 * n, dtype=np.int64), np.empty(3 * n, dtype=np.bool_)
    starts, stops = np.empty(3 * n), np.empty(3 * n)
    count = 0
    for k in range(n):
        silent = s_old[k] == np.inf  # the test row takes a coefficient of its own, and has no say
        ratio = np.exp((log_d_old[k] - log_d[k] - gain) / (degrees + all_kept[k] - silent))
        shift = mu[k] - mu_old[k]
        a = 1.0 / s[k] - ratio / s_old[k]
        b, c = -2.0 * shift / s[k], q[k] + shift**2 / s[k] - ratio * q_old[k]
        if q[k] == 0.0 and q_old[k] == 0.0:  # the mean function explains all rows that are kept: the rest is rounding
            spread = 1.0 if silent else max(s_old[k] / largest_variance, 1.0)
            b, c = 0.0, abs(a) * rounding * spread
        count = cut(k, low[k], high[k], a, b, c, mu_old[k], which, starts, stops, helps, count)
    return which[:count], starts[:count], stops[:count], helps[:count]
