r"""Full conformal prediction with hyperparameters chosen inside the bag: anew for every candidate label.

Each label of a test row selects hyperparameters, by a traced descent (:mod:`conformal_gp.predictors.trace`) or from a
list of candidates. On a segment of labels that select the same, the region is the part of it that lies in the region of
these hyperparameters; the whole region is the union.

**Pruning.** At :math:`\gamma = 2` the region of rank k with hyperparameters g ends within
:math:`\sqrt{s_g}\, \beta_g` of :math:`\mu_g`, where :math:`\beta_g` is the k-th largest
:math:`(|\alpha_i| / P_{ii}) (\sqrt{P_{ii}} + 2 \sqrt{1/\rho_i - P_{ii}})`: an end is
:math:`|\alpha_i| (d_i + |v_i|) / P_{ii}` with :math:`d_i^2 = s_g P_{ii} + v_i^2`, and :math:`v_i^2 \le s_g (1/\rho_i -
P_{ii})` because no leave-one-out variance in the bag is below the row's noise :math:`\rho_i`. Segments outside need no
weights.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import partial
from threading import RLock
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.conformal.lines import LABEL_ROUNDING, TIE, Lines
from conformal_gp.conformal.pvalues import Counts, counts
from conformal_gp.conformal.regions import hulls, regions
from conformal_gp.gp.hyperparameters import Point
from conformal_gp.gp.inputs import LARGEST, Inputs, Scaling, SymmetricScaling
from conformal_gp.predictors.base import Predictor, score_lines
from conformal_gp.predictors.block import Block
from conformal_gp.predictors.outer_labels import Part, outer_labels
from conformal_gp.predictors.segments import Segments
from conformal_gp.predictors.selectors import Candidates, CoarseRows, Descents, Scaled
from conformal_gp.threads import one_blas_thread
from conformal_gp.types import Array, Rows

# Scalings of which factorisations are kept for the next call, besides the training rows' own.
KEPT_SCALINGS = 3
# Weights (training rows times test rows) of the test rows that are followed at a time.
BLOCK_ENTRIES = 2**21
MOST_BLOCK_ROWS = 2048
# With fewer training rows it takes longer to find out which segments need no weights than to compute them.
PRUNED_ROWS = 200


class Plain(NamedTuple):
    """What the training rows select by themselves, which plain predictions use."""

    kernel: Kernel
    noise_variance: float
    amplitude: float
    coefficients: Array
    noise_coefficients: Array
    log_likelihood: float


class AugmentedPredictor(Predictor):
    """Full conformal prediction with hyperparameters chosen inside the bag.

    Parameters
    ----------
    choices : Candidates or Descents
        What to choose from.
    X, y : ndarray of shape (l, d) and (l,)
        Training rows.
    scale_inputs : bool
        Whether inputs are scaled, by all rows of the bag.
    mean : str
        Mean function.
    ranked : ndarray of int, or None
        Rows that are ranked; None ranks all.
    gamma : float
        Root of the variance in the nonconformity measure.
    n_jobs : int or None
        Threads over blocks of test rows, for plain predictions.
    """

    def __init__(
        self,
        choices: Candidates | Descents,
        X: Array,
        y: Array,
        scale_inputs: bool,
        mean: str,
        ranked: Rows | None,
        gamma: float,
        n_jobs: int | None,
    ):
        self._choices = choices
        self._X = X
        self._y = y
        self._scale_inputs = scale_inputs
        self._scaling = SymmetricScaling(X, choices.is_stationary() and not choices.varying_noise)
        self._mean = mean
        self._ranked = np.arange(y.size) if ranked is None else ranked
        self._gamma = gamma
        self.n_jobs = n_jobs
        self.n_rows = y.size
        self.n_ranked = self._ranked.size
        self._coarse = CoarseRows.of(X)
        self._scaled: OrderedDict[str, Scaled] = OrderedDict()
        self._lock = RLock()
        self._main = self._keys(None)[0]
        self._best = self._under(self._main).training_choice()
        self.plain = self._plain()

    def _under(self, key: Rows) -> Scaled:
        """The training rows under the scaling that ``key`` names; the training rows' own is never let go."""
        name = key.tobytes().hex()
        with self._lock:
            if name not in self._scaled:
                main = self._main.tobytes().hex()
                others = [known for known in self._scaled if known != main]
                if len(others) >= KEPT_SCALINGS:
                    del self._scaled[others[0]]
                scaling, length = self._scaling_of(key[:-1])
                standard = self._scaling.scaling(key[:-1]) if self._choices.varying_noise else None
                inputs, reach = Inputs(self._X, scaling, self._mean, standard=standard), 2.0 ** float(key[-1])
                selectors = self._choices.selectors(inputs, self._y, self._ranked, self._coarse, length, reach)
                self._scaled[name] = Scaled(inputs, selectors)
            return self._scaled[name]

    def _scaling_of(self, key: Rows) -> tuple[Scaling, float]:
        """The scaling that a key names, and the typical scale of inputs under it."""
        scaling = self._scaling.scaling(key)
        if self._scale_inputs:
            return scaling, 1.0
        length = float(np.exp(np.log(scaling.scale).mean()))
        if not self._choices.is_stationary():
            return Scaling.none(self._X), length
        return Scaling(scaling.location, np.ones_like(scaling.scale)), length

    def _keys(self, X: Array | None) -> Rows:
        """Key of the training rows with each test row, or by themselves.

        Besides the scaling it names how far out the second farthest row of the bag is, as a power of 2, if variances
        may grow with inputs: what then counts as too little noise must be the same whichever row is the test row.
        """
        keys = self._scaling.training_key()[None] if X is None else self._scaling.keys(X)
        reach = np.zeros(keys.shape[0], dtype=np.int64)
        if not self._choices.is_stationary():
            for key in np.unique(keys, axis=0):
                scaling, same = self._scaling_of(key)[0], (keys == key).all(axis=1)
                distances = np.sort(np.linalg.norm(scaling.transform(self._X), axis=1))[-2:]
                if X is not None:
                    own = np.linalg.norm(scaling.transform(X[same]), axis=1)
                    distances = np.clip(own, distances[0], distances[-1])
                reach[same] = np.ceil(np.log2(np.clip(distances[0] if X is None else distances, 1.0, LARGEST)))
        return np.column_stack([keys, reach])

    def _plain(self) -> Plain:
        scaled = self._under(self._main)
        posterior = scaled.posterior(self._best)
        degrees = posterior.degrees_of_freedom
        amplitude = posterior.quadratic / degrees
        with np.errstate(divide="ignore"):
            profile = degrees * (1.0 + np.log(2.0 * np.pi * amplitude)) + posterior.log_determinant
        return Plain(
            posterior.kernel,
            posterior.noise_variance,
            amplitude,
            scaled.inputs.coefficients(posterior.coefficients),
            scaled.noise_coefficients(self._best),
            -0.5 * float(profile),
        )

    def mean(self, X: Array) -> Array:
        """See Predictor."""
        scaled = self._under(self._main)
        posterior = scaled.posterior(self._best)
        blocks = self.map_blocks(lambda rows: posterior.mean(scaled.inputs.new(X[rows])), np.arange(X.shape[0]))
        return np.concatenate(blocks)

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """See Predictor."""
        scaled = self._under(self._main)
        posterior = scaled.posterior(self._best)
        blocks = self.map_blocks(
            lambda rows: posterior.moments(scaled.seen(self._best, X[rows]))[1:3], np.arange(X.shape[0])
        )
        mean, variance = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return mean, variance * self.plain.amplitude

    def mean_and_covariance(self, X: Array) -> tuple[Array, Array]:
        """See Predictor."""
        scaled = self._under(self._main)
        return self.mean(X), self.plain.amplitude * scaled.posterior(self._best).covariance(scaled.seen(self._best, X))

    def _blocks(self, X: Array) -> Iterator[tuple[Rows, Scaled]]:
        """Test rows in blocks that share a scaling; those whose mean the training rows do not determine left out."""
        keys, member = np.unique(self._keys(X), axis=0, return_inverse=True)
        size = max(1, min(MOST_BLOCK_ROWS, BLOCK_ENTRIES // self.n_rows))
        for i, key in enumerate(keys):
            scaled = self._under(key)
            rows = np.flatnonzero(member.ravel() == i)
            rows = rows[~scaled.inputs.new(X[rows]).undetermined]
            for start in range(0, rows.size, size):
                yield rows[start : start + size], scaled

    def _lines(self, block: Block, key: tuple[int, Point], rows: Rows) -> Lines:
        return score_lines(block.bag.posterior(key[1]), self._ranked, block.predict(key[1], rows), self._gamma)

    def hulls(self, X: Array, ranks: Sequence[int]) -> Array:
        """See Predictor."""
        ends = np.empty((X.shape[0], 2, len(ranks)))
        for level, found in enumerate(self._regions(X, ranks)):
            for j, region in enumerate(found):
                if region.shape[0] > 0:
                    ends[j, :, level] = region[0, 0], region[-1, 1]
                else:
                    ends[j, :, level] = self._most_conforming(X[j : j + 1], ranks[level])
        return ends

    def _most_conforming(self, X: Array, rank: int) -> float:
        """A label among the best of one test row, whose region of a rank is empty: intervals of all levels hold it."""
        not_empty = [region for (region,) in self._regions(X, range(1, rank)) if region.shape[0] > 0]
        return 0.5 * float(not_empty[-1][0, 0] + not_empty[-1][-1, 1])

    def regions(self, X: Array, rank: int) -> list[Array]:
        """See Predictor."""
        return self._regions(X, [rank])[0]

    def _regions(self, X: Array, ranks: Sequence[int]) -> list[list[Array]]:
        """Regions by level, then by test row."""
        line = np.array([[-np.inf, np.inf]])
        found: list[list[Array]] = [[line] * X.shape[0] for _ in ranks]
        levels = [level for level, rank in enumerate(ranks) if rank > 0]
        if not levels:
            return found
        wanted = [ranks[level] for level in levels]
        with one_blas_thread(self.n_rows):
            for rows, scaled in self._blocks(X):
                blocks, chosen = scaled.select_lines(X[rows])
                parts: list[list[list[Array]]] = [[[] for _ in rows] for _ in levels]
                for key, segments in chosen.items():
                    self._add_regions(scaled, blocks[key[0]], key, segments, wanted, parts)
                for level, by_row in zip(levels, parts, strict=True):
                    for row, pieces in zip(rows, by_row, strict=True):
                        found[level][row] = _union(pieces)
        return found

    def _add_regions(
        self,
        scaled: Scaled,
        block: Block,
        key: tuple[int, Point],
        segments: Segments,
        ranks: list[int],
        parts: list[list[list[Array]]],
    ) -> None:
        """Parts of the regions on segments that select the same hyperparameters."""
        if self._gamma == 2.0 and self.n_rows >= PRUNED_ROWS:
            mean, variance = block.mean_and_variance(key[1], segments)
            reach = np.sqrt(variance) * scaled.reach(key, self._ranked)[min(ranks) - 1]
            segments = segments.take((segments.low <= mean + reach) & (segments.high >= mean - reach))
        if segments.size == 0:
            return
        rows, members = np.unique(segments.row, return_inverse=True)
        lines = self._lines(block, key, rows)
        if self._gamma == 2.0:  # one interval each: all levels in one selection
            ends = hulls(lines, ranks)
            by_level = [[row[None, :, level] for row in ends] for level in range(len(ranks))]
        else:
            by_level = [regions(lines, rank) for rank in ranks]
        for row, low, high, j in zip(*(c.tolist() for c in (*segments[:3], members)), strict=True):
            for level, found in enumerate(by_level):
                piece = _clip(found[j], low, high)
                if piece.size:
                    parts[level][row].append(piece)

    def bounds(self, X: Array, below: Sequence[int], above: Sequence[int]) -> Array:
        """See Predictor."""
        found = np.tile(np.repeat([-np.inf, np.inf], [len(below), len(above)]), (X.shape[0], 1))
        with one_blas_thread(self.n_rows):
            for rows, scaled in self._blocks(X):
                blocks, chosen = scaled.select_lines(X[rows])
                parts = [self._part(scaled, blocks[key[0]], key, segments) for key, segments in chosen.items()]
                found[rows] = outer_labels(parts, rows.size, below, above)
        return found

    def _part(self, scaled: Scaled, block: Block, key: tuple[int, Point], segments: Segments) -> Part:
        """Segments that select the same hyperparameters; only with gamma = 2 is there a limit to the reach."""
        lines = partial(self._lines, block, key)
        if self._gamma != 2.0:
            anywhere = np.full(self.n_ranked, np.inf)
            return Part(segments, np.zeros(segments.size), np.ones(segments.size), anywhere, lines)
        mean, variance = block.mean_and_variance(key[1], segments)
        return Part(segments, mean, np.sqrt(variance), scaled.reach(key, self._ranked), lines)

    def counts(self, X: Array, y: Array, signed: bool) -> tuple[Counts, Counts]:
        """See Predictor."""
        # a test row whose mean is not determined scores 0, as do training rows that alone determine a coefficient
        others = 0 if signed else np.count_nonzero(self._under(self._main).posterior(self._best).diagonal[self._ranked])
        at_least, greater = np.repeat([[self.n_ranked], [others]], y.size, axis=1)
        with one_blas_thread(self.n_rows):
            for rows, scaled in self._blocks(X):
                blocks, chosen = scaled.select(X[rows], Segments.labels(y[rows]))
                for key, segments in chosen.items():
                    lines = self._lines(blocks[key[0]], key, segments.row)
                    own = rows[segments.row]
                    at_least[own], greater[own] = counts(lines, segments.low, signed)
        return at_least, greater


def _clip(region: Array, low: float, high: float) -> Array:
    """Part of a region between two labels."""
    clipped = np.clip(region, low, high)
    return clipped[(region[:, 0] <= high) & (region[:, 1] >= low)]


def _union(parts: list[Array]) -> Array:
    """Union of closed intervals: those that touch become one, up to rounding.

    Where two decisions turn at the same label but for rounding, a sliver between both takes neither way.
    """
    pieces = np.concatenate([np.empty((0, 2)), *parts])
    pieces = pieces[np.lexsort((pieces[:, 1], pieces[:, 0]))]
    if pieces.shape[0] < 2:
        return pieces
    ends = pieces[np.isfinite(pieces)]
    sliver = TIE * np.ptp(ends) + 8.0 * LABEL_ROUNDING * np.abs(ends).max() if ends.size else 0.0
    merged = [pieces[0].copy()]
    for piece in pieces[1:]:
        if piece[0] <= merged[-1][1] + sliver:
            merged[-1][1] = max(merged[-1][1], piece[1])
        else:
            merged.append(piece.copy())
    return np.array(merged)
