"""Docstrings as reStructuredText: prose with `code`, examples, and blocks that are indented or in columns.

Also where a type that a signature names is in the reference, which has it under its public name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import reference
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.nodes import make_refnode

CODE = re.compile(r"(?<!\w)`{1,2}([^`]+)`{1,2}")
SPECIAL = re.compile(r"([\\*_|`])")
READER = "from lattend.rules.reader import rule"  # where examples inside the library have it from
COLUMNS = re.compile(r"\S+(, \S+)*( \S+)?\s{2,}\S")  # a name, space, its meaning


def as_rst(lines: list[str]) -> Iterator[str]:
    """The docstring with nothing left in it that only looks like markup.

    >>> list(as_rst(["two is `x*y`:", "", "  a  b"]))
    ['two is ``x*y``:', '', '.. code-block:: text', '', '     a  b', '']
    """
    for block in blocks(lines):
        if block[0].startswith(">>>"):
            yield from (line.replace(READER, "from lattend import rule") for line in block)
        elif block[0].startswith(" ") or all(COLUMNS.match(line) for line in block):
            yield from (".. code-block:: text", "", *(f"   {line}" for line in block))
        else:
            yield from map(escaped, block)
        yield ""


def blocks(lines: list[str]) -> Iterator[list[str]]:
    """The paragraphs; indented ones that follow one another are one."""
    found: list[list[str]] = []
    for text in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")):
        block = text.split("\n")
        if found and found[-1][0].startswith(" ") and block[0].startswith(" "):
            found[-1] += ["", *block]
        else:
            found.append(block)
    yield from (block for block in found if any(block))


def escaped(line: str) -> str:
    """A line of prose; a list's dash stays one."""
    parts = CODE.split(line)
    prose = [SPECIAL.sub(r"\\\1", part) for part in parts[::2]]
    code = [f"``{part}``" for part in parts[1::2]]
    joined = prose[0]
    for literal, after in zip(code, prose[1:], strict=True):
        joined += literal + (rf"\ {after}" if re.match(r"\w", after) else after)
    return joined


def convert(_app: Sphinx, _what: str, _name: str, _found: object, _options: object, lines: list[str]) -> None:
    """The same for Sphinx, which wants the lines changed in place."""
    lines[:] = as_rst(lines)


def without_parts(
    _app: Sphinx,
    what: str,
    name: str,
    _found: object,
    _options: object,
    arguments: str | None,
    gives: str | None,
) -> tuple[str | None, str | None]:
    """No arguments for a class that the library makes: its fields are no business of those who read it."""
    made_here = name.startswith(reference.MADE) or "<factory>" in (arguments or "")
    return ("", None) if what == "class" and made_here else (arguments, gives)


def resolve(app: Sphinx, env: Any, node: Any, contnode: nodes.Element) -> nodes.Node | None:
    """A link to a public name from wherever the object lives; types of other libraries stay plain text."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py":
        return None
    public = reference.public_name(target)
    if public is None:
        return contnode if node.get("reftype") in ("class", "obj", "data", "exc") else None
    entry = env.domains["py"].objects.get(public)
    if entry is None:
        return None
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, contnode, public)


def without_overloads(analyze: Any) -> Any:
    """Reads a module and forgets its overloads: one signature a function, that with all its arguments."""

    def analyze_plainly(self: ModuleAnalyzer) -> None:
        analyze(self)
        self.overloads = {}

    return analyze_plainly


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    ModuleAnalyzer.analyze = without_overloads(ModuleAnalyzer.analyze)
    app.connect("autodoc-process-docstring", convert)
    app.connect("autodoc-process-signature", without_parts)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
