"""What a command says: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from conformal_gp.validation import ExtrapolationWarning

# Where standard error is no terminal, so often a line says how far the work is.
SECONDS_BETWEEN_LINES = 5.0


class Output:
    """Messages and results of a command.

    Parameters
    ----------
    quiet : bool
        Print results and errors only.
    as_json : bool
        Results are one JSON document; notices become part of it.
    """

    def __init__(self, *, quiet: bool, as_json: bool):
        self.quiet = quiet
        self.as_json = as_json
        self.notices: list[str] = []
        self._errors = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
        self._results = Console(highlight=False, markup=False)

    def notice(self, text: str) -> None:
        """Print something that the user should know."""
        if text in self.notices:
            return
        self.notices.append(text)
        self.info(f"note: {text}")

    def info(self, text: str) -> None:
        """Print progress and summaries."""
        if not self.quiet:
            self._errors.print(text)

    def result(self, *renderables: Any) -> None:
        """Print a result for people."""
        for renderable in renderables:
            self._results.print(renderable, soft_wrap=isinstance(renderable, str))

    def document(self, document: dict[str, Any]) -> None:
        """Print a result for machines: strict JSON, null for numbers that are not finite."""
        print(json.dumps(_strict(document | {"notices": self.notices}), allow_nan=False, ensure_ascii=False))

    @contextmanager
    def warnings_as_notices(self) -> Iterator[None]:
        """Turn warnings of the library into notices, but for extrapolation, of which commands speak themselves."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for warning in caught:
            if issubclass(warning.category, UserWarning) and warning.category is not ExtrapolationWarning:
                self.notice(str(warning.message))

    @contextmanager
    def working(self, label: str) -> Iterator[None]:
        """A spinner on a terminal, for work of unknown duration; elsewhere a line now and then."""
        if self.quiet or not sys.stderr.isatty():
            with self._lines(lambda: label):
                yield
            return
        with self._errors.status(label):
            yield

    @contextmanager
    def _lines(self, words: Callable[[], str]) -> Iterator[None]:
        """Print a line with the seconds gone by every few seconds, while the block runs."""
        if self.quiet:
            yield
            return
        stop, start = Event(), time.monotonic()

        def speak() -> None:
            while not stop.wait(SECONDS_BETWEEN_LINES):
                self.info(f"{words()} ({time.monotonic() - start:.0f} s)")

        thread = Thread(target=speak, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    @contextmanager
    def progress(self, label: str) -> Iterator[Callable[[int, int], None]]:
        """A bar on a terminal, elsewhere a line now and then; yields a function of how much is done and of how much."""
        if self.quiet or not sys.stderr.isatty():
            state = [label]

            def said(done: int, total: int) -> None:
                state[0] = f"{label}: {done} of {total} done"

            with self._lines(lambda: state[0]):
                yield said
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self._errors, transient=True) as bar:
            task = bar.add_task(label, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_strict(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
