"""From a part's bounds and conditions to Triton functions: their source is generated, then compiled.

A part gives `bounds`, from an outer position to its least and greatest inner position on each axis and to
what the rest looks up there, once for all its pairs; and `rest`, from a pair of positions to whether the pair
is attended: `columns`, what it looks up at inner positions, and then `pairs`. A bias gives `bias`, what is
added to a score, and `slopes`, which adds to its gradients. Numbers of the rule are read from memory, so that
one compiled kernel serves all of their values.
"""

# Triton has no stubs
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import hashlib
import linecache
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import triton
import triton.language as tl

from lattend.attend.bias import ELEMENT, derivative, leaves, tensor_of
from lattend.attend.kernels.triton.geometry import NUMBERS, floor_divide, looked_up, read, remainder
from lattend.plans.part import Part
from lattend.rules.axes import HEAD
from lattend.rules.language import expr
from lattend.rules.language.expr import (
    And,
    Arith,
    Compare,
    Condition,
    Lookup,
    Name,
    Node,
    Not,
    Num,
    Or,
    Term,
    Truth,
)

MOST_FILES = 1024
LARGEST = 1 << 62
_FILES: deque[str] = deque()  # of the functions in linecache, which forgets nothing by itself
OUTER, INNER = ("oa", "ob", "oc"), ("ia", "ib", "ic")
_NAMESPACE = {
    **{"tl": tl, "triton": triton, "floor_divide": floor_divide, "read": read, "remainder": remainder},
    "looked_up": looked_up,
}


@dataclass(frozen=True)
class Generated:
    """The functions of a part and a bias, and the names of the numbers and arrays they read, in order."""

    bounds: Any
    rest: Any | None
    columns: Any | None
    pairs: Any | None
    bias: Any | None
    slopes: Any | None  # adds to the gradients of the bias
    numbers: tuple[str, ...]
    arrays: tuple[str, ...]


def generated(part: Part, term: Term | None = None, tensors: tuple[str, ...] = ()) -> Generated:
    """The functions of this part and a bias; parts that differ in their numbers alone share them."""
    return _generated(part.template.axes, part.template.rest, term, tensors)


def generated_rule(
    condition: Condition, axes: tuple[tuple[str, str], ...], term: Term | None, tensors: tuple[str, ...]
) -> Generated:
    """The functions of a whole rule on axes (outer, inner): all its pairs are asked."""
    return _generated(tuple((outer, inner, (), ()) for outer, inner in axes), condition, term, tensors)


@lru_cache(maxsize=256)
def _generated(
    axes: tuple[tuple[str, str, tuple[Term, ...], tuple[Term, ...]], ...],
    rest: Condition,
    term: Term | None,
    tensors: tuple[str, ...],
) -> Generated:
    outer = {names[0]: OUTER[place] for place, names in enumerate(axes)}
    inner = {names[1]: INNER[place] for place, names in enumerate(axes)}
    writer, ends = _Writer({**outer, HEAD: "head"}), list[str]()
    written = [rest, *(bound for _, _, lows, highs in axes for bound in (*lows, *highs))]
    if term is not None:
        written += [term, *(derivative(term, leaf) for leaf in leaves(term, tensors))]
    writer.computed = computed_with(*written)
    for place, (_, _, lows, highs) in enumerate(axes):
        size = f"read(Header, {12 * place + 5}, WIDE) - 1"
        ends.append(_nested("tl.maximum", ["0", *map(writer.write, lows)]))
        ends.append(_nested("tl.minimum", [size, *map(writer.write, highs)]))
    columns = {name: f"{place}[:, None]" for name, place in outer.items()}
    columns |= {name: f"{place}[None, :]" for name, place in inner.items()}
    writer.names = {**columns, HEAD: "head"}
    checked = looked_up = pairs = biased = slopes = None
    entries: list[str] = []
    if rest != Truth(True):
        condition, entries, lookups = writer.on_pairs(rest, outer, inner)
        looked_up = _function("columns", _on_columns(lookups))
        pairs = _function("pairs", _on_pairs("pairs", condition, "entries, columns, "))
        checked = _function("rest", REST, columns=looked_up, pairs=pairs)
    values = ", ".join([*(f"{end} + oa * 0" for end in ends), f"({', '.join([*entries, 'oa'])},)"])
    bounds = f"def bounds(oa, ob, oc, head, batch, Header, Data, WIDE: tl.constexpr):\n    return {values}\n"
    if term is not None:
        writer.scalars, writer.names = tensors, {**writer.names, ELEMENT: ELEMENT}
        every = "(ia[None, :] + oa[:, None]).to(tl.float32) * 0"
        biased = _function("bias", _on_pairs("bias", f"{writer.write(term)} + {every}"))
        slopes = _function("slopes", _slopes(writer, term, tensors, set(outer), set(inner)))
    numbers, arrays = tuple(writer.numbers), tuple(writer.arrays)
    row = _function("bounds", bounds)
    return Generated(row, checked, looked_up, pairs, biased, slopes, numbers, arrays)


