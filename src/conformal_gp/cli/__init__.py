"""The command ``conformal-gp``: intervals with guaranteed coverage for a table in a file, without Python.

Exit codes: 0 success; 1 a fault in the program; 2 a mistake in the command, a file or the data; 130 stopped by the
keyboard, 143 by SIGTERM. The module of a command is imported when the command is: help and mistakes come at once.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import traceback
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import conformal_gp
from conformal_gp.cli.options import COMMANDS, IN_FULL, overview, parse

NEW_CARS = 40  # rows of the demonstration that are to be predicted


def main() -> None:
    """Run the command line that the process was started with, and exit."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, which leaves no file half-written
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command line; mistakes of a user lead to a message, never to a traceback. Return the exit code.

    >>> run(["--version"])
    conformal-gp ...
    0
    """
    name, *rest = arguments or ["--help"]
    if name == "--version":
        print(f"conformal-gp {conformal_gp.__version__}")
        return 0
    if name in ("-h", "--help", IN_FULL):
        print(overview())
        return 0
    if name not in COMMANDS:
        print(f"error: there is no command {name!r}; commands are {', '.join(COMMANDS)}.", file=sys.stderr)
        return 2
    if not rest and COMMANDS[name].tables:
        rest = ["--help"]
    try:
        options = parse(name, rest)
    except SystemExit as ended:  # after help, or a mistake in the command
        return int(ended.code or 0)
    options.command = shlex.join(["conformal-gp", *arguments])
    message, code = "", 2
    try:
        getattr(import_module(COMMANDS[name].module), name)(options)
        return 0
    except BrokenPipeError:  # the reader of our output has stopped
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (the interpreter flushes it when it ends)
        return 0
    except KeyboardInterrupt:
        message, code = "stopped; no output was left half-written.", 130
    except ImportError as error:
        message = str(error)
        if error.name is not None:  # errors that we raise have no module name, and their messages name the extra
            message = f"this needs {error.name}: pip install '.[cli]' in a clone of conformal-gp"
    except MemoryError as error:
        message = f"there is not enough memory for this many rows ({error})."
    except (ValueError, OSError) as error:
        message = str(error)
        if isinstance(error, OSError) and error.filename is not None:
            message = f"{error.filename}: {error.strerror}."
    except Exception as error:
        traceback.print_exc()
        code = 1
        message = f"a fault in conformal-gp, not in your data: {error!r}. Please report it with the lines above."
    print(f"error: {message}", file=sys.stderr)
    if getattr(options, "json", False):
        print(json.dumps({"error": message}))
    return code


def demo(options: Namespace) -> None:
    """Write two tables of cars, and print commands to try on them."""
    from conformal_gp.datasets import load_auto_mpg
    from conformal_gp.files import write_bytes

    frame = load_auto_mpg(as_frame=True).frame.sample(frac=1.0, random_state=0)
    there = Path(options.folder)
    there.mkdir(parents=True, exist_ok=True)
    cars = there / "cars.csv"
    new = there / "new-cars.csv"
    for path, rows in ((cars, frame[NEW_CARS:]), (new, frame[:NEW_CARS].drop(columns="mpg"))):
        content = rows.to_csv(index=False).encode()
        if path.exists() and path.read_bytes() != content:
            raise ValueError(f"{path} is there already, with other content; choose another --folder.")
        write_bytes(path, content)
    print(
        f"Try next:\n  conformal-gp predict {cars} {new} --target mpg -o {there / 'predicted.csv'}\n"
        f"  conformal-gp plot {cars} {new} --target mpg -o {there / 'intervals.png'}\n"
        f"  conformal-gp evaluate {cars} --target mpg\n"
        f"  conformal-gp report {cars} --target mpg -o {there / 'report.html'}"
    )
