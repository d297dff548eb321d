"""What the README and the documentation show runs, and prints what they say it prints."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import figures
import import_graph
import pytest
from printed import ENVIRONMENT, PAGES, PEER, ROOT, are_those_recorded, blocks, python_outputs, shell_outputs

from conformal_gp.models.draws import MONTE_CARLO_ERROR
from shown_coverage import SHOWN

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
NOT_RUN = {"", "text", "console", "{toctree}", "{command-help}", "{include}", "{image}", "{raw}", "{glossary}"}
MOST_LINES_BEFORE_USE = 45


def assert_alike(printed: str, said: str) -> None:
    """Equal words and figures; figures of other versions than those recorded within 2% or 0.02."""
    printed = " ".join(printed.split())
    said = " ".join(said.split())
    assert NUMBER.sub("#", printed).replace(" ", "") == NUMBER.sub("#", said).replace(" ", ""), printed
    numbers = NUMBER.findall(printed)
    expected = NUMBER.findall(said)
    if are_those_recorded():
        assert numbers == expected, printed
    assert [*map(float, numbers)] == pytest.approx([*map(float, expected)], rel=0.02, abs=0.02), printed


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
    for block, printed in python_outputs(page):
        if block.output is not None:
            assert_alike(printed, block.output)


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_with("shell"))
def test_shell_of_a_page_runs(page: Path, tmp_path: Path):
    pytest.importorskip("pandas", reason="the command line needs the extra cli")
    for block, printed in shell_outputs(page, tmp_path):
        if block.output is not None:
            assert_alike(printed, block.output)


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


def test_figures_are_those_of_the_results_files():
    marked = [page for page in PAGES if figures.MARK.search(page.read_text())]
    named = [name for page in marked for _, name, _, _ in figures.MARK.findall(page.read_text())]
    assert {*named} == {*figures.WRITTEN}
    for page in marked:
        assert page.read_text() == figures.update(page.read_text()), f"{page}: run python docs/_ext/figures.py"


def test_the_monte_carlo_error_that_the_guarantee_names_is_that_of_the_study():
    assert max(map(abs, figures.deviations()[2])) <= MONTE_CARLO_ERROR


def test_the_readme_fits_a_screen_before_its_example():
    lines = (ROOT / "README.md").read_text().split("## Use")[0].splitlines()
    assert len(lines) <= MOST_LINES_BEFORE_USE


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
