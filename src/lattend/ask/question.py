"""The questions that people bring to attention, with commands and Python that answer them, and a search."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

from lattend.wording import close_names

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


# Words that say nothing about what a question is about
_COMMON = """
    a an and are as at be by can compute did do does for from get give have how i if in is it its let long
    many me mean much my need of on one or show take tell than that the their there this to use used want
    was what when where which who why will with work would you your
"""
COMMON = frozenset(_COMMON.split())

# What people call a thing, and beginnings of the words that the questions have for it
OTHER_NAMES = {
    "autoregressive": ("causal",),
    "band": ("strided",),
    "big": ("o(",),
    "big-o": ("o(",),
    "cache": ("space",),
    "cnn": ("conv",),
    "complexity": ("order", "o("),
    "cycle": ("converge",),
    "derivation": ("derive",),
    "explode": ("vanish",),
    "fast": ("time", "paralleli"),
    "figure": ("look like",),
    "flop": ("operations", "multiplies"),
    "gan": ("game",),
    "gaussian": ("quadratic",),
    "gpt": ("transformer",),
    "gpu": ("paralleli",),
    "inference": ("test",),
    "kl": ("elbo",),
    "kv": ("space",),
    "latency": ("decode",),
    "local": ("strided", "windowed"),
    "lstm": ("rnn",),
    "mask": ("causal", "pattern"),
    "matrices": ("matrix", "w_out"),
    "memory": ("space",),
    "mha": ("multi-head",),
    "mhsa": ("multi-head",),
    "minmax": ("minimax",),
    "nash": ("equilibrium",),
    "picture": ("look like",),
    "plot": ("look like",),
    "position": ("encoding",),
    "positional": ("encoding",),
    "proof": ("follow", "line by line"),
    "recurrent": ("rnn",),
    "saddle": ("minimax",),
    "sliding": ("strided",),
    "speed": ("time", "paralleli"),
    "throughput": ("decode",),
    "variational": ("elbo",),
    "vae": ("elbo",),
    "vit": ("patches of",),
    "vram": ("space",),
}


def search(words: Sequence[str]) -> list[Question]:
    """The questions that have every word: as the beginning of a word, or by another name.

    Words that every question has, such as "how does the", count only where there are no others.

    >>> [one.number for one in search(["plain", "attention"])]
    [1]
    >>> [one.number for one in search(["Does the GAN converge?"])]
    [89, 90]
    """
    wanted = _wanted(words)
    return [one for one in questions() if all(_has(one, word) for word in wanted)]


def nearest(words: Sequence[str]) -> list[Question]:
    """The questions that have most of the words. Rare words weigh more.

    >>> [one.number for one in nearest(["why", "is", "a", "small", "o", "unheard-of"])]
    [22]
    """
    having = {word: [one for one in questions() if _has(one, word)] for word in _wanted(words)}
    weight = {
        one.number: sum(1 / len(found) for found in having.values() if one in found) for one in questions()
    }
    most = max(weight.values())
    return [one for one in questions() if most and weight[one.number] >= 0.9 * most]


def close_words(words: Sequence[str]) -> list[str]:
    """Words of the questions that resemble unknown words.

    >>> close_words(["causl"])
    ['causal']
    """
    known = {word for one in questions() for word in re.findall(r"[^\W\d_]{3,}", f"{one.topic} {one.asks}")}
    lower = sorted({word.casefold() for word in known})
    unknown = [word for word in _wanted(words) if not any(_has(one, word) for one in questions())]
    return [near for word in unknown for near in close_names(word, lower, 0.75)]


def other_names(one: Question) -> list[str]:
    """Other names for the things that a question is about.

    >>> "gan" in other_names(questions()[88])  # the question says: game
    True
    """
    return [name for name in OTHER_NAMES if _has(one, name)]


def _wanted(words: Sequence[str]) -> list[str]:
    typed = [word.strip("?!.,;:\"'") for word in " ".join(words).casefold().split()]
    return [word for word in typed if word and word not in COMMON] or [word for word in typed if word]


def _has(one: Question, word: str) -> bool:
    """Whether a word of the question begins with this one, its stem or another name for it."""
    text = _texts()[one.number - 1]
    stem = re.sub(r"(?<=\w{4})(ings?|ed|e?s)$", "", word)
    names = (word, stem, *OTHER_NAMES.get(word, ()), *OTHER_NAMES.get(stem, ()))
    return any(
        re.search((r"(?<![^\W_])" if name[0].isalpha() else "") + re.escape(name), text) for name in names
    )


@lru_cache(maxsize=1)
def _texts() -> tuple[str, ...]:
    """The whole text of each question."""
    return tuple(" ".join(map(str, one.json().values())).casefold() for one in questions())
