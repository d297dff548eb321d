"""p-values of labels, with ties counted as full conformal prediction counts them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from conformal_gp.conformal.lines import COVERS_ALL, LABEL_ROUNDING, TIE, Lines
from conformal_gp.types import Array, Rows

Counts = NDArray[np.int64]


def counts(lines: Lines, y: Array, signed: bool = False) -> tuple[Counts, Counts]:
    """How many rows score at least as high as each test row, and how many score higher, by more than a tie.

    With ``signed``, scores keep their signs. Where nothing is known of a label, no sign means anything: all rows tie.
    """
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
    return (scores >= own - slack).sum(axis=1), (scores > own + slack).sum(axis=1)


def tied(lines: Lines, y: Array) -> Rows:
    """For each test row the row whose score is nearest to its own at its label; -1 where none ties with it.

    Rows that tie at every label, as those that determine a coefficient of the mean by themselves, are left out.
    """
    if lines.offset.shape[1] == 0:
        return np.full(y.size, -1)
    everywhere = (lines.offset == 0.0) & (np.abs(np.abs(lines.slope) - 1.0) < TIE)
    lines = lines._replace(slope=np.where(everywhere, COVERS_ALL, lines.slope))
    t = (y - lines.centre)[:, None]
    nearest = np.abs(np.abs(lines.offset + lines.slope * t) - np.abs(t)).argmin(axis=1)
    at_least, greater = counts(lines, y)
    return np.where(at_least > greater, nearest, -1)


def shares(at_least: Counts, greater: Counts, n_ranked: int, tie_breaks: Array | None) -> Array:
    """p-values: the share of the n + 1 rows, the test row included, whose score is at least the test row's.

    ``tie_breaks`` are uniform numbers by which ties count; None counts every tie in full.
    """
    if tie_breaks is None:  # every tie counts in full
        tie_breaks = np.ones(at_least.size)
    return (greater + tie_breaks * (at_least - greater + 1.0)) / (n_ranked + 1.0)
