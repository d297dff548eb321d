"""What examples in docstrings need: figures are put away, and modules whose extra is missing are left out."""

import sys
from importlib.util import find_spec

import pytest

NEEDS = {"skpro": "src/conformal_gp/skpro.py", "SALib": "src/conformal_gp/sensitivity.py"}
collect_ignore = [path for package, path in NEEDS.items() if not find_spec(package)]


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """Close what the test drew."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
