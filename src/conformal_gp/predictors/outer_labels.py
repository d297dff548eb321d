r"""One-sided bounds where hyperparameters are chosen inside the bag: outermost labels over segments.

On a segment of labels that select the same hyperparameters, the upper region is the part of it that lies in the upper
region of these hyperparameters (:mod:`conformal_gp.conformal.one_sided`). Their union need not be a ray; the bound is
its supremum, the outermost label.

**Pruning.** With :math:`\beta_g` and :math:`\gamma = 2` as in :mod:`conformal_gp.predictors.augmented`, every threshold
with hyperparameters g is within :math:`\sqrt{s_g}` times its row's reach of :math:`\mu_g`. So the region of rank k
holds all labels up to :math:`\mu_g` less the k-th smallest reach, and none above :math:`\mu_g` plus the k-th largest.
A segment above the latter has no part in the union. One that ends below a label which is known to be in the union
cannot hold its supremum. Neither needs weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from conformal_gp.conformal.lines import Lines
from conformal_gp.conformal.one_sided import mirrored, upper_bounds
from conformal_gp.predictors.segments import Segments
from conformal_gp.types import Array, Mask, Rows


class Part(NamedTuple):
    """Segments that select the same hyperparameters."""

    segments: Segments
    """n segments of labels of m test rows."""
    mean: Array
    """(n,): means of the test rows' labels."""
    deviation: Array
    """(n,): their standard deviations."""
    reach: Array
    """(ranked rows,): how far thresholds may be from the mean, in standard deviations, descending."""
    lines: Callable[[Rows], Lines]
    """Lines of some of the test rows."""


def outer_labels(parts: Sequence[Part], n_rows: int, below: Sequence[int], above: Sequence[int]) -> Array:
    """Lower bounds of some ranks, then upper bounds of others.

    Parameters
    ----------
    parts : sequence of Part
        Their segments cover the lines of labels of all test rows.
    n_rows : int
        Number m of test rows.
    below, above : sequence of int
        Ranks, as in :func:`conformal_gp.conformal.one_sided.bounds`.

    Returns
    -------
    bounds : ndarray of shape (m, len(below) + len(above))
        The lower bounds, then the upper bounds.
    """
    sides = [_Side(n_rows, below, is_upper=False), _Side(n_rows, above, is_upper=True)]
    wanted = [side for side in sides if side.ranks.size > 0]
    for side in wanted:
        side.raise_floor(parts)
    for part in parts:
        masks = [side.undecided(part) for side in wanted]
        needed = np.logical_or.reduce(masks) if masks else np.empty(0, dtype=bool)
        if not needed.any():
            continue
        rows, members = np.unique(part.segments.row[needed], return_inverse=True)
        lines = part.lines(rows)
        for side, mask in zip(wanted, masks, strict=True):
            side.add(lines, members[mask[needed]], part.segments.take(mask))
    return np.concatenate([side.bounds() for side in sides], axis=1)


class _Side:
    """Upper bounds, or lower bounds as upper bounds of the labels with their signs changed."""

    def __init__(self, n_rows: int, ranks: Sequence[int], is_upper: bool):
        every = np.array(ranks, dtype=np.int64)
        self._finite = every > 0
        self.ranks = every[self._finite]
        self._is_upper = is_upper
        self._ends = np.full((n_rows, self.ranks.size), -np.inf)
        self._floor = np.full(n_rows, -np.inf)

    def raise_floor(self, parts: Iterable[Part]) -> None:
        """Find, for each test row, a label that is in the regions of all ranks."""
        for part in parts:
            segments, mean = self._seen(part)
            certain = mean - part.deviation * part.reach[-self.ranks.max()]
            holds = segments.low <= certain
            np.maximum.at(self._floor, segments.row[holds], np.minimum(segments.high, certain)[holds])

    def undecided(self, part: Part) -> Mask:
        """Which segments may hold an outermost label."""
        segments, mean = self._seen(part)
        farthest = mean + part.deviation * part.reach[self.ranks.min() - 1]
        return (segments.low <= farthest) & (segments.high >= self._floor[segments.row])

    def add(self, lines: Lines, members: Rows, segments: Segments) -> None:
        """Take account of segments; ``members`` says which of the lines are theirs."""
        if segments.size == 0:
            return
        if not self._is_upper:
            lines, segments = mirrored(lines), segments.mirrored()
        found = upper_bounds(lines.take(members), self.ranks.tolist(), limit=segments.high)
        np.maximum.at(self._ends, segments.row, np.where(found >= segments.low[:, None], found, -np.inf))

    def bounds(self) -> Array:
        """Bounds of all ranks, those of rank 0 infinite."""
        found = np.full((self._ends.shape[0], self._finite.size), np.inf)
        found[:, self._finite] = self._ends
        return found if self._is_upper else -found

    def _seen(self, part: Part) -> tuple[Segments, Array]:
        """Segments and means with the signs of this side."""
        return (part.segments, part.mean) if self._is_upper else (part.segments.mirrored(), -part.mean)
