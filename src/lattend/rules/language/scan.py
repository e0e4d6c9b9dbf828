"""The words and signs of the rule language, and what to write instead of others."""

from __future__ import annotations

import re
import unicodedata

from lattend.errors import Suggestion, TextError
from lattend.rules.language.tokens import NAME, Source, Token, scan, scan_name, scan_number

FUNCTIONS = ("abs", "min", "max")
WORDS = frozenset({"and", "or", "not", "true", "false", "True", "False", *FUNCTIONS})

_SIGN = re.compile(r"<=|>=|==|!=|//|[-+*%()\[\],<>=≤≥≠−]")
_SAME = {"=": "==", "≤": "<=", "≥": ">=", "≠": "!=", "−": "-"}

_DECIMAL = re.compile(r"[0-9]+\.[0-9]*|\.[0-9]+")
_LONGER = re.compile(r"\*\*|=<|=>|<>|&&|\|\|")  # signs of other languages that begin with one of ours
_DIVIDES = re.compile(r"divides\b")


def tokens(source: Source, assumption: bool = False) -> list[Token]:
    """Returns the tokens of a text, the last of kind "end"; only an assumption has `|` and `divides`."""
    return scan(source, lambda at: _token(source, at, assumption))


def _token(source: Source, at: int, assumption: bool) -> Token:
    text = source.text
    decimal = _DECIMAL.match(text, at)
    if decimal:
        integers = [decimal[0].partition(".")[0]] if not decimal[0].partition(".")[2].strip("0") else []
        message = f"{decimal[0]}: a {source.kind} holds whole numbers only"
        raise source.error(message, at, decimal.end(), *integers)
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


# Signs that are not in the language

INSTEAD = {  # of signs of other languages, of mathematics, and of LaTeX
    **dict.fromkeys(("&&", "&", "∧", "\\land", "\\wedge"), "and"),
    **dict.fromkeys(("||", "|", "∨", "\\lor", "\\vee"), "or"),
    **dict.fromkeys(("~", "!", "¬", "\\lnot", "\\neg"), "not"),
    **dict.fromkeys(("·", "×", "⋅", "\\cdot", "\\times"), "*"),
    **dict.fromkeys(("⩽", "≦", "\\leqslant", "\\leq", "\\le"), "<="),
    **dict.fromkeys(("⩾", "≧", "\\geqslant", "\\geq", "\\ge"), ">="),
    **dict.fromkeys(("\\neq", "\\ne"), "!="),
}
_COMPARISONS = {"=<": "<=", "=>": ">=", "<>": "!="}
_BRACKETS = {"{": "(", "}": ")"}
_MESSAGES = [
    (re.compile(r"\*\*|\^|[²³]"), "{0} is not in the language; write a product out, as in t*t"),
    (re.compile(r"/"), "/ does not give whole numbers; write // (division rounded down)"),
    (re.compile(r"\\[A-Za-z]+|&&?|\|\|?|[∧∨~!¬·×⋅⩽≦⩾≧]"), "write {1} instead of {0}"),
    (re.compile(r"=<|=>|<>"), "{0} is not a comparison; there are < <= == != >= >"),
    (re.compile(r"[{}]"), "{0} is not a bracket of the language; write ( and )"),
    (re.compile(r"_[A-Za-z0-9_]*"), "{0} is not a name; a name begins with a letter, as in q or t2"),
    (re.compile(r"\w+"), "{0} is not a name; names are made of the letters a to z, digits and _"),
    (re.compile(r"."), "{0} is not in the language"),
]
_POWER = re.compile(r"(?:\*\*|\^)\s*([23])(?![0-9.])|[²³]")
_APART = re.compile(r"[<>!=]\s+=")
_BARS = re.compile(r"\|([^|<>=!&]*[+-][^|<>=!&]*)\|(?!\|)")
_BASE = re.compile(r"[A-Za-z][A-Za-z0-9_]*\s*$")


def split_sign(source: Source, at: int) -> TextError | None:
    """Returns the error for a comparison with a space, `< =`, or a size in bars, `|q - k|`."""
    apart, bars = _APART.match(source.text, at), _BARS.match(source.text, at)
    if apart is not None:
        sign = "".join(apart[0].split())
        return source.error(f"write {sign} without a space in it", at, apart.end(), sign)
    if bars is not None:
        size = f"abs({bars[1].strip()})"
        return source.error(f"write {size} instead of {bars[0]}", at, bars.end(), size)
    return None


def unknown_sign(source: Source, at: int) -> TextError:
    """Returns the error that the sign at `at` is not in the language, with what to write instead."""
    for pattern, message in _MESSAGES:
        wrong = pattern.match(source.text, at)
        if wrong is None or ("{1}" in message and wrong[0] not in INSTEAD):
            continue
        shown = source.part(at, wrong.end()) if wrong[0].isprintable() else f"U+{ord(wrong[0]):04X}"
        text = message.format(shown, INSTEAD.get(wrong[0], ""))
        return source.error(text, at, wrong.end(), *_meant(source, wrong))
    raise AssertionError(f"no token at {at}")


def _meant(source: Source, wrong: re.Match[str]) -> list[str | Suggestion]:
    """Returns what a sign may mean."""
    sign, known = wrong[0], {**INSTEAD, **_COMPARISONS, **_BRACKETS, "/": "//"}
    if sign in known:
        return [known[sign]]
    power = _POWER.match(source.text, wrong.start())
    base = _BASE.search(source.text, 0, wrong.start())
    if power and base:  # t^2 is t*t
        times = int(power[1]) if power[1] else "  ²³".index(power[0])
        return [Suggestion(wrong.start(), power.end(), f"*{base[0].strip()}" * (times - 1))]
    letters = _spelt(sign)
    return [letters] if NAME.fullmatch(letters) else []


def _spelt(word: str) -> str:
    """Returns a word in the letters a to z: q for an upright, slanted or accented q, tau for τ."""
    plain = unicodedata.normalize("NFKD", word.strip("_"))
    names = (unicodedata.name(letter, "").split() for letter in plain if not unicodedata.combining(letter))
    kept = (letter for letter in plain if not unicodedata.combining(letter))
    spelt = (
        name[-1].lower() if name[:1] == ["GREEK"] else letter
        for letter, name in zip(kept, names, strict=True)
    )
    return "".join(spelt)
