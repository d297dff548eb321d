"""Tables in files: every way people write them, and a sentence where one cannot be used."""

import datetime
import sys

import numpy as np
import pandas as pd
import pytest

from conformal_gp.cli.columns import Columns
from conformal_gp.cli.reading import read_table
from conformal_gp.cli.tables import Format
from written_tables import EXPECTED, PLAIN, WRITTEN, reading, values

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize("name", WRITTEN)
def test_ways_to_write_a_table(table, name):
    assert values(table(WRITTEN[name], name)) == EXPECTED


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("a,b\n", "has no rows below a header"),
        ("1,2\n3,4\n", "has no header"),
        ("a,a\n1,2\n", "more than one column named 'a'"),
        ("a,b\n1,2\n3\n", "line 3: the header has 2 cells, this line 1 .delete it if"),
        ("a,b\n1,2,3\n", "line 2: the header has 2 cells, this line 3"),
        ('a,b\n1,2\n3,"x\n4,y\n', r'line 3: a quote \("\) is not closed'),
        ('a,b\n1,"x"y\n', "line 2: a quote"),
        (f"a,b\n{'x' * 140_000},1\n", "line 2: a quote"),
        (b"PK\x03\x04rest", "not an Excel workbook, or is damaged"),
        (b"PAR1 and so on", "not a Parquet file, or is damaged"),
        (b"a,b\n\0\0", "not text in utf-8 or cp1252"),
        (b"a,b\n1,\x81\n", "not text in utf-8 or cp1252; save it in UTF-8"),
    ],
)
def test_what_is_no_table(table, content, word):
    with pytest.raises(ValueError, match=word):
        table(content)


def test_cells_that_span_lines_are_read_and_lines_are_right(table):
    found = table('a,mpg,note\n1,1,"two\nlines"\n\n2,2,"one, ""two"""\n')
    assert found.frame["note"].tolist() == ["two\nlines", 'one, "two"']
    assert found.frame.index.tolist() == [2, 5]


def test_files_that_are_not_there_or_of_no_known_kind(command_line):
    for name, word in (("no.csv", "no.csv: No such file"), ("a.json", "a.json must be CSV"), (".", "Is a directory")):
        assert word in command_line.error("evaluate", name, "-t", "mpg")


@pytest.mark.parametrize(("name", "module"), [("a.xlsx", "openpyxl"), ("a.parquet", "pyarrow")])
def test_extras_are_named(table, tmp_path, monkeypatch, name, module):
    table(pd.DataFrame({"a": [1.0], "mpg": [1.0]}), name)
    extra = "excel" if module == "openpyxl" else "parquet"
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ValueError, match=rf"needs pip install '.\[{extra}\]'"):
        read_table(str(tmp_path / name), reading())


def test_workbooks_with_empty_rows_and_several_sheets(tmp_path):
    path = str(tmp_path / "book.xlsx")
    with pd.ExcelWriter(path) as book:
        pd.DataFrame().to_excel(book, sheet_name="empty", index=False)
        rows = [[None, "a", "mpg"], [None, None, None], [None, 1.5, 2], [None, datetime.time(1), 3]]
        pd.DataFrame(rows).to_excel(book, sheet_name="cars", header=False, index=False, startrow=2)
        pd.DataFrame({"x": [1]}).to_excel(book, sheet_name="other")
    with pytest.warns(UserWarning, match="'cars' of the 2 sheets of .* is read; --sheet names another"):
        found = read_table(path, reading())
    assert list(found.frame) == ["a", "mpg"]
    with pytest.raises(ValueError, match=r"column 'a', row 6: '01:00:00' is not a number"):
        Columns.learn(found, "mpg", reading())._numbers(found, "a")


def test_notes_on_what_was_read_come_before_an_error(command_line):
    with pd.ExcelWriter("book.xlsx") as book:
        pd.DataFrame({"read me": ["see sheet cars"]}).to_excel(book, sheet_name="notes", index=False)
        pd.DataFrame({"a": [1], "mpg": [2]}).to_excel(book, sheet_name="cars", index=False)
    said = command_line.error("evaluate", "book.xlsx", "-t", "miles")
    assert "'notes' of the 2 sheets of book.xlsx is read; --sheet names another error: book.xlsx has no column" in said


def test_the_sheet_that_has_the_target_is_read(table, tmp_path):
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        pd.DataFrame({"read me": ["see sheet cars"]}).to_excel(book, sheet_name="notes", index=False)
        pd.DataFrame({"a": [1], "mpg": [2]}).to_excel(book, sheet_name="cars", index=False, startrow=2)
    assert list(read_table(str(tmp_path / "book.xlsx"), reading(), expected=["mpg"]).frame) == ["a", "mpg"]


