"""Model files with something wrong in them, at random: in bytes, or in what right checksums vouch for."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import warnings
import zipfile
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from conformal_gp import ConformalGPRegressor, SparseConformalGPRegressor
from conformal_gp.persistence import ModelFileError, load_columns, save_model
from conformal_gp.persistence.archive import read_archive, write_archive
from conformal_gp.tables.columns import Column, Columns
from conformal_gp.tables.dialect import Dialect

NEW = np.array([[0.1, -0.4], [1.5, 2.0]])
NASTY: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 0.5, -0.5, 1e-320, 1e-8, 1e8, 1e308, 2**31, 2**63, 10**30, "", "x", "se", "auto",
    "inf", [], {}, [[]], [None], [0.0], {"float": "inf"}, {"float": "nan"}, {"float": "-inf"},
    {"float": "1e5"}, {"list": []}, {"tuple": [1, 2]}, {"dict": {}}, {"array": [], "dtype": "<f8"},
    {"array": [0.0], "dtype": "<f8"}, {"array": [3, 1, 2], "dtype": "<i8"}, {"array": [-1], "dtype": "<i8"},
    {"array": ["a"], "dtype": "<U999999999"}, {"array": [1], "dtype": "O"}, {"array": [1], "dtype": "M8[s]"},
    {"kernel": "RBF", "parameters": {}}, {"kernel": "RBF", "parameters": {"length_scale": -1.0}},
    {"kernel": "RBF", "parameters": {"length_scale": {"float": "nan"}}},
    {"kernel": "RBF", "parameters": {"length_scale": {"array": [1.0] * 9, "dtype": "<f8"}}},
    {"kernel": "Matern", "parameters": {"nu": {"float": "nan"}}}, {"kernel": "Matern", "parameters": {"nu": 1e-320}},
    {"kernel": "PairwiseKernel", "parameters": {"metric": "cosine"}}, {"kernel": "DotProduct", "parameters": {}},
    {"kernel": "WhiteKernel", "parameters": {"noise_level": 1e308}}, {"kernel": "os.system", "parameters": {}},
]  # fmt: skip


@cache
def originals() -> tuple[bytes, ...]:
    """Files of small models of each kind."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=24)
    columns = Columns(
        "t.csv", "y", (Column("a", None, 0.5), Column("b", ("0", "1"), "1")), "onehot", "drop", ("x",), (), Dialect(";")
    )
    fixed = {"tuning": "fixed", "noise_variance": 0.1}
    models = (
        ConformalGPRegressor("se", **fixed),
        ConformalGPRegressor(2.0 * RBF([1.0, 2.0]) + WhiteKernel(0.1), gamma=3.0, mean="constant", **fixed),
        ConformalGPRegressor(candidates=[(RBF(1.0), 0.1), (RBF(2.0), 0.2)], design=[0, 1, 2, 3, 4, 5]),
        ConformalGPRegressor(1.0 * RBF([1.0, 1.0]), tuning="augmented", mean="zero"),
        SparseConformalGPRegressor(n_inducing=4, design=10, n_restarts=0, random_state=0),
    )
    files = []
    for model in models:
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            save_model(model.fit(X, y), file, columns=columns)
        files.append(file.getvalue())
    return tuple(files)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to all parts of a document."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def changed_document(document: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """A document with one to three parts replaced, taken away or exchanged."""
    document = copy.deepcopy(document)
    for _ in range(rng.integers(1, 4)):
        paths = list(places(document))
        *way, last = paths[rng.integers(len(paths))]
        parent: Any = document
        for key in way:
            parent = parent[key]
        kind = rng.integers(6)
        if kind == 0:
            del parent[last]
        elif kind == 1 and isinstance(parent[last], int | float) and not isinstance(parent[last], bool):
            parent[last] = float(parent[last]) * float(10.0 ** rng.integers(-300, 300)) * float(rng.choice([-1.0, 1.0]))
            if not np.isfinite(parent[last]):
                parent[last] = {"float": str(parent[last])}
        elif kind == 2:
            parent[last] = copy.deepcopy(_at(document, paths[rng.integers(len(paths))]))
        elif kind == 3 and isinstance(parent, list):
            parent.extend(copy.deepcopy(parent))
        else:
            parent[last] = copy.deepcopy(NASTY[rng.integers(len(NASTY))])
    return document


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def changed_arrays(arrays: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Training rows of another shape, type or content."""
    name = str(rng.choice(["X", "y"]))
    array = np.array(arrays[name])
    place = tuple(rng.integers(array.shape))
    options = [
        lambda: array[:0],
        lambda: array[:-1],
        lambda: array[None],
        lambda: array.ravel(),
        lambda: array.T.copy(order="F"),
        lambda: array.astype(np.float32),
        lambda: array.astype(">f8"),
        lambda: array.astype(str),
        lambda: array.astype(complex),
        lambda: np.zeros_like(array),
        lambda: np.full_like(array, rng.choice([1e-320, 1e160, 1e308, -1e300])),
        lambda: np.repeat(array, 3, axis=0),
        lambda: array * 10.0 ** rng.integers(-200, 200),
        lambda: np.array(0.0),
    ]
    pick = int(rng.integers(len(options) + 2))
    if pick < len(options):
        return arrays | {name: options[pick]()}
    array[place] = rng.choice([np.nan, np.inf, 1e308, 1e-320])
    return arrays | {name: array}


