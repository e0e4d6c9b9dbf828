"""The rule a person means: a text, a name of the catalogue, a Python function, a FlexAttention mask_mod.

Everything that takes a rule reads it here. Texts are remembered, functions while what they read is the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Protocol, cast

from lattend.errors import Suggestion, TextError, TraceError
from lattend.lazy import needing
from lattend.rules.axes import POSITIONS
from lattend.rules.language import expr
from lattend.rules.language.call import array_missing, length_of, split_arrays
from lattend.rules.language.grammar import Source
from lattend.rules.language.parser import parse
from lattend.rules.language.python_text import is_python, read_python
from lattend.rules.language.tracing import trace
from lattend.rules.named import NamedRules, from_catalogue, named_call
from lattend.rules.rule import Rule


class HasMaskFunction(Protocol):
    """FlexAttention's BlockMask, or whatever else brings its mask_mod along."""

    mask_mod: Callable[..., Any]


RuleLike = Rule | str | Callable[..., Any] | HasMaskFunction

MAX_REMEMBERED = 256
_OTHER_LETTERS = {  # what positions are called elsewhere
    **dict.fromkeys(("i", "x", "row", "query", "q_idx", "q_pos"), "q"),
    **dict.fromkeys(("j", "y", "col", "key", "kv_idx", "k_idx", "k_pos", "kv_pos"), "k"),
}
_UNCHANGING = ("torch", "numpy", "lattend", "math", "operator")  # modules that a function may read


def rule(
    source: RuleLike,
    *,
    where: str | None = None,
    cross: bool = False,
    data: Mapping[str, Any] | None = None,
) -> Rule:
    """A rule from its text, its name in the catalogue, or a Python function of q, k and parameters.

    A FlexAttention mask_mod(b, h, q_idx, kv_idx), or a BlockMask made from one, is read as well, and so is
    the source of such a function as a text, which is parsed and never run.
    `where` declares the domain of the parameters ("0 <= c <= l"); `cross` gives the keys a number `m` of
    their own; `data` holds the arrays the rule looks up, None for one given at call time.

    >>> rule("k <= q and q - k <= t") == rule(lambda q, k, t: (k <= q) & (q - k <= t))
    True
    >>> rule("strided(255)")
    <Rule k <= q and q - k <= t with t = 255>

    A text may hold its arrays before the rule:

    >>> rule("doc = [0, 0, 1]; doc[q] == doc[k]").mask().sum()  # 2*2 + 1*1
    np.int64(5)
    """
    if isinstance(source, str):
        arrays, rest = split_arrays(source)
        if arrays:
            return _with_arrays(source, rest, arrays, where=where, cross=cross, data=data)
    domain = parse(where) if where is not None else expr.Truth(True)
    arrays_by_name = dict(data or {})
    if isinstance(source, Rule):
        known = source
    elif not isinstance(source, str):
        traced = trace(_function(source))
        return _checked(
            Rule.of(traced.condition, where=domain, cross=cross, data={**traced.data, **arrays_by_name})
        )
    elif is_python(source):
        written = read_python(source)
        arrays = {**dict.fromkeys(written.arrays), **arrays_by_name}
        return _checked(Rule.of(written.condition, where=domain, cross=cross, data=arrays, source=source))
    else:
        call = named_call(source)
        if call is None:
            return _of_condition(source, domain, cross=cross, arrays=arrays_by_name)
        known = from_catalogue(Source("rule", source), call, (call.place[0], len(source.rstrip())))
    if where is None and not cross and not arrays_by_name:
        return known
    arrays = dict.fromkeys(known.open) | dict(known.data) | arrays_by_name
    declared = Rule.of(known.condition, where=expr.all_of(known.where, domain), cross=cross, data=arrays)
    axes = declared.axes if cross else known.axes
    return replace(declared, axes=axes, values=known.values, about=known.about, source=known.source)


def _of_condition(source: str, domain: expr.Condition, *, cross: bool, arrays: dict[str, Any]) -> Rule:
    """Returns the rule of a text that is a condition and may contain catalogue names."""
    named = NamedRules(Source("rule", source), arrays)
    condition = parse(source, named)
    if missing := [name for name in expr.arrays(condition) if name not in named.arrays]:
        raise array_missing(source, missing[0])
    where = expr.all_of(named.where, domain)
    read = Rule.of(condition, where=where, cross=cross, data=named.arrays, source=source)
    return _checked(read, named.places).at(**named.sizes)


def _with_arrays(
    source: str,
    rest: str,
    arrays: dict[str, list[int]],
    *,
    where: str | None,
    cross: bool,
    data: Mapping[str, Any] | None,
) -> Rule:
    """The rule of a text that begins with arrays, and has as many positions as they have entries."""
    try:
        read = rule(rest, where=where, cross=cross, data={**arrays, **(data or {})})
    except TextError as problem:
        spots = problem.start, problem.end
        raise Source("rule", source).error(problem.reason, *spots, *problem.suggestions) from None
    used = expr.arrays(read.condition)
    held = {name: array for name, array in read.data.items() if name in used}
    length = length_of(read.condition, arrays)
    sizes = {} if length is None else {name: length for name in read.sizes if name in ("n", "m")}
    return replace(read, source=source, data=held, values={**sizes, **read.values})


