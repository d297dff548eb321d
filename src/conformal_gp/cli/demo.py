"""``conformal-gp demo``: an evaluation on bundled data, and commands to try next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from conformal_gp.cli import options
from conformal_gp.cli.evaluate import run_evaluation
from conformal_gp.cli.levels import parse_levels
from conformal_gp.cli.output import Output
from conformal_gp.cli.training import ModelChoice, Reading, read_training
from conformal_gp.files import write_bytes

_NEW_CARS = 40


def demo(
    folder: Annotated[Path, typer.Option(metavar="DIR", file_okay=False, help="Where the example's files go.")] = Path(
        "conformal-gp-demo"
    ),
    folds: options.Folds = 5,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Evaluate error bars on bundled data: the fuel consumption of 392 cars.

    Writes cars.csv, new-cars.csv and a picture to a folder, for use with the other commands.
    """
    output = Output(quiet=quiet, as_json=as_json)
    cars, new_cars = _write_cars(folder)
    output.info(f"Fuel consumption of cars (Auto MPG): {cars}, and {_NEW_CARS} more without it: {new_cars}")
    choice = ModelChoice()
    training = read_training(str(cars), "mpg", Reading(), choice.seed, output)
    run_evaluation(training, choice, parse_levels(["90%", "95%", "99%"]), folds, folder / "evaluation.png", output)
    output.info(
        "\nTry next:\n"
        f"  conformal-gp predict {cars} {new_cars} --target mpg -o {folder / 'predicted.csv'}\n"
        f"  conformal-gp report {cars} --target mpg -o {folder / 'report.html'}\n"
        "  conformal-gp --help"
    )


def _write_cars(folder: Path) -> tuple[Path, Path]:
    """The bundled cars as two tables: with fuel consumption, and without."""
    from conformal_gp.datasets import load_auto_mpg

    frame = load_auto_mpg(as_frame=True, raw=True).frame
    new = np.zeros(len(frame), dtype=bool)
    new[np.random.RandomState(0).permutation(len(frame))[:_NEW_CARS]] = True
    folder.mkdir(parents=True, exist_ok=True)
    cars, new_cars = folder / "cars.csv", folder / "new-cars.csv"
    _write(cars, frame[~new].to_csv(index=False).encode())
    _write(new_cars, frame[new].drop(columns="mpg").to_csv(index=False).encode())
    return cars, new_cars


def _write(path: Path, content: bytes) -> None:
    """Write a file of the example, unless something else is there."""
    if path.exists() and path.read_bytes() != content:
        raise ValueError(f"{path} is there already, with other content; choose another --folder.")
    write_bytes(path, content)
