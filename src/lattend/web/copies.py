"""A question as a line of Python or of the shell, for who goes on elsewhere."""

from __future__ import annotations

import shlex
from collections.abc import Mapping


def command(name: str, *arguments: str, at: Mapping[str, int] | None = None, **options: str | bool) -> str:
    """The command line; options that are empty or False are left out. `from_` is --from.

    >>> command("count", "k <= q", at={"n": 8}, per="query")
    "lattend count 'k <= q' --at n=8 --per query"
    """
    words = ["lattend", *name.split(), *arguments]
    if at:
        words += ["--at", ",".join(f"{key}={value}" for key, value in at.items())]
    for key, value in options.items():
        if value:
            words += [f"--{key.rstrip('_').replace('_', '-')}", *([] if value is True else [value])]
    return shlex.join(words)


def call(function: str, *arguments: object, **named: object) -> str:
    """A call in Python; arguments that are None or empty are left out.

    >>> call("rule.count", n=8, per="query", first=None)
    "rule.count(n=8, per='query')"
    """
    given = [f"{name}={value!r}" for name, value in named.items() if value is not None and value != ""]
    return f"{function}({', '.join([*map(repr, arguments), *given])})"


def show(function: str, *arguments: object, **named: object) -> str:
    """The same call, and what it gives printed.

    >>> show("rule.count", n=8)
    'print(rule.count(n=8))'
    """
    return f"print({call(function, *arguments, **named)})"


def python(*lines: str, imports: str = "") -> str:
    """Lines that run as they stand, and print what the panel shows."""
    return "\n".join(("import lattend as lt", *([imports] if imports else []), "", *lines))
