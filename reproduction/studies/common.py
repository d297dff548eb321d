"""What the studies share: options of their commands, CSV and Markdown tables, and figures."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RESULTS = Path("reproduction/results/studies")


def options(name: str, text: str, **counts: tuple[int, str]) -> argparse.ArgumentParser:
    """Options of ``python -m reproduction.studies.NAME``: counts with defaults and help, jobs, raw results, folder."""
    parser = argparse.ArgumentParser(prog=f"python -m reproduction.studies.{name}", description=text.splitlines()[0])
    for count, (default, words) in counts.items():
        parser.add_argument(f"--{count.replace('_', '-')}", type=int, default=default, help=words)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    raw = Path("build") / f"{name}.jsonl"
    parser.add_argument("--raw", type=Path, default=raw, help="finished tasks, to resume from")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for tables and figures")
    return parser


def markdown(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Lines of a table.

    >>> markdown(["rows", "width"], [[19, "1.5"]])
    ['| rows | width |', '|---|---|', '| 19 | 1.5 |']
    """
    lines = [heads, *rows]
    texts = ["| " + " | ".join(map(str, line)) + " |" for line in lines]
    return [texts[0], "|" + "---|" * len(heads), *texts[1:]]


def write_csv(path: Path, rows: list[dict]) -> None:
    """Rows with five digits; columns are those of the row that has most."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(max(rows, key=len)), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)


def write_page(path: Path, lines: Iterable[str]) -> None:
    """A page of Markdown."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"Written: {path}")


@contextmanager
def figure(path: Path, rows: int, columns: int, size: tuple[float, float]) -> Iterator[Any]:
    """Axes, (rows, columns), of a figure that is saved at the end; the same results give the same file."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": path.stem}):
        drawn = Figure(figsize=size, layout="constrained")
        axes = drawn.subplots(rows, columns, squeeze=False, sharey="row")
        for panel in axes.flat:
            panel.spines[["top", "right"]].set_visible(False)
        yield axes
        drawn.savefig(path, metadata={"Date": None})
