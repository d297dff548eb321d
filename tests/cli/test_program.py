"""The program as a whole: help, version, exit codes, no tracebacks, and answers that come at once."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import conformal_gp
from conformal_gp import ConformalGPRegressor
from conformal_gp.cli.options import ADVANCED, COMMANDS, COMMON, parse
from conformal_gp.cli.rows import Training
from conformal_gp.gp.kernels import KERNEL_NAMES

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
        assert len([line for line in lines if line.split()[:1] == [command]]) == 1


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("columns", [80, 120])
def test_help_is_one_screen(command_line, command, columns, monkeypatch):
    """At 80 columns and more: summary, usage, two examples, common options, names of the others in one piece."""
    monkeypatch.setenv("COLUMNS", str(columns))
    short = command_line(command, "--help").stdout
    lines = short.splitlines()
    assert len(lines) <= 36
    assert max(map(len, lines)) <= columns
    assert lines[0].startswith(f"usage: conformal-gp {command}")
    assert len([line for line in lines if line.startswith("  conformal-gp ")]) == 2
    full = command_line(command, "--help-all").stdout
    flags = {*COMMANDS[command].options, *COMMANDS[command].required}
    for shown in (short, full):
        assert not re.search("<[a-z]", shown)
        assert flags <= {word.strip(",") for word in shown.split()}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_choices_and_defaults(command_line, command):
    full = " ".join(command_line(command, "--help-all").stdout.partition("Options:")[2].split())
    for option in COMMANDS[command].options:
        declared = COMMON.get(option) or ADVANCED[option]
        described = full.rpartition(f"{option} ")[2][:300]
        assert all(choice in described for choice in declared.get("choices", ())), option
        if declared.get("default") not in (None, []):
            assert f"[default: {declared['default']}" in described, option


def test_options_of_the_model_have_the_librarys_defaults():
    def regressor(*arguments):
        options = parse("evaluate", ["a.csv", "-t", "y", *arguments])
        return Training(pd.DataFrame(), pd.DataFrame({"y": [0.0, 1.0, 2.0]}), None, options).regressor()

    library = ConformalGPRegressor(random_state=0, n_jobs=1)
    assert regressor().get_params() == library.get_params()
    plain = regressor("--difficulty", "none", "--target-transform", "none", "--lower-bound", "0")
    assert (plain.difficulty, plain.target_transform, plain.y_bounds) == (None, None, (0.0, None))
    assert {*ADVANCED["--kernel"]["choices"]} == {*KERNEL_NAMES}


def test_tables_and_options_in_any_order(command_line, train, new):
    first = command_line("predict", train, "-c", "80", "90%", "-t", "y", new, "--tuning", "holdout", "-q").stdout
    assert first == command_line("predict", "--tuning=holdout", "-qty", train, new, "-c", "80", "-c90").stdout
    assert "and comes after tables; got" in command_line.error("predict", "-c", "80", train, new, "-t", "y")


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
        ["predict", "--target", "y"],
        ["calibrate", "a.csv", "-s", "x", "-t", "y"],
        ["predict", "a.csv", "b.csv", "c.csv", "--target", "y"],
        ["evaluate", "a.csv", "-t", "y", "--separator", "ab"],
        ["evaluate", "a.csv", "-t", "y", "--decimal", "x"],
        ["evaluate", "a.csv"],
        ["evaluate", "a.csv", "-t", "y", "--folds", "1"],
        ["fit", "a.csv", "-t", "y"],
        ["reproduce"],
    ],
)
def test_mistakes_in_the_command_exit_with_2(command_line, arguments):
    command_line(*arguments, code=2)


@pytest.mark.parametrize(
    ("option", "values", "cure"),
    [
        ("--folds", ["0", "1", "-2", "x", "2.5"], "a whole number of at least 2"),
        ("--seed", ["-1", "x"], "a whole number of at least 0"),
        ("--header-row", ["0", "-1"], "a whole number of at least 1"),
        ("--jobs", ["0"], "a number of threads, or -1 for all cores"),
        ("--lower-bound", ["nan", "inf", "x"], "a finite number"),
        ("--encoding", ["klingon"], "an encoding, such as utf-8"),
    ],
)
def test_a_wrong_value_of_an_option_is_refused_by_its_name(command_line, train, option, values, cure):
    for value in values:
        message = command_line.error("evaluate", train, "-t", "y", f"{option}={value}")
        assert f"argument {option}: takes {cure}" in message
        assert f"got '{value}'" in message


def test_errors_as_json(command_line, train, new):
    result = command_line("predict", train, new, "-t", "x", "--json", code=2)
    assert "has no column 'x'" in json.loads(result.stdout)["error"]


@pytest.mark.parametrize(
    ("error", "code", "word"),
    [
        (KeyError("a bug"), 1, "a fault in conformal-gp, not in your data: KeyError('a bug')"),
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


def test_without_the_extra(train):
    result = run("evaluate", train, "-t", "y", before="import sys; sys.modules['pandas'] = None\n")
    assert result.returncode == 2
    assert "pip install '.[cli]' in a clone of conformal-gp" in result.stderr.decode()


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
