"""``conformal-gp fit`` and ``conformal-gp predict``: a model from a table, and predictions for a table of new rows."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from conformal_gp.cli import options
from conformal_gp.cli.levels import more_rows, parse_levels, written
from conformal_gp.cli.options import Model, Reading
from conformal_gp.cli.output import Output
from conformal_gp.cli.training import read_new, read_training

if TYPE_CHECKING:
    import pandas as pd

    from conformal_gp.arrays import Array
    from conformal_gp.cli.tables import Table

_OF_FIT = {*(option.name for option in fields(Model)), "dates", "drop", "noise_column", "groups"}
_ROWS_NAMED = 5


def fit(
    data: options.Data,
    target: options.Target,
    out: Annotated[str, typer.Option("--out", "-o", metavar="MODEL", help="File for the model; - is stdout.")],
    *,
    choice: Model,
    reading: Reading,
    quiet: options.Quiet = False,
) -> None:
    """Fit a model to DATA and save it: `conformal-gp fit cars.csv --target mpg -o cars.model`.

    The file is for predict --model. It contains the training rows, readable by anyone who has it, and no code.
    """
    from conformal_gp.files import check_output

    output = Output(quiet=quiet)
    check_output(out, [data])
    model = read_training(data, target, reading, output).fit(choice, output)
    from conformal_gp.saving import dumps, save

    if out == "-":
        sys.stdout.buffer.write(dumps(model))
    else:
        save(model, out)
    output.info(*_summary(model), f"Saved to {out}.")


def predict(
    ctx: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(metavar="[TRAIN] NEW", help="Tables (CSV, TSV, Parquet, Excel; - is stdin). TRAIN, or --model."),
    ],
    target: Annotated[str | None, typer.Option("--target", "-t", metavar="COL", help="Column with the labels.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", metavar="FILE", help="A model that fit saved.")] = None,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="OUT", help="Where NEW goes with its predictions; - is stdout.")
    ] = "-",
    prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What new columns begin with.  [default: COL_]")
    ] = None,
    digits: Annotated[int, typer.Option(min=1, max=17, metavar="N", help="Significant digits of new numbers.")] = 6,
    confidence: options.Confidence = [],  # noqa: B006 (typer copies it)
    any_level: options.AnyLevel = False,
    tails: options.Tails = "joint",
    quantiles: options.Quantiles = [],  # noqa: B006
    explain: Annotated[bool, typer.Option("--explain", help="Say why each interval is as wide as it is.")] = False,
    unseen: Annotated[
        Literal["error", "blank"], typer.Option(help="New categories: an error, or leave predictions empty.")
    ] = "error",
    *,
    choice: Model,
    reading: Reading,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Predict NEW from TRAIN: `conformal-gp predict cars.csv new-cars.csv --target mpg -o predicted.csv`.

    Columns are matched by name. Columns of text are categories. New columns are COL_mean, COL_lower_95, COL_upper_95
    and so on, COL_quantile_5 if asked for; an end at infinity is written inf. COL_beyond_training names the inputs of
    a row that lie far outside the training rows: the guarantee does not reach such rows. With --explain, COL_why says
    for the highest level what makes the interval wide, and which rows of TRAIN decide it.
    """
    from conformal_gp.cli.tables import kind_of, write_table
    from conformal_gp.files import check_output

    output = Output(quiet=quiet)
    levels = parse_levels(confidence, any_level=any_level)
    shares = parse_levels(quantiles, "--quantiles", any_level=True)
    if [*files, model].count("-") > 1:
        raise ValueError("only one file can be read from standard input (-).")
    if len(files) != (2 if model is None else 1) or (model is None and target is None):
        raise ValueError("give two tables, TRAIN and NEW, and --target COL; or one table and --model FILE.")
    if explain and (tails != "joint" or (quantiles and not confidence)):
        raise ValueError("--explain is of intervals with --tails joint; with --quantiles give --confidence too.")
    check_output(out, files if model is None else [*files, model])
    kind_of(out)
    if model is not None:
        fitted, numbers = _load(ctx, model, target), None
        columns = fitted._columns
        missing = columns.missing if reading.missing == "error" else reading.missing
        columns = replace(columns, missing=missing, marks=(*columns.marks, *reading.na))
        table, X, noise = read_new(files[-1], columns, reading, output, unseen)
    else:
        training = read_training(files[0], str(target), reading, output)
        columns = training.columns
        table, X, noise = read_new(files[-1], columns, reading, output, unseen)  # before the fit, which may take long
        fitted, numbers = training.fit(choice, output), training.X.index
    if not (levels or shares):
        from conformal_gp.evaluation import supported_levels

        levels = supported_levels(fitted._most_calibration)
        output.notice(more_rows(levels, getattr(fitted, "tuning_", "holdout") == "holdout"))
    with output.working(f"predicting {len(X)} rows"):
        found = _predictions(fitted, X, noise, levels, shares, tails)
        if explain:
            found["why"] = _why(fitted, X, noise, levels[-1], numbers)
    found["beyond_training"] = _beyond(fitted, X, table, output)
    if out != "-" or not as_json:
        added = found.reindex(table.frame.index).fillna({"beyond_training": "", "why": ""})
        write_table(table, added.add_prefix(f"{columns.target}_" if prefix is None else prefix), out, digits)
        output.info(f"{len(X)} rows predicted.", *_summary(fitted), *_inside(columns, table, found, levels))
    if as_json:  # last: a result, or an error, but not both
        from conformal_gp.frames import input_names

        facts = {"target": columns.target, "levels": [*map(float, levels)], "training_rows": fitted._source.n_rows}
        facts |= {"calibration_rows": fitted.n_calibration_, "inputs": input_names(fitted)}
        rows = found.reset_index(names="row").assign(row=found.index + 1).to_dict("records")
        output.document(facts | {"kernel": str(fitted.kernel_), "guarantee": fitted.guarantee_, "rows": rows})