def read_rule(source: RuleLike, arrays: tuple[str, ...] = ()) -> Rule:
    """Returns rule(source), cached if that is safe.

    Those of the `arrays` that a text looks up and does not hold are open: they are given with each call.
    """
    if isinstance(source, Rule):
        return source
    if isinstance(source, str):
        return _of_text(source, arrays)
    function = _function(source)
    known = _fingerprint(function)
    return rule(function) if known is None else _of_function(known, _Same(function))


def tensors_by_element(source: RuleLike) -> dict[str, Any]:
    """Returns the tensors that a function looks up for each batch element, doc[b, q_idx], by name."""
    function = _function(source)
    if _fingerprint(function) is not None:  # it reads no tensor
        return {}
    traced = trace(function)
    return {name: traced.tensors[name] for name, array in traced.data.items() if array is None}


def arrays_in(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the arrays and tensors among the values that come with a rule.

    An int is asked for nothing: torch.compile cannot trace that.
    """
    return tuple(
        name for name, value in values.items() if not isinstance(value, int) and getattr(value, "ndim", 0) > 0
    )


@lru_cache(MAX_REMEMBERED)
def _of_text(source: str, arrays: tuple[str, ...]) -> Rule:
    if not arrays:
        return rule(source)
    own, _ = split_arrays(source)
    asked = [name for name in arrays if name not in own and re.search(rf"\b{re.escape(name)}\s*\[", source)]
    return rule(source, data=dict.fromkeys(asked))


def _checked(read: Rule, named: Sequence[expr.Span] = ()) -> Rule:
    """Returns the rule; raises if its own text seems to use other letters for positions."""
    nodes = (node for node in expr.walk(read.condition) if isinstance(node, expr.Name))
    own = [node for node in nodes if node.span not in named]
    names = [*dict.fromkeys(node.name for node in own)]
    others = [name for name in names if name in _OTHER_LETTERS]
    if len(others) < 2 or POSITIONS & {*names}:
        return read
    ours = {name: _OTHER_LETTERS[name] for name in others}
    letters = re.compile(rf"\b(?:{'|'.join(ours)})\b")
    meant = letters.sub(lambda name: ours[name[0]], read.text) if {*ours.values()} == {"q", "k"} else ""
    message = f"{' and '.join(others)} are no positions: a query's position is q and a key's is k" + (
        f"; did you mean {meant}? On an image they are qy, qx and ky, kx"
        if meant
        else ", as in k <= q; on an image they are qy, qx and ky, kx"
    )
    if read.source is None:
        raise TraceError(f"function of {', '.join(names)}: {message}")
    start, end = next(node.span for node in own if node.span is not None)
    text = letters.sub(lambda name: ours[name[0]], read.source)
    corrections = [Suggestion(0, len(read.source), text)] if meant else []
    raise Source("rule", read.source).error(message, start, end, *corrections)


# Functions


def _function(source: Any) -> Callable[..., Any]:
    """Returns the function itself, or the mask function of a BlockMask together with its table of blocks."""
    if not hasattr(source, "kv_num_blocks"):
        return getattr(source, "mask_mod", source)
    flex = needing("torch", "lattend.integrations.flex", "a BlockMask is read with torch")
    return flex.mask_function(source, _fingerprint(source.mask_mod))


class _Same:
    """A function that compares equal to every other, so that the cache key is its fingerprint alone."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same)

    def __hash__(self) -> int:
        return 0


@lru_cache(MAX_REMEMBERED)
def _of_function(fingerprint: object, same: _Same) -> Rule:
    return rule(same.function)


def _fingerprint(value: object, depth: int = 0) -> object:
    """Returns everything that a function's result depends on; None if that is not cheap to determine."""
    if depth > 4:
        return None
    match value:
        case bool() | int() | str():
            return type(value), value
        case tuple():
            parts = [_fingerprint(part, depth + 1) for part in cast(tuple[object, ...], value)]
        case FunctionType() if value.__defaults__ is None and value.__kwdefaults__ is None:
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            read = [
                value.__globals__[name] for name in _names_read(value.__code__) if name in value.__globals__
            ]
            parts = [value.__code__, *(_fingerprint(part, depth + 1) for part in (*cells, *read))]
        case ModuleType() if value.__name__.partition(".")[0] in _UNCHANGING:
            return value.__name__
        case BuiltinFunctionType():
            return value
        case _:
            return None
    return None if None in parts else tuple(parts)


@lru_cache(MAX_REMEMBERED)
def _names_read(code: CodeType) -> tuple[str, ...]:
    """Returns the global names that a function and its inner functions may read."""
    inside = [name for part in code.co_consts if isinstance(part, CodeType) for name in _names_read(part)]
    return (*code.co_names, *inside)
