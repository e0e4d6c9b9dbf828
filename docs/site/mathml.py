"""Formulas as MathML, written when the site is built: browsers draw it by themselves, without a network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

# Commands of the library that the converter does not know, as ones that it does
PLAIN = {r"\ensuremath": "", r"\nobreak": ""}


def as_mathml(latex: str, *, block: bool) -> str:
    """The formula as an element of a page.

    >>> as_mathml("n^2", block=False)
    '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"><mrow><msup>...</msup></mrow></math>'
    """
    for command, instead in PLAIN.items():
        latex = latex.replace(command, instead)
    return convert(latex.strip(), display="block" if block else "inline")


def visit_inline(writer: Any, node: nodes.math) -> None:
    """A formula in a line."""
    writer.body.append(as_mathml(node.astext(), block=False))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """A formula on a line of its own."""
    latex = re.sub(r"^\$\$|\$\$$", "", node.astext().strip())
    writer.body.append(f'<div class="formula">{as_mathml(latex, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
