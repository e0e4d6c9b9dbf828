"""Term: a formula as a tree, which is written in three notations and has a value wherever its names do."""

from __future__ import annotations

from dataclasses import dataclass

# Functions of what stands in their brackets; before a bracket, other names are factors
FUNCTIONS = (
    "softmax",
    "exp",
    "log",
    "sqrt",
    "norm",
    "min",
    "max",
    "sin",
    "cos",
    "tan",
    "tanh",
    "atan",
    "abs",
)
# Run an index over its values: sum(a, i, 1, n), sum(a, k), sum(a, j != k)
BINDERS = ("sum", "concat", "matrix")


@dataclass(frozen=True, slots=True)
class Term:
    """An operation and what it is applied to.

    number name              its text
    + - * / // % ^ = != neg  as in `a - b`, `-a`
    transposed               W.T
    index, head              Z[q, k] and W{h}: the first argument is what has the index
    call                     softmax(a)
    indicator                is(k = q), which is 1 or 0
    chance                   p(x|z), p(x, z): its text is the distribution and what stands between letters
    sum concat matrix        a body, an index, and its limits or none; or a condition in place of the index
    vector                   (a, b)
    """

    op: str
    args: tuple[Term, ...] = ()
    text: str = ""


def signature(chance: Term) -> str:
    """What a distribution is told apart by, its letters: p(x|z) is not p(z)."""
    name, between = chance.text[:-1], chance.text[-1]
    return f"{name}({between.join(letter.text for letter in chance.args)})"


def bound_index(binder: Term) -> str:
    """The index that a sum runs over its values."""
    index = binder.args[1]
    return index.text if index.op == "name" else index.args[0].text
