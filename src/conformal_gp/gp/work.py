r"""What compiled functions know of a small bag: its rows, and processes at points of the lattice.

Settings of hyperparameters are points of a lattice (:mod:`conformal_gp.gp.hyperparameters`). What is known of each is
kept in arrays, a *slot* for each point, found again by hashing (:mod:`conformal_gp.gp.processes`). When there is no
slot left, all are given up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import types
from numba.experimental import structref

from conformal_gp._compiled import compiled
from conformal_gp.gp.descent import Rule
from conformal_gp.gp.hyperparameters import Family
from conformal_gp.types import Array, Mask, Rows

# Bytes for what is known at points, most of which is not touched where bags are small.
KEPT_BYTES = 2**28
# Points that one step of a descent may need at the same time are fewer.
FEWEST_SLOTS = 128
# Rows that were set aside, and test rows, of which is known what it takes; later ones take the places of earlier ones.
RECENT = 4096
# In place of a training row that is set aside: the test row.
TEST_ROW = -1


class TrainingRows(NamedTuple):
    """Training rows."""

    X: Array
    """(l, d): scaled inputs."""
    y: Array
    """(l,): labels."""
    H: Array
    """(p, l): mean basis, orthonormal."""
    features: Array
    """(l, k): what noise may vary with; k = 0 where it is constant."""
    ranked: Rows
    """(n,): those that may be set aside."""


class NewRows(NamedTuple):
    """Test rows, or none."""

    x: Array
    """(m, d): scaled inputs."""
    h: Array
    """(m, p): mean basis."""
    new_features: Array
    """(m, k): what their noise may vary with."""
    undetermined: Mask
    """(m,): whether the mean depends on a coefficient that the training rows do not determine."""
    absent: bool
    """Whether there is no test row: the training rows are by themselves."""


class Processes(NamedTuple):
    """What is known at the points that have a slot."""

    used: Rows
    """(2,): number of slots that are taken, and of points that were visited."""
    table: Rows
    """(2^k,): slots by the hash of their point; -1 where there is none."""
    points: Rows
    """(slots, c + 1): the point, and its number among those that were visited, from 1 on."""
    numbers: Array
    """(slots, 3 + p + p² + d + k + 1): see NOISE and what follows it; coefficients, r, trace of P times derivatives."""
    vectors: Array
    """(slots, 4 + p + d, l): see ALPHA and what follows it; q; columns of inputs in units of the length scales."""
    factors: Array
    """(slots, l, l): L, lower triangle."""
    visited: Array
    """(points visited, l, l): above the diagonal P, below it S of :mod:`conformal_gp.gp.slopes`."""
    left_out: Rows
    """(k,): slot times l plus training row, of what follows; -1 for none."""
    left_numbers: Array
    """(k, 2 + p): P_ii of that row, y'Py of the others, coefficients of their first fit."""
    left_vectors: Array
    """(k, 3, l): see COLUMN and what follows it."""
    met: Rows
    """(k,): slot times m plus test row, of what follows; -1 for none."""
    met_numbers: Array
    """(k, 2): mean and variance of the test row's label."""
    met_vectors: Array
    """(k, 1, l): see ``half`` of :class:`~conformal_gp.gp.posterior.Moments`."""
    sloping: Rows
    """(k, 3): slot, test row, and training row set aside, of what follows; -1 for none."""
    slopes: Array
    """(k, 4, c): slopes, see :func:`slopes_of`."""


NOISE, QUADRATIC, LOG_DETERMINANT, N_NUMBERS = range(4)
"""Common noise variance; y'Py; log |A| |H'CH| and the penalty, infinite if A is singular."""
ALPHA, DIAGONAL, ROW_NOISE, NOISE_SLOPE, N_VECTORS = range(5)
"""P y; diagonal of P, 0 for a row that determines a coefficient; noise variance, and its derivative in c'f."""
COLUMN, TARGET, LABELS = range(3)
"""See :class:`~conformal_gp.gp.posterior.Without`."""
VISITED = -1
MEAN, VARIANCE = range(2)


def no_processes(rows: TrainingRows, n_coordinates: int) -> Processes:
    """Slots for training rows, none of them taken."""
    (l, d), p, k = rows.X.shape, rows.H.shape[0], rows.features.shape[1]
    slots = max(FEWEST_SLOTS, KEPT_BYTES // (12 * l * l))
    return Processes(
        used=np.zeros(2, dtype=np.int64),
        table=np.full(4 << int(slots).bit_length(), -1),
        points=np.empty((slots, n_coordinates + 1), dtype=np.int64),
        numbers=np.empty((slots, N_NUMBERS + p + p * p + d + k + 1)),
        vectors=np.empty((slots, N_VECTORS + p + d, l)),
        factors=np.empty((slots, l, l)),
        visited=np.empty((slots // 2, l, l)),
        left_out=np.full(RECENT, -1),
        left_numbers=np.empty((RECENT, 2 + p)),
        left_vectors=np.empty((RECENT, 3, l)),
        met=np.full(RECENT, -1),
        met_numbers=np.empty((RECENT, 2)),
        met_vectors=np.empty((RECENT, 1, l)),
        sloping=np.full((RECENT, 3), -1),
        slopes=np.empty((RECENT, 4, n_coordinates)),
    )


@structref.register
class WorkType(types.StructRef):
    """Type of :class:`Work` in compiled functions."""

    def preprocess_fields(self, fields: Any) -> Any:
        """No type is that of one value."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class Work(structref.StructRefProxy):
    """All of the above in one place, which compiled functions hand on as one pointer: their fields, by their names.

    Tuples of arrays would be copied from function to function, and references to each array counted, which takes
    longer than what there is to compute.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


_FIELDS = [*TrainingRows._fields, *Family._fields, *Processes._fields, *Rule._fields, *NewRows._fields]
structref.define_proxy(Work, WorkType, _FIELDS)


def fields(rows: TrainingRows, family: Family, processes: Processes, rule: Rule, new: NewRows) -> tuple[Any, ...]:
    """What :class:`Work` is made of, in its order."""
    return (*rows, *family, *processes, *rule, *new)


@compiled()
def put(target: Any, values: Any) -> None:  # pragma: no cover
    """Copy values into the beginning of a vector; an assignment of slices takes far longer to compile."""
    for i in range(values.size):
        target[i] = values[i]


@compiled()
def make_room(w: Work, slots: int) -> None:  # pragma: no cover
    """Give all points up if fewer than so many slots are left."""
    if w.used[0] + slots > w.points.shape[0] or w.used[1] == w.visited.shape[0]:
        w.used[:] = 0
        w.table[:] = -1
        w.left_out[:] = -1
        forget_rows(w)


@compiled()
def forget_rows(w: Work) -> None:  # pragma: no cover
    """Forget what is known of test rows: others take their numbers."""
    w.met[:] = -1
    w.sloping[:] = -1


@compiled()
def hashed(numbers: Rows) -> int:  # pragma: no cover
    """A number that depends on whole numbers (Fowler, Noll and Vo)."""
    code = 1469598103934665603
    for x in numbers:
        code = (code ^ (x + 1000)) * 1099511628211
    return code ^ (code >> 29)
