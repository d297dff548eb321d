"""The results as a page of documentation."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from benchmarks import drawing
from benchmarks.results import Section, tally

HEADINGS = ("what", "ours", "peer", "ratio", "target", "reached")


def write(out: Path, sections: Sequence[Section], machine: Sequence[str], command: str, full: bool) -> Path:
    """Write ``benchmarks.md`` and its figures into the folder ``out``."""
    parts = [
        "# Benchmarks",
        f"Made by `{command}`. Times are medians over turns that alternate between ours and the peer, with "
        "the least and the greatest in brackets; l is the number of training rows, which have eight inputs.",
    ]
    if not full:
        parts.append("**A short or partial run: not for comparison.**")
    parts += ["\n".join(f"- {line}" for line in machine), f"{tally(sections)}."]
    for section in sections:
        parts += [f"## {section.title}", section.method]
        if section.rows:
            parts.append(table(section))
        parts += section.remarks
        if section.curves:
            parts.append(pictures(section, out))
    out.mkdir(parents=True, exist_ok=True)
    path = out / "benchmarks.md"
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def table(section: Section) -> str:
    """Markdown table of a section's rows."""
    lines = [HEADINGS, ("---",) * len(HEADINGS), *(row.cells() for row in section.rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def pictures(section: Section, out: Path) -> str:
    """Draw a section's curves; Markdown that shows them."""
    if find_spec("matplotlib") is None:
        return "matplotlib is not installed, so nothing was drawn: `pip install conformal-gp[bench]`."
    paths = [drawing.save(curve, out / "figures") for curve in section.curves]
    return "\n".join(
        f"![{curve.title}: seconds against {curve.axis}]({path.relative_to(out).as_posix()})"
        for curve, path in zip(section.curves, paths, strict=True)
    )
