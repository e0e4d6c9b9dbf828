"""lattend ask: the questions people bring, and their answers, run then and there."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from lattend.cli.command import Answer, Command, argument, flag, option
from lattend.cli.failures import NO
from lattend.cli.output import say, say_json, width
from lattend.errors import LattendError, NamingError
from lattend.report.table import wrap_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lattend.ask import Question


@dataclass(frozen=True)
class AskCommand(Command):
    """The questions that people ask of attention, and their answers.

    Alone it lists them by topic. With words it finds the questions that have them all, or else most of them;
    where one is left, or numbers are given, the commands are run.

        lattend ask
        lattend ask sliding window
        lattend ask 7
        lattend ask 7 --python
        lattend ask --out questions.ipynb
    """

    words: list[str] | None = argument("[WORD]...", "Words to find, or numbers.", None)
    python: bool = flag("Show the Python instead of running it.")
    out: str | None = option("FILE", "Write what is found: .md or .ipynb.", "--out", "-o")

    def answer(self) -> Answer:
        from lattend.ask import search

        numbered = bool(self.words) and all(word.isdecimal() for word in self.words)
        matches = _numbered(self.words) if self.words and numbered else search(self.words or [])
        if self.out is not None:
            self.refuse(("json", "python"), "does not go with --out")
            from lattend.ask.pages import save

            say(f"{save(matches, self.out)}: {len(matches)} questions")
        elif self.json:
            say_json([one.json() for one in matches])
        elif numbered or len(matches) == 1:
            codes: list[int] = []
            for index, one in enumerate(matches):
                if index:
                    say("")
                codes.append(_answer(one, self.python))
            return max(codes)
        elif not matches:
            _list_nearest(self.words or [])
            return NO
        else:
            _list(matches)
        return None


def _numbered(words: Sequence[str]) -> list[Question]:
    """The questions of these numbers."""
    from lattend.ask import questions

    for word in words:
        if not 1 <= int(word) <= len(questions()):
            raise NamingError(f"questions are numbered 1 to {len(questions())}; {word} is none of them")
    return [questions()[int(word) - 1] for word in words]


def _list_nearest(words: Sequence[str]) -> None:
    """Say that no question has all words, and print those that have most."""
    from lattend.ask import close_words, nearest

    spelled, near = close_words(words), nearest(words)
    hint = f"; did you mean {', '.join(spelled)}?" if spelled else ""
    hint += (
        "; these have most of it" if near else "; `lattend ask` lists every question" if not spelled else ""
    )
    say(f"no question has all of: {' '.join(words)}{hint}")
    if near:
        say("")
        _list(near)


def _list(matches: Sequence[Question]) -> None:
    """Print questions by topic, in their order."""
    for topic, group in groupby(sorted(matches, key=lambda one: one.number), key=lambda one: one.topic):
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
        say(f"\n>>> import lattend as lt\n{one.python.strip()}")
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
