"""The page: right numbers, escaped names, nothing from outside."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import ShuffleSplit

from cases import fixed_model
from conformal_gp import ConformalGPRegressor
from conformal_gp.metrics import coverage, mean_width
from conformal_gp.model_words import guarantee_in_words
from conformal_gp.report import build_report
from conformal_gp.report.chart import inside_from
from conformal_gp.report.numbers import PERCENTS, Rounding


class Page(HTMLParser):
    """Tags with their attributes, and the text of the cells of each table."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.tables, self._cell = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
            self._cell = tag

    def handle_endtag(self, tag):
        if tag == self._cell:
            self._cell = None

    def handle_data(self, text):
        if self._cell:
            self.tables[-1][-1][-1] += text


def embedded(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_tables_have_the_library_s_numbers(report):
    inside, widths, *_ = Page(report.page).tables
    shares, plain = coverage(report.y, report.held_out.intervals), coverage(report.y, report.held_out.plain)
    means, plain_means = mean_width(report.held_out.intervals), mean_width(report.held_out.plain)
    text = Rounding.of(report.y).text
    assert [row[0] for row in inside[1:]] == ["50%", "80%", "90%", "95%", "99%"]
    for cells, width_cells in zip(inside[1:], widths[1:], strict=True):
        k = PERCENTS.index(int(cells[0][:-1]))
        assert cells[1:3] == [f"{100 * shares[k]:.1f}%", f"{100 * plain[k]:.1f}%"]
        assert width_cells[0] == cells[0]
        assert [width_cells[1], width_cells[3]] == [text(means[k]), text(plain_means[k])]
    assert widths[-1][1:3] == ["∞", "∞"]  # 72 rows to rank cannot support 99%
    assert "no interval has finite ends: there are too few rows" in report.page
    assert "of some rows" not in report.page


def test_chart_has_the_library_s_numbers(report):
    data = embedded(report.page)
    found = report.held_out
    assert data["levels"] == list(range(50, 100))
    assert data["quantiles"] == list(range(5, 100, 5))
    np.testing.assert_allclose(data["conformal"]["coverage"], coverage(report.y, found.intervals), atol=1e-6)
    np.testing.assert_allclose(data["plain"]["coverage"], coverage(report.y, found.plain), atol=1e-6)
    assert [row["prediction"] for row in data["rows"]] == sorted(row["prediction"] for row in data["rows"])
    assert sorted(row["row"] for row in data["rows"]) == list(range(1, 91))
    half = 0.5 * 10.0 ** -data["decimals"] + 1e-12
    for row in data["rows"]:
        i = row["row"] - 1
        low, high = found.intervals[i]
        np.testing.assert_allclose([-np.inf if end is None else end for end in row["low"]], low, rtol=0, atol=half)
        np.testing.assert_allclose([np.inf if end is None else end for end in row["high"]], high, rtol=0, atol=half)
        assert row["p"] == round(found.p_values[i], 4)
        np.testing.assert_allclose(np.cumsum(row["steps"]) / 10.0 ** data["decimals"], found.quantiles[i], atol=half)
        assert abs(row["y"] - report.y[i]) <= half


def test_inside_from_tells_the_coverage_of_every_level(report):
    found = inside_from(report.y, report.held_out.intervals)
    shares = [(found <= percent).mean() for percent in PERCENTS]
    np.testing.assert_allclose(shares, coverage(report.y, report.held_out.intervals))
    assert found.min() == 50
    assert len(set(found)) > 10


def test_names_are_text(report):
    page = Page(report.page)
    assert [attributes.get("type", "") for tag, attributes in page.tags if tag == "script"] == ["application/json", ""]
    assert not {"b", "i", "img"} & {tag for tag, _ in page.tags}
    assert [row[0] for row in page.tables[-1][1:]] == [f"{report.target} (label)", *report.names]
    data = embedded(report.page)
    assert data["inputs"] == report.names
    assert data["target"] == report.target
    assert "<title>A &lt;i&gt;title&lt;/i&gt;</title>" in report.page


def test_nothing_comes_from_outside(report):
    addresses = set(re.findall(r"[a-z]+://[^\s\"'<)]*", report.page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not a place
    for tag, attributes in Page(report.page).tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "form", "base")
        assert not {"src", "href", "style", "onclick"} & set(attributes)
    assert "@import" not in report.page
    assert "url(" not in report.page
    policy = next(
        attributes["content"]
        for _, attributes in Page(report.page).tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_guarantee_in_plain_words(report):
    model = fixed_model().fit(report.X, report.y)
    assert "These intervals are guaranteed." in report.page
    assert guarantee_in_words(model.guarantee_) in report.page
    learnt = ConformalGPRegressor("se", tuning="train", n_restarts=0, random_state=0)
    with pytest.warns(UserWarning, match="tuning='train' learns"):
        page = build_report(report.X, report.y, model=learnt, cv=2)
    assert "These intervals are not exactly guaranteed." in page
    assert "a poor model gives wide intervals" not in page


def test_too_few_held_labels_are_said_to_be_too_few():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 1)), rng.normal(size=200)
    overconfident = fixed_model(noise_variance=1e-2, kernel="se")
    page = build_report(X, y, model=overconfident, cv=2)
    assert "<p>Conformal intervals: kept the promise at 90%, 95% and 99%.</p>" in page
    assert re.search(r"<p>Plain Gaussian process: too narrow at 90% [^;]*, 95% [^;]* and 99% [^;]*</p>", page)


def test_too_many_held_labels_are_said_to_be_too_many():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 1)), 0.1 * rng.normal(size=200)
    page = build_report(X, y, model=fixed_model(noise_variance=1.0), cv=2)
    assert re.search(r"Plain Gaussian process: wider than they need be at 90% [^;]* and 95% [^;]*;", page)


