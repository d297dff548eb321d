"""``conformal-gp demo``: two tables, and commands to try on them."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from conformal_gp.datasets import load_auto_mpg
from conformal_gp.files import write_bytes

NEW_CARS = 40  # rows that are to be predicted


def demo(options: Namespace) -> None:
    """Write the tables."""
    frame = load_auto_mpg(as_frame=True).frame.sample(frac=1.0, random_state=0)
    there = Path(options.folder)
    there.mkdir(parents=True, exist_ok=True)
    cars = there / "cars.csv"
    new = there / "new-cars.csv"
    for path, rows in ((cars, frame[NEW_CARS:]), (new, frame[:NEW_CARS].drop(columns="mpg"))):
        content = rows.to_csv(index=False).encode()
        if path.exists() and path.read_bytes() != content:
            raise ValueError(f"{path} is there already, with other content; choose another --folder.")
        write_bytes(path, content)
    print(
        f"Try next:\n  conformal-gp predict {cars} {new} --target mpg -o {there / 'predicted.csv'}\n"
        f"  conformal-gp plot {cars} {new} --target mpg -o {there / 'intervals.png'}\n"
        f"  conformal-gp evaluate {cars} --target mpg\n"
        f"  conformal-gp report {cars} --target mpg -o {there / 'report.html'}"
    )