@pytest.mark.parametrize("cell", ["1,234", "1.234", "-12,000"])
def test_a_number_that_can_be_read_in_two_ways(table, cell):
    text = f"a;mpg\n7;1\n{cell};2\n8;3\n"
    with pytest.raises(ValueError, match=f"'{cell}' can be read in two ways, .*--decimal ,"):
        table(text)
    mark = "," if "," in cell else "."
    assert values(table(text, decimal=mark))[0][1] == [float(cell.replace(",", "."))]
    assert values(table(text + f"0{mark}5;4\n"))[0][1] == [float(cell.replace(",", "."))]  # another number shows which


@pytest.mark.parametrize(
    ("train", "new", "value"),
    [
        ("a;mpg\n1234.5;1\n2;2\n", "a;b\n1.234;1\n", 1.234),
        ("a;mpg\n1234,5;1\n2;2\n", "a;b\n1,234;1\n", 1.234),
        ("a;mpg\n1234.5;1\n2;2\n", "a;b\n1,234;1\n", "'1,234' is not a number"),
        ("a;mpg\n1234.5;1\n2;2\n", "a;b\n0,5;1\n", "'0,5' is not a number"),
        ("a;mpg\n1;1\n2;2\n", "a;b\n1,234;1\n", "can be read in two ways"),
        ("a,mpg\n1.5;1\n", "a;b\n1,5;2\n", "header"),
    ],
)
def test_new_rows_are_read_as_training_rows_are(table, train, new, value):
    def read():
        old = table(train)
        found = table(new, "new.csv", like=old.format)
        return Columns.learn(old, "mpg", reading()).inputs(found).X["a"].tolist()

    if isinstance(value, float):
        assert read() == [value]
    else:
        with pytest.raises(ValueError, match=value):
            read()


def test_separator_and_encoding_of_the_training_rows_come_first(table):
    assert table("a,b;c\n1,2;3\n").format.separator == ";"
    assert table("a,b;c\n1,2;3\n", like=Format(".", separator=",")).format.separator == ","
    assert table("a;b\n1;2\n", like=Format(".", separator=",")).format.separator == ";"
    assert table("a\n1\n").format.separator == ","
    assert table("a\n1\n", like=Format(".", separator=";")).format.separator == ";"
    latin = PLAIN.replace("usa", "Österreich").encode("cp1252")
    assert table(latin).frame["origin"].iloc[0] == "Österreich"
    with pytest.raises(ValueError, match=r"not text in utf-8 or utf-8;.*--encoding"):
        table(latin, encoding="utf-8")
    with pytest.raises(ValueError, match=r"not text in utf-8 or klingon"):
        table(latin, encoding="klingon")


@pytest.mark.parametrize("first", ["utf-16", "utf-8-sig", "cp1252", "utf-8"])
@pytest.mark.parametrize("second", ["utf-16", "utf-8-sig", "cp1252", "utf-8"])
def test_each_file_has_its_own_encoding(table, first, second):
    text = PLAIN.replace("usa", "Österreich")
    like = table(text.encode(first)).format
    found = table(text.encode(second), "new.csv", like=like)
    assert found.frame["origin"].iloc[0] == "Österreich"
    assert found.format.encoding == second


def test_an_encoding_that_is_given(table):
    text = PLAIN.replace("usa", "東京")
    for encoding in ("shift-jis", "utf-8"):
        assert table(text.encode(encoding), encoding="shift-jis").frame["origin"].iloc[0] == "東京"


@pytest.mark.parametrize("seed", range(100))
def test_damaged_tables_are_refused_or_keep_their_rows(tmp_path, seed):
    rng = np.random.default_rng(seed)
    content = bytearray((PLAIN + PLAIN.partition("\n")[2] * 3).encode("cp1252" if seed % 2 else "utf-8"))
    pieces = (b'"', b",", b";", b"\t", b"\n", b"\r", b"\0", b"\x81", b"1,234", b"1e999", b"nan", b" ")
    for _ in range(rng.integers(1, 4)):
        place = int(rng.integers(len(content)))
        content[place : place + int(rng.integers(0, 2))] = pieces[rng.integers(len(pieces))]
    (tmp_path / "t.csv").write_bytes(bytes(content))
    try:
        found = read_table(str(tmp_path / "t.csv"), reading())
        X, y = values(found)
    except ValueError as error:
        assert len(str(error)) < 400  # noqa: PT017 (an error in words, or the rows)
        return
    assert len(found.frame) >= content.count(b"\n") - 2
    assert np.isfinite(X).all()
    assert np.isfinite(y).all()
