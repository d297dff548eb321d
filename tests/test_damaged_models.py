"""Model files that are truncated, changed, foreign or of another version: a clear error for each."""

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from conformal_gp import ConformalGPRegressor
from conformal_gp.persistence import ModelFileError, load_model, save_model
from conformal_gp.persistence.archive import FORMAT_VERSION, read_archive, write_archive
from conformal_gp.persistence.values import from_json, to_json
from saved_models import Own, X, Y, assert_same_answers, loaded, saved, small


@pytest.fixture(scope="module", params=["exact", "low-rank"])
def content(request) -> bytes:
    exact = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1)
    return saved((exact if request.param == "exact" else small()).fit(X, Y))


def rewritten(content: bytes, replace: dict[str, bytes]) -> bytes:
    """The archive with some members replaced, its own checksums as they were."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, replace.get(name, old.read(name)))
        for name in replace.keys() - set(old.namelist()):
            new.writestr(name, replace[name])
    return out.getvalue()


def test_truncated_anywhere(content):
    for length in [*range(0, len(content), 97), len(content) - 1]:
        with pytest.raises(ModelFileError, match=r"empty|no zip archive|truncated or damaged"):
            loaded(content[:length])


def test_a_flipped_bit_anywhere(content):
    # A bit of a zip header may be one that nobody reads; then the model must be the same.
    for place in range(0, len(content), 41):
        damaged = bytearray(content)
        damaged[place] ^= 0x10
        try:
            again = loaded(bytes(damaged))
        except ModelFileError:
            continue
        assert_same_answers(again, loaded(content))


def test_changed_content_does_not_match_its_checksum(content):
    buffer = io.BytesIO()
    np.save(buffer, Y + 1.0)
    with pytest.raises(ModelFileError, match=r"damaged: the checksum of y\.npy does not match"):
        loaded(rewritten(content, {"y.npy": buffer.getvalue()}))
    with pytest.raises(ModelFileError, match=r"checksum of extra\.npy"):
        loaded(rewritten(content, {"extra.npy": b""}))


def test_older_format_asks_for_a_new_fit():
    model = ConformalGPRegressor("se").fit(X, Y)
    document, arrays = read_archive(io.BytesIO(saved(model)))
    document["format_version"] = 1
    file = io.BytesIO()
    write_archive(file, document, arrays)
    with pytest.raises(ModelFileError, match="format 1, whose tuning is no longer part of conformal-gp; fit"):
        loaded(file.getvalue())


def test_newer_format_asks_for_an_upgrade(content):
    document = json.loads(zipfile.ZipFile(io.BytesIO(content)).read("model.json"))
    document |= {"format_version": FORMAT_VERSION + 1, "package_version": "99.0"}
    with pytest.raises(ModelFileError, match=rf"format {FORMAT_VERSION + 1}, written by conformal-gp 99\.0.*Upgrade"):
        loaded(rewritten(content, {"model.json": json.dumps(document).encode()}))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", "Pipeline"),
        ("model", None),
        ("plan", {}),
        ("parameters", {"unheard_of": 1}),
        ("feature_names", 3),
        ("feature_names", ["a", "b", "c"]),
    ],
)
def test_documents_that_are_not_a_model(content, field, value):
    """Files whose checksums are right."""
    document, arrays = read_archive(io.BytesIO(content))
    forged = io.BytesIO()
    write_archive(forged, document | {field: value}, arrays)
    with pytest.raises(ModelFileError, match="does not hold a complete model"):
        loaded(forged.getvalue())


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("design", to_json(np.array([100]), "design")),
        ("design", None),
        ("inducing", to_json(np.zeros((3, 7)), "inducing")),
        ("mean", "cubic"),
        ("noise_variance", "much"),
    ],
)
def test_low_rank_plans_that_do_not_fit_their_rows(entry, value):
    document, arrays = read_archive(io.BytesIO(saved(small().fit(X, Y))))
    document["plan"][entry] = value
    forged = io.BytesIO()
    write_archive(forged, document, arrays)
    with pytest.raises(ModelFileError, match="does not hold a complete model"):
        loaded(forged.getvalue())


def test_foreign_files(tmp_path):
    other_zip = io.BytesIO()
    np.savez(other_zip, a=np.arange(3))
    for content, word in (
        (b"", "empty"),
        (b"a,b\n1,2\n", "no zip archive"),
        (pickle.dumps({"a": 1}), "no zip archive"),
        (other_zip.getvalue(), "not a conformal-gp model"),
    ):
        path = tmp_path / "file"
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=word) as caught:
            load_model(path)
        assert str(path) in str(caught.value)
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "nowhere")


def test_pickled_arrays_are_not_unpickled(content, tmp_path):
    """A file whose checksums are right, and whose array would run code."""
    import hashlib

    mark = tmp_path / "was-run"

    class Trap:
        def __reduce__(self) -> tuple:
            return (Path.touch, (mark,))

    buffer = io.BytesIO()
    np.save(buffer, np.array([Trap()], dtype=object), allow_pickle=True)
    sums = zipfile.ZipFile(io.BytesIO(content)).read("SHA256SUMS").decode().splitlines()
    sums = [line for line in sums if not line.endswith("y.npy")]
    sums.append(f"{hashlib.sha256(buffer.getvalue()).hexdigest()}  y.npy")
    forged = rewritten(content, {"y.npy": buffer.getvalue(), "SHA256SUMS": "\n".join(sums).encode()})
    with pytest.raises(ModelFileError, match="array that cannot be read"):
        loaded(forged)
    assert not mark.exists()


@pytest.mark.parametrize(
    "value",
    [
        {"kernel": "os.system", "parameters": {}},
        {"kernel": "RBF", "parameters": {"length_scale": {"kernel": "eval", "parameters": {}}}},
        {"array": ["a"], "dtype": "O"},
        {"unknown": 1},
    ],
)
def test_only_known_names_are_read(value):
    with pytest.raises((KeyError, ValueError)):
        from_json(value)


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "model"
    model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit(X, Y)
    save_model(model, path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="holds no code"):
        save_model(ConformalGPRegressor(Own(), tuning="fixed", noise_variance=0.1).fit(X, Y), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
