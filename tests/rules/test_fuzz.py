"""Whatever is typed: a rule, or one TextError that points into the text, at once.

corpus/ holds inputs that once said something new or went wrong, one JSON value a line: the text, and
what it reads as (null when it is an error). `{"repeat": [...]}` spells out long ones.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lattend.counts.formula_parser import parse_claim, parse_formula
from lattend.errors import LattendError, TextError
from lattend.rules import CATALOGUE
from lattend.rules.language import expr
from lattend.rules.language.grammar import MAX_LENGTH
from lattend.rules.language.parser import parse, parse_assumption, parse_term
from lattend.rules.reader import rule

CORPUS = Path(__file__).parent / "corpus"
KNOWN = frozenset({"n", "t", "w", "l", "c", "rows", "cols"})
WORDS = [
    *("and", "or", "not", "true", "false", "abs", "min", "max", "min(", "doc[", "strided(", "if", "lambda"),
    *(
        "(",
        ")",
        "[",
        "]",
        ",",
        "<",
        "<=",
        "==",
        "!=",
        ">=",
        ">",
        "=",
        "+",
        "-",
        "*",
        "//",
        "%",
        "≤",
        "≥",
        "−",
    ),
    *("/", "**", "^", "|", "&", "~", "!", ".", ":", "'", '"', "\\", "{", "}", "#", "\n", "\0", "é"),
    *("0", "1", "2", "65_536", "1.5", "99999999999999999999", "q", "k", "t", "w", "qy", "kx", "doc"),
]
FORMULA_WORDS = [
    *("n", "t", "w", "i", "nt", "2", "0", "1/2", "²", "sum(", "floor(", "min(", "binom(", "O(", "mod"),
    *(
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "+",
        "-",
        "*",
        "/",
        "//",
        "%",
        "^",
        "**",
        ",",
        "=",
        "_",
        "·",
        "−",
        "⌊",
        "⌋",
    ),
    *("Σ_{i=1}^{n}", "\\sum_{i=1}^{n}", "\\frac{", "}{", "\\left", "\\right", "\\lfloor", "\\rfloor"),
    *("\\cdot", "$", "\\mathcal{O}(", "\\binom", "\\foo", "|", "!", "é", " "),
    *(
        "…",
        "\\dots",
        "1+2+…+n",
        " + … + ",
        "Σ_{1}^{n}",
        "N=",
        "N(n)=",
        "Θ(",
        "o(",
        "α",
        "\\alpha_1",
        "D_{\\text{o}}",
    ),
]


def _corpus(name: str) -> Iterator[tuple[str, str | None]]:
    for line in (CORPUS / name).read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        text = entry["text"]
        if isinstance(text, dict):
            text = "".join(part * times for part, times in text["repeat"])
        yield text, entry["reads"]


RULES, FORMULAS = list(_corpus("rules.jsonl")), list(_corpus("formulas.jsonl"))


def _tried(read: Callable[[str], Any], text: str) -> Any:
    """What `read` gives, or the TextError it raises; anything else fails."""
    start = time.process_time()
    try:
        found = read(text)
    except TextError as problem:
        assert 0 <= problem.start <= len(text)
        assert problem.start < problem.end <= max(len(text), problem.start + 1)
        assert len(problem.message) < 400
        assert problem.marked().count("\n") == 1
        found = problem
    assert time.process_time() - start < 20  # a hang, not a slow machine
    return found


def _check_rule(text: str) -> None:
    found = _tried(parse, text)
    if not isinstance(found, TextError):
        if len(text) < MAX_LENGTH // 3:  # a chain repeats its middle when it is written out
            assert parse(expr.text(found)) == found
        assert parse_assumption(text) == found
    for read in (parse_assumption, parse_term):
        _tried(read, text)
    try:
        _tried(rule, text)
    except LattendError as problem:  # axes that do not go together, data that is not given
        assert len(str(problem)) < 400


def _check_formula(text: str) -> None:
    _tried(parse_formula, text)
    _tried(lambda given: parse_formula(given, KNOWN), text)
    _tried(lambda given: parse_claim(given, KNOWN), text)


def _mutated(draw: random.Random, text: str, words: list[str]) -> str:
    """The text with one to four edits: a piece cut, doubled, swapped or put in."""
    for _ in range(draw.randint(1, 4)):
        a, b = sorted(draw.randint(0, len(text)) for _ in range(2))
        b = min(b, a + 6)
        edit = draw.randrange(5)
        if edit == 0:
            text = text[:a] + text[b:]
        elif edit == 1:
            text = text[:b] + text[a:]
        elif edit == 2:
            text = text[:a] + text[a:b][::-1] + text[b:]
        elif edit == 3:
            text = f"{text[:a]} {draw.choice(words)} {text[a:]}"
        else:
            text = text[:a] + draw.choice(words) + text[b:]
    return text[:300]


SEEDS = [
    *(text for text, _ in RULES if len(text) < 200),
    *(expr.text(make().condition) for name, make in CATALOGUE.items() if name != "documents"),
]
FORMULA_SEEDS = [
    *(text for text, _ in FORMULAS if len(text) < 200),
    r"N = 1 + 2 + \dots + n = n(1+n)/2",
    "1*2 + 2*3 + … + n(n + 1) = Θ(n^3)",
    r"\sum_{1}^{t+1} i + \sum_{t+2}^{n} t + 1",
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: ascii(case[0])[:40])
def test_rule_corpus(case: tuple[str, str | None]) -> None:
    text, reads = case
    found = _tried(parse, text)
    assert (None if isinstance(found, TextError) else expr.text(found)) == reads
    _check_rule(text)


@pytest.mark.parametrize("case", FORMULAS, ids=lambda case: ascii(case[0])[:40])
def test_formula_corpus(case: tuple[str, str | None]) -> None:
    text, reads = case
    found = _tried(lambda given: parse_formula(given, KNOWN), text)
    assert (None if isinstance(found, TextError) else repr(found)) == reads
    _check_formula(text)


@given(st.text())
def test_any_text(text: str) -> None:
    _check_rule(text)
    _check_formula(text)


@given(st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join))
def test_words_of_rules(text: str) -> None:
    _check_rule(text)


@given(st.lists(st.sampled_from(FORMULA_WORDS), max_size=20).map("".join))
def test_words_of_formulas(text: str) -> None:
    _check_formula(text)


@given(st.sampled_from(SEEDS), st.randoms(use_true_random=False))
def test_mutated_rules(seed: str, draw: random.Random) -> None:
    _check_rule(_mutated(draw, seed, WORDS))


@given(st.sampled_from(FORMULA_SEEDS), st.randoms(use_true_random=False))
def test_mutated_formulas(seed: str, draw: random.Random) -> None:
    _check_formula(_mutated(draw, seed, FORMULA_WORDS))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_mutated_for_long(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(25_000):
        _check_rule(_mutated(draw, draw.choice(SEEDS), WORDS))
        _check_formula(_mutated(draw, draw.choice(FORMULA_SEEDS), FORMULA_WORDS))


@pytest.mark.long
@settings(max_examples=20_000)
@given(st.text(max_size=200))
def test_any_text_for_long(text: str) -> None:
    _check_rule(text)
    _check_formula(text)
