"""The index of the questions: which have these words, or other names for the same things."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from lattend.ask.question import Question, questions
from lattend.wording import close_names

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
