"""Ctrl-C and SIGTERM end the program soon, in words, with no output left half-written.

Both raise an exception in the main thread, which takes its temporary files away. But a main thread that waits for
others, or is in the middle of a long matrix computation, does not see the exception until that is done. So another
thread is told of the signal too; if the program is still there after a moment, or asked to stop again, that thread
clears up and ends it.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from types import FrameType

from conformal_gp.files import discard_unfinished

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
MESSAGE = "stopped; no output was left half-written."
GRACE = 1.0
"""Seconds that the main thread is given to end by itself."""


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""


_said = threading.Event()


def say_stopped() -> None:
    """Tell of the stop."""
    _said.set()
    print(f"error: {MESSAGE}", file=sys.stderr, flush=True)


def exit_code(stop: KeyboardInterrupt) -> int:
    """What the program exits with."""
    return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


def stop_promptly() -> None:
    """Listen to signals from now on; only the main thread of a program can."""
    if threading.current_thread() is not threading.main_thread():
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.signal(signal.SIGTERM, _terminate)
    signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader,), name="signals", daemon=True).start()


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def _watch(reader: socket.socket) -> None:
    number = 0
    while number not in (signal.SIGINT, signal.SIGTERM):
        number = reader.recv(1)[0]
    reader.settimeout(GRACE)
    with suppress(TimeoutError):
        reader.recv(1)
    discard_unfinished()
    if sys.stderr.isatty():
        os.write(2, b"\x1b[?25h")  # a progress bar hides the cursor
    if not _said.is_set():
        say_stopped()
    os._exit(TERMINATED if number == signal.SIGTERM else INTERRUPTED)
