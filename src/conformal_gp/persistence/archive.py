"""The file itself: a zip archive of a JSON document and arrays, with a checksum for each.

What a file declares is checked before anything is inflated: a file may grow by a factor of :data:`MOST_GROWTH` and
:data:`FREE_GROWTH` bytes, and its arrays must have the sizes that their own headers say. Whatever is wrong with a file
is a :class:`ModelFileError`.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from conformal_gp.files import replacing

FORMAT = "conformal-gp model"
FORMAT_VERSION = 6
OLDEST_VERSION = 4

MOST_GROWTH = 200
FREE_GROWTH = 2**26
MOST_DOCUMENT = 2**26
"""Bytes of the document."""
_MOST_MEMBERS = 16

_DOCUMENT = "model.json"
_CHECKSUMS = "SHA256SUMS"
_ZIP_SIGNATURE = b"PK"
_LARGE = 2**30  # bytes from which on a member takes zip's 64-bit sizes
_PIECE = 2**20

Target = str | os.PathLike[str] | BinaryIO


class ModelFileError(ValueError):
    """A file that is not a model, or not one that can be read.

    Examples
    --------
    >>> import io
    >>> from conformal_gp.persistence import ModelFileError, load_model
    >>> try:
    ...     load_model(io.BytesIO(b"not a model"))
    ... except ModelFileError as error:
    ...     print(error)
    the stream is not a conformal-gp model: it is no zip archive.
    """


def write_archive(target: Target, document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a document and arrays; the same content gives the same bytes. A file is replaced whole or not at all."""
    text = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False).encode()
    if len(text) > MOST_DOCUMENT:
        raise ValueError(f"model cannot be saved: all but its rows takes {len(text):,} bytes of JSON.")
    if isinstance(target, str | os.PathLike):
        with replacing(target) as file:
            _write_members(file, text, arrays)
    else:
        whole = io.BytesIO()  # a zip archive has to seek, which a pipe cannot
        _write_members(whole, text, arrays)
        target.write(whole.getvalue())