def computed_with(*nodes: Node) -> set[Node]:
    """The entries of arrays that are added or multiplied, whose results may need 64 bits.

    >>> from lattend.rules.language.parser import parse
    >>> [expr.term_text(x) for x in computed_with(parse("doc[q] == doc[k] and k >= min(begin[q], 9) - 1"))]
    ['begin[q]']
    """
    grown = [
        node
        for root in nodes
        for node in expr.walk(root)
        if isinstance(node, Arith) and node.op not in ("//", "%", "min", "max")  # these do not grow
    ]
    return {node for root in grown for node in expr.walk(root) if isinstance(node, Lookup)}


REST = """def rest(oa, ob, oc, ia, ib, ic, entries, head, batch, Header, Data, WIDE: tl.constexpr):
    found = columns(ia, ib, ic, head, batch, Header, Data, WIDE)
    return pairs(oa, ob, oc, ia, ib, ic, entries, found, head, batch, Header, Data, WIDE)
"""


def _on_columns(lookups: Sequence[str]) -> str:
    """A function of the inner positions of a tile."""
    given = "ia, ib, ic, head, batch, Header, Data, WIDE: tl.constexpr"
    return f"def columns({given}):\n    return ({', '.join([*lookups, 'ia'])},)\n"


@dataclass(frozen=True)
class StepFunctions:
    """The functions of a decoding step: which keys are attended, and what is added to their scores."""

    condition: Any | None
    bias: Any | None


@lru_cache(maxsize=256)
def generated_step(
    condition: Condition | None,
    term: Term | None,
    tables: tuple[tuple[str, tuple[int, ...]], ...],
    real: tuple[str, ...],
) -> StepFunctions:
    """The functions of a condition and a bias at a query and its keys, [1, keys], of heads [heads, 1].

    They read tables of these shapes, in order; those that are `real` hold floating numbers, whole ones the
    others. Raises LookupError where a name is unknown, or a divisor is no number above 0.
    """
    writer = _StepWriter(dict(tables), real)
    writer.computed = computed_with(*(node for node in (condition, term) if node is not None))
    given, checked, biased = "q, k, head, batch, Data", None, None
    if condition is not None and condition != Truth(True):
        checked = _function("condition", f"def condition({given}):\n    return {writer.write(condition)}\n")
    if term is not None:
        value = f"{writer.write(term)} + (k + head).to(tl.float32) * 0"
        biased = _function("bias", f"def bias({given}):\n    return {value}\n")
    return StepFunctions(checked, biased)


def _on_pairs(name: str, value: str, more: str = "") -> str:
    """A function of the pairs of a tile."""
    given = f"oa, ob, oc, ia, ib, ic, {more}head, batch, Header, Data, WIDE: tl.constexpr"
    return f"def {name}({given}):\n    return {value}\n"


def _slopes(writer: _Writer, term: Term, tensors: tuple[str, ...], outer: set[str], inner: set[str]) -> str:
    """A function that adds a tile's share of the gradients of the bias, as whole numbers of a quantum.

    Whole numbers add up to the same in any order. What goes to one entry is summed up in the tile first.
    """
    lines = [
        "def slopes(ds, oa, ob, oc, ia, ib, ic, head, batch, Header, Data, Sums, Quanta,",
        "           WIDE: tl.constexpr):",
        "    none = (ia[None, :] + oa[:, None]) * 0",
    ]
    for leaf in leaves(term, tensors):
        place = tensors.index(tensor_of(leaf))
        index, by_row, by_column = "0", False, False
        if isinstance(leaf, Lookup):
            names = set(expr.names(leaf))
            index = writer.index(leaf, [writer.write(place) for place in leaf.indices])
            by_row, by_column = bool(names & outer), bool(names & inner)
        lines.append(f"    share = ds * ({writer.write(derivative(term, leaf))})")
        if not by_row and not by_column:
            lines.append("    share = tl.sum(tl.sum(share, 1), 0)")
        elif not by_column:
            lines.append("    share = tl.sum(share, 1)[:, None]")
        elif not by_row:
            lines.append("    share = tl.sum(share, 0)[None, :]")
        lines.append(f"    at = {'none + ' if by_row and by_column else ''}{index}")
        lines.append(f"    amount = tl.floor(share * tl.load(Quanta + {place}) + 0.5).to(tl.int64)")
        lines.append(f"    tl.atomic_add(Sums[{place}] + at, amount, sem='relaxed')")
    return "\n".join(lines) + "\n"


def _nested(function: str, values: Sequence[str]) -> str:
    return reduce(lambda best, value: f"{function}({best}, {value})", values)


def _function(name: str, source: str, **called: Any) -> Any:
    """A Triton function from its source, which stays readable for Triton and in tracebacks.

    `called` are other such functions that it calls.
    """
    whole = "".join([source, *(function.__module__ for function in called.values())])
    digest = hashlib.sha256(whole.encode()).hexdigest()[:16]
    file = f"<lattend {name} {digest}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    if file not in _FILES:
        if len(_FILES) == MOST_FILES:
            linecache.cache.pop(_FILES.popleft(), None)
        _FILES.append(file)
    namespace: dict[str, Any] = {
        **_NAMESPACE,
        **called,
        "__name__": f"lattend.attend.kernels.triton.generated_{digest}",
    }
    exec(compile(source, file, "exec"), namespace)
    return triton.jit(namespace[name])


