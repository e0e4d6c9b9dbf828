"""Rules from Python functions, which are called once with symbolic positions.

    trace(lambda q, k, t: (k <= q) & (q - k <= t)).condition == parse("k <= q and q - k <= t")

Python turns `3 <= q` into `q >= 3` before the function's terms see it; otherwise the tree is the
text's tree. A FlexAttention mask function of (b, h, q_idx, kv_idx) is read too: h is `head`, and a tensor it
looks up, as in document_id[q_idx], becomes an array of the rule.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lattend.errors import TraceError
from lattend.rules.axes import HEAD, POSITIONS, RESERVED
from lattend.rules.language import expr
from lattend.rules.language.expr import Condition, Name, Truth
from lattend.rules.language.grammar import is_name
from lattend.rules.language.scan import WORDS
from lattend.rules.language.symbols import (
    Symbolic,
    SymbolicCondition,
    SymbolicTerm,
    comparison,
    lookup,
    places_of,
)
from lattend.wording import short

BATCH = "batch"  # the element of the batch, which only an array may depend on
_BATCHES, _HEADS = ("b", "batch", "batch_idx", "_b", "_"), ("h", "head", "head_idx", "_h", "_")
_OTHER_NAMES = {"q_idx": "q", "kv_idx": "k", "k_idx": "k"}  # what FlexAttention calls positions

SCORE_MOD = (
    "is a score_mod, which changes scores, and a rule says who attends to whom: what it adds is "
    'attention(…, bias=lt.Bias("-slope[head]*(q - k)", slope=…)), softcap=… bends scores, and pairs that '
    "it sets to -inf are those that the rule leaves out"
)


@dataclass
class Traced:
    """The condition of a function, and the tensors it looks up; None for one that comes with each call."""

    condition: Condition = Truth(True)  # noqa: RUF009  (a constant)
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    tensors: dict[str, Any] = field(default_factory=dict[str, Any])

    def look_up(self, tensor: Any, indices: tuple[object, ...]) -> SymbolicTerm:
        """Returns the entry of a tensor; with the batch element first, each element looks up its own row."""
        name, first = self._name_of(tensor), indices[0]
        each = isinstance(first, SymbolicTerm) and first.node == Name(BATCH)
        if each and len(indices) == 1:
            raise TraceError(
                f"{name}[b] is one number for each batch element; write it for each position, as in "
                f"keep[b, kv_idx] with keep = torch.arange(n) < {name}[:, None]"
            )
        plain = tensor[0] if each and len(tensor) == 1 else tensor
        self.data[name] = None if each and len(tensor) > 1 else np.asarray(plain.detach().cpu())
        return lookup(name, indices[1:] if each else indices)

    def _name_of(self, tensor: Any) -> str:
        """Returns the function's name for the tensor, if it can be a name in a rule."""
        frame = sys._getframe()  # pyright: ignore[reportPrivateUsage]
        while frame.f_back is not None and frame.f_globals.get("__name__") in (__name__, "torch.overrides"):
            frame = frame.f_back
        scope = {**frame.f_globals, **frame.f_locals}
        names = [name for name, value in scope.items() if value is tensor]
        name = next((name for name in reversed(names) if is_name(name, WORDS | RESERVED)), "array")
        while self.tensors.setdefault(name, tensor) is not tensor:
            name += "2"
        return name


def trace(function: Callable[..., object]) -> Traced:
    """The condition a function of positions, sizes and parameters returns.

    >>> trace(lambda q, k: k <= q).condition
    Compare(op='<=', left=Name(name='k'), right=Name(name='q'))
    """
    label = f"function {getattr(function, '__name__', type(function).__name__)}"
    if not callable(function):
        shape = getattr(function, "shape", None)  # an array, which may be a mask
        got = short(function) if shape is None else f"an array of shape {tuple(shape)}"
        mask = (
            "" if shape is None else "; a mask is looked up: lt.rule('mask[q, k] == 1', data={'mask': array})"
        )
        raise TraceError(f"a rule is a text or a function of q and k, got {got}{mask}")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise TraceError(f"{label} does not say what its parameters are; wrap it in a lambda") from None
    plain = all(p.default is p.empty and p.kind is not p.KEYWORD_ONLY for p in parameters)
    parameter_names = [p.name for p in parameters]
    if is_score_mod(parameter_names):
        raise TraceError(f"{label} {SCORE_MOD}")
    names = names_of_positions(parameter_names, plain=plain)
    for parameter, name in zip(parameters, names, strict=True):
        _check(label, parameter, name)
    terms = {p: SymbolicTerm(Name(name)) for p, name in zip(parameters, names, strict=True)}
    traced = Traced()
    with _lookups(traced):
        result = function(
            *(term for p, term in terms.items() if p.kind is not p.KEYWORD_ONLY),
            **{p.name: term for p, term in terms.items() if p.kind is p.KEYWORD_ONLY},
        )
    traced.condition = _condition(label, result)
    if BATCH in names:
        # masks joined by and_masks begin with true: simplified, the rule reads as one would write it
        traced.condition = expr.resolved(traced.condition, {})
        if BATCH in expr.names(traced.condition):
            raise TraceError(
                f"{label} depends on {parameters[0].name}, the batch element, and a rule is the same for all "
                f"of them; only an array may differ, as in document_id[{parameters[0].name}, q_idx]"
            )
    return traced


def names_of_positions(parameters: list[str], *, plain: bool) -> list[str]:
    """Returns the names that a function's parameters, or FlexAttention's four, have in the rule.

    `plain` says that none has a default value and each may be given by its place.

    >>> names_of_positions(["b", "h", "q_idx", "kv_idx"], plain=True)
    ['batch', 'head', 'q', 'k']
    """
    if len(parameters) == 4 and plain:
        batch_and_head = parameters[0] in _BATCHES and parameters[1] in _HEADS
        if batch_and_head or parameters[3] == "kv_idx" or not POSITIONS & {*parameters}:
            return [BATCH, HEAD, "q", "k"]
    return [_OTHER_NAMES.get(name, name) for name in parameters]


def is_score_mod(parameters: list[str]) -> bool:
    """Whether these are the parameters of FlexAttention's other function, score_mod.

    >>> is_score_mod(["score", "b", "h", "q_idx", "kv_idx"])
    True
    """
    if len(parameters) != 5:
        return False
    return parameters[4] == "kv_idx" or (parameters[1] in _BATCHES and parameters[2] in _HEADS)


def _lookups(traced: Traced) -> AbstractContextManager[object]:
    """Returns a context that records tensors looked up at symbols; it does nothing if torch is not loaded."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return nullcontext()

    class Lookups(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, _: object, args: Any = (), kwargs: Any = None) -> Any:
            if function is torch.Tensor.__getitem__:
                indices = places_of(args[1])
                if any(isinstance(index, Symbolic) for index in indices):
                    return traced.look_up(args[0], indices)
            return function(*args, **(kwargs or {}))

    return Lookups()


def _check(label: str, parameter: inspect.Parameter, name: str) -> None:
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
        case SymbolicTerm(node=expr.Lookup()):
            return comparison("!=", result, 0).node
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
