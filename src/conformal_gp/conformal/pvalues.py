"""p-values of labels, with ties counted as full conformal prediction counts them."""

from __future__ import annotations

import numpy as np

from conformal_gp.arrays import Array, Indices, Mask
from conformal_gp.conformal.lines import COVERS_ALL, LABEL_ROUNDING, TIE, Lines


def counts(lines: Lines, y: Array, signed: bool = False, weights: Array | None = None) -> tuple[Array, Array]:
    """How many rows, or of what weight, score at least as high as each test row, and higher, by more than a tie.

    With ``signed``, scores keep their signs. Where nothing is known of a label, no sign means anything: all rows tie.
    """
    at_least, greater, _ = _compared(lines, y, signed)
    each = np.ones(lines.offset.shape[1]) if weights is None else weights
    return at_least @ each, greater @ each


def _compared(lines: Lines, y: Array, signed: bool) -> tuple[Mask, Mask, Array]:
    """Whether rows score at least as high as each test row, and higher, and by how much they differ, (m, n) each."""
    t = (y - lines.centre)[:, None]
    slack = TIE * (np.abs(lines.offset) + np.abs(t))
    slack += LABEL_ROUNDING * np.abs(y)[:, None] * np.maximum(np.abs(lines.slope), 1.0)
    if lines.rounding is not None:
        slack += lines.rounding.floor[:, None] + lines.rounding.share[:, None] * np.abs(t)
    scores, own = lines.offset + lines.slope * t, t
    if signed:
        slack[(lines.slope == COVERS_ALL).any(axis=1)] = np.inf
    else:
        scores, own = np.abs(scores), np.abs(own)
    return scores >= own - slack, scores > own + slack, np.abs(scores - own)


def tied_rows(lines: Lines, y: Array) -> tuple[Indices, Indices]:
    """How many rows tie with each test row at its label, and which of them is nearest, (m,) each."""
    at_least, greater, gap = _compared(lines, y, signed=False)
    tied = at_least & ~greater
    return tied.sum(axis=1), np.where(tied, gap, np.inf).argmin(axis=1)


def shares(at_least: Array, greater: Array, total: float, tie_breaks: Array | None, own: Array | float = 1.0) -> Array:
    """p-values: the share of all rows, by weight, the test row included, whose score is at least the test row's.

    ``total`` is the weight of the calibration rows and ``own`` that of each test row. ``tie_breaks`` are uniform
    numbers by which ties count; None counts every tie in full.
    """
    if tie_breaks is None:  # every tie counts in full
        tie_breaks = np.ones(at_least.size)
    return np.minimum((greater + tie_breaks * (at_least - greater + own)) / (total + own), 1.0)
