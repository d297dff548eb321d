"""Options that several commands share: dataclasses whose fields become parameters of the commands, and levels."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from fractions import Fraction
from functools import partial, wraps
from itertools import count
from typing import Annotated, Any, Literal, get_type_hints

import typer

from conformal_gp.formatting import percent

LOWEST = Fraction(1, 2)  # a lower level is more likely a mistake: 5% where 95% is meant
_SEVERAL_LEVELS = ("--confidence", "--quantiles")
# Short, so that no fraction has a denominator of millions of digits.
_LEVEL = re.compile(r"\d{1,3}(\.\d{0,12})?|\.\d{1,12}")

ADVANCED = "Advanced"
"""Panel of the options that ``--help`` only names; ``--help-all`` describes them too."""
_common = partial(typer.Option, show_default=False)
advanced = partial(typer.Option, rich_help_panel=ADVANCED)
found = partial(advanced, show_default=False)

Data = Annotated[str, typer.Argument(metavar="DATA")]
Target = Annotated[str, _common("--target", "-t", metavar="COL", help="Column to predict.")]
Out = Annotated[str, _common("--out", "-o", metavar="FILE", help="NEW with results added.  [default: - (stdout)]")]
_FITTED = "A model that fit saved, instead of a training set."
Fitted = Annotated[str | None, _common("--model", "-m", metavar="FILE", help=_FITTED)]
_LEVELS = "Levels, as 90% 95%.  [default: those of 90, 95 and 99% that the rows support]"
Confidence = Annotated[list[str], _common("--confidence", "-c", metavar="LEVEL...", help=_LEVELS)]
_QUANTILES = "Quantiles, as 5% 50% 95%."
Quantiles = Annotated[list[str], _common("--quantiles", metavar="SHARE...", help=_QUANTILES)]
_FOLDS = "Number of folds.  [default: 10; above 1000 rows a third is held out, once]"
Folds = Annotated[int | None, found(min=2, metavar="K", help=_FOLDS)]
Ordered = Annotated[bool, _common("--ordered", help="Rows are in order of time: test for drift.")]
Quiet = Annotated[bool, _common("--quiet", "-q", help="Print results, warnings and errors only.")]
Json = Annotated[bool, _common("--json", help="Print the result as JSON.")]


@dataclass(frozen=True)
class Reading:
    """Options for reading tables."""

    drop: Annotated[list[str], _common(metavar="COL,...", help="Columns to leave out.")] = field(default_factory=list)
    categories: Annotated[
        list[str], found(metavar="COL,...", help="Columns of numbers that are codes: lots, runs.")
    ] = field(default_factory=list)
    missing: Annotated[
        Literal["error", "drop", "impute"],
        typer.Option(metavar="HOW", help="If missing: error, drop, impute."),
    ] = "error"
    groups: Annotated[str | None, _common(metavar="COL", help="Guarantee coverage within each group of COL.")] = None
    batch: Annotated[str | None, _common(metavar="COL", help="Column of batches, to predict rows of new ones.")] = None
    na: Annotated[list[str], found(metavar="TEXT", help="Text that marks a missing value, in addition to NA etc.")] = (
        field(default_factory=list)
    )
    dates: Annotated[
        Literal["error", "elapsed"],
        advanced(metavar="HOW", help="Columns of dates: error, elapsed (days since the first)."),
    ] = "error"
    noise_column: Annotated[str | None, found(metavar="COL", help="Column of known noise variances.")] = None
    sd_column: Annotated[str | None, found(metavar="COL", help="Column of known standard deviations of the noise.")] = (
        None
    )
    sheet: Annotated[list[str], found(metavar="NAME", help="Sheet of a workbook; a second --sheet is that of NEW.")] = (
        field(default_factory=list)
    )
    header_row: Annotated[
        int | None, found(min=1, metavar="N", help="Row of the file with the columns' names.  [default: found]")
    ] = None
    separator: Annotated[
        str | None, found(metavar="CHAR", help="Separator, or comma, semicolon, tab, pipe, space.  [default: found]")
    ] = None
    decimal: Annotated[str | None, found(metavar="CHAR", help="Decimal mark, . or ,  [default: found]")] = None
    thousands: Annotated[
        str | None, found(metavar="CHAR", help="Mark between thousands: , . ' or space.  [default: none]")
    ] = None
    percent: Annotated[bool, found("--percent", help="Read cells like 12% as 12.")] = False
    encoding: Annotated[str | None, found(metavar="NAME", help="Encoding, such as utf-8.  [default: found]")] = None

    @property
    def noise(self) -> str | None:
        """The column of the noise: of its variances, or of its standard deviations."""
        return self.noise_column or self.sd_column


@dataclass(frozen=True)
class Model:
    """Options of the model; their defaults are the library's."""

    kernel: Annotated[
        Literal["se", "rbf", "rq", "nn", "matern32", "matern52"],
        advanced(metavar="NAME", help="Covariance: se, rbf, rq, nn, matern32, matern52."),
    ] = "matern52"
    tuning: Annotated[
        Literal["auto", "integrated", "holdout"],
        advanced(metavar="HOW", help="Tuning of hyperparameters: auto, integrated, holdout (faster)."),
    ] = "auto"
    target_transform: Annotated[
        Literal["auto", "none", "log", "sqrt", "box-cox", "yeo-johnson"],
        advanced(metavar="NAME", help="Transformation of the target: auto, none, log, sqrt, box-cox, yeo-johnson."),
    ] = "auto"
    difficulty: Annotated[
        Literal["auto", "none"], advanced(metavar="HOW", help="Adapt widths to how hard each row is: auto, none.")
    ] = "auto"
    lower_bound: Annotated[
        float | None, found(metavar="NUMBER", help="Least possible target.  [default: as the data suggest]")
    ] = None
    upper_bound: Annotated[
        float | None, found(metavar="NUMBER", help="Greatest possible target.  [default: as the data suggest]")
    ] = None
    seed: Annotated[int, advanced(min=0, metavar="N", help="Random seed.")] = 0
    jobs: Annotated[int, advanced(metavar="N", help="Threads; -1 is all cores.")] = 1

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
        bounds: Any = (low, high)
        if low is None and high is None:
            bounds = "auto"
        none_as_none = {"none": None}
        return ConformalGPRegressor(
            self.kernel,
            tuning=self.tuning,
            target_transform=none_as_none.get(self.target_transform, self.target_transform),
            difficulty=none_as_none.get(self.difficulty, self.difficulty),
            y_bounds=bounds,
            random_state=self.seed,
            n_jobs=self.jobs,
        )


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


