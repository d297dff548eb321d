r"""Formulas as MathML, which browsers draw themselves: no script, nothing fetched from outside.

latex2mathml converts; this connects it to Sphinx and sets ``\tag`` where equation numbers stand.
"""

from __future__ import annotations

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)


def _mathml(node: nodes.Element, tex: str, display: str) -> str:
    mathml = convert(tex, display=display)
    if "\\" in mathml:  # a command that the converter does not know is left as it is
        logger.warning("no MathML for %r", tex, location=node)
    return mathml


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(_mathml(node, node.astext(), "inline"))
    raise nodes.SkipNode


def _display(self: HTML5Translator, node: nodes.math_block) -> None:
    tex, *tags = re.split(r"\\tag\{(.*?)\}\s*$", node.astext())
    self.body.append(self.starttag(node, "div", CLASS="math"))
    if tags:
        self.body.append(f'<span class="eqno">({self.encode(tags[0])})</span>')
    self.body.append(_mathml(node, tex, "block") + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer; ``html_math_renderer = "mathml"`` takes it into use."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
