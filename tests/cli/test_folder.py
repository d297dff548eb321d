"""Training rows in a folder of files."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("dask.dataframe", reason="folders are read through Dask")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((900, 2)), columns=["a", "b"])
    return frame.assign(y=np.sin(frame["a"]) + 0.1 * rng.standard_normal(900), word="w")


def write(folder, rows, kind):
    folder.mkdir()
    for i, part in enumerate(np.array_split(np.arange(len(rows)), 3)):
        getattr(rows.iloc[part], f"to_{kind}")(folder / f"part{i}.{kind}", index=False)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_folder_gives_what_its_rows_in_one_go_give(command_line, tmp_path, rows, kind):
    from conformal_gp import SparseConformalGPRegressor

    numbers = rows.drop(columns="word")
    write(tmp_path / "train", numbers, kind)
    numbers.head(20).drop(columns="y").to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out.csv"
    command_line("predict", tmp_path / "train", tmp_path / "new.csv", "-t", "y", "--confidence", "90%", "-o", out)
    found = pd.read_csv(out)[["y_lower_90", "y_upper_90"]].to_numpy()
    model = SparseConformalGPRegressor(random_state=0).fit(numbers[["a", "b"]], numbers["y"])
    np.testing.assert_allclose(found, model.predict_interval(numbers[["a", "b"]].head(20), 0.9), rtol=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-t", "y"), "not numbers: 'word'"),
        (("-t", "z"), "'z'"),
        (("-t", "y", "--drop", "wrd"), "wrd"),
        (("-t", "y", "--drop", "word", "--missing", "drop"), "--missing"),
        (("-t", "y", "--drop", "word", "--tuning", "train"), "--tuning train"),
    ],
)
def test_mistakes_with_a_folder(command_line, tmp_path, rows, arguments, message):
    write(tmp_path / "train", rows, "csv")
    rows.head(3).to_csv(tmp_path / "new.csv", index=False)
    result = command_line("predict", tmp_path / "train", tmp_path / "new.csv", *arguments, code=2)
    assert message in " ".join(result.stderr.split())
