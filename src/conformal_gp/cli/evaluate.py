"""``conformal-gp evaluate``: whether error bars keep their promise on a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.table import Table as RichTable
from rich.text import Text
from sklearn.model_selection import ShuffleSplit

from conformal_gp.cli import options
from conformal_gp.cli.levels import parse_levels
from conformal_gp.cli.output import Output
from conformal_gp.cli.training import MOST_EXACT_ROWS, LabelRange, ModelChoice, Reading, Training, read_training
from conformal_gp.comparators import SplitConformal
from conformal_gp.conformal.levels import rows_needed
from conformal_gp.evaluation import (
    Finding,
    HeldOut,
    Judgement,
    Part,
    accuracy,
    chance_range,
    coverage_by_parts,
    cross_validate_intervals,
    importance,
    percent,
    verdict,
    where_it_fails,
)
from conformal_gp.evaluation.words import number
from conformal_gp.files import check_output, replacing
from conformal_gp.metrics import interval_score
from conformal_gp.tables import TableError
from conformal_gp.tuning.settings import ROWS_FOR_AUGMENTED

CONFORMAL, PLAIN, SPLIT = "GPR-CP", "plain GPR", "split conformal"
PICTURE_FORMATS = ("png", "svg", "pdf")
MOST_INPUTS = 12
# Folds where nothing else is asked for, up to so many rows. Of more, a third is held out, at most so many, once: 1,000
# labels tell a coverage of 90% to within 0.9% (a standard error), 2,000 to within 0.7%.
FOLDS = 10
ROWS_FOR_ALL_FOLDS = 1000
HELD_OUT_SHARE = 3
HELD_OUT_ROWS = 2000
# Design rows of the Gaussian process in split conformal prediction where there are many rows. They decide about nothing
# but the width of a method that is there to compare with.
COMPARED_DESIGN = 500


def evaluate(
    data: options.Data,
    target: options.Target,
    confidence: options.Confidence = ["90%", "95%", "99%"],  # noqa: B006 (typer copies it)
    tails: options.Tails = "joint",
    folds: options.Folds = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The picture: .png, .svg or .pdf.  [default: DATA-evaluation.png]"),
    ] = None,
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Draw no picture.")] = False,
    *,
    noise_column: options.NoiseColumn = None,
    possible: LabelRange,
    choice: ModelChoice,
    reading: Reading,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Cross-validate error bars: how many labels lie below and above, and how wide the error bars are.

    Full conformal prediction (GPR-CP), the same Gaussian process with its own error bars (plain GPR) and split
    conformal prediction, with a verdict, a table and a picture. Error bars are too narrow or too wide when the number
    of labels outside is beyond the central 99% of a binomial distribution, and in doubt when more are outside than its
    central 95% allows; labels below and above are held against half of what is promised. Below the table: in which
    fifths of the prediction or of an input too many labels are outside, how good predictions are, and how much their
    error grows when a column is shuffled. The interval score is the mean width and a penalty for each miss, and CRPS
    scores the whole predictive distribution: lower is better. With more than 1000 rows a third of them, at most 2000,
    is held out once, unless --folds says otherwise. With --json there is a picture only if --picture says where.
    """
    output = Output(quiet=quiet, as_json=as_json)
    levels = parse_levels(confidence)
    if picture is None and not (no_picture or as_json):
        picture = Path(f"{'table' if data == '-' else Path(data).stem}-evaluation.png")
    if picture is not None:
        picture_format(picture, "--picture")
        check_output(picture, [data], "--picture")
    training = read_training(data, target, reading, choice.seed, output, noise_column)
    run_evaluation(training, choice, levels, folds, picture, output, tails, possible.check(training))


