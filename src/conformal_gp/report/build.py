"""Build the report page."""

from __future__ import annotations

import base64
import hashlib
import warnings
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from conformal_gp.drift import examine_order
from conformal_gp.evaluation import cross_validate_intervals
from conformal_gp.evaluation.cross_validation import Progress
from conformal_gp.evaluation.kernel_words import conditional
from conformal_gp.regressor import ConformalGPRegressor
from conformal_gp.report import tables
from conformal_gp.report.chart import CONFORMAL, LEVELS, STANDARD, as_json, chart_data


def build_report(
    X: Any,
    y: ArrayLike,
    *,
    target_name: str = "y",
    row_numbers: ArrayLike | None = None,
    title: str | None = None,
    model: Any = None,
    cv: Any = 10,
    y_variance: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    censoring: ArrayLike | None = None,
    batches: ArrayLike | None = None,
    ordered: bool = False,
    condition: str = "",
    random_state: int | None = 0,
    progress: Progress | None = None,
) -> str:
    """An HTML page on the data, the model, its guarantee and the coverage of its intervals, with an interactive chart.

    Rows are predicted by models that were not fitted to them, at every whole percent from 50 to 99. The page opens
    offline, makes no network requests, and runs only the script that it contains.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        Inputs; columns have their names in the data frame, or x0, x1 and so on.
    y : array-like of shape (n_samples,)
        Target.
    target_name, title : str
        Names of the target and of the page.
    row_numbers : array-like of int of shape (n_samples,), or None, default=None
        Row numbers to show in the chart, for example if some rows of a table were left out. None counts from 1.
    model : ConformalGPRegressor or None, default=None
        Model to report on; it is cloned for every fit. None is ``ConformalGPRegressor(random_state=random_state)``.
    cv, y_variance, groups, censoring, batches, progress
        As in :func:`conformal_gp.evaluation.cross_validate_intervals`.
    ordered : bool, default=False
        Whether rows are in an order, such as that of time, in which to test them for drift.
    condition : str, default=""
        Why the guarantee does not apply to these rows, for example that missing values were imputed; the page says so.
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
    >>> page = build_report(X[:60], y[:60], model=model, target_name="rise time", cv=3)
    >>> page.startswith("<!doctype html>"), "rise time" in page
    (True, True)
    """
    if model is None:
        model = ConformalGPRegressor(random_state=random_state)
    if not hasattr(model, "predict_interval"):
        raise ValueError(f"model must have predict_interval, as ConformalGPRegressor has; got {type(model).__name__}.")
    target = np.asarray(y, dtype=np.float64)
    numbers = np.arange(1, target.size + 1)
    if row_numbers is not None:
        numbers = np.asarray(row_numbers)
    if numbers.shape != target.shape:
        raise ValueError(f"row_numbers must have one number for each of {target.size} rows, got {numbers.shape}.")
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
    said = tables.in_short(held_out, rows, target.size)
    if ordered:
        errors = held_out.y - held_out.prediction[CONFORMAL]
        said += examine_order(
            model,
            X,
            target,
            errors,
            held_out.rows,
            y_variance=y_variance,
            numbers=numbers,
            random_state=random_state,
        )
    chart = chart_data(rows, held_out, target_name, numbers[held_out.rows], random_state)
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
        n_held_out=held_out.y.size,
        n_chart=n_chart,
        last_row=n_chart - 1,
        middle_row=n_chart // 2,
        in_short=tables.paragraphs(said),
        guarantee=tables.guarantee(conditional(fitted.guarantee_, condition)),
        coverage=tables.coverage_table(held_out),
        parts=tables.parts(held_out, rows),
        importance=tables.importance(held_out),
        model=tables.model_table(fitted),
    )


def _digest(text: str) -> str:
    """Digest of an inline script or style, by which the content security policy allows it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
