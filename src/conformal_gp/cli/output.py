"""What a command says: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console


class Output:
    """Messages and results of a command."""

    def __init__(self, *, quiet: bool):
        self.notices: list[str] = []
        self._errors = Console(stderr=True, highlight=False, markup=False, soft_wrap=True, quiet=quiet)
        self._results = Console(highlight=False, markup=False)

    def notice(self, text: str) -> None:
        """Print something that the user should know."""
        if text and text not in self.notices:
            self.notices.append(text)
            self.info(f"note: {text}")

    def info(self, *lines: str) -> None:
        """Print summaries."""
        for line in lines:
            self._errors.print(line)

    def result(self, *renderables: Any) -> None:
        """Print a result for people."""
        for renderable in renderables:
            self._results.print(renderable, soft_wrap=isinstance(renderable, str))

    def document(self, document: dict[str, Any]) -> None:
        """Print a result for machines, notices included: strict JSON, null for numbers that are not finite."""
        print(json.dumps(_strict(document | {"notices": self.notices}), allow_nan=False, ensure_ascii=False))

    @contextmanager
    def working(self, label: str) -> Iterator[Callable[[int, int], None]]:
        """Show progress on a terminal, and turn warnings into notices; yields a function of how much is done."""
        with warnings.catch_warnings(record=True) as caught, self._errors.status(label) as status:
            warnings.simplefilter("always")
            yield lambda done, total: status.update(f"{label}: {done} of {total}")
        for warning in caught:  # commands speak of extrapolation themselves
            if issubclass(warning.category, UserWarning) and warning.category.__name__ != "ExtrapolationWarning":
                self.notice(str(warning.message))


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
