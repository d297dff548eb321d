"""Tables: every way people write them, and a clear word where one cannot be used."""

import io

import numpy as np
import pytest

pandas = pytest.importorskip("pandas", reason="tables need pandas")

from conformal_gp.tables import Columns, TableError, read_table, write_table  # noqa: E402
from conformal_gp.tables.dialect import guess_separator  # noqa: E402

PLAIN = "weight,origin,mpg\n1.5,usa,30\n2.5,japan,20\n2.0,usa,25\n3.5,usa,15\n"


@pytest.fixture
def table(tmp_path):
    """Write a table to a file, and read it."""

    def make(content, name="cars.csv", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(path, **options)

    return make


def values(table, target="mpg", **options):
    columns = Columns.learn(table, target, **options)
    (X, *_), y = columns.training_rows(table)
    return X, y


EXPECTED = ([[1.5, 1], [2.5, 0], [2.0, 1], [3.5, 1]], [30, 20, 25, 15])


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (PLAIN, "comma.csv"),
        (PLAIN.replace(",", "\t"), "tab.tsv"),
        (PLAIN.replace(",", "\t"), "tab-in-a.csv"),
        (PLAIN.replace(",", ";"), "semicolons.csv"),
        (PLAIN.replace(",", ";").replace(".", ","), "decimal-commas.csv"),
        (PLAIN.replace(",", "\t").replace(".", ","), "decimal-commas.tsv"),
        (PLAIN.replace(",", "|"), "pipes.csv"),
        (PLAIN.replace("\n", "\r\n"), "windows.csv"),
        (PLAIN.replace("\n", "\r"), "old-mac.csv"),
        (PLAIN.encode("utf-8-sig"), "byte-order-mark.csv"),
        (PLAIN.replace("\n", "\r\n").replace(",", ";").replace(".", ",").encode("utf-8-sig"), "excel.csv"),
        (PLAIN.encode("utf-16"), "unicode-text.csv"),
        (PLAIN.rstrip("\n"), "no-last-line-end.csv"),
        (PLAIN + "\n\n", "empty-lines.csv"),
        (PLAIN.replace(",", " , "), "blanks.csv"),
        ('"' + PLAIN.replace(",", '","').replace("\n", '"\n"')[:-1], "quoted.csv"),
        ('"' + PLAIN.replace(",", '","').replace("\n", '"\n"')[:-1].replace(".", ","), "quoted-commas.csv"),
        ("sep=;\n" + PLAIN.replace(",", ";"), "says-its-separator.csv"),
        (PLAIN, "no-ending"),
    ],
)
def test_ways_to_write_a_table(table, content, name):
    X, y = values(table(content, name))
    np.testing.assert_array_equal(X, EXPECTED[0])
    np.testing.assert_array_equal(y, EXPECTED[1])


def test_parquet(tmp_path):
    frame = pandas.read_csv(io.StringIO(PLAIN))
    for written in (frame, frame.astype({"origin": "category"}), frame.astype({"mpg": "Int64"})):
        written.to_parquet(tmp_path / "cars.parquet")
        X, y = values(read_table(tmp_path / "cars.parquet"))
        np.testing.assert_array_equal(X, EXPECTED[0])
        np.testing.assert_array_equal(y, EXPECTED[1])


def test_parquet_index_dates_and_nothing(tmp_path):
    frame = pandas.read_csv(io.StringIO(PLAIN))
    frame.set_index("weight").to_parquet(tmp_path / "index.parquet")
    assert read_table(tmp_path / "index.parquet").names == ["weight", "origin", "mpg"]
    frame.assign(day=pandas.Timestamp("2024-02-29")).to_parquet(tmp_path / "dates.parquet")
    with pytest.raises(TableError, match=r"'day' holds dates \(row 1: 2024-02-29"):
        values(read_table(tmp_path / "dates.parquet"))
    frame.assign(weight=[1.0, None, 2.0, 3.0]).to_parquet(tmp_path / "missing.parquet")
    with pytest.raises(TableError, match="column 'weight' has no value in row 2"):
        values(read_table(tmp_path / "missing.parquet"))
    frame.assign(mpg=[True, False, True, True]).to_parquet(tmp_path / "flags.parquet")
    np.testing.assert_array_equal(values(read_table(tmp_path / "flags.parquet"))[1], [1, 0, 1, 1])
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 and so on")
    with pytest.raises(TableError, match="not a Parquet file, or is damaged"):
        read_table(tmp_path / "damaged.parquet")


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("a,b\n", "has a header but no rows"),
        ("1,2\n3,4\n", "has no header"),
        ("a,a\n1,2\n", "more than one column named 'a'"),
        ("a,b\n1,2\n3\n", r"line 3: 1 cells, but the header names 2 columns"),
        ("a,b\n1,2,3\n", r"line 2: 3 cells"),
        (b"PK\x03\x04rest", "Excel workbook, "),
        (b"\x1f\x8brest", "compressed with gzip"),
        (b"a,b\n\0\0", "binary data"),
    ],
)
def test_what_is_no_table(table, content, word):
    with pytest.raises(TableError, match=word):
        table(content)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(TableError, match=r"nowhere\.csv: there is no such file"):
        read_table(tmp_path / "nowhere.csv")
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path)