def changed_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """Bits flipped, and pieces cut out, repeated or overwritten."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        place = int(rng.integers(len(data) or 1))
        length = int(rng.integers(1, 40))
        kind = rng.integers(6)
        if kind <= 1 and data:
            data[min(place, len(data) - 1)] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            del data[place : place + length]
        elif kind == 3:
            data[place:place] = data[place : place + length]
        elif kind == 4:
            data[place : place + length] = rng.integers(256, size=length, dtype=np.uint8).tobytes()
        else:
            del data[place:]
    return bytes(data)


def resealed(members: dict[str, bytes]) -> bytes:
    """An archive of these members, with right checksums."""
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in members.items())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in (members | {"SHA256SUMS": sums.encode()}).items():
            archive.writestr(name, data)
    return out.getvalue()


def members(content: bytes) -> dict[str, bytes]:
    """Members of an archive but for its checksums."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != "SHA256SUMS"}


def mutant(seed: int) -> bytes:
    """A file with something wrong in it."""
    rng = np.random.default_rng(seed)
    files = originals()
    content = files[rng.integers(len(files))]
    kind = rng.integers(8)
    if kind <= 1:
        return changed_bytes(content, rng)
    if kind == 2:  # bytes of one member, under right checksums
        parts = members(content)
        name = str(rng.choice(list(parts)))
        return resealed(parts | {name: changed_bytes(parts[name], rng)})
    document, arrays = read_archive(io.BytesIO(content))
    if kind == 3:
        arrays = changed_arrays(arrays, rng)
    else:
        document = changed_document(document, rng)
    text = json.dumps(document, ensure_ascii=False)
    out = io.BytesIO()
    write_archive(out, json.loads(text), arrays)
    return out.getvalue()


def outcome(content: bytes) -> str:
    """What becomes of a file: "refused", or "loaded" if it gives predictions; any other error is a fault."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model, columns = load_columns(io.BytesIO(content))
        except ModelFileError:
            return "refused"
        X = NEW[:, : model.n_features_in_] if model.n_features_in_ <= 2 else np.zeros((2, model.n_features_in_))
        try:
            intervals = model.predict_interval(X, [0.5, 0.8])
        except ValueError as error:
            if "too far from the other rows" not in str(error):  # as they are, of training rows of another size
                raise
            return "loaded"
        assert intervals.shape == (2, 2, 2)
        assert model.predict(X).shape == (2,)
        assert columns is None or len(columns.input_names) == model.n_features_in_
    return "loaded"
