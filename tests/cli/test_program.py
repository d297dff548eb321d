"""The program as a whole: help, version, exit codes, no tracebacks, pipes."""

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

pytest.importorskip("typer", reason="the command line is an extra: pip install 'conformal-gp[cli]'")

import conformal_gp
from conformal_gp.cli import options
from conformal_gp.gp.inputs import MEAN_NAMES
from conformal_gp.kernels import KERNEL_NAMES
from conformal_gp.tables.columns import CATEGORY_INPUTS, MISSING_RULES

COMMANDS = ["predict", "fit", "evaluate", "plot", "report", "demo", "reproduce"]
MAIN = "from conformal_gp.cli import main; main()"


def run(*arguments, stdin=b"", before=""):
    """The program in a process of its own, as the entry point starts it."""
    source = str(Path(conformal_gp.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", before + MAIN, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=environment,
        timeout=120,
        check=False,
    )


def test_version(command_line):
    assert command_line("--version").stdout == f"conformal-gp {conformal_gp.__version__}\n"


def test_the_package_runs_as_the_command():
    result = subprocess.run(
        [sys.executable, "-m", "conformal_gp", "--version"], capture_output=True, text=True, timeout=120, check=True
    )
    assert result.stdout.startswith("conformal-gp ")


def test_help_has_examples_and_exit_codes(command_line):
    result = command_line("--help")
    assert "Exit codes" in result.stdout
    for command in COMMANDS:
        assert command in result.stdout
        assert f"conformal-gp {command}" in command_line(command, "--help").stdout


def test_completion_is_offered(command_line):
    assert "--install-completion" in command_line("--help").stdout


def test_completion_completes():
    words = {"_CONFORMAL_GP_COMPLETE": "complete_bash", "COMP_WORDS": "conformal-gp eva", "COMP_CWORD": "1"}
    result = run(before=f"import os; os.environ.update({words})\n")
    assert result.stdout.split() == [b"evaluate"]


def test_choices_are_the_librarys():
    assert get_args(options.KernelName) == KERNEL_NAMES
    assert get_args(options.MeanName) == ("auto", *MEAN_NAMES)
    assert get_args(options.CategoryInputs) == CATEGORY_INPUTS
    assert get_args(options.MissingRule) == MISSING_RULES


@pytest.mark.parametrize(
    "arguments",
    [
        ["unknown"],
        ["predict", "a.csv", "b.csv", "--target"],
        ["predict", "a.csv", "b.csv", "--target", "y", "--kernel", "cubic"],
        ["predict", "a.csv", "b.csv", "--target", "y", "--gamma", "0.5"],
        ["predict", "a.csv", "--target", "y"],
        ["predict", "a.csv", "b.csv", "c.csv", "--target", "y"],
        ["predict", "a.csv", "b.csv"],
        ["evaluate", "a.csv"],
        ["evaluate", "a.csv", "-t", "y", "--folds", "1"],
        ["fit", "a.csv", "-t", "y"],
    ],
)
def test_mistakes_in_the_command_exit_with_2(command_line, arguments):
    command_line(*arguments, code=2)


def test_a_fault_of_ours_exits_with_1(command_line, train, new, monkeypatch):
    from conformal_gp.cli import predict

    def broken(*arguments):
        raise KeyError("a bug")

    monkeypatch.setattr(predict, "read_training", broken)
    result = command_line("predict", train, new, "-t", "y", code=1)
    assert "a fault in conformal-gp, not in your data: KeyError" in result.stderr


def test_the_keyboard_exits_with_130(command_line, train, new, monkeypatch):
    from conformal_gp.cli import predict

    def stopped(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(predict, "read_training", stopped)
    command_line("predict", train, new, "-t", "y", code=130)


def test_without_the_extra():
    result = run("--version", before="import sys; sys.modules['typer'] = None\n")
    assert result.returncode == 2
    assert result.stderr.decode().strip() == "conformal-gp needs typer: install it with pip install 'conformal-gp[cli]'"
    assert result.stdout == b""


def test_without_pandas(train, new):
    result = run("predict", train, new, "-t", "y", before="import sys; sys.modules['pandas'] = None\n")
    assert result.returncode == 2
    assert "pip install 'conformal-gp[cli]'" in result.stderr.decode()
    assert b"Traceback" not in result.stderr


def test_without_dask(command_line, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert "pip install 'conformal-gp[dask]'" in command_line.error(
        "reproduce", "table1", "--quick", "--cluster", "tcp://127.0.0.1:1"
    )


def test_a_real_pipe(train, new):
    result = run("predict", train, "-", "-t", "y", "-c", "80%", stdin=new.read_bytes().replace(b"\n", b"\r\n"))
    assert result.returncode == 0, result.stderr.decode()
    lines = result.stdout.decode().splitlines()
    assert lines[0] == "a,b,kind,y_mean,y_lower_80,y_upper_80,y_beyond_training"
    assert len(lines) == 9
    assert b"Exact" in result.stderr


def test_a_real_mistake(train, new):
    result = run("predict", train, new, "-t", "Y")
    assert result.returncode == 2
    assert result.stdout == b""
    assert result.stderr.decode().startswith("error: ")
    assert b"Traceback" not in result.stderr


def test_a_reader_that_stops_early(train, command_line):
    header = train.read_text().splitlines()[0].rsplit(",", 1)[0]
    long = command_line.write("long.csv", header + "\n" + "1,2,top\n" * 2_500)
    program = f"{sys.executable} -c '{MAIN}' predict {train} {long} -t y -q --tuning holdout"
    source = str(Path(conformal_gp.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1"}
    command = ["bash", "-c", f"set -o pipefail; {program} | head -n 1"]
    result = subprocess.run(command, capture_output=True, env=environment, timeout=120, check=False)
    assert result.returncode == 0
    assert result.stdout.decode().startswith("a,b,kind,y_mean")
    assert result.stderr == b""
