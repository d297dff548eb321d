"""Tables in files: every way people write them, and a sentence where one cannot be used."""

import datetime
import io
import sys

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="tables need the extra: pip install '.[cli]'")

from conformal_gp.cli.columns import Columns  # noqa: E402
from conformal_gp.cli.options import parse  # noqa: E402
from conformal_gp.cli.output import Output, write_table  # noqa: E402
from conformal_gp.cli.reading import read_table  # noqa: E402
from conformal_gp.cli.rows import read_training  # noqa: E402
from conformal_gp.cli.tables import Format  # noqa: E402

PLAIN = "weight,origin,mpg\n1.5,usa,30\n2.5,japan,20\n2.0,usa,25\n3.5,usa,15\n"
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def reading(**given):
    """Options for reading a table."""
    options = parse("evaluate", ["cars.csv", "--target", "mpg"])
    vars(options).update(given)
    return options


@pytest.fixture
def table(tmp_path):
    """Write a table to a file, and read it."""

    def make(content, name="cars.csv", like=None, **options):
        path = tmp_path / name
        if isinstance(content, pd.DataFrame):
            (content.to_parquet if name.endswith("parquet") else content.to_excel)(path, index=False)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(str(path), reading(**options), like=like)

    return make


def values(table, target="mpg", **options):
    """Inputs, with categories as their numbers, and targets of the rows that are used."""
    columns = Columns.learn(table, target, reading(**options))
    X = columns.inputs(table).X
    codes = X.apply(lambda column: column.cat.codes if column.dtype == "category" else column)
    y = columns.targets(table)["y"]
    return codes.to_numpy(dtype=float).tolist(), y[X.index].tolist()


# Ways to write a table

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


def test_rows_of_means_below_a_table_are_pointed_out(table):
    rows = "".join(f"S{i},{i % 7}.5,{i}\n" for i in range(20))
    found = table(f"sample,a,mpg\n{rows}Mean,3.5,9.5\nSD,2,6\n")
    with pytest.warns(UserWarning, match=r"rows '22 \(Mean\)', '23 \(SD\)' look like summaries of others"):
        Columns.learn(found, "mpg", reading())


def test_a_table_of_one_column_names_the_separator(table):
    with pytest.raises(ValueError, match=r"Its columns are 'a mpg' \(separator ','; --separator sets another, as in"):
        Columns.learn(table("a mpg\n1 2\n3 4\n"), "mpg", reading())


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


# Numbers are read strictly


@pytest.mark.parametrize(
    ("cell", "word"),
    [
        ("abc", r"column 'weight', row 4: 'abc' is not a number .*--na 'abc'"),
        ("1,5", r"'1,5' is not a number \(the decimal mark is '\.', --decimal"),
        ("1,234", "'1,234' is not a number"),
        ("1_0", "'1_0' is not a number"),
        ("inf", "'inf' is not a number"),
        ("1e999", "'1e999' is not a number"),
        ("2024-01-05", "'2024-01-05' is not a number"),
        ("$3", "is not a number"),
        ("44.5*", r"'44.5\*' is not a number \(write 44.5 alone: its unit belongs into the header"),
        ("12 mg/L", r"'12 mg/L' is not a number \(write 12 alone"),
        ("-1.5 ± 0.2", r"is not a number \(write -1.5 alone: .*, its uncertainty into a column"),
    ],
)
def test_cells_that_are_no_numbers(table, cell, word):
    with pytest.raises(ValueError, match=word):
        values(table(f"weight;mpg\n1.5;30\n2.5;20\n{cell};25\n3.5;15\n"))


@pytest.mark.parametrize("cell", ["1,234", "1.234", "-12,000"])
def test_a_number_that_can_be_read_in_two_ways(table, cell):
    text = f"a;mpg\n7;1\n{cell};2\n8;3\n"
    with pytest.raises(ValueError, match=f"'{cell}' can be read in two ways, .*--decimal ,"):
        table(text)
    mark = "," if "," in cell else "."
    assert values(table(text, decimal=mark))[0][1] == [float(cell.replace(",", "."))]
    assert values(table(text + f"0{mark}5;4\n"))[0][1] == [float(cell.replace(",", "."))]  # another number shows which


