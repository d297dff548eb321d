"""The one way to write files: whole or not at all.

New content goes to a temporary file beside the target, is flushed to the disk, and then takes the target's name in one
step. An error, a full disk or a kill leaves the old file as it was. Links are followed, so that the file behind a link
is replaced and the link stays. Devices, pipes and open file descriptors (``/dev/stdout``) cannot be replaced: they are
written to, once the content is complete.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

PathLike = str | os.PathLike[str]

UNFINISHED = ".unfinished"
"""How the names of temporary files end; one is left behind only if the process is killed outright."""
_unfinished: set[str] = set()
_DESCRIPTORS = re.compile(r"/dev/fd|/proc/[^/]+(/task/[^/]+)?/fd")
_MOST_LINKS = 40  # as the kernel allows
_IN_MEMORY = 2**24


@contextmanager
def replacing(path: PathLike) -> Iterator[IO[bytes]]:
    """A binary file to write to, whose content becomes that of ``path`` when the ``with`` block ends without an error.

    Parameters
    ----------
    path : str or path
        The target: a file that exists or not, a link to one, a device or a pipe.

    Yields
    ------
    file : binary file
        Open for writing; it can seek.

    Raises
    ------
    OSError
        If the target cannot be written. It is then as it was before.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from conformal_gp.files import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "numbers"
    ...     with replacing(path) as file:
    ...         _ = file.write(b"1 2 3")
    ...     path.read_text()
    '1 2 3'
    """
    name = os.fspath(path)
    old = _state(name)
    if old is not None and stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if old is not None and (not stat.S_ISREG(old.st_mode) or _names_descriptor(name)):
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as content:
            yield content
            content.seek(0)
            _write_through(name, content, append=stat.S_ISREG(old.st_mode))
        return
    if old is not None and not os.access(name, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    with _replacing_regular(os.path.realpath(name), name, old) as file:
        yield file


@contextmanager
def _replacing_regular(target: str, name: str, old: os.stat_result | None) -> Iterator[IO[bytes]]:
    folder, base = os.path.split(target)
    unfinished = os.path.join(folder, f".{base[:40]}.{secrets.token_hex(4)}{UNFINISHED}")
    try:
        # Not tempfile's: a new file gets the permissions that the user's mask leaves.
        descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    except OSError as error:
        raise _in_words(error, name) from error
    _unfinished.add(unfinished)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            if old is not None:
                _keep_permissions(descriptor, target, old)
            yield file
            file.flush()
            os.fsync(descriptor)
        try:
            os.replace(unfinished, target)
        except OSError as error:
            raise _in_words(error, name) from error
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise
    finally:
        _unfinished.discard(unfinished)
    _flush_folder(folder)


def discard_unfinished() -> None:
    """Take away the temporary files of writes under way, for a process that is about to end itself."""
    for name in list(_unfinished):
        with suppress(OSError):
            os.unlink(name)


def write_bytes(path: PathLike, content: bytes) -> None:
    """Replace a file's content, whole or not at all."""
    with replacing(path) as file:
        file.write(content)


def check_output(path: PathLike, inputs: Iterable[PathLike], option: str = "--out") -> None:
    """Refuse an output before any work is done for it: onto an input, or where there is no folder for it.

    Parameters
    ----------
    path : str or path
        The output; ``-`` is standard output.
    inputs : iterable of str or path
        Files and folders that are read; ``-`` is standard input.
    option : str, default="--out"
        What messages call the output.

    Raises
    ------
    ValueError
        If it is one of the inputs, by whatever path, or lies in a folder that is an input.
    OSError
        If it is a folder, or the folder that it should be in is not there.
    """
    name = os.fspath(path)
    if name == "-":
        return
    old = _state(name)
    folder = os.path.dirname(os.path.realpath(name))
    for source in [os.fspath(source) for source in inputs]:
        if os.path.isdir(source) and os.path.exists(folder) and os.path.samefile(source, folder):
            raise ValueError(f"{option} {name} lies in {source}, which is read; write it to another folder.")
        if old is not None and stat.S_ISREG(old.st_mode) and _is_state_of(source, old):
            what = "standard input" if source == "-" else source
            same = "" if name == source else f" is the same file as {what}, and"
            raise ValueError(f"{option} {name}{same} would be overwritten while it is an input; name another file.")
    if old is None and not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", name)
    if old is not None and stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)


def _state(name: str) -> os.stat_result | None:
    """What a path leads to, or None for nothing."""
    try:
        return os.stat(name)
    except FileNotFoundError:
        return None


def _is_state_of(source: str, state: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.fstat(sys.stdin.fileno()) if source == "-" else os.stat(source), state)
    except (OSError, ValueError):  # not there, or a standard input that is no file
        return False


def _names_descriptor(name: str) -> bool:
    """Whether a path, or a link that it goes through, names an open file descriptor."""
    for _ in range(_MOST_LINKS):
        folder, base = os.path.split(os.path.abspath(name))
        if _DESCRIPTORS.fullmatch(folder) or _DESCRIPTORS.fullmatch(os.path.realpath(folder)):
            return True
        if not os.path.islink(name):
            return False
        name = os.path.join(os.path.realpath(folder), os.readlink(os.path.join(folder, base)))
    return False


def _write_through(name: str, content: IO[bytes], *, append: bool) -> None:
    """Write to what is not replaced; a file behind a descriptor may hold what others wrote before."""
    flags = os.O_WRONLY | (os.O_APPEND if append else 0)
    with os.fdopen(os.open(name, flags), "wb") as file:
        shutil.copyfileobj(content, file)


def _keep_permissions(descriptor: int, target: str, old: os.stat_result) -> None:
    """Give a new file the owner, mode and access lists of the old one, as far as the user may."""
    if not hasattr(os, "fchown"):
        return
    with suppress(OSError):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    with suppress(OSError):
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            for attribute in os.listxattr(target):
                with suppress(OSError):
                    os.setxattr(descriptor, attribute, os.getxattr(target, attribute))


def _flush_folder(folder: str) -> None:
    """Make the new name last through a loss of power, where the system lets folders be flushed."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _in_words(error: OSError, name: str) -> OSError:
    """An error about the temporary file, as one about the target."""
    reason = error.strerror or str(error)
    if os.path.exists(name) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY):
        reason += f": {Path(name).name} cannot be replaced, as its folder takes no new file; write to another folder"
    return type(error)(error.errno, reason, name)
