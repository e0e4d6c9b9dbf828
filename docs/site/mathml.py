"""Formulas as MathML, written when the site is built: browsers draw it by themselves, without a network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

# What the converter does not know, as what it does
KNOWN = {"{aligned}": "{align*}", r"\ensuremath": "", r"\displaystyle": ""}
NOT_READ = re.compile(r"<m[a-z]+>(\\[a-zA-Z]+|&)</m[a-z]+>")


def as_mathml(latex: str, *, block: bool) -> str:
    """The formula as an element of a page; raises where a command would stand there as letters.

    >>> as_mathml("n^2", block=False)
    '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"><mrow><msup>...</msup></mrow></math>'
    """
    for command, instead in KNOWN.items():
        latex = latex.replace(command, instead)
    made = convert(latex.strip(), display="block" if block else "inline")
    if found := NOT_READ.search(made):
        raise ValueError(f"{found[1]} is not known to latex2mathml: {latex}")
    return made


def written(node: nodes.Element, *, block: bool) -> str:
    """The formula of a node; Sphinx warns where it cannot be made."""
    latex = re.sub(r"^\$+|\$+$", "", node.astext().strip())
    try:
        return as_mathml(latex, block=block)
    except Exception as problem:
        logging.getLogger(__name__).warning("%s", problem, location=node)
        return f"<code>{latex}</code>"


def visit_inline(writer: Any, node: nodes.math) -> None:
    """A formula in a line."""
    writer.body.append(written(node, block=False))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """A formula on a line of its own."""
    writer.body.append(f'<div class="formula">{written(node, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
