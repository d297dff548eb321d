"""Legends and titles beside the data, in light and dark; numbers on the axes."""

import sys

import pytest

from conformal_gp.plotting import (
    CoverageDisplay,
    IntervalDisplay,
    PredictionBandDisplay,
    ResidualDisplay,
    WidthContourDisplay,
)

DRAWN = {
    "intervals": lambda model, X, y, ax: IntervalDisplay.from_estimator(model, X[40:], y[40:], ax=ax),
    "band": lambda model, X, y, ax: PredictionBandDisplay.from_estimator(model, X, y, n_points=9, ax=ax),
    "residuals": lambda model, X, y, ax: ResidualDisplay.from_estimator(model, X[40:], y[40:], ax=ax),
    "width": lambda model, X, y, ax: WidthContourDisplay.from_estimator(model, X, n_points=5, ax=ax),
    "coverage": lambda model, X, y, ax: CoverageDisplay.from_estimator({"a": model, "b": model}, X[40:], y[40:], ax=ax),
}


@pytest.mark.parametrize(("style", "size"), [("default", (3.5, 3.5)), ("dark_background", (10, 4))])
@pytest.mark.parametrize("kind", DRAWN)
def test_legends_and_titles_are_above_the_data(model, rows, pyplot, kind, style, size):
    with pyplot.style.context(style):
        figure, ax = pyplot.subplots(figsize=size, layout="constrained")
        display = DRAWN[kind](model, *rows, ax)
        assert display.ax_ is ax
        assert display.figure_ is figure
        assert display.plot().ax_ is not ax
        ax.set_title("a title")
        figure.draw_without_rendering()
        box = ax.get_legend().get_window_extent()
        assert box.ymin >= ax.get_window_extent().ymax - 1
        assert box.width <= figure.bbox.width
        assert ax.title.get_window_extent().ymin >= box.ymax - 1
    assert (ax.get_facecolor()[0] < 0.5) == (style == "dark_background")


def test_without_matplotlib_an_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="Pictures need Matplotlib: pip install"):
        CoverageDisplay([0.5], [[0, 1]], confidence_level=0.9).plot()


def test_large_numbers_have_commas():
    display = IntervalDisplay.from_predictions([12000], [11000], [[9000, 15000]], confidence_level=0.9)
    display.figure_.draw_without_rendering()
    assert any("," in tick.get_text() for tick in display.ax_.get_yticklabels())
    small = IntervalDisplay.from_predictions([1], [1], [[0, 2]], confidence_level=0.9)
    assert not any("," in tick.get_text() for tick in small.ax_.get_yticklabels())
