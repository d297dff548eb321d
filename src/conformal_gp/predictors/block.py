r"""A block of test rows beside the training rows of a bag: on which labels one point is better than another.

With the notation of :mod:`conformal_gp.predictors.bag`, whether a step helps is a quadratic inequality in the label of
a test row, and divides segments of labels. What it needs of a test row at a point is computed once and kept.

Most steps that fail, fail without a look at the test rows. No label varies less than its noise, :math:`s \ge \rho`, so

.. math:: F(\theta, y) \ge \nu \log Q + \log (D \rho) + \text{penalty}(\theta),

which takes the training rows alone. Where that is no less than the largest F of a segment at the old point, none of its
labels is better off.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from conformal_gp._compiled import compiled
from conformal_gp.conformal.lines import bag_rounding, normalised_residual_lines
from conformal_gp.conformal.upper_envelope import outstanding
from conformal_gp.gp.inputs import NewInputs
from conformal_gp.gp.posterior import Posterior, Prediction, Without
from conformal_gp.predictors.bag import Bag, Criterion
from conformal_gp.predictors.segments import NOTHING, TEST_ROW, UNKNOWN, Segments, cut, difference
from conformal_gp.types import Array, Mask, Rows

# In minus twice the log likelihood: less than any decision is about, more than rounding.
ROUNDING = 1e-6


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
            new = self.bag.seen(point, self.new.take(rows))
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
        weights, mean, variance, _ = prediction = self.predict(point, rows)
        segment, low, high, row = _outstanding(posterior, prediction, ranked, members, segments.low, segments.high)
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
        unit = np.array([1.0 / (posterior.diagonal.max() or 1.0)])
        silent = Prediction(np.zeros((1, self.bag.y.size)), zero, unit, zero)
        row = int(_outstanding(posterior, silent, ranked, np.zeros(1, dtype=np.int64), zero, zero)[3][0])
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
        at_old = beside._learn(old, segments).parts(criterion_old, segments)
        hopeless = self._hopeless(new, criterion_new, segments, at_old, gain)
        if hopeless.all():
            return none, segments
        undecided = segments.take(~hopeless)
        outcome = _compare(
            *(undecided.low, undecided.high, undecided.aside == NOTHING),
            *self._learn(new, undecided).parts(criterion_new, undecided),
            *(part[~hopeless] for part in at_old),
            *(self.bag.degrees, gain, self.bag.rounding, criterion_old.largest_variance),
        )
        better, others = undecided.divided(*outcome)
        return better, Segments.concatenate([others, segments.take(hopeless)]) if hopeless.any() else others

    def _hopeless(
        self, point: Any, criterion: Criterion, segments: Segments, at_old: tuple[Array, ...], gain: float
    ) -> Mask:
        """On which segments a point is no better, whatever it says of the test rows; see the module's text."""
        q_old, log_d_old, mu_old, s_old = at_old
        aside, place = np.unique(segments.aside, return_inverse=True)
        q, log_d = np.full(aside.size, criterion.quadratic), np.full(aside.size, criterion.log_determinant)
        left = np.flatnonzero(aside >= 0)
        if left.size:
            others = self.bag.posterior(point).without(aside[left])
            can = others.precision > 0.0
            q[left[can]] = others.quadratic[can]
            log_d[left[can]] += np.log(others.precision[can])
        noise = self.bag.seen(point, self.new).noise.variance(self.bag.choices.noise_variance(point))[segments.row]
        degrees = self.bag.degrees + (segments.aside == NOTHING)
        farthest = np.maximum(np.abs(segments.low - mu_old), np.abs(segments.high - mu_old))
        with np.errstate(all="ignore"):
            highest = degrees * np.log(q_old + farthest**2 / s_old) + log_d_old
            # a test row that determines a coefficient at the new point has no say: log s is not in F then
            lowest = degrees * np.log(q[place]) + log_d[place] + np.minimum(np.log(noise), 0.0)
            return (lowest > highest - gain + ROUNDING) & np.isfinite(s_old) & (q[place] > 0.0) & (q_old > 0.0)

    def mean_and_variance(self, point: Any, segments: Segments) -> tuple[Array, Array]:
        """Mean and variance of the test row's label for each segment."""
        known = self._learn(point, segments.forget())
        return known.mean[segments.row], known.variance[segments.row]

    def predict(self, point: Any, rows: Rows) -> Prediction:
        """Weights of all training rows, means and variances, for some of the test rows."""
        return self.bag.posterior(point).predict(self.bag.seen(point, self.new.take(rows)))


def _outstanding(
    posterior: Posterior, prediction: Prediction, ranked: Rows, members: Rows, low: Array, high: Array
) -> tuple[Rows, Array, Array, Rows]:
    """Parts of segments of test rows by the row that stands out most, as a number among those that may be set aside."""
    weights, mean, variance, prior = prediction
    alpha, diagonal = posterior.residuals, posterior.diagonal
    lines = normalised_residual_lines(alpha[ranked], diagonal[ranked], weights[:, ranked], mean, variance, 2.0)
    off = bag_rounding(alpha, diagonal, posterior.prior, posterior.y, weights, variance, prior)
    return outstanding(lines, members, low, high, off)


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
        new, old = (q[k], log_d[k], mu[k], s[k]), (q_old[k], log_d_old[k], mu_old[k], s_old[k])
        a, b, c = difference(new, old, degrees + all_kept[k], gain, rounding, largest_variance)
        count = cut(k, low[k], high[k], a, b, c, mu_old[k], which, starts, stops, helps, count)
    return which[:count], starts[:count], stops[:count], helps[:count]
