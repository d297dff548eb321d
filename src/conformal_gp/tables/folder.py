"""Folders of CSV or Parquet files that make up one table: which files belong to it, and how they are written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from conformal_gp.tables.dialect import Dialect
from conformal_gp.tables.errors import TableError, listed
from conformal_gp.tables.text import read_text

_CSV = re.compile(r".+\.csv(\.(gz|bz2|xz|zip|zst))?", re.IGNORECASE)
_PARQUET = re.compile(r".+\.(parquet|pq)", re.IGNORECASE)
_HEAD = 2**16  # bytes of each text file that are looked at


@dataclass(frozen=True)
class Folder:
    """The files of a table."""

    files: tuple[Path, ...]
    others: tuple[str, ...]
    """Names of files that are not read."""
    dialect: Dialect | None
    """How CSV files are written; None for Parquet."""


def scan_folder(path: str | Path, *, separator: str | None = None, decimal: str | None = None) -> Folder:
    """Find the files of a table, and check that they go together.

    Files that end in ``.csv`` (also compressed: ``.csv.gz`` and the like), or in ``.parquet`` or ``.pq``, are read;
    hidden files, backups (``a.csv.bak``, ``a.csv~``) and other files are not.

    Parameters
    ----------
    path : str or Path
        A folder, or a single file; one that does not end in ``.csv`` is taken for Parquet.
    separator, decimal : str, default=None
        As in :func:`conformal_gp.tables.read_table`.

    Returns
    -------
    folder : Folder
        Its files.

    Raises
    ------
    TableError
        If there are no such files, files of both kinds, or files with different columns or decimal marks.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such file or folder: {path}")
    if not path.is_dir():
        return Folder((path,), (), _dialect([path], separator, decimal) if _CSV.fullmatch(path.name) else None)
    visible = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith((".", "_")))
    csv_files = [p for p in visible if _CSV.fullmatch(p.name)]
    parquet_files = [p for p in visible if _PARQUET.fullmatch(p.name)]
    if csv_files and parquet_files:
        raise TableError(
            f"{path} holds both CSV and Parquet files ({listed([csv_files[0].name, parquet_files[0].name])}); keep one "
            "kind in a folder of its own."
        )
    files = csv_files or parquet_files
    others = tuple(p.name for p in visible if p not in files)
    if not files and any(_PARQUET.fullmatch(p.name) for p in path.rglob("*")):
        return Folder((path,), others, None)  # partitions in folders of their own
    if not files:
        raise TableError(f"{path} holds no file that ends in .csv or .parquet.")
    if csv_files:
        return Folder(tuple(files), others, _dialect(files, separator, decimal))
    _check_same({file.name: _parquet_names(file) for file in files})
    return Folder(tuple(files), others, None)


def _dialect(files: Iterable[Path], separator: str | None, decimal: str | None) -> Dialect:
    """How CSV files are written, after a look at the first lines of each."""
    known: Dialect | None = None
    names = {}
    for file in files:
        head = read_text(str(file), _head(file), separator, decimal, known)
        names[file.name] = head.names
        if head.dialect.encoding == "utf-16":
            raise TableError(f"{file} is in UTF-16; a folder is read in UTF-8.")
        if known is not None and known.marked and head.dialect.marked and known.decimal != head.dialect.decimal:
            raise TableError(f"the decimal mark is '{head.dialect.decimal}' in {file}, but '{known.decimal}' before.")
        known = head.dialect if known is None or not known.marked else known
    _check_same(names)
    assert known is not None
    return known


def _head(file: Path) -> bytes:
    """The first lines of a file, unpacked."""
    import fsspec  # type: ignore[import-untyped]

    try:
        with fsspec.open(str(file), "rb", compression="infer") as stream:
            head = stream.read(_HEAD)
    except Exception as error:  # each compression has its own error
        raise TableError(f"{file} cannot be read ({error}).") from error
    if not head.strip():
        raise TableError(f"{file} is empty: a table needs a header line and rows.")
    end = head.rfind(b"\n")
    return head if len(head) < _HEAD or end < 0 else head[: end + 1]


def _parquet_names(file: Path) -> list[str]:
    import pyarrow
    from pyarrow import parquet

    try:
        return list(parquet.read_schema(file).names)
    except (pyarrow.ArrowException, OSError) as error:
        raise TableError(f"{file} is not a Parquet file, or is damaged ({error}).") from error


def _check_same(names: dict[str, list[str]]) -> None:
    """Refuse files with different columns."""
    first, *others = names
    for file in others:
        if names[file] != names[first]:
            odd = [name for name in names[file] if name not in names[first]]
            lacking = [name for name in names[first] if name not in names[file]]
            parts = [f"it has {listed(odd)}"] * bool(odd) + [f"it lacks {listed(lacking)}"] * bool(lacking)
            what = " and ".join(parts) or f"their order is {listed(names[file])}, not {listed(names[first])}"
            raise TableError(f"{file} has other columns than {first}: {what}.")