def test_a_latin_1_file_keeps_its_accents(table):
    content = PLAIN.replace("usa", "Österreich").encode("cp1252")
    assert table(content).cells("origin")[0] == "Österreich"


def test_separators_can_be_said(table):
    text = "a b;mpg\n1;2\n3;4\n"
    assert table(text, separator="semicolon").names == ["a b", "mpg"]
    assert table("a:b\n1:2\n", separator=":").names == ["a", "b"]
    with pytest.raises(TableError, match="separator must be one character"):
        table(text, separator="ab")
    with pytest.raises(TableError, match=r"decimal must be '\.' or ','"):
        table(text, decimal="x")


def test_a_comma_in_a_name_does_not_confuse_the_separator():
    assert guess_separator("weight, kg;mpg\n1,5;30\n") == ";"


@pytest.mark.parametrize(
    ("cell", "word"),
    [
        ("abc", r"column 'weight', row 3 \(line 4\): 'abc' is not a number .*--na 'abc'"),
        ("1,5", r"'1,5' is not a number \(the decimal mark is '\.'; --decimal"),
        ("1_0", "'1_0' is not a number"),
        ("inf", "'inf' is not finite"),
        ("2024-01-05", "dates are not numbers"),
    ],
)
def test_cells_that_are_no_numbers(table, cell, word):
    text = "weight;mpg\n1.5;30\n2.5;20\nX;25\n3.5;15\n".replace("X", cell)
    with pytest.raises(TableError, match=word):
        values(table(text))


@pytest.mark.parametrize("price", ["$1,200.50", "1 200 €", "1'200.5", "12%"])
def test_columns_meant_as_numbers_do_not_become_categories(table, price):
    with pytest.raises(TableError, match=r"column 'price', row 1 .* is not a number"):
        values(table(f"price;mpg\n{price};1\n{price};2\n{price};3\n"))


@pytest.mark.parametrize("date", ["2024-02-29", "29.2.2024", "2/29/24", "2024-02-29T12:00:00", "2024/02/29 12:00"])
def test_dates_are_named(table, date):
    with pytest.raises(TableError, match=r"'day' holds dates \(row 1 \(line 2\): .*--drop 'day'"):
        values(table(f"day,mpg\n{date},1\n{date},2\n{date},3\n"))
    X, _ = values(table(f"day,size,mpg\n{date},1,1\n{date},2,2\n{date},3,3\n"), leave_out=["day"])
    assert X.tolist() == [[1], [2], [3]]


@pytest.mark.parametrize("mark", ["", "NA", "nan", "?", "null"])
def test_missing_values(table, mark):
    text = f"weight,origin,mpg\n1,usa,30\n{mark},japan,20\n3,{mark},25\n7,usa,15\n"
    with pytest.raises(TableError, match=r"(?s)column 'weight' has no value in row 2 \(line 3\).*--missing drop"):
        values(table(text))
    X, y = values(table(text), missing="drop")
    assert X.tolist() == [[1, 1], [7, 1]]
    assert y.tolist() == [30, 15]
    X, y = values(table(text), missing="impute")
    assert X.tolist() == [[1, 1], [3, 0], [3, 1], [7, 1]]
    assert y.tolist() == [30, 20, 25, 15]


def test_all_troubles_are_told_at_once(table):
    text = "day,a,b,mpg\n2024-01-05,,1,1\n2024-01-06,2,,2\n"
    with pytest.raises(TableError) as caught:
        values(table(text))
    message = str(caught.value)
    for word in ("'day' holds dates", "'a' has no value in row 1 (line 2)", "'b' has no value in row 2 (line 3)"):
        assert word in message
    assert message.count("--missing drop") == 1


def test_missing_labels_are_never_imputed(table):
    text = "a,mpg\n1,30\n2,\n3,10\n"
    with pytest.raises(TableError, match=r"the target 'mpg' has no value in row 2 \(line 3\)"):
        values(table(text))
    for rule in ("drop", "impute"):
        assert values(table(text), missing=rule)[1].tolist() == [30, 10]


