"""Symbolic positions, the arguments of a traced function, and the terms it builds from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NoReturn, cast

from lattend.errors import TraceError
from lattend.rules.language import expr
from lattend.rules.language.expr import And, Arith, Compare, Lookup, Name, Not, Num, Or, Term, Truth

MAX_DEPTH = 100

INSTEAD = (
    "write & for and, | for or, ~ for not, (a <= b) & (b < c) for a <= b < c, "
    "lt.rules.minimum and lt.rules.maximum for min and max, and brackets around every comparison"
)
AS_DATA = 'pass arrays as data, as in rule("doc[q] == doc[k]", data={"doc": ids})'


class Symbolic:
    """A term or a condition under construction, with its number of parts and levels."""

    __slots__ = ("depth", "parts")
    device = None  # masks are moved to each other's

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

    def refuse(self, what: str, fix: str) -> NoReturn:
        """Raise the error that this cannot be done while a rule is built, and how to fix it."""
        raise TraceError(f"{what} of {self!r}, which is symbolic while a rule is built; {fix}")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        known = OPERATIONS.get(ufunc.__name__)
        if known is None or method != "__call__" or kwargs:
            self.refuse(f"np.{ufunc.__name__}", "use + - * // % abs, comparisons and & | ~")
        return known(*inputs)

    @classmethod
    def __torch_function__(cls, function: Any, _: object, args: Any = (), kwargs: Any = None) -> Any:
        """Handles a torch function that has a symbolic argument."""
        name, named = function.__name__.strip("_"), cast(dict[str, Any], kwargs or {})
        try:
            return OPERATIONS[name](*args, **named)
        except (KeyError, TypeError):
            symbol = next(arg for arg in (*args, *named.values()) if isinstance(arg, Symbolic))
            symbol.refuse(f"torch.{name}", "use + - * // % abs, comparisons and & | ~")

    def __getattr__(self, name: str) -> Any:
        """A tensor's method or property, as in (q - k).abs(): mask functions are written for tensors."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name in ("device", "dtype"):
            return None
        if name not in OPERATIONS:
            self.refuse(f".{name}", "use + - * // % abs, comparisons and & | ~")
        return partial(OPERATIONS[name], self)


class SymbolicTerm(Symbolic):
    """A symbolic integer: q, k, a size, a parameter, or a term of them."""

    __slots__ = ("node",)

    def __init__(self, node: Term, below: Sequence[Symbolic] = ()) -> None:
        super().__init__(below)
        self.node = node

    def __repr__(self) -> str:
        return _cut(expr.term_text(self.node))

    def __pos__(self) -> SymbolicTerm:
        return self

    def __divmod__(self, other: object) -> tuple[SymbolicTerm, SymbolicTerm]:
        return arithmetic("//", self, other), arithmetic("%", self, other)

    def __getitem__(self, index: object) -> SymbolicTerm:
        if not isinstance(self.node, Name):
            self.refuse("a lookup", "only an array is looked up, as in doc[q]")
        return lookup(self.node.name, places_of(index))


class SymbolicCondition(Symbolic):
    """Something that holds for some pairs and not for others: k <= q."""

    __slots__ = ("node",)

    def __init__(
        self, node: expr.Condition, below: Sequence[Symbolic] = (), depth: int | None = None
    ) -> None:
        super().__init__(below, depth)
        self.node = node

    def __repr__(self) -> str:
        return _cut(expr.text(self.node))

    def number(self, *_: object) -> NoReturn:
        """Refuse to be used as a number."""
        raise TraceError(
            f"{self!r} is a condition, not a number: it cannot be compared, added or multiplied; "
            "join conditions with & | ~, as in (k <= q) & (q - k <= t), "
            "and write (a & b) | (~a & ~b) for two conditions that agree"
        )

    __pos__ = __getitem__ = number


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}…"


def as_term(value: object, context: Callable[[], str]) -> SymbolicTerm:
    """Returns `value` as a symbolic term; `context` describes where it is used."""
    if isinstance(value, SymbolicTerm):
        return value
    if isinstance(value, SymbolicCondition):
        value.number()
    plain = _item(value)
    if isinstance(plain, int) and not isinstance(plain, bool):
        return SymbolicTerm(Num(plain))
    fix = f"write {int(plain)}" if isinstance(plain, float) and plain.is_integer() else "write an integer"
    raise TraceError(f"{plain!r} in {context()} is not a whole number; {fix}")


def _item(value: Any) -> object:
    """A number out of an array or a tensor without axes; anything else as it is."""
    return value.item() if getattr(value, "ndim", None) == 0 else value


