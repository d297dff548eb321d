"""Tables with results, as they are written."""

import numpy as np
import pandas as pd
import pytest

from conformal_gp.cli.output import write_table
from conformal_gp.cli.reading import read_table
from written_tables import EXPECTED, PLAIN, WRITTEN, reading, values

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


DAYS = ("2024-02-29", "2023-12-31")


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
    frame = pd.DataFrame({"=a": [1.5, -2.5], "b": [start, "-"], "mpg": [-1, 2], "day": pd.to_datetime(DAYS)})
    write(table(frame, "odd.parquet"), {"=mean": [-0.5, 1.0]}, str(tmp_path / name))
    if name == "a.xlsx":
        after = pd.read_excel(tmp_path / name)
    else:
        after = pd.read_csv(tmp_path / name, sep="," if name == "a.csv" else "\t")
    assert list(after) == ["'=a", "b", "mpg", "day", "'=mean"]
    assert after["b"].tolist() == ["'" + start.replace("\r", "\n"), "-"]
    assert after["'=a"].tolist() == [1.5, -2.5]
    assert after["'=mean"].tolist() == [-0.5, 1.0]
    assert [str(day)[:10] for day in after["day"]] == list(DAYS)


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
