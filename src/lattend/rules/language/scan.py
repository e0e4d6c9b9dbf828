"""The rule language's words and signs, and what to write instead of the ones it does not have."""

from __future__ import annotations

import re

from lattend.rules.language.tokens import Source, Token, scan, scan_name, scan_number

FUNCTIONS = ("abs", "min", "max")
WORDS = frozenset({"and", "or", "not", "true", "false", "True", "False", *FUNCTIONS})

_SIGN = re.compile(r"<=|>=|==|!=|//|[-+*%()\[\],<>=≤≥≠−]")
_SAME = {"=": "==", "≤": "<=", "≥": ">=", "≠": "!=", "−": "-"}

_DECIMAL = re.compile(r"[0-9]+\.[0-9]*|\.[0-9]+")
_LONGER = re.compile(r"\*\*|=<|=>|<>|&&|\|\|")  # signs of other languages that begin with one of ours
_INSTEAD = [
    (re.compile(r"\*\*|\^|[²³]"), "{0} is not in the language; write a product out, as in t*t"),
    (re.compile(r"/"), "/ does not give whole numbers; write // (division rounded down)"),
    (re.compile(r"&&?|∧"), "write and instead of {0}"),
    (re.compile(r"\|\|?|∨"), "write or instead of {0}"),
    (re.compile(r"[~!¬]"), "write not instead of {0}"),
    (re.compile(r"=<|=>|<>"), "{0} is not a comparison; there are < <= == != >= >"),
    (re.compile(r"[{}]"), "{0} is not a bracket of the language; write ( and )"),
    (re.compile(r"[·×⋅]"), "write * instead of {0}"),
    (re.compile(r"_[A-Za-z0-9_]*"), "{0} is not a name; a name begins with a letter, as in q or t2"),
    (re.compile(r"\w+"), "{0} is not a name; names are made of the letters a to z, digits and _"),
    (re.compile(r"."), "{0} is not in the language"),
]
_DIVIDES = re.compile(r"divides\b")


def tokens(source: Source, assumption: bool = False) -> list[Token]:
    """The tokens of a rule's text, the last one of kind "end"; `|` and `divides` only in an assumption."""
    return scan(source, lambda at: _token(source, at, assumption))


def _token(source: Source, at: int, assumption: bool) -> Token:
    text = source.text
    decimal = _DECIMAL.match(text, at)
    if decimal:
        raise source.error(f"{decimal[0]}: a {source.kind} holds whole numbers only", at, decimal.end())
    if assumption and text[at] in "|∣" and text[at : at + 2] != "||":
        return Token("sign", "|", at, at + 1)
    divides = _DIVIDES.match(text, at) if assumption else None
    if divides:
        return Token("sign", "|", at, divides.end())
    sign = None if _LONGER.match(text, at) else _SIGN.match(text, at)
    if sign:
        return Token("sign", _SAME.get(sign[0], sign[0]), at, sign.end())
    word = scan_name(source, at) or scan_number(source, at)
    # a letter outside a to z directly after a name belongs to the misspelt name, not to a next one
    if word and not (word.end < len(text) and text[word.end].isalpha() and not text[word.end].isascii()):
        return word
    for pattern, message in _INSTEAD:
        wrong = pattern.match(text, at)
        if wrong:
            shown = source.part(at, wrong.end()) if wrong[0].isprintable() else f"U+{ord(wrong[0]):04X}"
            raise source.error(message.format(shown), at, wrong.end())
    raise AssertionError(f"no token at {at}")
