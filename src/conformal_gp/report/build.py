"""The report page and its tables. All text from the data is escaped."""

from __future__ import annotations

import base64
import hashlib
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from conformal_gp import __version__
from conformal_gp.drift import shift_test
from conformal_gp.evaluation import Finding, HeldOut, Judgement, coverage_by_parts, cross_validate_intervals
from conformal_gp.evaluation.cross_validation import Progress
from conformal_gp.formatting import CONFORMAL, STANDARD, percent
from conformal_gp.regressor import ConformalGPRegressor
from conformal_gp.report import words
from conformal_gp.report.chart import LEVELS, as_json, chart_data, decimals, text
from conformal_gp.report.words import Notice

ROWS_SHOWN = 200
# How hyperparameters were set, by ``tuning_``.
TUNING = {
    "fixed": "given beforehand",
    "train": "tuned on all rows",
    "holdout": "tuned on 70% of the rows, calibrated on the rest",
    "integrated": "averaged over, weighted by the likelihood of the training rows and the new row",
}
WORDS = ("method", "verdict")  # columns of words


@dataclass(frozen=True)
class Origin:
    """Facts about the rows of a report, for its chart and its foot.

    Examples
    --------
    >>> from conformal_gp.report import Origin
    >>> Origin(file="cars.csv", rows=["2 (Fiat)", "3 (Ford)"]).file
    'cars.csv'
    """

    file: str = ""
    """Name of the file that they come from."""
    notes: Sequence[str] = ()
    """What was done to the file, in sentences: rows that were left out, and why."""
    command: str = ""
    """The command that made the page; advice then names its options. Without one, advice names Python parameters."""
    rows: ArrayLike | None = None
    """What the rows are called; None numbers them from 1."""


def build_report(
    X: Any,
    y: ArrayLike,
    *,
    target_name: str = "y",
    model: Any = None,
    cv: Any = 10,
    y_variance: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    censoring: ArrayLike | None = None,
    batches: ArrayLike | None = None,
    ordered: bool = False,
    origin: Origin | None = None,
    random_state: int | None = 0,
    progress: Progress | None = None,
) -> str:
    """An HTML page on the coverage of a model's intervals for a data set, the verdict first, with interactive charts.

    Rows are predicted by models that were not fitted to them, at every whole percent from 50 to 99. The page opens
    offline, makes no network requests, and runs only the script that it contains.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        Inputs; columns have their names in the data frame, or x0, x1 and so on.
    y : array-like of shape (n_samples,)
        Target.
    target_name : str
        Name of the target, with its unit.
    model : ConformalGPRegressor or None, default=None
        Model to report on; it is cloned for every fit. None is ``ConformalGPRegressor(random_state=random_state)``.
    cv, y_variance, groups, censoring, batches, progress
        As in :func:`conformal_gp.evaluation.cross_validate_intervals`.
    ordered : bool, default=False
        Whether rows are in an order, such as that of time, in which to test them for drift.
    origin : Origin or None, default=None
        Where the rows come from, and what they are called.
    random_state : int or None, default=0
        Seed of the folds, of the rows in the chart, and of the default model.

    Returns
    -------
    page : str
        The HTML.

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.datasets import load_servo
    >>> from conformal_gp.report import build_report
    >>> X, y = load_servo(return_X_y=True)
    >>> model = ConformalGPRegressor(tuning="holdout", random_state=0)
    >>> page = build_report(X[:60], y[:60], model=model, target_name="rise time (s)", cv=3)
    >>> page.startswith("<!doctype html>"), "rise time (s)" in page
    (True, True)
    """
    if model is None:
        model = ConformalGPRegressor(random_state=random_state)
    if not hasattr(model, "predict_interval"):
        raise ValueError(f"model must have predict_interval, as ConformalGPRegressor has; got {type(model).__name__}.")
    if origin is None:
        origin = Origin()
    target = np.asarray(y, dtype=np.float64)
    every_label = np.arange(1, target.size + 1).astype(str)
    if origin.rows is not None:
        every_label = np.asarray(origin.rows)
    if every_label.shape != target.shape:
        raise ValueError(f"origin.rows must name each of {target.size} rows, got {every_label.size} names.")
    given = {"y_variance": y_variance, "groups": groups, "censoring": censoring, "batches": batches}
    known: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    fitted = clone(model).fit(X, target, **known)
    with warnings.catch_warnings():  # the page states where intervals are infinite
        warnings.filterwarnings("ignore", message="confidence_level=", category=UserWarning)
        held_out = cross_validate_intervals(
            {CONFORMAL: model},
            X,
            target,
            LEVELS,
            cv=cv,
            random_state=random_state,
            standard_gp=STANDARD,
            progress=progress,
            **known,
        )
    rows = _safe_indexing(X, held_out.rows)
    drift = None
    if ordered:
        errors = held_out.y - held_out.prediction[CONFORMAL]
        drift = shift_test(errors, every_label[held_out.rows], random_state)
    level = words.shown_level(held_out)
    labels = every_label[held_out.rows].tolist()
    chart = chart_data(rows, held_out, target_name, labels, level, random_state)
    finding = held_out.at([level]).findings()[0]
    quality, line = words.verdict(finding, words.too_narrow(held_out, rows, level))
    guarantee, meaning = words.guaranteed(fitted.guarantee_, level)
    if quality == words.GOOD and not fitted.guarantee_.startswith("Valid"):
        quality = words.DOUBT
    notices = words.notices(held_out, rows, labels, level, drift, command=bool(origin.command))
    attention = f"<ul>{notice_list(notices)}</ul>"
    if not any(notice.warns for notice in notices):
        attention = f"<p>{escape(words.nothing_found(drift))}</p>{attention}"
    facts = {
        "file": origin.file,
        "rows": f"{target.size:,} used, {held_out.y.size:,} of them held out",
        "notes": " ".join(f"{note[0].upper()}{note[1:].rstrip('.')}." for note in origin.notes),
        "made": f"{date.today().isoformat()}, by conformal-gp {__version__}",
        "seed": str(random_state),
        "command": origin.command or f"build_report in Python, {model!r}",
    }
    folder = files("conformal_gp.report")
    style = folder.joinpath("style.css").read_text("utf-8")
    script = folder.joinpath("script.js").read_text("utf-8")
    allowed = f"style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'; form-action 'none'"
    n_chart = len(chart["rows"])
    return Template(folder.joinpath("page.html").read_text("utf-8")).substitute(
        title=escape(f"Prediction intervals for {target_name}"),
        target=escape(target_name),
        policy=f"default-src 'none'; {allowed}",
        style=style,
        script=script,
        json=as_json(chart),
        level=f"{100 * level}",
        quality=quality,
        verdict=escape(line),
        how=escape(words.held_out_how(held_out, target.size)),
        guarantee=escape(guarantee),
        notices=attention,
        drawn=words.drawn(n_chart, held_out.y.size),
        n_chart=n_chart,
        last_row=n_chart - 1,
        middle_row=n_chart // 2,
        error=escape(held_out.error()),
        meaning=escape(f"{meaning} {held_out.at([level]).one_set()}"),
        statement=escape(fitted.guarantee_),
        scope=words.scope(held_out),
        coverage=coverage_table(held_out),
        subgroups=subgroups(held_out, rows, level),
        model=model_table(fitted),
        facts=table(
            (), [(name, fact) for name, fact in facts.items() if fact], caption="How this page was made", kind="words"
        ),
    )