class _Writer:
    """Terms and conditions as Triton expressions; notes which numbers and arrays they read."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.numbers: list[str] = []
        self.arrays: list[str] = []
        self.scalars: tuple[str, ...] = ()
        self.computed: set[Node] = set()  # entries of 64 bits, whatever their arrays have

    def write(self, node: Node) -> str:
        return expr.fold(node, self._step)

    def on_pairs(
        self, node: Node, outer: Mapping[str, str], inner: Mapping[str, str]
    ) -> tuple[str, list[str], list[str]]:
        """A condition on pairs, and what it looks up at outer positions alone and at inner ones alone: the
        `entries` and `columns` that it is given.
        """
        pairs, entries, columns = self.names, list[str](), list[str]()

        def step(node: Node, parts: Sequence[str]) -> str:
            names = set(expr.names(node))
            rows, cols = names & set(outer), names & set(inner)
            if not isinstance(node, Lookup) or bool(rows) == bool(cols):
                return self._step(node, parts)
            self.names = {**pairs, **outer, **inner}
            found = entries if rows else columns
            found.append(self.write(node))
            self.names = pairs
            return f"entries[{len(found) - 1}][:, None]" if rows else f"columns[{len(found) - 1}][None, :]"

        return expr.fold(node, step), entries, columns

    def _step(self, node: Node, parts: Sequence[str]) -> str:
        match node:
            case Truth():
                raise ValueError("a truth needs no function")
            case Num():
                return f"({node.value})"
            case Name():
                if node.name in self.scalars:
                    return f"tl.load(Data[{self._array(node.name)}]).to(tl.float32)"
                return self.names[node.name] if node.name in self.names else self._number(node.name)
            case Lookup():
                place, stride = self._array(node.array), self._number(f"__stride {node.array}")
                at = f"Data[{place}] + batch * {stride} + {self.index(node, parts)}"
                if node.array in self.scalars:
                    return f"tl.load({at}).to(tl.float32)"
                return f"looked_up({at})" + ".to(tl.int64)" * (node in self.computed)
            case Arith(op="//"):
                return f"floor_divide({', '.join(parts)})"
            case Arith(op="%"):
                return f"remainder({', '.join(parts)})"
            case Arith(op="neg"):
                return f"(-{parts[0]})"
            case Arith(op="abs"):
                return f"tl.abs({parts[0]})"
            case Arith(op="min" | "max"):
                return _nested(f"tl.{node.op}imum", parts)
            case Arith() | Compare():
                return f"({parts[0]} {node.op} {parts[1]})"
            case And():
                return f"({' & '.join(parts)})"
            case Or():
                return f"({' | '.join(parts)})"
            case Not():
                return f"({parts[0]} == 0)"

    def _number(self, name: str) -> str:
        if name not in self.numbers:
            self.numbers.append(name)
        return f"read(Header, {NUMBERS + self.numbers.index(name)}, WIDE)"

    def _array(self, name: str) -> int:
        if name not in self.arrays:
            self.arrays.append(name)
        return self.arrays.index(name)

    def index(self, node: Lookup, places: Sequence[str]) -> str:
        """The place of an entry in its array; on each axis the nearest end where it lies outside."""
        flat = ""
        for axis, place in enumerate(places):
            size = self._number(f"__axis{axis} {node.array}")
            inside = f"tl.minimum(tl.maximum({place}, 0), {size} - 1)"
            flat = f"({flat} * {size} + {inside})" if flat else inside
        return flat


class _StepWriter(_Writer):
    """The same for a decoding step, whose numbers are known, the shapes of tables too."""

    def __init__(self, shapes: dict[str, tuple[int, ...]], real: tuple[str, ...]) -> None:
        super().__init__({"q": "q", "k": "k", HEAD: "head", ELEMENT: ELEMENT})
        self.arrays, self.shapes, self.scalars = [*shapes], shapes, real

    def _step(self, node: Node, parts: Sequence[str]) -> str:
        if isinstance(node, Num) and abs(node.value) >= LARGEST:
            raise LookupError(f"a number beyond 64 bits: {node.value}")
        if isinstance(node, Arith) and node.op in ("//", "%"):
            divisor = node.args[1]
            if not isinstance(divisor, Num) or divisor.value < 1:
                raise LookupError(f"a divisor that is no number above 0: {expr.term_text(node)}")
        return super()._step(node, parts)

    def _number(self, name: str) -> str:
        what, _, array = name.partition(" ")
        if array not in self.shapes:
            raise LookupError(name)
        if what == "__stride":
            return "0"
        return f"({self.shapes[array][int(what.removeprefix('__axis'))]})"

    def _array(self, name: str) -> int:
        if name not in self.shapes:
            raise LookupError(name)
        return super()._array(name)
