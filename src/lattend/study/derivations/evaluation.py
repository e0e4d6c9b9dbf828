"""The value of a Term where its names have values: exact numbers, symbols, vectors, matrices, functions.

An environment is a dictionary. `environment["each k"]` are the values of an index k; what has an index is an
array, a dictionary or a function of the index; W{h} is that under "W{}", and p(x|z) the one under "p(x|z)".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lattend.counts.terms.term import Term, bound_index, signature
from lattend.errors import DomainError, NamingError
from lattend.study.exact.formula import FUNCTIONS as EXACT
from lattend.study.exact.formula import LARGEST_POWER
from lattend.study.exact.numbers import exact

Environment = dict[str, Any]
MOST_TERMS = 10_000  # of a sum


def evaluate(term: Term, names: Mapping[str, Any]) -> Any:
    """The value of the term: an exact number, or an array of them.

    >>> from lattend.counts.terms.term import read_term
    >>> evaluate(read_term("sum(i^2, i, 1, n)"), {"n": 3})  # 1 + 4 + 9
    14
    """
    match term.op:
        case "number":
            return exact(int(term.text))
        case "name":
            return _look_up(term.text, names)
        case "sum" | "concat" | "matrix":
            return _bound(term, names)
        case "chance":
            return _look_up(signature(term), names)(*(_look_up(letter.text, names) for letter in term.args))
        case "head":
            return _at(_look_up(f"{term.args[0].text}{{}}", names), [evaluate(term.args[1], names)])
        case _:
            return _applied(term, [evaluate(arg, names) for arg in term.args])


def define(names: Environment, left: Term, right: Term) -> None:
    """Gives the left side the value of the right one; `O{h}[q]` becomes a function of h, then of q."""
    _define(names, left, lambda inner: evaluate(right, inner))


def vector(entries: Sequence[Any]) -> Any:
    """An array of symbols or exact numbers, with as many axes as the entries are nested."""
    return np.array(entries, dtype=object)


def exact_array(numbers: Sequence[Any]) -> Any:
    """An array of numbers, made exact."""
    return np.vectorize(exact, otypes=[object])(vector(numbers))


def _define(names: Environment, left: Term, value: Callable[[Environment], Any]) -> None:
    def function(letters: Sequence[Term], outer: Environment) -> Callable[..., Any]:
        return lambda *keys: value(
            {**outer, **{letter.text: key for letter, key in zip(letters, keys, strict=True)}}
        )

    match left.op:
        case "name":
            names[left.text] = value(names)
        case "chance":
            names[signature(left)] = function(left.args, names)
        case "head":
            names[f"{left.args[0].text}{{}}"] = function(left.args[1:], names)
        case _:
            _define(names, left.args[0], lambda outer: function(left.args[1:], outer))


def _look_up(name: str, names: Mapping[str, Any]) -> Any:
    if name not in names:
        known = ", ".join(one for one in names if not one.startswith("each "))
        raise NamingError(f"{name} has no value here; there are {known}")
    return names[name]


def _bound(term: Term, names: Mapping[str, Any]) -> Any:
    body, index = term.args[:2]
    name = bound_index(term)
    if len(term.args) == 4:
        low, high = (int(evaluate(limit, names)) for limit in term.args[2:])
        if high - low >= MOST_TERMS:
            raise DomainError(f"a sum of {high - low + 1:,} terms is too long; at most {MOST_TERMS:,}")
        values: Sequence[Any] = range(low, high + 1)
    else:
        values = _look_up(f"each {name}", names)
    inside = [{**names, name: value} for value in values]
    if index.op != "name":
        inside = [one for one in inside if evaluate(index, one)]
    terms = [evaluate(body, one) for one in inside]
    if term.op == "concat":
        return np.concatenate(terms)
    if term.op == "matrix":
        side = round(len(terms) ** 0.5)
        return vector(terms).reshape(side, side)
    return sum(terms[1:], terms[0]) if terms else exact(0)


def _applied(term: Term, values: list[Any]) -> Any:
    first, *rest = values
    match term.op:
        case "+":
            return first + rest[0]
        case "-":
            return first - rest[0]
        case "neg":
            return -first
        case "*":
            both = np.ndim(first) > 0 and np.ndim(rest[0]) > 0
            return first @ rest[0] if both else first * rest[0]
        case "/":
            return first / rest[0]
        case "//":
            return first // rest[0]
        case "%":
            return first % rest[0]
        case "^":
            return _power(first, rest[0])
        case "=":
            return bool(np.all(first == rest[0]))
        case "!=":
            return bool(np.any(first != rest[0]))
        case "indicator":
            return exact(int(first))
        case "transposed":
            return first.T
        case "index":
            return _at(first, rest)
        case "vector":
            return vector(values)
        case _:
            return _called(term.text, values)


def _power(base: Any, exponent: Any) -> Any:
    for one in np.ravel(exponent):
        if one.is_number and abs(one) > LARGEST_POWER:
            raise DomainError(f"a power of at most {LARGEST_POWER:,} is meant to be enough")
    return base**exponent


def _at(value: Any, keys: Sequence[Any]) -> Any:
    if callable(value):
        return value(*keys)
    plain = [tuple(map(int, key)) if np.ndim(key) else int(key) for key in keys]
    try:
        return value[plain[0] if len(plain) == 1 else tuple(plain)]
    except (KeyError, IndexError):
        raise DomainError(f"there is nothing at the index {', '.join(map(str, plain))}") from None


def _called(name: str, values: list[Any]) -> Any:
    match name:
        case "softmax":
            powers = [EXACT["exp"](score) for score in values[0]]
            return vector([power / sum(powers) for power in powers])
        case "norm":
            return EXACT["sqrt"](sum(entry**2 for entry in values[0]))
        case "min" | "max":
            return (min if name == "min" else max)(values)
        case _:
            return EXACT[name](values[0])