def _load(ctx: typer.Context, path: str, target: str | None) -> Any:
    """A saved model with its columns; options that say how to fit would be without effect, and are refused."""
    given = [name for name in _OF_FIT if getattr(ctx.get_parameter_source(name), "name", "") == "COMMANDLINE"]
    if given:
        option = given[0].replace("_", "-")
        raise ValueError(f"--{option} says how to fit, and with --model that is done; give it to conformal-gp fit.")
    from conformal_gp.saving import loads

    fitted = loads(sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes(), path)
    if not hasattr(fitted, "_columns"):
        raise ValueError(f"{path} was not made by conformal-gp fit, but in Python; predict with it in Python.")
    if target not in (None, fitted._columns.target):
        raise ValueError(f"{path} predicts '{fitted._columns.target}', not '{target}'.")
    return fitted


def _predictions(
    model: Any, X: Any, noise: Array | None, levels: list[Fraction], shares: list[Fraction], tails: str
) -> pd.DataFrame:
    """Means, interval ends and quantiles of rows, numbered as in their table."""
    import pandas as pd

    known = {} if noise is None else {"y_variance": noise}
    found = pd.DataFrame({"mean": model.predict(X)}, index=X.index)
    if levels:
        intervals = model.predict_interval(X, [*map(float, levels)], tails=tails, **known)
        for i, level in enumerate(levels):
            found[[f"lower_{written(level)}", f"upper_{written(level)}"]] = intervals[:, :, i]
    if shares:
        names = [f"quantile_{written(share)}" for share in shares]
        found[names] = model.predict_quantiles(X, [*map(float, shares)], **known)
    return found


def _why(model: Any, X: Any, noise: Array | None, level: Fraction, numbers: Any) -> list[str]:
    """A sentence on each interval; training rows are called by their numbers in their table, if these are known."""
    known = {} if noise is None else {"y_variance": noise}
    numbers = range(model._source.n_rows) if numbers is None else numbers
    return model.explain_interval(X, float(level), **known).sentences([number + 1 for number in numbers])


def _beyond(model: Any, X: Any, table: Table, output: Output) -> list[str]:
    """For each row the inputs that lie far outside the training rows."""
    from conformal_gp.frames import input_names

    names = input_names(model)
    beyond = ["; ".join(names[outside]) for outside in model.beyond_training(X)]
    far = [str(row + 1) for row, inputs in zip(X.index, beyond, strict=True) if inputs]
    if far:
        named = ", ".join(far[:_ROWS_NAMED]) + (", ..." if len(far) > _ROWS_NAMED else "")
        output.notice(
            f"rows of {table.name} far outside the training rows: {len(far)} of {len(X)} ({named}); the guarantee does "
            "not reach them, and the column that ends in beyond_training names the inputs"
        )
    return beyond


def _summary(model: Any) -> list[str]:
    """What a fitted model is and promises, for people."""
    from conformal_gp.evaluation.kernel_words import kernel_in_words
    from conformal_gp.frames import input_names

    words = kernel_in_words(model.kernel_, model.noise_variance_, [*input_names(model)], model.scale_inputs)
    return [f"Fitted to {model._source.n_rows} rows. Kernel: {words}.", model.guarantee_]


def _inside(columns: Any, table: Table, found: pd.DataFrame, levels: list[Fraction]) -> list[str]:
    """If every predicted row has a label: the shares outside intervals, beside what chance allows."""
    import numpy as np

    from conformal_gp.evaluation import Finding, verdict

    if columns.target not in table.frame:
        return []
    labels = replace(columns, missing="drop").labels(table)[found.index]
    if np.isnan(labels).any() or not labels.size:
        return []
    ends = {level: found[[f"lower_{written(level)}", f"upper_{written(level)}"]] for level in levels}
    return verdict([Finding.of(table.name, level, labels, each) for level, each in ends.items()])
