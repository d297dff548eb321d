"""What columns look like: names of rows, row numbers, codes, standard deviations, limits, levels of standards."""

from __future__ import annotations

import re
from shlex import quote

import numpy as np
import pandas as pd

from conformal_gp.arrays import Array
from conformal_gp.cli.tables import Table

FEWEST_NUMBERED = 10  # rows in which whole numbers that are all different look like row numbers
MOST_CODES = 50
# A target looks like levels of standards if it has so many distinct values, each in three rows on average, and if its
# rank correlation with a column of many values is so high.
FEWEST_LEVELS = 4
MOST_LEVELS = 15
REPLICATES = 3
LIKE_RESPONSE = 0.9
_START, _END = r"(?i:(^|[^a-z])", r")($|[^a-z])"
_LIKE_IDENTIFIER = re.compile(r"(?i:(^|[^a-z])(id|ids|index|no|nr|num|number|row|key|code))$|[a-z]I[dD]$")
_LIKE_NAMES = re.compile(_START + r"samples?|names?|ids?|wells?|labels?|barcode|spectrum|file(name)?|specimen" + _END)
LIKE_CODES = re.compile(
    _START + r"runs?|lots?|batch(es)?|plates?|operators?|analysts?|instruments?|machines?|labs?|sites?|operator|column|"
    r"reactors?|lines?|shifts?|suppliers?|kits?|blocks?|subjects?|patients?|codes?|types?|groups?|class|method" + _END
)
LIKE_REPLICATES = re.compile(_START + r"rep|reps|replicates?|repeats?|injection" + _END)
_LIKE_SD = re.compile(
    _START + r"sd|s\.d|std|stdev|std_?dev|se|sem|std_?err(or)?|standard[ _](deviation|error)|uncertainty|sigma|u" + _END
)
_LIKE_VARIANCE = re.compile(_START + r"var|variance|s2|sd2|sigma2" + _END)
_LIKE_SUMMARY = re.compile(r"(?i)(mean|average|avg|median|sd|std\.?( ?dev\.?)?|rsd|cv|%(rsd|cv)|min|max|sum|total)")
_NOT_DETECTED = re.compile(
    r"(?i)[<>≤≥]?\s*(n\.?\s?d\.?|not detected|bdl|blq|bql|bld|lod|loq|lloq|uloq|below.*|traces?|over(flow)?|ovrflw)"
)


def most(cells: pd.Series, pattern: re.Pattern[str]) -> bool:
    """Return whether more than half of the cells match."""
    return 2 * sum(pattern.fullmatch(cell) is not None for cell in cells) > len(cells)


def names_rows(name: str, present: pd.Series) -> bool:
    """Return whether text differs in more than four rows of five, as names do.

    If the column is called sample, name or the like, one of five is enough: samples may have replicates.
    """
    share = 0.8
    if like_names(name):
        share = 0.2
    return present.nunique() > max(2, share * len(present))


def like_names(name: str) -> bool:
    """Return whether a column is called as columns of names are.

    >>> like_names("Sample ID"), like_names("sampling rate")
    (True, False)
    """
    return _LIKE_NAMES.search(name) is not None


def summaries(table: Table, name: str) -> list[str]:
    """Return rows that are called as summaries of others are: means and standard deviations below a table."""
    cells = table.texts(name)
    return [f"{row} ({cell})" for row, cell in cells.items() if _LIKE_SUMMARY.fullmatch(cell)]


def numbers_rows(table: Table, name: str) -> bool:
    """Return whether a column looks like row numbers or identifiers: whole numbers, all different.

    They must also follow each other without a gap, or have a name such as "id".
    """
    whole = _whole_numbers(table, name)
    if len(whole) < max(len(table.frame), FEWEST_NUMBERED) or len(set(whole)) < len(whole):
        return False
    return np.ptp(whole) == len(whole) - 1 or _LIKE_IDENTIFIER.search(name) is not None


def _whole_numbers(table: Table, name: str) -> list[float]:
    found = [table.format.number(cell) for cell in table.texts(name)]
    return [value for value in found if value is not None and value == round(value)]


def like_codes(table: Table, name: str, called: re.Pattern[str] = LIKE_CODES, fewest: int = 3) -> bool:
    """Return whether a column of numbers looks like codes: called lot, run or the like, and repeated whole numbers."""
    if called.search(name) is None:
        return False
    whole = _whole_numbers(table, name)
    return len(whole) == len(table.frame) and fewest <= len(set(whole)) <= min(MOST_CODES, len(whole) // 2)


def check_noise_name(name: str, is_sd: bool) -> None:
    """Refuse standard deviations as variances, and the other way round, by what the column is called.

    >>> check_noise_name("variance", is_sd=False)
    >>> check_noise_name("SD", is_sd=False)
    Traceback (most recent call last):
    ...
    ValueError: --noise-column takes variances, and 'SD' is called as standard deviations are: give --sd-column ...
    """
    like_variance = _LIKE_VARIANCE.search(name) is not None
    if not is_sd and _LIKE_SD.search(name) and not like_variance:
        raise ValueError(
            f"--noise-column takes variances, and '{name}' is called as standard deviations are: give --sd-column "
            f"'{name}'; if it does hold variances, rename it, say to 'variance'."
        )
    if is_sd and like_variance:
        raise ValueError(
            f"--sd-column takes standard deviations, and '{name}' is called as variances are: give --noise-column "
            f"'{name}'; if it does hold standard deviations, rename it, say to 'sd'."
        )


def not_detected(cell: str) -> bool:
    """Return whether a text says that a value was beyond a limit of detection.

    >>> not_detected("n.d."), not_detected("<LOD"), not_detected("none")
    (True, True, False)
    """
    return _NOT_DETECTED.fullmatch(cell) is not None


def like_standards(X: pd.DataFrame, y: Array, target: str) -> str:
    """Ask whether a target has the levels of standards, whose signal is in another column; empty if it does not."""
    from scipy.stats import spearmanr  # takes time to import

    n_levels = np.unique(y).size
    if not FEWEST_LEVELS <= n_levels <= min(MOST_LEVELS, y.size // REPLICATES):
        return ""
    for name in X.select_dtypes("number"):
        if X[name].nunique() > 2 * n_levels and abs(spearmanr(X[name], y).statistic) > LIKE_RESPONSE:
            return (
                f"{n_levels} distinct values of {target}: are these standards? Then conformal-gp calibrate TRAIN NEW "
                f"--signal {quote(name)} --target {quote(target)} finds unknown values by the curve of {name} on "
                f"{target}"
            )
    return ""
