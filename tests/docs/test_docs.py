"""What the README and the documentation show runs, and prints what they say it prints."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import import_graph
import pytest

from shown_coverage import SHOWN

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# The source tree comes first, so that a run from elsewhere tests it; and pictures need no screen.
ENVIRONMENT = os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])}

FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", flags=re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
PEER = "{code-block} python"  # runs where the packages that it imports are installed
NOT_RUN = {"", "text", "console", "{toctree}", "{command-help}", "{include}"}
MOST_PAGES, MOST_WORDS, MOST_WORDS_OF_README = 14, 25_000, 700


class Block(NamedTuple):
    """A fenced block of a page: its language, what it says, what it is said to print."""

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
    """The page's blocks; a block of text right after one of code is its output."""
    text = page.read_text()
    found: list[Block] = []
    end = 0
    for match in FENCE.finditer(text):
        info, body = match["info"].strip(), match["body"]
        if info == "text" and found and not text[end : match.start()].strip():
            found[-1] = found[-1]._replace(output=body)
        else:
            code = re.sub(r"\A(:[^\n]*\n)+\n*", "", body)  # options of a directive
            found.append(Block(info, code, None, text[: match.start()].count("\n") + 1))
        end = match.end()
    return found


def assert_alike(printed: str, said: str) -> None:
    """Equal words, and numbers within 2% or 0.02: other machines round otherwise."""
    printed, said = " ".join(printed.split()), " ".join(said.split())
    assert NUMBER.sub("#", printed).replace(" ", "") == NUMBER.sub("#", said).replace(" ", ""), printed
    numbers, expected = ([float(n) for n in NUMBER.findall(text)] for text in (printed, said))
    assert numbers == pytest.approx(expected, rel=0.02, abs=0.02), printed


def pages_with(*kinds: str) -> list:
    """Pages with blocks of these kinds, as parameters."""
    pages = [page for page in PAGES if any(block.info in kinds for block in blocks(page))]
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages]


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_with("python", PEER))
def test_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)  # pages save pictures and models
    pytest.importorskip("matplotlib", reason="pages draw").use("Agg")
    pytest.importorskip("pandas", reason="pages use frames")
    namespace: dict[str, object] = {}
    for block in blocks(page):
        if block.info == "python" or (block.info == PEER and not block.missing()):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * block.line + block.code, str(page), "exec"), namespace)
            if block.output is not None:
                assert_alike(printed.getvalue(), block.output)


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_with("shell"))
def test_shell_of_a_page_runs(page: Path, tmp_path: Path):
    pytest.importorskip("typer", reason="the command line needs the extra cli")
    command = tmp_path / "bin" / "conformal-gp"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from conformal_gp.cli import main; main()" "$@"\n')
    command.chmod(0o755)
    path = {"PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONIOENCODING": "utf8"}
    for block in blocks(page):
        if block.info == "shell":
            run = ["bash", "-e", "-o", "pipefail", "-c", block.code]
            done = subprocess.run(run, cwd=tmp_path, env=ENVIRONMENT | path, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            if block.output is not None:
                assert_alike(done.stdout, block.output)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_example_runs(example: Path, tmp_path: Path):
    pytest.importorskip("matplotlib", reason="examples draw")
    pytest.importorskip("pandas", reason="examples use frames")
    done = subprocess.run([sys.executable, example], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = SHOWN.get(f"examples/{example.name}")
    if shown is not None:
        shown.check(done.stdout)


@pytest.mark.parametrize("name", [name for name in SHOWN if name.endswith(".md")])
def test_coverages_of_a_page_are_near_their_levels(name: str):
    SHOWN[name].check((ROOT / name).read_text())


def test_every_kind_of_block_is_known():
    for page in PAGES:
        kinds = {block.info if block.info == PEER else block.info.partition(" ")[0] for block in blocks(page)}
        assert kinds <= {"python", PEER, "shell", *NOT_RUN}, page


def test_pages_are_few_and_short():
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*.rst")]
    assert len(pages) <= MOST_PAGES
    assert sum(len(page.read_text().split()) for page in pages) <= MOST_WORDS
    assert len((ROOT / "README.md").read_text().split("<!-- links -->")[0].split()) <= MOST_WORDS_OF_README


def test_every_public_name_is_in_the_reference():
    reference = (ROOT / "docs" / "api.rst").read_text()
    listed = set(re.findall(r"^   ([\w.]+)$", reference, flags=re.MULTILINE))
    for module in {"", *(name.rpartition(".")[0] for name in listed)}:
        statements = ast.parse(import_graph.modules()[f"conformal_gp.{module}".rstrip(".")].read_text()).body
        (names,) = (s.value for s in statements if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == "__all__")
        public = {f"{module}.{name}".lstrip(".") for name in ast.literal_eval(names)}
        assert public - listed <= {"NeuralNetwork", "gp.kernels.KERNEL_NAMES"}


def test_the_readme_gives_what_it_says():
    (block,) = (block for block in blocks(ROOT / "README.md") if block.info == "python")
    namespace: dict = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(block.code, namespace)
    assert block.output is not None
    assert_alike(printed.getvalue(), block.output)
    assert namespace["model"].guarantee_.startswith("Valid")
