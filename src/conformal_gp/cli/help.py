"""Help in one screen: summary, usage, examples, common options; ``--help-all`` describes the rest."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from typer.core import TyperCommand

from conformal_gp.cli.options import ADVANCED

IN_FULL = "--help-all"


class HelpfulCommand(TyperCommand):
    """A command whose docstring is a summary, examples one to a line, and more text, each a paragraph."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments; ``--help-all`` is ``--help`` with everything."""
        ctx.meta[IN_FULL] = IN_FULL in args
        if ctx.meta[IN_FULL]:
            args = ["--help"]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Arguments, options that are required, and that there are others."""
        arguments = [str(param.metavar) for param in self.params if param.param_type_name == "argument"]
        required = [param for param in self.params if param.param_type_name == "option" and param.required]
        return [*arguments, *(f"{option.opts[0]} {option.metavar}" for option in required), "[OPTIONS]"]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        summary, examples, *more = (self.help or "").split("\n\n")
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(summary)
        with formatter.section("Examples"):
            for example in examples.splitlines():
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")
        options = [param for param in self.get_params(ctx) if param.param_type_name == "option"]
        common = [option for option in options if getattr(option, "rich_help_panel", None) != ADVANCED]
        advanced = [option for option in options if option not in common]
        with formatter.section("Options"):
            formatter.write_dl([option.get_help_record(ctx) for option in common])
        if not advanced:
            return
        if ctx.meta[IN_FULL]:
            with formatter.section(ADVANCED):
                formatter.write_dl([option.get_help_record(ctx) for option in advanced])
            for paragraph in more:
                formatter.write_paragraph()
                formatter.write_text(paragraph)
            return
        with formatter.section(f"{ADVANCED} (described by {IN_FULL})"):
            names = ", ".join(option.opts[0] for option in advanced)
            for line in wrap(names, formatter.width - formatter.current_indent, break_on_hyphens=False):
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
