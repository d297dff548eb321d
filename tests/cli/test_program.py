"""The program as a whole: help, version, exit codes, no tracebacks, and answers that come at once."""

import inspect
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
import typer

import conformal_gp
from conformal_gp import ConformalGPRegressor
from conformal_gp.cli import options
from conformal_gp.cli.app import app
from conformal_gp.gp.kernels import KERNEL_NAMES

COMMANDS = ["predict", "fit", "calibrate", "evaluate", "plot", "report", "demo"]
TYPER = typer.main.get_command(app)
MAIN = "from conformal_gp.cli import main; main()"
SLOW = ("sklearn", "scipy", "matplotlib")


def run(*arguments, stdin=b"", before="", after=""):
    """The program in a process of its own, as the entry point starts it."""
    source = str(Path(conformal_gp.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1"}
    code = f"{before}\ntry:\n    {MAIN}\nfinally:\n    {after or 'pass'}"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, env=environment, timeout=120, check=False)


def test_help_names_every_command(command_line):
    assert command_line("--version").stdout == f"conformal-gp {conformal_gp.__version__}\n"
    lines = command_line("--help").stdout.splitlines()
    for command in COMMANDS:
        (summary,) = [line for line in lines if line.split()[:1] == [command]]
        assert not summary.endswith("...")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("columns", [80, 120])
def test_help_is_one_screen(command_line, command, columns, monkeypatch):
    """At 80 columns and more: summary, usage, two examples, common options, names of the others in one piece."""
    monkeypatch.setenv("COLUMNS", str(columns))
    short = command_line(command, "--help").stdout
    lines = short.splitlines()
    assert len(lines) <= 32
    assert max(map(len, lines)) <= columns
    assert lines[0].startswith(f"Usage: conformal-gp {command}")
    assert len([line for line in lines if line.startswith("  conformal-gp ")]) == 2
    full = command_line(command, "--help-all").stdout
    for shown in (short, full):
        assert not re.search("<[a-z]", shown)
    flags = {flag for option in TYPER.commands[command].params for flag in option.opts if flag.startswith("--")}
    assert flags <= {word.strip(",") for word in short.split()}
    assert flags <= {word.strip(",") for word in full.split()}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_choices_and_defaults(command_line, command):
    full = " ".join(command_line(command, "--help-all").stdout.partition("Options:")[2].split())
    for name, parameter in inspect.signature(TYPER.commands[command].callback).parameters.items():
        described = full.partition(f"--{name.replace('_', '-')} ")[2][:200]
        for annotated in get_args(parameter.annotation)[:1]:
            choices = get_args(annotated) if get_origin(annotated) is Literal else ()
            assert all(choice in described for choice in choices), name
        if parameter.default not in (inspect.Parameter.empty, None, [], False):
            assert f"[default: {parameter.default}" in described, name


def test_options_of_the_model_have_the_librarys_defaults():
    y = np.arange(3.0)
    library = ConformalGPRegressor(random_state=0, n_jobs=1)
    assert options.Model().regressor(y).get_params() == library.get_params()
    plain = options.Model(difficulty="none", target_transform="none", lower_bound=0.0).regressor(y)
    assert (plain.difficulty, plain.target_transform, plain.y_bounds) == (None, None, (0.0, None))
    assert get_args(get_type_hints(options.Model)["kernel"]) == KERNEL_NAMES


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["predict", "--help"], ["predict", "--kernl", "se"], ["predict", "TRAIN", "TRAIN", "-t", "Y"]],
    ids=["help", "help of a command", "wrong option", "wrong column"],
)
def test_answers_come_at_once(train, arguments):
    """Nothing that takes long to import is imported: modules are counted, as seconds depend on the machine."""
    listed = "import json; print(json.dumps(sorted(m for m in sys.modules if '.' not in m)), file=sys.stderr)"
    result = run(*[train if word == "TRAIN" else word for word in arguments], before="import sys", after=listed)
    assert result.returncode == (0 if "--help" in arguments else 2)
    modules = json.loads(result.stderr.decode().splitlines()[-1])
    assert not set(SLOW) & set(modules)
    assert "pandas" not in modules or "Y" in arguments


def test_the_package_imports_when_used():
    assert set(conformal_gp.__all__) <= set(dir(conformal_gp))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        conformal_gp.nothing  # noqa: B018


@pytest.mark.parametrize(
    "arguments",
    [
        ["unknown"],
        ["predict", "a.csv", "b.csv", "--target"],
        ["predict", "a.csv", "b.csv", "--target", "y", "--kernel", "cubic"],
        ["predict", "a.csv", "b.csv", "c.csv", "--target", "y"],
        ["evaluate", "a.csv"],
        ["evaluate", "a.csv", "-t", "y", "--folds", "1"],
        ["fit", "a.csv", "-t", "y"],
        ["reproduce"],
    ],
)
def test_mistakes_in_the_command_exit_with_2(command_line, arguments):
    command_line(*arguments, code=2)


def test_errors_as_json(command_line, train, new):
    result = command_line("predict", train, new, "-t", "x", "--json", code=2)
    assert "has no column 'x'" in json.loads(result.stdout)["error"]


@pytest.mark.parametrize(
    ("error", "code", "word"),
    [
        (KeyError("a bug"), 1, "a fault in conformal-gp, not in your data: KeyError"),
        (KeyboardInterrupt(), 130, "stopped; no output was left half-written"),
        (MemoryError("8 GB"), 2, "not enough memory"),
        (ModuleNotFoundError("no", name="pandas"), 2, "this needs pandas: pip install '.[cli]' in a clone"),
    ],
)
def test_exit_codes(command_line, train, new, monkeypatch, error, code, word):
    def broken(*arguments):
        raise error

    monkeypatch.setattr("conformal_gp.cli.predict.read_training", broken)
    assert word in command_line("predict", train, new, "-t", "y", code=code).stderr


def test_without_the_extra():
    result = run("--version", before="import sys; sys.modules['typer'] = None\n")
    assert result.returncode == 2
    assert result.stderr.decode().strip() == "conformal-gp needs typer: pip install '.[cli]' in a clone of conformal-gp"


def test_a_real_pipe_whose_reader_stops_early(train, command_line):
    header = train.read_text().splitlines()[0].rsplit(",", 1)[0]
    long = command_line.write("long.csv", header + "\n" + "1,2,top\n" * 5_000)
    program = f"{sys.executable} -c '{MAIN}' predict {train} - -t y -q --tuning holdout < {long}"
    environment = {**os.environ, "PYTHONPATH": str(Path(conformal_gp.__file__).parents[1])}
    command = ["bash", "-c", f"set -o pipefail; {program} | head -n 1"]
    result = subprocess.run(command, capture_output=True, env=environment, timeout=120, check=False)
    assert result.returncode == 0
    assert result.stdout.decode().startswith("a,b,kind,y_mean")
    assert result.stderr == b""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_sigterm_leaves_the_old_file(command_line, train, new):
    old = command_line.write("out.csv", "old content")
    slow = "import os, signal\nos.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGTERM)"
    result = run("predict", train, new, "-t", "y", "--tuning", "holdout", "-o", old, before=slow)
    assert result.returncode == 128 + signal.SIGTERM
    assert old.read_text() == "old content"
    assert not list(command_line.folder.glob(".*"))
