"""``conformal-gp evaluate``: coverage and width of intervals on a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from conformal_gp.cli import options
from conformal_gp.cli.levels import more_rows, parse_levels
from conformal_gp.cli.options import Model, Reading
from conformal_gp.cli.output import Output
from conformal_gp.cli.rows import Training, read_training
from conformal_gp.formatting import number, percent

if TYPE_CHECKING:
    from conformal_gp.evaluation import Finding, HeldOut

CONFORMAL, STANDARD = "conformal", "standard GP"
MOST_INPUTS = 12
# Of the rows that are least expected a tenth is listed, but at least and at most so many.
FEWEST_OUTLIERS, MOST_OUTLIERS = 5, 20
PERIODS = 5  # of --by-time
# Up to so many rows, each is held out once. Of more, a third is held out, at most so many: with 2,000 rows the standard
# error of a coverage of 90% is 0.7%.
ROWS_FOR_ALL_FOLDS, HELD_OUT_ROWS = 1000, 2000
WORDS = ("method", "rows", "verdict", "name")  # heads of columns that are aligned to the left


def evaluate(
    data: options.Data,
    target: options.Target,
    confidence: options.Confidence = [],  # noqa: B006 (typer copies it)
    by: Annotated[str | None, typer.Option(metavar="COL", help="Hold out whole batches: rows that share COL.")] = None,
    by_time: Annotated[bool, typer.Option("--by-time", help="Predict later rows from earlier ones.")] = False,
    ordered: options.Ordered = False,
    outliers: Annotated[bool, typer.Option("--outliers", help="List the rows that are least expected.")] = False,
    details: Annotated[bool, typer.Option("--details", help="Compare methods, and rank the columns.")] = False,
    tails: options.Tails = "joint",
    folds: options.Folds = None,
    *,
    reading: Reading,
    choice: Model,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Cross-validate intervals on DATA: their coverage and width.

    conformal-gp evaluate cars.csv --target mpg
    conformal-gp evaluate assay.xlsx --target conc --by plate --details

    The coverage of held-out rows is compared with its expected range, and the intervals with those of the same Gaussian
    process without conformal prediction (standard GP). Rows with equal inputs (replicates) are held out together.
    """
    output = Output(quiet=quiet)
    levels = parse_levels(confidence)
    if by_time and by is not None:
        raise ValueError("give --by COL or --by-time, not both.")
    training = read_training(data, target, reading, output, by)
    from conformal_gp.cli.hints import like_standards

    output.notice(like_standards(training.X, training.y, target))
    if by_time or ordered:
        training = training.sorted_by_date(output)
    asked: dict[str, Any] = {"tails": tails, "importance": details or as_json}
    if by is not None:
        asked |= {"groups_out": training.known("batch")}
    if by_time:
        asked |= {"cv": _later_rows(folds, training.y.size)}
    held_out = cross_validated(training, choice, folds, output, levels or None, **asked)
    if not levels:
        share = 1 - 1 / (folds or 10)
        output.notice(more_rows(held_out.levels, choice.tuning == "holdout", share, training.reading.batch is not None))
    found = Evaluation(training, held_out)
    if by is not None or by_time:
        cv = _rows_at_random(training.y.size, choice.seed)
        found = found._replace(
            random_folds=cross_validated(training, choice, None, output, held_out.levels, tails=tails, cv=cv), by=by
        )
    if ordered:
        found = found._replace(drift=_drift(training, choice, held_out, output))
    if outliers:
        found = found._replace(outliers=_outliers(held_out, training))
    if as_json:
        output.document(found.document(target))
    else:
        output.result(*found.lines(target, details))


