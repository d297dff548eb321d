"""Outputs of the command: whole or not at all, never onto an input, and through links, pipes and devices."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cli_cases import rows
from devices import make_null_device

pytest.importorskip("typer", reason="the command line is an extra: pip install 'conformal-gp[cli]'")

import conformal_gp
from conformal_gp.persistence import load_model

MAIN = "from conformal_gp.cli import main; main()"


def start(*arguments, before="", **options):
    """The program in a process of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(conformal_gp.__file__).parents[1]),
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-c", before + MAIN, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def leftovers(folder):
    return [path.name for path in folder.iterdir() if path.name.endswith(".unfinished")]


# Onto an input


@pytest.mark.parametrize("link", ["same", "symbolic", "hard", "other path"])
@pytest.mark.parametrize("onto", ["train.csv", "new.csv", "m"])
def test_an_output_is_never_an_input(command_line, train, new, tmp_path, onto, link):
    command_line("fit", train, "-t", "y", "-o", "m", "-q")
    before = (tmp_path / onto).read_bytes()
    out = Path(onto)
    if link == "symbolic":
        out = Path("link")
        out.symlink_to(onto)
    elif link == "hard":
        out = Path("link")
        os.link(onto, out)
    elif link == "other path":
        out = tmp_path / ".." / tmp_path.name / onto
    arguments = ("predict", new, "-m", "m") if onto == "m" else ("predict", train, new, "-t", "y")
    assert "would be overwritten while it is an input" in command_line.error(*arguments, "-o", out)
    assert (tmp_path / onto).read_bytes() == before


def test_no_command_writes_onto_its_data(command_line, train):
    before = train.read_bytes()
    assert command_line.error("fit", train, "-t", "y", "-o", "train.csv") == (
        f"error: --out train.csv is the same file as {train}, and would be overwritten while it is an input; name "
        "another file."
    )
    assert "is an input" in command_line.error("report", train, "-t", "y", "-o", train)
    picture = command_line.write("train.png", before)
    assert "is an input" in command_line.error("plot", picture, "-t", "y", "-o", picture)
    error = command_line.error("evaluate", picture, "-t", "y", "--picture", picture)
    assert error.startswith(f"error: --picture {picture} would be overwritten")
    assert train.read_bytes() == picture.read_bytes() == before


def test_the_usual_picture_is_not_an_input_either(command_line, train, tmp_path):
    before = train.read_bytes()
    (tmp_path / "train-evaluation.png").symlink_to(train)
    assert "is an input" in command_line.error("evaluate", train, "-t", "y")
    assert train.read_bytes() == before


@pytest.mark.parametrize(
    ("picture", "message"),
    [("nowhere/p.png", "there is no such folder"), ("p", "must end in .png, .svg, .pdf"), ("p.xyz", "got p.xyz")],
)
def test_a_picture_that_cannot_be_is_refused_before_anything_is_read(command_line, picture, message):
    assert message in command_line.error("evaluate", "no-such-table.csv", "-t", "y", "--picture", picture)


def test_a_picture_that_fails_leaves_the_old_one_and_no_result(command_line, train, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    def full(self, file, **options):
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Figure, "savefig", full)
    old = command_line.write("p.png", "old picture")
    arguments = ("evaluate", train, "-t", "y", "-c", "80%", "--folds", "2", "--picture", old)
    assert list(json.loads(command_line(*arguments, "--json", code=2).stdout)) == ["error"]
    assert command_line(*arguments, code=2).stdout == ""
    assert old.read_text() == "old picture"
    assert leftovers(tmp_path) == []


def test_a_table_that_its_own_encoding_cannot_hold(command_line, train):
    text = "a,b,kind,füße\n1.5,2,top,1\n"
    new = command_line.write("latin.csv", text.encode("cp1252"))
    old = command_line.write("out.csv", "old content")
    error = command_line.error("predict", train, new, "-t", "y", "--prefix", "ŷ_", "-o", old)
    assert "has the character 'ŷ', which cp1252, the encoding of" in error
    assert "Save" in error
    assert "in UTF-8" in error
    assert old.read_text() == "old content"
    assert new.read_bytes() == text.encode("cp1252")
    assert leftovers(old.parent) == []


def test_a_demo_does_not_overwrite_a_users_table(command_line, tmp_path):
    (tmp_path / "cars").mkdir()
    mine = command_line.write("cars/cars.csv", "my own\n1\n")
    assert "with other content; choose another --folder" in command_line.error("demo", "--folder", "cars")
    assert mine.read_text() == "my own\n1\n"


# Links, pipes, devices