def test_thousands_in_a_comma_separated_file(table):
    assert values(table("a,mpg\n1.234,1\n2.345,2\n"))[0] == [[1.234], [2.345]]
    with pytest.raises(ValueError, match=r"'3,210' is not a number .*--thousands the mark between thousands"):
        values(table('a,mpg\n1,"3,210"\n2,950\n'))


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


def test_numbers_are_read_to_the_last_digit(table):
    numbers = np.random.default_rng(0).normal(size=50) * 10.0 ** np.arange(-25, 25)
    assert values(table("a,mpg\n" + "".join(f"{n!r},1\n" for n in numbers.tolist())))[0] == numbers[:, None].tolist()


# Columns


def test_target_and_dropped_columns_must_exist(table):
    cars = table(PLAIN)
    for wrong in ("MPG", "mgp", "mpg "):
        with pytest.raises(ValueError, match=r"has no column .* Did you mean 'mpg'\? Its columns are 'weight'"):
            values(cars, target=wrong)
    for drop in (["mpg"], ["weight", "origin"]):
        with pytest.raises(ValueError, match="must have the target 'mpg', and other columns"):
            values(cars, drop=drop)
    with pytest.raises(ValueError, match=r"column 'origin', row 2: 'usa' is not a number"):
        values(cars, target="origin")


def test_columns_are_matched_by_name(table):
    columns = Columns.learn(table(PLAIN), "mpg", reading())
    new = table("colour,origin,weight,mpg\nred,japan,9,\n", "new.csv")
    assert columns.inputs(new).X.astype(object).to_numpy().tolist() == [[9, "japan"]]
    with pytest.raises(ValueError, match=r"new\.csv lacks 'weight', which .*cars\.csv has. Did you mean 'Weight'"):
        columns.inputs(table("Weight,origin\n1,usa\n", "new.csv"))


def test_a_new_category_is_named_or_left_out(table):
    columns = Columns.learn(table(PLAIN), "mpg", reading())
    new = table("weight,origin\n1,usa\n2,jpaan\n", "new.csv")
    with pytest.raises(ValueError, match=r"column 'origin', row 3: 'jpaan' is not among .*Did you mean 'japan'"):
        columns.inputs(new)
    lots = Columns.learn(table("lot,a,mpg\n" + "S04,1,2\nS15,2,4\n" * 4), "mpg", reading())
    with pytest.raises(ValueError, match=r"'S05' is not among the categories of .* \('S04', 'S15'\)\. If 'lot' names"):
        lots.inputs(table("lot,a\nS05,1\n", "new.csv"))
    with pytest.warns(UserWarning, match="category that no training row has: 1"):
        assert Columns.learn(table(PLAIN), "mpg", reading(missing="drop")).inputs(new).X.index.tolist() == [2]


def test_names_are_not_taken_for_categories(table):
    named = "".join(f"car {i},m{i // 2},{i},{i}\n" for i in range(30))
    with pytest.raises(ValueError, match=r"16 different values in 30 rows.*--drop 'maker'"):
        values(table("name,maker,a,mpg\n" + named.replace("m0,", "m99,", 1)))
    with pytest.warns(UserWarning, match="names the rows, and is not used: 'name'"):
        assert values(table("name,maker,a,mpg\n" + named), drop=["maker"])[0] == [[i] for i in range(30)]
    with pytest.raises(ValueError, match="apart from 'mpg' there are only names of rows: 'name'"):
        values(table("name,maker,a,mpg\n" + named), drop=["maker", "a"])
    countries = "from,mpg\n" + "".join(f"country {i % 98},{i % 7}\n" for i in range(98 * 50))
    assert len(values(table(countries))[0]) == 98 * 50


