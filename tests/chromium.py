"""Headless Chromium over a pipe, by its DevTools protocol: messages are JSON, each ended by a zero byte."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

# Chromium reads commands from descriptor 3 and writes answers to 4.
LAUNCH = "import os, sys; a = sys.argv; os.dup2(int(a[1]), 3); os.dup2(int(a[2]), 4); os.execv(a[3], a[3:])"
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find():
    """Path of a Chromium, or None; the environment variable CHROMIUM goes first."""
    if os.name != "posix":  # descriptors are handed over in another way
        return None
    return next(filter(None, map(shutil.which, (os.environ.get("CHROMIUM", ""), *NAMES))), None)


def pipe():
    """A pipe whose descriptors are clear of 3 and 4."""
    import fcntl  # not on Windows

    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return moved


class Chromium:
    """One browser with one tab; a context manager."""

    def __init__(self, profile):
        read_commands, self._commands = pipe()
        self._answers, write_answers = pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"]
        quiet = ["--no-first-run", "--disable-extensions", "--disable-background-networking", "--hide-scrollbars"]
        command = [find(), *flags, *quiet, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(read_commands), str(write_answers), *command],
            pass_fds=(read_commands, write_answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_commands)
        os.close(write_answers)
        self._buffer, self._number, self._session = b"", 0, None
        self.events = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._process.terminate()
        self._process.wait(timeout=30)
        os.close(self._commands)
        os.close(self._answers)

    def _receive(self):
        while b"\0" not in self._buffer:
            part = os.read(self._answers, 1 << 16)
            if not part:
                raise RuntimeError("Chromium has gone away")
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def send(self, method, **parameters):
        """One command and its result; events that arrive meanwhile are kept in ``events``."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self._receive()
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def open(self, path):
        """Open a file and wait until it is loaded."""
        self.events.clear()
        self.send("Page.navigate", url=Path(path).as_uri())
        deadline = time.monotonic() + 30
        while self.run("document.readyState + location.protocol") != "completefile:":
            assert time.monotonic() < deadline, "the page did not load"
            time.sleep(0.02)

    def run(self, script):
        """The value of a JavaScript expression."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def press(self, key):
        """Press and release a key."""
        code = {"ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35, "Tab": 9}[key]
        for kind in ("rawKeyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def move(self, x, y):
        """Move the mouse."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def tap(self, x, y):
        """Touch the screen."""
        self.send("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def screen(self, width, height, *, dark=False, phone=False):
        """Size of the window, and whether the reader prefers dark."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.send("Emulation.setTouchEmulationEnabled", enabled=phone)
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[feature])

    def requests(self):
        """Addresses that were asked for since the page was opened."""
        return [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]

    def complaints(self):
        """Errors of scripts, and what the content security policy refused."""
        return [event for event in self.events if event["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]
