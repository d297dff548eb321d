"""Warnings of infinite ends: of levels that the calibration rows do not support, and of rows for other reasons."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from conformal_gp.answers import TestRows
from conformal_gp.arrays import Array
from conformal_gp.calibration import PartedRows
from conformal_gp.conformal.levels import rows_needed

UNDETERMINED = (
    "the training rows do not determine the mean function there, as where an input that is constant in them takes "
    "another value; mean='constant' avoids it"
)
COVERING = (
    "however large its target is, calibration rows score as high (with gamma other than 2, with a difficulty, or where "
    "a calibration row is outside bounds that were learnt)"
)
TRANSFORMED = "transformed back, an end is infinite; another target_transform avoids it"


def warn_where_unsupported(
    rows: TestRows | PartedRows, name: str, asked: Iterable[tuple[Fraction, Fraction]], what: str
) -> None:
    """Warn of levels that the calibration rows do not support, on behalf of a public method.

    ``asked`` holds what the caller asked for, and for each the level of the set that it takes; ``what`` follows.
    """
    for value, level in asked:
        for part in rows.parts:
            infinite = int((part.needed([level]).least < 0.0).sum())
            if not infinite:
                continue
            if part.weights is None:
                has = f"{part.name} has {part.answers.n_calibration}"
                why = f"needs at least {rows_needed(level)} calibration rows, {has}; its {what}"
            else:
                share = f"weights alone are more than {float(1 - level):.3g} of all those of {part.name}"
                why = f"is too high for {infinite} of {len(part.new.X)} rows, whose {share}; their {what}"
            warnings.warn(f"{name}={float(value):g} {why}.", UserWarning, stacklevel=3)


def warn_where_infinite(
    rows: TestRows | PartedRows, name: str, asked: Sequence[tuple[Fraction, Fraction]], what: str, ends: Array
) -> None:
    """Warn once of infinite ends, (m, ends, levels), at levels that the calibration rows support."""
    supported = rows.supported([level for _, level in asked])
    answers = rows.parts[0].answers
    wanted = np.isinf(answers.target.range)
    limits = answers.target.limits
    if limits is not None:  # ends beyond limits of detection are infinite by right
        wanted &= np.isinf([limits.low, limits.high])
    infinite = (np.isneginf(ends) & wanted[0]) | (np.isposinf(ends) & wanted[1])
    found = infinite.any(axis=1) & supported
    if not found.any():
        return
    row, level = np.argwhere(found)[0]
    reason = COVERING
    with np.errstate(all="ignore"):
        variance = answers.model.moments(rows.new.take(slice(row, row + 1)))[1]
    if np.isinf(variance[0]):
        reason = UNDETERMINED
    elif answers.model.one_interval and answers.target.transformation is not None:
        reason = TRANSFORMED
    warnings.warn(
        f"{int(found.any(axis=1).sum())} of {len(ends)} rows have infinite {what}; row {row} at "
        f"{name}={float(asked[level][0]):g}: {reason}.",
        UserWarning,
        stacklevel=3,
    )
