"""What a benchmark hands back: rows of a table, each with its target; and the page of all tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.timing import Timing

HEADINGS = ("what", "ours", "peer", "ratio", "target", "reached")


@dataclass(frozen=True)
class Row:
    """One comparison."""

    what: str
    ours: str
    peer: str = "-"
    ratio: str = "-"
    target: str = "-"
    reached: bool | None = None

    def cells(self) -> tuple[str, ...]:
        """Text of each column."""
        reached = {None: "-", True: "yes", False: "**no**"}[self.reached]
        return self.what, self.ours, self.peer, self.ratio, self.target, reached


@dataclass
class Section:
    """The rows of one benchmark, with remarks."""

    title: str
    method: str
    rows: list[Row] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def add(self, *rows: Row) -> None:
        """Append rows, and print them as they come."""
        for row in rows:
            print("  " + " | ".join(row.cells()), flush=True)
        self.rows += rows

    def remark(self, text: str) -> None:
        """Append a remark, and print it, once."""
        if text not in self.remarks:
            print(f"  {text}", flush=True)
            self.remarks.append(text)


def cost(what: str, ours: Timing, name: str, peer: Timing, at_most: float | None = None) -> Row:
    """Our time as a multiple of a peer's."""
    ratio = ours.median / peer.median
    return Row(
        what,
        str(ours),
        f"{name}: {peer}",
        f"ours/peer {ratio:.2f}",
        "-" if at_most is None else f"at most {at_most:g}",
        None if at_most is None else ratio <= at_most,
    )


def speed_up(what: str, ours: Timing, name: str, peer: Timing, at_least: float | None = None) -> Row:
    """How many times faster than a peer."""
    ratio = peer.median / ours.median
    return Row(
        what,
        str(ours),
        f"{name}: {peer}",
        f"peer/ours {ratio:.2f}" if ratio < 100 else f"peer/ours {ratio:.0f}",
        "-" if at_least is None else f"at least {at_least:g}",
        None if at_least is None else ratio >= at_least,
    )


def tally(sections: Iterable[Section]) -> str:
    """How many targets were reached."""
    verdicts = [row.reached for section in sections for row in section.rows if row.reached is not None]
    return f"{sum(verdicts)} of {len(verdicts)} targets reached"


def table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (headings, ["---"] * len(headings), *lines))


def write(out: Path, sections: Sequence[Section], machine: Sequence[str], command: str, full: bool) -> Path:
    """Write ``speed.md`` into the folder ``out``."""
    parts = [
        "# Speed",
        f"Made by `{command}`. Times are medians over turns that alternate between ours and the peer, with "
        "the least and the greatest in brackets; l is the number of training rows, which have eight inputs.",
    ]
    if not full:
        parts.append("**A short or partial run: not for comparison.**")
    parts += ["\n".join(f"- {line}" for line in machine), f"{tally(sections)}."]
    for section in sections:
        parts += [f"## {section.title}", section.method]
        parts += [table(HEADINGS, [row.cells() for row in section.rows])] if section.rows else []
        parts += section.remarks
    out.mkdir(parents=True, exist_ok=True)
    path = out / "speed.md"
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path