def test_links_are_followed(command_line, train, new, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    names = ("m", "out.csv", "out.parquet", "page.html", "picture.svg", "evaluation.png")
    for name in names:
        (tmp_path / name).symlink_to(tmp_path / "elsewhere" / name)
    command_line("fit", train, "-t", "y", "-o", "m", "-q")
    load_model(tmp_path / "elsewhere" / "m")
    for out in ("out.csv", "out.parquet"):
        command_line("predict", new, "-m", "m", "-o", out, "-q")
    command_line("report", train, "-t", "y", "-o", "page.html", "--folds", "2", "-q")
    command_line("plot", train, "-t", "y", "-o", "picture.svg", "--folds", "2", "-q")
    command_line("evaluate", train, "-t", "y", "-c", "80%", "--picture", "evaluation.png", "--folds", "2", "-q")
    for name in names:
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "elsewhere" / name).stat().st_size > 100


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_a_model_and_a_table_through_named_pipes(command_line, train, new, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for arguments, begin in (
        (("fit", train, "-t", "y", "-o", pipe, "-q"), b"PK"),
        (("predict", train, new, "-t", "y", "-o", pipe, "-q"), b"a,b,kind,y_mean"),
    ):
        read = []
        reader = threading.Thread(target=lambda read=read: read.append(pipe.read_bytes()))
        reader.start()
        command_line(*arguments)
        reader.join(timeout=60)
        assert read[0].startswith(begin)
        assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_is_still_one(command_line, train, new, tmp_path):
    null_device = make_null_device(tmp_path)
    command_line("fit", train, "-t", "y", "-o", null_device, "-q")
    command_line("predict", train, new, "-t", "y", "-o", null_device, "-q")
    assert stat.S_ISCHR(null_device.stat().st_mode)


def test_the_standard_output_by_name(train, new, tmp_path):
    if not os.path.exists("/dev/stdout"):
        pytest.skip("no /dev/stdout")
    process = start("predict", train, new, "-t", "y", "-o", "/dev/stdout", "-q")
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error.decode()
    assert out.startswith(b"a,b,kind,y_mean")


# Stopped by the keyboard, by a signal, or killed

SLOW_WRITE = (
    "import os, time\n"
    "real = os.fsync\n"
    "def slow(descriptor):\n"
    "    real(descriptor)\n"
    "    open('writing', 'w').close()\n"
    "    time.sleep(60)\n"
    "os.fsync = slow\n"
)


def wait_for(path, process):
    limit = time.monotonic() + 100
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("SIGINT", 130, b"error: stopped; no output was left half-written.\n"),
        ("SIGTERM", 143, b"error: stopped; no output was left half-written.\n"),
        ("SIGKILL", -9, b""),
    ],
)
@pytest.mark.parametrize("command", ["predict", "fit"])
def test_stopped_while_writing(command_line, train, new, tmp_path, name, code, message, command):
    old = command_line.write("out", "old content")
    tables = [train, new] if command == "predict" else [train]
    process = start(command, *tables, "-t", "y", "-o", old, "-q", before=SLOW_WRITE, cwd=tmp_path)
    wait_for(tmp_path / "writing", process)
    begin = time.monotonic()
    process.send_signal(getattr(signal, name))
    _, error = process.communicate(timeout=30)
    assert process.returncode == code
    assert error == message
    assert time.monotonic() - begin < 20
    assert old.read_text() == "old content"
    if name != "SIGKILL":
        assert leftovers(tmp_path) == []


SLOW_THREADS = (
    "import time\n"
    "from conformal_gp import regressor\n"
    "from conformal_gp.threads import map_threads\n"
    "def endless(*arguments, **others):\n"
    "    open('fitting', 'w').close()\n"
    "    list(map_threads(time.sleep, [100.0] * 4, 2))\n"
    "regressor.ConformalGPRegressor.fit = endless\n"
)


def test_stopped_while_threads_work(command_line, train, new, tmp_path):
    """Threads cannot be interrupted; the program does not wait for them."""
    process = start("predict", train, new, "-t", "y", "-o", "out", before=SLOW_THREADS, cwd=tmp_path)
    wait_for(tmp_path / "fitting", process)
    time.sleep(0.3)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=90)
    assert time.monotonic() - begin < 20
    assert process.returncode == 130
    assert error.decode().endswith("error: stopped; no output was left half-written.\n")
    assert b"Traceback" not in error
    assert not (tmp_path / "out").exists()


def test_a_full_disk_keeps_the_old_table(command_line, train, new, tmp_path, monkeypatch):
    import errno

    old = command_line.write("out.csv", "old content")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), None)

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left on device" in command_line.error("predict", train, new, "-t", "y", "-o", old)
    assert "No space left on device" in command_line.error("fit", train, "-t", "y", "-o", old)
    result = command_line("predict", train, new, "-t", "y", "-o", old, "--json", code=2)
    assert list(json.loads(result.stdout)) == ["error"]
    assert old.read_text() == "old content"
    assert leftovers(tmp_path) == []


def test_options_without_effect_are_refused(command_line, train, new):
    command_line("fit", train, "-t", "y", "-o", "m", "-q")
    for option, value in (("--kernel", "se"), ("--gamma", "3"), ("--drop", "a"), ("--sample", "10")):
        assert f"{option} says how to fit" in command_line.error("predict", new, "-m", "m", option, value)
    gaps = command_line.write("gaps.csv", rows(8, with_target=False).replace("top", "none"))
    result = command_line("predict", gaps, "-m", "m", "--na", "none", "--missing", "impute")
    assert result.stdout.count("\n") == 9
