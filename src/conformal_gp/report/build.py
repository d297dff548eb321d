"""Build the report page."""

from __future__ import annotations

import base64
import hashlib
import warnings
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from conformal_gp.evaluation import cross_validate_intervals, folds
from conformal_gp.evaluation.cross_validation import Progress
from conformal_gp.frames import encoded_inputs
from conformal_gp.regressor import ConformalGPRegressor
from conformal_gp.report.chart import as_json, chart_data
from conformal_gp.report.numbers import CONFORMAL, LEVELS, PLAIN, QUANTILES
from conformal_gp.report.tables import coverage_table, data_table, guarantee, in_short, model_table, width_table
from conformal_gp.report.where import importance_section, parts_section, rows_beyond
from conformal_gp.validation import check_labels

MODEL_METHODS = ("fit", "predict", "predict_interval", "predict_p", "predict_quantiles")


def build_report(
    X: Any,
    y: ArrayLike,
    *,
    feature_names: Sequence[str] | None = None,
    groups: Mapping[str, Sequence[int]] | None = None,
    target_name: str = "y",
    row_numbers: ArrayLike | None = None,
    title: str | None = None,
    model: Any = None,
    cv: Any = 10,
    max_chart_rows: int = 200,
    label_range: tuple[float, float] = (-np.inf, np.inf),
    noise_variance: ArrayLike | None = None,
    random_state: int | None = 0,
    progress: Progress | None = None,
) -> str:
    """An HTML page on the data, the model, its guarantee and the coverage of its intervals, with an interactive chart.

    Rows are predicted by models that have not seen them, at every whole percent from 50 to 99. The page opens offline,
    makes no network requests, and runs no script but its own.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        Inputs.
    y : array-like of shape (n_samples,)
        Labels.
    feature_names : sequence of str or None, default=None
        Names of the inputs. None takes the columns of a data frame, or x0, x1 and so on.
    groups : mapping of str to sequence of int, or None, default=None
        Inputs that belong together, as those of one column of categories do, by name: which inputs matter is found for
        each group. None takes each input by itself, and each column of a data frame.
    target_name : str, default="y"
        Name of the label.
    row_numbers : array-like of int of shape (n_samples,), or None, default=None
        Row numbers to show in the chart, for example if some rows of a table were left out. None counts from 1.
    title : str or None, default=None
        Title of the page.
    model : ConformalGPRegressor or None, default=None
        Model to report on; it is cloned for every fit. None is ``ConformalGPRegressor(random_state=random_state)``.
    cv : int or splitter, default=10
        Number of shuffled folds, or a scikit-learn splitter that holds out every row once, or some rows once
        (``ShuffleSplit(1, test_size=2000)``), which are then the rows that the page is about.
    max_chart_rows : int, default=200
        Number of rows in the chart, drawn at random. Coverage and widths are over all held-out rows.
    label_range : pair of floats, default=(-inf, inf)
        Least and greatest possible label; intervals are cut off there.
    noise_variance : array-like of shape (n_samples,) or None, default=None
        Known variance of the noise on each label, as ``fit`` of the model takes it.
    random_state : int or None, default=0
        Seed of the folds, of the rows in the chart, and of the default model.
    progress : callable or None, default=None
        Called after each fit with the number of fits done and of all fits.

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
    missing = [method for method in MODEL_METHODS if not hasattr(model, method)]
    if missing:
        raise ValueError(f"model must be a ConformalGPRegressor, got {type(model).__name__} without {missing[0]}.")
    if max_chart_rows < 1:
        raise ValueError(f"max_chart_rows must be at least 1, got {max_chart_rows}.")
    fitted = clone(model)
    inputs = encoded_inputs(fitted, X, reset=True, y=y)
    labels = check_labels(y, inputs)
    names = _names(feature_names, fitted, inputs.shape[1])
    numbers = np.arange(1, labels.size + 1) if row_numbers is None else np.asarray(row_numbers)
    if numbers.shape != labels.shape:
        raise ValueError(f"row_numbers must have one number for each of {labels.size} rows, got {numbers.shape}.")
    n_folds = folds(cv, labels.size, random_state).get_n_splits(inputs, labels)

    def done(fits: int, _: int) -> None:
        if progress is not None:
            progress(fits, n_folds + 1)

    with warnings.catch_warnings():  # the page says where intervals are infinite
        warnings.filterwarnings("ignore", message="(confidence_level|quantile)=", category=UserWarning)
        held_out = cross_validate_intervals(
            {CONFORMAL: model},
            inputs,
            labels,
            LEVELS,
            cv=cv,
            random_state=random_state,
            plain=PLAIN,
            p_values=True,
            quantiles=QUANTILES,
            groups=_groups(fitted, names) if groups is None else groups,
            partial=True,
            label_range=label_range,
            noise_variance=noise_variance,
            progress=done,
        )
    fitted.fit(X, y, **({} if noise_variance is None else {"noise_variance": noise_variance}))
    done(n_folds + 1, 0)

    rows = held_out.rows
    chart = chart_data(
        inputs[rows],
        held_out,
        names,
        target_name,
        numbers[rows],
        max_rows=max_chart_rows,
        random_state=random_state,
    )
    style, script = _part("style.css"), _part("script.js")
    return Template(_part("page.html")).substitute(
        title=escape(title or f"Prediction intervals for {target_name}"),
        target=escape(target_name),
        policy=f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'; "
        "form-action 'none'",
        style=style,
        script=script,
        json=as_json(chart),
        n_held_out=rows.size,
        n_chart=len(chart["rows"]),
        last_row=len(chart["rows"]) - 1,
        middle_row=len(chart["rows"]) // 2,
        held_out=_how(rows.size, labels.size, n_folds),
        verdict=in_short(held_out),
        guarantee=guarantee(fitted),
        beyond=rows_beyond(held_out),
        coverage_table=coverage_table(held_out),
        width_table=width_table(held_out),
        parts=parts_section(held_out, inputs[rows], names),
        importance=importance_section(held_out),
        data_table=data_table(inputs, labels, names, target_name),
        model_table=model_table(fitted, names),
    )


def _how(n_held_out: int, n_rows: int, n_folds: int) -> str:
    """How rows were held out."""
    if n_held_out == n_rows:
        how = f"({n_folds}-fold cross-validation)"
        return f"Each of the {n_rows} rows was predicted by a model that had not seen it {how}."
    return f"{n_held_out} of the {n_rows} rows were held out, and predicted by a model that had not seen them."


def _names(given: Sequence[str] | None, fitted: Any, n_features: int) -> list[str]:
    """Names of the inputs: as given, as in the data frame, or numbered."""
    known = getattr(fitted, "feature_names_in_", [f"x{j}" for j in range(fitted.n_features_in_)])
    if fitted._encoding is not None:
        known = fitted._encoding.names(known)
    names = [str(name) for name in (known if given is None else given)]
    if len(names) != n_features:
        raise ValueError(f"feature_names must have one name for each of {n_features} inputs, got {len(names)}.")
    return names


def _groups(fitted: Any, names: Sequence[str]) -> dict[str, list[int]]:
    """The inputs that each column of a frame became, or each input by itself."""
    if fitted._encoding is None:
        return {name: [j] for j, name in enumerate(names)}
    return dict(fitted._encoding.groups(fitted.feature_names_in_))


def _part(name: str) -> str:
    return files("conformal_gp.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Digest of an inline script or style, by which the content security policy allows it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
