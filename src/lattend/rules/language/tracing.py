"""Reading a rule from a Python function: it is called once, with symbolic positions.

    trace(lambda q, k, t: (k <= q) & (q - k <= t)) == parse("k <= q and q - k <= t")

Python turns `3 <= q` into `q >= 3` before the function's terms see it; otherwise the tree is the
text's tree.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np

from lattend.errors import TraceError
from lattend.rules.language.expr import Condition, Name, Truth
from lattend.rules.language.scan import WORDS
from lattend.rules.language.symbols import SymbolicCondition, SymbolicTerm
from lattend.rules.language.tokens import is_name


def trace(function: Callable[..., object]) -> Condition:
    """The condition a function of positions, sizes and parameters returns.

    >>> trace(lambda q, k: k <= q)
    Compare(op='<=', left=Name(name='k'), right=Name(name='q'))
    """
    label = f"function {getattr(function, '__name__', type(function).__name__)}"
    if not callable(function):
        raise TraceError(f"a rule is a text or a function of q and k, got {function!r}")
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise TraceError(f"{label} does not say what its parameters are; wrap it in a lambda") from None
    for parameter in parameters:
        _check(label, parameter)
    positional = [SymbolicTerm(Name(p.name)) for p in parameters if p.kind is not p.KEYWORD_ONLY]
    named = {p.name: SymbolicTerm(Name(p.name)) for p in parameters if p.kind is p.KEYWORD_ONLY}
    return _condition(label, function(*positional, **named))


def _check(label: str, parameter: inspect.Parameter) -> None:
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise TraceError(f"{label} takes {parameter}; name each position and parameter, as in (q, k, t)")
    if parameter.default is not parameter.empty:
        raise TraceError(
            f"{label} has a default value, {parameter}; leave it out and bind it afterwards, "
            f"as in rule(…).at({name}=…)"
        )
    if not is_name(name, WORDS):
        raise TraceError(f"{label}: {name} cannot be a name in a rule; use letters a to z, digits and _")


def _condition(label: str, result: object) -> Condition:
    match result:
        case SymbolicCondition():
            return result.node
        case bool() | np.bool_():
            return Truth(bool(result))
        case SymbolicTerm():
            raise TraceError(
                f"{label} gives the number {result!r}, not a condition; compare it with something, "
                f"as in k <= {result!r}"
            )
        case None:
            raise TraceError(f"{label} gives None; end it with return and a condition, as in return k <= q")
        case _:
            raise TraceError(
                f"{label} gives {result!r}, a {type(result).__name__}, not a condition such as k <= q"
            )
