"""The rule language's words and signs."""

from __future__ import annotations

import re

from lattend.rules.language.signs import split_sign, unknown_sign
from lattend.rules.language.tokens import Source, Token, scan, scan_name, scan_number

FUNCTIONS = ("abs", "min", "max")
WORDS = frozenset({"and", "or", "not", "true", "false", "True", "False", *FUNCTIONS})

_SIGN = re.compile(r"<=|>=|==|!=|//|[-+*%()\[\],<>=≤≥≠−]")
_SAME = {"=": "==", "≤": "<=", "≥": ">=", "≠": "!=", "−": "-"}

_DECIMAL = re.compile(r"[0-9]+\.[0-9]*|\.[0-9]+")
_LONGER = re.compile(r"\*\*|=<|=>|<>|&&|\|\|")  # signs of other languages that begin with one of ours
_DIVIDES = re.compile(r"divides\b")


def tokens(source: Source, assumption: bool = False) -> list[Token]:
    """The tokens of a rule's text, the last one of kind "end"; `|` and `divides` only in an assumption."""
    return scan(source, lambda at: _token(source, at, assumption))


def _token(source: Source, at: int, assumption: bool) -> Token:
    text = source.text
    decimal = _DECIMAL.match(text, at)
    if decimal:
        whole = [decimal[0].partition(".")[0]] if not decimal[0].partition(".")[2].strip("0") else []
        message = f"{decimal[0]}: a {source.kind} holds whole numbers only"
        raise source.error(message, at, decimal.end(), *whole)
    if assumption and text[at] in "|∣" and text[at : at + 2] != "||":
        return Token("sign", "|", at, at + 1)
    divides = _DIVIDES.match(text, at) if assumption else None
    if divides:
        return Token("sign", "|", at, divides.end())
    split = None if assumption else split_sign(source, at)
    if split is not None:
        raise split
    sign = None if _LONGER.match(text, at) else _SIGN.match(text, at)
    if sign:
        return Token("sign", _SAME.get(sign[0], sign[0]), at, sign.end())
    word = scan_name(source, at) or scan_number(source, at)
    # a letter outside a to z directly after a name belongs to the misspelt name, not to a next one
    if word and not (word.end < len(text) and text[word.end].isalpha() and not text[word.end].isascii()):
        return word
    raise unknown_sign(source, at)
