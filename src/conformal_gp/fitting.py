"""From a regressor's parameters and training rows to what tuning decides."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from conformal_gp.arrays import Array
from conformal_gp.gp.inputs import Rows
from conformal_gp.large.rows import ArrayRows, RowSource
from conformal_gp.models.choices import check_domain
from conformal_gp.models.draws import integrated
from conformal_gp.models.low_rank_tuning import low_rank
from conformal_gp.models.settings import Settings, check_kernels, check_transform, check_tuning_rows
from conformal_gp.models.tuned import Tuned
from conformal_gp.models.tuning import fixed, holdout, train
from conformal_gp.models.tuning_rows import ROWS_FOR_EXACT, automatic
from conformal_gp.targets.target import Bounds, check_within
from conformal_gp.validation import (
    check_inputs,
    check_known_noise,
    check_labels,
    check_squares,
    check_unmasked,
    encoded_inputs,
)

METHODS: dict[str, Callable[[Settings, Rows, Array, np.random.RandomState], Tuned]] = {
    "integrated": integrated,
    "holdout": holdout,
    "train": train,
    "fixed": fixed,
}


def read_rows(model: Any, X: Any, y: Any, y_variance: Any) -> RowSource:
    """Checked training rows; arrays are copied, as the caller may change theirs."""
    model._encoding = None
    model._frame = None
    model._has_y_variance = y_variance is not None
    if hasattr(X, "__dask_graph__"):
        from conformal_gp.large.dask import dask_rows

        return dask_rows(model, X, y, y_variance, bool(model.verbose))
    if isinstance(X, np.memmap):  # not read as a whole: only the first rows are checked here
        check_inputs(model, X[:2], reset=True, y=y)
        inputs: Any = X
    else:
        inputs = encoded_inputs(model, X, reset=True, y=y).copy()
    targets = check_labels(y, inputs).copy()
    check_within(model.y_bounds, targets)
    if y_variance is not None:
        y_variance = check_known_noise(y_variance, inputs).copy()
    names = getattr(model, "feature_names_in_", None)
    return ArrayRows(inputs, targets, y_variance, model.n_jobs, bool(model.verbose), names)


def tune(model: Any, source: RowSource) -> tuple[str, Tuned]:
    """Choose a tuning method and follow it; its name, and what it decides."""
    n_inputs = model.n_features_in_
    if model._encoding is not None:
        n_inputs = model._encoding.n_inputs
    settings = _settings(model, source.n_rows)
    inducing = _inducing(model, source)
    tuning = model.tuning
    if tuning == "auto":
        tuning = "holdout" if inducing is not False else automatic(settings, source.n_rows)
    settings = settings.resolved(tuning, source.n_rows, n_inputs)
    is_auto = isinstance(model.low_rank, str)
    if inducing is False and is_auto and tuning == "holdout" and source.n_rows > ROWS_FOR_EXACT:
        inducing = None
    if inducing is not False and tuning not in ("holdout", "fixed"):
        raise ValueError(f"low_rank is for tuning='holdout' or 'fixed', not for tuning={tuning!r}.")
    # without a seed, draws of a chain are the same at every fit
    seed = 0 if tuning == "integrated" and model.random_state is None else model.random_state
    rng = check_random_state(seed)
    if isinstance(source, ArrayRows):
        check_domain(settings, source.y)
    if inducing is not False:
        return tuning, low_rank(settings, source, n_inputs, rng, tuning, inducing)
    if not isinstance(source, ArrayRows):
        raise ValueError("low_rank must not be False for a Dask collection.")
    return tuning, METHODS[tuning](settings, source.rows, source.y, rng)


def _settings(model: Any, n_rows: int) -> Settings:
    """Parameters as one checked value."""
    bounds = None
    if isinstance(model.y_bounds, tuple | list):
        bounds = Bounds.of(model.y_bounds)
    return Settings(
        check_kernels(model.kernel),
        model.mean,
        None if model.noise_variance is None else float(model.noise_variance),
        float(model.gamma),
        model.scale_inputs,
        model.n_restarts,
        model.n_jobs,
        tuning_rows=check_tuning_rows(model.tuning_rows, n_rows),
        ard=model.ard,
        target_transform=check_transform(model.target_transform),
        difficulty=model.difficulty,
        bounds=bounds,
        learns_bounds=model.y_bounds == "auto",
        known_noise=model._has_y_variance,
    )


def _inducing(model: Any, source: RowSource) -> Any:
    """Inducing inputs as ``low_rank`` asks for them: False for none, None for a default, a number or inputs."""
    given = model.low_rank
    if isinstance(given, str):
        in_memory = isinstance(source, ArrayRows) and source.in_memory
        return False if in_memory else None
    if isinstance(given, bool | np.bool_):
        if given:
            raise ValueError("low_rank must be 'auto', False, a number of inducing inputs or these inputs, got True.")
        return False
    if isinstance(given, Integral):
        return int(given)
    if model._encoding is not None:
        return encoded_inputs(model, given, reset=False)
    check_unmasked("low_rank", given)
    inputs = validate_data(model, given, reset=False, dtype=np.float64)
    check_squares("low_rank", inputs)
    return inputs
