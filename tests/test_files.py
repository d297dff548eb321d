"""Outputs are replaced whole or not at all, and only where a file is what is meant."""

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from conformal_gp import files
from conformal_gp.files import check_output, replacing, write_bytes
from devices import make_null_device

SOURCE = str(Path(files.__file__).parents[1])
ROOT = getattr(os, "geteuid", lambda: 1)() == 0


@pytest.fixture
def old(tmp_path):
    """A file with content that must not be lost."""
    path = tmp_path / "old.csv"
    path.write_bytes(b"the old content")
    return path


def assert_untouched(path):
    assert path.read_bytes() == b"the old content"
    assert list(path.parent.iterdir()) == [path]


def test_a_new_file(tmp_path):
    write_bytes(tmp_path / "new", b"content")
    assert (tmp_path / "new").read_bytes() == b"content"
    assert list(tmp_path.iterdir()) == [tmp_path / "new"]


@pytest.mark.skipif(not hasattr(os, "fchmod"), reason="permissions as on Unix")
def test_a_new_file_gets_the_permissions_that_the_mask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        write_bytes(tmp_path / "new", b"content")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


@pytest.mark.skipif(not hasattr(os, "fchmod"), reason="permissions as on Unix")
@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
def test_an_old_file_keeps_its_permissions(old, mode):
    old.chmod(mode)
    if ROOT:
        os.chown(old, 12345, 23456)
    write_bytes(old, b"new")
    state = old.stat()
    assert stat.S_IMODE(state.st_mode) == mode
    if ROOT:
        assert (state.st_uid, state.st_gid) == (12345, 23456)


def test_a_file_that_may_not_be_written_is_not_replaced(old, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # permissions do not bind root
    with pytest.raises(PermissionError, match=r"old\.csv"):
        write_bytes(old, b"new")
    assert_untouched(old)


@pytest.mark.parametrize("error", [ValueError("in the middle"), KeyboardInterrupt(), SystemExit(143), MemoryError()])
def test_any_error_leaves_the_old_file(old, error):
    def half():
        with replacing(old) as file:
            file.write(b"half of it")
            file.flush()
            raise error

    with pytest.raises(type(error)):
        half()
    assert_untouched(old)


@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
def test_a_full_disk_leaves_the_old_file(old, monkeypatch, call):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space left on device"):
        write_bytes(old, b"new")
    monkeypatch.undo()
    assert_untouched(old)


def test_a_disk_that_is_really_full(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = ROOT and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("a file system of its own needs root")
    try:
        old = folder / "old.csv"
        old.write_bytes(b"the old content")
        with pytest.raises(OSError, match="No space left on device"):
            write_bytes(old, os.urandom(1_000_000))
        assert_untouched(old)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_killed_while_writing(old):
    """The hardest end: no handler runs, and yet the old content is there."""
    code = (
        "import os, signal, sys\n"
        "from conformal_gp.files import replacing\n"
        "with replacing(sys.argv[1]) as file:\n"
        "    file.write(b'half of it'); file.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run([sys.executable, "-c", code, str(old)], env=environment, check=False, timeout=120)
    assert done.returncode == -9
    assert old.read_bytes() == b"the old content"


def test_the_error_names_the_target_and_not_the_temporary_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write_bytes(tmp_path / "nowhere" / "out.csv", b"")
    assert caught.value.filename == str(tmp_path / "nowhere" / "out.csv")
    with pytest.raises(IsADirectoryError):
        write_bytes(tmp_path, b"")


def test_a_folder_that_takes_no_new_file(old, monkeypatch):
    real = os.open

    def closed(path, *arguments, **options):
        if str(path).endswith(files.UNFINISHED):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", closed)
    with pytest.raises(PermissionError, match=r"its folder takes no new file; write to another folder: '.*old\.csv'"):
        write_bytes(old, b"new")
    assert_untouched(old)


def test_long_names(tmp_path):
    path = tmp_path / ("x" * 255)
    write_bytes(path, b"1")
    write_bytes(path, b"2")
    assert path.read_bytes() == b"2"


# Links, devices and pipes


def test_links_are_followed_and_stay(old, tmp_path):
    link, second = tmp_path / "link", tmp_path / "second"
    link.symlink_to("old.csv")
    second.symlink_to(link)
    write_bytes(second, b"new")
    assert old.read_bytes() == b"new"
    assert link.is_symlink()
    assert second.is_symlink()


def test_a_link_to_what_is_not_there_yet(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_bytes(tmp_path / "link", b"new")
    assert (tmp_path / "target").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


def test_links_in_a_circle(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        write_bytes(tmp_path / "a", b"new")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_a_pipe_is_written_through(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_bytes(pipe, b"through")
    reader.join(timeout=30)
    assert read == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_stays(tmp_path):
    null_device = make_null_device(tmp_path)
    write_bytes(null_device, b"into nothing")
    assert stat.S_ISCHR(null_device.stat().st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="descriptors as paths")
def test_a_descriptor_is_written_through_and_loses_nothing(old):
    """As in ``(echo first; conformal-gp ... -o /dev/stdout; echo last) >> file``."""
    with old.open("ab") as file:
        write_bytes(f"/dev/fd/{file.fileno()}", b", and more")
        file.write(b", and the last")
    assert old.read_bytes() == b"the old content, and more, and the last"


def test_an_error_writes_nothing_to_a_pipe(tmp_path):
    read, write = os.pipe()
    with os.fdopen(read, "rb") as reader, os.fdopen(write, "wb") as writer:

        def half():
            with replacing(f"/dev/fd/{writer.fileno()}") as file:
                file.write(b"half of it")
                raise ValueError

        if os.path.exists("/dev/fd"):
            with pytest.raises(ValueError):  # noqa: PT011 (ours, without words)
                half()
        writer.close()
        assert reader.read() == b""


# Outputs that are inputs


def test_an_output_is_no_input(old, tmp_path, monkeypatch):
    link, hard = tmp_path / "link.csv", tmp_path / "hard.csv"
    link.symlink_to(old)
    os.link(old, hard)
    monkeypatch.chdir(tmp_path)
    for other in (old, link, hard, Path("old.csv"), tmp_path / "." / "old.csv"):
        with pytest.raises(ValueError, match=r"old\.csv.* would be overwritten while it is an input"):
            check_output(other, ["-", tmp_path / "nowhere", old])
    check_output(tmp_path / "other.csv", [old])
    check_output("-", [old, "-"])


def test_an_output_does_not_go_to_a_folder_that_is_read(tmp_path):
    with pytest.raises(ValueError, match="which is read; write it to another folder"):
        check_output(tmp_path / "out.csv", [tmp_path])


def test_standard_input_is_an_input_too(old, monkeypatch):
    with old.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        with pytest.raises(ValueError, match="is the same file as standard input"):
            check_output(old, ["-"])


def test_devices_may_be_both(tmp_path):
    check_output(os.devnull, [os.devnull])


def test_outputs_without_a_folder_are_refused_before_any_work(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no such folder"):
        check_output(tmp_path / "nowhere" / "out.csv", [])
    with pytest.raises(IsADirectoryError):
        check_output(tmp_path, [])
