"""``conformal-gp fit`` and ``conformal-gp predict``: a model from a table, and predictions for a table of new rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conformal_gp.cli import options
from conformal_gp.cli.options import Model, Reading, default_levels, parse_levels
from conformal_gp.cli.output import Output
from conformal_gp.cli.rows import read_new, read_training, row_documents

if TYPE_CHECKING:
    import pandas as pd

    from conformal_gp.cli.columns import Columns, Inputs
    from conformal_gp.cli.tables import Table

_OF_FIT = {"dates", "drop", "categories", "noise_column", "sd_column", "groups", "batch"}
_OF_FIT |= {option.name for option in fields(Model)}


MOST_NAMED = 5  # rows, or inputs


def fit(
    data: options.Data,
    target: options.Target,
    out: Annotated[str, typer.Option("--out", "-o", metavar="MODEL", help="File for the model.")],
    *,
    reading: Reading,
    choice: Model,
    quiet: options.Quiet = False,
) -> None:
    """Fit a model to DATA and save it, for predict --model.

    conformal-gp fit cars.csv --target mpg -o cars.model
    conformal-gp predict new-cars.csv --model cars.model

    The file contains the training rows, readable by anyone who has it, and no code.
    """
    from conformal_gp.files import check_output

    output = Output(quiet=quiet)
    check_output(out, [data])
    model = read_training(data, target, reading, output).fit(choice, output)
    from conformal_gp.saving import save

    save(model, out)
    output.info(*_summary(model), f"Saved to {out}.")


def predict(
    ctx: typer.Context,
    files: Annotated[list[str], typer.Argument(metavar="[TRAIN] NEW")],
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="COL", help="Column of TRAIN to predict.")
    ] = None,
    model: options.Fitted = None,
    out: options.Out = "-",
    confidence: options.Confidence = [],  # noqa: B006 (typer copies it)
    quantiles: options.Quantiles = [],  # noqa: B006
    explain: Annotated[bool, typer.Option("--explain", help="Explain the width of each interval.")] = False,
    *,
    reading: Reading,
    choice: Model,
    details: Annotated[bool, typer.Option("--details", help="Describe the model: kernel and hyperparameters.")] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Predict single new measurements with guaranteed intervals.

    conformal-gp predict cars.csv new-cars.csv --target mpg -o predicted.csv
    conformal-gp predict new-cars.csv --model cars.model --confidence 80% 95%

    An interval is for one new measurement, its noise included, and guaranteed. Columns are matched by name, and columns
    of text are categories. New columns are COL_mean, COL_lower_95, COL_upper_95 and so on, and COL_quantile_5 with
    --quantiles; an infinite bound is written inf. COL_beyond_training names the inputs of a row that lie outside the
    training range: the guarantee does not apply to such rows. With --explain, COL_why explains the width at the highest
    level, and names the rows of TRAIN that determine it.

    Targets like <0.02 or >500 are limits of detection. An interval that reaches the limit is open beyond it, and
    COL_limit_95 writes it as "<0.05": at most 0.05, and perhaps not detectable.
    """
    from conformal_gp.cli.tables import kind_of
    from conformal_gp.cli.writing import rounded, write_table
    from conformal_gp.files import check_output

    output = Output(quiet=quiet)
    levels = parse_levels(confidence)
    shares = parse_levels(quantiles, "--quantiles", lowest=Fraction(0))
    _check_files(files, model, target)
    if explain and shares and not levels:
        raise ValueError("--explain is for intervals; with --quantiles give --confidence too.")
    check_output(out, [*files, *filter(None, [model])])
    kind = kind_of(out)
    if model is not None:
        fitted = load_fitted(ctx, model, target, reading)
        table, new = read_new(files[-1], fitted._columns, reading, output)
    else:
        training = read_training(files[0], str(target), reading, output)
        table, new = read_new(files[-1], training.columns, reading, output)  # before the fit, which may be slow
        fitted = training.fit(choice, output)
    columns = fitted._columns
    if not (levels or shares):
        levels = default_levels(fitted, output)
    with output.working(f"predicting {len(new.X)} rows", new.X.index):
        exact = _predictions(fitted, new, levels, shares)
        words = {}
        if explain:
            explained = fitted.explain_interval(new.X, float(levels[-1]), y_variance=new.y_variance)
            words["why"] = explained.sentences(columns.rows)
    from conformal_gp.validation import input_names  # imports scikit-learn: after mistakes in the tables

    names = input_names(fitted)
    words["beyond_training"] = ["; ".join(_first(names[beyond])) for beyond in fitted.beyond_training(new.X)]
    exclusions = _exclusions(columns, table, new, words["beyond_training"])
    for exclusion in exclusions:
        output.warning(exclusion)
    found = rounded(exact, levels, shares)
    words = _limits(fitted, exact, found, levels) | words
    if out != "-" or not as_json:
        added = found
        if kind == "parquet":
            added = exact
        write_table(table, added.assign(**words), f"{columns.target}_", out)
        described = [_in_short(fitted.guarantee_)]
        if details:
            described = _summary(fitted)
        output.info(f"{len(new.X)} rows predicted.", *described, *_verdict(columns, table, exact, levels))
    if as_json:  # last: a result, or an error, but not both
        output.document(_document(fitted, table, levels, found.assign(**words), exclusions))