def _digest(text: str) -> str:
    """Digest of an inline script or style, by which the content security policy allows it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, kind: str = "numbers") -> str:
    """An HTML table of plain text, of the kind "numbers" or "words"; the first cell of each row is its heading."""
    top = "".join(f'<th scope="col"{_aligned(name)}>{escape(name)}</th>' for name in head)
    classes = [_aligned(name) for name in head[1:]] or [""]
    body = ""
    for first, *rest in rows:
        cells = (f"<td{each}>{escape(cell)}</td>" for each, cell in zip(classes, rest, strict=True))
        body += f'<tr><th scope="row">{escape(first)}</th>{"".join(cells)}</tr>'
    if top:
        top = f"<thead><tr>{top}</tr></thead>"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table class="{kind}">'
        f"<caption>{escape(caption)}</caption>{top}<tbody>{body}</tbody></table></div>"
    )


def _aligned(name: str) -> str:
    """Attribute of the cells of a column, by its name: some have words in a table of numbers."""
    if name in WORDS:
        return ' class="word"'
    return ""


def notice_list(notices: Sequence[Notice]) -> str:
    """What to look at, as a list."""
    return "".join(
        f'<li class="{"warns" if notice.warns else "notes"}"><strong>{escape(notice.topic)}.</strong> '
        f"{escape(notice.text[0].upper() + notice.text[1:])}</li>"
        for notice in notices
    )


def coverage_table(held_out: HeldOut) -> str:
    """Coverage and widths of each method at some levels, and the expected range."""
    digits = decimals(held_out.y, held_out.intervals[CONFORMAL])
    rows = [
        (
            percent(finding.level),
            finding.method,
            percent(finding.coverage, 1),
            finding.expected_in_words,
            text(finding.median_width, digits),
            finding.judgement.value,
        )
        for finding in held_out.findings(words.TABLED)
    ]
    head = ("level", "method", "coverage", "expected", "median width", "verdict")
    return table(head, rows, caption="Coverage and width")


def subgroups(held_out: HeldOut, X: Any, level: Fraction) -> str:
    """Coverage by group, by fifths of the prediction, and by each input."""
    digits = decimals(held_out.y, held_out.intervals[CONFORMAL])
    by_prediction = coverage_by_parts(held_out, None, level)
    found = {
        "By group": held_out.by_group([level]),
        "By fifths of the prediction": by_prediction,
        "By each input": coverage_by_parts(held_out, X, level)[len(by_prediction) :],
    }
    return "".join(_part_table(parts, f"{name}, at {percent(level)}", digits) for name, parts in found.items() if parts)


def _part_table(found: Sequence[Finding], caption: str, digits: int) -> str:
    """Coverage and widths of subgroups."""
    marks = {Judgement.TOO_NARROW: "✕ too narrow", Judgement.IN_DOUBT: "perhaps too narrow"}
    rows = [
        (
            part.among,
            f"{part.n_rows:,}",
            percent(part.coverage, 1),
            text(part.median_width, digits),
            marks.get(part.judgement, ""),
        )
        for part in found[: 5 * ROWS_SHOWN]
    ]
    return table(("rows where", "rows", "coverage", "median width", "verdict"), rows, caption=caption)


def model_table(model: Any) -> str:
    """Parameters of the fitted model."""
    transformation = "none"
    if model.target_transform_ is not None:
        transformation = model.target_transform_.name.strip("'")
    difficulty = "no"
    if model.difficulty_ is not None:
        difficulty = "yes"
    facts = {
        "method": type(model).__name__,
        "kernel": str(model.kernel_),
        "noise variance": f"{model.noise_variance_:.3g}",
        "mean function": model.mean_,
        "hyperparameters": TUNING[getattr(model, "tuning_", model.tuning)],
        "target transformation": transformation,
        "difficulty model": difficulty,
    }
    return table(("setting", "value"), facts.items(), caption="The model, fitted to all rows", kind="words")
