"""Save a fitted model to a file, and load it: one skops file, which holds no code (``pip install 'conformal-gp[io]'``).

A file holds the training rows, readable by anyone who has it. Loading makes objects of this package, of scikit-learn,
NumPy and SciPy only.
"""

from __future__ import annotations

import io
import os
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

from conformal_gp.files import write_bytes

__all__ = ["load", "save"]

TRUSTED_PACKAGES = ("conformal_gp", "sklearn")
OLD_DOCUMENT = "model.json"  # in files of releases up to 0.2


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a model; a file that is there is replaced whole or not at all.

    Parameters
    ----------
    model : estimator
        A regressor of this package, or a scikit-learn estimator that holds one, fitted or not. A part that could not
        be loaded again, such as a function of your own, is a ValueError.
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
        The file; if it is damaged, of another kind or an old format, or holds types of other packages, a ValueError
        says so.

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
    """A model as the content of a file."""
    try:
        content = bytes(_skops().dumps(model))
    except TypeError as error:
        raise ValueError(f"model cannot be saved: {error}.") from error
    foreign = _foreign_types(content)
    if foreign:
        raise ValueError(f"model cannot be saved: it holds {', '.join(foreign)}, which load would not trust.")
    return content


def loads(content: bytes, name: str = "the file") -> Any:
    """A model from the content of a file, which errors call ``name``."""
    skops = _skops()
    try:
        members = zipfile.ZipFile(io.BytesIO(content)).namelist()
    except zipfile.BadZipFile:
        raise ValueError(f"{name} is not a saved model, or is damaged.") from None
    if OLD_DOCUMENT in members:
        raise ValueError(
            f"{name} has the format of conformal-gp 0.2 and before: fit the model again, or load the file with that "
            "release, pickle the model, and save it with this one."
        )
    try:
        foreign = _foreign_types(content)
        if not foreign:
            return skops.loads(content, trusted=skops.get_untrusted_types(data=content))
    except Exception as error:  # a damaged or forged file can fail anywhere
        raise ValueError(f"{name} is not a saved model, or is damaged ({error}).") from error
    raise ValueError(f"{name} holds {', '.join(foreign)}, which is neither of this package nor of scikit-learn.")


def _foreign_types(content: bytes) -> list[str]:
    """Types in a file that neither skops trusts nor are classes of this package or of scikit-learn."""
    return [name for name in _skops().get_untrusted_types(data=content) if not _is_trusted(name)]


def _is_trusted(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    if module.split(".")[0] not in TRUSTED_PACKAGES:
        return False
    found = getattr(import_module(module), attribute, None)
    return isinstance(found, type) and found.__module__ == module  # not what the module imports


def _skops() -> Any:
    try:
        import skops.io
    except ImportError:
        raise ImportError("Saved models need skops: pip install 'conformal-gp[io]'.") from None
    return skops.io
