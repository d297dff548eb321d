"""The program and its commands."""

from __future__ import annotations

from typing import Annotated

import typer

import conformal_gp
from conformal_gp.cli.command import Command
from conformal_gp.cli.demo import demo
from conformal_gp.cli.evaluate import evaluate, report
from conformal_gp.cli.options import expanded
from conformal_gp.cli.plot import plot
from conformal_gp.cli.predict import fit, predict

app = typer.Typer(
    name="conformal-gp",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    """Prediction intervals with guaranteed coverage, for a table in a file. Start with `conformal-gp demo`.

    Gaussian process regression with full conformal prediction: if rows are exchangeable, a 95% interval contains a new
    label with probability at least 95%, even if the model is wrong.
    """


for function in (predict, fit, evaluate, plot, report, demo):
    app.command(cls=Command, no_args_is_help=function is not demo)(expanded(function))
