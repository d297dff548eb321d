"""Examples in docstrings draw figures, too: each test puts away what was drawn."""

import sys

import pytest


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """Close what the test drew."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
