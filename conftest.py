"""What examples in docstrings need: figures are put away, and modules whose extra is missing are left out."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

NEEDS = {"skpro.py": "skpro"}


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out modules of the package, of the checkout or installed, that need what is not there."""
    if collection_path.parent.name != "conformal_gp":
        return None
    needed = NEEDS.get(collection_path.name)
    gone = collection_path.name == "comparators.py"  # its import says where it went
    return True if gone or (needed and not find_spec(needed)) else None


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """Close what the test drew."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
