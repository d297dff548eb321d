r"""Full conformal prediction with hyperparameters chosen inside the bag of training rows and test row.

Each label of a test row chooses from a list of candidates, by the restricted likelihood of all l + 1 rows. At candidate
g the process has covariance :math:`a (K_g + \rho_g I)` with the amplitude a profiled out. Of n rows with a mean basis
of p columns, minus twice its restricted log likelihood is, but for constants, :math:`\nu \log (y'Py) + \log D` with
:math:`\nu = n - p` and :math:`D = |K + \rho I| |H'CH|`. By the block form of the inverse, a test row with label y turns
the training rows' Q and D into :math:`Q + (y - \mu)^2 / s` and :math:`D s`. So g is chosen where

.. math:: (D_g s_g)^{1/\nu} \left( Q_g + (y - \mu_g)^2 / s_g \right)

is least: **a parabola in y**, and the choice is the lower envelope of parabolas. Where noise is known, the amplitude is
part of the candidate, and :math:`Q_g + (y - \mu_g)^2 / s_g + \log (D_g s_g)` is a parabola again. On each segment of
labels that choose the same candidate the region is the fixed-hyperparameter one; the whole region is the union.

The list may not depend on the rows that are ranked, and inputs are scaled alike for all rows of the bag
(:class:`~conformal_gp.gp.inputs.SymmetricScaling`), so that no row is treated differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.conformal.lines import Lines
from conformal_gp.conformal.one_sided import mirrored, upper_bounds
from conformal_gp.conformal.pvalues import counts
from conformal_gp.conformal.regions import SLOPE_TIE, hulls, regions, widened
from conformal_gp.conformal.weights import Needed
from conformal_gp.gp.inputs import Inputs, NewInputs, Points, Scaling, SymmetricScaling
from conformal_gp.gp.posterior import EXPLAINED, Posterior
from conformal_gp.gp.spectrum import Spectrum
from conformal_gp.kernels import multiplied
from conformal_gp.predictors.base import Part, Process, score_lines, union
from conformal_gp.predictors.envelope import Parabolas, Segments, lower_envelope
from conformal_gp.types import Array, Rows

# Factorisations are kept of at least and at most so many scalings, as long as they take so many bytes.
KEPT_SCALINGS = (2, 64)
KEPT_BYTES = 2**27
# A candidate is chosen only if its noise is at least this share of the largest prior variance in the bag: with less,
# rounding decides. Prior variances grow with far-out inputs where kernels are not stationary.
LEAST_NOISE = 1e-13


class Candidate(NamedTuple):
    """One setting of the hyperparameters; up to a common factor of signal and noise, unless noise is known."""

    kernel: Kernel
    noise_variance: float


class Chosen(NamedTuple):
    """What the training rows choose by themselves, in units of the labels."""

    candidate: Candidate
    amplitude: float
    coefficients: Array
    log_likelihood: float


class BagPredictor(Process):
    """Answers with a list of candidates inside the bag.

    Parameters
    ----------
    candidates : list of Candidate
        The list.
    rows : Points
        Training inputs.
    y : ndarray of shape (l,)
        Training labels.
    scale_inputs : bool
        Whether inputs are scaled.
    mean : {"zero", "constant", "linear"}
        Mean function.
    ranked : ndarray of int, or None
        Rows that are ranked against the test row; None ranks all.
    gamma : float
        Normalisation exponent.
    n_jobs : int or None
        Threads over blocks of test rows.
    relative : bool, default=False
        Whether variances of the candidates are in units of the known noise of the bag: its median, rounded to a power
        of 4.
    """

    def __init__(
        self,
        candidates: list[Candidate],
        rows: Points,
        y: Array,
        scale_inputs: bool,
        mean: str,
        ranked: Rows | None,
        gamma: float,
        n_jobs: int | None,
        relative: bool = False,
    ):
        self._candidates = candidates
        self._rows = rows
        self._y = y
        self._mean = mean
        self._gamma = gamma
        self._ranked: Rows | slice = slice(None) if ranked is None else ranked
        self.n_jobs = n_jobs
        self.n_rows = y.size
        self.ranked = np.arange(y.size)[self._ranked]
        stationary = all(candidate.kernel.is_stationary() for candidate in candidates)
        self._relative = relative
        self._scaling = SymmetricScaling(rows.X, stationary) if scale_inputs else None
        size = 8 * y.size**2 * len(candidates)
        self._scaled = lru_cache(int(np.clip(KEPT_BYTES // size, *KEPT_SCALINGS)))(self._make_scaled)
        key = self._unit_keys(np.median(rows.known, keepdims=True))[0]
        self._plain = self._scaled((*key, *(() if self._scaling is None else self._scaling.training_key())))
        self.inputs = self._plain.inputs

    def among(self, rows: Rows) -> Self:
        """See Predictor: the selection still is by all rows."""
        other = copy(self)
        other.ranked = other._ranked = rows
        return other

    def _unit_keys(self, known: Array) -> Rows:
        """Units of the candidates' variances, as powers of 4, of the training rows with each test row, (m, 1)."""
        if not self._relative:
            return np.zeros((known.size, 1), dtype=np.int64)
        ordered, k = np.sort(self._rows.known), self.n_rows // 2
        median = np.clip(known, ordered[k - 1] if k else 0.0, ordered[min(k, self.n_rows - 1)])
        return np.round(np.log(np.where(median > 0.0, median, 1.0)) / np.log(4.0)).astype(np.int64)[:, None]

    def _make_scaled(self, key: tuple[int, ...]) -> _ScaledBag:
        """The training rows under a scaling, with candidates in a unit."""
        unit, scaling = 4.0 ** key[0], Scaling.none(self._rows.X)
        if self._scaling is not None:
            scaling = self._scaling.scaling(np.array(key[1:]))
        candidates = self._candidates
        if unit != 1.0:
            candidates = [Candidate(multiplied(kernel, unit), unit * noise) for kernel, noise in candidates]
        return _ScaledBag(candidates, Inputs(self._rows, scaling, self._mean), self._y)

    @property
    def chosen(self) -> Chosen:
        """What the training rows choose by themselves."""
        bag = self._plain
        posterior = bag.posterior(bag.chosen)
        amplitude = posterior.quadratic / posterior.degrees_of_freedom if bag.profiled else 1.0
        freedom = posterior.degrees_of_freedom
        log_likelihood = posterior.log_marginal_likelihood
        if bag.profiled and amplitude > 0.0:
            log_likelihood = -0.5 * (freedom * np.log(2.0 * np.pi * np.e * amplitude) + posterior.log_determinant)
        coefficients = bag.inputs.coefficients(posterior.coefficients)
        return Chosen(bag.candidates[bag.chosen], amplitude, coefficients, log_likelihood)

    def mean(self, new: Points) -> Array:
        """See Predictor: with what the training rows choose by themselves."""
        bag = self._plain
        posterior = bag.posterior(bag.chosen)
        return np.concatenate(
            self.map_blocks(lambda block: posterior.mean(bag.inputs.new(new.take(block))), len(new.X))
        )

    def mean_and_variance(self, new: Points) -> tuple[Array, Array]:
        """See Predictor."""
        bag, amplitude = self._plain, self.chosen.amplitude
        posterior = bag.posterior(bag.chosen)
        blocks = self.map_blocks(lambda block: posterior.moments(bag.inputs.new(new.take(block))), len(new.X))
        mean, variance = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return mean, amplitude * variance

    def mean_and_covariance(self, new: Points) -> tuple[Array, Array]:
        """See Predictor."""
        bag = self._plain
        covariance = bag.posterior(bag.chosen).covariance(bag.inputs.new(new))
        return self.mean(new), self.chosen.amplitude * covariance

    def hulls(self, new: Points, needed: Needed) -> Array:
        """See Predictor; both ends are the mean where the region is empty."""
        ends = np.tile(np.nan, (len(new.X), 2, needed.n_levels))

        def extend(lines: Lines, segments: Segments) -> None:
            exact, wide = _hulls_within(lines, needed.take(segments.row), segments)
            low, high = segments.low[:, None], segments.high[:, None]
            there = (exact[:, 0] < high) & (exact[:, 1] >= low)
            np.fmin.at(ends[:, 0], segments.row, np.where(there, np.maximum(wide[:, 0], low), np.nan))
            np.fmax.at(ends[:, 1], segments.row, np.where(there, np.minimum(wide[:, 1], high), np.nan))

        self._for_segments(new, extend)
        empty = np.isnan(ends)
        return np.where(empty, self.mean(new)[:, None, None], ends) if empty.any() else ends

    def regions(self, new: Points, needed: Needed) -> list[Array]:
        """See Predictor."""
        found: list[list[Array]] = [[] for _ in new.X]

        def extend(lines: Lines, segments: Segments) -> None:
            own_needed = needed.take(segments.row)
            exact, wide = regions(lines, own_needed, widened=False), regions(lines, own_needed)
            for own, outer, row, low, high in zip(exact, wide, segments.row, segments.low, segments.high, strict=True):
                if own.shape == outer.shape:  # widening has joined none
                    outer = outer[(own[:, 0] < high) & (own[:, 1] >= low)]
                outer = outer[(outer[:, 0] < high) & (outer[:, 1] >= low)]
                found[row].append(np.clip(outer, low, high))

        self._for_segments(new, extend)
        return [union(np.concatenate(pieces)) for pieces in found]

    def bounds(self, new: Points, below: Needed, above: Needed) -> Array:
        """See Predictor."""
        n = below.n_levels
        found = np.full((len(new.X), n + above.n_levels), -np.inf)

        def extend(lines: Lines, segments: Segments) -> None:
            sides = (
                (mirrored(lines), below, -segments.high, -segments.low, slice(0, n)),
                (lines, above, segments.low, segments.high, slice(n, None)),
            )
            for seen, needed, low, high, columns in sides:
                own = needed.take(segments.row)
                exact = upper_bounds(seen, own, high, widened=False)
                reached = np.where(exact > low[:, None], upper_bounds(seen, own, high), -np.inf)
                np.maximum.at(found[:, columns], segments.row, reached)

        self._for_segments(new, extend)
        found[:, :n] *= -1.0
        return found

    def counts(self, new: Points, y: Array, signed: bool, weights: Array | None = None) -> tuple[Array, Array]:
        """See Predictor."""
        found = np.empty((2, y.size))

        def fill(block: Rows) -> None:
            for rows, bag, seen in self._bags(new, block):
                chosen = bag.parabolas(seen).least_at(y[rows])
                members, lines = bag.lines(np.arange(rows.size), chosen, seen, self._ranked, self._gamma)
                found[:, rows[members]] = counts(lines, y[rows[members]], signed, weights)

        self._map_rows(fill, len(new.X))
        at_least, greater = found
        return at_least, greater

    def typical(self) -> tuple[float, float]:
        """See Process: with what the training rows choose by themselves."""
        diagonal = self._plain.posterior(self._plain.chosen).diagonal[self._ranked]
        return self.chosen.amplitude / float(np.median(diagonal)), 1.0

    def _map_rows(self, function: Callable[[Rows], Part], n_new: int) -> list[Part]:
        return self.map_blocks(lambda block: function(np.arange(block.start, block.stop)), n_new)

    def _bags(self, new: Points, block: Rows) -> Iterator[tuple[Rows, _ScaledBag, NewInputs]]:
        """Test rows of a block that share a scaling, the training rows under it, and how it sees the test rows."""
        every = self._unit_keys(new.known[block])
        if self._scaling is not None:
            every = np.hstack([every, self._scaling.keys(new.X[block])])
        keys, member = np.unique(every, axis=0, return_inverse=True)
        for number, key in enumerate(keys):
            rows = block[member.ravel() == number]
            bag = self._scaled(tuple(key))
            yield rows, bag, bag.inputs.new(new.take(rows))

    def _for_segments(self, new: Points, function: Callable[[Lines, Segments], None]) -> None:
        """Call ``function`` with segments of labels and with the lines of the candidate that each chooses."""

        def work(block: Rows) -> None:
            for rows, bag, seen in self._bags(new, block):
                segments = lower_envelope(bag.parabolas(seen))
                order, lines = bag.lines(segments.row, segments.candidate, seen, self._ranked, self._gamma)
                own = segments.take(order)
                function(lines, own._replace(row=rows[own.row]))

        self._map_rows(work, len(new.X))


