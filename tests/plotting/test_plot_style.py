"""Legible without colour, and clear about what is missing."""

import subprocess
import sys

import numpy as np
import pytest

from conformal_gp.plotting import DistributionDisplay, IntervalDisplay, style


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


def test_marks_and_bands_stand_out_on_light_and_on_dark_axes():
    plt = style.pyplot()
    for name, face in (("default", 1.0), ("dark_background", 0.0)):
        with plt.style.context(name):
            ink = plt.matplotlib.colors.to_rgb(style.ink())
            steps = [luminance(tint) for tint in style.tints(style.BLUE, 3)]
            assert abs(luminance(ink) - face) > 0.8
            assert 0.08 < abs(luminance(style.grey(0.12)) - face) < 0.15
        assert np.all(np.diff(np.abs(np.array(steps) - face)) > 0)  # stronger ones are farther from the axes
        assert min(abs(step - luminance(ink)) for step in steps) > 0.25  # dots are seen on them


@pytest.mark.parametrize("y", [0.4, [0.4], np.array([[0.4]])])
def test_a_label_may_come_as_an_array_of_one(y):
    assert DistributionDisplay([0.0, 1.0], y=y).y == 0.4
    with pytest.raises(ValueError, match=r"y must be one label, got 2\."):
        DistributionDisplay([0.0, 1.0], y=[0.4, 0.5])
