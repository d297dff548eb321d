"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

KernelName = Literal["se", "rq", "nn", "matern32", "matern52"]
MeanName = Literal["auto", "zero", "constant", "linear"]
TuningName = Literal["auto", "augmented", "holdout", "train"]
MissingRule = Literal["error", "drop", "impute"]
CategoryInputs = Literal["onehot", "codes"]

_TABLE = "Reading tables"
_MODEL = "Model"

Data = Annotated[str, typer.Argument(metavar="DATA", help="Table with labels: CSV, TSV or Parquet; - reads stdin.")]
Target = Annotated[str, typer.Option("--target", "-t", metavar="COL", help="Column with the labels.")]
Confidence = Annotated[
    list[str],
    typer.Option("--confidence", "-c", metavar="LEVEL...", help="Levels, as 0.95 or 95%; several may follow."),
]

Missing = Annotated[
    MissingRule,
    typer.Option(
        help="Missing values: an error, drop such rows, or impute medians and most frequent categories.",
        rich_help_panel=_TABLE,
    ),
]
Categories = Annotated[
    CategoryInputs,
    typer.Option(
        help="Text columns: a 0/1 input for each category, or one input that numbers them alphabetically.",
        rich_help_panel=_TABLE,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="COL", help="Leave out a column; may be repeated.", rich_help_panel=_TABLE),
]
Na = Annotated[
    list[str] | None,
    typer.Option("--na", metavar="TEXT", help="Another mark of missing values.", rich_help_panel=_TABLE),
]
Separator = Annotated[
    str | None,
    typer.Option(
        metavar="CHAR", help="Separator (or comma, semicolon, tab, pipe); else guessed.", rich_help_panel=_TABLE
    ),
]
Decimal = Annotated[
    str | None, typer.Option(metavar="CHAR", help="Decimal mark, . or ,; else guessed.", rich_help_panel=_TABLE)
]
Sample = Annotated[
    int | None,
    typer.Option(min=3, metavar="N", help="Use only N training rows, drawn at random.", rich_help_panel=_TABLE),
]

Kernel = Annotated[KernelName, typer.Option(help="Covariance function.", rich_help_panel=_MODEL)]
Mean = Annotated[
    MeanName,
    typer.Option(help="Mean function; auto is linear, or constant with few rows for it.", rich_help_panel=_MODEL),
]
Tuning = Annotated[
    TuningName,
    typer.Option(
        help="How hyperparameters are chosen; all but train keep the guarantee exact.", rich_help_panel=_MODEL
    ),
]
Gamma = Annotated[
    float,
    typer.Option(
        min=1.0, metavar="NUMBER", help="Root of the variance that scores are divided by; inf: none.",
        rich_help_panel=_MODEL,
    ),
]  # fmt: skip
Seed = Annotated[int, typer.Option(min=0, help="Seed of all that is random.", rich_help_panel=_MODEL)]
Jobs = Annotated[
    int | None, typer.Option(help="Threads; -1 is all cores. Results do not depend on it.", rich_help_panel=_MODEL)
]
Folds = Annotated[int, typer.Option(min=2, metavar="K", help="Folds of the cross-validation.")]

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for machines.")]