def run_evaluation(
    training: Training,
    choice: ModelChoice,
    levels: Sequence[Fraction],
    folds: int | None,
    picture: Path | None,
    output: Output,
    tails: str = "joint",
    label_range: tuple[float, float] = (-np.inf, np.inf),
) -> None:
    """Cross-validate, draw the picture, and print the findings."""
    columns, n_rows = training.columns, training.y.size
    cv = held_out_by(folds, n_rows, choice.seed, output)
    how = f"each held out once in {cv} folds" if isinstance(cv, int) else f"of which {cv.test_size} were held out"
    shown = sorted({*levels, *([] if picture is None else curve(training_size(n_rows, cv)))})
    groups = columns.groups()
    held_out = cross_validated(
        training, choice, shown, cv, output, crps=True, tails=tails, groups=groups, label_range=label_range
    )
    findings = held_out.findings(levels)
    crps = {name: float(values.mean()) for name, values in held_out.crps.items()}
    scores = _interval_scores(held_out, levels)
    parts = {
        level: coverage_by_parts(held_out, training.X[held_out.rows], columns.input_names, level) for level in levels
    }
    sentences = [
        *verdict(findings),
        *(where_it_fails(found) for found in parts.values() if found and found[0].judgement != Judgement.INFINITE),
        *_quality(held_out, levels, crps),
    ]
    if picture is not None:  # before the findings: a result is printed, or an error, but not both
        _draw(held_out, columns.target, levels, picture)
    if output.as_json:
        output.document(
            {
                "target": columns.target,
                "rows": n_rows,
                "inputs": columns.input_names,
                "folds": cv if isinstance(cv, int) else None,
                "held_out": held_out.y.size,
                "tails": tails,
                "findings": [
                    _document(finding) | {"interval_score": scores[finding.method, finding.level]}
                    for finding in findings
                ],
                "parts": [_part(part) for found in parts.values() for part in found],
                "accuracy": {name: found._asdict() for name, found in accuracy(held_out).items()},
                "importance": importance(held_out),
                "crps": crps,
                "verdict": sentences,
                "picture": None if picture is None else str(picture),
            }
        )
    else:
        output.result(_table(findings, scores, f"{columns.target}: {n_rows} rows, {how}"), *sentences)
    if picture is not None:
        output.info(f"Picture: {picture}")


