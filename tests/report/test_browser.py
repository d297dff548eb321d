"""The report in a real browser: sliders, keys, pointer and touch, screens, and the network left alone."""

import itertools
import re

import numpy as np
import pytest

import chromium
from cases import fixed_model
from conformal_gp.formatting import percent
from conformal_gp.metrics import coverage
from conformal_gp.report import build_report
from conformal_gp.report.chart import PERCENTS, decimals
from conformal_gp.report.chart import text as written

from .conftest import NAMES, TARGET

pytestmark = pytest.mark.skipif(
    chromium.find() is None, reason="needs Chromium (Debian: apt install chromium), or its path in CHROMIUM"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.Chromium(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture
def opened(browser, report, tmp_path):
    """The report, open in a window of common size."""
    path = tmp_path / "report.html"
    path.write_text(report.page, encoding="utf-8")
    browser.screen(1200, 900)
    browser.open(path)
    return browser


def text(browser, name):
    return browser.run(f"document.getElementById('{name}').textContent")


def set_slider(browser, name, value):
    browser.run(
        f"(() => {{ const slider = document.getElementById('{name}'); slider.value = {value};"
        " slider.dispatchEvent(new Event('input')); })()"
    )


def bars(browser):
    """Heights of the intervals as drawn, (rows, 2): upper and lower, in pixels from the top."""
    paths = browser.run("[...document.querySelectorAll('#chart .bar')].map((path) => path.getAttribute('d'))")
    ends = np.array([[float(number) for number in re.match(r"M\S+ (\S+?)V([\d.]+)", path).groups()] for path in paths])
    return ends[:, ::-1]


def middle(browser, name):
    box = browser.run(f"document.getElementById('{name}').getBoundingClientRect().toJSON()")
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_page_numbers_are_the_library_s_at_every_level(opened, report):
    shares, plain = coverage(report.y, report.intervals), coverage(report.y, report.plain)
    widths, plain_widths = (np.median(ends[:, 1] - ends[:, 0], axis=0) for ends in (report.intervals, report.plain))
    digits = decimals(report.y, report.intervals)
    for k, level in enumerate(PERCENTS):
        set_slider(opened, "level", level)
        assert text(opened, "level-text") == f"{level}%"
        assert text(opened, "coverage") == percent(shares[k], 1)
        assert text(opened, "width") == written(widths[k], digits)
        assert text(opened, "standard-coverage") == percent(plain[k], 1)
        assert text(opened, "standard-width") == written(plain_widths[k], digits)
        missed = opened.run("document.querySelectorAll('#chart .out').length")
        assert missed == round(90 * (1 - shares[k]))  # all 90 rows are in the chart


def test_slider_moves_the_intervals(opened, report):
    order = np.argsort(report.prediction, kind="stable")
    drawn = {}
    for level in (50, 80):
        set_slider(opened, "level", level)
        drawn[level] = bars(opened)
    assert (drawn[80][:, 0] <= drawn[50][:, 0] + 1e-6).all()
    assert (drawn[80][:, 1] >= drawn[50][:, 1] - 1e-6).all()
    for level, pixels in drawn.items():
        low, high = report.intervals[order, :, PERCENTS.index(level)].T
        heights = pixels[:, 1] - pixels[:, 0]
        scale = np.median(heights / (high - low))
        cut = np.abs(heights - scale * (high - low)) > 0.5  # beyond the chart: an arrow
        assert cut.mean() < 0.1
        assert len(heights) == 90


def test_infinite_intervals_reach_both_edges(opened):
    set_slider(opened, "level", 99)
    pixels = bars(opened)
    assert np.ptp(pixels[:, 0]) == np.ptp(pixels[:, 1]) == 0
    assert text(opened, "width") == "∞"
    assert "\N{MINUS SIGN}∞ to ∞" in text(opened, "detail")


def test_detail_of_a_row(opened, report):
    order = np.argsort(report.prediction, kind="stable")
    digits = decimals(report.y, report.intervals)
    set_slider(opened, "level", 90)
    set_slider(opened, "row", 17)
    i = order[17]
    low, high = report.intervals[i, :, PERCENTS.index(90)]
    found = report.prediction[i]
    side = "covered" if low <= report.y[i] <= high else "not covered"
    detail = opened.run("[...document.querySelectorAll('#detail p')].map((line) => line.textContent)")
    assert detail[0] == f"Row {i + 1}: {TARGET} {written(report.y[i], digits)}, predicted {written(found, digits)}"
    assert detail[1] == f"90% interval: {written(low, digits)} to {written(high, digits)}, {side}"
    ends = report.intervals[i]
    held = [percent for k, percent in enumerate(PERCENTS) if ends[0, k] <= report.y[i] <= ends[1, k]]
    assert detail[2] == f"Covered at levels from {held[0]}%"
    assert opened.run("document.getElementById('row').getAttribute('aria-valuetext')").startswith(f"Row {i + 1}:")


def test_keyboard(opened):
    set_slider(opened, "level", 95)
    opened.run("document.getElementById('level').focus()")
    opened.press("ArrowRight")
    assert text(opened, "level-text") == "96%"
    opened.press("Home")
    assert text(opened, "level-text") == "50%"
    opened.press("Tab")
    assert opened.run("document.activeElement.id") == "row"
    before = text(opened, "detail")
    opened.press("ArrowRight")
    assert text(opened, "detail") != before


def test_pointer_and_touch(opened, tmp_path):
    opened.run("document.getElementById('chart').scrollIntoView()")
    x, y = middle(opened, "chart")
    opened.move(x - 300, y)
    left = text(opened, "detail")
    opened.move(x + 300, y)
    assert text(opened, "detail") != left
    opened.screen(390, 844, phone=True)
    opened.open(tmp_path / "report.html")
    opened.run("document.getElementById('chart').scrollIntoView()")
    before = text(opened, "detail")
    x, y = middle(opened, "chart")
    opened.tap(x - 120, y)
    assert text(opened, "detail") != before


def test_names_stay_text_and_nothing_is_asked_for(opened, report):
    assert opened.run("window.broken === undefined")
    assert text(opened, "detail").count(NAMES[0]) == 1
    assert NAMES[2] in opened.run("document.body.innerText")
    assert opened.run("document.images.length") == 0
    assert len(opened.requests()) == 1
    assert opened.requests()[0].startswith("file://")
    assert opened.complaints() == []


def test_policy_refuses_scripts_and_requests_that_are_not_the_page_s(opened):
    opened.run(
        "(() => { const script = document.createElement('script'); script.textContent = 'window.broken = true';"
        " document.body.append(script); })()"
    )
    assert opened.run("window.broken === undefined")
    assert opened.run("fetch('https://example.org').then(() => 'sent', () => 'refused')") == "refused"
    assert len(opened.complaints()) >= 2


@pytest.mark.parametrize("width", [320, 390, 768, 1200])
def test_nothing_sticks_out_at_any_width(opened, tmp_path, width):
    opened.screen(width, 844, phone=width < 500)
    opened.open(tmp_path / "report.html")
    assert opened.run("document.documentElement.scrollWidth") == width
    opened.run("document.querySelectorAll('details').forEach((part) => (part.open = true))")
    assert opened.run("document.documentElement.scrollWidth") == width


def test_scatters_have_the_rows_that_are_covered_and_those_that_are_not(opened, report):
    set_slider(opened, "level", 80)
    low, high = report.intervals[:, :, PERCENTS.index(80)].T
    covered = int(((low <= report.y) & (report.y <= high)).sum())
    for name in ("actual", "residuals"):
        drawn = [opened.run(f"document.querySelectorAll('#{name} .{kind}').length") for kind in ("in", "out")]
        assert drawn == [covered, 90 - covered]


def test_axes_have_names_and_commas_between_thousands(browser, tmp_path):
    path = tmp_path / "large.html"
    X = np.linspace(0.0, 1.0, 40)[:, None]
    page = build_report(X, 12000.0 + 9000.0 * X[:, 0], target_name="yield (kg)", model=fixed_model(), cv=2)
    path.write_text(page, encoding="utf-8")
    browser.screen(390, 844, phone=True)
    browser.open(path)
    words = browser.run("[...document.querySelectorAll('#chart text')].map((text) => text.textContent)")
    assert {"12,000", "20,000", "yield (kg)", "40 held-out rows, sorted by prediction"} <= set(words)
    words = browser.run("[...document.querySelectorAll('#actual text')].map((text) => text.textContent)")
    assert {"actual yield (kg)", "predicted yield (kg)"} <= set(words)
    boxes = browser.run(
        "[...document.querySelectorAll('#residuals text')].map((text) => text.getBoundingClientRect().toJSON())"
    )
    for one, other in itertools.combinations(boxes, 2):
        beside = one["right"] <= other["left"] or other["right"] <= one["left"]
        assert beside or one["bottom"] - 3 <= other["top"] or other["bottom"] - 3 <= one["top"]


def test_skewed_targets_are_on_a_logarithmic_scale(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 3.0, size=(120, 1))
    y = np.exp(2.0 * X[:, 0] + 0.3 * rng.standard_normal(120))
    path = tmp_path / "skewed.html"
    path.write_text(build_report(X, y, model=fixed_model(target_transform="log"), cv=2), encoding="utf-8")
    browser.screen(1200, 900)
    browser.open(path)
    marks = browser.run("[...document.querySelectorAll('#chart text')].map((text) => text.textContent)")
    assert {"1", "10", "100"} <= set(marks)
    places = [browser.run(f"chart.y(Math.log10({value}))") for value in (1, 10, 100)]
    assert places[0] - places[1] == pytest.approx(places[1] - places[2])
    assert "actual / predicted" in browser.run("document.getElementById('residuals').textContent")


def test_on_paper_folded_parts_are_open_and_it_is_light(opened, tmp_path):
    shut = opened.run("document.querySelectorAll('details:not([open])').length")
    assert shut == 4
    opened.run("window.dispatchEvent(new Event('beforeprint'))")
    assert opened.run("document.querySelectorAll('details:not([open])').length") == 0
    assert opened.run("document.getElementById('calibration').clientWidth") > 300
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    opened.send("Emulation.setEmulatedMedia", media="print", features=dark)
    assert opened.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.run("document.getElementById('level').offsetParent === null")
    opened.send("Emulation.setEmulatedMedia", media="")
    opened.run("window.dispatchEvent(new Event('afterprint'))")
    assert opened.run("document.querySelectorAll('details:not([open])').length") == 4


def test_light_and_dark(opened):
    paper = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.body).color"
    light = opened.run(paper), opened.run(ink)
    opened.screen(1200, 900, dark=True)
    dark = opened.run(paper), opened.run(ink)
    assert light == ("rgb(255, 255, 255)", "rgb(27, 31, 36)")
    assert dark == ("rgb(20, 24, 29)", "rgb(231, 234, 238)")
