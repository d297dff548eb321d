"""The program as a whole: help, version, exit codes, no tracebacks, and answers that come at once."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import conformal_gp
from conformal_gp.cli import options
from conformal_gp.gp.kernels import KERNEL_NAMES

COMMANDS = ["predict", "fit", "evaluate", "plot", "report", "demo"]
MAIN = "from conformal_gp.cli import main; main()"
SLOW = ("sklearn", "scipy", "matplotlib")


def run(*arguments, stdin=b"", before="", after=""):
    """The program in a process of its own, as the entry point starts it."""
    source = str(Path(conformal_gp.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1"}
    code = f"{before}\ntry:\n    {MAIN}\nfinally:\n    {after or 'pass'}"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, env=environment, timeout=120, check=False)


def test_help_names_every_command_and_gives_examples(command_line):
    assert command_line("--version").stdout == f"conformal-gp {conformal_gp.__version__}\n"
    for command in COMMANDS:
        assert command in command_line("--help").stdout
        if command != "demo":
            assert f"conformal-gp {command}" in command_line(command, "--help").stdout


def test_choices_are_the_librarys():
    (kernel, _) = get_args(get_type_hints(options.Model)["kernel"])
    assert get_args(kernel) == KERNEL_NAMES


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
