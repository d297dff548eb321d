"""Text tables with something wrong in them, at random: an error in words, or a table that has lost no row."""

import io

import numpy as np
import pytest

pytest.importorskip("pandas", reason="tables need pandas")

from conformal_gp.tables import Columns, TableError, read_table, write_table

PLAIN = "weight,origin,mpg\n" + "".join(f"{1 + i / 8},{('usa', 'japan')[i % 2]},{i}\n" for i in range(12))
TABLES = (
    PLAIN.encode(),
    PLAIN.replace(",", ";").replace(".", ",").encode("utf-8-sig"),
    PLAIN.replace(",", "\t").replace("usa", '"u ""s"" a"').encode(),
    PLAIN.replace("japan", "Österreich").encode("cp1252"),
    PLAIN.encode("utf-16"),
)
PIECES = (
    b'"',
    b'""',
    b",",
    b";",
    b"\t",
    b"\n",
    b"\r",
    b"\r\n",
    b"\0",
    b"\x81",
    b"\xff",
    b"1,234",
    b"1e999",
    b"nan",
    b"-",
    b" ",
)


def mutant(seed):
    rng = np.random.default_rng(seed)
    data = bytearray(TABLES[rng.integers(len(TABLES))])
    for _ in range(rng.integers(1, 4)):
        place = int(rng.integers(len(data)))
        kind = rng.integers(4)
        if kind == 0:
            data[place] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del data[place : place + int(rng.integers(1, 9))]
        else:
            data[place:place] = PIECES[rng.integers(len(PIECES))]
    return bytes(data)


@pytest.mark.parametrize("block", range(5))
def test_mutants_are_refused_or_keep_their_rows(tmp_path, block):
    refused = 0
    for seed in range(block * 100, (block + 1) * 100):
        path = tmp_path / "t.csv"
        path.write_bytes(mutant(seed))
        try:
            table = read_table(path)
        except TableError:
            refused += 1
            continue
        text = path.read_bytes().decode(table.dialect.encoding)
        width = len(table.names) - 1
        whole = [row for row in io.StringIO(text) if row.count(table.dialect.separator) == width and '"' not in row]
        assert len(table) >= len(whole) - 1  # one may be the header
        try:
            X, y = Columns.learn(table, "mpg", category_inputs="codes").training_rows(table)
        except TableError:
            refused += 1
            continue
        assert np.isfinite(X.X).all()
        assert np.isfinite(y).all()
        write_table(table, {"new": y}, tmp_path / "out.csv")
        again = read_table(tmp_path / "out.csv", separator=table.dialect.separator, decimal=table.dialect.decimal)
        for name in table.names:
            assert [cell.splitlines() for cell in again.cells(name)] == [c.splitlines() for c in table.cells(name)]
    assert 50 < refused < 100