def held_out_by(folds: int | None, n_rows: int, seed: int, output: Output) -> int | ShuffleSplit:
    """How rows are held out: in folds, as many as asked; where nothing is asked and there are many rows, some, once."""
    if folds is not None or n_rows <= ROWS_FOR_ALL_FOLDS:
        return min(folds or FOLDS, n_rows)
    size = min(n_rows // HELD_OUT_SHARE, HELD_OUT_ROWS)
    output.notice(f"{size:,} of {n_rows:,} rows are held out, once; --folds K holds out every row and takes more time")
    return ShuffleSplit(1, test_size=size, random_state=seed)


def training_size(n_rows: int, cv: int | ShuffleSplit) -> int:
    """Number of training rows in the smallest training fold.

    >>> training_size(95, 10)
    85
    """
    return n_rows - (-(-n_rows // cv) if isinstance(cv, int) else cv.test_size)


def curve(n_train: int) -> list[Fraction]:
    """Levels of the picture's curve: from 50% on, as far as intervals are finite even if half the rows are design rows.

    With many rows there are fewer levels, since each takes time.
    """
    step = 2 if n_train <= MOST_EXACT_ROWS else 10
    levels = [Fraction(percents, 100) for percents in range(50, 100, step)]
    return [level for level in levels if rows_needed(level) <= n_train // 2]


def cross_validated(
    training: Training,
    choice: ModelChoice,
    levels: Sequence[Fraction],
    cv: int | ShuffleSplit,
    output: Output,
    *,
    compare: bool = True,
    **asked: Any,
) -> HeldOut:
    """Held-out intervals of the guaranteed method; with ``compare`` also of the two others.

    ``asked`` goes to :func:`~conformal_gp.evaluation.cross_validate_intervals`.
    """
    X, y = training.X, training.y
    n_train = training_size(y.size, cv)
    models: dict[str, Any] = {CONFORMAL: choice.model(n_train)}
    if compare:
        n_fitted = int(0.75 * n_train)
        # with many rows the likelihood of all would take most of the time, and some teach as much
        many = n_fitted > ROWS_FOR_AUGMENTED
        tuned = choice.model(n_fitted, tuning="holdout" if many else "train")
        if many and n_fitted <= MOST_EXACT_ROWS:
            tuned.set_params(design=min(COMPARED_DESIGN, n_fitted // 2))
        models[SPLIT] = SplitConformal(tuned, random_state=choice.seed, gamma=choice.gamma)
        if training.noise is not None:
            output.notice(f"{SPLIT} does without the noise variances of '{training.columns.noise}'")
    with output.progress("cross-validating") as progress, output.warnings_as_notices():
        return cross_validate_intervals(
            models,
            X,
            y,
            levels,
            cv=cv,
            partial=not isinstance(cv, int),
            random_state=choice.seed,
            plain=PLAIN if compare else None,
            noise_variance=training.noise,
            progress=progress,
            **asked,
        )


def picture_format(path: Path, option: str) -> str:
    """Format of a picture, by the end of its name.

    >>> picture_format(Path("a.PNG"), "--out")
    'png'
    """
    ending = path.suffix.lower().lstrip(".")
    if ending not in PICTURE_FORMATS:
        raise TableError(f"{option} must end in {', '.join(f'.{known}' for known in PICTURE_FORMATS)}; got {path}.")
    return ending


def _document(finding: Finding) -> dict[str, Any]:
    """A finding as JSON."""
    return {
        "method": finding.method,
        "level": float(finding.level),
        "rows": finding.n_rows,
        "outside": finding.n_outside,
        "below": finding.n_below,
        "above": finding.n_above,
        "miscoverage": finding.miscoverage,
        "mean_width": finding.mean_width,
        "median_width": finding.median_width,
        "infinite": finding.n_infinite,
        "judgement": finding.judgement.value,
        "judgement_below": finding.judgement_below.value,
        "judgement_above": finding.judgement_above.value,
    }


def _part(part: Part) -> dict[str, Any]:
    """A part of the rows as JSON."""
    return asdict(part) | {"level": float(part.level), "judgement": part.judgement.value}


def _interval_scores(held_out: HeldOut, levels: Sequence[Fraction]) -> dict[tuple[str, Fraction], float]:
    """Mean interval score of each method at each level."""
    return {
        (name, level): float(interval_score(held_out.y, ends[:, :, held_out.levels.index(level)], float(level)))
        for name, ends in held_out.intervals.items()
        for level in levels
    }


def _quality(held_out: HeldOut, levels: Sequence[Fraction], crps: Mapping[str, float]) -> list[str]:
    """Sentences on the scatter to expect, on errors, on scores of distributions and on which inputs matter."""
    spread = float(np.std(held_out.y))
    errors = [f"{name} R² {found.r2:.3f}, RMSE {number(found.rmse)}" for name, found in accuracy(held_out).items()]
    grown = [f"{name} {growth:+.0%}" for name, growth in importance(held_out).items()]
    more = f" and {len(grown) - MOST_INPUTS} more" if len(grown) > MOST_INPUTS else ""
    by_chance = [
        f"{100 * (1 - high):.1f} to {percent(1 - low, 1)} at {percent(level)}"
        for level, (low, high) in zip(levels, chance_range(levels, held_out.y.size), strict=True)
    ]
    return [
        f"By chance alone, of {held_out.y.size} labels {', '.join(by_chance)} would be outside.",
        f"Predictions: {'; '.join(errors)} (labels scatter by {number(spread)}).",
        f"CRPS: {', '.join(f'{name} {number(score)}' for name, score in crps.items())}.",
        f"Error of predictions when a column is shuffled: {', '.join(grown[:MOST_INPUTS])}{more}.",
    ]


def _table(findings: Sequence[Finding], scores: Mapping[tuple[str, Fraction], float], title: str) -> RichTable:
    table = RichTable(
        title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column("level", justify="right")
    table.add_column("method", no_wrap=True)
    for heading in ("below", "above", "outside", "width", "score"):
        table.add_column(heading, justify="right")
    table.add_column("promise")
    for i, finding in enumerate(findings):
        if i == 0 or finding.level != findings[i - 1].level:
            if i:
                table.add_section()
            delta = 1 - finding.level
            table.add_row(percent(finding.level), "promised", percent(delta / 2), percent(delta / 2), percent(delta))
        table.add_row(
            "",
            finding.method,
            percent(finding.n_below / finding.n_rows, 1),
            percent(finding.n_above / finding.n_rows, 1),
            percent(finding.miscoverage, 1),
            _width(finding),
            number(scores[finding.method, finding.level]),
            finding.judgement.value,
        )
    return table


def _width(finding: Finding) -> str:
    """Mean width, or the number of infinite intervals and the median width if there are any."""
    if 0 < finding.n_infinite < finding.n_rows:
        return f"{finding.n_infinite} infinite, median {number(finding.median_width)}"
    return number(finding.mean_width)


def _draw(held_out: HeldOut, target: str, levels: Sequence[Fraction], path: Path) -> None:
    """Draw coverage against level, and widths."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from conformal_gp.plotting import CoverageDisplay, WidthDisplay

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    curve = [float(level) for level in held_out.levels]
    CoverageDisplay.from_predictions(held_out.y, held_out.intervals, confidence_level=curve, ax=left)
    places = [held_out.levels.index(level) for level in levels]
    chosen = {name: intervals[:, :, places] for name, intervals in held_out.intervals.items()}
    asked = [float(level) for level in levels]
    WidthDisplay.from_predictions(chosen, confidence_level=asked, target_name=target, ax=right)
    with replacing(path) as file:
        figure.savefig(file, format=picture_format(path, "--picture"), dpi=150)