class _ScaledBag:
    """Training rows under one scaling of their inputs, and the process of each candidate."""

    def __init__(self, candidates: list[Candidate], inputs: Inputs, y: Array):
        self.inputs = inputs
        self.candidates = candidates
        self._y = y
        self.profiled = not inputs.known.any()
        self._spectra, self._order = _spectra(candidates, inputs, y)
        self._noise = np.array([candidate.noise_variance for candidate in candidates])
        self._largest = self._each([np.full(s.quadratic.size, s.largest) for s in self._spectra])
        self._log_determinant = self._each([spectrum.log_determinant for spectrum in self._spectra])
        self._quadratic = self._each([spectrum.quadratic for spectrum in self._spectra])
        self._degrees = y.size - inputs.H.shape[1]
        # what is rounding in labels that the mean function explains
        self._rounding = (EXPLAINED * float(np.abs(y).max())) ** 2
        alone = self._criteria(np.zeros((1, self._noise.size)), np.ones((1, 1)), self._largest, self._degrees)
        self.chosen = int(alone.least_at(np.zeros(1))[0])
        self.posterior = lru_cache(None)(self._posterior)

    def _each(self, parts: list[Array]) -> Array:
        """Values of all candidates along the last axis, from those of the spectra."""
        return np.concatenate(parts, axis=-1)[..., self._order]

    def _posterior(self, candidate: int) -> Posterior:
        return Posterior(*self.candidates[candidate], self.inputs, self._y, checked=False)

    def _criteria(self, mean: Array, s: Array, largest: Array, degrees: Array | int) -> Parabolas:
        """Criteria of all candidates, (m, G), of means and variances of the test rows' labels.

        ``largest`` is the largest prior variance in the bag, without noise.
        """
        usable = self._noise >= LEAST_NOISE * largest if self.profiled else np.ones(largest.shape, dtype=bool)
        if not usable.any(axis=-1).all():
            raise LinAlgError(
                "no candidate has noise enough for inputs that are as far out as these; scale inputs, or leave "
                "far-out rows out."
            )
        log_determinant = self._log_determinant + np.log(s)
        level, steepness = self._quadratic + log_determinant, 1.0 / s + np.zeros(mean.shape)
        if self.profiled:
            exponent = np.where(usable, log_determinant, np.inf) / degrees
            factor = np.exp(exponent - exponent.min(axis=1, keepdims=True))
            with np.errstate(invalid="ignore"):  # of candidates that cannot be chosen
                level, steepness = factor * (self._quadratic + self._rounding), factor / s
        return Parabolas(mean, np.where(usable, steepness, np.inf), np.where(usable, level, np.inf))

    def parabolas(self, new: NewInputs) -> Parabolas:
        """Criteria of all candidates for some test rows."""
        moments = [spectrum.moments(new) for spectrum in self._spectra]
        mean, s = (self._each(list(part)) for part in zip(*moments, strict=True))
        # a row whose mean is not determined adds a coefficient of its own, and nothing to the likelihood
        silent = np.isinf(s)
        degrees = self._degrees + 1 - silent.any(axis=1, keepdims=True)
        largest = np.maximum(self._largest, self._prior(new))
        found = self._criteria(mean, np.where(silent, 1.0, s), largest, degrees)
        return found._replace(steepness=np.where(silent, np.finfo(float).tiny, found.steepness))

    def _prior(self, new: NewInputs) -> Array:
        """Prior variances of new labels with all candidates, without noise, (m, G)."""
        parts = [np.repeat(spectrum.prior(new)[:, None], spectrum.quadratic.size, axis=1) for spectrum in self._spectra]
        return self._each(parts)

    def lines(
        self, rows: Rows, candidates: Rows, new: NewInputs, ranked: Rows | slice, gamma: float
    ) -> tuple[Rows, Lines]:
        """Scores of test rows, each with a candidate: in which order, and their lines."""
        order, found = [], []
        for candidate in np.unique(candidates):
            members = np.flatnonzero(candidates == candidate)
            seen = new.take(rows[members])
            posterior = self.posterior(int(candidate))
            found.append(score_lines(posterior, ranked, posterior.predict(seen), gamma))
            order.append(members)
        return np.concatenate(order), Lines.concatenate(found)


