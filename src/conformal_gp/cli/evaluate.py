"""``conformal-gp evaluate``: which error bars hold what they promise on your data."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich import box
from rich.table import Table as RichTable
from rich.text import Text

from conformal_gp.cli import options
from conformal_gp.cli.held_out import HeldOut, cross_validate
from conformal_gp.cli.levels import parse_levels, percent
from conformal_gp.cli.output import Output
from conformal_gp.cli.training import MOST_EXACT_ROWS, ModelChoice, Reading, Training, read_training
from conformal_gp.cli.verdict import Finding, verdict
from conformal_gp.comparators import GaussianIntervals, SplitConformal
from conformal_gp.conformal.levels import rows_needed

Array = NDArray[np.float64]

CONFORMAL, PLAIN, SPLIT = "GPR-CP", "plain GPR", "split conformal"


def evaluate(
    data: options.Data,
    target: options.Target,
    confidence: options.Confidence = ["90%", "95%", "99%"],  # noqa: B006 (typer copies it)
    folds: options.Folds = 10,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the picture goes.  [default: DATA-evaluation.png]")
    ] = None,
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Draw no picture.")] = False,
    kernel: options.Kernel = "matern52",
    mean: options.Mean = "auto",
    tuning: options.Tuning = "auto",
    gamma: options.Gamma = 2.0,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    missing: options.Missing = "error",
    categories: options.Categories = "onehot",
    drop: options.Drop = None,
    na: options.Na = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    sample: options.Sample = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Cross-validate the error bars: how many labels lie outside, and how wide they are.

    Full conformal prediction (GPR-CP) beside plain Gaussian process regression and split conformal prediction, with a
    verdict, a table and a picture. Error bars are called too narrow or too wide when chance alone would put as many,
    or as few, labels outside less than once in a hundred times (in doubt: once in twenty; binomial test). With --json
    there is a picture only if --picture says where.
    """
    output = Output(quiet=quiet, as_json=as_json)
    reading = Reading(separator, decimal, missing, categories, drop or (), na or (), sample)
    training = read_training(data, target, reading, seed, output)
    if picture is None and not (no_picture or as_json):
        picture = Path(f"{'table' if data == '-' else Path(data).stem}-evaluation.png")
    choice = ModelChoice(kernel, mean, tuning, gamma, seed, jobs)
    run_evaluation(training, choice, parse_levels(confidence), folds, picture, output)


def run_evaluation(
    training: Training,
    choice: ModelChoice,
    levels: Sequence[Fraction],
    folds: int,
    picture: Path | None,
    output: Output,
) -> None:
    """Cross-validate, and say what came out."""
    X, y, columns, _ = training
    n_train = training_size(y.size, folds)
    shown = sorted({*levels, *([] if picture is None else curve(n_train))})
    with output.progress("cross-validating") as progress, output.warnings_as_notices():
        held_out = cross_validate(
            methods(choice, n_train, X.shape[1]), X, y, shown, folds=folds, seed=choice.seed, progress=progress
        )
    findings = [
        Finding.of(name, level, y, intervals[:, :, shown.index(level)])
        for level in levels
        for name, intervals in held_out.intervals.items()
    ]
    sentences = verdict(findings)
    if output.as_json:
        output.document(
            {
                "target": columns.target,
                "rows": y.size,
                "inputs": columns.input_names,
                "folds": min(folds, y.size),
                "findings": [finding.document() for finding in findings],
                "verdict": sentences,
                "picture": None if picture is None else str(picture),
            }
        )
    else:
        output.result(_table(findings, columns.target, y.size, min(folds, y.size)), *sentences)
    if picture is not None:
        _draw(held_out, y, columns.target, levels, picture)
        output.info(f"Picture: {picture}")


def training_size(n_rows: int, folds: int) -> int:
    """Training rows of a fold."""
    return n_rows - -(-n_rows // min(folds, n_rows))


def curve(n_train: int) -> list[Fraction]:
    """Levels from 50% on that so many rows support, even where half of them are design rows.

    Every level has its price, which matters with many rows: they get fewer.
    """
    step = 2 if n_train <= MOST_EXACT_ROWS else 10
    levels = [Fraction(percents, 100) for percents in range(50, 100, step)]
    return [level for level in levels if rows_needed(level) <= n_train // 2]


def methods(choice: ModelChoice, n_rows: int, n_inputs: int) -> dict[str, object]:
    """The methods to compare, the guaranteed one first."""
    plain = choice.model(n_rows, n_inputs, tuning="train")
    split = choice.model(int(0.75 * n_rows), n_inputs, tuning="train")
    return {
        CONFORMAL: choice.model(n_rows, n_inputs),
        PLAIN: GaussianIntervals(plain),
        SPLIT: SplitConformal(split, random_state=choice.seed, gamma=choice.gamma),
    }


def _table(findings: Sequence[Finding], target: str, n_rows: int, folds: int) -> RichTable:
    title = f"{target}: {n_rows} rows, each held out once in {folds} folds"
    table = RichTable(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("level", justify="right")
    table.add_column("method", no_wrap=True)
    for heading in ("outside", "promised", "mean width"):
        table.add_column(heading, justify="right")
    table.add_column("promise")
    for i, finding in enumerate(findings):
        new_level = i == 0 or finding.level != findings[i - 1].level
        if new_level and i:
            table.add_section()
        table.add_row(
            f"{percent(finding.level)}%" if new_level else "",
            finding.method,
            f"{finding.outside:.1%}",
            f"{percent(1 - finding.level)}%",
            _width(finding),
            finding.judgement,
        )
    return table


def _width(finding: Finding) -> str:
    """Mean width; where some intervals are infinite, how many, and the median."""
    if 0 < finding.n_infinite < finding.n_rows:
        return f"{finding.n_infinite} infinite, median {finding.median_width:.4g}"
    return f"{finding.mean_width:.4g}"


def _draw(held_out: HeldOut, y: Array, target: str, levels: Sequence[Fraction], path: Path) -> None:
    """Coverage against nominal level, and widths."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from conformal_gp.plotting import CoverageDisplay, WidthDisplay

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    curve = [float(level) for level in held_out.levels]
    CoverageDisplay.from_predictions(y, held_out.intervals, confidence_level=curve, ax=left)
    places = [held_out.levels.index(level) for level in levels]
    chosen = {name: intervals[:, :, places] for name, intervals in held_out.intervals.items()}
    asked = [float(level) for level in levels]
    WidthDisplay.from_predictions(chosen, confidence_level=asked, target_name=target, ax=right)
    figure.savefig(path, dpi=150)
