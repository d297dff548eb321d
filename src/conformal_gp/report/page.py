"""The report page: its verdict, its sentences and its tables. All text from the data is escaped."""

from __future__ import annotations

import base64
import hashlib
import warnings
from collections.abc import Iterable, Sequence
from datetime import date
from fractions import Fraction
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from conformal_gp import __version__
from conformal_gp.drift import Shift, shift_test
from conformal_gp.evaluation import Finding, HeldOut, Judgement, cross_validate_intervals
from conformal_gp.evaluation.cross_validation import Progress
from conformal_gp.formatting import CONFORMAL, percent
from conformal_gp.regressor import ConformalGPRegressor
from conformal_gp.report.chart import LEVELS, TABLED, as_json, chart_data, decimals, shown_level, text

MOST_NAMED = 5
MOST_PARTS = 1000
# How good a verdict is: the colour of its line.
GOOD, UNKNOWN, DOUBT, BAD = "good", "unknown", "doubt", "bad"
QUALITY = {
    Judgement.WITHIN: GOOD,
    Judgement.TOO_FEW: UNKNOWN,
    Judgement.AT_LEVELS: UNKNOWN,
    Judgement.TOO_NARROW: BAD,
    Judgement.INFINITE: BAD,
}
WORDS = ("method", "verdict")  # columns of words


class Notice(NamedTuple):
    """A fact that limits what the page shows; ``warns`` if something may have to be done about it."""

    topic: str
    text: str
    warns: bool


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
    row_names: ArrayLike | None = None,
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
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
    row_names : array-like of shape (n_samples,) or None, default=None
        What rows are called; None numbers them from 1.
    source : str, default=""
        Name of the file that they come from.
    notes : sequence of str, default=()
        What was done to the file, in sentences: rows that were left out, and why.
    command : str, default=""
        The command that made the page; advice then names its options. Without one, advice names Python parameters.
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
    target = np.asarray(y, dtype=np.float64)
    names = np.arange(1, target.size + 1).astype(str)
    if row_names is not None:
        names = np.asarray(row_names)
    if names.shape != target.shape:
        raise ValueError(f"row_names must name each of {target.size} rows, got {names.size} names.")
    given = {"y_variance": y_variance, "groups": groups, "censoring": censoring, "batches": batches}
    known: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    fitted = clone(model).fit(X, target, **known)
    with warnings.catch_warnings():  # the page states where intervals are infinite
        warnings.filterwarnings("ignore", message="confidence_level=", category=UserWarning)
        held_out = cross_validate_intervals(
            model,
            X,
            target,
            LEVELS,
            cv=cv,
            random_state=random_state,
            standard_gp=True,
            progress=progress,
            **known,
        )
    rows = _safe_indexing(X, held_out.rows)
    names = names[held_out.rows]
    level = shown_level(held_out)
    shown = held_out.at([level])
    narrow = shown.too_narrow(rows)
    quality, line = verdict(shown.findings()[0], narrow)
    if quality == GOOD and not fitted.guarantee_.startswith("Valid"):
        quality = DOUBT
    drift = None
    if ordered:
        drift = shift_test(held_out.y - held_out.prediction[CONFORMAL], names, random_state)
    helps_most = held_out.at([other for other in TABLED if other >= level]).advice(rows, command=bool(command))
    found = _notices(shown, names, narrow, drift, helps_most)
    attention = "<ul>" + "".join(notice_item(notice) for notice in found) + "</ul>"
    if not any(notice.warns for notice in found):
        attention = f"<p>{nothing_found(drift)}</p>{attention}"
    how = f"Each of the {target.size:,} rows was predicted by a model that was not fitted to it (cross-validation)."
    if held_out.y.size < target.size:
        some = f"{held_out.y.size:,} of the {target.size:,} rows"
        how = f"{some} were held out, and predicted by a model not fitted to them."
    chart = chart_data(rows, held_out, target_name, names.tolist(), level, random_state)
    n_chart = len(chart["rows"])
    drawn = f"All {n_chart:,} held-out rows are drawn."
    if n_chart < held_out.y.size:
        drawn = f"{n_chart:,} of {held_out.y.size:,} held-out rows are drawn; the numbers above are over all of them."
    which = "all rows together, not for each subgroup separately"
    if held_out.groups is not None:
        which = "each group, not for other subgroups"
    digits = decimals(held_out.y, held_out.intervals[CONFORMAL])
    facts = {
        "file": source,
        "rows": f"{target.size:,} used, {held_out.y.size:,} of them held out",
        "notes": " ".join(f"{note[0].upper()}{note[1:].rstrip('.')}." for note in notes),
        "made": f"{date.today().isoformat()}, by conformal-gp {__version__}",
        "seed": str(random_state),
        "command": command or f"build_report in Python, {model!r}",
    }
    folder = files("conformal_gp.report")
    style = folder.joinpath("style.css").read_text("utf-8")
    script = folder.joinpath("script.js").read_text("utf-8")
    allowed = f"style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'; form-action 'none'"
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
        how=how,
        guarantee=escape(guaranteed(fitted.guarantee_, level)),
        notices=attention,
        drawn=drawn,
        n_chart=n_chart,
        last_row=n_chart - 1,
        middle_row=n_chart // 2,
        error=escape(held_out.error()),
        statement=escape(fitted.guarantee_),
        one_set=escape(shown.one_set()),
        which=which,
        coverage=findings_table(held_out.at(TABLED).findings(), "Coverage and width", digits),
        subgroups=subgroups(shown, rows, digits),
        model=model_table(fitted),
        facts=table((), [fact for fact in facts.items() if fact[1]], caption="How this page was made", kind="words"),
    )


