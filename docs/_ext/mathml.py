r"""Formulas as MathML, which browsers draw themselves: no script, no fonts, nothing fetched from outside.

Docutils brings the converter; this connects it to Sphinx, and adds ``\tag``.
"""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)


def _mathml(node: nodes.Element, tex: str, *, as_block: bool) -> str:
    try:
        return tex2mathml(tex, as_block=as_block)
    except MathError as error:
        logger.warning("no MathML for %r: %s", tex, error, location=node)
        return ""


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(_mathml(node, node.astext(), as_block=False))
    raise nodes.SkipNode


def _display(self: HTML5Translator, node: nodes.math_block) -> None:
    tex, *tags = re.split(r"\\tag\{(.*?)\}\s*$", node.astext())
    self.body.append(self.starttag(node, "div", CLASS="math"))
    if tags:
        self.body.append(f'<span class="eqno">({self.encode(tags[0])})</span>')
    self.body.append(_mathml(node, tex, as_block=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer; ``html_math_renderer = "mathml"`` takes it into use."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
