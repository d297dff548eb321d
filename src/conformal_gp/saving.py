"""Save a fitted model to a file without code, in the format of skops, and load it (extra ``io``).

A file contains the training rows, readable by anyone who has it. Loading creates objects of this package, scikit-learn,
NumPy and SciPy only, and returns a regressor of this package or a scikit-learn estimator with one inside.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from conformal_gp.files import write_bytes

__all__ = ["load", "save"]

TRUSTED_PACKAGES = ("conformal_gp", "sklearn")
TRUSTED_TYPES = frozenset({"numpy.dtype"})  # an attribute of imputers
OURS = "conformal_gp.regressor.ConformalGPRegressor"
EXPECTED = "a ConformalGPRegressor, nor a scikit-learn pipeline, search or wrapper with one inside"


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a model; a file that is there is replaced whole or not at all.

    Parameters
    ----------
    model : estimator
        A :class:`~conformal_gp.ConformalGPRegressor`, fitted or not, or one inside any nest of scikit-learn's
        ``Pipeline``, ``GridSearchCV`` and other searches, ``TransformedTargetRegressor``, ``MultiOutputRegressor`` and
        ``FrozenEstimator``. A part that could not be loaded again, such as a function of your own, is a ValueError.
    path : str or path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.saving import load, save
    >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.skops")
    ...     again = load(f"{folder}/model.skops")
    >>> bool(again.predict([[1.0]]) == model.predict([[1.0]]))
    True
    """
    write_bytes(path, dumps(model))


def load(path: str | os.PathLike[str]) -> Any:
    """Load what :func:`save` saved.

    Parameters
    ----------
    path : str or path
        The file. A file that is damaged, has another or an old format, or contains anything but such a model is a
        ValueError.

    Returns
    -------
    model : estimator
        The model; its predictions are those of the one that was saved.

    Examples
    --------
    >>> import tempfile
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.saving import load, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(ConformalGPRegressor("se"), f"{folder}/model.skops")
    ...     load(f"{folder}/model.skops")
    ConformalGPRegressor(kernel='se')
    """
    return loads(Path(path).read_bytes(), os.fspath(path))


def dumps(model: Any) -> bytes:
    """Return a model as the content of a file."""
    try:
        content = bytes(_skops().dumps(model))
    except TypeError as error:
        raise ValueError(f"model cannot be saved: {error}.") from error
    ours, foreign = _types(content)
    if not (ours and isinstance(model, BaseEstimator)):
        raise ValueError(f"model cannot be saved: {type(model).__name__} is not {EXPECTED}.")
    if foreign:
        raise ValueError(f"model cannot be saved: it contains {', '.join(foreign)}, which load would not trust.")
    return content


def loads(content: bytes, name: str = "the file") -> Any:
    """Return the model in the content of a file, which errors call ``name``."""
    skops = _skops()
    model = None
    try:
        ours, foreign = _types(content)
        if not foreign:
            model = skops.loads(content, trusted=skops.get_untrusted_types(data=content))
    except Exception as error:  # a damaged or forged file can fail anywhere
        raise ValueError(f"{name} is not a saved model, or is damaged ({error}).") from error
    if foreign:
        raise ValueError(f"{name} contains {', '.join(foreign)}, which is neither of this package nor of scikit-learn.")
    if not (ours and isinstance(model, BaseEstimator)):
        raise ValueError(f"{name} contains an object of type {type(model).__name__}, which is not {EXPECTED}.")
    return model


def _types(content: bytes) -> tuple[bool, list[str]]:
    """Whether a file contains a regressor of this package, and its types that are not trusted."""
    names = _skops().get_untrusted_types(data=content)
    return OURS in names, [name for name in names if not _is_trusted(name)]


def _is_trusted(name: str) -> bool:
    if name in TRUSTED_TYPES:
        return True
    module, _, attribute = name.rpartition(".")
    if module.split(".")[0] not in TRUSTED_PACKAGES:
        return False
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError:  # a method, whose class is no module
        return False
    return isinstance(found, type) and found.__module__ == module  # not what the module imports


def _skops() -> Any:
    """Import skops; versions before 0.12 do not refuse a forged method."""
    try:
        import skops.io
    except ImportError:
        raise ImportError("Saved models need skops: pip install '.[io]' in a clone of conformal-gp.") from None
    if tuple(map(int, skops.__version__.split(".")[:2])) < (0, 12):
        raise ImportError(f"Saved models need skops 0.12 or later, got {skops.__version__}: pip install -U skops.")
    return skops.io
