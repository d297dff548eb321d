"""``conformal-gp evaluate`` and ``report``: coverage and width of intervals on a table."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conformal_gp.cli import options
from conformal_gp.cli.common import Output, Training, read_training
from conformal_gp.cli.options import Model, Reading, more_rows, parse_levels

if TYPE_CHECKING:
    from conformal_gp.evaluation import Finding, HeldOut

CONFORMAL, STANDARD = "conformal", "standard GP"
MOST_INPUTS = 12
MOST_OUTLIERS = 20
# Up to so many rows, each is held out once. Of more, a third is held out, at most so many: with 2,000 rows the standard
# error of a coverage of 90% is 0.7%.
ROWS_FOR_ALL_FOLDS, HELD_OUT_ROWS = 1000, 2000
# The test for drift fits the model to a third of the rows, at least so many, and takes at most so many rows.
FIRST_ROWS, ORDERED_ROWS = 40, 1000


def evaluate(
    data: options.Data,
    target: options.Target,
    confidence: options.Confidence = [],  # noqa: B006 (typer copies it)
    any_level: options.AnyLevel = False,
    tails: options.Tails = "joint",
    folds: options.Folds = None,
    ordered: options.Ordered = False,
    outliers: Annotated[
        bool, typer.Option("--outliers", help="List the held-out rows of the smallest p-values.")
    ] = False,
    *,
    choice: Model,
    reading: Reading,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Cross-validate prediction intervals: `conformal-gp evaluate cars.csv --target mpg`.

    Coverage of held-out rows compared with its expected range, widths, and advice. The conformal intervals are compared
    with those of the same Gaussian process without calibration (standard GP).
    """
    from conformal_gp.evaluation import before_and_after, coverage_by_parts

    output = Output(quiet=quiet)
    levels = parse_levels(confidence, any_level=any_level)
    training = read_training(data, target, reading, output)
    held_out = cross_validated(
        training, choice, folds, output, levels or None, tails=tails, importance=True, before=True
    )
    if not levels:
        output.notice(more_rows(held_out.levels, choice.tuning == "holdout", 1 - 1 / (folds or 10)))
    inputs = training.X.iloc[held_out.rows]
    parts = [part for level in held_out.levels for part in coverage_by_parts(held_out, inputs, level)]
    sentences = _sentences(held_out, inputs, parts)
    if ordered:
        sentences.append(_drift(training, choice, output))
    worst = []
    if outliers:
        worst = _outliers(held_out, training)
    if as_json:
        pairs = before_and_after(held_out, held_out.levels[0])
        narrow = [part for part in parts if part.judgement == part.judgement.TOO_NARROW]
        document: dict[str, Any] = {
            "target": target,
            "rows": training.y.size,
            "held_out": held_out.y.size,
            "inputs": list(training.X),
            "findings": [_document(finding) for finding in held_out.findings()],
            "too_narrow": [_document(part) for part in narrow if part.method == CONFORMAL],
            "before_and_after": [[*map(_document, pair)] for pair in pairs],
            "importance": held_out.importance,
        }
        if held_out.groups is not None:
            document["groups"] = [_document(finding) for finding in held_out.by_group()]
        if outliers:
            document["outliers"] = worst
        output.document(document | {"words": sentences})
        return
    title = f"{target}: {held_out.y.size} of {training.y.size} rows held out"
    tables = [_findings(held_out.findings(), title)]
    if held_out.groups is not None:
        by_group = f"By {training.groups}, corrected for the number of groups"
        tables.append(_findings(held_out.by_group(), by_group, "rows"))
    output.result(*tables, *_before_and_after(held_out), *_outlier_table(worst, target), *sentences)


