"""Build the report page."""

from __future__ import annotations

import base64
import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from conformal_gp import __version__
from conformal_gp.drift import examine_order
from conformal_gp.evaluation import cross_validate_intervals
from conformal_gp.evaluation.cross_validation import Progress
from conformal_gp.evaluation.kernel_words import conditional
from conformal_gp.regressor import ConformalGPRegressor
from conformal_gp.report import tables, words
from conformal_gp.report.chart import CONFORMAL, LEVELS, STANDARD, as_json, chart_data


@dataclass(frozen=True)
class Origin:
    """Facts about the rows of a report, for its chart and its foot.

    Examples
    --------
    >>> from conformal_gp.report import Origin
    >>> Origin(file="cars.csv", row_names=["Fiat", "Ford"]).labels(2)
    ['1 (Fiat)', '2 (Ford)']
    """

    file: str = ""
    """Name of the file that they come from."""
    notes: Sequence[str] = ()
    """What was done to the file, in sentences: rows that were left out, and why."""
    command: str = ""
    """The command that made the page; advice then names its options. Without one, advice names Python parameters."""
    condition: str = ""
    """Why the guarantee does not apply to these rows, for example that missing values were imputed."""
    row_numbers: ArrayLike | None = None
    """Row numbers, for example if some rows of a file were left out; None counts from 1."""
    row_names: ArrayLike | None = None
    """Names of the rows."""

    def numbers(self, n_rows: int) -> Any:
        """Row numbers; raises if they are not one for each row."""
        if self.row_numbers is None:
            return np.arange(1, n_rows + 1)
        numbers = np.asarray(self.row_numbers)
        if numbers.shape != (n_rows,):
            raise ValueError(f"row_numbers must have one number for each of {n_rows} rows, got {numbers.shape}.")
        return numbers

    def labels(self, n_rows: int) -> list[str]:
        """What rows are called: by their numbers and names."""
        numbers = [str(number) for number in self.numbers(n_rows)]
        if self.row_names is None:
            return numbers
        return [
            f"{number} ({name})" if name else number
            for number, name in zip(numbers, np.asarray(self.row_names), strict=True)
        ]


def build_report(
    X: Any,
    y: ArrayLike,
    *,
    target_name: str = "y",
    title: str | None = None,
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
    target_name, title : str
        Names of the target, with its unit, and of the page.
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
    numbers = origin.numbers(target.size)
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
            importance=True,
            progress=progress,
            **known,
        )
    rows = _safe_indexing(X, held_out.rows)
    drift = None
    if ordered:
        errors = held_out.y - held_out.prediction[CONFORMAL]
        options: dict[str, Any] = {"y_variance": y_variance, "numbers": numbers, "random_state": random_state}
        drift = examine_order(model, X, target, errors, held_out.rows, **options)
    level = words.shown_level(held_out)
    every_label = origin.labels(target.size)
    labels = [every_label[row] for row in held_out.rows]
    chart = chart_data(rows, held_out, target_name, labels, level, random_state)
    finding = held_out.at([level]).findings()[0]
    line = words.verdict(finding, words.too_narrow(held_out, rows, level))
    statement = conditional(fitted.guarantee_, origin.condition)
    guarantee, meaning = words.guaranteed(statement, level)
    quality = line.quality
    if quality == words.GOOD and not statement.startswith("Valid"):
        quality = words.DOUBT
    notices = words.notices(held_out, rows, labels, level, drift, command=bool(origin.command))
    attention = f"<ul>{tables.notice_list(notices)}</ul>"
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
        title=escape(title or f"Prediction intervals for {target_name}"),
        target=escape(target_name),
        policy=f"default-src 'none'; {allowed}",
        style=style,
        script=script,
        json=as_json(chart),
        level=f"{100 * level}",
        quality=quality,
        verdict=escape(line.line),
        how=escape(words.held_out_how(held_out, target.size)),
        guarantee=escape(guarantee),
        notices=attention,
        drawn=words.drawn(n_chart, held_out.y.size),
        n_chart=n_chart,
        last_row=n_chart - 1,
        middle_row=n_chart // 2,
        error=escape(held_out.error()),
        meaning=escape(f"{meaning} {held_out.at([level]).one_set()}"),
        statement=escape(statement),
        scope=words.scope(held_out),
        coverage=tables.coverage_table(held_out),
        subgroups=tables.subgroups(held_out, rows, level),
        importance=tables.importance(held_out),
        model=tables.model_table(fitted),
        facts=tables.table(
            (), [(name, fact) for name, fact in facts.items() if fact], caption="How this page was made", kind="words"
        ),
    )


def _digest(text: str) -> str:
    """Digest of an inline script or style, by which the content security policy allows it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
