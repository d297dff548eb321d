"""Excel workbooks as tables, and endings of names that no kind of table has."""

import datetime

import numpy as np
import pytest

pandas = pytest.importorskip("pandas", reason="tables need pandas")
openpyxl = pytest.importorskip("openpyxl", reason="workbooks need the extra: pip install 'conformal-gp[excel]'")

from conformal_gp.tables import Columns, TableError, read_table, write_table  # noqa: E402

ROWS = [["weight", "origin", "mpg"], [1.5, "usa", 30], [2.5, " japan ", 20], [2, "usa", 25.5]]


def workbook(path, *sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for i, rows in enumerate(sheets):
        sheet = book.create_sheet(f"sheet {i}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_sheet_is_a_table(tmp_path):
    table = read_table(workbook(tmp_path / "cars.xlsx", ROWS))
    (X, *_), y = Columns.learn(table, "mpg").training_rows(table)
    np.testing.assert_array_equal(X, [[1.5, 1], [2.5, 0], [2, 1]])
    np.testing.assert_array_equal(y, [30, 20, 25.5])
    assert table.note == ""
    assert table.place(1) == "row 2 (line 3)"


def test_empty_rows_columns_and_sheets_are_passed_over(tmp_path):
    spread = [[], [None, *ROWS[0]], [], *([None, *row] for row in ROWS[1:]), [], [None, None, " "]]
    table = read_table(workbook(tmp_path / "cars.xlsx", [], spread))
    assert table.names == ["weight", "origin", "mpg"]
    assert table.cells("mpg") == [30, 20, 25.5, None]  # a row with a blank is no empty row
    assert table.note == ""
    two = read_table(workbook(tmp_path / "two.xlsx", ROWS, ROWS))
    assert "has 2 sheets; only the first, 'sheet 0', is read (not 'sheet 1')" in two.note


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ([], "is empty"),
        (ROWS[:1], "has a header but no rows"),
        ([["a", "a"], [1, 2]], "more than one column named 'a'"),
        ([["y", None], [1, "x"]], "column without a name"),
        ([["a", "y"], [1, 2], [None, 3]], r"column 'a' has no value in row 2 \(line 3\)"),
        ([["a", "y"], [1, 2], ["#DIV/0!", 3], [3, 4]], "'#DIV/0!' is not a number"),
        ([["a", "y"], [datetime.datetime(2024, 2, 29), 2]], r"holds dates .* --dates parts"),
    ],
)
def test_sheets_that_are_no_table(tmp_path, rows, word):
    path = workbook(tmp_path / "odd.xlsx", rows)
    with pytest.raises(TableError, match=word):
        Columns.learn(read_table(path), "y")


def test_what_is_written_is_read_again(tmp_path):
    table = read_table(workbook(tmp_path / "cars.xlsx", ROWS))
    ends = np.array([np.nan, -np.inf, 1 / 3])
    write_table(table, {"mpg_lower": ends, "words": ["=1+1", "a", "b"]}, tmp_path / "out.xlsx")
    again = read_table(tmp_path / "out.xlsx")
    for name in table.names:
        assert again.cells(name) == table.cells(name)
    assert again.cells("mpg_lower") == [None, "-inf", 1 / 3]
    assert again.cells("words")[0] == "=1+1"  # text, and no formula


def test_text_becomes_numbers_in_a_workbook(tmp_path):
    (tmp_path / "cars.csv").write_text("weight;origin\n1,5;usa\n2;\n")
    write_table(read_table(tmp_path / "cars.csv"), {"m": np.array([1.0, 2.0])}, tmp_path / "out.xlsx")
    assert read_table(tmp_path / "out.xlsx").cells("weight") == [1.5, 2]
    write_table(read_table(tmp_path / "out.xlsx"), {"n": np.array([1.0, 2.0])}, tmp_path / "back.csv")
    assert (tmp_path / "back.csv").read_text() == "weight,origin,m,n\n1.5,usa,1,1.0\n2,,2,2.0\n"


def test_a_workbook_that_is_none(tmp_path):
    (tmp_path / "a.xlsx").write_text("a,y\n1,2\n")
    with pytest.raises(TableError, match="is not an Excel workbook, or is damaged"):
        read_table(tmp_path / "a.xlsx")


@pytest.mark.parametrize("name", ["cars.json", "cars.xls", "cars.csv.bak"])
def test_endings_of_no_kind_of_table(tmp_path, name):
    (tmp_path / name).write_text("a,y\n1,2\n")
    with pytest.raises(TableError, match=r"ends in \.\w+, which is no kind of table that is known: CSV"):
        read_table(tmp_path / name)
    (tmp_path / "cars.csv").write_text("a,y\n1,2\n")
    table = read_table(tmp_path / "cars.csv")
    with pytest.raises(TableError, match="no kind of table"):
        write_table(table, {"b": np.zeros(1)}, tmp_path / f"out-{name}")
    assert not (tmp_path / f"out-{name}").exists()


def test_without_openpyxl_the_extra_is_named(tmp_path, monkeypatch):
    workbook(tmp_path / "cars.xlsx", ROWS)
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(TableError, match=r"needs pip install 'conformal-gp\[excel\]'"):
        read_table(tmp_path / "cars.xlsx")
