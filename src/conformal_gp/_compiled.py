"""The one way to compile functions: machine code is kept for the next process where there is a place for it.

Numba keeps compiled code beside the package or in the user's own folder, and raises an error where neither can be
written, as in many containers and for other users' notebooks. There a private folder among the temporary files takes
its place, or else nothing is kept; either way the functions are the same.

Numba takes kept code for valid as long as the file of its function has not changed. But it holds a copy of all that the
function calls, in other files too, and of their constants. So here it is valid as long as none of the files with the
mathematics has changed.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from numba import config, njit

__all__ = ["compiled"]

_SETTING = "CACHE_DIR"  # of numba.config, which is filled when it is imported
# Folders, beside this file, whose compiled functions call each other.
ROOMS = ("gp", "conformal", "predictors")


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator: ``numba.njit`` without the interpreter lock, kept for the next process where that is possible.

    Parameters
    ----------
    **options
        Further options of ``numba.njit``.

    Returns
    -------
    decorator : callable
        Takes a function, gives it compiled.

    Examples
    --------
    >>> from conformal_gp._compiled import compiled
    >>> @compiled(error_model="numpy")
    ... def half(x):
    ...     return x / 2
    >>> half(3.0)
    1.5
    """

    def decorate(function: Callable[..., Any]) -> Any:
        with suppress(RuntimeError):  # "cannot cache function": no place can be written
            return _forgiving(njit(cache=True, nogil=True, **options)(function))
        folder = _private_folder()
        if folder is not None:
            with suppress(RuntimeError), _cache_in(folder):
                return _forgiving(njit(cache=True, nogil=True, **options)(function))
        return njit(nogil=True, **options)(function)

    return decorate


def _private_folder() -> str | None:
    """A folder that only this user can write to: code is loaded from it."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = os.path.join(tempfile.gettempdir(), f"conformal-gp-compiled-{user}")
    try:
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        state = os.lstat(folder)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    if not stat.S_ISDIR(state.st_mode):
        return None
    if hasattr(os, "getuid") and (state.st_uid != user or state.st_mode & 0o022):
        return None
    return folder


@contextmanager
def _cache_in(folder: str) -> Iterator[None]:
    """Numba's cache in a folder, for what is decorated inside the ``with`` block."""
    before = getattr(config, _SETTING)
    setattr(config, _SETTING, folder)
    try:
        yield
    finally:
        setattr(config, _SETTING, before)


def _forgiving(function: Any) -> Any:
    """A compiled function whose cache may fail, as on a full disk, without its failing, and knows all files."""
    kept: Any = getattr(function, "_cache", None)
    if hasattr(kept, "_guard_against_spurious_io_errors"):
        kept._guard_against_spurious_io_errors = lambda: suppress(OSError)
    index: Any = getattr(kept, "_cache_file", None)
    if hasattr(index, "_source_stamp"):
        index._source_stamp = index._source_stamp, _stamp_of_rooms()
    return function


@cache
def _stamp_of_rooms() -> tuple[tuple[str, int, int], ...]:
    """Changes when any of the files with compiled functions does."""
    here = Path(__file__).parent
    files = sorted(path for room in ROOMS for path in (here / room).glob("*.py"))
    stamps = []
    with suppress(OSError):
        for path in files:
            state = path.stat()
            stamps.append((path.name, state.st_mtime_ns, state.st_size))
    return tuple(stamps)
