"""Outputs are replaced whole or not at all, and only where a file is what is meant."""

import errno
import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from conformal_gp.files import check_output, write_bytes
from devices import make_null_device


@pytest.fixture
def old(tmp_path):
    """A file with content that must not be lost."""
    path = tmp_path / "old.csv"
    path.write_bytes(b"the old content")
    return path


def assert_untouched(path):
    assert path.read_bytes() == b"the old content"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="permissions as on Unix")
def test_new_files_follow_the_mask_and_old_ones_keep_their_permissions(tmp_path, old):
    before = os.umask(0o027)
    try:
        write_bytes(tmp_path / "new", b"content")
    finally:
        os.umask(before)
    assert (tmp_path / "new").read_bytes() == b"content"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    old.chmod(0o604)
    write_bytes(old, b"new")
    assert (old.read_bytes(), stat.S_IMODE(old.stat().st_mode)) == (b"new", 0o604)


def test_a_file_that_may_not_be_written_is_not_replaced(old, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # permissions do not bind root
    with pytest.raises(PermissionError, match=r"old\.csv"):
        write_bytes(old, b"new")
    assert_untouched(old)


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()])
def test_errors_and_interrupts_leave_the_old_file(old, monkeypatch, call, error):
    def stopped(*arguments):
        raise error

    monkeypatch.setattr(os, call, stopped)
    with pytest.raises(type(error)) as caught:
        write_bytes(old, b"new")
    monkeypatch.undo()
    assert_untouched(old)
    if isinstance(error, OSError):
        assert caught.value.filename == str(old)


# Links, devices and pipes


def test_links_are_followed_and_stay(old, tmp_path):
    for name, target in (("link", "old.csv"), ("second", "link"), ("fresh", "not-there-yet")):
        (tmp_path / name).symlink_to(target)
        write_bytes(tmp_path / name, name.encode())
        assert (tmp_path / name).is_symlink()
    assert old.read_bytes() == b"second"
    assert (tmp_path / "not-there-yet").read_bytes() == b"fresh"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_pipes_and_devices_are_written_through(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_bytes(pipe, b"through")
    reader.join(timeout=30)
    assert read == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    device = make_null_device(tmp_path)
    write_bytes(device, b"into nothing")
    assert stat.S_ISCHR(device.stat().st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="descriptors as paths")
def test_a_descriptor_is_written_through_and_loses_nothing(old):
    """As in ``(echo first; conformal-gp ... -o /dev/stdout; echo last) >> file``."""
    with old.open("ab") as file:
        write_bytes(f"/dev/fd/{file.fileno()}", b", and more")
        file.write(b", and the last")
    assert old.read_bytes() == b"the old content, and more, and the last"


# Outputs that are inputs


def test_an_output_is_no_input(old, tmp_path, monkeypatch):
    link, hard = tmp_path / "link.csv", tmp_path / "hard.csv"
    link.symlink_to(old)
    os.link(old, hard)
    monkeypatch.chdir(tmp_path)
    for other in (old, link, hard, Path("old.csv"), tmp_path / "." / "old.csv"):
        with pytest.raises(ValueError, match=r"would overwrite .*old\.csv, which is an input"):
            check_output(other, ["-", tmp_path / "nowhere", old])
    with pytest.raises(ValueError, match="which is an input"):
        check_output(tmp_path / "out.csv", [tmp_path])
    with old.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        with pytest.raises(ValueError, match="would overwrite -"):
            check_output(old, ["-"])
    (tmp_path / "out").mkdir()
    check_output(tmp_path / "out" / "other.csv", [old])
    check_output("-", [old, "-"])
    check_output(os.devnull, [os.devnull])


def test_outputs_without_a_folder_are_refused_before_any_work(tmp_path):
    with pytest.raises(ValueError, match="there is no such folder"):
        check_output(tmp_path / "nowhere" / "out.csv", [])
    with pytest.raises(ValueError, match="it is a folder"):
        check_output(tmp_path, [])