def test_a_mark_of_ones_own(table):
    text = "a,mpg\n1,30\nnone,20\n3,10\n"
    with pytest.raises(TableError, match="'none' is not a number"):
        values(table(text))
    assert values(table(text), missing="drop", missing_marks=["none"])[0].tolist() == [[1], [3]]


def test_target_and_dropped_columns_must_exist(table):
    cars = table(PLAIN)
    for wrong in ("MPG", "mgp", "mpg "):
        with pytest.raises(TableError, match=r"has no column .* Did you mean 'mpg'\? Its columns are 'weight'"):
            values(cars, target=wrong)
    with pytest.raises(TableError, match=r"has no column 'qqq'\. Its"):
        values(cars, leave_out=["qqq"])
    with pytest.raises(TableError, match="target 'mpg' cannot be dropped"):
        values(cars, leave_out=["mpg"])
    with pytest.raises(TableError, match="no column besides the target"):
        values(cars, leave_out=["weight", "origin"])
    with pytest.raises(TableError, match=r"the target 'origin'.*'usa' is not a number"):
        values(cars, target="origin")


def test_categories(table):
    text = "kind,mpg\nb,1\nc,2\na,3\nb,4\nc,5\na,6\n"
    columns = Columns.learn(table(text), "mpg")
    assert columns.input_names == ["kind=a", "kind=b", "kind=c"]
    np.testing.assert_array_equal(columns.design(table(text)).X, np.tile(np.eye(3)[[1, 2, 0]], (2, 1)))
    codes = Columns.learn(table(text), "mpg", category_inputs="codes")
    assert codes.input_names == ["kind"]
    np.testing.assert_array_equal(codes.design(table(text)).X[:, 0], [1, 2, 0, 1, 2, 0])
    assert "one 0/1 input a category): kind: a, b, c" in columns.notices()[0]
    assert "alphabetical" in codes.notices()[0]


def test_a_new_category_is_named(table):
    columns = Columns.learn(table(PLAIN), "mpg")
    new = table("weight,origin\n1,usa\n2,jpaan\n", "new.csv")
    with pytest.raises(
        TableError, match=r"new\.csv: column 'origin', row 2 \(line 3\): 'jpaan' is not among .*Did you mean 'japan'"
    ):
        columns.design(new)


def test_names_are_not_taken_for_categories(table):
    text = "name,mpg\n" + "".join(f"car {i},{i}\n" for i in range(30))
    with pytest.raises(TableError, match=r"30 different values in 30 rows.*--drop 'name'"):
        values(table(text))
    assert values(table(text), category_inputs="codes")[0].shape == (30, 1)


def test_categories_may_be_many_where_each_has_many_rows(table):
    rows = [f"country {i % 98},{i % 7}\n" for i in range(98 * 50)]
    assert values(table("from,y\n" + "".join(rows)), target="y")[0].shape == (98 * 50, 98)
    with pytest.raises(TableError, match=r"98 different values in 3000 rows"):
        values(table("from,y\n" + "".join(rows[:3000])), target="y")


def test_many_columns_of_text_are_described_in_one_line(table):
    names = [f"column{i}" for i in range(30)]
    rows = ["abcdefgh"[i % 8] for i in range(40)]
    text = ",".join([*names, "mpg"]) + "\n" + "".join(",".join([cell] * 30 + ["1"]) + "\n" for cell in rows)
    notice = Columns.learn(table(text), "mpg").notices()[0]
    assert notice.endswith("column7 (8) and 22 more columns")
    assert len(notice) < 250


def test_columns_are_matched_by_name(table):
    columns = Columns.learn(table(PLAIN), "mpg")
    new = table("colour,origin,weight,mpg\nred,japan,9,\n", "new.csv")
    np.testing.assert_array_equal(columns.design(new).X, [[9, 0]])
    assert columns.extra(new) == ["colour"]
    with pytest.raises(TableError, match=r"new\.csv lacks 'weight', which .*cars\.csv has. Did you mean 'Weight'"):
        columns.design(table("Weight,origin\n1,usa\n", "new.csv"))


