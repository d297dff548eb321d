"""Columns of dates as inputs."""

import datetime
import json

import numpy as np
import pytest

pandas = pytest.importorskip("pandas", reason="tables need pandas")

from conformal_gp.tables import Columns, TableError, read_table  # noqa: E402


@pytest.fixture
def table(tmp_path):
    def make(*cells, name="days.csv"):
        path = tmp_path / name
        path.write_text("day,y\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(cells)))
        return read_table(path)

    return make


def parts(table, **options):
    columns = Columns.learn(table, "y", dates="parts", **options)
    return columns.training_rows(table)[0].X.tolist()


THREE = [[2024, 2, 3], [2023, 12, 6], [2024, 1, 0]]  # a Thursday, a Sunday, a Monday


@pytest.mark.parametrize(
    "cells",
    [
        ("2024-02-29", "2023-12-31", "2024-01-01"),
        ("2024/2/29", "2023/12/31", "2024/1/1"),
        ("29.2.2024", "31.12.2023", "1.1.2024"),
        ("2/29/2024", "12/31/2023", "1/1/2024"),
        ("29-02-2024", "31-12-2023", "01-01-2024"),
    ],
)
def test_ways_to_write_dates(table, cells):
    assert parts(table(*cells)) == THREE


def test_hours_and_zones(table):
    days = table("2024-02-29 12:30", "2024-03-01T00:00:00Z", "2024-03-02 06:00+02:00")
    columns = Columns.learn(days, "y", dates="parts")
    assert columns.input_names == ["day (year)", "day (month)", "day (day of week)", "day (hour)"]
    assert columns.training_rows(days)[0].X[:, 3].tolist() == [12.5, 0, 4]


def test_typed_dates(tmp_path):
    days = pandas.to_datetime(["2024-02-29", "2023-12-31", "2024-01-01"])
    for frame in (pandas.DataFrame({"day": days, "y": 1.0}), pandas.DataFrame({"day": days.date, "y": 1.0})):
        frame.to_parquet(tmp_path / "days.parquet")
        assert parts(read_table(tmp_path / "days.parquet")) == THREE
    assert isinstance(days.date[0], datetime.date)


def test_missing_dates_are_filled_in_with_the_median(table):
    days = table("2024-02-28", "", "2024-03-01")
    with pytest.raises(TableError, match=r"'day' has no value in row 2"):
        parts(days)
    assert parts(days, missing="impute")[1] == [2024, 2, 3]
    assert len(parts(days, missing="drop")) == 2


@pytest.mark.parametrize(
    ("cells", "word"),
    [
        (("1/2/2024", "3/4/2024"), "can be read with the day or the month first"),
        (("2024-02-30", "2024-01-01"), "'2024-02-30' is not a date such as 2024-12-31"),
        (("13.1.24", "14.1.24"), "years have four digits"),
        (("2024-01-01", "2024-01-02", "soon"), "'soon' is not a date"),
    ],
)
def test_dates_that_cannot_be_read(table, cells, word):
    with pytest.raises(TableError, match=word):
        parts(table(*cells))


def test_new_dates_are_read_as_the_training_dates_were(table):
    columns = Columns.learn(table("13/1/2024", "14/1/2024"), "y", dates="parts")
    assert columns.design(table("3/1/2024", name="new.csv")).X.tolist() == [[2024, 1, 2]]
    restored = Columns.from_json(json.loads(json.dumps(columns.to_json())))
    assert restored == columns
    with pytest.raises(TableError, match=r"'1/13/2024' is not a date such as 31\.12\.2024"):
        columns.design(table("1/13/2024", name="new.csv"))


def test_dates_are_an_error_that_offers_parts(table):
    with pytest.raises(TableError, match=r"holds dates .* --dates parts"):
        Columns.learn(table("2024-02-29", "2023-12-31"), "y")
    assert "rarely exchangeable" in " ".join(Columns.learn(table("2024-02-29"), "y", dates="parts").notices())


def test_parts_of_any_day():
    from conformal_gp.tables.dates import parts_of

    days = np.arange(-800_000, 300_000, 997.0)
    moments = [datetime.date(1970, 1, 1) + datetime.timedelta(days=day) for day in days if day > -719_000]
    expected = [[m.year, m.month, m.weekday()] for m in moments]
    np.testing.assert_array_equal(parts_of(days[days > -719_000], hours=False), expected)
