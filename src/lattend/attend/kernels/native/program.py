"""Programs: terms and conditions of q, k, head and batch as compiled code runs them, on a stack of columns.

`q - k <= t` at t = 3 is QUERY, KEY, SUBTRACT, NUMBER 3, AT_MOST. The codes and limits are those of
kernels/native/source/terms.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from lattend.attend.call.tensor_terms import ELEMENT
from lattend.rules.axes import HEAD
from lattend.rules.language import expr
from lattend.rules.language.expr import And, Arith, Compare, Lookup, Name, Node, Not, Num, Or, Truth

NAMES = (
    "NUMBER QUERY KEY HEAD ELEMENT LOOK_UP TO_REAL LOWER_TO_REAL ADD SUBTRACT MULTIPLY DIVIDE REMAINDER "
    "LEAST MOST NEGATIVE SIZE LESS AT_MOST GREATER AT_LEAST EQUAL UNEQUAL BOTH EITHER NOT "
    "REAL_ADD REAL_SUBTRACT REAL_MULTIPLY REAL_NEGATIVE"
)
CODES = {name: code for code, name in enumerate(NAMES.split())}
MAX_DEPTH = 16
MAX_NUMBER = 1 << 62
POSITIONS = {"q": "QUERY", "k": "KEY", HEAD: "HEAD", ELEMENT: "ELEMENT"}
WHOLE = {
    **{"+": "ADD", "-": "SUBTRACT", "*": "MULTIPLY", "//": "DIVIDE", "%": "REMAINDER", "min": "LEAST"},
    **{"max": "MOST", "<": "LESS", "<=": "AT_MOST", ">": "GREATER", ">=": "AT_LEAST", "==": "EQUAL"},
    "!=": "UNEQUAL",
}
REAL = {"+": "REAL_ADD", "-": "REAL_SUBTRACT", "*": "REAL_MULTIPLY"}

Instruction = tuple[int, int]


class NoProgram(Exception):
    """A term that compiled code does not run."""


class _Code(NamedTuple):
    """What puts one column on the stack, whether of real numbers, and how high the stack gets."""

    instructions: tuple[Instruction, ...]
    real: bool = False
    depth: int = 1

    def then(self, name: str, number: int = 0, *, real: bool | None = None) -> _Code:
        whole = (*self.instructions, (CODES[name], number))
        return _Code(whole, self.real if real is None else real, self.depth)


def program(
    node: Node, whole: Sequence[str] = (), real: Sequence[str] = (), *, gives_real: bool = False
) -> list[Instruction]:
    """The instructions of a term or condition that reads these tables, first those of whole numbers.

    Raises NoProgram where a divisor is not a number, or a stack or a number would be too large.

    >>> from lattend.rules.language.parser import parse
    >>> names = NAMES.split()
    >>> [(names[code], number) for code, number in program(parse("q - k <= 3"))]
    [('QUERY', 0), ('KEY', 0), ('SUBTRACT', 0), ('NUMBER', 3), ('AT_MOST', 0)]
    """
    tables = (*whole, *real)

    def looked_up(name: str, parts: Sequence[_Code]) -> _Code:
        read = tuple(one for part in parts for one in part.instructions)
        depth = max([1, *(place + part.depth for place, part in enumerate(parts))])
        if name not in tables or any(part.real for part in parts):
            raise NoProgram(name)
        return _Code(read, depth=depth).then("LOOK_UP", tables.index(name), real=name in real)

    def step(node: Node, parts: Sequence[_Code]) -> _Code:
        match node:
            case Truth() | Num():
                if abs(node.value) > MAX_NUMBER:
                    raise NoProgram(str(node.value))
                return _Code(((CODES["NUMBER"], int(node.value)),))
            case Name():
                if node.name in tables:
                    return looked_up(node.name, ())
                if node.name not in POSITIONS:
                    raise NoProgram(node.name)
                return _Code(((CODES[POSITIONS[node.name]], 0),))
            case Lookup():
                return looked_up(node.array, parts)
            case Arith(op="neg"):
                return parts[0].then("REAL_NEGATIVE" if parts[0].real else "NEGATIVE")
            case Arith(op="abs"):
                return _of_whole(parts[0]).then("SIZE")
            case Arith(op="//" | "%") if not isinstance(node.args[1], Num) or not node.args[1].value:
                raise NoProgram(expr.term_text(node))
            case Arith() | Compare():
                return reduce(lambda a, b: _joined(node.op, a, b), parts)
            case And():
                return reduce(lambda a, b: _pair(a, b).then("BOTH"), parts)
            case Or():
                return reduce(lambda a, b: _pair(a, b).then("EITHER"), parts)
            case Not():
                return parts[0].then("NOT")

    found = expr.fold(node, step)
    if found.depth > MAX_DEPTH:
        raise NoProgram(f"a stack of {found.depth}")
    return [*(found.then("TO_REAL") if gives_real and not found.real else found).instructions]


def _joined(op: str, a: _Code, b: _Code) -> _Code:
    if not a.real and not b.real:
        return _pair(a, b).then(WHOLE[op])
    if op not in REAL:
        raise NoProgram(op)
    both = _pair(a, b)
    if not b.real:
        both = both.then("TO_REAL")
    return (both if a.real else both.then("LOWER_TO_REAL")).then(REAL[op], real=True)


def _pair(a: _Code, b: _Code) -> _Code:
    return _Code(a.instructions + b.instructions, depth=max(a.depth, 1 + b.depth))


def _of_whole(a: _Code) -> _Code:
    if a.real:
        raise NoProgram("abs")
    return a
