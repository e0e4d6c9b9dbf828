"""lattend ask: the questions people bring, and their answers, run then and there."""

from __future__ import annotations

import shlex
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lattend.cli.arguments import Json, argument, option, refuse
from lattend.cli.failures import NO
from lattend.cli.output import say, say_json, width
from lattend.errors import LattendError, NamingError
from lattend.report.table import wrap_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lattend.ask import Question

EXAMPLES = (
    "lattend ask",
    "lattend ask sliding window",
    "lattend ask 7",
    "lattend ask 7 --python",
    "lattend ask --out questions.ipynb",
)


def ask(
    words: Annotated[list[str] | None, argument("[WORD]...", "Words to find, or the number of one.")] = None,
    python: Annotated[bool, typer.Option("--python", help="Show the Python instead of running it.")] = False,
    out: Annotated[str | None, option("FILE", "Write what is found: .md or .ipynb.", "--out", "-o")] = None,
    json: Json = False,
) -> int | None:
    """The questions that people ask of attention, and their answers.

    Alone it lists them by topic. With words it finds the questions that have them all; where one is left, or
    a number is given, its command is run.
    """
    from lattend.ask import close_words, questions, search

    number = int(words[0]) if words and len(words) == 1 and words[0].isdigit() else None
    if number is not None and not 1 <= number <= len(questions()):
        raise NamingError(f"questions are numbered 1 to {len(questions())}; {number} is none of them")
    found = [questions()[number - 1]] if number else search(words or [])
    if out is not None:
        refuse({"--json": json, "--python": python}, ("--json", "--python"), "does not go with --out")
        from lattend.ask.pages import save

        say(f"{save(found, out)}: {len(found)} questions")
    elif json:
        say_json([one.json() for one in found])
    elif len(found) == 1:
        return _answer(found[0], python)
    elif not found:
        near = close_words(words or [])
        hint = f"did you mean {', '.join(near)}?" if near else "`lattend ask` lists every question"
        say(f"no question has all of: {' '.join(words or [])}; {hint}")
        return NO
    else:
        _list(found)
    return None


def _list(found: Sequence[Question]) -> None:
    """Print questions by topic, in their order."""
    for topic, group in groupby(sorted(found, key=lambda one: one.number), key=lambda one: one.topic):
        say("\n".join(wrap_text(topic, width())))
        for one in group:
            first, *rest = wrap_text(one.asks, width() - 5)
            say("\n".join([f"{one.number:>4} {first}", *(f"     {line}" for line in rest)]))
        say("")
    say("`lattend ask 7` runs one; `lattend ask WORD` finds those with a word")


def _answer(one: Question, python: bool) -> int:
    """Print a question, run its commands, and give the last one's exit code."""
    from lattend.cli.main import main

    say("\n".join(wrap_text(f"{one.number}. {one.asks}", width())))
    if one.notes:
        say("\n".join(wrap_text(f"The notes: {one.notes}", width())))
    code = 0
    if python:
        say(f"\n{one.python.strip()}")
    else:
        for name, text in one.files.items():
            if not Path(name).exists():
                Path(name).write_text(text, encoding="utf-8")
                say(f"\n{name}: written")
            elif Path(name).read_text(encoding="utf-8", errors="replace") != text:
                raise LattendError(f'there is another "{name}" here; ask in another folder')
        for command, _ in one.commands:
            say(f"\n$ {command}")
            code = main(shlex.split(command)[1:])
    if one.remark:
        say("\n" + "\n".join(wrap_text(one.remark, width())))
    return code
