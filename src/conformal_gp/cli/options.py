"""Options that several commands share, and confidence levels on the command line.

Options are dataclasses whose fields become parameters of the commands.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from fractions import Fraction
from functools import partial, wraps
from itertools import count
from typing import Annotated, Any, Literal, get_type_hints

import typer

from conformal_gp.formatting import percent

_column = partial(typer.Option, rich_help_panel="Columns")
_file = partial(typer.Option, rich_help_panel="Files", show_default=False)
_model = partial(typer.Option, rich_help_panel="Model", show_default=False)
_levels = partial(typer.Option, metavar="LEVEL...", show_default=False)

Data = Annotated[str, typer.Argument(metavar="DATA", help="Training set: CSV, TSV, Parquet or Excel; - reads stdin.")]
Target = Annotated[str, typer.Option("--target", "-t", metavar="COL", help="Column to predict, the target.")]
_SEVERAL = "Levels, as 95, 95% or 0.95; several may follow.  [default: those of 90, 95 and 99% that the rows support]"
Confidence = Annotated[list[str], _levels("--confidence", "-c", help=_SEVERAL)]
Quantiles = Annotated[list[str], _levels("--quantiles", help="Quantiles, as 5% 50% 95%.")]
AnyLevel = Annotated[bool, typer.Option("--any-level", help="Accept levels below 50%.")]
Tails = Annotated[
    Literal["joint", "equal"], typer.Option(help="Allow misses on both sides together, or half on each side.")
]
_FOLDS = "Folds.  [default: 10; above 1000 rows a third is held out once]"
Folds = Annotated[int | None, typer.Option(min=2, metavar="K", help=_FOLDS)]
Ordered = Annotated[bool, typer.Option("--ordered", help="Rows are in order of time: test for drift.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only results, warnings about the guarantee, and errors.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

Missing = Literal["error", "drop", "impute"]
Kernel = Literal["se", "rbf", "rq", "nn", "matern32", "matern52"]
Tuning = Literal["auto", "integrated", "holdout", "train"]
Transformation = Literal["auto", "none", "log", "sqrt", "box-cox", "yeo-johnson"]


@dataclass(frozen=True)
class Reading:
    """Options for reading tables."""

    drop: Annotated[list[str], _column(metavar="COL,...", help="Columns to leave out.")] = field(default_factory=list)
    categories: Annotated[
        list[str], _column(metavar="COL,...", help="Columns of numbers that are codes: lots, runs, plates.")
    ] = field(default_factory=list)
    dates: Annotated[
        Literal["error", "elapsed", "parts"],
        _column(help="Dates: an error, days since the first, or year, month and day of the week."),
    ] = "error"
    missing: Annotated[Missing, _column(help="Missing values: an error, drop such rows, or impute.")] = "error"
    na: Annotated[list[str], _column(metavar="TEXT", help="Text that marks a missing value.")] = field(
        default_factory=list
    )
    groups: Annotated[
        str | None, _column(metavar="COL", help="Column of groups; coverage is guaranteed within each.")
    ] = None
    noise_column: Annotated[str | None, _column(metavar="COL", help="Column of known noise variances.")] = None
    sd_column: Annotated[
        str | None, _column(metavar="COL", help="Column of known standard deviations of the noise.")
    ] = None
    sheet: Annotated[list[str], _file(metavar="NAME", help="Sheet of a workbook; a second --sheet is that of NEW.")] = (
        field(default_factory=list)
    )
    header_row: Annotated[
        int | None, _file(min=1, metavar="N", help="Row of the file that has the columns' names.  [default: found]")
    ] = None
    separator: Annotated[
        str | None, _file(metavar="CHAR", help="Separator, or comma, semicolon, tab, pipe, space.  [default: found]")
    ] = None
    decimal: Annotated[str | None, _file(metavar="CHAR", help="Decimal mark, . or ,  [default: found]")] = None
    thousands: Annotated[
        str | None, _file(metavar="CHAR", help="Mark between thousands: , . ' or space.  [default: none]")
    ] = None
    percent: Annotated[bool, _file("--percent", help="Read cells like 12% as 12.")] = False
    encoding: Annotated[str | None, _file(metavar="NAME", help="Encoding, such as utf-8.  [default: found]")] = None

    def table(self, source: str, like: Any = None, expected: Collection[str] = (), new: bool = False) -> Any:
        """Read a table whose header should have the ``expected`` names, or that of ``new`` rows.

        The format is that of a table that was read before (``like``) unless options set another.
        """
        from conformal_gp.cli.reading import read_table

        if len(self.sheet) > 2:
            raise ValueError(f"--sheet can be given twice, for TRAIN and NEW; got {len(self.sheet)}.")
        sheets = self.sheet[:1]
        if new:
            sheets = self.sheet[-1:]
        return read_table(
            source,
            separator=self.separator,
            decimal=self.decimal,
            encoding=self.encoding,
            thousands=self.thousands,
            percent=self.percent,
            header_row=self.header_row,
            sheet=next(iter(sheets), None),
            optional_sheet=new and len(self.sheet) < 2,
            like=like,
            expected=expected,
        )


@dataclass(frozen=True)
class Model:
    """Options of the model; those not given have the library's defaults."""

    kernel: Annotated[Kernel | None, _model(help="Covariance function.")] = None
    tuning: Annotated[Tuning | None, _model(help="Tuning of hyperparameters; all but train are valid.")] = None
    target_transform: Annotated[
        Transformation | None, _model(help="Transformation of the target; predictions are transformed back.")
    ] = None
    difficulty: Annotated[
        Literal["auto", "none"] | None, _model(help="Adapt interval widths to how hard each row is.")
    ] = None
    lower_bound: Annotated[float | None, _model(metavar="NUMBER", help="Least possible target.")] = None
    upper_bound: Annotated[float | None, _model(metavar="NUMBER", help="Greatest possible target.")] = None
    seed: Annotated[int, typer.Option(min=0, help="Random seed.", rich_help_panel="Model")] = 0
    jobs: Annotated[int | None, _model(help="Threads; -1 is all cores.")] = None

    def regressor(self, y: Any) -> Any:
        """Make the unfitted model for a target."""
        from conformal_gp import ConformalGPRegressor

        low = self.lower_bound
        high = self.upper_bound
        if (low is not None and y.min() < low) or (high is not None and y.max() > high):
            raise ValueError(
                f"--lower-bound and --upper-bound must enclose the target, {y.min():g} to {y.max():g}; got {low} and "
                f"{high}."
            )
        model = ConformalGPRegressor(random_state=self.seed)
        if low is not None or high is not None:
            model.set_params(y_bounds=(low, high))
        if self.jobs is not None:
            model.set_params(n_jobs=self.jobs)
        for name in ("kernel", "tuning", "target_transform", "difficulty"):
            value = getattr(self, name)
            if value == "none":
                model.set_params(**{name: None})
            elif value is not None:
                model.set_params(**{name: value})
        return model


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter that is a dataclass of options by one parameter for each of its fields."""
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
            default: Any = option.default
            if option.default_factory is not MISSING:
                default = option.default_factory()
            annotated: dict[str, Any] = {"default": default, "annotation": of_group[option.name]}
            parameters.append(inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, **annotated))

    @wraps(command)
    def called(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{option.name: given.pop(option.name) for option in fields(group)})
        command(**given)

    called.__signature__ = signature.replace(parameters=parameters, return_annotation=None)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


# Confidence levels

_SEVERAL_LEVELS = ("--confidence", "--quantiles")
# Short, so that no fraction has a denominator of millions of digits.
_LEVEL = re.compile(r"\d{1,3}(\.\d{0,12})?|\.\d{1,12}")


def spread_levels(arguments: list[str]) -> list[str]:
    """Repeat ``--confidence`` and ``--quantiles`` before each level, as the option parser needs it.

    >>> spread_levels(["a.csv", "--confidence", "0.9", "95%", "-o", "b.csv"])
    ['a.csv', '--confidence', '0.9', '--confidence', '95%', '-o', 'b.csv']
    """
    spread: list[str] = []
    for argument in ["--confidence" if argument == "-c" else argument for argument in arguments]:
        if len(spread) > 1 and spread[-2] in _SEVERAL_LEVELS and all(map(_is_level, (spread[-1], argument))):
            spread.append(spread[-2])
        spread.append(argument)
    return spread


def _is_level(text: str) -> bool:
    return _LEVEL.fullmatch(text.removesuffix("%").strip()) is not None


def parse_levels(texts: Iterable[str], option: str = "--confidence", any_level: bool = False) -> list[Fraction]:
    """Read levels, as shares or in percent (95 means 95%), separated by commas; sorted.

    >>> parse_levels(["0.95", "80%,95"])
    [Fraction(4, 5), Fraction(19, 20)]
    """
    levels = set()
    for text in (part.strip() for given in texts for part in given.split(",")):
        level = Fraction(0)
        if _is_level(text):
            level = Fraction(text.removesuffix("%").strip())
        if text.endswith("%") or level >= 2:
            level /= 100
        if not 0 < level < 1:
            raise ValueError(f"{option} takes levels strictly between 0 and 1, such as 0.95 or 95%; got '{text[:30]}'.")
        if level < Fraction(1, 2) and not any_level:
            raise ValueError(
                f"{option} {text} asks for intervals that cover {percent(level)} of rows; did you mean "
                f"{percent(1 - level)}? --any-level accepts it as it is."
            )
        levels.add(level)
    return sorted(levels)


def more_rows(levels: Sequence[Fraction], split: bool, share: float = 1.0) -> str:
    """Say how many rows the usual levels need that are not among these; empty if all are.

    ``split`` is whether tuning rows are set aside, ``share`` the share of the rows that train.
    """
    from conformal_gp.evaluation.findings import USUAL

    needed = [
        f"{percent(level)} intervals need {math.ceil(_rows_for(level, split) / share)} rows here"
        for level in USUAL
        if level not in levels
    ]
    return "; ".join(needed)


def _rows_for(level: Fraction, split: bool) -> int:
    """Return the fewest training rows that leave enough calibration rows for a level."""
    from conformal_gp.conformal.levels import rows_needed
    from conformal_gp.models.settings import ROWS_FOR_INTEGRATED
    from conformal_gp.models.tuning_rows import calibration_size

    needed = rows_needed(level)
    if not split and needed <= ROWS_FOR_INTEGRATED:
        return needed
    return next(n for n in count(needed) if calibration_size(n) >= needed)