def report(
    data: options.Data,
    target: options.Target,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The page, HTML; - is stdout.")],
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    folds: options.Folds = None,
    *,
    choice: Model,
    reading: Reading,
    quiet: options.Quiet = False,
) -> None:
    """Write a page about DATA: `conformal-gp report cars.csv --target mpg -o report.html`.

    Coverage and width at every level, with a slider for the level; one HTML file that opens without a network.
    """
    from conformal_gp.files import check_output, write_bytes

    check_output(out, [data])
    output = Output(quiet=quiet)
    training = read_training(data, target, reading, output)
    from conformal_gp.report import build_report

    described = {"target_name": target, "title": title, "row_numbers": training.X.index + 1}
    with output.working("cross-validating") as progress:
        page = build_report(
            training.X,
            training.y,
            model=choice.regressor(training.y),
            cv=_held_out_by(folds, training.y.size, choice.seed, output),
            **training.of_rows(),
            random_state=choice.seed,
            progress=progress,
            **described,
        )
    if out == "-":
        sys.stdout.write(page)
    else:
        write_bytes(out, page.encode())
        output.info(f"Page: {out}")


def cross_validated(
    training: Training, choice: Model, folds: int | None, output: Output, levels: Any = None, **asked: Any
) -> HeldOut:
    """Cross-validate the conformal intervals and those of the standard GP."""
    from conformal_gp.evaluation import cross_validate_intervals

    cv = _held_out_by(folds, training.y.size, choice.seed, output)
    asked |= {"cv": cv, "random_state": choice.seed, "standard_gp": STANDARD, **training.of_rows()}
    model = choice.regressor(training.y)
    with output.working("cross-validating") as progress:
        return cross_validate_intervals({CONFORMAL: model}, training.X, training.y, levels, progress=progress, **asked)


