"""A fitted regressor as a document and arrays, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import conformal_gp
from conformal_gp.fitting import Recipe, rebuild
from conformal_gp.gp.candidates import Candidate
from conformal_gp.gp.scaling import Scaling
from conformal_gp.gp.threads import one_blas_thread
from conformal_gp.persistence.archive import (
    FORMAT,
    FORMAT_VERSION,
    ModelFileError,
    Target,
    read_archive,
    write_archive,
)
from conformal_gp.persistence.values import from_json, to_json
from conformal_gp.regressor import ConformalGPRegressor
from conformal_gp.tables.columns import Columns


def save_model(model: ConformalGPRegressor, path: Target, *, columns: Columns | None = None) -> None:
    """Save a fitted model to one file.

    The file holds parameters, what was learnt, and the training rows, which full conformal prediction needs: whoever
    has the file can read them. ``random_state`` is kept if it is a number.

    Parameters
    ----------
    model : ConformalGPRegressor
        A fitted model. Its kernels must be made of scikit-learn's and of this package's: your own class would need its
        code, and a file holds none.
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
    if type(model) is not ConformalGPRegressor:
        raise ValueError(f"model must be a ConformalGPRegressor, got {type(model).__name__}.")
    check_is_fitted(model)
    names = getattr(model, "feature_names_in_", None)
    parameters = model.get_params(deep=False)
    if isinstance(parameters["random_state"], np.random.RandomState):
        parameters["random_state"] = None
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "package_version": conformal_gp.__version__,
        "parameters": {name: to_json(value, name) for name, value in parameters.items()},
        "feature_names": None if names is None else [str(name) for name in names],
        "tuning": model.tuning_,
        "recipe": _recipe_to_json(model._recipe),
        "columns": None if columns is None else columns.to_json(),
    }
    X, y = model._training_rows
    write_archive(path, document, {"X": X, "y": y})


def load_model(path: Target) -> ConformalGPRegressor:
    """Load a model that :func:`save_model` saved; nothing in the file is run.

    Predictions, intervals, regions and p-values are those of the saved model.

    Parameters
    ----------
    path : str, path, or binary file open for reading
        Where from.

    Returns
    -------
    model : ConformalGPRegressor
        The fitted model.

    Raises
    ------
    ModelFileError
        A ValueError, if the file is foreign, newer than this package, truncated or damaged.
    """
    return load_columns(path)[0]


def load_columns(path: Target) -> tuple[ConformalGPRegressor, Columns | None]:
    """Load a model, and how the columns of its table became inputs, where the file says so.

    Parameters
    ----------
    path : str, path, or binary file open for reading
        Where from.

    Returns
    -------
    model : ConformalGPRegressor
        The fitted model.
    columns : Columns or None
        What ``save_model`` was given.
    """
    document, arrays = read_archive(path)
    try:
        X, y = _rows(arrays)
        model = ConformalGPRegressor(**{name: from_json(value) for name, value in document["parameters"].items()})
        recipe = _recipe_from_json(document["recipe"])
        columns = None if document["columns"] is None else Columns.from_json(document["columns"])
        model.tuning_ = str(document["tuning"])
        model.n_features_in_ = X.shape[1]
        if document["feature_names"] is not None:
            model.feature_names_in_ = np.array(document["feature_names"], dtype=object)
        with one_blas_thread(rows=y.size):
            model._take(rebuild(recipe, X, y, model.n_jobs), X, y)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise ModelFileError(f"{path} does not hold a complete model ({type(error).__name__}: {error}).") from error
    return model, columns


def _rows(arrays: dict[str, NDArray[Any]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    X, y = arrays["X"], arrays["y"]
    if X.dtype != np.float64 or y.dtype != np.float64 or X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(f"X has shape {X.shape} and type {X.dtype}, y has shape {y.shape} and type {y.dtype}")
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise ValueError("the training rows are not finite")
    return X, y


def _recipe_to_json(recipe: Recipe) -> dict[str, Any]:
    scaling = recipe.scaling
    return {
        "candidates": [[to_json(c.kernel, "kernel"), to_json(c.noise_variance, "noise")] for c in recipe.candidates],
        "mean": recipe.mean,
        "scaling": None if scaling is None else to_json((scaling.location, scaling.scale), "scaling"),
        "gamma": to_json(recipe.gamma, "gamma"),
        "guarantee": recipe.guarantee,
        "design": to_json(recipe.design, "design"),
        "inside_bag": recipe.inside_bag,
        "flat_prior": recipe.flat_prior,
    }


def _recipe_from_json(document: dict[str, Any]) -> Recipe:
    scaling = document["scaling"]
    return Recipe(
        [Candidate(from_json(kernel), from_json(noise)) for kernel, noise in document["candidates"]],
        document["mean"],
        None if scaling is None else Scaling(*from_json(scaling)),
        from_json(document["gamma"]),
        document["guarantee"],
        from_json(document["design"]),
        document["inside_bag"],
        document["flat_prior"],
    )
