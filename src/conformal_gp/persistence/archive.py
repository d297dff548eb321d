"""The file itself: a zip archive of a JSON document and arrays, with a checksum for each."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from conformal_gp.files import replacing

FORMAT = "conformal-gp model"
FORMAT_VERSION = 2

_DOCUMENT = "model.json"
_CHECKSUMS = "SHA256SUMS"
_ZIP_SIGNATURE = b"PK"
_LARGE = 2**30  # bytes from which on a member takes zip's 64-bit sizes

Target = str | os.PathLike[str] | BinaryIO


class ModelFileError(ValueError):
    """A file that is not a model, or not one that can be read."""


def write_archive(target: Target, document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a document and arrays; the same content gives the same bytes. A file is replaced whole or not at all."""
    text = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False).encode()
    if isinstance(target, str | os.PathLike):
        with replacing(target) as file:
            _write_members(file, text, arrays)
    else:
        whole = io.BytesIO()  # a pipe cannot be gone back in, as a zip archive asks
        _write_members(whole, text, arrays)
        target.write(whole.getvalue())


def _write_members(file: IO[bytes], document: bytes, arrays: Mapping[str, NDArray[Any]]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        sums = _add(archive, _DOCUMENT, document)
        for name, array in arrays.items():
            sums += _add(archive, f"{name}.npy", array)
        _add(archive, _CHECKSUMS, sums.encode())


def _add(archive: zipfile.ZipFile, name: str, content: bytes | NDArray[Any]) -> str:
    """Add a member, arrays a piece at a time; gives the line of its checksum."""
    info = zipfile.ZipInfo(name)  # its fixed date, rather than today's, keeps the bytes reproducible
    info.compress_type = zipfile.ZIP_DEFLATED
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
    """
    name, content = _content(source)
    if not content:
        raise ModelFileError(f"{name} is empty, not a conformal-gp model.")
    if not content.startswith(_ZIP_SIGNATURE):
        raise ModelFileError(f"{name} is not a conformal-gp model: it is no zip archive.")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            members = {member: file.read(member) for member in file.namelist()}
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise ModelFileError(f"{name} is truncated or damaged ({error}).") from error
    document = _document(name, members)
    _check_sums(name, members)
    try:
        arrays = {
            member.removesuffix(".npy"): np.load(io.BytesIO(data), allow_pickle=False)
            for member, data in members.items()
            if member.endswith(".npy")
        }
    except (ValueError, EOFError, OSError) as error:
        raise ModelFileError(f"{name} holds an array that cannot be read ({error}).") from error
    return document, arrays


def _content(source: Target) -> tuple[str, bytes]:
    if isinstance(source, str | os.PathLike):
        return str(source), Path(source).read_bytes()
    return getattr(source, "name", "the stream"), source.read()


def _document(name: str, members: Mapping[str, bytes]) -> dict[str, Any]:
    """The JSON document, if it is one of ours and not newer than this package."""
    try:
        document = json.loads(members.get(_DOCUMENT, b""))
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{name} is a zip archive, but not a conformal-gp model.")
    version = document.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ModelFileError(
            f"{name} has model format {version!r}, written by conformal-gp {document.get('package_version')}; this "
            f"version reads formats up to {FORMAT_VERSION}. Upgrade conformal-gp to read it."
        )
    return document


def _check_sums(name: str, members: Mapping[str, bytes]) -> None:
    lines = members.get(_CHECKSUMS, b"").decode(errors="replace").splitlines()
    stated = {member: digest for digest, _, member in (line.partition("  ") for line in lines)}
    actual = {
        member: hashlib.sha256(content).hexdigest() for member, content in members.items() if member != _CHECKSUMS
    }
    wrong = sorted(
        member for member in stated.keys() | actual.keys() if stated.get(member, "") != actual.get(member, "")
    )
    if wrong:
        raise ModelFileError(f"{name} is damaged: the checksum of {', '.join(wrong)} does not match.")