def test_constant_and_unnamed_columns_are_mentioned(table):
    counted = ",a,b,mpg\n0,1,7,3\n1,2,7,4\n2,3,7,5\n"
    columns = Columns.learn(table(counted), "mpg")
    assert columns.input_names == ["a", "b"]
    notices = " ".join(columns.notices())
    assert "'b'" in notices
    assert "without a name is not used" in notices
    shuffled = ",a,mpg\n7,1,3\n0,2,4\n5,3,5\n"
    assert Columns.learn(table(shuffled), "mpg").input_names == ["a"]
    for unclear in (",a,mpg\n5,1,2\n5,2,3\n", ",a,mpg\n0.5,1,2\n1.5,2,3\n", ",a,mpg\nx,1,2\ny,2,3\n"):
        with pytest.raises(TableError, match=r"a column without a name.*--drop ''"):
            Columns.learn(table(unclear), "mpg")
        assert Columns.learn(table(unclear), "mpg", leave_out=[""]).input_names == ["a"]
    with pytest.raises(TableError, match="column 'a' is empty"):
        Columns.learn(table("a,b,mpg\n,1,2\n,2,3\n"), "mpg")


def test_thousands_are_not_taken_for_decimals(table):
    with pytest.raises(TableError, match=r"'3,210' is not a number .*between thousands must be taken out"):
        values(table('a,mpg\n1,"3,210"\n2,950\n3,"1,005"\n'))
    decimals = 'a,mpg\n1,"3,210"\n2,"0,950"\n3,"1,005"\n'
    assert values(table(decimals))[1].tolist() == [3.21, 0.95, 1.005]
    assert values(table("a;mpg\n1;3,210\n2;1,005\n", decimal=","))[1].tolist() == [3.21, 1.005]


def test_numbers_are_read_to_the_last_digit(table):
    numbers = np.random.default_rng(0).normal(size=50) * 10.0 ** np.arange(-25, 25)
    text = "a,mpg\n" + "".join(f"{number!r},1\n" for number in numbers.tolist())
    np.testing.assert_array_equal(values(table(text))[0][:, 0], numbers)


def test_columns_survive_json(table):
    import json

    text = "weight,origin,mpg\n1,usa,30\n,japan,20\n3,usa,25\n7,usa,15\n"
    columns = Columns.learn(table(text), "mpg", missing="drop", leave_out=["weight"], missing_marks=["x"])
    assert Columns.from_json(json.loads(json.dumps(columns.to_json()))) == columns


ADDED = {"mean": np.array([1.5, np.nan, -np.inf, 1 / 3]), "region": ["[1; 2]", "", "", ""]}


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (PLAIN, "a.csv"),
        (PLAIN.replace(",", ";").replace(".", ",").replace("usa", '"u;s"').encode("utf-8-sig"), "a.csv"),
        (PLAIN.replace(",", "\t"), "a.tsv"),
    ],
)
def test_text_is_written_as_it_was_read(table, tmp_path, content, name):
    before = table(content)
    write_table(before, ADDED, tmp_path / name)
    after = read_table(tmp_path / name)
    assert after.dialect == before.dialect
    assert after.names == [*before.names, "mean", "region"]
    for column in before.names:
        assert after.cells(column) == before.cells(column)
    assert [before.dialect.number(cell) for cell in after.cells("mean")] == [1.5, None, -np.inf, 1 / 3]


def test_text_becomes_parquet_and_back(table, tmp_path):
    write_table(table(PLAIN), ADDED, tmp_path / "a.parquet")
    frame = pandas.read_parquet(tmp_path / "a.parquet")
    assert frame["weight"].tolist() == [1.5, 2.5, 2.0, 3.5]
    assert frame["origin"].tolist() == ["usa", "japan", "usa", "usa"]
    np.testing.assert_array_equal(frame["mean"], ADDED["mean"])
    write_table(read_table(tmp_path / "a.parquet"), {}, tmp_path / "a.csv")
    assert read_table(tmp_path / "a.csv").cells("origin") == ["usa", "japan", "usa", "usa"]


def test_columns_are_not_overwritten(table, tmp_path):
    with pytest.raises(TableError, match=r"already has 'mpg'.*--prefix"):
        write_table(table(PLAIN), {"mpg": np.zeros(4)}, tmp_path / "a.csv")


def test_large_and_wide(table):
    rng = np.random.default_rng(0)
    long = "a,b,kind,mpg\n" + "".join(
        f"{a!r},{i},{'xyz'[i % 3]},{i}\n" for i, a in enumerate(rng.normal(size=100_000).tolist())
    )
    X, y = values(table(long))
    assert X.shape == (100_000, 5)
    assert y[-1] == 99_999
    wide = ",".join(f"c{i}" for i in range(1000)) + ",mpg\n"
    wide += "".join(",".join(map(str, row)) + "\n" for row in rng.integers(0, 9, size=(20, 1001)))
    assert values(table(wide))[0].shape == (20, 1000)
