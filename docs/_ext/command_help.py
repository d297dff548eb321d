"""The directive ``command-help``: what ``conformal-gp COMMAND --help-all`` prints, so that page and command agree."""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from typer.testing import CliRunner

from conformal_gp.cli.app import app as commands


class CommandHelp(Directive):
    """A literal block with the help of one command."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Ask the command."""
        result = CliRunner().invoke(commands, [*self.arguments, "--help-all"], env={"COLUMNS": "88"})
        if result.exit_code:
            raise self.error(f"conformal-gp {' '.join(self.arguments)} --help-all failed: {result.output}")
        text = "\n".join(line.rstrip() for line in result.output.strip("\n").splitlines())
        return [nodes.literal_block(text, text, language="text")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
