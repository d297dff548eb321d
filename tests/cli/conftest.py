"""A command line, and tables for it."""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("pandas", reason="the command line is an extra: pip install '.[cli]'")


def rows(n, *, with_target=True, seed=0):
    """A table as text: columns a, b, kind, and y."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).round(4)
    kinds = np.array(["low", "middle", "top"])[rng.integers(0, 3, size=n)]
    y = (np.sin(X[:, 0]) + (kinds == "top") + 0.2 * rng.normal(size=n)).round(4)
    lines = [f"{a},{b},{kind}" + f",{label}" * with_target for (a, b), kind, label in zip(X, kinds, y, strict=True)]
    return "\n".join(["a,b,kind" + ",y" * with_target, *lines]) + "\n"


class CommandLine:
    """Runs ``conformal-gp`` in this process, in a folder of its own."""

    rows = staticmethod(rows)

    def __init__(self, folder: Path):
        self.folder = folder

    def __call__(self, *arguments, stdin=b"", code=0):
        from conformal_gp.cli import run

        given = stdin if isinstance(stdin, bytes) else stdin.encode()
        with (
            pytest.MonkeyPatch.context() as patch,
            redirect_stdout(io.StringIO()) as stdout,
            redirect_stderr(io.StringIO()) as stderr,
        ):
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
            ended = run([str(argument) for argument in arguments])
        result = SimpleNamespace(stdout=stdout.getvalue(), stderr=stderr.getvalue())
        assert ended == code, f"exit code {ended}\n{result.stdout}\n{result.stderr}"
        assert code == 1 or "Traceback" not in result.stdout + result.stderr
        return result

    def json(self, *arguments, **options):
        """Standard output, which must be one strict JSON document and nothing else."""

        def refuse(constant):
            raise AssertionError(f"{constant} is not JSON")

        return json.loads(self(*arguments, "--json", **options).stdout, parse_constant=refuse)

    def error(self, *arguments, **options):
        """The message of a command that fails for a mistake of the user's."""
        return " ".join(self(*arguments, code=2, **options).stderr.split())

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


@pytest.fixture
def command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return CommandLine(tmp_path)


@pytest.fixture
def train(command_line):
    return command_line.write("train.csv", rows(60))


@pytest.fixture
def new(command_line):
    return command_line.write("new.csv", rows(8, with_target=False, seed=1))


@pytest.fixture
def model(command_line, train):
    command_line("fit", train, "-t", "y", "-o", "m", "-q", "--tuning", "holdout")
    return command_line.folder / "m"


@pytest.fixture
def table(tmp_path):
    """Write a table to a file, and read it."""
    import pandas as pd

    from conformal_gp.cli.reading import read_table
    from written_tables import reading

    def make(content, name="cars.csv", like=None, **options):
        path = tmp_path / name
        if isinstance(content, pd.DataFrame):
            (content.to_parquet if name.endswith("parquet") else content.to_excel)(path, index=False)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(str(path), reading(**options), like=like)

    return make
