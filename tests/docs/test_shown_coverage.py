"""Every coverage that a page or example shows is within what chance allows of its level."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from conformal_gp.metrics import coverage
from shown_coverage import SHOWN, Shown, band

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guides").glob("*.md")]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
MEASURES = re.compile(r"\b(mis)?coverage(_scorer)?\(|conformal-gp evaluate .*\n```\n\n```text")


def said(file: Path) -> str:
    """What a page says, or the outputs of a notebook's cells."""
    if file.suffix != ".ipynb":
        return file.read_text()
    cells = json.loads(file.read_text())["cells"]
    return "".join("".join(output.get("text", "")) for cell in cells for output in cell.get("outputs", []))


@pytest.mark.parametrize("name", [name for name in SHOWN if not name.endswith(".py")])
def test_a_page_s_coverages_are_near_their_levels(name):
    SHOWN[name].check(said(ROOT / name))


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_the_first_example_holds_its_level(name):
    code = re.search(r"^```python\n(.*?)^```$", (ROOT / name).read_text(), flags=re.DOTALL | re.MULTILINE)[1]
    namespace: dict = {}
    exec(code, namespace)
    low, high = band(0.95, len(namespace["X_train"]), len(namespace["X_test"]))
    assert low <= coverage(namespace["y_test"], namespace["intervals"]) <= high


def test_every_page_and_example_with_a_coverage_is_checked():
    """Those of real tables, benchmarks and studies are measurements and have pages of their own."""
    found = {
        str(file.relative_to(ROOT)) for file in [*PAGES, *SCRIPTS, *NOTEBOOKS] if MEASURES.search(file.read_text())
    }
    assert found <= set(SHOWN)


def test_rows_that_are_cut_in_their_order_are_seen():
    """What README's first example had before its rows were shuffled: 84.8% inside."""
    with pytest.raises(AssertionError, match=r"84\.8% at 95%"):
        Shown(r"([\d.]+)% inside", 300, 92, (0.95,)).check("84.8% inside")
    Shown(r"([\d.]+)% inside", 300, 92, (0.8,), at_least=True).check("99.0% inside")
    with pytest.raises(AssertionError, match="times"):
        Shown(r"([\d.]+)% inside", 300, 92, (0.9, 0.95)).check("90.1% inside")
