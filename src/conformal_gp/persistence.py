"""Former names of :func:`conformal_gp.io.save` and :func:`conformal_gp.io.load`, for one release."""

from __future__ import annotations

import os
import warnings
from typing import Any

from conformal_gp.io import load, save


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Use :func:`conformal_gp.io.save`."""
    warnings.warn("save_model is now conformal_gp.io.save.", FutureWarning, stacklevel=2)
    save(model, path)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Use :func:`conformal_gp.io.load`."""
    warnings.warn("load_model is now conformal_gp.io.load.", FutureWarning, stacklevel=2)
    return load(path)