def _write_members(file: IO[bytes], document: bytes, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write all members: compressed, unless the file would grow more than a reader allows."""
    size = sum(array.nbytes for array in arrays.values())
    for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        file.seek(0)
        file.truncate()
        with zipfile.ZipFile(file, "w", compression) as archive:
            sums = _add(archive, _DOCUMENT, document)
            for name, array in arrays.items():
                sums += _add(archive, f"{name}.npy", array)
            _add(archive, _CHECKSUMS, sums.encode())
        if size < (MOST_GROWTH - 1) * file.tell():
            return


def _add(archive: zipfile.ZipFile, name: str, content: bytes | NDArray[Any]) -> str:
    """Add a member, arrays a piece at a time; gives the line of its checksum."""
    info = zipfile.ZipInfo(name)  # its fixed date, rather than today's, keeps the bytes reproducible
    info.compress_type = archive.compression
    large = not isinstance(content, bytes) and content.nbytes > _LARGE
    with archive.open(info, "w", force_zip64=large) as member:
        file = _Summed(member)
        if isinstance(content, bytes):
            file.write(content)
        else:
            np.save(file, content, allow_pickle=False)
    return f"{file.sum.hexdigest()}  {name}\n"


class _Summed:
    """A file to write to, and the SHA-256 sum of what was written."""

    def __init__(self, file: IO[bytes]):
        self._file = file
        self.sum = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.sum.update(data)
        return self._file.write(data)


def read_archive(source: Target) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Document and arrays of a file that :func:`write_archive` wrote.

    Raises
    ------
    ModelFileError
        If the file is foreign, newer than this package, truncated or damaged.
    OSError
        If it cannot be read at all.
    """
    name = name_of(source)
    content = _content(source, name)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _Members(archive, name, len(content)).read()
    except ModelFileError:
        raise
    except Exception as error:  # damage can show anywhere in the zip reader: all of it is in memory
        raise ModelFileError(f"{name} is truncated or damaged ({_words(error)}).") from error


def name_of(source: Target) -> str:
    """What to call a file in messages."""
    if isinstance(source, str | os.PathLike):
        return str(source)
    return str(getattr(source, "name", "the stream"))


def _content(source: Target, name: str) -> bytes:
    """All bytes of a file, if it begins as an archive does."""
    if isinstance(source, str | os.PathLike):
        with Path(source).open("rb") as file:
            return _content(file, name)
    begin = source.read(len(_ZIP_SIGNATURE))
    if not begin:
        raise ModelFileError(f"{name} is empty, not a conformal-gp model.")
    if begin != _ZIP_SIGNATURE:
        raise ModelFileError(f"{name} is not a conformal-gp model: it is no zip archive.")
    return begin + source.read()


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


class _Members:
    """The members of an archive, checked from the outside in."""

    def __init__(self, archive: zipfile.ZipFile, name: str, size: int):
        self._archive = archive
        self._name = name
        self._size = size
        self._members = {member.filename: member for member in archive.infolist()}

    def read(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        document = self._document()
        self._check_sizes()
        self._check_sums()
        names = [name for name in self._members if name.endswith(".npy")]
        return document, {name.removesuffix(".npy"): self._array(name) for name in names}

    def _damaged(self, what: str) -> NoReturn:
        raise ModelFileError(f"{self._name} is truncated or damaged ({what}).")

    def _document(self) -> dict[str, Any]:
        """The JSON document, if it is one of ours and not newer than this package."""
        document = None
        member = self._members.get(_DOCUMENT)
        if member is not None:
            if member.file_size > min(MOST_DOCUMENT, FREE_GROWTH + MOST_GROWTH * self._size):
                self._damaged(f"{_DOCUMENT} is said to hold {member.file_size:,} bytes")
            try:
                text = self._archive.read(member)
                document = json.loads(text, parse_constant=_refuse, parse_float=_float, parse_int=_int)
            except (ValueError, RecursionError):
                document = None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ModelFileError(f"{self._name} is a zip archive, but not a conformal-gp model.")
        version = document.get("format_version")
        if type(version) is int and 1 <= version < OLDEST_VERSION:
            raise ModelFileError(
                f"{self._name} has model format {version}, whose tuning is no longer part of conformal-gp; fit the "
                "model again."
            )
        if type(version) is not int or not OLDEST_VERSION <= version <= FORMAT_VERSION:
            raise ModelFileError(
                f"{self._name} has model format {version!r}, written by conformal-gp "
                f"{document.get('package_version')}; this version reads formats up to {FORMAT_VERSION}. Upgrade "
                "conformal-gp to read it."
            )
        return document

    def _check_sizes(self) -> None:
        """Refuse members that would be larger than the file has reason to be, before any is inflated."""
        if len(self._archive.infolist()) != len(self._members) or len(self._members) > _MOST_MEMBERS:
            self._damaged(f"{len(self._archive.infolist())} members, of {len(self._members)} names")
        total = sum(member.file_size for member in self._members.values())
        if total > FREE_GROWTH + MOST_GROWTH * self._size:
            self._damaged(f"its {self._size:,} bytes are said to hold {total:,}")

    def _check_sums(self) -> None:
        sums = self._archive.read(_CHECKSUMS) if _CHECKSUMS in self._members else b""
        lines = sums.decode(errors="replace").splitlines()
        stated = {member: digest for digest, _, member in (line.partition("  ") for line in lines)}
        actual = {member: self._sum(member) for member in self._members if member != _CHECKSUMS}
        wrong = sorted(
            member for member in stated.keys() | actual.keys() if stated.get(member, "") != actual.get(member, "")
        )
        if wrong:
            raise ModelFileError(f"{self._name} is damaged: the checksum of {', '.join(wrong)} does not match.")

    def _sum(self, name: str) -> str:
        found = hashlib.sha256()
        with self._archive.open(name) as file:
            while piece := file.read(_PIECE):
                found.update(piece)
        return found.hexdigest()

    def _array(self, name: str) -> NDArray[Any]:
        """An array, if its header says what the member holds."""
        try:
            with self._archive.open(name) as file:
                version = np.lib.format.read_magic(file)
                header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
                shape, _, dtype = header[version](file)
                stated = file.tell() + math.prod(shape) * dtype.itemsize
            if dtype.hasobject or min(shape, default=0) < 0 or stated != self._members[name].file_size:
                raise ValueError(f"shape {shape} and type {dtype} in {self._members[name].file_size:,} bytes")
            with self._archive.open(name) as file:
                return np.lib.format.read_array(file, allow_pickle=False)
        except Exception as error:
            raise ModelFileError(f"{self._name} holds an array that cannot be read ({_words(error)}).") from error


def _float(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _int(text: str) -> int:
    """A whole number that arrays can hold: others would make arrays of objects."""
    return int(text) if len(text) < 25 and -(2**63) <= int(text) < 2**63 else _refuse(text)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant[:30]} is no number of a model")