@pytest.mark.parametrize("mark", ["", "NA", "?", "-999"])
@pytest.mark.parametrize("name", ["cars.csv", "cars.parquet"])
def test_missing_values(table, mark, name):
    text = f"weight,origin,mpg\n1,usa,30\n{mark},japan,20\n3,{mark},25\n7,usa,15\n"
    found = table(text if name.endswith("csv") else pd.read_csv(io.StringIO(text)), name)
    marks = ["-999"]
    with pytest.raises(ValueError, match=r"column 'weight', row [23] has no value; --missing drop"):
        values(found, na=marks)
    assert values(found, missing="drop", na=marks) == ([[1, 1], [7, 1]], [30, 15])
    assert values(found, missing="impute", na=marks) == ([[1, 1], [7, 1]], [30, 15])  # too few for the model to learn


def test_missing_targets_are_never_imputed(table, tmp_path):
    found = table("a,mpg\n1,30\n2,\n3,10\n")
    with pytest.raises(ValueError, match=r"column 'mpg', row 3 has no value"):
        read_training(str(tmp_path / "cars.csv"), "mpg", reading(), Output(quiet=True))
    labels = Columns.learn(found, "mpg", reading(missing="impute")).targets(table("a,mpg\n1,\n"))
    assert labels["y"].isna().all()


ORDER = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("name", "numbers", "named"),
    [
        ("x", range(60), True),
        ("x", ORDER.permutation(60), True),  # without a gap
        ("x", np.arange(60) * 7 + 3, False),  # with gaps
        ("car_id", ORDER.permutation(600)[:60], True),
        ("humid", ORDER.permutation(600)[:60], False),
        ("x", np.arange(60) // 2, False),  # not all different
        ("x", ORDER.normal(size=60), False),
    ],
)
def test_row_numbers_and_identifiers_are_pointed_out(table, recwarn, name, numbers, named):
    values(table(f",{name},mpg\n" + "".join(f"{i},{number},1\n" for i, number in enumerate(numbers))))
    said = " ".join(str(warning.message) for warning in recwarn)
    assert (f"--drop {name} leaves them out" in said) is named
    assert "columns without a name are not used" in said


# Dates

DAYS = ("2024-02-29", "2023-12-31", "2024-01-01")
ELAPSED = [[60], [0], [1]]


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d-%m-%Y", "typed"])
def test_dates_become_days_since_the_first(table, form):
    days = pd.to_datetime(pd.Series(DAYS))
    frame = pd.DataFrame({"day": days if form == "typed" else days.dt.strftime(form), "mpg": [1, 2, 3]})
    found = table(frame, "days.parquet") if form == "typed" else table(frame.to_csv(index=False))
    with pytest.warns(UserWarning, match="dates are days since 2023-12-31; rows in order of time"):
        assert values(found, dates="elapsed")[0] == ELAPSED
    with pytest.raises(ValueError, match=r"'day' has dates .*--dates elapsed .*--drop 'day'"):
        values(found)


def test_hours_and_new_dates(table):
    found = table("day,mpg\n2024-02-29 12:30,1\n2024-03-01T00:00:00Z,2\n2024-03-02 06:00+02:00,3\n")
    columns = Columns.learn(found, "mpg", reading(dates="elapsed"))
    assert columns.inputs(found).X["day"].tolist() == pytest.approx([0, 11.5 / 24, 1 + 15.5 / 24])
    columns = Columns.learn(table("day,mpg\n13/1/2024,1\n14/1/2024,2\n"), "mpg", reading(dates="elapsed"))
    assert columns.inputs(table("day\n3/1/2024\n")).X.to_numpy().tolist() == [[-10]]
    with pytest.raises(ValueError, match=r"column 'day', row 2: '1/13/2024' is not a date"):
        columns.inputs(table("day\n1/13/2024\n"))
    with pytest.raises(ValueError, match="lacks 'day'"):
        columns.inputs(table("dya\n1/1/2024\n"))


@pytest.mark.parametrize(
    ("cells", "word"),
    [
        (("1/2/2024", "3/4/2024"), "may have day or month first"),
        (("2024-02-30", "2024-01-01"), "'2024-02-30' is not a date"),
        (("2024-01-01", "2024-01-02", "soon"), "'soon' is not a date"),
    ],
)
def test_dates_that_cannot_be_read(table, cells, word):
    with pytest.raises(ValueError, match=word):
        values(table("day,mpg\n" + "".join(f"{cell},1\n" for cell in cells)), dates="elapsed")


