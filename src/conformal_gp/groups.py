"""Groups of rows, in each of which coverage holds by itself: labels, a function of inputs, or a column of a frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from conformal_gp.types import Rows
from conformal_gp.validation import holds_categories

UNSEEN_GROUPS = ("error", "all")
"""What to do with a group that fit did not see: an error, or rank its rows among all rows."""


@dataclass(frozen=True)
class Groups:
    """Groups of the training rows, and how those of test rows are found."""

    labels: list[Any]
    """Of the groups, in order of their first rows."""
    codes: Rows
    """(l,): the group of each training row, a place in ``labels``."""
    rule: str | Callable[[Any], Any] | None
    """The column or the function that gives groups; None where labels were given."""
    unseen: str
    """One of :data:`UNSEEN_GROUPS`."""
    left_out: str | None = None
    """A column that gives groups and is no input, as it holds neither numbers nor categories."""

    @classmethod
    def learn(cls, X: Any, groups: Any, unseen: str) -> Groups:
        """From training rows as they were given."""
        if unseen not in UNSEEN_GROUPS:
            raise ValueError(f"unseen_groups must be 'error' or 'all', got {unseen!r}.")
        given = group_labels(X, groups)
        labels = list(dict.fromkeys(given))
        rule = groups if isinstance(groups, str) or callable(groups) else None
        left_out = rule if isinstance(rule, str) and not _is_input(X[rule].dtype) else None
        return cls(labels, _codes(labels, given), rule, unseen, left_out)

    def extended(self, X: Any, groups: Any, n_rows: int) -> Groups:
        """With rows that come later; a group that is not among these is added."""
        given = self._given(X, groups, n_rows)
        labels = list(dict.fromkeys([*self.labels, *given]))
        return replace(self, labels=labels, codes=np.append(self.codes, _codes(labels, given)))

    def inputs(self, X: Any) -> Any:
        """X without a column that is no input."""
        if self.left_out is None or not hasattr(X, "columns") or self.left_out not in X.columns:
            return X
        return X[[name for name in X.columns if name != self.left_out]]

    def of(self, X: Any, groups: Any, n_rows: int) -> Rows:
        """Groups of test rows, by ``groups`` or as ``fit`` was told; -1 where ``fit`` did not see a row's group."""
        given = self._given(X, groups, n_rows)
        codes = _codes(self.labels, given)
        if self.unseen == "error" and (codes < 0).any():
            row = int(np.argmin(codes))
            known = ", ".join(map(repr, self.labels[:10])) + (", ..." if len(self.labels) > 10 else "")
            raise ValueError(
                f"groups has a group that fit did not see, {given[row]!r} in row {row}; it saw {known}. With "
                "fit(..., unseen_groups='all') such rows are ranked among all rows."
            )
        return codes

    def _given(self, X: Any, groups: Any, n_rows: int) -> list[Any]:
        """Labels of rows, by ``groups`` or as ``fit`` was told."""
        if groups is None and self.rule is None:
            raise ValueError("groups is needed, one for each row: fit was given those of the training rows.")
        given = group_labels(X, self.rule if groups is None else groups)
        check_length(given, n_rows)
        return given


def _codes(labels: list[Any], given: list[Any]) -> Rows:
    """Places of labels among those of the groups; -1 where they are not."""
    places = {label: place for place, label in enumerate(labels)}
    return np.array([places.get(label, -1) for label in given], dtype=np.int64)


def check_length(labels: Any, n_rows: int) -> None:
    """Raise a ValueError unless there is a label for each row."""
    if len(labels) != n_rows:
        raise ValueError(f"groups must hold one label for each of the {n_rows} rows, got {len(labels)}.")


def group_labels(X: Any, groups: Any) -> list[Any]:
    """A label for each row, none of them missing."""
    if isinstance(groups, str):
        if not hasattr(X, "columns") or groups not in X.columns:
            of = f"; its columns are {', '.join(map(repr, X.columns))}" if hasattr(X, "columns") else ""
            raise ValueError(f"groups is {groups!r}, and X must be a data frame with a column of that name{of}.")
        groups = X[groups]
    elif callable(groups):
        groups = groups(X)
    if hasattr(groups, "compute"):  # of Dask
        groups = groups.compute()
    as_list = next((getattr(groups, name) for name in ("tolist", "to_list") if hasattr(groups, name)), None)
    if getattr(groups, "ndim", 1) != 1 or not (as_list or hasattr(groups, "__iter__")):
        raise ValueError(f"groups must hold one label for each row, got {groups!r}.")
    labels = as_list() if as_list else list(groups)
    for row, label in enumerate(labels):
        if _is_missing(label):
            raise ValueError(f"groups has no label in row {row}: got {label!r}; give such rows a group of their own.")
        if getattr(label, "__hash__", None) is None:
            raise ValueError(f"groups must hold one label for each row, got {label!r} in row {row}.")
    return labels


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):  # pandas.NA compares to nothing
        return type(label).__name__ == "NAType"


def _is_input(dtype: Any) -> bool:
    """Whether a column of this type is an input too."""
    numeric = dtype.is_numeric() if hasattr(dtype, "is_numeric") else getattr(dtype, "kind", "") in "iuf"
    return numeric or holds_categories(dtype) or "bool" in str(dtype).lower()
