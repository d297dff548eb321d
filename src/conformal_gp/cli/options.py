"""Options that several commands share: dataclasses whose fields become parameters of the commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import partial, wraps
from typing import Annotated, Any, Literal, get_type_hints

import typer

_table = partial(typer.Option, rich_help_panel="Reading tables")
_model = partial(typer.Option, rich_help_panel="Model", show_default=False)
_levels = partial(typer.Option, metavar="LEVEL...", show_default=False)

Data = Annotated[
    str, typer.Argument(metavar="DATA", help="Table with labels: CSV, TSV, Parquet or Excel; - reads stdin.")
]
Target = Annotated[str, typer.Option("--target", "-t", metavar="COL", help="Column with the labels.")]
_SEVERAL = "Levels, as 95, 95% or 0.95; several may follow.  [default: what the rows support of 90, 95 and 99%]"
Confidence = Annotated[list[str], _levels("--confidence", "-c", help=_SEVERAL)]
Quantiles = Annotated[list[str], _levels("--quantiles", help="Quantiles, as 5% 50% 95%.")]
AnyLevel = Annotated[bool, typer.Option("--any-level", help="Take levels below 50% too.")]
Tails = Annotated[Literal["joint", "equal"], typer.Option(help="Misses on both sides together, or half on each side.")]
_FOLDS = "Folds.  [default: 10; of more than 1000 rows a third is held out once]"
Folds = Annotated[int | None, typer.Option(min=2, metavar="K", help=_FOLDS)]
Ordered = Annotated[bool, typer.Option("--ordered", help="Rows are in order of time: look for drift.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for machines.")]

Missing = Literal["error", "drop", "impute"]
Kernel = Literal["se", "rq", "nn", "matern32", "matern52"]
Tuning = Literal["auto", "integrated", "holdout", "train"]
Transformation = Literal["auto", "none", "log", "sqrt", "box-cox", "yeo-johnson"]


@dataclass(frozen=True)
class Reading:
    """How tables are read."""

    missing: Annotated[Missing, _table(help="Missing values: an error, drop such rows, or the usual value.")] = "error"
    dates: Annotated[Literal["error", "parts"], _table(help="Dates: an error, or year, month and weekday.")] = "error"
    drop: Annotated[list[str], _table(metavar="COL,...", help="Leave out columns.")] = field(default_factory=list)
    na: Annotated[list[str], _table(metavar="TEXT", help="A mark of missing values.")] = field(default_factory=list)
    separator: Annotated[str | None, _table(metavar="CHAR", help="Separator, or comma, semicolon, tab, pipe.")] = None
    decimal: Annotated[str | None, _table(metavar="CHAR", help="Decimal mark, . or ,")] = None
    encoding: Annotated[str | None, _table(metavar="NAME", help="Encoding, such as utf-8.")] = None
    groups: Annotated[str | None, _table(metavar="COL", help="Column of groups, in each of which levels hold.")] = None
    noise_column: Annotated[str | None, _table(metavar="COL", help="Column with known noise variances.")] = None

    def table(self, source: str, like: Any = None) -> Any:
        """Read a table, in the format of one that was read before, unless options say otherwise."""
        from conformal_gp.cli.tables import read_table

        return read_table(source, separator=self.separator, decimal=self.decimal, encoding=self.encoding, like=like)


@dataclass(frozen=True)
class Model:
    """The model; what is not given is the library's default."""

    kernel: Annotated[Kernel | None, _model(help="Covariance function.")] = None
    tuning: Annotated[Tuning | None, _model(help="How settings are found; all but train keep the guarantee.")] = None
    target_transform: Annotated[
        Transformation | None, _model(help="Map of the labels; predictions come back in their units.")
    ] = None
    difficulty: Annotated[Literal["auto", "none"] | None, _model(help="Widths follow the difficulty.")] = None
    lower_bound: Annotated[float | None, _model(metavar="NUMBER", help="No label can be below.")] = None
    upper_bound: Annotated[float | None, _model(metavar="NUMBER", help="No label can be above.")] = None
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is random.", rich_help_panel="Model")] = 0
    jobs: Annotated[int | None, _model(help="Threads; -1 is all cores.")] = None

    def regressor(self, labels: Any) -> Any:
        """The unfitted model for rows with these labels."""
        from conformal_gp import ConformalGPRegressor

        named = {"seed": "random_state", "jobs": "n_jobs"}
        values = {named.get(option.name, option.name): getattr(self, option.name) for option in fields(self)}
        bounds = low, high = values.pop("lower_bound"), values.pop("upper_bound")
        if (low is not None and (labels < low).any()) or (high is not None and (labels > high).any()):
            span = f"{labels.min():g} to {labels.max():g}"
            raise ValueError(f"--lower-bound and --upper-bound must enclose the labels, {span}; got {low} and {high}.")
        given: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
        given |= {name: None for name, value in given.items() if value == "none"}
        return ConformalGPRegressor(y_bounds="auto" if bounds == (None, None) else bounds, **given)


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each parameter that is a dataclass of options replaced by one parameter for each field."""
    hints = get_type_hints(command, include_extras=True)
    signature = inspect.signature(command)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name]))
            continue
        of_group = get_type_hints(groups[name], include_extras=True)
        for option in fields(groups[name]):
            default: Any = option.default if option.default_factory is MISSING else option.default_factory()
            options: dict[str, Any] = {"default": default, "annotation": of_group[option.name]}
            parameters.append(inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, **options))

    @wraps(command)
    def called(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{option.name: given.pop(option.name) for option in fields(group)})
        command(**given)

    called.__signature__ = signature.replace(parameters=parameters, return_annotation=None)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called
