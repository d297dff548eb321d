"""Legible without colour, and clear about what is missing."""

import subprocess
import sys

import numpy as np
import pytest

from conformal_gp.plotting import IntervalDisplay, style


def luminance(rgb):
    return float(np.dot(rgb, [0.2126, 0.7152, 0.0722]))


def test_nested_bands_are_steps_of_grey():
    steps = [luminance(tint) for tint in style.tints(style.BLUE, 3)]
    assert np.diff(steps).max() < -0.1


@pytest.mark.parametrize("signs", [style.COLOURS, style.HATCHES, style.MARKERS, style.LINES])
def test_every_method_has_its_own_sign(signs):
    assert len(set(signs)) == len(signs) == 6
    assert style.nth(signs, 7) == signs[1]


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'conformal-gp\[plot\]'"):
        IntervalDisplay.from_predictions([1.0], [1.0], [[0.0, 2.0]])


def test_import_does_not_need_matplotlib():
    code = "import sys; sys.modules['matplotlib'] = None; import conformal_gp.plotting"
    subprocess.run([sys.executable, "-c", code], check=True)
