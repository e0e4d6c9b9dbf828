"""Symbolic positions: what a traced function is called with, and what it builds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, cast

import numpy as np

from lattend.errors import TraceError
from lattend.rules.language import expr
from lattend.rules.language.expr import (
    And,
    Arith,
    ArithOp,
    Compare,
    CompareOp,
    Condition,
    Lookup,
    Name,
    Not,
    Num,
    Or,
    Term,
    Truth,
    flattened,
)

MAX_DEPTH = 100

INSTEAD = (
    "write & for and, | for or, ~ for not, (a <= b) & (b < c) for a <= b < c, "
    "lt.rules.minimum and lt.rules.maximum for min and max, and brackets around every comparison"
)


class Symbolic:
    """A term or a condition under construction, with its number of parts and levels."""

    __slots__ = ("depth", "parts")

    def __init__(self, below: Sequence[Symbolic], depth: int | None = None) -> None:
        self.parts = 1 + sum(item.parts for item in below)
        self.depth = depth or 1 + max((item.depth for item in below), default=0)
        # a function may build on its own results, so the tree can double with every line
        if self.parts > expr.MAX_PARTS or self.depth > MAX_DEPTH:
            raise TraceError(
                f"the function builds a rule of more than {expr.MAX_PARTS:,} parts or {MAX_DEPTH} levels; "
                "write it with fewer"
            )

    def __bool__(self) -> NoReturn:
        raise TraceError(
            f"Python asks whether {self!r} is true, and that is not known while a rule is being built "
            f"(it asks in and, or, not, if, in, min, max and a <= b < c); {INSTEAD}"
        )

    def _refuse(self, what: str, fix: str) -> NoReturn:
        raise TraceError(f"{what} of {self!r}, which is symbolic while a rule is built; {fix}")

    def __iter__(self) -> NoReturn:
        self._refuse("going through the elements", "write what holds for one query and one key")

    def __hash__(self) -> NoReturn:  # noqa: PLE0309
        self._refuse("membership", "write comparisons joined with |, as in (k == 0) | (k == 3)")

    def __len__(self) -> NoReturn:  # noqa: PLE0303
        self._refuse("the length", "write the size n, m, rows, cols or depth as a parameter")

    def __int__(self) -> NoReturn:
        self._refuse("int()", "leave int() away; every term is whole already")

    def __float__(self) -> NoReturn:
        self._refuse("float()", "stay with whole numbers; // and % divide them")

    def __index__(self) -> NoReturn:  # noqa: PLE0305
        self._refuse(
            "a range or a lookup",
            'take the array as a parameter and pass it as data, as in rule("doc[q] == doc[k]", '
            'data={"doc": ids}); compare instead of using range',
        )

    def __round__(self, digits: object = None) -> NoReturn:
        self._refuse("round()", "every term is whole already; // divides and rounds down")

    __trunc__ = __floor__ = __ceil__ = __round__

    def __array__(self, *_: object, **__: object) -> NoReturn:
        self._refuse(
            "an array",
            'pass arrays as data, as in rule("doc[q] == doc[k]", data={"doc": ids}), '
            "and use lt.rules.minimum, lt.rules.maximum, abs, // and % on terms",
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        known = _UFUNCS.get(ufunc.__name__)
        if known is None or method != "__call__" or kwargs:
            self._refuse(f"np.{ufunc.__name__}", "use + - * // % abs, comparisons and & | ~")
        return known(*inputs)


class SymbolicTerm(Symbolic):
    """A whole number that is not known yet: q, k, a size, a parameter, or what is made of them."""

    __slots__ = ("node",)
    __hash__ = Symbolic.__hash__

    def __init__(self, node: Term, below: Sequence[Symbolic] = ()) -> None:
        super().__init__(below)
        self.node = node

    def __repr__(self) -> str:
        return _cut(expr.term_text(self.node))

    def __add__(self, other: object) -> SymbolicTerm:
        return arithmetic("+", self, other)

    def __radd__(self, other: object) -> SymbolicTerm:
        return arithmetic("+", other, self)

    def __sub__(self, other: object) -> SymbolicTerm:
        return arithmetic("-", self, other)

    def __rsub__(self, other: object) -> SymbolicTerm:
        return arithmetic("-", other, self)

    def __mul__(self, other: object) -> SymbolicTerm:
        return arithmetic("*", self, other)

    def __rmul__(self, other: object) -> SymbolicTerm:
        return arithmetic("*", other, self)

    def __floordiv__(self, other: object) -> SymbolicTerm:
        return arithmetic("//", self, other)

    def __rfloordiv__(self, other: object) -> SymbolicTerm:
        return arithmetic("//", other, self)

    def __mod__(self, other: object) -> SymbolicTerm:
        return arithmetic("%", self, other)

    def __rmod__(self, other: object) -> SymbolicTerm:
        return arithmetic("%", other, self)

    def __divmod__(self, other: object) -> tuple[SymbolicTerm, SymbolicTerm]:
        return self // other, self % other

    def __neg__(self) -> SymbolicTerm:
        return arithmetic("neg", self)

    def __pos__(self) -> SymbolicTerm:
        return self

    def __abs__(self) -> SymbolicTerm:
        return arithmetic("abs", self)

    def __lt__(self, other: object) -> SymbolicCondition:
        return comparison("<", self, other)

    def __le__(self, other: object) -> SymbolicCondition:
        return comparison("<=", self, other)

    def __gt__(self, other: object) -> SymbolicCondition:
        return comparison(">", self, other)

    def __ge__(self, other: object) -> SymbolicCondition:
        return comparison(">=", self, other)

    def __eq__(self, other: object) -> SymbolicCondition:  # pyright: ignore[reportIncompatibleMethodOverride]
        return comparison("==", self, other)

    def __ne__(self, other: object) -> SymbolicCondition:  # pyright: ignore[reportIncompatibleMethodOverride]
        return comparison("!=", self, other)

    def __getitem__(self, index: object) -> SymbolicTerm:
        if not isinstance(self.node, Name):
            self._refuse("a lookup", "only an array is looked up, as in doc[q]")
        given = cast(tuple[object, ...], index) if isinstance(index, tuple) else (index,)
        places = [as_term(place, lambda: f"{self!r}[…]") for place in given]
        return SymbolicTerm(Lookup(self.node.name, tuple(place.node for place in places)), places)

    def __truediv__(self, other: object) -> NoReturn:
        self._refuse("division by /", "write // (division rounded down)")

    def __pow__(self, other: object) -> NoReturn:
        self._refuse("a power", "write a product out, as in t*t")

    def __xor__(self, other: object) -> NoReturn:
        self._refuse("a bit operation", "work with + - * // % and join conditions with & | ~")

    __rtruediv__ = __truediv__
    __rpow__ = __pow__
    __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __xor__

    def __and__(self, other: object) -> SymbolicCondition:
        return junction(And, self, other)

    def __rand__(self, other: object) -> SymbolicCondition:
        return junction(And, other, self)

    def __or__(self, other: object) -> SymbolicCondition:
        return junction(Or, self, other)

    def __ror__(self, other: object) -> SymbolicCondition:
        return junction(Or, other, self)

    def __invert__(self) -> SymbolicCondition:
        return ~as_condition(self)


class SymbolicCondition(Symbolic):
    """Something that holds for some squares and not for others: k <= q."""

    __slots__ = ("node",)
    __hash__ = Symbolic.__hash__

    def __init__(self, node: Condition, below: Sequence[Symbolic] = (), depth: int | None = None) -> None:
        super().__init__(below, depth)
        self.node = node

    def __repr__(self) -> str:
        return _cut(expr.text(self.node))

    def __and__(self, other: object) -> SymbolicCondition:
        return junction(And, self, other)

    def __rand__(self, other: object) -> SymbolicCondition:
        return junction(And, other, self)

    def __or__(self, other: object) -> SymbolicCondition:
        return junction(Or, self, other)

    def __ror__(self, other: object) -> SymbolicCondition:
        return junction(Or, other, self)

    def __invert__(self) -> SymbolicCondition:
        return SymbolicCondition(Not(self.node), [self])

    def number(self, *_: object) -> NoReturn:
        """Refuse to be used as a number."""
        raise TraceError(
            f"{self!r} is a condition, not a number: it cannot be compared, added or multiplied; "
            "join conditions with & | ~, as in (k <= q) & (q - k <= t), "
            "and write (a & b) | (~a & ~b) for two conditions that agree"
        )

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = number  # pyright: ignore[reportAssignmentType]
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = __pos__ = __abs__ = number
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __truediv__ = __rtruediv__ = number
    __pow__ = __rpow__ = __xor__ = __rxor__ = __getitem__ = number


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}…"


def as_term(value: object, place: Callable[[], str]) -> SymbolicTerm:
    """`value` as a term: a symbolic one, or a whole number; `place` says where it was found."""
    if isinstance(value, SymbolicTerm):
        return value
    if isinstance(value, SymbolicCondition):
        value.number()
    plain = value
    if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
        plain = cast(object, value.item())
    if isinstance(plain, int) and not isinstance(plain, bool):
        return SymbolicTerm(Num(plain))
    fix = f"write {int(plain)}" if isinstance(plain, float) and plain.is_integer() else "write an integer"
    raise TraceError(f"{plain!r} in {place()} is not a whole number; {fix}")


def as_condition(value: object) -> SymbolicCondition:
    """`value` as a condition: a symbolic one, True or False, or an entry of data (not 0)."""
    match value:
        case SymbolicCondition():
            return value
        case bool() | np.bool_():
            return SymbolicCondition(Truth(bool(value)))
        case SymbolicTerm(node=Lookup()):
            return value != 0
        case _:
            raise TraceError(
                f"& | ~ work on conditions, and here they meet {value!r}, a number. They bind tighter than "
                "comparisons, so put brackets around each one, as in (k <= q) & (q - k <= t)"
            )


def arithmetic(op: ArithOp, *values: object) -> SymbolicTerm:
    """The term `op` of these values."""

    def shown() -> str:
        return f" {op} ".join(map(repr, values)) if op in ("+", "-", "*", "//", "%") else op

    terms = [as_term(value, shown) for value in values]
    if op in ("//", "%") and isinstance(terms[1].node, Num) and terms[1].node.value < 1:
        raise TraceError(f"{shown()}: the divisor must be at least 1")
    return SymbolicTerm(Arith(op, tuple(term.node for term in terms)), terms)


def comparison(op: CompareOp, left: object, right: object) -> SymbolicCondition:
    """The condition `left op right`."""

    def shown() -> str:
        return f"{left!r} {op} {right!r}"

    low, high = as_term(left, shown), as_term(right, shown)
    return SymbolicCondition(Compare(op, low.node, high.node), [low, high])


def junction(kind: type[And] | type[Or], *values: object) -> SymbolicCondition:
    """All of these conditions (And) or any of them (Or)."""
    conditions = [as_condition(value) for value in values]
    # what is flattened is no level of its own, so a loop may join many conditions
    depth = 1 + max(c.depth - isinstance(c.node, kind) for c in conditions)
    return SymbolicCondition(flattened(kind, [c.node for c in conditions]), conditions, depth)


def minimum(*values: Any) -> Any:
    """The smallest of these terms, in a traced function: minimum(q, t) is the text's min(q, t).

    >>> minimum(3, 5)
    3
    """
    return _extreme("min", min, values)


def maximum(*values: Any) -> Any:
    """The largest of these terms, in a traced function: maximum(q, t) is the text's max(q, t).

    >>> maximum(3, 5)
    5
    """
    return _extreme("max", max, values)


def _extreme(op: ArithOp, plain: Callable[[Sequence[Any]], Any], values: Sequence[Any]) -> Any:
    if len(values) < 2:
        raise TraceError(f"lt.rules.{op}imum takes two numbers or more, as in lt.rules.{op}imum(q, t)")
    if any(isinstance(value, Symbolic) for value in values):
        return arithmetic(op, *values)
    return plain(values)


def _arithmetic(op: ArithOp) -> Callable[..., Symbolic]:
    return lambda *values: arithmetic(op, *values)


def _comparison(op: CompareOp) -> Callable[..., Symbolic]:
    return lambda *values: comparison(op, *values)


def _junction(kind: type[And] | type[Or]) -> Callable[..., Symbolic]:
    return lambda *values: junction(kind, *values)


_UFUNCS: dict[str, Callable[..., Symbolic]] = {
    "add": _arithmetic("+"),
    "subtract": _arithmetic("-"),
    "multiply": _arithmetic("*"),
    "floor_divide": _arithmetic("//"),
    "remainder": _arithmetic("%"),
    "negative": _arithmetic("neg"),
    "absolute": _arithmetic("abs"),
    "minimum": _arithmetic("min"),
    "maximum": _arithmetic("max"),
    "less": _comparison("<"),
    "less_equal": _comparison("<="),
    "equal": _comparison("=="),
    "not_equal": _comparison("!="),
    "greater_equal": _comparison(">="),
    "greater": _comparison(">"),
    "logical_and": _junction(And),
    "bitwise_and": _junction(And),
    "logical_or": _junction(Or),
    "bitwise_or": _junction(Or),
    "logical_not": lambda *values: ~as_condition(*values),
    "invert": lambda *values: ~as_condition(*values),
}
