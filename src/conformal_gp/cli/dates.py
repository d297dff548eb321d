"""Columns of dates: their format, and numbers in their place."""

from __future__ import annotations

import re

import pandas as pd

DATE_FORMATS: tuple[str, ...] = ("ISO8601", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y")
DATE_FORMATS += ("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%m-%d-%y")
DATE_FORMATS += ("%d-%b-%Y", "%d %b %Y", "%d-%b-%y", "%d %b %y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y")
_TIME = r"([T ]\d{1,2}:.*)?"
_DIGITS = r"\d{4}([-/])\d{1,2}\2\d{1,2}|\d{1,2}([./-])\d{1,2}\3\d{2,4}"
_WORDS = r"\d{1,2}([- ])[A-Za-z]{3,9}\4\d{2,4}|[A-Za-z]{3,9} \d{1,2}, \d{4}"
LIKE_DATE = re.compile(f"({_DIGITS}|{_WORDS}){_TIME}")
_WITH_TIME = re.compile(r"(.*\d) (\d{1,2}:\d{2}(:\d{2})?)")
DAY = pd.Timedelta(days=1)


def read_dates(cells: pd.Series, form: str) -> pd.Series:
    """Read dates, with or without a time of day; NaT where a cell is not a date in the format.

    >>> [str(date) for date in read_dates(pd.Series(["3.1.2024 06:00", "x"]), "%d.%m.%Y")]
    ['2024-01-03 06:00:00+00:00', 'NaT']
    """
    if form == "ISO8601":
        return pd.to_datetime(cells, format=form, errors="coerce", utc=True)
    split = [_WITH_TIME.fullmatch(cell) for cell in cells]
    dates = pd.Series([cell if match is None else match[1] for cell, match in zip(cells, split, strict=True)])
    times = ["0:00:00" if match is None else match[2] + ":00" * (match[3] is None) for match in split]
    read = pd.to_datetime(dates, format=form, errors="coerce", utc=True) + pd.to_timedelta(times, errors="coerce")
    return read.set_axis(cells.index)


def date_format(cells: pd.Series) -> str | None:
    """Return the format that most dates have; None if day and month could be either."""
    distinct = pd.Series(cells.unique())
    read = {form: read_dates(distinct, form) for form in DATE_FORMATS}
    best, *others = sorted(DATE_FORMATS, key=lambda form: -int(read[form].notna().sum()))
    most = read[best].notna().sum()
    if any(read[form].notna().sum() == most and not read[form].equals(read[best]) for form in others):
        return None
    return best


def days_since(moments: pd.Series, first: str) -> pd.Series:
    """Return days since a first date.

    >>> days_since(pd.to_datetime(pd.Series(["2024-03-01T12:00Z"])), "2024-02-28T00:00:00+00:00").tolist()
    [2.5]
    """
    return (moments - pd.Timestamp(first)) / DAY
