"""What the code on a page prints: run it, compare it with the output that the page shows, or bring that up to date.

``python docs/_ext/printed.py docs/start.md docs/cli.md`` runs these pages and writes what they print now; without
arguments it runs every page. ``printed_with.json`` beside this file records the versions that printed it: with the same
versions ``tests/docs/test_docs.py`` compares every printed figure exactly.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PRINTED_WITH = Path(__file__).with_name("printed_with.json")
# The source tree comes first, so that a run from elsewhere uses it; and pictures need no screen.
ENVIRONMENT = os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])}
FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", flags=re.DOTALL | re.MULTILINE)
PEER = "{code-block} python"  # runs where the packages that it imports are installed


class Block(NamedTuple):
    """A fenced block of a page: its language, its code, the output that the page shows, and its line."""

    info: str
    code: str
    output: str | None
    line: int

    def missing(self) -> set[str]:
        """Packages that the block imports and that are not installed."""
        nodes = list(ast.walk(ast.parse(self.code)))
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
        return {top for top in {name.partition(".")[0] for name in names} if find_spec(top) is None}


def blocks(page: Path) -> list[Block]:
    """Blocks of a page; a block of text right after one of code is its output."""
    text = page.read_text()
    found: list[Block] = []
    end = 0
    for match in FENCE.finditer(text):
        info = match["info"].strip()
        body = match["body"]
        if info == "text" and found and not text[end : match.start()].strip():
            found[-1] = found[-1]._replace(output=body)
        else:
            code = re.sub(r"\A(:[^\n]*\n)+\n*", "", body)  # options of a directive
            found.append(Block(info, code, None, text[: match.start()].count("\n") + 1))
        end = match.end()
    return found


def python_outputs(page: Path) -> Iterator[tuple[Block, str]]:
    """Run the Python of a page in this folder, and yield each block with what it prints."""
    namespace: dict[str, object] = {}
    for block in blocks(page):
        if block.info == "python" or (block.info == PEER and not block.missing()):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * block.line + block.code, str(page), "exec"), namespace)
            yield block, printed.getvalue()


def shell_outputs(page: Path, folder: Path) -> Iterator[tuple[Block, str]]:
    """Run the commands of a page in a folder, and yield each block with what it prints."""
    command = folder / "bin" / "conformal-gp"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from conformal_gp.cli import main; main()" "$@"\n')
    command.chmod(0o755)
    path = {"PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONIOENCODING": "utf8", "COLUMNS": "100"}
    for block in blocks(page):
        if block.info == "shell":
            run = ["bash", "-e", "-o", "pipefail", "-c", block.code]
            done = subprocess.run(run, cwd=folder, env=ENVIRONMENT | path, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"{page}, line {block.line}: {done.stderr}")
            yield block, done.stdout


def versions() -> dict[str, str]:
    """Versions that figures depend on."""
    found = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "pandas")}
    return found | {"python": ".".join(platform.python_version_tuple()[:2]), "machine": platform.machine()}


def are_those_recorded() -> bool:
    """Return whether these versions printed what the pages show."""
    return PRINTED_WITH.exists() and json.loads(PRINTED_WITH.read_text()) == versions()


def update(page: Path) -> None:
    """Write what a page prints now into it."""
    os.environ["MPLBACKEND"] = "Agg"
    text = page.read_text()
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        for block, printed in [*python_outputs(page), *shell_outputs(page, Path(name))]:
            if block.output is not None:
                lines = "".join(f"{line.rstrip()}\n" for line in printed.rstrip().splitlines())
                text = text.replace(f"```\n\n```text\n{block.output}```", f"```\n\n```text\n{lines}```", 1)
    page.write_text(text)


def main() -> None:
    """Update the pages that are named, or all."""
    for page in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
        update(page)
    PRINTED_WITH.write_text(json.dumps(versions(), indent=1) + "\n")


if __name__ == "__main__":
    main()
