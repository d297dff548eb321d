"""The one way to write files: whole or not at all, and never onto an input.

New content goes to a temporary file beside the target and then takes the target's name in one step (``os.replace``), so
an error, a full disk or an interrupt leaves the old file as it was. Links are followed. Devices, pipes and open
descriptors (``/dev/stdout``) cannot be replaced: they are written through.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress

PathLike = str | os.PathLike[str]


def write_bytes(path: PathLike, content: bytes) -> None:
    """Replace a file's content, whole or not at all.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_bytes(Path(folder) / "numbers", b"1 2 3")
    ...     (Path(folder) / "numbers").read_bytes()
    b'1 2 3'
    """
    exists = os.path.exists(path)
    if (exists and not os.path.isfile(path)) or os.path.abspath(path).startswith(("/dev/", "/proc/")):
        with open(path, "ab") as stream:  # a file behind a descriptor may hold what others wrote before
            stream.write(content)
        return
    target = os.path.realpath(path)
    if exists and not os.access(target, os.W_OK):
        raise PermissionError(f"{os.fspath(path)} may not be written.")
    unfinished = os.path.join(os.path.dirname(target), f".{secrets.token_hex(6)}.unfinished")
    try:
        with open(unfinished, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if exists:
            shutil.copymode(target, unfinished)
        os.replace(unfinished, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(unfinished)
        if isinstance(error, OSError):  # it names the temporary file
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from error
        raise


def check_output(path: PathLike, inputs: Iterable[PathLike], option: str = "--out") -> None:
    """Refuse an output before any work is done for it: onto or into an input, or where there is no folder for it.

    ``-`` is standard input or output.
    """
    name = os.fspath(path)
    if name == "-":
        return
    folder = os.path.dirname(os.path.realpath(name))
    if os.path.isdir(name) or not os.path.isdir(folder):
        raise ValueError(f"{option} {name}: {'it is a folder' if os.path.isdir(name) else 'there is no such folder'}.")
    for source in inputs:
        with suppress(OSError, ValueError):  # not there, or a standard input that is no file
            state = os.fstat(sys.stdin.fileno()) if source == "-" else os.stat(source)
            if stat.S_ISDIR(state.st_mode) and os.path.samestat(state, os.stat(folder)):
                break
            if os.path.isfile(name) and os.path.samestat(state, os.stat(name)):
                break
    else:
        return
    raise ValueError(f"{option} {name} would overwrite {source}, which is an input; name another file.")
