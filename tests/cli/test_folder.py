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


def test_known_noise_of_rows_in_a_folder(command_line, tmp_path, rows):
    from conformal_gp import SparseConformalGPRegressor

    numbers = rows.drop(columns="word").assign(v=np.random.default_rng(1).choice([0.01, 0.5], 900))
    write(tmp_path / "train", numbers, "csv")
    numbers.head(20).drop(columns="y").to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out.csv"
    arguments = ("predict", tmp_path / "train", tmp_path / "new.csv", "-t", "y", "-c", "90%")
    command_line(*arguments, "--noise-column", "v", "-o", out)
    found = pd.read_csv(out)[["y_lower_90", "y_upper_90"]].to_numpy()
    inputs = numbers[["a", "b"]]
    model = SparseConformalGPRegressor(random_state=0).fit(inputs, numbers["y"], noise_variance=numbers["v"])
    expected = model.predict_interval(inputs.head(20), 0.9, noise_variance=numbers["v"].head(20))
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert "no column 'w'" in command_line.error(*arguments, "--noise-column", "w")
    assert "cannot be dropped" in command_line.error(*arguments, "--noise-column", "v", "--drop", "v")


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


def folder(tmp_path, **files):
    """A folder of text files, a double underscore in a name standing for a dot."""
    path = tmp_path / "parts"
    path.mkdir()
    for name, content in files.items():
        (path / name.replace("__", ".")).write_text(content)
    return path


def part(n=60, names="a,b,y", separator=",", decimal=".", seed=0):
    rng = np.random.default_rng(seed)
    rows = [separator.join(str(x).replace(".", decimal) for x in row) for row in rng.normal(size=(n, 3)).round(4)]
    return names.replace(",", separator) + "\n" + "\n".join(rows) + "\n"


def fit(command_line, path, *options, method="error"):
    new = command_line.write("new.csv", "a,b\n0.5,0.25\n")
    call = command_line.error if method == "error" else command_line
    return call("predict", path, new, "-t", "y", "-c", "80%", *options)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("a,c,y", "p2.csv has other columns than p1.csv: it has 'c' and it lacks 'b'."),
        ("b,a,y", "p2.csv has other columns than p1.csv: their order is 'b', 'a', 'y', not 'a', 'b', 'y'."),
    ],
)
def test_files_with_other_columns(command_line, tmp_path, names, words):
    path = folder(tmp_path, p1__csv=part(), p2__csv=part(names=names))
    assert fit(command_line, path) == f"error: {words}"


def test_parquet_files_with_other_columns(command_line, tmp_path, rows):
    (tmp_path / "parts").mkdir()
    rows[["a", "b", "y"]].to_parquet(tmp_path / "parts" / "p1.parquet")
    rows[["a", "y"]].to_parquet(tmp_path / "parts" / "p2.parquet")
    assert fit(command_line, tmp_path / "parts") == (
        "error: p2.parquet has other columns than p1.parquet: it lacks 'b'."
    )


def test_backups_and_swap_files_are_not_read(command_line, tmp_path):
    twice = {"p1__csv__bak": part(), "p1__csv~": part(), "__p1__csv__swp": "\0", "__p3__csv": part(), "notes__txt": "x"}
    path = folder(tmp_path, p1__csv=part(), p2__csv=part(seed=1), **twice)
    result = fit(command_line, path, method="run")
    assert "120 rows in" in result.stderr
    assert "that are not read: 'notes.txt', 'p1.csv.bak', 'p1.csv~'" in result.stderr


def test_marks_of_missing_values_hold_in_a_folder(command_line, tmp_path):
    path = folder(tmp_path, p1__csv=part(), p2__csv=part(seed=1) + "-999,1,1\n")
    assert "X contains NaN in row 120, column 'a'" in fit(command_line, path, "--na", "-999")
    assert "121 rows" in fit(command_line, path, method="run").stderr


def test_whole_numbers_may_be_followed_by_others(command_line, tmp_path):
    whole = "a,b,y\n" + "".join(f"{i},{i % 7},{i % 5}\n" for i in range(60))
    path = folder(tmp_path, p1__csv=whole, p2__csv=part())
    assert "120 rows" in fit(command_line, path, method="run").stderr


def test_separators_and_decimal_marks_of_a_folder(command_line, tmp_path):
    path = folder(tmp_path, p1__csv=part(separator=";", decimal=","), p2__csv=part(separator=";", decimal=",", seed=1))
    (tmp_path / "plain").mkdir()
    plain = folder(tmp_path / "plain", p1__csv=part(), p2__csv=part(seed=1))
    assert fit(command_line, path, method="run").stdout == fit(command_line, plain, method="run").stdout


def test_a_folder_of_two_kinds_or_none(command_line, tmp_path, rows):
    path = folder(tmp_path, notes__txt="x")
    assert fit(command_line, path) == f"error: {path} holds no file that ends in .csv or .parquet."
    (path / "p.csv").write_text(part())
    rows.to_parquet(path / "p.parquet")
    assert "holds both CSV and Parquet files ('p.csv', 'p.parquet')" in fit(command_line, path)


def test_a_folder_with_a_broken_file(command_line, tmp_path):
    path = folder(tmp_path, p1__csv=part(), p2__csv=part() + '1,2,"3\n')
    assert 'p2.csv, line 62: a quote (") is opened and never closed' in fit(command_line, path)
    (path / "p2.csv").write_text("")
    assert "p2.csv is empty" in fit(command_line, path)
    (path / "p2.csv").write_text(part() + "1,2,3,4\n")
    assert "line 62: 4 cells, but the header names 3 columns" in fit(command_line, path)


def test_compressed_and_plain_files_together(command_line, tmp_path):
    import gzip

    path = folder(tmp_path, p1__csv=part())
    (path / "p2.csv.gz").write_bytes(gzip.compress(part(seed=1).encode()))
    assert "120 rows" in fit(command_line, path, method="run").stderr
    (path / "p3.csv.gz").write_bytes(b"no gzip")
    assert "p3.csv.gz" in fit(command_line, path)


def test_outputs_do_not_go_to_the_folder(command_line, tmp_path):
    path = folder(tmp_path, p1__csv=part())
    assert "which is read; write it to another folder" in fit(command_line, path, "-o", path / "out.csv")
