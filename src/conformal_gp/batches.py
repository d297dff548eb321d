"""Intervals for rows of new batches: whole batches are tuned on, and one row of each other batch is a calibration row.

Rows of a batch share its error, so a row of a new batch is not exchangeable with them. If batches are exchangeable, one
row drawn at random from each calibration batch is exchangeable with a row of a new batch, given the tuning batches:
theorem 1 as it stands, with as many calibration rows as calibration batches. Other rows of calibration batches are left
out of the model, as they would predict their own batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from conformal_gp.arrays import Indices
from conformal_gp.calibration import check_length, group_labels, without
from conformal_gp.conformal.levels import read_levels, rows_needed
from conformal_gp.formatting import percent
from conformal_gp.large.rows import ArrayRows, RowSource
from conformal_gp.models.settings import Settings
from conformal_gp.models.tuned import NO_ROWS
from conformal_gp.models.tuning_rows import (
    batches_needed,
    calibration_batches,
    check_size,
    content_keys,
    fewest_tuning_rows,
)
from conformal_gp.targets.censoring import check_censoring

USUAL_LEVELS = read_levels([0.8, 0.9, 0.95])[0]


@dataclass(frozen=True)
class Batches:
    """Batches of the training rows, and the rows that the model is made of.

    Examples
    --------
    >>> Batches(np.array([0, 1, 0, 2])).n_batches
    3
    """

    codes: Indices
    """(l,): the batch of each row that fit was given, in order of their first rows."""
    column: str | None = None
    """The column that names batches; it is no input, as a new batch has another name."""
    tuning_rows: Indices = field(default_factory=lambda: NO_ROWS)
    """Numbers of the rows of tuning batches, ascending."""
    rows: Indices = field(default_factory=lambda: NO_ROWS)
    """Numbers of the rows that the model is made of, ascending: tuning rows, and one row of each other batch."""

    @classmethod
    def learn(cls, X: Any, batches: Any) -> Batches:
        """From training rows as they were given."""
        labels = group_labels(X, batches, "batches")
        codes = {label: code for code, label in enumerate(dict.fromkeys(labels))}
        if len(codes) < 2:
            raise ValueError(f"batches must hold at least two batches, got {next(iter(codes), None)!r} alone.")
        column = None
        if isinstance(batches, str):
            column = batches
        return cls(np.array([codes[label] for label in labels], dtype=np.int64), column)

    @property
    def n_batches(self) -> int:
        """Number of batches."""
        return int(self.codes.max()) + 1

    @property
    def n_tuning(self) -> int:
        """Number of tuning batches."""
        return np.unique(self.codes[self.tuning_rows]).size

    def inputs(self, X: Any) -> Any:
        """X without the column of batches."""
        return without(X, self.column)

    def drawn(self, source: RowSource, settings: Settings, random_state: Any) -> Batches:
        """The same with rows drawn by seed and content, whatever the order of the rows."""
        check_length(self.codes, source.n_rows, "batches")
        if settings.tuning not in ("holdout", "fixed"):
            raise ValueError(
                "batches are divided into those that are tuned on and those that calibrate: tuning must be 'auto', "
                f"'holdout' or 'fixed', got {settings.tuning!r}."
            )
        if not isinstance(source, ArrayRows) or not source.in_memory:
            raise ValueError("batches are for rows in memory, not for memory maps or Dask collections.")
        keys = content_keys(source.rows.X, source.y, check_random_state(random_state).randint(2**31))
        tuning = self._tuning_batches(settings, source, keys)
        tuning_rows = np.flatnonzero(np.isin(self.codes, tuning))
        order = np.argsort(keys, kind="stable")
        one_of_each = order[np.unique(self.codes[order], return_index=True)[1]]
        return replace(self, tuning_rows=tuning_rows, rows=np.union1d(tuning_rows, one_of_each))

    def _tuning_batches(self, settings: Settings, source: ArrayRows, keys: NDArray[np.uint64]) -> Indices:
        """Batches that are tuned on: those of the given tuning rows, or at random."""
        given = settings.tuning_rows
        sizes = np.bincount(self.codes)
        if isinstance(given, np.ndarray):
            tuning = np.unique(self.codes[given])
            if sizes[tuning].sum() > given.size or tuning.size == sizes.size:
                raise ValueError("tuning_rows must be all rows of some batches, as fit was given batches.")
            return tuning
        if given is None and settings.tuning == "fixed":
            return NO_ROWS
        of_batches = np.zeros(sizes.size, dtype=np.uint64)
        np.add.at(of_batches, self.codes, keys)
        order = np.argsort(of_batches, kind="stable")
        n_rows = np.cumsum(sizes[order])
        n_inputs = source.rows.X.shape[1]
        least = given or fewest_tuning_rows(settings.mean, n_inputs)
        n_tuning = 1
        if given is None:
            n_tuning = sizes.size - calibration_batches(sizes.size)
        n_tuning = max(n_tuning, int(np.searchsorted(n_rows, least)) + 1)
        if n_tuning >= sizes.size:
            raise ValueError(
                f"tuning takes at least {least} rows of whole batches, which leaves no calibration batch: fit was "
                f"given {sizes.size} batches of {source.n_rows} rows."
            )
        check_size(settings.mean, int(n_rows[n_tuning - 1]), source.n_rows, n_inputs)
        return order[:n_tuning]

    def guarantee(self, sentence: str) -> str:
        """The sentence of ``guarantee_`` about rows of new batches; as it is if coverage is not valid."""
        if not sentence.startswith("Valid"):
            return sentence
        n_calibration = self.n_batches - self.n_tuning
        tuned = "nothing was tuned"
        if self.n_tuning:
            tuned = f"everything was tuned on the {self.tuning_rows.size} rows of {self.n_tuning} batches"
        said = (
            f"Valid: {tuned}, and one row of each of the other {n_calibration} batches, drawn at random, is a "
            "calibration row. If new batches are exchangeable with these, and nothing else was fitted to these "
            "targets, intervals cover a row of a new batch at least as often as their level."
        )
        for level in USUAL_LEVELS:
            if rows_needed(level) > n_calibration:
                most = percent(n_calibration / (n_calibration + 1), 0)
                needed = batches_needed(level) if self.n_tuning else rows_needed(level)
                return f"{said} The highest level is {most}; {percent(level)} takes {needed} batches."
        return said


def with_fewer_rows(model: Any, source: Any, settings: Settings, censoring: Any) -> tuple[Any, Settings, Any]:
    """Rows that the model is made of, settings with their tuning rows, and their limits; the model keeps which."""
    drawn = model._batches.drawn(source, settings, model.random_state)
    if censoring is not None:
        censoring = check_censoring(censoring, source.n_rows)
    if censoring is not None:
        censoring = censoring[drawn.rows]
    if model._groups is not None:
        model._groups = replace(model._groups, codes=model._groups.codes[drawn.rows])
    if drawn.tuning_rows.size:
        settings = replace(settings, tuning_rows=np.searchsorted(drawn.rows, drawn.tuning_rows))
    model._batches = drawn
    return source.some(drawn.rows), settings, censoring