# Writing

ADDED = {"mean": [1.5, np.nan, -np.inf, 1 / 3], "words": ["=1+1", "", "-x", "-1.5"]}


def write(table, added, out):
    write_table(table, pd.DataFrame(added, index=table.frame.index), "", out)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.xlsx", "a.parquet"])
@pytest.mark.parametrize("written", ["comma.csv", "windows-excel.csv", "cars.parquet"])
def test_what_is_written_is_read_again(table, tmp_path, name, written):
    before = table(WRITTEN[written], written)
    write(before, ADDED, str(tmp_path / name))
    after = read_table(str(tmp_path / name), reading(), like=before.format)
    assert values(after, drop=["mean", "words"]) == EXPECTED
    mean = after.frame["mean"].replace({"": np.nan}).map(lambda cell: float(str(cell).replace(",", ".")))
    np.testing.assert_array_equal(mean, np.array(ADDED["mean"]))
    words = ["=1+1", "", "-x", "-1.5"] if name == "a.parquet" else ["'=1+1", "", "'-x", "-1.5"]
    assert after.frame["words"].fillna("").tolist() == words


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.xlsx"])
@pytest.mark.parametrize("start", ["=cmd|' /C calc'!A0", "+x", "-x", "@SUM(A1)", "\tx", "\rx"])
def test_text_that_a_spreadsheet_would_run_is_marked(table, tmp_path, name, start):
    frame = pd.DataFrame({"=a": [1.5, -2.5], "b": [start, "-"], "mpg": [-1, 2], "day": pd.to_datetime(DAYS[:2])})
    write(table(frame, "odd.parquet"), {"=mean": [-0.5, 1.0]}, str(tmp_path / name))
    if name == "a.xlsx":
        after = pd.read_excel(tmp_path / name)
    else:
        after = pd.read_csv(tmp_path / name, sep="," if name == "a.csv" else "\t")
    assert list(after) == ["'=a", "b", "mpg", "day", "'=mean"]
    assert after["b"].tolist() == ["'" + start.replace("\r", "\n"), "-"]
    assert after["'=a"].tolist() == [1.5, -2.5]
    assert after["'=mean"].tolist() == [-0.5, 1.0]
    assert [str(day)[:10] for day in after["day"]] == list(DAYS[:2])


def test_cells_are_kept_as_they_were_written(table, capsys):
    write(table(PLAIN.replace("2.0", "2.00")), {"mean": [12345678.9, 1e-9, -np.inf, np.nan]}, "-")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "weight,origin,mpg,mean"
    assert lines[1:] == ["1.5,usa,30,12345678.9", "2.5,japan,20,1e-09", "2.00,usa,25,-inf", "3.5,usa,15,"]


def test_what_cannot_be_written_leaves_the_old_file(table, tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")
    with pytest.raises(ValueError, match="already has 'mpg'; rename or delete"):
        write(table(PLAIN), {"mpg": np.zeros(4)}, str(path))
    assert path.read_text() == "old"


def test_text_is_written_in_utf_8(table, tmp_path):
    """With a byte-order mark, without which spreadsheets misread it, unless the table had none."""
    path = tmp_path / "out.csv"
    text = PLAIN.replace("usa", "fü")
    for encoding, mark in (("cp1252", b"\xef\xbb\xbf"), ("utf-8", b"")):
        write(table(text.encode(encoding)), {"ŷ": np.zeros(4)}, str(path))
        assert path.read_bytes().startswith(mark + "weight,origin,mpg,ŷ\n1.5,fü,30,0\n".encode())


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


def test_numbers_of_replicates_are_pointed_out(command_line):
    rows = [f"{dose},{replicate},{dose + 0.1 * replicate}" for dose in range(6) for replicate in (1, 2, 3)]
    path = command_line.write("doses.csv", "\n".join(["dose,Replicate,y", *rows]))
    said = command_line("fit", path, "-t", "y", "--tuning", "holdout", "-o", "doses.model").stderr
    assert "numbers of replicates say nothing of a new one, and hide that inputs are equal (--drop Replicate" in said
