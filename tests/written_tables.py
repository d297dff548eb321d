"""A table as people write it in files, and what a command reads from it."""

import io

import pandas as pd

from conformal_gp.cli.columns import Columns
from conformal_gp.cli.options import parse

PLAIN = "weight,origin,mpg\n1.5,usa,30\n2.5,japan,20\n2.0,usa,25\n3.5,usa,15\n"


EXPECTED = ([[1.5, 1], [2.5, 0], [2.0, 1], [3.5, 1]], [30, 20, 25, 15])
WRITTEN = {
    "comma.csv": PLAIN,
    "tab.tsv": PLAIN.replace(",", "\t"),
    "semicolons.txt": PLAIN.replace(",", ";"),
    "pipes.csv": PLAIN.replace(",", "|"),
    "decimal-commas.tsv": PLAIN.replace(",", "\t").replace(".", ","),
    "windows-excel.csv": PLAIN.replace("\n", "\r\n").replace(",", ";").replace(".", ",").encode("utf-8-sig"),
    "old-mac.csv": PLAIN.replace("\n", "\r"),
    "utf-16.csv": PLAIN.encode("utf-16"),
    "blanks.csv": "\n" + PLAIN.replace(",", " , ") + "\n\n",
    "quoted.csv": '"' + PLAIN.replace(",", '","').replace("\n", '"\n"')[:-1],
    "quoted-commas.csv": ('"' + PLAIN.replace(",", '","').replace("\n", '"\n"')[:-1]).replace(".", ","),
    "no-ending": PLAIN.rstrip("\n"),
    "cars.parquet": pd.read_csv(io.StringIO(PLAIN)).astype({"origin": "category", "mpg": "Int64"}),
    "cars.xlsx": pd.read_csv(io.StringIO(PLAIN)),
}


def reading(**given):
    """Options for reading a table."""
    options = parse("evaluate", ["cars.csv", "--target", "mpg"])
    vars(options).update(given)
    return options


def values(table, target="mpg", **options):
    """Inputs, with categories as their numbers, and targets of the rows that are used."""
    columns = Columns.learn(table, target, reading(**options))
    X = columns.inputs(table).X
    codes = X.apply(lambda column: column.cat.codes if column.dtype == "category" else column)
    y = columns.targets(table)["y"]
    return codes.to_numpy(dtype=float).tolist(), y[X.index].tolist()
