"""Parameters as JSON: numbers, text, sequences, arrays, and kernels of known classes.

A kernel is written as the name of its class and its parameters. Names stand for the classes of one fixed list, so that
reading never looks up, imports or calls anything that a file names.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as sklearn_kernels
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.kernels import NeuralNetwork

ARRAY_KINDS = "biufU"
"""Kinds of array that are stored: numbers and text, no objects."""
# As NumPy writes the types of those kinds; text of at most 9999 characters.
_DTYPE = re.compile(r"[<>|=]([biuf](1|2|4|8|16)|U\d{1,4})")
KERNELS: dict[str, type[Kernel]] = {
    kernel.__name__: kernel
    for kernel in (
        NeuralNetwork,
        sklearn_kernels.ConstantKernel,
        sklearn_kernels.DotProduct,
        sklearn_kernels.ExpSineSquared,
        sklearn_kernels.Exponentiation,
        sklearn_kernels.Matern,
        sklearn_kernels.PairwiseKernel,
        sklearn_kernels.Product,
        sklearn_kernels.RationalQuadratic,
        sklearn_kernels.RBF,
        sklearn_kernels.Sum,
        sklearn_kernels.WhiteKernel,
    )
}


def to_json(value: Any, name: str) -> Any:
    """Write a value as JSON; ``name`` is what errors call it.

    >>> to_json((0.5, float("inf")), "bounds")
    {'tuple': [0.5, {'float': 'inf'}]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{name} cannot be saved: {value} has more than 64 bits.")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Kernel):
        return _kernel_to_json(value, name)
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in ARRAY_KINDS:
            raise ValueError(f"{name} cannot be saved: arrays of type {value.dtype} are not stored.")
        return {"array": [to_json(item, name) for item in value.tolist()], "dtype": value.dtype.str}
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [to_json(item, name) for item in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: to_json(item, f"{name}[{key!r}]") for key, item in value.items()}}
    if hasattr(value, "__array__"):  # a data frame, say: what it holds is kept, not what it is
        return to_json(np.asarray(value), name)
    raise ValueError(f"{name} cannot be saved: {value!r} is of type {type(value).__name__}, whose code is not stored.")


def _kernel_to_json(kernel: Kernel, name: str) -> dict[str, Any]:
    kind = type(kernel)
    if KERNELS.get(kind.__name__) is not kind:
        raise ValueError(
            f"{name} cannot be saved: it contains {kind.__module__}.{kind.__qualname__}, and a file holds no code. "
            f"Kernels that can be saved are made of {', '.join(sorted(KERNELS))}."
        )
    parameters = kernel.get_params(deep=False)
    return {
        "kernel": kind.__name__,
        "parameters": {key: to_json(item, f"{name}.{key}") for key, item in parameters.items()},
    }


def from_json(value: Any) -> Any:
    """Read what :func:`to_json` wrote.

    >>> from_json({"tuple": [0.5, {"float": "inf"}]})
    (0.5, inf)
    """
    if not isinstance(value, dict):
        return value
    if "kernel" in value:
        parameters = {key: from_json(item) for key, item in value["parameters"].items()}
        return KERNELS[value["kernel"]](**parameters)
    if "float" in value:
        if value["float"] not in ("inf", "-inf", "nan"):
            raise ValueError(f"{value['float']!r} is no number")
        return float(value["float"])
    if "array" in value:
        if not _DTYPE.fullmatch(value["dtype"]):
            raise ValueError(f"arrays of type {value['dtype']} are not read.")
        return np.array(_plain(value["array"]), dtype=np.dtype(value["dtype"]))
    if "tuple" in value:
        return tuple(from_json(item) for item in value["tuple"])
    if "list" in value:
        return [from_json(item) for item in value["list"]]
    return {key: from_json(item) for key, item in value["dict"].items()}


def _plain(items: list[Any]) -> list[Any]:
    """Nested lists of numbers, as NumPy takes them."""
    return [_plain(item["list"]) if isinstance(item, dict) and "list" in item else from_json(item) for item in items]
