"""Test rows with the calibration rows that each is compared with, and warnings where these leave ends infinite."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from conformal_gp.answers import Answers
from conformal_gp.arrays import Array, Indices, Mask
from conformal_gp.conformal.levels import Needed, rank, rows_needed, shares
from conformal_gp.gp.inputs import Rows
from conformal_gp.models.tuning_rows import batches_needed

UNDETERMINED = (
    "the training rows do not determine the mean function there, as where an input that is constant in them takes "
    "another value; mean='constant' avoids it"
)
COVERING = (
    "however large its target is, calibration rows score as high (with gamma other than 2, with a difficulty, or where "
    "a calibration row is outside bounds that were learnt)"
)
TRANSFORMED = "transformed back, an end is infinite; another target_transform avoids it"


@dataclass(frozen=True, eq=False)
class Part:
    """Test rows that are compared with the same calibration rows."""

    new: Rows
    answers: Answers
    """By the calibration rows."""
    places: Indices
    """(m,): places among all test rows."""
    name: str = "the model"
    """Name of the calibration rows in warnings."""
    weights: Array | None = None
    """(n,): weights of the calibration rows; None if all rows weigh the same."""
    own: Array | float = 1.0
    """(m,): weights of the test rows."""
    n_batches: int = 0
    """Number of batches of the training rows, if the calibration rows are one of each calibration batch."""

    @property
    def total(self) -> float:
        """Weight of the calibration rows."""
        if self.weights is None:
            return float(self.answers.n_calibration)
        return float(self.weights.sum())

    def needed(self, levels: Sequence[Fraction]) -> Needed:
        """Weight of the calibration rows that must cover values of the target, by level."""
        if self.weights is None:
            return Needed.of_ranks([rank(level, self.answers.n_calibration) for level in levels])
        return Needed.of_weights(levels, self.weights, np.asarray(self.own))

    def shares(self, y: Array, ties: Array, signed: bool) -> Array:
        """p-values, or values of the distribution function; see TestRows."""
        at_least, greater = self.answers.counts(self.new, y, signed, self.weights)
        if signed:
            at_least, greater = self.total - greater, self.total - at_least
        return shares(at_least, greater, self.total, ties, self.own)


class TestRows:
    """Test rows, in parts that are each compared with their own calibration rows.

    Parameters
    ----------
    new : Rows
        The test rows.
    parts : list of Part
        The same by what they are compared with; each row is in one of them.
    """

    __test__ = False  # pytest takes it for tests

    def __init__(self, new: Rows, parts: list[Part]):
        self.new = new
        self.parts = parts
        self._order = np.argsort(np.concatenate([part.places for part in parts]))

    @classmethod
    def of(cls, new: Rows, answers: Answers, n_batches: int = 0) -> TestRows:
        """All compared with the same calibration rows."""
        return cls(new, [Part(new, answers, np.arange(len(new.X)), n_batches=n_batches)])

    def joined(self, found: list[Array]) -> Array:
        """Answers of all parts, in the order of the test rows."""
        return np.concatenate(found)[self._order]

    def supported(self, levels: Sequence[Fraction]) -> Mask:
        """Whether the calibration rows support the levels, (m, levels)."""
        least = [part.needed(levels).by_row(part.places.size) for part in self.parts]
        return self.joined(least) >= 0.0

    def intervals(self, levels: Sequence[Fraction]) -> Array:
        """Hulls of the prediction sets of several levels, (m, 2, levels)."""
        return self.joined([part.answers.intervals(part.new, part.needed(levels)) for part in self.parts])

    def sets(self, level: Fraction) -> list[Array]:
        """Prediction sets of one level, each (pieces, 2)."""
        found = [pieces for part in self.parts for pieces in part.answers.sets(part.new, part.needed([level]))]
        return [found[place] for place in self._order]

    def bounds(self, below: Sequence[Fraction], above: Sequence[Fraction]) -> Array:
        """Lower bounds of some levels, then upper bounds of others, (m, levels)."""
        found = [part.answers.bounds(part.new, part.needed(below), part.needed(above)) for part in self.parts]
        return self.joined(found)

    def shares(self, y: Array, ties: Array, signed: bool = False) -> Array:
        """p-values of one value for each test row; with ``signed``, values of the predictive distribution function."""
        return self.joined([part.shares(y[part.places], ties[part.places], signed) for part in self.parts])

    def warn_where_unsupported(self, name: str, asked: Sequence[tuple[Fraction, Fraction]], what: str) -> None:
        """Warn of levels that the calibration rows do not support, on behalf of a public method.

        ``asked`` holds what the caller asked for, and for each the level of the set that it takes; ``what`` follows.
        """
        for value, level in asked:
            for part in self.parts:
                infinite = int((part.needed([level]).least < 0.0).sum())
                if not infinite:
                    continue
                if part.n_batches:
                    needed = f"at least {rows_needed(level)} calibration batches, by default of {batches_needed(level)}"
                    has = f"there are {part.answers.n_calibration} of {part.n_batches}"
                    why = f"needs {needed} batches, {has}; its {what}"
                elif part.weights is None:
                    has = f"{part.name} has {part.answers.n_calibration}"
                    why = f"needs at least {rows_needed(level)} calibration rows, {has}; its {what}"
                else:
                    share = f"weights alone are more than {float(1 - level):.3g} of all those of {part.name}"
                    why = f"is too high for {infinite} of {part.places.size} rows, whose {share}; their {what}"
                warnings.warn(f"{name}={float(value):g} {why}.", UserWarning, stacklevel=3)

    def warn_where_infinite(
        self, name: str, asked: Sequence[tuple[Fraction, Fraction]], what: str, ends: Array
    ) -> None:
        """Warn once of infinite ends, (m, ends, levels), at levels that the calibration rows support."""
        supported = self.supported([level for _, level in asked])
        answers = self.parts[0].answers
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
            variance = answers.model.moments(self.new.take(slice(row, row + 1)))[1]
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
