"""``conformal-gp evaluate`` and ``conformal-gp report``: coverage and width of intervals on a table."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from conformal_gp.cli.output import Output, row_documents
from conformal_gp.cli.rows import Training, more_rows, read_training
from conformal_gp.cli.tables import like_standards
from conformal_gp.files import check_output, write_bytes
from conformal_gp.formatting import CONFORMAL, STANDARD, number, percent

if TYPE_CHECKING:
    from conformal_gp.evaluation import Finding, HeldOut

# Of the rows that are least expected a tenth is listed, but at least and at most so many.
FEWEST_OUTLIERS, MOST_OUTLIERS = 5, 20
PERIODS = 5  # of --by-time
# Up to so many rows, each is held out once. Of more, a third is held out, at most so many: with 2,000 rows the standard
# error of a coverage of 90% is 0.7%.
ROWS_FOR_ALL_FOLDS, HELD_OUT_ROWS = 1000, 2000


def evaluate(options: Namespace) -> None:
    """Cross-validate intervals, and print what was found."""
    output = Output(quiet=options.quiet)
    if options.by_time and options.by is not None:
        raise ValueError("give --by COL or --by-time, not both.")
    training = read_training(options.tables[0], options.target, options, output, options.by)
    output.notice(like_standards(training.X, training.y, options.target))
    if options.by_time or options.ordered:
        training = training.sorted_by_date(output)
    held_out, at_random = _held_out(training, output)
    from conformal_gp.drift import shift_test
    from conformal_gp.evaluation.held_out import bought, in_comparison

    inputs = training.X.iloc[held_out.rows]
    found = {
        "findings": held_out.findings(),
        "random_folds": [],
        "groups": held_out.by_group(),
        "too_narrow": held_out.too_narrow(inputs),
    }
    verdicts = [each.in_words(found["too_narrow"]) for each in found["findings"] if each.method == CONFORMAL]
    sentences = [*held_out.conditions().values()]
    if at_random is not None:
        found["random_folds"] = at_random.findings()
        sentences.insert(0, in_comparison(held_out, at_random, options.by, training.known("batch")))
    if options.ordered:
        errors = held_out.y - held_out.prediction[CONFORMAL]
        sentences.append(f"Drift: {shift_test(errors, training.rows['label'].iloc[held_out.rows], options.seed)}")
    helps_most = held_out.advice(inputs, command=True)
    if helps_most:
        sentences.append(f"Advice: {helps_most}")
    if options.details or options.json:
        sentences += filter(None, [held_out.one_set(), held_out.error()])
    sentences.append(bought(held_out, CONFORMAL, STANDARD))
    outliers = []
    if options.outliers:
        outliers = _outliers(held_out, training)
    if options.json:
        output.document(
            {
                "target": options.target,
                "rows": training.y.size,
                "held_out": held_out.y.size,
                "inputs": list(training.X),
                "grid": held_out.grid and str(held_out.grid),
                **{name: [_document(each) for each in findings] for name, findings in found.items()},
                "outliers": outliers,
                "words": [*verdicts, *sentences],
            }
        )
        return
    output.result(f"{options.target}: {held_out.y.size} of {training.y.size} rows held out", *verdicts)
    if options.details:
        output.result(_table("", found["findings"], "method"))
    if options.details and at_random is not None:
        output.result(_table("For comparison: the same rows held out at random", found["random_folds"], "method"))
    if found["groups"]:
        output.result(_table(f"By {options.groups}, corrected for the number of groups", found["groups"]))
    if outliers:
        title = f"Rows whose {options.target} is least expected, by p-value"
        output.result(_laid_out(title, [*map(_with_limit, outliers)]))
    output.result(*sentences)


def report(options: Namespace) -> None:
    """Write a page about a table."""
    check_output(options.out, options.tables)
    output = Output(quiet=options.quiet)
    training = read_training(options.tables[0], options.target, options, output)
    if options.ordered:
        training = training.sorted_by_date(output)
    from conformal_gp.report import build_report

    cv = held_out_by(training, output)
    with output.working("cross-validating", folds=True) as progress:
        page = build_report(
            training.X,
            training.y,
            target_name=options.target,
            model=training.regressor(),
            cv=cv,
            ordered=options.ordered,
            row_names=training.known("label"),
            source=training.columns.source,
            notes=output.notices,
            command=options.command,
            random_state=options.seed,
            progress=progress,
            **training.of_rows(),
        )
    if options.out == "-":
        sys.stdout.write(page)
    else:
        write_bytes(options.out, page.encode())
        output.info(f"Page: {options.out}")


def _held_out(training: Training, output: Output) -> tuple[HeldOut, HeldOut | None]:
    """Hold rows out as the options say; where batches or later rows are, also at random, for comparison."""
    from sklearn.model_selection import KFold, TimeSeriesSplit

    options = training.options
    n_rows = training.y.size
    levels: Any = sorted({*options.confidence})
    asked: dict[str, Any] = {}
    if options.by is not None:
        asked["groups_out"] = training.known("batch")
    if options.by_time:
        asked["cv"] = TimeSeriesSplit(min(options.folds or PERIODS, n_rows - 1))
    held_out = cross_validated(training, output, levels or None, **asked)
    if not levels:
        share = 1 - 1 / (options.folds or 10)
        output.notice(more_rows(held_out.levels, options.tuning == "holdout", options.batch is not None, share))
    if not asked:
        return held_out, None
    cv = KFold(min(10, n_rows), shuffle=True, random_state=options.seed)
    return held_out, cross_validated(training, output, held_out.levels, cv=cv)


def cross_validated(training: Training, output: Output, levels: Any = None, **asked: Any) -> HeldOut:
    """Cross-validate the conformal intervals and those of the standard GP."""
    from conformal_gp.evaluation import cross_validate_intervals

    if "cv" not in asked:
        asked["cv"] = held_out_by(training, output, whole="groups_out" in asked)
    asked |= {"random_state": training.options.seed, "standard_gp": True, **training.of_rows()}
    model = training.regressor()
    with output.working("cross-validating", folds=True) as progress:
        return cross_validate_intervals(model, training.X, training.y, levels, progress=progress, **asked)


def held_out_by(training: Training, output: Output, whole: bool = False) -> Any:
    """Choose how rows are held out: in folds, or, without --folds and with many rows, some of them once.

    Batches are held out in folds, if ``whole`` ones are held out, as with --batch.
    """
    n_rows = training.y.size
    folds = training.options.folds
    whole = whole or training.options.batch is not None
    if folds is not None or whole or n_rows <= ROWS_FOR_ALL_FOLDS:
        return min(folds or 10, n_rows)
    from sklearn.model_selection import ShuffleSplit

    size = min(n_rows // 3, HELD_OUT_ROWS)
    output.notice(f"{size:,} of {n_rows:,} rows are held out, once; --folds K holds out every row and takes more time")
    return ShuffleSplit(1, test_size=size, random_state=training.options.seed)


def _outliers(held_out: HeldOut, training: Training) -> list[dict[str, Any]]:
    """Held-out rows of the smallest p-values; of equal ones, those farthest from the prediction first."""
    prediction = held_out.prediction[CONFORMAL]
    lower, upper = held_out.intervals[CONFORMAL][:, :, 0].T
    values = {"observed": held_out.y, "predicted": prediction, "lower": lower, "upper": upper}
    rows = training.rows.iloc[held_out.rows]
    found = pd.DataFrame({"p_value": held_out.p_values.round(4), **values}, index=rows.index)
    if held_out.censoring is not None:
        found["limit"] = held_out.censoring
    n_shown = min(MOST_OUTLIERS, max(FEWEST_OUTLIERS, held_out.y.size // 10))
    worst = np.lexsort([-np.abs(held_out.y - prediction), held_out.p_values])[:n_shown]
    return row_documents(found.iloc[worst], rows.iloc[worst].get("name"))


def _with_limit(outlier: dict[str, Any]) -> dict[str, Any]:
    """Write an observed value as its table does: a limit of detection has a mark."""
    shown = dict(outlier)
    mark = {-1: "<", 0: "", 1: ">"}[shown.pop("limit", 0)]
    return shown | {"observed": mark + number(shown["observed"], 6)}


def _document(finding: Finding) -> dict[str, Any]:
    return asdict(finding) | {
        "level": float(finding.level),
        "outside": finding.n_outside,
        "miscoverage": finding.miscoverage,
        "coverage": finding.coverage,
        "judgement": finding.judgement.value,
    }


def _table(title: str, findings: Sequence[Finding], of: str = "rows") -> str:
    rows = [
        {
            "level": percent(finding.level),
            of: finding.among or finding.method,
            "coverage": percent(finding.coverage, 1),
            "expected": finding.expected_in_words,
            "median width": number(finding.median_width),
            "verdict": finding.judgement.value,
        }
        for finding in findings
    ]
    return _laid_out(title, rows)


def _laid_out(title: str, rows: Sequence[dict[str, Any]]) -> str:
    table = pd.DataFrame(rows).to_string(index=False, float_format=lambda value: number(value, 6))
    return f"{title}\n{table}\n".lstrip()