class Evaluation(NamedTuple):
    """What was found about a table."""

    training: Training
    held_out: HeldOut
    random_folds: HeldOut | None = None
    """The same rows held out at random, for comparison with whole batches or later rows."""
    by: str | None = None
    drift: Sequence[str] = ()
    outliers: Sequence[dict[str, Any]] = ()

    def parts(self) -> list[Finding]:
        """Coverage in subgroups, at each level."""
        from conformal_gp.evaluation import coverage_by_parts

        inputs = self.training.X.iloc[self.held_out.rows]
        return [part for level in self.held_out.levels for part in coverage_by_parts(self.held_out, inputs, level)]

    def verdicts(self) -> list[str]:
        """One line a level: coverage, verdict and width of conformal intervals."""
        parts = self.parts()
        return [each.in_a_line(parts) for each in self.held_out.findings() if each.method == CONFORMAL]

    def sentences(self) -> list[str]:
        """What limits the verdicts, what was tested in addition, and what would help."""
        from conformal_gp.evaluation import advice
        from conformal_gp.evaluation.comparison import in_comparison

        sentences = self.held_out.conditions()
        if self.random_folds is not None:
            sentences.insert(0, in_comparison(self.held_out, self.random_folds, self.by, self.training.known("batch")))
        sentences += self.drift
        helps_most = advice(self.held_out, self.training.X.iloc[self.held_out.rows], command=True)
        if helps_most:
            sentences.append(f"Advice: {helps_most}")
        return sentences

    def ending(self) -> str:
        """What the guarantee bought over the standard GP; if it does not apply, why not."""
        from conformal_gp.evaluation.comparison import bought

        if self.training.condition:
            return f"The guarantee does not apply: {self.training.condition}"
        return bought(self.held_out, CONFORMAL, STANDARD)

    def details(self) -> list[str]:
        """Figures for those who ask."""
        return [self.held_out.one_set(), self.held_out.error(), _importance(self.held_out.importance)]

    def lines(self, target: str, details: bool) -> Iterator[Any]:
        """What people read: one line a level first, one sentence on the guarantee last."""
        held_out = self.held_out
        yield f"{target}: {held_out.y.size} of {self.training.y.size} rows held out"
        yield from self.verdicts()
        if details:
            yield _findings(held_out.findings(), "")
            if self.random_folds is not None:
                yield _findings(self.random_folds.findings(), "For comparison: the same rows held out at random")
        by_group = held_out.by_group()
        if by_group:
            yield _findings(by_group, f"By {self.training.reading.groups}, corrected for the number of groups", "rows")
        if self.outliers:
            yield _outlier_table(self.outliers, target)
        yield from self.sentences()
        if details:
            yield from filter(None, self.details())
        yield self.ending()

    def document(self, target: str) -> dict[str, Any]:
        """The same for programs."""
        held_out = self.held_out
        at_random: list[Finding] = []
        if self.random_folds is not None:
            at_random = self.random_folds.findings()
        too_narrow = [part for part in self.parts() if part.judgement == part.judgement.TOO_NARROW]
        return {
            "target": target,
            "rows": self.training.y.size,
            "held_out": held_out.y.size,
            "inputs": list(self.training.X),
            "grid": held_out.grid and str(held_out.grid),
            "findings": [_document(finding) for finding in held_out.findings()],
            "random_folds": [_document(finding) for finding in at_random],
            "groups": [_document(finding) for finding in held_out.by_group()],
            "too_narrow": [_document(part) for part in too_narrow],
            "importance": held_out.importance,
            "outliers": self.outliers,
            "words": [*self.verdicts(), *self.sentences(), *filter(None, self.details()), self.ending()],
        }


def cross_validated(
    training: Training, choice: Model, folds: int | None, output: Output, levels: Any = None, **asked: Any
) -> HeldOut:
    """Cross-validate the conformal intervals and those of the standard GP."""
    from conformal_gp.evaluation import cross_validate_intervals

    if "cv" not in asked:
        asked["cv"] = held_out_by(folds, training, choice.seed, output, whole="groups_out" in asked)
    asked |= {"random_state": choice.seed, "standard_gp": STANDARD, **training.of_rows()}
    model = choice.regressor(training.y)
    with output.working("cross-validating", folds=True) as progress:
        return cross_validate_intervals({CONFORMAL: model}, training.X, training.y, levels, progress=progress, **asked)