def _held_out_by(folds: int | None, n_rows: int, seed: int, output: Output) -> Any:
    """Choose how rows are held out: in folds, or, without --folds and with many rows, some of them once."""
    if folds is not None or n_rows <= ROWS_FOR_ALL_FOLDS:
        return min(folds or 10, n_rows)
    from sklearn.model_selection import ShuffleSplit

    size = min(n_rows // 3, HELD_OUT_ROWS)
    output.notice(f"{size:,} of {n_rows:,} rows are held out, once; --folds K holds out every row and takes more time")
    return ShuffleSplit(1, test_size=size, random_state=seed)


def _drift(training: Training, choice: Model, output: Output) -> str:
    """Test whether rows are exchangeable in their order; of very many, rows at equal distances."""
    import numpy as np

    from conformal_gp.drift import ALARM, Drift, online_p_values

    rows = np.linspace(0, training.y.size - 1, min(training.y.size, ORDERED_ROWS)).astype(int)
    first, later = np.split(rows, [max(rows.size // 3, FIRST_ROWS)])
    if later.size < FIRST_ROWS // 2:
        return f"Drift: {rows.size} rows are too few to tell."
    given = [training.X.iloc, training.y]
    if training.y_variance is not None:
        given.append(training.y_variance)
    with output.working("testing for drift"):
        model = choice.regressor(training.y).set_params(tuning="holdout").fit(*(each[first] for each in given))
        p_values = online_p_values(model, *(each[later] for each in given), random_state=choice.seed)
    drift = Drift(p_values, np.asarray(training.X.index[later] + 1))
    tested = f"rows {training.X.index[later[0]] + 1} to {training.X.index[later[-1]] + 1}"
    if drift.alarm:
        return (
            f"Drift: from about row {drift.start} on, rows differ from those before. By the martingale test of "
            f"{tested}, evidence against exchangeability, which the guarantee assumes, is 10^{drift.maximum:.1f} to 1."
        )
    return (
        f"Drift: no evidence against exchangeability of {tested} by the martingale test (largest "
        f"{10**drift.maximum:.1f} to 1; {ALARM} to 1 would be an alarm)."
    )


def _outliers(held_out: HeldOut, training: Training) -> list[dict[str, Any]]:
    """Held-out rows of the smallest p-values; of equal ones, those farthest from the prediction first."""
    import numpy as np

    prediction = held_out.prediction[CONFORMAL]
    lower, upper = held_out.intervals[CONFORMAL][:, :, 0].T
    order = np.lexsort([-np.abs(held_out.y - prediction), held_out.p_values])
    return [
        {
            "row": int(training.X.index[held_out.rows[i]]) + 1,
            "p_value": float(held_out.p_values[i]),
            "observed": float(held_out.y[i]),
            "predicted": float(prediction[i]),
            "lower": float(lower[i]),
            "upper": float(upper[i]),
        }
        for i in order[:MOST_OUTLIERS]
    ]


def _document(finding: Finding) -> dict[str, Any]:
    """Return a finding as JSON has it."""
    counted = {
        "outside": finding.n_outside,
        "miscoverage": finding.miscoverage,
        "coverage": finding.coverage,
        "judgement": finding.judgement.value,
    }
    return asdict(finding) | counted | {"level": float(finding.level)}


def _sentences(held_out: HeldOut, X: Any, parts: list[Finding]) -> list[str]:
    """The verdict, errors of predictions, importance of columns, and advice."""
    from conformal_gp.evaluation import advice, verdict

    grown = [f"{name} {growth:+.0%}" for name, growth in held_out.importance.items()]
    named = ", ".join(grown[:MOST_INPUTS])
    if len(grown) > MOST_INPUTS:
        named += f" and {len(grown) - MOST_INPUTS} more"
    sentences = [
        *verdict([finding for finding in held_out.findings() if finding.method == CONFORMAL], parts),
        held_out.error(),
        f"Permutation importance (increase in error): {named}.",
    ]
    one_set = held_out.one_set()
    if one_set:
        sentences.append(one_set)
    help_most = advice(held_out, X)
    if help_most:
        sentences.append(f"Advice: {help_most}")
    return sentences


def _findings(findings: list[Finding], title: str, of: str = "method") -> Any:
    """Show findings in a table whose second column is the method, or the rows."""
    from conformal_gp.evaluation import percent
    from conformal_gp.evaluation.findings import number

    rows: list[tuple[str, ...]] = []
    for finding in findings:
        low, high = finding.expected()
        rows.append(
            (
                percent(finding.level),
                finding.among or finding.method,
                percent(finding.coverage, 1),
                f"{100 * low:.1f} to {percent(high, 1)}",
                number(finding.median_width),
                finding.judgement.value,
            )
        )
    return _table(title, ("level", of, "coverage", "expected", "median width", "verdict"), rows)


def _before_and_after(held_out: HeldOut) -> list[Any]:
    """Show coverage by fifths of the prediction without and with target transformation and difficulty, if any."""
    from conformal_gp.evaluation import before_and_after, percent
    from conformal_gp.evaluation.findings import number

    level = held_out.levels[0]
    rows: list[tuple[str, ...]] = []
    for before, after in before_and_after(held_out, level):
        rows.append(
            (
                after.among.removeprefix("prediction is "),
                str(after.n_rows),
                percent(before.coverage, 1),
                percent(after.coverage, 1),
                number(before.median_width),
                number(after.median_width),
            )
        )
    if not rows:
        return []
    title = f"{percent(level)}, without and with the target transformation or difficulty"
    return [_table(title, ("predictions", "n", "coverage without", "with", "median width without", "with"), rows)]


def _outlier_table(outliers: list[dict[str, Any]], target: str) -> list[Any]:
    """Show the rows of the smallest p-values."""
    from conformal_gp.evaluation.findings import number

    rows = [
        (
            str(each["row"]),
            number(each["p_value"], 2),
            *(number(each[name], 6) for name in ("observed", "predicted", "lower", "upper")),
        )
        for each in outliers
    ]
    if not rows:
        return []
    return [
        _table(
            f"Rows whose {target} is least expected, by p-value",
            ("row", "p-value", "observed", "predicted", "lower", "upper"),
            rows,
        )
    ]


def _table(title: str, heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> Any:
    """Lay out a table; columns of words are aligned to the left."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for head in heads:
        table.add_column(head, justify="left" if head in ("method", "rows", "verdict", "predictions") else "right")
    for row in rows:
        table.add_row(*row)
    return table
