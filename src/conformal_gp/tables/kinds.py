"""Kinds of table files, by how their names end."""

from __future__ import annotations

from pathlib import PurePath

from conformal_gp.tables.errors import TableError

TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".dat", ".data")
TAB_ENDINGS = (".tsv", ".tab")
PARQUET_ENDINGS = (".parquet", ".pq")
EXCEL_ENDINGS = (".xlsx", ".xlsm")
KNOWN = "CSV (.csv, .txt, .dat, .data), TSV (.tsv, .tab), Parquet (.parquet, .pq) and Excel (.xlsx, .xlsm)"


def kind_of(name: str) -> str:
    """The kind of a table file: "text", "tabs", "parquet" or "excel"; names without an ending are text.

    >>> kind_of("cars.XLSX"), kind_of("cars.tsv"), kind_of("/dev/stdout")
    ('excel', 'tabs', 'text')
    """
    ending = PurePath(name).suffix.lower()
    for kind, endings in (
        ("tabs", TAB_ENDINGS),
        ("text", ("", *TEXT_ENDINGS)),
        ("parquet", PARQUET_ENDINGS),
        ("excel", EXCEL_ENDINGS),
    ):
        if ending in endings:
            return kind
    raise TableError(
        f"{name} ends in {ending}, which is no kind of table that is known: {KNOWN} are. Rename or save it."
    )
