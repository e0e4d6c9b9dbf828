"""Random conditions: text and back, function and back, and their value against Python's own."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate, evaluate_term
from lattend.rules.language.expr import (
    And,
    Arith,
    Compare,
    Condition,
    Lookup,
    Name,
    Not,
    Num,
    Or,
    Term,
    Truth,
)
from lattend.rules.language.parser import parse, parse_term
from lattend.rules.language.symbols import maximum, minimum
from lattend.rules.language.tracing import trace

NAMES = ("q", "k", "t", "w")
OPS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod}
COMPARISONS = {
    **{"<": operator.lt, "<=": operator.le, "==": operator.eq},
    **{"!=": operator.ne, ">=": operator.ge, ">": operator.gt},
}


def _compound(terms: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    divisors = st.one_of(st.integers(1, 5).map(Num), st.just(Name("w")))
    pairs = st.tuples(terms, terms)
    return st.one_of(
        st.builds(Arith, st.sampled_from(["+", "-", "*"]), pairs),
        st.builds(Arith, st.sampled_from(["//", "%"]), st.tuples(terms, divisors)),
        st.builds(lambda a: Arith("neg", (a,)), terms),
        st.builds(lambda a: Arith("abs", (a,)), terms),
        st.builds(Arith, st.sampled_from(["min", "max"]), st.lists(terms, min_size=2, max_size=3).map(tuple)),
        st.builds(lambda a: Lookup("doc", (Arith("%", (a, Num(7))),)), terms),
    )


TERMS: st.SearchStrategy[Term] = st.recursive(
    st.one_of(st.sampled_from(NAMES).map(Name), st.integers(-9, 9).map(Num)), _compound, max_leaves=8
)


def _joined(parts: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    def flat(kind: type[And] | type[Or]) -> st.SearchStrategy[Condition]:
        return st.lists(parts, min_size=2, max_size=3).map(lambda args: expr.flattened(kind, args))

    return st.one_of(flat(And), flat(Or), parts.map(Not))


CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    st.one_of(
        st.builds(Compare, st.sampled_from(sorted(COMPARISONS)), TERMS, TERMS), st.booleans().map(Truth)
    ),
    _joined,
    max_leaves=5,
)


@given(CONDITIONS)
def test_text_and_back(condition: Condition) -> None:
    assert parse(expr.text(condition)) == condition


@given(TERMS)
def test_term_and_back(term: Term) -> None:
    assert parse_term(expr.term_text(term)) == term


def _build(node: Any, env: dict[str, Any]) -> Any:
    """The node as a person would write it in a traced function."""
    match node:
        case Num() | Truth():
            return node.value
        case Name():
            return env[node.name]
        case Lookup():
            return env[node.array][_build(node.indices[0], env)]
        case Arith(op="neg"):
            return -_build(node.args[0], env)
        case Arith(op="abs"):
            return abs(_build(node.args[0], env))
        case Arith(op="min" | "max"):
            return (minimum if node.op == "min" else maximum)(*(_build(a, env) for a in node.args))
        case Arith():
            return OPS[node.op](*(_build(a, env) for a in node.args))
        case Compare():
            return COMPARISONS[node.op](_build(node.left, env), _build(node.right, env))
        case And() | Or():
            parts = [_build(a, env) for a in node.args]
            return _reduced(operator.and_ if isinstance(node, And) else operator.or_, parts)
        case Not():
            arg = _build(node.arg, env)
            return not arg if isinstance(arg, bool) else ~arg


def _reduced(join: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    return list(itertools.accumulate(parts, join))[-1]


def _constant(node: expr.Node) -> bool:
    """Python computes what has no name before the symbolic terms see it, and turns 3 < q around."""
    return any(
        (not expr.names(part) and not isinstance(part, Num))
        or (isinstance(part, Compare) and not expr.names(part.left))
        for part in expr.walk(node)
    )


@given(CONDITIONS.filter(lambda condition: not _constant(condition)))
def test_function_and_back(condition: Condition) -> None:
    def written(q: Any, k: Any, t: Any, w: Any, doc: Any) -> Any:
        return _build(condition, {"q": q, "k": k, "t": t, "w": w, "doc": doc})

    assert trace(written).condition == condition


DOC = np.array([3, 0, -2, 5, 1, 1, 8])
small = st.integers(-12, 12)


@given(CONDITIONS, small, small, small, st.integers(1, 6))
def test_value_is_what_python_says(condition: Condition, q: int, k: int, t: int, w: int) -> None:
    at = {"q": q, "k": k, "t": t, "w": w}
    python = eval(expr.text(condition), {"doc": DOC.tolist(), "true": True, "false": False, **at})
    assert evaluate(condition, at, {"doc": DOC}) is python


@given(CONDITIONS, st.integers(0, 5), st.integers(0, 5), small, st.integers(1, 6))
def test_arrays_agree_with_single_squares(condition: Condition, n: int, m: int, t: int, w: int) -> None:
    rows, columns = np.arange(n)[:, None], np.arange(m)[None, :]
    at = {"t": t, "w": w}
    whole = evaluate(condition, {"q": rows, "k": columns, **at}, {"doc": DOC})
    single = [[evaluate(condition, {"q": q, "k": k, **at}, {"doc": DOC}) for k in range(m)] for q in range(n)]
    assert np.array_equal(np.broadcast_to(whole, (n, m)), np.array(single, bool).reshape(n, m))


big = st.integers(-(2**66), 2**66)


@given(TERMS, st.lists(big, min_size=1, max_size=3), big, st.integers(1, 2**66))
def test_arrays_are_exact_or_refuse(term: Term, qs: list[int], t: int, w: int) -> None:
    inside = [q for q in qs if abs(q) < 2**63]
    at = {"k": 5, "t": t, "w": w}
    try:
        found = evaluate_term(term, {"q": np.array(inside, np.int64), **at}, {"doc": DOC})
    except Exception as problem:
        assert type(problem).__name__ == "DomainError"
        return
    single = [evaluate_term(term, {"q": q, **at}, {"doc": DOC}) for q in inside]
    assert np.broadcast_to(np.asarray(found, object), len(inside)).tolist() == single
