"""Snippets: a question as lines of Python and as a command, to be copied."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING
from typing import Any, cast

from lattend.cli.command import Command, label, parameter, typed_fields
from lattend.web.panel import Snippets


def command(command: type[Command], question: Iterable[tuple[str, Any]] = (), /, **values: object) -> str:
    """The command line with these values, and those of the question's fields that the command has.

    What is empty, or as the command has it anyway, is left out.

    >>> from lattend.cli.count import CountCommand
    >>> command(CountCommand, rule="k <= q", at={"n": 8}, per="query")
    "lattend count 'k <= q' --at n=8 --per query"
    """
    declared = {declaration.name: declaration for declaration in typed_fields(command)}
    values = {name: value for name, value in question if name in declared} | values
    if unknown := values.keys() - declared.keys():
        raise TypeError(f"{command.command} has no {', '.join(unknown)}")
    arguments, options = list[str](), list[str]()
    for name, declaration in declared.items():
        value = values.get(name)
        text = option_text(value)
        if parameter(declaration).is_argument:
            several = cast(list[str], value) if isinstance(value, list) else [text]
            arguments += filter(None, several)
        elif text and text != option_text(declaration.default):
            options += [label(declaration), *([] if value is True else [text])]
    return shlex.join(["lattend", *command.command.split(), *arguments, *options])


def option_text(value: object) -> str:
    """A value as the command line takes it; page_links.py reads it back.

    >>> option_text({"n": 8, "t": 2}), option_text([["1", "0"], ["1/2", "1"]])
    ('n=8,t=2', '1,0;1/2,1')
    """
    if value is None or value is False or value is MISSING:
        return ""
    if isinstance(value, float):
        return str(value).removesuffix(".0")
    if isinstance(value, Mapping):
        return ",".join(f"{name}={number}" for name, number in cast(Mapping[str, object], value).items())
    if isinstance(value, list | tuple):
        parts = cast(Sequence[object], value)
        is_matrix = any(isinstance(part, list | tuple) for part in parts)
        return (";" if is_matrix else ",").join(map(option_text, parts))
    return str(value)


def call(function: str, *arguments: object, **named: object) -> str:
    """A call in Python; arguments that are None or empty are left out.

    >>> call("rule.count", n=8, per="query", first=None)
    "rule.count(n=8, per='query')"
    """
    options = [f"{name}={value!r}" for name, value in named.items() if value is not None and value != ""]
    return f"{function}({', '.join([*map(repr, arguments), *options])})"


def show(function: str, *arguments: object, **named: object) -> str:
    """A call whose result is printed.

    >>> show("rule.count", n=8)
    'print(rule.count(n=8))'
    """
    return f"print({call(function, *arguments, **named)})"


def python(*lines: str, imports: str = "") -> str:
    """A program of these lines, which prints what the panel shows."""
    return "\n".join(("import lattend as lt", *([imports] if imports else []), "", *lines))


def snippets(*lines: str, command: str, latex: str = "", imports: str = "") -> Snippets:
    """What a panel copies: lines of Python, a command, and LaTeX."""
    return Snippets(python=python(*lines, imports=imports), command=command, latex=latex)


def literals(rows: Sequence[Sequence[str]]) -> list[list[int | float | str]]:
    """The rows as one writes them in Python: 1 and 0.5 as numbers, 1/3 as a text.

    >>> literals([["1", "0.50", "1/3"]])
    [[1, 0.5, '1/3']]
    """
    return [[literal(text) for text in row] for row in rows]


def literal(text: str) -> int | float | str:
    """The number, if Python writes it exactly and no longer than the text; otherwise the text."""
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if len(text) <= 15 and text.strip("+-").replace(".", "").isdecimal() and text.isascii():
            return number
    return text
