"""The names of the catalogue, and suggestions for unknown names: by spelling or by description."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable
from inspect import signature

from lattend.rules.catalogue.blocks import bigbird, chunked, documents, sparse_fixed, sparse_strided, windowed
from lattend.rules.catalogue.entry import RuleInfo
from lattend.rules.catalogue.image import axial, natten, neighbourhood, raster, swin
from lattend.rules.catalogue.line import (
    band,
    causal,
    dilated,
    full,
    local,
    longformer,
    prefix_lm,
    sinks,
    sliding_window,
    strided,
    window_size,
)
from lattend.rules.rule import Rule

# From the plain ones to images; each can be called without arguments, but documents, which is data.
_ORDER: tuple[Callable[..., Rule], ...] = (
    *(full, causal, strided, windowed, band, dilated, sparse_strided, sparse_fixed),
    *(longformer, bigbird, prefix_lm, sinks, chunked, documents),
    *(neighbourhood, axial, swin, raster),
)
CATALOGUE: dict[str, Callable[..., Rule]] = {function.__name__: function for function in _ORDER}

# Names from elsewhere, in the order of their rules; RuleInfo.aliases says what their numbers are
ALIASES: dict[str, Callable[..., Rule]] = {
    **{"bidirectional": full, "autoregressive": causal, "lower_triangular": causal},
    **{"sliding_window": sliding_window, "block_causal": windowed, "banded": band, "local": local},
    **{"window_size": window_size},
    **{"fixed": sparse_fixed, "prefix": prefix_lm, "attention_sinks": sinks},
    **{"block_diagonal": documents, "packed": documents, "neighborhood": neighbourhood, "natten": natten},
    **{"criss_cross": axial, "shifted_window": swin, "raster_scan": raster},
}
NAMES = {**CATALOGUE, **ALIASES}
# What people call rules in a word that no description has
MEANT: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("cnn", "conv", "convnet", "convolution", "convolutional"), ("band", "neighbourhood")),
    **dict.fromkeys(("masked", "decoder", "unidirectional"), ("causal",)),
    **dict.fromkeys(("transformer", "encoder", "self", "vanilla"), ("full",)),
}
FILLING = {"attention", "mask", "pattern", "rule"}
WINDOW = {"window", "sliding", "mistral"}  # their number is how many keys, the query's own among them
LINKING = {"with", "of", "an", "the", "size", "width", "and", "causal", "autoregressive"}
RARE = 1 / 4  # a word that at most four rules are described with says something


def unknown_rule(name: str, near: list[str] | None = None) -> str:
    """Returns the message that no rule has this name, with similar names.

    >>> unknown_rule("sliding")
    'no rule is named sliding; did you mean strided or sliding_window? Or write a condition, such as k <= q'
    """
    candidates = rules_near(name) if near is None else near
    hint = f"did you mean {' or '.join(candidates)}?" if candidates else f"there are {', '.join(CATALOGUE)}."
    return f"no rule is named {name}; {hint} Or write a condition, such as k <= q"


def rules_near(name: str) -> list[str]:
    """The names of rules that may be meant by a name or by several words.

    >>> rules_near("sliding")
    ['strided', 'sliding_window']
    """
    return _near(name, 0.8) or _by_word(name) or _by_meaning(name) or _near(name, 0.6)


def calls_near(words: str, numbers: list[str]) -> list[str]:
    """Returns calls of rules that words and numbers may mean; none whose numbers mean something else.

    >>> calls_near("Mistral sliding window of", ["4096"])  # strided(4095)
    ['sliding_window(4096)']
    """
    wanted = {*re.findall("[a-z]{2,}", words.lower())} - FILLING
    one = len(numbers) == 1
    if one and wanted & WINDOW and wanted <= WINDOW | LINKING:
        return [f"sliding_window({', '.join(numbers)})"]
    names = [name for name in rules_near(words) if not wanted & WINDOW or "window" in name]
    names = [name for name in names if not (one and name == "window_size")]  # that has two, before and after
    last = words.rsplit(maxsplit=1)[-1]  # of which the first number is said to be, as in dilated step = 2
    return [
        f"{name}({f'{last}=' if last in signature(NAMES[name]).parameters else ''}{', '.join(numbers)})"
        for name in names
    ]


def _near(name: str, least: float) -> list[str]:
    words = [word for word in re.split(r"[\s-]+", name.lower()) if word not in FILLING]
    return difflib.get_close_matches("_".join(words), NAMES, 1, least)


def _by_word(name: str) -> list[str]:
    return [rule for word in sorted(_words(name)) for rule in MEANT.get(word, ())]


def _by_meaning(name: str) -> list[str]:
    """Returns the rules whose names, or descriptions, share the rarest words with this name."""
    wanted = _words(name) - FILLING
    described = {rule: _described(rule) for rule in CATALOGUE}
    common = Counter(word for words in described.values() for word in words)
    named = {rule: _words(" ".join((rule, *_about(rule).aliases))) for rule in CATALOGUE}
    scores = {
        rule: sum(1 / common[word] for word in wanted & words) + len(wanted & named[rule])
        for rule, words in described.items()
    }
    best = max(scores, key=lambda rule: scores[rule])
    if scores[best] < RARE:
        return []
    return [best, *(alias for alias in _about(best).alias_names if wanted & _words(alias))]


def _about(rule: str) -> RuleInfo:
    about = CATALOGUE[rule]().about
    assert about is not None  # every rule of the catalogue says what it is
    return about


def _described(rule: str) -> set[str]:
    about = _about(rule)
    return _words(" ".join((about.name, about.meaning, *about.aliases, *about.elsewhere)))


def _words(text: str) -> set[str]:
    return {word for word in re.findall("[a-z]+", text.lower()) if len(word) > 2}
