"""Options that several commands share: dataclasses whose fields become parameters of the commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import partial, wraps
from typing import Annotated, Any, Literal, get_type_hints

import typer

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