def as_condition(value: object) -> SymbolicCondition:
    """Returns `value` as a condition: symbolic, True or False, or an entry of data that is not 0."""
    match value if isinstance(value, Symbolic) else _item(value):
        case SymbolicCondition() as condition:
            return condition
        case bool() as known:
            return SymbolicCondition(Truth(known))
        case SymbolicTerm(node=Lookup()) as entry:
            return comparison("!=", entry, 0)
        case _:
            raise TraceError(
                f"& | ~ work on conditions, and here they meet {value!r}, a number. They bind tighter than "
                "comparisons, so put brackets around each one, as in (k <= q) & (q - k <= t)"
            )


def arithmetic(op: expr.ArithOp, *values: object) -> SymbolicTerm:
    """The term `op` of these values."""

    def shown() -> str:
        return f" {op} ".join(map(repr, values)) if op in ("+", "-", "*", "//", "%") else op

    terms = [as_term(value, shown) for value in values]
    if op in ("//", "%") and isinstance(terms[1].node, Num) and terms[1].node.value < 1:
        raise TraceError(f"{shown()}: the divisor must be at least 1")
    return SymbolicTerm(Arith(op, tuple(term.node for term in terms)), terms)


def comparison(op: expr.CompareOp, left: object, right: object) -> SymbolicCondition:
    """The condition `left op right`."""

    def shown() -> str:
        return f"{left!r} {op} {right!r}"

    low, high = as_term(left, shown), as_term(right, shown)
    return SymbolicCondition(Compare(op, low.node, high.node), [low, high])


def junction(kind: type[And] | type[Or], *values: object) -> SymbolicCondition:
    """Joins conditions by And or Or."""
    conditions = [as_condition(value) for value in values]
    # what is expr.flattened is no level of its own, so a loop may join many conditions
    depth = 1 + max(c.depth - isinstance(c.node, kind) for c in conditions)
    return SymbolicCondition(expr.flattened(kind, [c.node for c in conditions]), conditions, depth)


def negation(value: object) -> SymbolicCondition:
    """The condition that holds where this one does not."""
    condition = as_condition(value)
    return SymbolicCondition(Not(condition.node), [condition])


def places_of(index: object) -> tuple[object, ...]:
    """Returns the indices of a lookup: q and k in doc[q, k]."""
    return cast(tuple[object, ...], index) if isinstance(index, tuple) else (index,)


def lookup(array: str, indices: Sequence[object]) -> SymbolicTerm:
    """Returns the entry of an array at these indices."""
    terms = [as_term(index, lambda: f"{array}[…]") for index in indices]
    return SymbolicTerm(Lookup(array, tuple(index.node for index in terms)), terms)


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


def _extreme(op: expr.ArithOp, plain: Callable[[Sequence[Any]], Any], values: Sequence[Any]) -> Any:
    if len(values) < 2:
        raise TraceError(f"lt.rules.{op}imum takes two numbers or more, as in lt.rules.{op}imum(q, t)")
    if any(isinstance(value, Symbolic) for value in values):
        return arithmetic(op, *values)
    return plain(values)


def _where(condition: object, then: object, otherwise: object) -> Symbolic:
    """torch.where between conditions, or as a minimum or maximum; the language has no other choice."""
    if isinstance(condition, SymbolicCondition) and isinstance(condition.node, Compare):
        op = _chosen_extreme(condition.node, then, otherwise)
        if op is not None:
            return arithmetic(op, then, otherwise)
    if any(
        isinstance(value, SymbolicTerm) and not isinstance(value.node, Lookup) for value in (then, otherwise)
    ):
        raise TraceError(
            "where chooses between numbers here; choose between conditions: "
            "(c & (k <= a)) | (~c & (k <= b)) for k <= where(c, a, b)"
        )
    return junction(Or, junction(And, condition, then), junction(And, negation(condition), otherwise))


def _chosen_extreme(asked: Compare, then: object, otherwise: object) -> Literal["min", "max"] | None:
    """Returns where(a < b, a, b), and similar calls, as a minimum or a maximum."""
    sides = [SymbolicTerm(Num(side)) if type(side) is int else side for side in (then, otherwise)]
    nodes = [side.node for side in sides if isinstance(side, SymbolicTerm)]
    if asked.op in ("==", "!=") or nodes not in ([asked.left, asked.right], [asked.right, asked.left]):
        return None
    return "min" if (nodes[0] == asked.left) == (asked.op in ("<", "<=")) else "max"


def _divided(value: object, by: object, rounding_mode: str | None = None) -> SymbolicTerm:
    if rounding_mode != "floor":
        raise TraceError(f'division by / of {value!r}; write // or rounding_mode="floor"')
    return arithmetic("//", value, by)


def _clamped(value: object, min: object = None, max: object = None) -> object:
    raised = value if min is None else arithmetic("max", value, min)
    return raised if max is None else arithmetic("min", raised, max)