def test_intervals_of_some_rows_may_be_endless():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60)
    page = build_report(X, y, model=fixed_model(gamma=1.0, noise_variance=0.01), cv=3)
    assert re.search(r"From \d\d% on, the intervals of some rows have no finite ends", page)


def test_a_sample_of_the_rows_is_drawn(report):
    page = build_report(report.X, report.y, model=fixed_model(), cv=3, max_chart_rows=7)
    assert len(embedded(page)["rows"]) == 7
    assert "7 of 90 held-out rows are drawn" in re.sub(r"\s+", " ", page)


def test_rows_that_were_held_out_once_are_those_of_the_page(report):
    cv = ShuffleSplit(1, test_size=20, random_state=0)
    page = build_report(report.X, report.y, model=fixed_model(), cv=cv)
    held_out = next(cv.split(report.X))[1]
    rows = embedded(page)["rows"]
    assert sorted(row["row"] for row in rows) == sorted(held_out + 1)
    assert all(row["y"] == Rounding.of(report.y[held_out]).plain(report.y[row["row"] - 1]) for row in rows)
    assert all(float(row["x"][0]) == pytest.approx(report.X[row["row"] - 1, 0], rel=1e-3) for row in rows)
    assert "20 of the 90 rows were held out" in page


def test_frames_names_and_progress(report):
    frame = pd.DataFrame(report.X, columns=["a", "b", "c"])
    heard = []
    page = build_report(
        frame, report.y, model=fixed_model(), cv=2, progress=lambda done, total: heard.append((done, total))
    )
    assert embedded(page)["inputs"] == ["a", "b", "c"]
    assert heard == [(1, 3), (2, 3), (3, 3)]
    assert build_report(frame, report.y, model=fixed_model(), cv=2) == page  # the same again


def test_many_columns_are_cut_short():
    rng = np.random.default_rng(0)
    page = build_report(rng.normal(size=(12, 300)), rng.normal(size=12), model=fixed_model(), cv=2)
    assert "12 rows, 300 inputs; 100 more inputs not listed" in page
    assert len(Page(page).tables[-1]) == 202  # heading, label and 200 inputs


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_labels_of_any_size(report, factor):
    page = build_report(report.X, factor * report.y, model=fixed_model(noise_variance=0.1 * factor**2), cv=2)
    shown = {row["row"] - 1: row["y"] for row in embedded(page)["rows"]}
    labels = factor * report.y
    assert max(abs(shown[i] - labels[i]) for i in range(90)) < 1e-3 * np.std(labels)


def test_bad_arguments(report):
    with pytest.raises(ValueError, match="feature_names must have one name for each of 3 inputs, got 1"):
        build_report(report.X, report.y, feature_names=["a"])
    with pytest.raises(ValueError, match="model must be a ConformalGPRegressor, got Ridge without predict_interval"):
        build_report(report.X, report.y, model=Ridge())
    with pytest.raises(ValueError, match=r"row_numbers must have one number for each of 90 rows, got \(2,\)"):
        build_report(report.X, report.y, row_numbers=[1, 2])
    with pytest.raises(ValueError, match="max_chart_rows must be at least 1, got 0"):
        build_report(report.X, report.y, max_chart_rows=0)
    with pytest.raises(ValueError, match="X contains NaN in row 0, column 0"):
        build_report(np.full((20, 1), np.nan), np.zeros(20))
    with pytest.raises(ValueError, match="cv must lie between 2 and the number of rows, 90; got 91"):
        build_report(report.X, report.y, cv=91)


def test_the_inputs_of_one_column_of_categories_matter_together():
    rng = np.random.default_rng(0)
    kind = pd.Categorical(rng.choice(list("abc"), 60))
    X = pd.DataFrame({"size": rng.uniform(size=60), "kind": kind, "sort": pd.Categorical(rng.choice(["u", "v"], 60))})
    y = X["size"] + 3.0 * kind.codes + 0.1 * rng.standard_normal(60)
    tables = Page(build_report(X, y, model=fixed_model(), cv=3)).tables
    (found,) = [rows for rows in tables if rows[0] == ["input", "growth of the error"]]
    assert sorted(row[0] for row in found[1:]) == ["kind", "size", "sort"]
    assert found[1][0] == "kind"
    inputs = np.column_stack([X["size"], kind.codes == 0, kind.codes == 1, kind.codes == 2])
    grouped = build_report(inputs, y, model=fixed_model(), cv=3, groups={"size": [0], "kind": [1, 2, 3]})
    (found,) = [rows for rows in Page(grouped).tables if rows[0] == ["input", "growth of the error"]]
    assert [row[0] for row in found[1:]] == ["kind", "size"]
