"""Model files that lie: each is refused with one kind of error, before it costs memory or time."""

import faulthandler
import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from conformal_gp import ConformalGPRegressor
from conformal_gp.persistence import ModelFileError, archive, load_model, save_model
from conformal_gp.persistence.archive import read_archive, write_archive
from conformal_gp.persistence.checks import check_memory
from conformal_gp.persistence.values import to_json
from model_fuzz import members, mutant, originals, outcome, resealed

MUTANTS = 400


@pytest.mark.parametrize("block", range(4))
def test_mutants_are_refused_or_predict(block):
    """Of 400 files; the slow lane does the same to 100,000."""
    faulthandler.dump_traceback_later(120, exit=True)  # a prediction that never returns
    try:
        found = [outcome(mutant(seed)) for seed in range(block * MUTANTS // 4, (block + 1) * MUTANTS // 4)]
    finally:
        faulthandler.cancel_dump_traceback_later()
    assert found.count("refused") > 0.5 * len(found)
    assert found.count("loaded") > 0  # some changes do no harm


def test_the_originals_load():
    assert [outcome(content) for content in originals()] == ["loaded"] * len(originals())


def refused(content, match):
    with pytest.raises(ModelFileError, match=match):
        load_model(io.BytesIO(content))


@pytest.fixture(params=["exact", "low-rank"])
def content(request):
    return originals()[0 if request.param == "exact" else -1]


# Sizes


def bomb(name, size):
    """A small archive with a member of many zeros, and a document that is right."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for member, data in members(originals()[0]).items():
            if member != name:
                file.writestr(member, data)
        with file.open(name, "w", force_zip64=True) as member:
            for _ in range(size // 2**20):
                member.write(bytes(2**20))
    return out.getvalue()


@pytest.mark.parametrize("name", ["X.npy", "extra.npy", "other", "model.json"])
def test_a_bomb_is_not_inflated(name):
    content = bomb(name, 2**28)
    assert len(content) < 2**19
    tracemalloc.start()
    refused(content, r"truncated or damaged \((its .* bytes are said to hold|model\.json is said to hold)")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24


def test_sizes_that_are_understated(content):
    """The directory says that a member is small, and its data goes on."""
    data = bytearray(bomb("other", 2**24))
    place = data.rindex(b"PK\x01\x02", 0, data.rindex(b"other"))
    data[place + 24 : place + 28] = struct.pack("<I", 100)
    refused(bytes(data), r"truncated or damaged")


def npy(shape, dtype="<f8", data=b""):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": dtype, "fortran_order": False, "shape": shape})
    return header.getvalue() + data


@pytest.mark.parametrize(
    "array",
    [
        npy((10**12, 2)),
        npy((2**62, 2**62)),
        npy((-1, 2), data=bytes(16)),
        npy((3,) * 40),
        npy((24, 2), dtype="|O", data=bytes(8)),
        npy((24,), dtype="|V16", data=bytes(384)),
        npy((24, 2), data=bytes(24 * 16 + 1)),
        b"\x93NUMPY\x01\x00\x10\x00{'descr': '(((((",
        b"\x93NUMPY\x09\x00",
        b"",
    ],
)
def test_arrays_whose_headers_lie(content, array):
    refused(resealed(members(content) | {"X.npy": array}), "array that cannot be read|does not hold a complete model")


def test_more_rows_than_memory():
    rows = np.zeros((2_000_000, 1))
    document, _ = read_archive(io.BytesIO(originals()[0]))
    file = io.BytesIO()
    write_archive(file, document | {"columns": None}, {"X": rows, "y": rows[:, 0]})
    refused(file.getvalue(), r"it needs at least 32,000 GB of memory; this machine has")
    with pytest.raises(ValueError, match="GB of memory"):
        check_memory(10**8)
    check_memory(100)


def test_rows_that_compress_well_can_be_saved(monkeypatch):
    """What the writer writes the reader reads, though one-hot inputs shrink to next to nothing."""
    monkeypatch.setattr(archive, "FREE_GROWTH", 2**12)
    X = np.zeros((2000, 400))
    X[:, 0] = np.arange(2000) % 2
    y = np.arange(2000.0) % 3
    document, _ = read_archive(io.BytesIO(originals()[0]))
    file = io.BytesIO()
    write_archive(file, document, {"X": X, "y": y})
    _, arrays = read_archive(io.BytesIO(file.getvalue()))
    np.testing.assert_array_equal(arrays["X"], X)


def test_documents_without_end(content, monkeypatch):
    deep = b"[" * 100_000
    refused(resealed(members(content) | {"model.json": deep}), "not a conformal-gp model")
    for number in (b"NaN", b"-Infinity", b"1e999", b"1" * 30, b"9" * 5000):
        text = members(content)["model.json"].replace(b"{", b'{"x": ' + number + b", ", 1)
        refused(resealed(members(content) | {"model.json": text}), "not a conformal-gp model")
    monkeypatch.setattr(archive, "MOST_DOCUMENT", 100)
    with pytest.raises(ValueError, match="all but its rows takes"):
        write_archive(io.BytesIO(), {"long": "x" * 200}, {})


# Values


def forged(content, change):
    document, arrays = read_archive(io.BytesIO(content))
    change(document)
    file = io.BytesIO()
    write_archive(file, document, arrays)
    return file.getvalue()


@pytest.mark.parametrize("where", ["parameters", "plan"])
@pytest.mark.parametrize("gamma", [0.5, -1, 0, 1e-320, {"float": "nan"}, {"float": "-inf"}, "2", None, {"list": []}])
def test_gammas_that_are_none(content, where, gamma):
    refused(forged(content, lambda document: document[where].update(gamma=gamma)), "gamma")


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("mean", "cubic"),
        ("mean", ["zero"]),
        ("guarantee", 3),
        ("scaling", {"tuple": [{"array": [0.0, 0.0], "dtype": "<f8"}, {"array": [1.0, 0.0], "dtype": "<f8"}]}),
        ("scaling", {"tuple": [{"array": [0.0], "dtype": "<f8"}, {"array": [1.0], "dtype": "<f8"}]}),
        ("scaling", {"tuple": [{"array": [0, {"float": "inf"}], "dtype": "<f8"}, {"array": [1, 1], "dtype": "<f8"}]}),
        ("design", {"array": [1, 1], "dtype": "<i8"}),
        ("design", {"array": [5, 2], "dtype": "<i8"}),
        ("design", {"array": [24], "dtype": "<i8"}),
        ("design", {"array": [-1], "dtype": "<i8"}),
        ("design", {"array": [[1]], "dtype": "<i8"}),
        ("design", {"array": [0.5], "dtype": "<f8"}),
        ("design", {"array": list(range(24)), "dtype": "<i8"}),
    ],
)
def test_plans_that_are_none(content, entry, value):
    refused(forged(content, lambda document: document["plan"].update({entry: value})), "complete model")


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("kernel", "cubic"),
        ("kernel", {"list": []}),
        ("noise_variance", -0.1),
        ("tuning", "best"),
        ("mean", None),
        ("n_restarts", -1),
        ("random_state", -1),
        ("random_state", "x"),
        ("n_jobs", 0),
        ("n_jobs", 0.5),
        ("scale_inputs", "yes"),
    ],
)
def test_parameters_that_the_constructor_would_not_take(content, entry, value):
    refused(forged(content, lambda document: document["parameters"].update({entry: value})), "complete model")


def test_other_entries_that_are_none(content):
    for entry, value in (
        ("columns", {}),
        ("columns", 3),
        ("feature_names", ["a", 3]),
        ("feature_names", "ab"),
        ("model", ["ConformalGPRegressor"]),
    ):
        refused(forged(content, lambda document, e=entry, v=value: document.update({e: v})), "complete model")
    refused(forged(content, lambda document: document["columns"]["columns"].pop()), "1 names for 2 inputs")
    refused(forged(content, lambda document: document.update(format_version=0)), "model format 0")
    refused(forged(content, lambda document: document.update(format_version=True)), "model format True")


def test_what_would_not_load_is_not_saved():
    model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero")
    model.fit(np.arange(10.0)[:, None], np.arange(10.0) % 3).set_params(gamma=0.5)
    with pytest.raises(ValueError, match="gamma"):
        save_model(model, io.BytesIO())


def test_whole_numbers_of_any_length_are_not_saved():
    with pytest.raises(ValueError, match=r"n_inducing cannot be saved: .* has more than 64 bits"):
        to_json(10**30, "n_inducing")


def test_a_file_that_goes_on_forever_is_not_read_to_its_end():
    class Endless(io.RawIOBase):
        def read(self, size=-1):
            assert size >= 0, "read to the end"
            return bytes(size)

    with pytest.raises(ModelFileError, match="no zip archive"):
        load_model(Endless())