def held_out_by(folds: int | None, training: Training, seed: int, output: Output, whole: bool = False) -> Any:
    """Choose how rows are held out: in folds, or, without --folds and with many rows, some of them once.

    Batches are held out in folds, if ``whole`` ones are held out, as with --batch.
    """
    n_rows = training.y.size
    whole = whole or training.reading.batch is not None
    if folds is not None or whole or n_rows <= ROWS_FOR_ALL_FOLDS:
        return min(folds or 10, n_rows)
    from sklearn.model_selection import ShuffleSplit

    size = min(n_rows // 3, HELD_OUT_ROWS)
    output.notice(f"{size:,} of {n_rows:,} rows are held out, once; --folds K holds out every row and takes more time")
    return ShuffleSplit(1, test_size=size, random_state=seed)


def _later_rows(folds: int | None, n_rows: int) -> Any:
    """Splits that train on earlier rows and test on those that follow."""
    from sklearn.model_selection import TimeSeriesSplit

    return TimeSeriesSplit(min(folds or PERIODS, n_rows - 1))


def _rows_at_random(n_rows: int, seed: int) -> Any:
    """Folds of rows at random, replicates and batches divided among them."""
    from sklearn.model_selection import KFold

    return KFold(min(10, n_rows), shuffle=True, random_state=seed)


def _drift(training: Training, choice: Model, held_out: HeldOut, output: Output) -> list[str]:
    """Test whether rows are exchangeable in their order."""
    from conformal_gp.drift import examine_order

    with output.working("testing for drift", folds=True):
        return examine_order(
            choice.regressor(training.y),
            training.X,
            training.y,
            held_out.y - held_out.prediction[CONFORMAL],
            held_out.rows,
            y_variance=training.known("y_variance"),
            numbers=training.known("number"),
            random_state=choice.seed,
        ).sentences


def _outliers(held_out: HeldOut, training: Training) -> list[dict[str, Any]]:
    """Held-out rows of the smallest p-values; of equal ones, those farthest from the prediction first."""
    import numpy as np
    import pandas as pd

    from conformal_gp.cli.rows import row_documents

    prediction = held_out.prediction[CONFORMAL]
    lower, upper = held_out.intervals[CONFORMAL][:, :, 0].T
    values = {"observed": held_out.y, "predicted": prediction, "lower": lower, "upper": upper}
    found = pd.DataFrame({"p_value": held_out.p_values, **values})
    n_shown = min(MOST_OUTLIERS, max(FEWEST_OUTLIERS, held_out.y.size // 10))
    worst = np.lexsort([-np.abs(held_out.y - prediction), held_out.p_values])[:n_shown]
    rows = training.rows.iloc[held_out.rows[worst]]
    if held_out.censoring is not None:
        found["limit"] = held_out.censoring
    return row_documents(found.iloc[worst], rows["number"].tolist(), rows.get("name"))


def _document(finding: Finding) -> dict[str, Any]:
    """Return a finding as JSON has it."""
    counted = {
        "outside": finding.n_outside,
        "miscoverage": finding.miscoverage,
        "coverage": finding.coverage,
        "judgement": finding.judgement.value,
    }
    return asdict(finding) | counted | {"level": float(finding.level)}


def _importance(importance: dict[str, float]) -> str:
    """Describe the permutation importance of columns, in a sentence; empty if there is none."""
    if not importance:
        return ""
    increases = [f"{name} {increase:+.0%}" for name, increase in importance.items()]
    named = ", ".join(increases[:MOST_INPUTS])
    if len(increases) > MOST_INPUTS:
        named += f" and {len(increases) - MOST_INPUTS} more"
    return f"Permutation importance (increase in error): {named}."


def _findings(findings: list[Finding], title: str, of: str = "method") -> Any:
    """Show findings in a table whose second column is the method, or the rows."""
    rows = [
        (
            percent(finding.level),
            finding.among or finding.method,
            percent(finding.coverage, 1),
            finding.expected_in_words,
            number(finding.median_width),
            finding.judgement.value,
        )
        for finding in findings
    ]
    return _table(title, ("level", of, "coverage", "expected", "median width", "verdict"), rows)


def _outlier_table(outliers: Sequence[dict[str, Any]], target: str) -> Any:
    """Show the rows of the smallest p-values, and their names if a column has them."""
    named = [name for name in ("row", "name") if name in outliers[0]]
    marks = {-1: "<", 0: "", 1: ">"}
    rows = [
        (
            *(str(each[name]) for name in named),
            number(each["p_value"], 2),
            marks[each.get("limit", 0)] + number(each["observed"], 6),
            *(number(each[name], 6) for name in ("predicted", "lower", "upper")),
        )
        for each in outliers
    ]
    heads = (*named, "p-value", "observed", "predicted", "lower", "upper")
    return _table(f"Rows whose {target} is least expected, by p-value", heads, rows)


def _table(title: str, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Any:
    """Lay out a table; columns of words are aligned to the left."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for head in heads:
        justify: Any = "right"
        if head in WORDS:
            justify = "left"
        table.add_column(head, justify=justify)
    for row in rows:
        table.add_row(*row)
    return table
