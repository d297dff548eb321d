"""What examples in docstrings need: figures are put away."""

import sys

import pytest


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """Close what the test drew."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