def parse_levels(texts: Iterable[str], option: str = "--confidence", lowest: Fraction = LOWEST) -> list[Fraction]:
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
        if level < lowest:
            raise ValueError(
                f"{option} {text} asks for intervals that cover {percent(level)} of rows, and takes levels from "
                f"{percent(lowest)} on; did you mean {percent(1 - level)}?"
            )
        levels.add(level)
    return sorted(levels)


def default_levels(model: Any, output: Any) -> list[Fraction]:
    """Return those of the usual levels that a fitted model supports; note what the others need."""
    from conformal_gp.evaluation import supported_levels

    levels = supported_levels(model._most_calibration)
    output.notice(more_rows(levels, model.tuning_ == "holdout", batches=model._batches is not None))
    return levels


def more_rows(levels: Sequence[Fraction], split: bool, share: float = 1.0, batches: bool = False) -> str:
    """Say how many rows, or batches, the usual levels need that are not among these; empty if all are.

    ``split`` is whether tuning rows are set aside, ``share`` the share of the rows that train.
    """
    from conformal_gp.evaluation.findings import USUAL
    from conformal_gp.models.tuning_rows import batches_needed

    needed: list[str] = []
    for level in USUAL:
        if level in levels:
            continue
        if batches:
            what = f"{math.ceil(batches_needed(level) / share)} batches"
        else:
            what = f"{math.ceil(_rows_for(level, split) / share)} rows"
        needed.append(f"{percent(level)} intervals need {what} here")
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
