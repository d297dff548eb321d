"""Numbers that can be read in two ways, quotes that swallow rows, and other files that could be misread silently."""

import numpy as np
import pytest

pytest.importorskip("pandas", reason="tables need pandas")

from conformal_gp.tables import Columns, TableError, read_table, write_table
from conformal_gp.tables.dialect import Dialect, find_decimal, guess_separator


@pytest.fixture
def table(tmp_path):
    def make(content, name="t.csv", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(path, **options)

    return make


def numbers(table, name="a"):
    return [table.dialect.number(cell) for cell in table.cells(name)]


# Decimal marks


@pytest.mark.parametrize(
    ("cells", "mark"),
    [
        ("1234.5", "."),
        ("0.250", "."),
        ("1.5e3", "."),
        ("1,234.5", "."),
        ("-1,234,567", "."),
        (".5", "."),
        ("5.", "."),
        ("1234,5", ","),
        ("0,250", ","),
        ("-1,5e-3", ","),
        ("1.234,5", ","),
        ("1.234.567", ","),
        ("1,234 0,5", ","),
        ("1.234 12.5", "."),
        ("1,5 1.5", "."),  # the one with a comma is then told of as no number
        ("1 20 300", None),
        ("29.2.2024 v1.2 a,b", None),
    ],
)
def test_marks_that_numbers_show(cells, mark):
    assert find_decimal([[cell] for cell in cells.split()], ";") == (mark, None)


@pytest.mark.parametrize("cell", ["1,234", "-12,000", "1.234", "999.999"])
@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_a_number_that_can_be_read_in_two_ways(table, cell, separator):
    text = f"a;mpg\n7;1\n{cell};2\n8;3\n".replace(";", separator)
    mark = "," if "," in cell else "."
    with pytest.raises(TableError) as caught:
        table(text)
    path = str(caught.value).partition(": column")[0]
    assert str(caught.value) == (
        f"{path}: column 'a', row 2 (line 3): '{cell}' can be read as {cell.replace(',', '.')} or as "
        f"{cell.replace(mark, '')}, and no other number shows which. If '{mark}' is the decimal mark, say --decimal "
        f"{mark} (decimal='{mark}'); if it stands between thousands, take it out."
    )
    assert numbers(table(text, decimal=mark))[1] == float(cell.replace(",", "."))


def test_evidence_may_come_late(table):
    assert numbers(table("a;mpg\n" + "1,234;1\n" * 3000 + "0,5;1\n"))[0] == 1.234


def test_a_point_in_a_comma_separated_file_is_a_decimal_point(table):
    assert numbers(table("a,mpg\n1.234,1\n2.345,2\n")) == [1.234, 2.345]


def test_a_table_is_read_as_the_one_that_it_goes_with(table):
    points, commas = table("a;y\n1234.5;1\n").dialect, table("a;y\n1234,5;1\n").dialect
    new = table("a;b\n1,234;1\n", like=points)
    assert new.dialect.decimal == "."
    with pytest.raises(TableError, match=r"row 1 \(line 2\): '1,234' is not a number .*--decimal says otherwise"):
        Columns.of_numbers("train", "y", ["a"]).design(new)
    assert numbers(table("a;b\n1,234;1\n", like=commas)) == [1.234]
    assert numbers(table("a;b\n1.234;1\n", like=points)) == [1.234]
    assert numbers(table("a;b\n1,5;1\n", like=points)) == [1.5]  # it shows its own
    with pytest.raises(TableError, match="can be read as"):
        table("a;b\n1,234;1\n", like=table("a;y\n1;1\n").dialect)  # whole numbers show nothing
    assert table("a;b\n1;1\n", like=commas).dialect.decimal == ","


def test_the_separator_of_the_other_table_goes_first():
    assert guess_separator("a,b;c\n1,2;3\n") == ";"
    assert guess_separator("a,b;c\n1,2;3\n", ",") == ","
    assert guess_separator("a;b\n1;2\n", ",") == ";"


def test_how_a_table_is_written_is_kept_with_its_columns(table):
    import json

    columns = Columns.learn(table("a;mpg\n1,5;1\n2,5;2\n"), "mpg")
    again = Columns.from_json(json.loads(json.dumps(columns.to_json())))
    assert again.dialect == Dialect(";", ",")
    older = columns.to_json()
    del older["dialect"]
    assert Columns.from_json(json.loads(json.dumps(older))).dialect is None


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("missing", "never"),
        ("category_inputs", 3),
        ("source", None),
        ("missing_marks", "x"),
        ("left_out", [1]),
        ("dialect", {"separator": ";;", "decimal": ",", "encoding": "utf-8", "marked": True}),
        ("dialect", {"separator": ";", "decimal": "x", "encoding": "utf-8", "marked": True}),
        ("columns", [{"name": "a", "categories": ["x", "x"], "fill": "x", "constant": False}]),
        ("columns", [{"name": "a", "categories": ["x", "y"], "fill": "z", "constant": False}]),
        ("columns", [{"name": "a", "categories": None, "fill": "z", "constant": False}]),
        ("columns", [{"name": "a", "categories": None, "fill": float("nan"), "constant": False}]),
        ("columns", [{"name": 1, "categories": None, "fill": 0.0, "constant": False}]),
    ],
)
def test_columns_that_are_none(table, entry, value):
    import json

    document = json.loads(json.dumps(Columns.learn(table("a,mpg\n1,1\n2,2\n"), "mpg").to_json()))
    with pytest.raises((ValueError, TypeError)):
        Columns.from_json(document | {entry: value})


