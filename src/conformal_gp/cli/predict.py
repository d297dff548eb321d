"""``conformal-gp predict``: means, intervals, quantiles and bounds for a table of new rows."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated

import typer

from conformal_gp.cli import options
from conformal_gp.cli.asked import Asked
from conformal_gp.cli.folder import fit_to_folder, is_folder
from conformal_gp.cli.output import Output
from conformal_gp.cli.prediction import Prediction, read_new
from conformal_gp.cli.training import LabelRange, Model, ModelChoice, Reading, read_training
from conformal_gp.files import check_output
from conformal_gp.persistence import load_columns
from conformal_gp.tables import Columns, TableError, write_table
from conformal_gp.tables.kinds import kind_of

# Options that say how a model is fitted, and nothing to one that is.
_OF_FIT = (
    *("kernel", "mean", "tuning", "gamma", "log", "warp", "noise", "seed", "jobs"),
    *("categories", "dates", "drop", "sample"),
)


def predict(
    ctx: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[TRAIN] NEW",
            help="Tables (CSV, TSV, Parquet, Excel; - is stdin; TRAIN may be a folder of such). TRAIN, or --model.",
        ),
    ],
    target: Annotated[str | None, typer.Option("--target", "-t", metavar="COL", help="Column with the labels.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", metavar="FILE", help="A model that fit saved.")] = None,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="OUT", help="Where NEW goes with its predictions; - is stdout.")
    ] = "-",
    prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What new columns begin with.  [default: COL_]")
    ] = None,
    regions: Annotated[
        bool,
        typer.Option(
            "--regions", help="Add the exact regions too: several pieces where labels in between are ruled out."
        ),
    ] = False,
    *,
    noise_column: options.NoiseColumn = None,
    asked: Asked,
    possible: LabelRange,
    choice: ModelChoice,
    reading: Reading,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Predict NEW from TRAIN: its rows, with mean and interval ends for each level, quantiles or bounds.

    Columns are matched by name. Columns of text are categories. New columns are COL_mean, COL_lower_95, COL_upper_95
    and so on; COL_quantile_5, COL_upper_bound_95, COL_lower_bound_95 if asked for; an end at infinity is written inf.
    COL_beyond_training names the inputs of a row that lie far outside the training rows: the guarantee does not reach
    such rows.
    """
    output = Output(quiet=quiet, as_json=as_json)
    wanted, ends = asked.read(), possible.ends
    if regions and wanted.tails != "joint":
        raise TableError("--regions gives the regions of --tails joint; equal tails have intervals only.")
    if [*files, model].count("-") > 1:
        raise TableError("only one file can be read from standard input (-).")
    check_output(out, files if model is None else [*files, model])
    kind_of(out)
    if model is not None:
        if len(files) != 1:
            raise TableError(f"with --model, give one table (NEW), not {len(files)}.")
        _refuse_options_of_fit(ctx)
        fitted, columns = _load(model, target)
        possible.check_fitted(fitted, columns)
        if reading.missing != "error":
            columns = replace(columns, missing=reading.missing)
        columns = replace(columns, missing_marks=(*columns.missing_marks, *reading.na))
        columns = replace(columns, noise=noise_column or columns.noise)
        new = read_new(files[-1], columns, reading, output)
    else:
        if len(files) != 2 or target is None:
            raise TableError("give two tables, TRAIN and NEW, and --target COL; or one table and --model FILE.")
        if is_folder(files[0]):
            with output.working(f"fitting to the rows of {files[0]}"), output.warnings_as_notices():
                fitted, columns = fit_to_folder(files[0], target, reading, choice, output, noise_column)
                possible.check_fitted(fitted, columns)
            new = read_new(files[-1], columns, reading, output)
        else:
            training = read_training(files[0], target, reading, choice.seed, output, noise_column)
            possible.check(training)
            columns = training.columns
            new = read_new(files[-1], columns, reading, output)  # before the fit, which may take long
            with output.working(f"fitting to {training.y.size} rows"), output.warnings_as_notices():
                fitted = training.fit(choice)
    with output.working(f"predicting {new.rows.size} rows"):
        prediction = Prediction(fitted, columns, new, wanted, output, ends)
    if out != "-" or not as_json:
        write_table(new.table, prediction.added(f"{columns.target}_" if prefix is None else prefix, regions), out)
        output.info(prediction.summary())
    if as_json:  # last: a result, or an error, but not both
        output.document(prediction.document())


def _refuse_options_of_fit(ctx: typer.Context) -> None:
    """Options that would be without effect are an error, and not ignored."""
    given = [name for name in _OF_FIT if getattr(ctx.get_parameter_source(name), "name", "") == "COMMANDLINE"]
    if given:
        raise TableError(f"--{given[0]} says how to fit, and with --model that is done; give it to conformal-gp fit.")


def _load(path: str, target: str | None) -> tuple[Model, Columns]:
    """A saved model and its columns. A model saved from Python can be used only if its inputs have names."""
    fitted, columns = load_columns(sys.stdin.buffer if path == "-" else path)
    if columns is None:
        names = getattr(fitted, "feature_names_in_", None)
        if fitted._encoding is not None:
            raise TableError(f"{path} was fitted in Python to a frame with categories; predict with it in Python.")
        if names is None:
            raise TableError(f"{path} was fitted to inputs without names, so columns cannot be matched to them.")
        columns = Columns.of_numbers(path, target or "y", [str(name) for name in names])
    if target is not None and target != columns.target:
        raise TableError(f"{path} predicts '{columns.target}', not '{target}'.")
    return fitted, columns
