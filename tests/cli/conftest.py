"""A command line, and tables for it."""

import json
from pathlib import Path

import pytest

from cli_cases import rows


class CommandLine:
    """Runs ``conformal-gp`` in this process, in a folder of its own."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __call__(self, *arguments, stdin=None, code=0):
        # Imported here, so that tests skip, and do not fail, where the extra is not installed.
        from typer.testing import CliRunner

        from conformal_gp.cli.app import app

        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
        assert result.exit_code == code, f"exit code {result.exit_code}\n{result.stdout}\n{result.stderr}"
        assert "Traceback" not in result.stdout + result.stderr
        return result

    def json(self, *arguments, **options):
        """Standard output, which must be one strict JSON document and nothing else."""

        def refuse(constant):
            raise AssertionError(f"{constant} is not JSON")

        return json.loads(self(*arguments, "--json", **options).stdout, parse_constant=refuse)

    def error(self, *arguments, **options):
        """The message of a command that fails for a mistake of the user's."""
        result = self(*arguments, code=2, **options)
        return " ".join(result.stderr.split())

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Hyperparameters from design rows for all tables of 20 rows or more: here the command matters, not the model."""
    monkeypatch.setattr("conformal_gp.tuning.settings.ROWS_FOR_AUGMENTED", 19)


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
