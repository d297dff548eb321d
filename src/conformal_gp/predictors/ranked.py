"""Test rows, each with the training rows that it is ranked among: all, or those of its group, by weight."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np

from conformal_gp.conformal.levels import rank, rows_needed
from conformal_gp.conformal.pvalues import shares
from conformal_gp.conformal.weights import Needed
from conformal_gp.gp.inputs import Points
from conformal_gp.predictors.base import Predictor
from conformal_gp.types import Array, Rows

Answer = TypeVar("Answer")


class Part(NamedTuple):
    """Test rows that are ranked among the same training rows."""

    name: str
    """What warnings call the training rows."""
    predictor: Predictor
    """The ranked rows."""
    members: Rows
    """(k,): numbers of the test rows."""
    weights: Array | None = None
    """(n,): weights of the ranked rows; None if all rows weigh the same."""
    own: Array | float = 1.0
    """(k,): weights of the test rows."""

    def needed(self, levels: Sequence[Fraction]) -> Needed:
        """What weight of the ranked rows must cover labels."""
        if self.weights is None:
            return Needed.of_ranks([rank(level, self.predictor.n_ranked) for level in levels])
        return Needed.of_weights(levels, self.weights, np.asarray(self.own))

    @property
    def total(self) -> float:
        """Weight of the ranked rows."""
        return float(self.predictor.n_ranked if self.weights is None else self.weights.sum())


class RankedRows:
    """Answers for checked test rows, by their parts.

    Parameters
    ----------
    new : Points
        Test rows.
    parts : list of Part
        Each test row is in one of them.
    """

    def __init__(self, new: Points, parts: list[Part]):
        self.new = new
        self._parts = parts
        self._order = np.argsort(np.concatenate([part.members for part in parts]))

    @property
    def fewest(self) -> int:
        """Least number of rows that a test row is ranked among."""
        return min(part.predictor.n_ranked for part in self._parts)

    def each(self, function: Callable[[Part, Points], Answer]) -> list[Answer]:
        """Answers for the test rows of each part."""
        return [function(part, self.new.take(part.members)) for part in self._parts]

    def joined(self, found: list[Array]) -> Array:
        """Answers of all parts, in the order of the test rows."""
        return np.concatenate(found)[self._order]

    def hulls(self, levels: Sequence[Fraction]) -> Array:
        """Convex hulls of the regions of several levels, (m, 2, levels)."""
        return self.joined(self.each(lambda part, new: part.predictor.hulls(new, part.needed(levels))))

    def regions(self, level: Fraction) -> list[Array]:
        """Exact regions of one level, each (pieces, 2)."""
        found = self.each(lambda part, new: part.predictor.regions(new, part.needed([level])))
        together = [region for regions in found for region in regions]
        return [together[place] for place in self._order]

    def bounds(self, below: Sequence[Fraction], above: Sequence[Fraction]) -> Array:
        """Lower bounds of some levels, then upper bounds of others, (m, levels)."""
        return self.joined(
            self.each(lambda part, new: part.predictor.bounds(new, part.needed(below), part.needed(above)))
        )

    def shares(self, y: Array, tie_breaks: Array | None, signed: bool = False) -> Array:
        """p-values of one label for each test row; with ``signed``, values of the predictive distribution function."""

        def answer(part: Part, new: Points) -> Array:
            at_least, greater = part.predictor.counts(new, y[part.members], signed, part.weights)
            if signed:
                at_least, greater = part.total - greater, part.total - at_least
            ties = None if tie_breaks is None else tie_breaks[part.members]
            return shares(at_least, greater, part.total, ties, part.own)

        return self.joined(self.each(answer))

    def warn_where_infinite(self, name: str, asked: Iterable[tuple[Fraction, Fraction]], what: str) -> None:
        """Warn of levels that the ranked rows do not support, on behalf of a public method.

        ``asked`` holds what the caller asked for, and for each the level of the region that it takes.
        """
        for value, level in asked:
            for part in self._parts:
                infinite = int((part.needed([level]).least < 0.0).sum())
                if infinite and part.weights is None:
                    has = f"{part.name} has {part.predictor.n_ranked}"
                    why = f"needs at least {rows_needed(level)} rows to rank, {has}; its {what}"
                elif infinite:
                    share = f"weights alone are more than {float(1 - level):.3g} of all those of {part.name}"
                    why = f"is too high for {infinite} of {part.members.size} rows, whose {share}; their {what}"
                else:
                    continue
                warnings.warn(f"{name}={float(value):g} {why} are infinite.", UserWarning, stacklevel=3)
