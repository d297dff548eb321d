"""The program and its commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

import conformal_gp
from conformal_gp.cli.command import Command
from conformal_gp.cli.demo import demo
from conformal_gp.cli.evaluate import evaluate
from conformal_gp.cli.fit import fit
from conformal_gp.cli.options import expanded
from conformal_gp.cli.plot import plot
from conformal_gp.cli.predict import predict
from conformal_gp.cli.report import report
from conformal_gp.cli.reproduce import reproduce

app = typer.Typer(
    name="conformal-gp",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# Examples, shown below each command's help.
EXAMPLES: dict[Callable[..., None], tuple[str, ...]] = {
    predict: (
        "conformal-gp predict cars.csv new-cars.csv --target mpg -o predicted.csv",
        "conformal-gp predict cars.csv new-cars.csv --target mpg --confidence 0.8 95%",
        "conformal-gp predict new-cars.csv --model cars.model --json",
        "cat new-cars.csv | conformal-gp predict - --model cars.model -o - > predicted.csv",
    ),
    fit: ("conformal-gp fit cars.csv --target mpg -o cars.model",),
    evaluate: (
        "conformal-gp evaluate cars.csv --target mpg",
        "conformal-gp evaluate cars.csv --target mpg --confidence 95% --folds 5 --json",
    ),
    plot: (
        "conformal-gp plot cars.csv --target mpg -o intervals.png",
        "conformal-gp plot cars.csv --target mpg --kind band --input weight -o band.svg",
    ),
    report: ("conformal-gp report cars.csv --target mpg -o report.html",),
    demo: ("conformal-gp demo", "conformal-gp demo --folder cars"),
    reproduce: ("conformal-gp reproduce --quick", "conformal-gp reproduce table3 figures --runs 1 --out paper"),
}


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"conformal-gp {conformal_gp.__version__}")
        raise typer.Exit


@app.callback(
    epilog="Start with `conformal-gp demo`.\n\nExit codes: 0 success; 1 a fault in the program; 2 a mistake in "
    "the command, a file or the data; 130 stopped by the keyboard, 143 by SIGTERM."
)
def _all(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Prediction intervals with guaranteed coverage, for a table in a file.

    Gaussian process regression with full conformal prediction: if rows are exchangeable, a 95% interval contains a new
    label with probability at least 95%, even if the model is wrong.
    """


for function, examples in EXAMPLES.items():
    lines = "\n\n".join(f"`{example}`" for example in examples)
    app.command(cls=Command, epilog=f"Examples:\n\n{lines}", no_args_is_help=function not in (demo, reproduce))(
        expanded(function)
    )