def _spectra(candidates: list[Candidate], inputs: Inputs, y: Array) -> tuple[list[Spectrum], Rows]:
    """Processes of candidates, those of one kernel together, and where each candidate is among them."""
    known = inputs.known.any()
    groups: dict[int, list[int]] = {}
    for number, candidate in enumerate(candidates):
        groups.setdefault(number if known else id(candidate.kernel), []).append(number)
    spectra = [
        Spectrum(candidates[numbers[0]].kernel, np.array([candidates[k].noise_variance for k in numbers]), inputs, y)
        for numbers in groups.values()
    ]
    return spectra, np.argsort(np.concatenate(list(groups.values())), kind="stable")


def _hulls_within(lines: Lines, needed: Needed, segments: Segments) -> tuple[Array, Array]:
    """Hulls of what of regions lies within segments, exact and widened; wrong way round where there is nothing."""
    exact = hulls(lines, needed, widened=False)
    if np.abs(lines.slope).max(initial=0.0) < 1.0 - SLOPE_TIE:  # intervals
        return exact, widened(lines, exact)
    found = []
    for ends in (False, True):
        both = np.tile([[np.inf], [-np.inf]], (segments.row.size, 1, needed.n_levels))
        for level in range(needed.n_levels):
            one = needed._replace(least=needed.least[:, [level]])
            for j, pieces in enumerate(regions(lines, one, ends)):
                inside = pieces[(pieces[:, 0] < segments.high[j]) & (pieces[:, 1] >= segments.low[j])]
                if inside.size:
                    both[j, :, level] = inside[0, 0], inside[-1, 1]
        found.append(both)
    return found[0], found[1]
