"""What the command could misread without a word, and what it says instead."""

import io

import pytest

from cli_cases import rows

pytest.importorskip("typer", reason="the command line is an extra: pip install 'conformal-gp[cli]'")

import pandas as pd


@pytest.fixture
def points(command_line):
    return command_line.write("train.csv", "a;y\n" + "".join(f"{1000 + i}.5;{i % 7}\n" for i in range(40)))


def test_new_is_read_as_train_was(command_line, points):
    new = command_line.write("new.csv", "a;b\n1,234;1\n")
    error = command_line.error("predict", points, new, "-t", "y")
    assert f"{new}: column 'a', row 1 (line 2): '1,234' is not a number" in error
    assert "the decimal mark is '.'; --decimal says otherwise; marks between thousands must be taken out" in error
    command_line("fit", points, "-t", "y", "-o", "m", "-q")
    assert "'1,234' is not a number" in command_line.error("predict", new, "-m", "m")


def test_what_was_guessed_is_said(command_line, points):
    new = command_line.write("new.csv", "a;b\n1001,25;1\n".encode("utf-8-sig"))
    result = command_line("predict", points, new, "-t", "y")
    assert f"{points} is read with separator ';', decimal mark '.'; --separator and --decimal say" in result.stderr
    assert f"{new} is read with separator ';', decimal mark ','" in result.stderr
    assert f"the decimal mark is ',' in {new}, but '.' in the training rows" in result.stderr
    assert "y_mean" in result.stdout
    latin = command_line.write("latin.csv", "a;größe;y\n1.5;1;1\n2.5;2;2\n3.5;3;3\n".encode("cp1252"))
    said = command_line("fit", latin, "-t", "y", "-o", "m").stderr
    assert "encoding Windows-1252, as it is not UTF-8" in said


def test_plain_tables_are_read_without_a_word(command_line, train, new):
    assert "is read with" not in command_line("predict", train, new, "-t", "y").stderr


def test_a_doubtful_table(command_line):
    doubtful = command_line.write("doubtful.csv", "a;y\n1;3,210\n2;1,005\n3;2,000\n")
    error = command_line.error("fit", doubtful, "-t", "y", "-o", "m")
    assert "column 'y', row 1 (line 2): '3,210' can be read as 3.210 or as 3210" in error
    assert "say --decimal ," in error
    command_line("fit", doubtful, "-t", "y", "-o", "m", "--decimal", ",")


@pytest.mark.parametrize(
    ("level", "word"),
    [
        ("1e-100000000", "takes levels such as 0.95 or 95%, got '1e-100000000'"),
        ("1e100000000", "takes levels such as"),
        ("0." + "9" * 1000, "got '0.9999999999999999999999999999...'"),
        ("0.99999999999999", "levels of up to 12 decimals"),
        (",", "got none"),
        ("1/0", "takes levels such as"),
        ("-0.5", "strictly between"),
    ],
)
def test_levels_without_end(command_line, train, new, level, word):
    assert word in command_line.error("predict", train, new, "-t", "y", f"--confidence={level}")


def test_levels_that_are_close_have_columns_of_their_own(command_line, train, new):
    result = command_line(
        "predict", train, new, "-t", "y", "-c", "99.99999999%", "99.9999999%", "0.9999999999", "0.999999999999"
    )
    frame = pd.read_csv(io.StringIO(result.stdout))
    assert [name for name in frame if "lower" in name] == [
        "y_lower_99.9999999",
        "y_lower_99.99999999",
        "y_lower_99.9999999999",
    ]


def test_an_unclosed_quote(command_line):
    lines = rows(41).splitlines()
    swallowing = command_line.write("t.csv", "\n".join([*lines[:21], lines[21].replace(",", ',"', 1), *lines[22:]]))
    assert f'{swallowing}, line 22: a quote (") is opened and never closed' in command_line.error(
        "fit", swallowing, "-t", "y", "-o", "m"
    )


def test_a_cell_without_end(command_line):
    long = command_line.write("t.csv", f"a,y\n{'x' * 200_000},1\n")
    assert "line 2: a cell has more than 131,072 characters" in command_line.error("fit", long, "-t", "y", "-o", "m")


def test_mistakes_in_new_are_told_before_the_fit(command_line, train, monkeypatch):
    from conformal_gp import ConformalGPRegressor

    def fit(*arguments):
        raise AssertionError("it is fitted first")

    monkeypatch.setattr(ConformalGPRegressor, "fit", fit)
    for text, word in (("a,kind\n1,top\n", "lacks 'b'"), ("a,b,kind\n1,2,best\n", "not among the categories")):
        new = command_line.write("new.csv", text)
        assert word in command_line.error("predict", train, new, "-t", "y")