def _check_files(files: list[str], model: str | None, target: str | None) -> None:
    """Refuse a wrong number of tables."""
    if files.count("-") > 1:
        raise ValueError("only one file can be read from standard input (-).")
    complete = len(files) == 1
    if model is None:
        complete = len(files) == 2 and target is not None
    if not complete:
        raise ValueError("give two tables, TRAIN and NEW, and --target COL; or one table and --model FILE.")


def load_fitted(ctx: typer.Context, path: str, target: str | None, reading: Reading) -> Any:
    """Load a model that fit saved, to read rows as the command line asks for.

    Options for fitting would have no effect, and are refused.
    """
    given = [name for name in _OF_FIT if getattr(ctx.get_parameter_source(name), "name", "") == "COMMANDLINE"]
    if given:
        option = given[0].replace("_", "-")
        raise ValueError(f"--{option} is for fitting, and the model of --model is fitted; give it to conformal-gp fit.")
    from conformal_gp.saving import load

    fitted = load(path)
    if not hasattr(fitted, "_columns"):
        raise ValueError(f"{path} was not made by conformal-gp fit, but in Python; predict with it in Python.")
    if target not in (None, fitted._columns.target):
        raise ValueError(f"{path} predicts '{fitted._columns.target}', not '{target}'.")
    known = fitted._columns.reading
    missing = reading.missing
    if missing == "error":
        missing = known.missing
    known = replace(known, missing=missing, na=[*known.na, *reading.na])
    fitted._columns = replace(fitted._columns, reading=known)
    return fitted


def _predictions(model: Any, new: Inputs, levels: list[Fraction], shares: list[Fraction]) -> pd.DataFrame:
    """Predict means, bounds and quantiles of rows, numbered as in their table."""
    import pandas as pd

    from conformal_gp.cli.writing import bounds_of, quantile_of

    X = new.X
    found = pd.DataFrame({"mean": model.predict(X)}, index=X.index)
    if levels:
        intervals = model.predict_interval(X, [*map(float, levels)], y_variance=new.y_variance)
        for i, level in enumerate(levels):
            found[bounds_of(level)] = intervals[:, :, i]
    if shares:
        found[[*map(quantile_of, shares)]] = model.predict_quantiles(
            X, [*map(float, shares)], y_variance=new.y_variance
        )
    return found


