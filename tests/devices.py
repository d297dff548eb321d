"""Devices to write to."""

import os
import stat
from pathlib import Path

import pytest


def make_null_device(tmp_path):
    """A device that swallows what is written: for root one of its own, as a mistake would destroy the system's."""
    if getattr(os, "geteuid", lambda: 1)() != 0:
        if os.name == "nt":
            pytest.skip("devices as on Unix")
        return Path(os.devnull)
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.write_bytes(b"")
    except OSError:
        pytest.skip("devices cannot be made or used here")
    return device
