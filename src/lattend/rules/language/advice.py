"""Error messages of the rule parser: what is wrong and what to write instead."""

from __future__ import annotations

import difflib

from lattend.errors import Suggestion
from lattend.rules.language.scan import FUNCTIONS, WORDS
from lattend.rules.language.tokens import Token

WHOLE = {"rule": "k <= q and q - k <= t", "assumption": "t < n, w | n", "term": "min(q, t) + 1"}
CALL = {"abs": "abs(q - k)", "min": "min(q, t)", "max": "max(q, t)"}
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


def left_over(before: Token, token: Token) -> tuple[str, list[str | Suggestion]]:
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
    return f"{name} takes {wanted}, as in {CALL[name]}, and here it has {count}"


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