def _limits(model: Any, exact: pd.DataFrame, found: pd.DataFrame, levels: list[Fraction]) -> dict[str, list[str]]:
    """Write intervals that reach a limit of detection as laboratories do, "<0.02" or ">500", by column.

    ``exact`` has bounds before rounding, which may round to the limit and not reach it, and ``found`` those written.
    """
    import numpy as np

    from conformal_gp.cli.writing import bounds_of
    from conformal_gp.formatting import number, percent

    limits = model._tuned.target.limits
    if limits is None:
        return {}
    columns = {}
    for level in levels:
        names = bounds_of(level)
        lower, upper = exact[names].to_numpy().T
        below = (lower <= limits.low) & np.isfinite(upper)
        above = (upper >= limits.high) & np.isfinite(lower)
        least = [f">{number(value, 12)}" for value in found[names[0]]]
        most = [f"<{number(value, 12)}" for value in found[names[1]]]
        words = np.select([below & above, below, above], ["", most, least], "")
        columns[f"limit_{percent(level)[:-1]}"] = words.tolist()
    return columns


def _first(labels: Sequence[str]) -> list[str]:
    """Return the first of many labels, and dots."""
    if len(labels) > MOST_NAMED:
        return [*labels[:MOST_NAMED], "..."]
    return [*labels]


def _exclusions(columns: Columns, table: Table, new: Inputs, beyond: list[str]) -> list[str]:
    """State in sentences to which rows the guarantee does not apply, and why."""
    import numpy as np

    from conformal_gp.extrapolation import columns_of

    rows = new.X.index
    excluded: dict[str, Any] = {
        "lie outside the training range: the column that ends in beyond_training names the inputs.": beyond,
    }
    grid = columns.grid
    if grid is not None:
        why = f"lie between the levels of a grid. {grid.condition} {grid.remedy}"
        excluded[why] = grid.between(columns_of(new.X))
    sentences = []
    for why, marks in excluded.items():
        some = rows[np.asarray(marks, dtype=bool)]
        if len(some):
            called = f"row{'s' * (len(some) > 1)} {', '.join(_first(columns.labels(table, some)))}"
            which = f"{len(some)} of {len(rows)} rows of {table.name} ({called})"
            sentences.append(f"the guarantee does not apply to {which}, which {why}")
    return sentences


def _in_short(guarantee: str) -> str:
    """Leave out how hyperparameters were set from the statement of a guarantee.

    >>> _in_short("Valid: hyperparameters were tuned on 7 tuning rows. If new rows are exchangeable, intervals cover.")
    'Valid: if new rows are exchangeable, intervals cover.'
    """
    return re.sub(r"([Vv]alid[^:.]*): [^:]*\. If new rows", r"\1: if new rows", guarantee)


def _summary(model: Any) -> list[str]:
    """Describe a fitted model and its guarantee."""
    kernel = f"Kernel: {model.kernel_}, noise variance {model.noise_variance_:.3g}"
    return [f"Fitted to {model._source.n_rows} rows. {kernel}.", model.guarantee_]


def _verdict(columns: Columns, table: Table, found: pd.DataFrame, levels: list[Fraction]) -> list[str]:
    """If every predicted row has a target: compare the coverage of the intervals with the expected range."""
    from conformal_gp.cli.writing import bounds_of
    from conformal_gp.evaluation import Finding, verdict

    if columns.target not in table.frame:
        return []
    y = columns.targets(table)["y"][found.index]
    if y.isna().any() or not y.size:
        return []
    return verdict([Finding.of(table.name, level, y, found[bounds_of(level)]) for level in levels])


def _document(
    model: Any, table: Table, levels: list[Fraction], found: pd.DataFrame, exclusions: list[str]
) -> dict[str, Any]:
    """Return the result as JSON has it."""
    from conformal_gp.validation import input_names

    return {
        "target": model._columns.target,
        "levels": [*map(float, levels)],
        "training_rows": model._source.n_rows,
        "calibration_rows": model.n_calibration_,
        "inputs": input_names(model),
        "kernel": str(model.kernel_),
        "guarantee": " ".join([model.guarantee_, *(f"{each[0].upper()}{each[1:]}" for each in exclusions)]),
        "rows": row_documents(found, model._columns.names_of(table, found.index)),
    }
