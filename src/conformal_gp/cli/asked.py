"""What a prediction is asked for: intervals, quantiles and one-sided bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, NamedTuple

import typer

from conformal_gp.cli import options
from conformal_gp.cli.levels import parse_levels

DEFAULT_LEVELS = ("90%", "95%", "99%")


class Wanted(NamedTuple):
    """What to predict, in numbers."""

    levels: list[Fraction]
    """Of intervals, ascending."""
    tails: str
    one_sided: dict[str, list[Fraction]]
    """Quantiles, and levels of upper and lower bounds, ascending, under the names that their columns have."""


@dataclass(frozen=True)
class Asked:
    """Options that say what to predict."""

    confidence: Annotated[
        list[str],
        typer.Option(
            "--confidence",
            "-c",
            metavar="LEVEL...",
            help="Levels of intervals, as 95, 95% or 0.95; several may follow.  [default: 90% 95% 99%, or none with "
            "--quantiles, --upper or --lower]",
            show_default=False,
        ),
    ] = field(default_factory=list)
    tails: options.Tails = "joint"
    quantiles: Annotated[
        list[str], typer.Option("--quantiles", metavar="Q...", help="Quantiles, as 5% 50% 95%.", show_default=False)
    ] = field(default_factory=list)
    upper: Annotated[
        list[str],
        typer.Option("--upper", metavar="LEVEL...", help="Levels of upper bounds of the label.", show_default=False),
    ] = field(default_factory=list)
    lower: Annotated[
        list[str],
        typer.Option("--lower", metavar="LEVEL...", help="Levels of lower bounds of the label.", show_default=False),
    ] = field(default_factory=list)

    def read(self) -> Wanted:
        """The options as numbers."""
        given = {
            "quantile": (self.quantiles, "--quantiles"),
            "upper_bound": (self.upper, "--upper"),
            "lower_bound": (self.lower, "--lower"),
        }
        one_sided = {kind: parse_levels(*texts) for kind, texts in given.items() if texts[0]}
        levels = [] if one_sided and not self.confidence else parse_levels(self.confidence or DEFAULT_LEVELS)
        return Wanted(levels, self.tails, one_sided)
