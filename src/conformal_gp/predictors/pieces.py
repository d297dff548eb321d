"""Pieces of the lines of candidate labels of several new rows, and what is known on each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from conformal_gp.conformal.envelope import lower_envelope

Array = NDArray[np.float64]
One = TypeVar("One")
Other = TypeVar("Other")


class Piece(NamedTuple):
    """Labels of one new row between two ends, which may be equal."""

    row: int
    low: float
    high: float

    def clip(self, low: float, high: float) -> Piece:
        """Part of the piece between two labels; its ends are the wrong way round if there is none."""
        return Piece(self.row, max(self.low, low), min(self.high, high))

    @property
    def inside(self) -> float:
        """A label of the piece, not at an end unless the ends are equal."""
        if np.isfinite(self.low) and np.isfinite(self.high):
            return 0.5 * (self.low + self.high)
        if np.isfinite(self.low):
            return self.low + max(1.0, abs(self.low))
        return self.high - max(1.0, abs(self.high)) if np.isfinite(self.high) else 0.0


def divide(piece: Piece, base: Array, curvature: Array, vertex: Array) -> Iterator[tuple[Piece, int]]:
    """Parts of a piece, with the number of the parabola that is lowest there.

    >>> list(divide(Piece(0, 0.0, 9.0), np.array([0.0, 1.0]), np.array([2.0, 1.0]), np.zeros(2)))
    [(Piece(row=0, low=0.0, high=1.0), 0), (Piece(row=0, low=1.0, high=9.0), 1)]
    """
    if piece.low == piece.high:
        yield piece, int(np.argmin(base + curvature * (piece.low - vertex) ** 2))
        return
    breaks, owner = lower_envelope(base, curvature, vertex)
    for low, high, g in zip(breaks[:-1].tolist(), breaks[1:].tolist(), owner.tolist(), strict=True):
        part = piece.clip(low, high)
        if part.low < part.high:
            yield part, g


def join(pieces: Iterable[tuple[Piece, One]]) -> Iterator[tuple[Piece, One]]:
    """Neighbouring pieces of which the same is known become one; those of a row come from left to right.

    >>> list(join([(Piece(0, 1.0, 2.0), "a"), (Piece(0, 2.0, 3.0), "a"), (Piece(0, 3.0, 4.0), "b")]))
    [(Piece(row=0, low=1.0, high=3.0), 'a'), (Piece(row=0, low=3.0, high=4.0), 'b')]
    """
    last: tuple[Piece, One] | None = None
    for piece, known in pieces:
        if last is not None and last[1] == known and (last[0].row, last[0].high) == (piece.row, piece.low):
            last = Piece(piece.row, last[0].low, piece.high), known
            continue
        if last is not None:
            yield last
        last = piece, known
    if last is not None:
        yield last


def overlay(
    first: Iterable[tuple[Piece, One]], second: Iterable[tuple[Piece, Other]]
) -> Iterator[tuple[Piece, tuple[One, Other]]]:
    """Pieces on which one thing is known by each of two divisions of the same labels.

    >>> list(overlay([(Piece(0, 1.0, 4.0), "a")], [(Piece(0, 1.0, 2.0), "b"), (Piece(0, 2.0, 4.0), "c")]))
    [(Piece(row=0, low=1.0, high=2.0), ('a', 'b')), (Piece(row=0, low=2.0, high=4.0), ('a', 'c'))]
    """
    others = _by_row(second)
    for row, pieces in _by_row(first).items():
        i = j = 0
        while i < len(pieces) and j < len(others[row]):
            (piece, one), (limits, other) = pieces[i], others[row][j]
            part = piece.clip(limits.low, limits.high)
            if part.low < part.high or piece.low == piece.high == part.low == part.high:
                yield part, (one, other)
            i, j = i + (piece.high <= limits.high), j + (limits.high <= piece.high)


def _by_row(pieces: Iterable[tuple[Piece, One]]) -> dict[int, list[tuple[Piece, One]]]:
    rows: dict[int, list[tuple[Piece, One]]] = defaultdict(list)
    for piece, known in pieces:
        rows[piece.row].append((piece, known))
    return {row: sorted(members, key=lambda member: member[0]) for row, members in rows.items()}
