"""Question: what is asked, what course notes answer, and the commands and Python that say what is so."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

# One file a topic, in the order in which a course meets them
TOPICS = ("sparse", "grid", "worked", "convolution", "recurrence", "steering", "elbo", "game")


@dataclass(frozen=True)
class Question:
    """One question; `run` is a terminal and `python` a Python prompt, both with what they print.

    `...` in what is printed stands for anything, as in a doctest.
    """

    number: int
    topic: str
    asks: str
    notes: str  # what the course notes answer, as they write it
    run: str
    python: str
    remark: str = ""  # where the notes are wrong or silent, and what else is worth knowing
    picture: str = ""  # a file of docs/pictures
    files: Mapping[str, str] = field(default_factory=dict[str, str])  # what the commands read

    @property
    def commands(self) -> list[tuple[str, str]]:
        r"""Each command, and what it prints.

        >>> Question(1, "", "", "", "$ lattend count full\nn^2\n", "").commands
        [('lattend count full', 'n^2')]
        """
        parts = re.split(r"^\$ ", self.run, flags=re.MULTILINE)[1:]
        return [
            (command, printed.strip()) for command, _, printed in (part.partition("\n") for part in parts)
        ]

    def json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "number": self.number,
            "topic": self.topic,
            "question": self.asks,
            "notes": self.notes,
            "commands": [command for command, _ in self.commands],
            "python": self.python,
            "remark": self.remark,
        }


@lru_cache(maxsize=1)
def questions() -> tuple[Question, ...]:
    """Every question, numbered from 1."""
    read_questions: list[Question] = []
    for topic in TOPICS:
        read = tomllib.loads(files("lattend.ask.topics").joinpath(f"{topic}.toml").read_text("utf-8"))
        for fields in read["question"]:
            read_questions.append(Question(number=len(read_questions) + 1, topic=read["topic"], **fields))
    return tuple(read_questions)
