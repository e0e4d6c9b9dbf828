"""Numbers of a rule, by name: the checks of names and values, and the methods that take them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from lattend.errors import DomainError, NamingError
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate

if TYPE_CHECKING:
    from lattend.rules.rule import Rule

Method = TypeVar("Method", bound=Callable[..., Any])


def by_name(method: Method) -> Method:
    """Wraps a method: numbers without names and misspelled options raise an error with the correction."""
    name, options = method.__name__, method.__kwdefaults__ or {}

    @wraps(method)
    def checked(rule: Any, *unnamed: object, **named: Any) -> Any:
        if unnamed:
            first = next(iter(rule.free), "n")
            raise NamingError(
                f"{name}({', '.join(map(repr, unnamed))}): numbers are given by name, "
                f"as in {name}({first}={unnamed[0]!r})"
            )
        check_options(name, options, named, [rule])
        return method(rule, **named)

    return cast(Method, checked)


def check_options(function: str, options: Collection[str], names: Iterable[str], rules: list[Rule]) -> None:
    """Raises if a name is close to an option and is not a size or a parameter of the rules."""
    known = {name for rule in rules for name in (*rule.sizes, *rule.parameters, *rule.positions)}
    for name in names:
        if name in options or name in known or close_name(name, known):
            continue
        meant = close_name(name, options)
        if meant:
            raise NamingError(f'{function} has no option {name}, and "{rules[0].text}" has no {name}{meant}')


def check_value(rule: Rule, name: str, value: object) -> None:
    """Raises unless the rule has an open size or parameter of this name, and the value is a whole number."""
    if name in rule.values:
        raise NamingError(f"{name} already has the value {rule.values[name]}; bind it once")
    known = rule.sizes + rule.parameters
    if name not in known:
        message = f'rule "{rule.text}" has no {name}; it has {", ".join(known)}'
        raise NamingError(f"{message}{close_name(name, known)}")
    if isinstance(value, str):
        raise DomainError(f"{name} must be an integer, got {value!r}; left out, it stays a letter")
    check_integer(name, value)


def check_integer(name: str, value: object) -> None:
    """Raises unless the value is a whole number; True and 2.0 are not."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise DomainError(f"{name} must be an integer, got {value!r}")


def check_domain(rule: Rule, values: Mapping[str, int]) -> None:
    """Raises unless the rule is defined at these values."""
    for part in expr.conjuncts(rule.domain):
        names = expr.names(part)
        if all(name in values for name in names) and not evaluate(part, values, {}):
            numbers = ", ".join(f"{name} = {values[name]}" for name in names)
            raise DomainError(f'rule "{rule.text}" needs {expr.text(part)}, got {numbers}')


def close_name(name: str, known: Iterable[str]) -> str:
    """Returns `; did you mean title?` for a known name spelled almost like this one, or an empty text."""
    close = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {close[0]}?" if close else ""
