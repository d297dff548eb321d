"""``conformal-gp evaluate`` and ``report``: whether error bars keep their promise on a table."""

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

CONFORMAL, PLAIN = "guaranteed", "plain GP"
MOST_INPUTS = 12
# Up to so many rows each is held out once. Of more, a third is held out, at most so many: 2,000 labels tell a coverage
# of 90% to within 0.7% (a standard error).
ROWS_FOR_ALL_FOLDS, HELD_OUT_ROWS = 1000, 2000
# To look for drift, a third of the rows tunes the model and begins, but not less, and no more rows are looked at.
FIRST_ROWS, ORDERED_ROWS = 40, 1000


def evaluate(
    data: options.Data,
    target: options.Target,
    confidence: options.Confidence = [],  # noqa: B006 (typer copies it)
    any_level: options.AnyLevel = False,
    tails: options.Tails = "joint",
    folds: options.Folds = None,
    ordered: options.Ordered = False,
    *,
    choice: Model,
    reading: Reading,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Cross-validate error bars: `conformal-gp evaluate cars.csv --target mpg`.

    How many labels lie outside, beside what chance allows, how wide error bars are, and what would help most. Beside
    the guaranteed intervals stand the same Gaussian process's own error bars (plain GP).
    """
    output = Output(quiet=quiet)
    levels = parse_levels(confidence, any_level=any_level)
    training = read_training(data, target, reading, output)
    asked = {"tails": tails, "importance": True, "before": True}
    held_out = cross_validated(training, choice, folds, output, levels or None, **asked)
    if not levels:
        output.notice(more_rows(held_out.levels, choice.tuning == "holdout", 1 - 1 / (folds or 10)))
    findings, sentences = held_out.findings(), _sentences(held_out, training.X)
    by_group = held_out.by_group()
    if ordered:
        sentences.append(_drift(training, choice, output))
    if as_json:
        from conformal_gp.evaluation import before_and_after

        pairs = before_and_after(held_out, held_out.levels[0])
        counts = {"rows": training.y.size, "held_out": held_out.y.size, "inputs": list(training.X)}
        found: dict[str, Any] = {
            "findings": [_document(finding) for finding in findings],
            "before_and_after": [[*map(_document, pair)] for pair in pairs],
            "importance": held_out.importance,
        }
        if by_group:
            found["groups"] = [_document(finding) for finding in by_group]
        output.document({"target": target, **counts, **found, "words": sentences})
    else:
        title = f"{target}: {held_out.y.size} of {training.y.size} rows held out"
        tables = _tables(held_out, findings, title)
        if by_group:
            tables.insert(1, _findings(by_group, f"By {training.groups}, each judged as one of so many groups", "rows"))
        output.result(*tables, *sentences)


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
    """Held-out intervals, and those of the same process without the guarantee."""
    from conformal_gp.evaluation import cross_validate_intervals

    cv = _held_out_by(folds, training.y.size, choice.seed, output)
    asked |= {"cv": cv, "random_state": choice.seed, "plain": PLAIN, **training.of_rows()}
    model = choice.regressor(training.y)
    with output.working("cross-validating") as progress:
        return cross_validate_intervals({CONFORMAL: model}, training.X, training.y, levels, progress=progress, **asked)


def _held_out_by(folds: int | None, n_rows: int, seed: int, output: Output) -> Any:
    """How rows are held out: in folds; where nothing is asked and there are many rows, some of them, once."""
    if folds is not None or n_rows <= ROWS_FOR_ALL_FOLDS:
        return min(folds or 10, n_rows)
    from sklearn.model_selection import ShuffleSplit

    size = min(n_rows // 3, HELD_OUT_ROWS)
    output.notice(f"{size:,} of {n_rows:,} rows are held out, once; --folds K holds out every row and takes more time")
    return ShuffleSplit(1, test_size=size, random_state=seed)


def _drift(training: Training, choice: Model, output: Output) -> str:
    """Whether later rows are like earlier ones; of very many, rows at equal distances."""
    import numpy as np

    from conformal_gp.drift import Drift, online_p_values

    rows = np.linspace(0, training.y.size - 1, min(training.y.size, ORDERED_ROWS)).astype(int)
    first, later = np.split(rows, [max(rows.size // 3, FIRST_ROWS)])
    if later.size < FIRST_ROWS // 2:
        return f"Drift: {rows.size} rows are too few to tell."

    given = [training.X.iloc, training.y] + ([] if training.y_variance is None else [training.y_variance])
    with output.working("looking for drift"):
        model = choice.regressor(training.y).set_params(tuning="holdout").fit(*(each[first] for each in given))
        p_values = online_p_values(model, *(each[later] for each in given), random_state=choice.seed)
    return str(Drift(p_values, np.asarray(training.X.index[later] + 1)))


def _document(finding: Finding) -> dict[str, Any]:
    """A finding as JSON."""
    counted = {"outside": finding.n_outside, "miscoverage": finding.miscoverage, "judgement": finding.judgement.value}
    return asdict(finding) | counted | {"level": float(finding.level)}


def _sentences(held_out: HeldOut, X: Any) -> list[str]:
    """On errors of predictions, on which columns matter, and on what would help."""
    from conformal_gp.evaluation import advice

    grown = [f"{name} {growth:+.0%}" for name, growth in held_out.importance.items()]
    more = f" and {len(grown) - MOST_INPUTS} more" if len(grown) > MOST_INPUTS else ""
    help_most = advice(held_out, X.iloc[held_out.rows])
    return [
        held_out.error(),
        f"Error of predictions when a column is shuffled: {', '.join(grown[:MOST_INPUTS])}{more}.",
        *filter(None, [held_out.one_set(), f"What would help most: {help_most}" if help_most else ""]),
    ]


def _findings(findings: list[Finding], title: str, of: str = "error bars") -> Any:
    """A table of what was found, with one of the method, or of the rows, in its second column."""
    from conformal_gp.evaluation import percent
    from conformal_gp.evaluation.findings import number

    rows: list[tuple[str, ...]] = []
    for finding in findings:
        low, high = finding.chance()
        chance, outside = f"{100 * low:.1f} to {percent(high, 1)}", percent(finding.miscoverage, 1)
        width, promise = number(finding.median_width), finding.judgement.value
        rows.append((percent(finding.level), finding.among or finding.method, outside, chance, width, promise))
    return _table(title, ("level", of, "outside", "by chance", "median width", "promise"), rows)


def _tables(held_out: HeldOut, findings: list[Finding], title: str) -> list[Any]:
    """What was found; and where widths follow the rows, coverage by fifths of the prediction before and after that."""
    from conformal_gp.evaluation import before_and_after, percent
    from conformal_gp.evaluation.findings import number

    level = held_out.levels[0]
    parts: list[tuple[str, ...]] = []
    for before, after in before_and_after(held_out, level):
        shares = (percent(part.miscoverage, 1) for part in (before, after))
        widths = (number(part.median_width) for part in (before, after))
        parts.append((after.among.removeprefix("prediction is "), str(after.n_rows), *shares, *widths))
    if not parts:
        return [_findings(findings, title)]
    among = f"{percent(level)}, before and after a map of the labels or a difficulty was chosen"
    columns = ("predictions", "rows", "outside before", "after", "median width before", "after")
    return [_findings(findings, title), _table(among, columns, parts)]


def _table(title: str, heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for place, head in enumerate(heads):
        words = head in ("error bars", "promise", "predictions") or (head == "rows" and heads[place - 1] == "level")
        table.add_column(head, justify="left" if words else "right")
    for row in rows:
        table.add_row(*row)
    return table
