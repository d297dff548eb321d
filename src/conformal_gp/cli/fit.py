"""``conformal-gp fit``: fit a model and save it to a file."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from conformal_gp.cli import options
from conformal_gp.cli.output import Output
from conformal_gp.cli.training import ModelChoice, Reading, read_training, tuning_of
from conformal_gp.files import check_output
from conformal_gp.model_words import guarantee_in_words, kernel_in_words
from conformal_gp.persistence import save_model


def fit(
    data: options.Data,
    target: options.Target,
    out: Annotated[str, typer.Option("--out", "-o", metavar="MODEL", help="File for the model; - is stdout.")],
    *,
    noise_column: options.NoiseColumn = None,
    choice: ModelChoice,
    reading: Reading,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Fit a model to DATA and save it for predict --model.

    The file contains the training rows, readable by anyone who has it, and no code.
    """
    output = Output(quiet=quiet, as_json=as_json)
    if as_json and out == "-":
        raise ValueError("--json and the model cannot both go to standard output; give --out a file.")
    check_output(out, [data])
    training = read_training(data, target, reading, choice.seed, output, noise_column)
    X, y, columns = training.X, training.y, training.columns
    with output.working(f"fitting to {y.size} rows"), output.warnings_as_notices():
        model = training.fit(choice)
    save_model(model, sys.stdout.buffer if out == "-" else out, columns=columns)
    if as_json:
        output.document(
            {
                "model": out,
                "target": target,
                "training_rows": y.size,
                "inputs": columns.input_names,
                "tuning": tuning_of(model),
                "kernel": str(model.kernel_),
                "guarantee": model.guarantee_,
            }
        )
        return
    words = kernel_in_words(model.kernel_, model.noise_variance_, columns.input_names)
    output.info(f"Fitted to {y.size} rows and {X.shape[1]} inputs, tuning {tuning_of(model)}.\nKernel: {words}.")
    output.info(guarantee_in_words(model.guarantee_))
    if out != "-":
        output.info(f"Saved to {out}.")