def _digest(text: str) -> str:
    """Digest of an inline script or style, by which the content security policy allows it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# Sentences


def verdict(finding: Finding, narrow: Sequence[Finding]) -> tuple[str, str]:
    """Quality of the intervals, and the line that states the coverage of all rows and of the worst subgroup.

    >>> verdict(Finding("conformal", Fraction(9, 10), 352, 20, 14, 2.5, 0), [])
    ('good', '90% intervals covered 90.3% of 352 held-out rows, as expected.')
    """
    quality = QUALITY.get(finding.judgement, DOUBT)
    if narrow and quality != BAD:
        quality = DOUBT
    level = percent(finding.level)
    if finding.judgement == Judgement.INFINITE:
        return quality, f"{level} intervals are infinite: there are too few rows."
    covered = f"{percent(finding.coverage, 1)} of {finding.n_rows:,} held-out rows"
    return quality, f"{level} intervals covered {covered}, {finding.judged(narrow)}."


def guaranteed(statement: str, level: Fraction) -> str:
    """State in short whether intervals are guaranteed.

    >>> guaranteed("Valid: nothing was tuned.", Fraction(9, 10))
    'Guaranteed: if new rows are exchangeable with these, 90% intervals cover with probability at least 90%.'
    """
    if not statement.startswith("Valid"):
        reason = statement.removeprefix("Not valid in general: ").split(". ")[0].rstrip(".")
        return f"Not guaranteed: {reason}."
    opening = "Guaranteed"
    if not statement.startswith("Valid:"):
        opening = "Guaranteed up to Monte Carlo error"
    which = "rows"
    if "new batches" in statement:
        which = "batches"
    at = percent(level)
    return (
        f"{opening}: if new {which} are exchangeable with these, {at} intervals cover with probability at least {at}."
    )


def _notices(
    shown: HeldOut, names: ArrayLike, narrow: Sequence[Finding], drift: Shift | None, helps_most: str
) -> list[Notice]:
    """What to look at: those that warn first. ``names`` are those of the held-out rows."""
    found = [
        Notice(
            "Subgroup",
            f"Where {part.among}, {percent(part.level)} intervals covered only {percent(part.coverage, 1)} of "
            f"{part.n_rows:,} rows (expected {part.expected_in_words}).",
            warns=True,
        )
        for part in narrow[:MOST_NAMED]
    ]
    if drift is not None:
        found.append(Notice("Drift", str(drift), warns=drift.alarm))
    found += [Notice("Outlier", sentence, warns=True) for sentence in _outliers(shown, np.asarray(names))]
    if helps_most:
        found.append(Notice("Advice", helps_most, warns=False))
    found += [
        Notice(topic, sentence, warns=topic in ("Extrapolation", "Designed experiment"))
        for topic, sentence in shown.conditions().items()
    ]
    return sorted(found, key=lambda notice: not notice.warns)


def _outliers(shown: HeldOut, names: Any) -> list[str]:
    """Rows farther from their interval than it is wide, the farthest first: with normal errors, five sigma at 90%."""
    ends = shown.intervals[CONFORMAL]
    low, high = ends[:, :, 0].T
    prediction = shown.prediction[CONFORMAL]
    width = high - low
    away = np.fmax(low - shown.y, shown.y - high)
    far = np.flatnonzero(np.isfinite(width) & (away > width))
    far = far[np.argsort(-away[far])]
    digits = decimals(shown.y, ends)
    sentences = [
        f"Row {names[i]}: {text(shown.y[i], digits)}, predicted {text(prediction[i], digits)}; farther from its "
        f"{percent(shown.levels[0])} interval than the interval is wide. Check its values."
        for i in far[:MOST_NAMED]
    ]
    if far.size > MOST_NAMED:
        sentences.append(f"{far.size - MOST_NAMED} more rows are as far away.")
    return sentences


def nothing_found(drift: Shift | None) -> str:
    """State what was looked for, where nothing was found."""
    looked = "subgroups covered too little, rows outside the training range, outliers"
    if drift is not None:
        looked += ", drift"
    return f"Nothing unusual was found; looked for: {looked}."


def notice_item(notice: Notice) -> str:
    """What to look at, in a list."""
    kind = "notes"
    if notice.warns:
        kind = "warns"
    sentence = notice.text[0].upper() + notice.text[1:]
    return f'<li class="{kind}"><strong>{escape(notice.topic)}.</strong> {escape(sentence)}</li>'


# Tables


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, kind: str = "numbers") -> str:
    """An HTML table of plain text, of the kind "numbers" or "words"; the first cell of each row is its heading."""
    classes = [' class="word"' if name in WORDS else "" for name in head] or ["", ""]
    top = "".join(f'<th scope="col"{each}>{escape(name)}</th>' for each, name in zip(classes, head, strict=False))
    body = ""
    for first, *rest in rows:
        cells = (f"<td{each}>{escape(cell)}</td>" for each, cell in zip(classes[1:], rest, strict=True))
        body += f'<tr><th scope="row">{escape(first)}</th>{"".join(cells)}</tr>'
    if top:
        top = f"<thead><tr>{top}</tr></thead>"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table class="{kind}">'
        f"<caption>{escape(caption)}</caption>{top}<tbody>{body}</tbody></table></div>"
    )


def findings_table(found: Sequence[Finding], caption: str, digits: int) -> str:
    """Coverage of methods at their levels, or of subgroups."""
    first = ("level", "method")
    keys = [(percent(finding.level), finding.method) for finding in found]
    if found[0].among:
        first = ("rows where", "rows")
        keys = [(finding.among, f"{finding.n_rows:,}") for finding in found]
    rows = [
        (
            *key,
            percent(finding.coverage, 1),
            finding.expected_in_words,
            text(finding.median_width, digits),
            finding.judgement.value,
        )
        for key, finding in zip(keys, found, strict=True)
    ]
    return table((*first, "coverage", "expected", "median width", "verdict"), rows, caption=caption)


def subgroups(shown: HeldOut, X: Any, digits: int) -> str:
    """Coverage by group, and by fifths of the prediction and of each input."""
    at = percent(shown.levels[0])
    tables = ""
    for name, parts in (("By group", shown.by_group()), ("By prediction and by each input", shown.by_part(X))):
        if parts:
            tables += findings_table(parts[:MOST_PARTS], f"{name}, at {at}", digits)
    return tables


def model_table(model: Any) -> str:
    """Parameters of the fitted model."""
    transformation = "none"
    if model.target_transform_ is not None:
        transformation = model.target_transform_.name.strip("'")
    difficulty = "no"
    if model.difficulty_ is not None:
        difficulty = "yes"
    facts = {
        "kernel": str(model.kernel_),
        "noise variance": f"{model.noise_variance_:.3g}",
        "mean function": model.mean_,
        "target transformation": transformation,
        "difficulty model": difficulty,
    }
    return table(("setting", "value"), facts.items(), caption="The model, fitted to all rows", kind="words")
