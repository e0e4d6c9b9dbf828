"""The words and signs of the rule language, and what to write instead of others: its error messages."""

from __future__ import annotations

import difflib
import re
import unicodedata

from lattend.errors import Suggestion, TextError
from lattend.rules.language.grammar import NAME, Source, Token, scan, scan_name, scan_number

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


EXAMPLES = {"rule": "k <= q and q - k <= t", "assumption": "t < n, w | n", "term": "min(q, t) + 1"}
CALLS = {"abs": "abs(q - k)", "min": "min(q, t)", "max": "max(q, t)"}
LETTERS = 2  # of a name that may stand before another, or before a bracket for a product, as in t(t + 1)

_EXAMPLE = {
    **{op: f"k {op} q" for op in ("<", "<=", "==", "!=", ">=", ">")},
    **{"+": "k + t", "-": "q - k", "*": "2*t", "//": "q // w", "%": "q % w", "|": "w | n"},
    **{"and": "k <= q and q - k <= t", "or": "k <= q or k < p", "not": "not k == q"},
}


def missing_operand(before: Token | None, token: Token) -> tuple[str, Token] | None:
    """Returns why an operand is missing and the token to point at; None if a bracket is at fault."""
    if before is not None and before.value in _EXAMPLE:
        return f"{before.value} has nothing after it; write for instance {_EXAMPLE[before.value]}", before
    if token.value in _EXAMPLE:
        return f"{token.value} has nothing before it; write for instance {_EXAMPLE[token.value]}", token
    if before is not None and before.value == ",":
        return "this comma has nothing after it; write a number there or take it away", before
    if token.value == ",":
        return "this comma has nothing before it; write a number there or take it away", token
    if token.value == "[":
        return "write the name of an array before [, as in doc[q]", token
    return None


def what_is_left_over(before: Token, token: Token) -> tuple[str, list[str | Suggestion]]:
    """Returns why the text cannot continue with `token`, and suggestions."""
    end = before.end
    if token.value == ",":
        return "a comma belongs inside min(…), max(…) or […]; join conditions with and", ["and"]
    if token.value == "[":
        return "only an array is looked up with [ ], as in doc[q]", []
    if token.value == "(" and before.value not in WORDS:
        return f"write * for the product: {before.value}*(", [Suggestion(end, token.start, "*")]
    message = f"write an operator between {before.value} and {token.value}, such as - or and"
    words = difflib.get_close_matches(token.value.lower(), ("and", "or"), 1, 0.6)
    prose = before.kind == token.kind == "name" and min(len(before.value), len(token.value)) > LETTERS
    joined = () if prose else ("and", "-")
    return message, [*words, *(Suggestion(end, token.start, f" {word} ") for word in joined)]


def unknown_function(name: Token, rules: list[str]) -> tuple[str, list[str | Suggestion]]:
    """Returns the message that a function is unknown, and suggestions: functions, rules, products, arrays."""
    word = name.value
    close = difflib.get_close_matches(word.lower(), FUNCTIONS, 1) or rules
    hint = f", did you mean {' or '.join(close)}?" if close else "; there are abs, min and max."
    product = f" For a product write {word}*(…), for data {word}[…]" if len(word) <= LETTERS else ""
    message = f"there is no function {word}{hint}{product}"
    return message, [*(f"{one}(" for one in close), *([f"{word}*("] if product else [])]


def argument_count(name: str, count: int) -> str:
    """Returns the message that a function has the wrong number of arguments."""
    wanted = "one number" if name == "abs" else "two numbers or more"
    return f"{name} takes {wanted}, as in {CALLS[name]}, and here it has {count}"


def no_such_rule(name: str, near: list[str]) -> str:
    """Returns the message that a name is not a condition and may be a misspelled rule."""
    return (
        f"no rule is named {name}; did you mean {' or '.join(near)}? "
        f"Or compare it with something, as in k <= {name}"
    )


def not_a_condition(shown: str) -> str:
    """Returns the message that a number is not a condition."""
    example = f"{shown} <= t" if shown == "k" else f"k <= {shown}"
    return f"{shown} is a number, not a condition; compare it with something, as in {example}"


def not_a_number(shown: str, needs: str) -> str:
    """Returns the message that a condition is not a number."""
    return f"{shown} is a condition, not a number, and {needs}; join conditions with and, or, not"
