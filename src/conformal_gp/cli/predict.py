"""``conformal-gp fit`` and ``conformal-gp predict``: a model from a table, and predictions for a table of new rows."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from conformal_gp.cli.columns import Columns, Inputs
from conformal_gp.cli.output import Output, bounds_of, rounded, row_documents, write_table
from conformal_gp.cli.rows import default_levels, load_fitted, read_new, read_training
from conformal_gp.cli.tables import Table, kind_of
from conformal_gp.files import check_output
from conformal_gp.formatting import number, percent

MOST_NAMED = 5  # rows, or inputs


def fit(options: Namespace) -> None:
    """Fit a model to a table and save it."""
    output = Output(quiet=options.quiet)
    check_output(options.out, options.tables)
    model = read_training(options.tables[0], options.target, options, output).fit(output)
    from conformal_gp.saving import save

    save(model, options.out)
    output.info(*_summary(model), f"Saved to {options.out}.")


def predict(options: Namespace) -> None:
    """Predict rows of a table by a model of another table, or a saved one."""
    output = Output(quiet=options.quiet)
    files = options.tables
    levels = sorted({*options.confidence})
    shares = sorted({*options.quantiles})
    if files.count("-") > 1:
        raise ValueError("only one file can be read from standard input (-).")
    complete = len(files) == 1
    if options.model is None:
        complete = len(files) == 2 and options.target is not None
    if not complete:
        raise ValueError("give two tables, TRAIN and NEW, and --target COL; or one table and --model FILE.")
    if options.explain and shares and not levels:
        raise ValueError("--explain is for intervals; with --quantiles give --confidence too.")
    check_output(options.out, [*files, *filter(None, [options.model])])
    kind = kind_of(options.out)
    if options.model is not None:
        fitted = load_fitted(options)
        table, new = read_new(files[-1], fitted._columns, options, output)
    else:
        training = read_training(files[0], options.target, options, output)
        table, new = read_new(files[-1], training.columns, options, output)  # before the fit, which may be slow
        fitted = training.fit(output)
    columns = fitted._columns
    if not (levels or shares):
        levels = default_levels(fitted, output)
    with output.working(f"predicting {len(new.X)} rows", new.X.index):
        exact = _predictions(fitted, new, levels, shares)
        words = {}
        if options.explain:
            explained = fitted.explain_interval(new.X, float(levels[-1]), y_variance=new.y_variance)
            words["why"] = explained.sentences(columns.rows)
    from conformal_gp.validation import input_names  # imports scikit-learn: after mistakes in the tables

    names = input_names(fitted)
    words["beyond_training"] = ["; ".join(_first(names[beyond])) for beyond in fitted.beyond_training(new.X)]
    exclusions = _exclusions(columns, table, new, words["beyond_training"])
    for exclusion in exclusions:
        output.warning(exclusion)
    found = rounded(exact)
    words = _limits(fitted, table, exact, found, levels) | words
    if options.out != "-" or not options.json:
        added = found
        if kind == "parquet":
            added = exact
        write_table(table, added.assign(**words), f"{columns.target}_", options.out)
        described = [_in_short(fitted.guarantee_)]
        if options.details:
            described = _summary(fitted)
        output.info(f"{len(new.X)} rows predicted.", *described, *_verdict(columns, table, exact, levels))
    if options.json:  # last: a result, or an error, but not both
        output.document(
            {
                "target": columns.target,
                "levels": [*map(float, levels)],
                "training_rows": fitted._source.n_rows,
                "calibration_rows": fitted.n_calibration_,
                "inputs": names,
                "kernel": str(fitted.kernel_),
                "guarantee": " ".join([fitted.guarantee_, *(f"{each[0].upper()}{each[1:]}" for each in exclusions)]),
                "rows": row_documents(found.assign(**words), columns.names_of(table, found.index)),
            }
        )


def _predictions(model: Any, new: Inputs, levels: list[Fraction], shares: list[Fraction]) -> pd.DataFrame:
    X = new.X
    found = pd.DataFrame({"mean": model.predict(X)}, index=X.index)
    if levels:
        intervals = model.predict_interval(X, [*map(float, levels)], y_variance=new.y_variance)
        for i, level in enumerate(levels):
            found[bounds_of(level)] = intervals[:, :, i]
    if shares:
        quantiles = [f"quantile_{percent(share)[:-1]}" for share in shares]
        found[quantiles] = model.predict_quantiles(X, [*map(float, shares)], y_variance=new.y_variance)
    return found


def _limits(
    model: Any, table: Table, exact: pd.DataFrame, found: pd.DataFrame, levels: list[Fraction]
) -> dict[str, list[str]]:
    """Write intervals that reach a limit of detection as laboratories do, "<0.02" or ">500", by column.

    ``exact`` has bounds before rounding, which may round to the limit and not reach it, and ``found`` those written.
    """
    limits = model._tuned.target.limits
    if np.isinf([limits.low, limits.high]).all():
        return {}
    columns = {}
    for level in levels:
        names = bounds_of(level)
        lower, upper = exact[names].to_numpy().T
        below = (lower <= limits.low) & np.isfinite(upper)
        above = (upper >= limits.high) & np.isfinite(lower)
        least = [f">{table.format.written(number(value, 12))}" for value in found[names[0]]]
        most = [f"<{table.format.written(number(value, 12))}" for value in found[names[1]]]
        words = np.select([below & above, below, above], ["", most, least], "")
        columns[f"limit_{percent(level)[:-1]}"] = words.tolist()
    return columns


def _first(labels: Sequence[str]) -> list[str]:
    if len(labels) > MOST_NAMED:
        return [*labels[:MOST_NAMED], "..."]
    return [*labels]


def _exclusions(columns: Columns, table: Table, new: Inputs, beyond: list[str]) -> list[str]:
    """State in sentences to which rows the guarantee does not apply, and why."""
    from conformal_gp.evaluation.held_out import in_options
    from conformal_gp.extrapolation import columns_of

    rows = new.X.index
    excluded: dict[str, Any] = {
        "lie outside the training range: the column that ends in beyond_training names the inputs.": beyond,
    }
    grid = columns.grid
    if grid is not None:
        why = f"lie between the levels of a grid. {grid.condition} {in_options(grid.remedy)}"
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
    kernel = f"Kernel: {model.kernel_}, noise variance {model.noise_variance_:.3g}"
    return [f"Fitted to {model._source.n_rows} rows. {kernel}.", model.guarantee_]


def _verdict(columns: Columns, table: Table, found: pd.DataFrame, levels: list[Fraction]) -> list[str]:
    """If every predicted row has a target: compare the coverage of the intervals with the expected range."""
    from conformal_gp.evaluation import Finding, verdict

    if columns.target not in table.frame:
        return []
    y = columns.targets(table)["y"][found.index]
    if y.isna().any() or not y.size:
        return []
    return verdict([Finding.of(table.name, level, y, found[bounds_of(level)]) for level in levels])
