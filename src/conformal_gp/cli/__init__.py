"""The command ``conformal-gp``: intervals with guaranteed coverage for a table in a file, without Python.

Exit codes: 0 success; 1 a fault in the program; 2 a mistake in the command, a file or the data; 130 stopped by the
keyboard, 143 by SIGTERM.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; if its extra is not installed, say which one it needs."""
    from conformal_gp.cli.stopping import exit_code, say_stopped, stop_promptly

    try:
        stop_promptly()
        from conformal_gp.cli.app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("conformal_gp"):
            raise
        print(f"conformal-gp needs {error.name}: install it with pip install 'conformal-gp[cli]'", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt as stop:
        say_stopped()
        sys.exit(exit_code(stop))
    app(prog_name="conformal-gp")