# Quotes and long cells


def rows_with(cell, row=21, n=41):
    """A table of ``n`` rows whose last cell is quoted in one."""
    lines = [f"{i},{i},{cell if i == row else 'usa'}" for i in range(n)]
    return "a,mpg,kind\n" + "\n".join(lines) + "\n"


def message(caught):
    return "line" + str(caught.value).partition(", line")[2]


def test_an_unclosed_quote_does_not_swallow_rows(table):
    with pytest.raises(TableError) as caught:
        table(rows_with('"usa'))
    assert message(caught) == (
        'line 23: a quote (") is opened and never closed, so that the rest of the file would be one cell.'
    )


@pytest.mark.parametrize("cell", ['"usa', '"usa"x'])
def test_a_quote_that_closes_within_a_cell(table, cell):
    text = rows_with(cell).replace("30,30,usa", '30,30,"japan')
    with pytest.raises(TableError, match=r'line 23: a quote \("\) closes in line \d+ before its cell ends'):
        table(text)


def test_a_quote_that_closes_rows_later(table):
    text = rows_with('"usa').replace("30,30,usa", '30,30,japan"')
    with pytest.raises(TableError) as caught:
        table(text)
    assert message(caught) == (
        'line 23: a quote (") is opened that closes only in line 32, and each of these lines looks like a row of its '
        "own; close the quote, or take it out."
    )


def test_cells_that_do_span_lines_are_read(table):
    found = table('a,mpg,note\n1,1,"two\nlines"\n2,2,"one, two"\n3,3,x\n')
    assert found.cells("note") == ["two\nlines", "one, two", "x"]
    assert found.lines.tolist() == [3, 4, 5]


def test_quotes_with_blanks_about_them_are_read(table):
    found = table('a,kind\n1 , "usa" \n2, "ja ""pan"" " ,\n3,5" disk\n'.replace(" ,\n", " \n"))
    assert found.cells("kind") == ["usa", 'ja "pan"', '5" disk']


@pytest.mark.parametrize("where", ["first", "later"])
def test_a_cell_without_end(table, where):
    long = "x" * 131_073
    text = f"a,mpg\n1,1\n{long},2\n" if where == "later" else f"a{long},mpg\n1,1\n"
    with pytest.raises(TableError) as caught:
        table(text)
    line = 3 if where == "later" else 1
    assert message(caught) == (
        f'line {line}: a cell has more than 131,072 characters; is a quote (") missing that would close it?'
    )


def test_a_separator_that_is_none(table):
    for separator in ('"', "\n", ""):
        with pytest.raises(TableError, match="separator must be one character"):
            table("a,b\n1,2\n", separator=separator)


# Encodings


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"a,b\n1,\x81\n", r"line 2: not text in UTF-8 or Windows-1252; save the file in UTF-8"),
        (b"\xef\xbb\xbfa,b\n1,\xff\n", r"line 2: not text in UTF-8"),
        ("a,b\n1,2\n".encode("utf-16")[:-1], r"not text in UTF-16"),
    ],
)
def test_no_character_is_guessed(table, content, word):
    """Two categories could become the same, and what is written back would differ from what was read."""
    with pytest.raises(TableError, match=word):
        table(content)


def test_a_character_that_the_encoding_lacks(table, tmp_path):
    latin = table("a,füße\n1,2\n".encode("cp1252"))
    path = tmp_path / "out.csv"
    path.write_text("old")
    with pytest.raises(TableError, match=r"line 1 of the output has the character 'ŷ', which cp1252"):
        write_table(latin, {"ŷ": np.zeros(1)}, path)
    assert path.read_text() == "old"
    write_table(latin, {"y": np.zeros(1)}, path)
    assert path.read_bytes() == "a,füße,y\n1,2,0.0\n".encode("cp1252")


# Missing values


def test_a_mark_that_is_a_number_stands_for_that_number(table, tmp_path):
    text = "a;mpg\n1,5;1\n-999,0;2\n-999;3\n-9,99e2;4\n"
    columns = Columns.learn(table(text), "mpg", missing="drop", missing_marks=["-999"])
    assert columns.design(table(text)).X.tolist() == [[1.5]]
    assert columns.emptiest(table(text)) == ("a", 3)
    import pandas

    pandas.DataFrame({"a": [1.5, -999.0], "mpg": [1, 2]}).to_parquet(tmp_path / "t.parquet")
    typed = read_table(tmp_path / "t.parquet")
    assert Columns.learn(typed, "mpg", missing="drop", missing_marks=["-999"]).design(typed).X.tolist() == [[1.5]]


def test_lists_in_parquet_are_named(tmp_path):
    import pandas

    pandas.DataFrame({"a": [[1, 2], [3]], "mpg": [1, 2]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"column 'a', row 1: '\[1 2\]' is not a number"):
        Columns.learn(read_table(tmp_path / "t.parquet"), "mpg")


@pytest.mark.parametrize("seed", range(40))
def test_damaged_parquet_is_said_to_be(tmp_path, seed):
    import pandas

    path = tmp_path / "t.parquet"
    pandas.DataFrame({"a": np.arange(50.0), "kind": ["x", "y"] * 25, "mpg": np.arange(50)}).to_parquet(path)
    rng = np.random.default_rng(seed)
    content = bytearray(path.read_bytes())
    for place in rng.integers(len(content), size=20):
        content[place] ^= 1 << int(rng.integers(8))
    path.write_bytes(bytes(content))
    try:
        table = read_table(path)
        Columns.learn(table, "mpg").training_rows(table)
    except TableError:
        pass
