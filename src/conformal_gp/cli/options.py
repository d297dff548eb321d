"""Options that several commands share, and dataclasses of options as parameters of commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, Literal, get_type_hints

import typer

KernelName = Literal["se", "rq", "nn", "matern32", "matern52"]
MeanName = Literal["auto", "zero", "constant", "linear"]
TuningName = Literal["auto", "augmented", "holdout", "train"]
WarpName = Literal["log", "sqrt", "box-cox", "yeo-johnson", "auto"]
NoiseName = Literal["constant", "varying"]
MissingRule = Literal["error", "drop", "impute"]
UnseenRule = Literal["error", "blank"]
DateRule = Literal["error", "parts"]
CategoryInputs = Literal["onehot", "codes"]
TailsName = Literal["joint", "equal"]

_TABLE = "Reading tables"
_MODEL = "Model"

Data = Annotated[
    str, typer.Argument(metavar="DATA", help="Table with labels: CSV, TSV, Parquet or Excel; - reads stdin.")
]
Target = Annotated[str, typer.Option("--target", "-t", metavar="COL", help="Column with the labels.")]
Confidence = Annotated[
    list[str],
    typer.Option("--confidence", "-c", metavar="LEVEL...", help="Levels, as 95, 95% or 0.95; several may follow."),
]
Tails = Annotated[
    TailsName,
    typer.Option(help="Whether delta is for both sides of an interval together, or half of it for each side."),
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
Unseen = Annotated[
    UnseenRule,
    typer.Option(
        help="New rows with a category that no training row has: an error, or leave their predictions empty.",
        rich_help_panel=_TABLE,
    ),
]
Dates = Annotated[
    DateRule,
    typer.Option(help="Columns of dates: an error, or inputs for year, month and day of week.", rich_help_panel=_TABLE),
]
Drop = Annotated[
    list[str],
    typer.Option("--drop", metavar="COL,...", help="Leave out columns; may be repeated.", rich_help_panel=_TABLE),
]
Na = Annotated[
    list[str],
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
NoiseColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Column with the known variance of the noise on each label; learnt noise is added to it.",
        rich_help_panel=_TABLE,
    ),
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
Warp = Annotated[
    WarpName | None,
    typer.Option(help="Map of the labels; predictions come back in their units.", rich_help_panel=_MODEL),
]
Noise = Annotated[
    NoiseName,
    typer.Option(help="Learnt noise is constant, or may vary with inputs and prediction.", rich_help_panel=_MODEL),
]
Log = Annotated[
    bool,
    typer.Option(
        "--log", help="Short for --warp log: labels are positive, and modelled by their logarithms.",
        rich_help_panel=_MODEL,
    ),
]  # fmt: skip
Positive = Annotated[bool, typer.Option("--positive", help="Labels are never below 0: short for --lower-bound 0.")]
LowerBound = Annotated[
    float | None,
    typer.Option("--lower-bound", metavar="NUMBER", help="No label is below this: predictions are cut off there."),
]
UpperBound = Annotated[
    float | None,
    typer.Option("--upper-bound", metavar="NUMBER", help="No label is above this: predictions are cut off there."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all that is random.", rich_help_panel=_MODEL)]
Jobs = Annotated[
    int | None, typer.Option(help="Threads; -1 is all cores. Results do not depend on it.", rich_help_panel=_MODEL)
]
Folds = Annotated[
    int | None,
    typer.Option(min=2, metavar="K", help="Folds of the cross-validation.  [default: 10, with more than 1000 rows 3]"),
]

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for machines.")]


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each parameter that is a dataclass of options replaced by one parameter for each field.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Speed:
    ...     fast: bool = False
    >>> def run(path: str, speed: Speed) -> None:
    ...     print(path, speed)
    >>> inspect.signature(expanded(run))
    <Signature (*, path: str, fast: bool = False) -> None>
    >>> expanded(run)(path="a", fast=True)
    a Speed(fast=True)
    """
    hints = get_type_hints(command, include_extras=True)
    signature = inspect.signature(command)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters = []
    for name, parameter in signature.parameters.items():
        if name in groups:
            parameters += _parameters(groups[name])
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @wraps(command)
    def called(**given: Any) -> None:
        made = {
            name: group(**{option.name: given.pop(option.name) for option in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **made)

    called.__signature__ = signature.replace(parameters=parameters, return_annotation=None)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def _parameters(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            option.name, inspect.Parameter.KEYWORD_ONLY, default=_default(option), annotation=hints[option.name]
        )
        for option in fields(group)
    ]


def _default(option: Field[Any]) -> Any:
    return option.default if option.default_factory is MISSING else option.default_factory()
