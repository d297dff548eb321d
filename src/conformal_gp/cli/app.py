"""The program and its commands; mistakes of a user lead to a message, never to a traceback."""

from __future__ import annotations

import json
import os
import shlex
import sys
import traceback
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

import conformal_gp
from conformal_gp.cli.calibrate import calibrate
from conformal_gp.cli.evaluate import evaluate
from conformal_gp.cli.options import ADVANCED, expanded, spread_levels
from conformal_gp.cli.plot import plot
from conformal_gp.cli.predict import fit, predict
from conformal_gp.cli.report import report

NEW_CARS = 40  # rows of the demonstration that are to be predicted
WIDEST = 100  # columns of help
IN_FULL = "--help-all"
app = typer.Typer(
    name="conformal-gp",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
)


class Command(TyperCommand):
    """A command that turns errors into messages, and accepts several levels after one option.

    Its help is one screen, of its docstring: a summary, examples one to a line, and more, each a paragraph.
    ``--help-all`` describes the advanced options too, and has the other paragraphs.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments. ``ctx.obj`` is the command as it was given."""
        ctx.obj = shlex.join(["conformal-gp", ctx.info_name, *args])
        ctx.meta[IN_FULL] = IN_FULL in args
        if ctx.meta[IN_FULL]:
            args = ["--help"]
        return super().parse_args(ctx, spread_levels(args))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Arguments, options that are required, and that there are others."""
        arguments = [str(param.metavar) for param in self.params if param.param_type_name == "argument"]
        required = [param for param in self.params if param.param_type_name == "option" and param.required]
        return [*arguments, *(f"{option.opts[0]} {option.metavar}" for option in required), "[OPTIONS]"]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        summary, examples, *more = (self.help or "").split("\n\n")
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(summary)
        with formatter.section("Examples"):
            for example in examples.splitlines():
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")
        options = [param for param in self.get_params(ctx) if param.param_type_name == "option"]
        common = [option for option in options if getattr(option, "rich_help_panel", None) != ADVANCED]
        advanced = [option for option in options if option not in common]
        with formatter.section("Options"):
            formatter.write_dl([option.get_help_record(ctx) for option in common])
        if not advanced:
            return
        if ctx.meta[IN_FULL]:
            with formatter.section(ADVANCED):
                formatter.write_dl([option.get_help_record(ctx) for option in advanced])
            for paragraph in more:
                formatter.write_paragraph()
                formatter.write_text(paragraph)
            return
        with formatter.section(f"{ADVANCED} (described by {IN_FULL})"):
            names = ", ".join(option.opts[0] for option in advanced)
            for line in wrap(names, formatter.width - formatter.current_indent, break_on_hyphens=False):
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")

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
            # Errors that we raise have no module name, and their messages name the extra.
            advice = f"this needs {error.name}: pip install '.[cli]' in a clone of conformal-gp"
            _end(ctx, str(error) if error.name is None else advice)
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


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"conformal-gp {conformal_gp.__version__}")
        raise typer.Exit


@app.callback(epilog="Exit codes: 0 success; 1 a fault in the program; 2 a mistake in the command, a file or the data.")
def _all(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Prediction intervals with guaranteed coverage, for a table in a file; try it by conformal-gp demo.

    Gaussian process regression with full conformal prediction: if new rows are exchangeable with the training rows, a
    95% interval contains the true value with probability at least 95%, even if the model is wrong.

    Tables are CSV, TSV, Parquet or Excel; - is standard input.
    """


def demo(
    folder: Annotated[str, typer.Option(metavar="DIR", help="Folder for the tables.")] = "conformal-gp-demo",
) -> None:
    """Write two tables of cars, and print commands to try on them.

    conformal-gp demo
    conformal-gp demo --folder cars
    """
    from conformal_gp.datasets import load_auto_mpg
    from conformal_gp.files import write_bytes

    frame = load_auto_mpg(as_frame=True).frame.sample(frac=1.0, random_state=0)
    there = Path(folder)
    there.mkdir(parents=True, exist_ok=True)
    cars, new = there / "cars.csv", there / "new-cars.csv"
    for path, rows in ((cars, frame[NEW_CARS:]), (new, frame[:NEW_CARS].drop(columns="mpg"))):
        content = rows.to_csv(index=False).encode()
        if path.exists() and path.read_bytes() != content:
            raise ValueError(f"{path} is there already, with other content; choose another --folder.")
        write_bytes(path, content)
    typer.echo(
        f"Try next:\n  conformal-gp predict {cars} {new} --target mpg -o {there / 'predicted.csv'}\n"
        f"  conformal-gp plot {cars} {new} --target mpg -o {there / 'intervals.png'}\n"
        f"  conformal-gp evaluate {cars} --target mpg\n"
        f"  conformal-gp report {cars} --target mpg -o {there / 'report.html'}"
    )


for function in (predict, fit, calibrate, evaluate, plot, report, demo):
    app.command(cls=Command, no_args_is_help=function is not demo)(expanded(function))
