"""What examples in docstrings need: figures are put away, and modules whose extra is missing are left out."""

import sys
from importlib.util import find_spec

import pytest

collect_ignore = [] if find_spec("skpro") else ["src/conformal_gp/skpro.py"]


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """Close what the test drew."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
