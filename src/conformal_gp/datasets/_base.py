"""Read a bundled CSV file and return it in the form that was asked for."""

import csv
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

DATA_MODULE = "conformal_gp.datasets.data"


def load_bundled(name: str, *, text: tuple[str, ...] = (), return_X_y: bool, as_frame: bool, raw: bool) -> Any:
    """Load one bundled data set.

    Parameters
    ----------
    name : str
        File name without its ending; the loader is called ``load_<name>``.
    text : tuple of str, default=()
        The inputs whose values are text.
    return_X_y, as_frame, raw : bool
        As in the public loaders.

    Returns
    -------
    Bunch or tuple
        As in the public loaders.
    """
    for argument, value in (("return_X_y", return_X_y), ("as_frame", as_frame), ("raw", raw)):
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{argument} must be True or False, got {value!r}")
    pandas = _import_pandas(f"load_{name}") if as_frame else None

    filename = f"{name}.csv"
    header, columns = _read_columns(filename)
    *feature_names, target_name = header
    categories = {feature: sorted(set(columns[feature])) for feature in text}

    inputs: dict[str, NDArray[Any]] = {}
    for feature in feature_names:
        if feature not in text:
            inputs[feature] = np.array(columns[feature], dtype=float)
        elif raw:
            inputs[feature] = np.array(columns[feature], dtype=object)
        else:
            inputs[feature] = np.searchsorted(categories[feature], columns[feature]).astype(float)

    data: Any
    target: Any = np.array(columns[target_name], dtype=float)
    frame = None
    if pandas is None:
        data = np.column_stack(list(inputs.values()))
    else:
        data = pandas.DataFrame({k: v.tolist() if v.dtype == object else v for k, v in inputs.items()})
        target = pandas.Series(target, name=target_name)
        frame = pandas.concat([data, target], axis=1)

    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=feature_names,
        target_names=[target_name],
        categories=categories,
        DESCR=_read_text(f"{name}.rst"),
        filename=filename,
        data_module=DATA_MODULE,
    )


def _read_text(filename: str) -> str:
    """Text of one bundled file."""
    return files(DATA_MODULE).joinpath(filename).read_text(encoding="utf-8")


def _read_columns(filename: str) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Header of a bundled CSV file, and its columns as strings."""
    header, *rows = csv.reader(_read_text(filename).splitlines())
    return header, dict(zip(header, zip(*rows, strict=True), strict=True))


def _import_pandas(caller: str) -> Any:
    """Import pandas, or raise an error that says how to install it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"{caller} needs pandas when as_frame=True; install it with `pip install pandas`") from error
    return pandas
