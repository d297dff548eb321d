"""A fitted regressor as a document and arrays, and back."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import conformal_gp
from conformal_gp.persistence.archive import (
    FORMAT,
    FORMAT_VERSION,
    ModelFileError,
    Target,
    name_of,
    read_archive,
    write_archive,
)
from conformal_gp.persistence.checks import (
    check_known_noise,
    check_names,
    check_parameters,
    check_plan,
    check_rows,
    check_tuning,
    read_encoding,
)
from conformal_gp.persistence.plans import plan_from_json, plan_to_json
from conformal_gp.persistence.values import from_json, to_json
from conformal_gp.regressor import ConformalGPRegressor
from conformal_gp.rows import ArrayRows
from conformal_gp.sparse import SparseConformalGPRegressor
from conformal_gp.tables.columns import Columns
from conformal_gp.threads import one_blas_thread
from conformal_gp.tuning.low_rank import LowRankPlan
from conformal_gp.tuning.plan import Plan
from conformal_gp.types import Array
from conformal_gp.validation import check_labels

Model = ConformalGPRegressor | SparseConformalGPRegressor

MODELS: dict[str, type[Model]] = {model.__name__: model for model in (ConformalGPRegressor, SparseConformalGPRegressor)}


def save_model(model: Model, path: Target, *, columns: Columns | None = None) -> None:
    """Save a fitted model to one file.

    The file holds parameters, what was learnt, and the training rows, which full conformal prediction needs: whoever
    has the file can read them. They take up to 8 bytes a number, 88 MB for a million rows of 10 inputs and a label, and
    are read into memory where they come from a memory map. ``random_state`` is kept if it is a number.

    Parameters
    ----------
    model : ConformalGPRegressor or SparseConformalGPRegressor
        A fitted model. Its kernels must be made of scikit-learn's and of this package's: your own class would need its
        code, and a file holds none. Models fitted to Dask collections are not saved: their rows are elsewhere.
    path : str, path, or binary file open for writing
        Where to; a file that exists is replaced.
    columns : Columns, default=None
        How the columns of a table became inputs (``conformal-gp fit`` stores them).

    Examples
    --------
    >>> import io
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.persistence import load_model, save_model
    >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
    >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> file = io.BytesIO()
    >>> save_model(model, file)
    >>> loaded = load_model(io.BytesIO(file.getvalue()))
    >>> bool(loaded.predict([[1.0]]) == model.predict([[1.0]]))
    True
    """
    if type(model) not in MODELS.values():
        raise ValueError(f"model must be a {' or '.join(MODELS)}, got {type(model).__name__}.")
    check_is_fitted(model)
    X, y = _training_rows(model)
    check_rows(X)
    check_parameters(model, y.size, model._n_inputs)  # they may have been set since the fit, and would not be loaded
    names = getattr(model, "feature_names_in_", None)
    parameters = model.get_params(deep=False)
    if isinstance(parameters["random_state"], np.random.RandomState):
        parameters["random_state"] = None
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "package_version": conformal_gp.__version__,
        "model": type(model).__name__,
        "parameters": {name: to_json(value, name) for name, value in parameters.items()},
        "feature_names": None if names is None else [str(name) for name in names],
        "encoding": None if model._encoding is None else to_json(astuple(model._encoding), "a category"),
        "known_noise": model._known_noise,
        **_learnt(model),
        "columns": None if columns is None else columns.to_json(),
    }
    write_archive(path, document, {"X": X, "y": y})


def load_model(path: Target) -> Model:
    """Load a model that :func:`save_model` saved; nothing in the file is run.

    Predictions, intervals, regions and p-values are those of the saved model, whose training rows are now in memory.

    Parameters
    ----------
    path : str, path, or binary file open for reading
        Where from.

    Returns
    -------
    model : ConformalGPRegressor or SparseConformalGPRegressor
        The fitted model.

    Raises
    ------
    ModelFileError
        A ValueError, if the file is foreign, newer than this package, truncated or damaged.

    Examples
    --------
    >>> import io
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.persistence import load_model, save_model
    >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> file = io.BytesIO()
    >>> save_model(model, file)
    >>> load_model(io.BytesIO(file.getvalue())).predict([[1.0]]) == model.predict([[1.0]])
    array([ True])
    """
    return load_columns(path)[0]


def load_columns(path: Target) -> tuple[Model, Columns | None]:
    """Load a model, and how the columns of its table became inputs, where the file says so.

    Parameters
    ----------
    path
        As in :func:`load_model`.

    Returns
    -------
    model, columns
        The model, and what ``save_model`` was given, or None.

    Examples
    --------
    >>> import io
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.persistence import load_columns, save_model
    >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> file = io.BytesIO()
    >>> save_model(model, file)
    >>> loaded, columns = load_columns(io.BytesIO(file.getvalue()))
    >>> loaded.n_features_in_, columns is None
    (1, True)
    """
    document, arrays = read_archive(path)
    try:
        return _model(document, arrays)
    except Exception as error:  # a forged document can hold anything, and fail anywhere
        raise ModelFileError(
            f"{name_of(path)} does not hold a complete model ({type(error).__name__}: {error})."
        ) from error


def _model(document: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> tuple[Model, Columns | None]:
    """The model that a document describes; every value passes the checks that it would at the front door."""
    X, y = _rows(arrays)
    kind = MODELS[document["model"]]
    model = kind(**{name: from_json(value) for name, value in document["parameters"].items()})
    n_inputs = X.shape[1] - check_known_noise(document.get("known_noise", False), X)
    model._encoding = read_encoding(from_json(document.get("encoding")), n_inputs)
    n_features = n_inputs if model._encoding is None else len(model._encoding.categories)
    check_parameters(model, y.size, n_inputs)
    columns = None if document["columns"] is None else Columns.from_json(document["columns"])
    model.n_features_in_ = n_features
    names = document["feature_names"]
    if names is not None:
        check_names(names, n_features)
        model.feature_names_in_ = np.array(names, dtype=object)
    if columns is not None:
        check_names(columns.input_names, n_inputs)
    _rebuild(model, document, X, y)
    return model, columns


def _training_rows(model: Model) -> tuple[Array, Array]:
    if isinstance(model, ConformalGPRegressor):
        return model._training_rows
    rows = model._training_rows
    if not isinstance(rows, ArrayRows):
        raise ValueError(
            "model cannot be saved: it was fitted to Dask collections, and a file has to hold the training rows. Fit "
            "it to arrays (X.compute(), y.compute()) or to a NumPy memory map to save it."
        )
    return rows.take(np.arange(rows.n_rows))


def _learnt(model: Model) -> dict[str, Any]:
    """What is in the document of one kind of model only."""
    if isinstance(model, ConformalGPRegressor):
        return {"tuning": model.tuning_, "plan": plan_to_json(model._plan)}
    return {"plan": plan_to_json(model._plan)}


def _rebuild(model: Model, document: dict[str, Any], X: Array, y: Array) -> None:
    """Fit a model to its rows, as the document says it was, without learning."""
    plan = plan_from_json(document["plan"])
    check_plan(plan, X, model._n_inputs)
    if isinstance(model, SparseConformalGPRegressor) and isinstance(plan, LowRankPlan):
        model._rebuild(plan, X, y)
    elif isinstance(model, ConformalGPRegressor) and isinstance(plan, Plan):
        check_tuning(model, document["tuning"])
        with one_blas_thread(rows=y.size):
            model._carry_out(plan, document["tuning"], X, y)
    else:
        raise ValueError(f"a {type(plan).__name__} is no plan of a {type(model).__name__}")


def _rows(arrays: dict[str, NDArray[Any]]) -> tuple[Array, Array]:
    X, y = arrays["X"], arrays["y"]
    if arrays.keys() != {"X", "y"}:
        raise ValueError(f"the arrays are {', '.join(arrays)}")
    if X.dtype != np.float64 or y.dtype != np.float64 or X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(f"X has shape {X.shape} and type {X.dtype}, y has shape {y.shape} and type {y.dtype}")
    if X.size == 0:
        raise ValueError(f"X has shape {X.shape}")
    check_rows(X)
    return X, check_labels(y, X)
