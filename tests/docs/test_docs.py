"""What the README and the documentation show runs, and prints what they say it prints."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import import_graph
import pytest

from shown_coverage import SHOWN

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if not {"gallery", "api"} & set(p.relative_to(ROOT).parts)),
]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
# The source tree comes first, so that a run from elsewhere tests it; and pictures need no screen.
ENVIRONMENT = os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])}

FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", flags=re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
PEER = "{code-block} python"  # runs where the packages that it imports are installed
NOT_RUN = {"", "text", "console", "{toctree}", "{command-help}"}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, what it says, what it is said to print."""

    info: str
    code: str
    output: str | None
    line: int

    def missing(self) -> list[str]:
        """Packages that the block imports and that are not installed."""
        nodes = list(ast.walk(ast.parse(self.code)))
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
        return sorted(top for top in {name.partition(".")[0] for name in names} if find_spec(top) is None)


def blocks(page: Path) -> list[Block]:
    """The page's blocks; a block of text right after one of code is its output."""
    text = page.read_text()
    found: list[Block] = []
    end = 0
    for match in FENCE.finditer(text):
        info, body = match["info"].strip(), match["body"]
        if info == "text" and found and not text[end : match.start()].strip():
            found[-1] = Block(found[-1].info, found[-1].code, body, found[-1].line)
        else:
            code = re.sub(r"\A(:[^\n]*\n)+\n*", "", body)  # options of a directive
            found.append(Block(info, code, None, text[: match.start()].count("\n") + 1))
        end = match.end()
    return found


def assert_alike(printed: str, said: str) -> None:
    """Equal words, and numbers within 2% or 0.02: other machines round otherwise."""
    printed, said = " ".join(printed.split()), " ".join(said.split())
    numbers, expected = NUMBER.findall(printed), NUMBER.findall(said)
    assert NUMBER.sub("#", printed).replace(" ", "") == NUMBER.sub("#", said).replace(" ", ""), printed
    assert [float(n) for n in numbers] == pytest.approx([float(n) for n in expected], rel=0.02, abs=0.02), printed


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
    left_out = set()
    for block in blocks(page):
        if block.info not in {"python", PEER}:
            continue
        if block.info == PEER and (block.missing() or left_out):  # later blocks of a peer rest on earlier ones
            left_out.update(block.missing())
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * block.line + block.code, str(page), "exec"), namespace)
        if block.output is not None:
            assert_alike(printed.getvalue(), block.output)
    if left_out:
        pytest.skip(f"all but the blocks that need {', '.join(sorted(left_out))} ran")


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_with("shell"))
def test_shell_of_a_page_runs(page: Path, tmp_path: Path):
    pytest.importorskip("typer", reason="the command line needs the extra cli")
    command = tmp_path / "bin" / "conformal-gp"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from conformal_gp.cli import main; main()" "$@"\n')
    command.chmod(0o755)
    environment = ENVIRONMENT | {
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONIOENCODING": "utf8",
    }
    for block in blocks(page):
        if block.info == "shell":
            run = ["bash", "-e", "-o", "pipefail", "-c", block.code]
            done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            if block.output is not None:
                assert_alike(done.stdout, block.output)


def test_every_kind_of_block_is_known():
    for page in PAGES:
        kinds = {block.info if block.info == PEER else block.info.partition(" ")[0] for block in blocks(page)}
        assert kinds <= {"python", PEER, "shell", *NOT_RUN}, page


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_example_runs(example: Path, tmp_path: Path):
    pytest.importorskip("matplotlib", reason="examples draw")
    pytest.importorskip("pandas", reason="examples use frames")
    run = [sys.executable, str(example)]
    done = subprocess.run(run, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = SHOWN.get(f"examples/{example.name}")
    if shown is not None:
        shown.check(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("matplotlib", reason="notebooks draw").use("Agg")
    pytest.importorskip("pandas", reason="notebooks use frames")
    namespace: dict[str, object] = {}
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec("".join(cell["source"]), namespace)
        said = "".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")
        assert_alike(printed.getvalue(), said)


def said_public(module: str) -> list[str]:
    """``__all__`` of a module, read from its source: importing it may take an extra."""
    statements = ast.parse(import_graph.modules()[module].read_text()).body
    (names,) = (s.value for s in statements if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == "__all__")
    return ast.literal_eval(names)


def test_every_public_name_is_in_the_reference():
    reference = (ROOT / "docs" / "api.rst").read_text()
    listed = set(re.findall(r"^   ([\w.]+)$", reference, flags=re.MULTILINE))
    listed |= set(re.findall(r"^\.\. autodata:: conformal_gp\.([\w.]+)$", reference, flags=re.MULTILINE))
    page = (ROOT / "docs" / "stability.md").read_text()
    modules = [
        name.removeprefix("conformal_gp").lstrip(".") for name in re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE)
    ]
    assert {name.rpartition(".")[0] for name in listed} <= set(modules)
    for module in modules:
        public = said_public(f"conformal_gp.{module}".rstrip("."))
        missing = (
            {f"{module}.{name}".lstrip(".") for name in public} - listed - {"NeuralNetwork", "kernels.KERNEL_NAMES"}
        )
        assert not missing


def test_the_readme_says_what_it_gives():
    (block,) = (block for block in blocks(ROOT / "README.md") if block.info == "python")
    namespace: dict = {}
    exec(block.code, namespace)
    assert namespace["intervals"].shape == (92, 2)
    assert namespace["model"].guarantee_.startswith("Exact")
