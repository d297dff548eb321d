"""The command ``conformal-gp``: intervals with guaranteed coverage for a table in a file, without Python.

Exit codes: 0 success; 1 a fault in the program; 2 a mistake in the command, a file or the data; 130 stopped by the
keyboard, 143 by SIGTERM. What takes time to import is imported where it is used: help and mistakes come at once.
"""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run the command; if its extra is not installed, say which one it needs."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, which leaves no file half-written
    try:
        from conformal_gp.cli.app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("conformal_gp"):
            raise
        print(f"conformal-gp needs {error.name}: pip install '.[cli]' in a clone of conformal-gp", file=sys.stderr)
        sys.exit(2)
    app(prog_name="conformal-gp")
