"""p-values of labels, with ties counted as full conformal prediction counts them."""

from __future__ import annotations

import numpy as np

from conformal_gp.conformal.lines import COVERS_ALL, LABEL_ROUNDING, TIE, Lines
from conformal_gp.types import Array


def counts(lines: Lines, y: Array, signed: bool = False, weights: Array | None = None) -> tuple[Array, Array]:
    """How many rows, or of what weight, score at least as high as each test row, and higher, by more than a tie.

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
    each = np.ones(scores.shape[1]) if weights is None else weights
    return (scores >= own - slack) @ each, (scores > own + slack) @ each


def shares(at_least: Array, greater: Array, total: float, tie_breaks: Array | None, own: Array | float = 1.0) -> Array:
    """p-values: the share of all rows, by weight, the test row included, whose score is at least the test row's.

    ``total`` is the weight of the ranked rows and ``own`` that of each test row. ``tie_breaks`` are uniform numbers by
    which ties count; None counts every tie in full.
    """
    if tie_breaks is None:  # every tie counts in full
        tie_breaks = np.ones(at_least.size)
    return np.minimum((greater + tie_breaks * (at_least - greater + own)) / (total + own), 1.0)
