"""The directive ``command-help``: what ``conformal-gp COMMAND --help-all`` prints, so that page and command agree."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from unittest.mock import patch

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from conformal_gp.cli import run


class CommandHelp(Directive):
    """A literal block with the help of one command."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Ask the command."""
        with patch.dict("os.environ", COLUMNS="88"), redirect_stdout(io.StringIO()) as printed:
            if run([*self.arguments, "--help-all"]):
                raise self.error(f"there is no command {' '.join(self.arguments)}")
        text = printed.getvalue().strip("\n")
        return [nodes.literal_block(text, text, language="text")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
