"""Messages and results: results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

# What the library says to those who write Python, and what does the same here.
NO_BOUND = (
    "give y_bounds=None and target_transform=None",
    "give a --lower-bound that is less, and --target-transform none",
)
_ROW = re.compile(r"\brow (\d+)")
_FIGURE = re.compile(r"[\d.]+")


class Output:
    """Messages and results of a command: results go to standard output, everything else to standard error."""

    def __init__(self, *, quiet: bool):
        self.notices: list[str] = []
        plain: dict[str, Any] = {"highlight": False, "markup": False}
        self._errors = Console(stderr=True, quiet=quiet, soft_wrap=not sys.stderr.isatty(), **plain)
        self._always = Console(stderr=True, soft_wrap=not sys.stderr.isatty(), **plain)
        self._results = Console(**plain)

    def notice(self, text: str) -> None:
        """Print a note, once."""
        if text and text not in self.notices:
            self.notices.append(text)
            self.info(f"note: {text}")

    def warning(self, text: str) -> None:
        """Print what limits the guarantee, also with --quiet."""
        self.notices.append(text)
        self._always.print(f"warning: {text}")

    def info(self, *lines: str) -> None:
        """Print summaries."""
        for line in lines:
            self._errors.print(line)

    def result(self, *renderables: Any) -> None:
        """Print a result for people: sentences that a terminal wraps between words, and a pipe does not."""
        for renderable in renderables:
            whole = isinstance(renderable, str) and not self._results.is_terminal
            self._results.print(renderable, soft_wrap=whole)

    def document(self, document: dict[str, Any]) -> None:
        """Print a result for programs, notices included: strict JSON, null for numbers that are not finite."""
        print(json.dumps(_strict(document | {"notices": self.notices}), allow_nan=False, ensure_ascii=False))

    @contextmanager
    def working(self, label: str, numbers: Any = None, folds: bool = False) -> Iterator[Callable[[int, int], None]]:
        """Show progress on a terminal, and turn warnings into notices; yield a function of how much is done.

        Rows in warnings get their ``numbers`` in the file. Warnings about ``folds`` name no row, and each comes once.
        """
        caught: list[warnings.WarningMessage] = []
        try:
            with warnings.catch_warnings(record=True) as caught, self._errors.status(label) as status:
                warnings.simplefilter("always")
                yield lambda done, total: status.update(f"{label}: {done} of {total}")
        finally:  # an error comes last, below what was noted before it
            self._notice_warnings(caught, numbers, folds)

    def _notice_warnings(self, caught: list[warnings.WarningMessage], numbers: Any, folds: bool) -> None:
        """Print warnings as notices."""
        kinds: set[str] = set()
        for warning in caught:  # commands print a notice of their own about extrapolation
            if not issubclass(warning.category, UserWarning) or warning.category.__name__ == "ExtrapolationWarning":
                continue
            text = str(warning.message).replace(*NO_BOUND)
            if folds:
                text = _ROW.sub("one row", text)
                kind = _FIGURE.sub("", text)
                if kind in kinds:
                    continue
                kinds.add(kind)
            elif numbers is not None:
                text = _ROW.sub(lambda found: f"row {numbers[int(found[1])]}", text)
            self.notice(text)


def _strict(value: Any) -> Any:
    """Return a value as JSON has it."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
