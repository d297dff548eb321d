"""Base class of the commands: several levels after one option, and errors as messages."""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand

_LEVEL = re.compile(r"\d*\.?\d+\s?%?")
_TAKE_LEVELS = ("--confidence", "--quantiles", "--upper", "--lower")


def spread_levels(arguments: list[str]) -> list[str]:
    """Repeat ``--confidence``, and the other options of levels, before each level, as the option parser needs it.

    >>> spread_levels(["a.csv", "--confidence", "0.9", "95%", "-o", "b.csv"])
    ['a.csv', '--confidence', '0.9', '--confidence', '95%', '-o', 'b.csv']
    """
    spread: list[str] = []
    for argument in arguments:
        follows_level = len(spread) > 1 and spread[-2] in _TAKE_LEVELS and _LEVEL.fullmatch(spread[-1])
        if follows_level and _LEVEL.fullmatch(argument):
            spread.append(spread[-2])
        spread.append("--confidence" if argument == "-c" else argument)
    return spread


class Command(TyperCommand):
    """A command that answers mistakes of its user with a message, never with a traceback."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments; several levels may follow one option."""
        return super().parse_args(ctx, spread_levels(args))

    def invoke(self, ctx: Any) -> Any:
        """Run the command; errors become a message and an exit code."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader of our output has stopped
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (the interpreter flushes it when it ends)
            raise typer.Exit from None
        except KeyboardInterrupt:
            _end(ctx, "stopped; no output was left half-written.", 130)
        except ImportError as error:
            if error.name is not None and error.name.startswith("conformal_gp"):
                raise
            # Errors that we raise have no module name, and say themselves which extra is needed.
            _end(ctx, str(error) if error.name is None else f"this needs {error.name}: pip install 'conformal-gp[cli]'")
        except MemoryError as error:
            _end(ctx, f"there is not enough memory for this many rows ({error}).")
        except (ValueError, OSError) as error:
            filename = getattr(error, "filename", None)
            _end(ctx, str(error) if filename is None else f"{filename}: {error.strerror}.")  # type: ignore[union-attr]
        except Exception as error:
            if isinstance(error, typer.Exit | typer.Abort) or type(error).__module__.startswith(("typer", "click")):
                raise
            what = f"a fault in conformal-gp, not in your data: {type(error).__name__}: {error}"
            _end(ctx, f"{what}. Please report it with what CONFORMAL_GP_DEBUG=1 conformal-gp ... prints.", 1)


def _end(ctx: Any, message: str, code: int = 2) -> NoReturn:
    """Print an error to standard error, with ``--json`` also to standard output as JSON, and exit."""
    if os.environ.get("CONFORMAL_GP_DEBUG"):
        traceback.print_exc()
    print(f"error: {message}", file=sys.stderr)
    if ctx.params.get("as_json"):
        print(json.dumps({"error": message}))
    raise typer.Exit(code) from None