def _given(first: object, *_: object, **__: object) -> object:
    return first


def _constant(truth: bool, *_: object, **__: object) -> SymbolicCondition:
    return SymbolicCondition(Truth(truth), [])


def _named(operation: Callable[..., Any], names: str) -> dict[str, Callable[..., Any]]:
    """Returns operations by name from lines of a sign and its names."""
    entries = [entry.split() for entry in names.split(", ")]
    return {name: partial(operation, sign) for sign, *others in entries for name in others}


# What NumPy and torch call their operations, as functions, as methods and (without __) as operators
_ARITHMETIC = (
    "+ add, - subtract sub, * multiply mul, // floor_divide floordiv, % remainder mod, "
    "neg negative neg, abs absolute abs, min minimum min, max maximum max"
)
_COMPARISON = "< less lt, <= less_equal le, == equal eq, != not_equal ne, >= greater_equal ge, > greater gt"
OPERATIONS: dict[str, Callable[..., Any]] = {
    **_named(arithmetic, _ARITHMETIC),
    **_named(comparison, _COMPARISON),
    **dict.fromkeys(("logical_and", "bitwise_and", "and"), partial(junction, And)),
    **dict.fromkeys(("logical_or", "bitwise_or", "or"), partial(junction, Or)),
    **dict.fromkeys(("logical_not", "bitwise_not", "invert"), negation),
    **dict.fromkeys(("to", "long", "int", "clone", "detach"), _given),
    **{"bool": as_condition, "where": _where, "div": _divided, "divide": _divided},
    **{"clamp": _clamped, "clip": _clamped},
    # and_masks and or_masks begin with these
    **{"new_ones": partial(_constant, True), "new_zeros": partial(_constant, False)},
}

# Python's operators, as methods of symbols

_WHOLE = "every term is whole already"
_REFUSED = {
    "iter": ("going through the elements", "write what holds for one query and one key"),
    "hash": ("membership", "write comparisons joined with |, as in (k == 0) | (k == 3)"),
    "len": ("the length", "write the size n, m, rows, cols or depth as a parameter"),
    "int": ("int()", f"leave int() away; {_WHOLE}"),
    "float": ("float()", "stay with whole numbers; // and % divide them"),
    "index": ("a range or a lookup", f"{AS_DATA}; compare instead of using range"),
    **dict.fromkeys(
        ("round", "trunc", "floor", "ceil"), ("round()", f"{_WHOLE}; // divides and rounds down")
    ),
    "array": ("an array", f"{AS_DATA}, and use lt.rules.minimum, maximum, abs, // and % on terms"),
    **dict.fromkeys(("truediv", "rtruediv"), ("division by /", "write // (division rounded down)")),
    **dict.fromkeys(("pow", "rpow"), ("a power", "write a product out, as in t*t")),
    **dict.fromkeys(
        ("xor", "rxor", "lshift", "rlshift", "rshift", "rrshift"),
        ("a bit operation", "work with + - * // % and join conditions with & | ~"),
    ),
}
_BINARY = ("and", "or", "add", "sub", "mul", "floordiv", "mod")
_OTHERS = ("invert", "neg", "abs", "lt", "le", "eq", "ne", "ge", "gt")
_OF_NUMBERS = ("truediv", "rtruediv", "pow", "rpow", "xor", "rxor", "lshift", "rlshift", "rshift", "rrshift")


def _add_method(kind: type[Symbolic], name: str) -> None:
    def method(self: Symbolic, *other: object) -> Any:
        return OPERATIONS[name](self, *other)

    def swapped(self: Symbolic, other: object) -> Any:
        return OPERATIONS[name](other, self)

    setattr(kind, f"__{name}__", method)
    if name in _BINARY:
        setattr(kind, f"__r{name}__", swapped)


def _add_refusal(kind: type[Symbolic], name: str, what: str, fix: str) -> None:
    def refuse(self: Symbolic, *_: object, **__: object) -> NoReturn:
        self.refuse(what, fix)

    setattr(kind, f"__{name}__", refuse)


for _name, _refused in _REFUSED.items():
    _add_refusal(SymbolicTerm if _name in _OF_NUMBERS else Symbolic, _name, *_refused)
for _name in _BINARY:
    _add_method(Symbolic if _name in ("and", "or") else SymbolicTerm, _name)
for _name in _OTHERS:
    _add_method(Symbolic if _name == "invert" else SymbolicTerm, _name)
for _name in (*_BINARY[2:], *(f"r{name}" for name in _BINARY[2:]), *_OTHERS[1:], *_OF_NUMBERS):
    setattr(SymbolicCondition, f"__{_name}__", SymbolicCondition.number)
