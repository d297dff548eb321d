"""``conformal-gp demo``: tables to try the other commands on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_NEW_CARS = 40


def demo(
    folder: Annotated[Path, typer.Option(metavar="DIR", file_okay=False, help="Where the tables go.")] = Path(
        "conformal-gp-demo"
    ),
) -> None:
    """Write two tables, the fuel consumption of 392 cars, and print commands to try on them."""
    from conformal_gp.datasets import load_auto_mpg
    from conformal_gp.files import write_bytes

    frame = load_auto_mpg(as_frame=True, raw=True).frame.sample(frac=1.0, random_state=0)
    new, cars = frame[:_NEW_CARS].drop(columns="mpg"), frame[_NEW_CARS:]
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in (("cars.csv", cars), ("new-cars.csv", new)):
        path, content = folder / name, table.to_csv(index=False).encode()
        if path.exists() and path.read_bytes() != content:
            raise ValueError(f"{path} is there already, with other content; choose another --folder.")
        write_bytes(path, content)
    tables = f"{folder / 'cars.csv'} {folder / 'new-cars.csv'} --target mpg"
    typer.echo(
        f"Try next:\n  conformal-gp predict {tables} -o {folder / 'predicted.csv'}\n"
        f"  conformal-gp plot {tables} -o {folder / 'intervals.png'}\n"
        f"  conformal-gp evaluate {folder / 'cars.csv'} --target mpg\n"
        f"  conformal-gp report {folder / 'cars.csv'} --target mpg -o {folder / 'report.html'}"
    )
