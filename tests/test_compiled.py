"""Compiled functions work where nothing can be kept, and keep what they can."""

import errno
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from numba.core import caching

import conformal_gp
from conformal_gp import _compiled
from conformal_gp._compiled import compiled

# Permissions do not bind root, so the places that Numba tries are made to fail: all, or all but temporary ones.
READ_ONLY = """
import errno, os, sys, tempfile
from numba.core import caching
allowed = sys.argv[1]
def ensure(self):
    path = self.get_cache_path()
    if not (allowed and path.startswith(allowed)):
        raise OSError(errno.EROFS, "Read-only file system", path)
    os.makedirs(path, exist_ok=True)
caching._CacheLocator.ensure_cache_path = ensure
"""


def run(code, allowed, folder):
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    environment |= {
        "HOME": "/nonexistent",
        "XDG_CACHE_HOME": "/nonexistent/cache",
        "TMPDIR": str(folder),
        "PYTHONPATH": str(Path(conformal_gp.__file__).parents[1]),
    }
    command = [sys.executable, "-c", READ_ONLY + code, str(allowed)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def module(tmp_path):
    """A module with a compiled function, and without the rest of the package."""
    path = tmp_path / "doubling.py"
    source = Path(_compiled.__file__).read_text()
    path.write_text(source + "\n\n@compiled(error_model='numpy')\ndef double(x):\n    return 2.0 * x\n")
    return path


def double(module, allowed, folder):
    code = f"sys.path.insert(0, {str(module.parent)!r})\nfrom doubling import double\nprint(double(1.5))\n"
    done = run(code, allowed, folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3.0\n"
    assert done.stderr == ""


def test_where_nothing_can_be_kept(module, tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    double(module, "", folder)


def test_a_private_folder_takes_the_place(module, tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    double(module, folder, folder)
    (private,) = folder.glob("conformal-gp-compiled-*")
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert list(private.rglob("*.nbc"))
    double(module, folder, folder)  # and once more, from there


def test_the_package_works_where_nothing_can_be_kept(tmp_path):
    code = (
        "import numpy as np\n"
        "from conformal_gp import ConformalGPRegressor\n"
        "model = ConformalGPRegressor('se', tuning='fixed', noise_variance=0.1, mean='zero')\n"
        "model.fit(np.arange(9.0)[:, None], np.arange(9.0) % 3)\n"
        "print(np.isfinite(model.predict_interval([[0.5]], 0.5)).all())\n"
    )
    done = run(code, "", tmp_path)
    assert done.stdout == "True\n", done.stderr


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners as on Unix")
def test_a_folder_of_others_is_not_trusted(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = Path(_compiled._private_folder())
    assert folder.parent == tmp_path
    folder.chmod(0o777)
    assert _compiled._private_folder() is None
    folder.chmod(0o700)
    assert _compiled._private_folder() == str(folder)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    folder.rename(tmp_path / "conformal-gp-compiled-12345")
    assert _compiled._private_folder() is None
    (tmp_path / "conformal-gp-compiled-12345").rename(tmp_path / "elsewhere")
    (tmp_path / "conformal-gp-compiled-12345").symlink_to(tmp_path / "elsewhere")
    assert _compiled._private_folder() is None


def test_no_temporary_folder_at_all(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert _compiled._private_folder() is None


def test_a_disk_that_is_full_when_code_is_to_be_kept(monkeypatch):
    def full(self, *arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(caching.Cache, "_save_overload", full)

    @compiled()
    def triple(x):
        return 3.0 * x

    assert triple(1.5) == 4.5


def test_options_are_numbas():
    @compiled(error_model="numpy")
    def inverse(x):
        return 1.0 / x

    assert inverse(0.0) == np.inf
    assert inverse.targetoptions["nogil"]


def test_a_change_of_any_file_with_mathematics_makes_kept_code_void(module, tmp_path):
    """Numba looks at the file of a function alone, though kept code holds a copy of what it calls."""
    room = tmp_path / "gp"
    room.mkdir()
    other = room / "called.py"
    other.write_text("CONSTANT = 1\n")
    code = f"sys.path.insert(0, {str(tmp_path)!r})\nfrom doubling import double\ndouble(1.5)\n"
    code += "print(sum(double.stats.cache_hits.values()))\n"
    hits = []
    for text in ("CONSTANT = 1\n", "CONSTANT = 1\n", "CONSTANT = 22\n", "CONSTANT = 22\n"):
        if other.read_text() != text:
            other.write_text(text)
        hits.append(run(code, tmp_path, tmp_path).stdout)
    assert hits == ["0\n", "1\n", "0\n", "1\n"]
