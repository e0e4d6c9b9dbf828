"""Meter: every operation that torch runs, counted where it happens.

Attention is caught as a whole where torch.nn.functional is asked for it, with the mask or the word causal
still at hand; everything else where torch dispatches it, after it is taken apart into basic operators.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from math import prod
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch._C._autograd import _get_sequence_nr
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.nn import Module, functional
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from lattend.attend.operators import flop_formulas as counted
from lattend.cost.measure import operators
from lattend.cost.measure.call_sites import CallSite, CallSites
from lattend.cost.measure.constants import NUMBERS_DECIDE, Constants, Unknown
from lattend.cost.measure.operators import knows, other
from lattend.cost.measure.pairs import (
    FUSED,
    FUSED_BACKWARD,
    UNKNOWN,
    Pairs,
    has_values,
    pairs_of,
    pairs_of_call,
    pairs_of_fused,
)
from lattend.cost.measure.profile import BACKWARD, FORWARD
from lattend.cost.measure.tally import NOTHING, Operation, Tally, operation, short_name, tensors
from lattend.cost.measure.written_attention import Product, WrittenAttention

SDPA = "scaled_dot_product_attention"
_OPERATOR = torch.ops.aten.scaled_dot_product_attention


Key = tuple[CallSite, Any, str]  # where, which operator, forward or backward


class Meter:
    """Counts what runs inside its context; `device` is where meta tensors are taken to be."""

    def __init__(
        self,
        name_of: Callable[[Module, CallSite], str],
        *,
        device: str = "cpu",
        formulas: Mapping[Any, Callable[..., int]] | None = None,
    ) -> None:
        self.entries: dict[Key, Tally] = {}  # what each operator did in each place, each way
        self.calls: Counter[CallSite] = Counter()
        self.unknown: Counter[str] = Counter()
        self.notes: Counter[tuple[str, str]] = Counter()  # what is not exact, and where
        self.tiles: dict[str, None] = {}  # the tiles and kernels of executed pairs
        self.device = device
        self.formulas = {} if formulas is None else formulas  # of the user, in place of ours
        self.places = CallSites(name_of, self._called)
        self.constants = Constants()
        self.written = WrittenAttention(self._lessen, self._note, self._seen)
        self.paused = False
        self._context: ExitStack | None = None

    def __enter__(self) -> Meter:
        with ExitStack() as stack:
            stack.enter_context(_taken_apart())
            stack.enter_context(self.places)
            stack.enter_context(_Functions(self))
            stack.enter_context(_Dispatch(self))
            self._context = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._context is not None:
            self._context.__exit__(*error)

    # What was counted

    def _called(self, place: CallSite) -> None:
        self.calls[place] += 1

    def add(self, place: CallSite, label: Any, way: str, tally: Tally) -> Key:
        """Count an operation; what backward runs again is executed, and not needed."""
        if place.again:
            tally = tally + Tally(needed=-tally.needed)
        key = (place, label, way)
        self.entries[key] = self.entries.get(key, NOTHING) + tally
        return key

    def _lessen(self, key: Any, fewer: Tally) -> None:
        """Take back what turned out not to be needed."""
        if not key[0].again:
            self.entries[key] = self.entries[key] + fewer

    def _note(self, text: str, where: str) -> None:
        self.notes[text, where] += 1

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Count nothing: for looking at masks."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    # Attention asked for as a whole

    def attention(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run torch's attention and count it by its mask."""
        arguments = {**dict(zip(_SDPA_ARGUMENTS, args, strict=False)), **kwargs}
        parts = (arguments["query"], arguments["key"], arguments["value"], arguments.get("attn_mask"))
        if is_functorch_wrapped_tensor(arguments["query"]):  # of a whole batch: counted where it is unwrapped
            return func(*args, **kwargs)
        if any(isinstance(x, Tensor) and x.is_nested for x in parts):
            self.unknown[f"{SDPA} of nested tensors"] += 1
            with self.pause():
                return func(*args, **kwargs)
        with self.pause(), torch.no_grad():
            pairs = pairs_of(*parts[:3], self._seen(parts[3]), bool(arguments.get("is_causal", False)))
        site, recomputing = self.places.here, self.places.running_again()
        place = CallSite(site.name, site.kind, site, (site.first or site) if recomputing else None, pairs)
        self.places.open(place)
        try:
            out = func(*args, **kwargs)
        finally:
            self.places.close()
        place.on_meta = arguments["query"].is_meta  # torch takes it apart there, and a device would not
        if not any(name in FUSED for name in place.seen) and not place.on_meta:
            place.pairs = pairs = replace(pairs, executed=pairs.dense, tiles="")
        self._remark(pairs)
        label = next((name for name in place.seen if name in FUSED), SDPA)
        self.add(place, getattr(torch.ops.aten, label), BACKWARD if recomputing else FORWARD, pairs.forward)
        return out

    def _seen(self, mask: Any) -> Any:
        """A mask with its numbers, if these are known."""
        values = self.constants.value(mask) if isinstance(mask, Tensor) else None
        return mask if values is None else values

    def _remark(self, pairs: Pairs) -> None:
        if pairs.tiles:
            self.tiles[pairs.tiles] = None
        if pairs.note:
            self._note(pairs.note, self.places.here.name)

    # Operators

    def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], mode: Any) -> Any:
        """Run an operator and count it; `mode` is the mode that counts what it is taken apart into."""
        if self.paused:
            return func(*args, **kwargs)
        if not isinstance(func, torch._ops.OpOverload):
            return self._whole(func, args, kwargs)
        place, way, number = self.places.now()
        if place.pairs is not None and (way == FORWARD or place.again):
            place.seen.append(short_name(func))
            return func(*args, **kwargs)
        packet, name = func._overloadpacket, short_name(func)
        formula = self._formula(func, packet)
        if formula is not None:
            out = func(*args, **kwargs)
            self.add(place, packet, way, Tally.of(formula(*args, **kwargs, out_val=out) // 2))
            return out
        if func.namespace == "aten" and not _is_known(func, name):
            with mode:
                out = func.decompose(*args, **kwargs)
            if out is not NotImplemented:
                return out
        forward = way == FORWARD or place.again
        if forward and torch.is_grad_enabled() and any(x.requires_grad for x in tensors(args)):
            number = _get_sequence_nr() - 1  # the node of its gradient was made just before
        if name in NUMBERS_DECIDE:
            with suppress(Unknown), self.pause(), torch.no_grad():
                return self.constants.answer(func, args, kwargs)
        alone = name == "_grouped_mm" and args[0].is_meta
        out = operators.grouped_on_meta(*args, **kwargs) if alone else func(*args, **kwargs)
        with self.pause(), torch.no_grad():
            self._count(func, operation(func, args, kwargs, out), place, way, number)
            if name not in operators.FORMULAS:
                self.constants.follow(func, args, kwargs, out)
        return out

    def _formula(self, func: Any, packet: Any) -> Callable[..., int] | None:
        """A formula of the user's: given to us, or registered with torch."""
        ours = func.namespace in ("aten", "lattend")
        return self.formulas.get(packet) or (None if ours else flop_registry.get(packet))

    def _count(self, func: Any, op: Operation, place: CallSite, way: str, number: int | None) -> None:
        packet = func._overloadpacket
        if packet in (counted.ATTENTION, counted.FORWARD, counted.BACKWARD):
            arguments = {**op.given, "given": [self._seen(one) for one in op.given["given"] or ()]}
            pairs = pairs_of_call(arguments, self.device)
            self._remark(pairs)
            self.add(place, packet, way, pairs.backward if packet is counted.BACKWARD else pairs.forward)
        elif func.namespace != "aten":
            if func.namespace not in ("prim", "prims", "profiler"):
                self.unknown[f"{func.namespace}.{op.name}"] += 1
        elif any(x.is_nested for x in tensors(op.given.values())):
            self.unknown[f"aten.{op.name} of nested tensors"] += 1
        elif op.name in FUSED:
            pairs = pairs_of_fused(op.name, op.given)
            self._remark(pairs)
            self.add(place, packet, way, pairs.forward)
        elif op.name in FUSED_BACKWARD:
            pairs = place.pairs or pairs_of_fused(op.name, op.given)
            self.add(place, packet, way, pairs.backward)
        elif op.name in operators.FORMULAS:
            self._product(packet, op, place, way, number)
        else:
            tally = other(func, op)
            if tally is None:
                self.unknown[f"aten.{op.name}"] += 1
                return
            if way == FORWARD or place.again:
                tally = self.written.follow(op, tally, place.name)
            if tally:
                self.add(place, packet, way, tally)

    def _product(self, packet: Any, op: Operation, place: CallSite, way: str, number: int | None) -> None:
        tally = operators.FORMULAS[op.name](op)
        if way == BACKWARD and not place.again:
            if place.pairs is not None:
                tally = place.pairs.scaled(tally)
                if place.on_meta:
                    packet, tally = _OPERATOR, self._fused_gradient(place, place.pairs, tally)
            elif number is not None:
                tally = self.written.scaled(number, tally)
            self.add(place, packet, way, tally)
            return
        tally = self.written.mixed(op, tally, place.name)
        key = self.add(place, packet, way, tally)
        self.written.made(op, Product(key, tally, op.result.numel()), number)

    @staticmethod
    def _fused_gradient(place: CallSite, pairs: Pairs, tally: Tally) -> Tally:
        """A product of a gradient that a device would compute with all the others in one operator."""
        task = torch._C._current_graph_task_id()
        if place.task == task:
            return Tally(tally.needed)
        place.task = task
        return Tally(tally.needed, pairs.backward.executed, pairs.backward.dense)

    def _whole(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """A higher-order operator, whose inside is not seen."""
        if not is_flex(func):
            self.unknown[str(func)] += 1
            return func(*args, **kwargs)
        place, way, _ = self.places.now()
        with self.pause():
            out = func(*args, **kwargs)
            pairs = pairs_of_flex(func, args)
        self._remark(pairs)
        self.add(place, func, way, pairs.backward if "backward" in str(func) else pairs.forward)
        return out


_SDPA_ARGUMENTS = (
    "query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa",
)  # fmt: skip


def _is_known(func: Any, name: str) -> bool:
    return name in operators.FORMULAS or name in FUSED or name in FUSED_BACKWARD or knows(func, name)


class _Functions(TorchFunctionMode):
    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self.meter = meter

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.meter.paused:
            return func(*args, **kwargs)
        if func is functional.scaled_dot_product_attention:
            return self.meter.attention(func, args, kwargs)
        if func is functional.multi_head_attention_forward:
            with self:  # its own calls are to be seen, too
                return _unchecked(func)(*args, **kwargs)
        return func(*args, **kwargs)


class _Dispatch(TorchDispatchMode):
    supports_higher_order_operators = True

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self.meter = meter

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.meter.run(func, args, kwargs or {}, self)


def _unchecked(func: Any) -> FunctionType:
    """The same function without its question whether a mode wants the call: ours has had it."""
    names = {**func.__globals__, "has_torch_function": lambda tensors: False}
    function = FunctionType(func.__code__, names, func.__name__, func.__defaults__, func.__closure__)
    function.__kwdefaults__ = func.__kwdefaults__
    return function


@contextmanager
def _taken_apart() -> Iterator[None]:
    """A context in which torch runs layers in their parts, and compiled functions as they are written."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with _eager(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="flex_attention called without torch.compile")
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def _eager() -> AbstractContextManager[Any]:
    loaded = "torch._dynamo" in sys.modules  # nothing is compiled where it is not
    return torch.compiler.set_stance("force_eager") if loaded else nullcontext()


MOST_PAIRS = 1 << 27  # of a mask that is asked pair by pair
TOO_LARGE = "mask too large to read: attention in {} is counted by its blocks"
FLEX = ("flex_attention", "flex_attention_backward")


def is_flex(func: Any) -> bool:
    """Whether an operator is FlexAttention, forward or backward."""
    return str(func) in FLEX


def pairs_of_flex(func: Any, args: tuple[Any, ...]) -> Pairs:
    """The pairs of a call; its block mask comes as a tuple whose last entry is the mask itself."""
    query, key, value = args[:3]
    block_mask = next(x for x in args[3:] if isinstance(x, tuple) and callable(x[-1]))
    batch, heads, n = query.shape[:3]
    m = key.shape[2]
    members, dense = batch * heads, batch * heads * n * m
    sizes = (query.shape[-1], value.shape[-1])
    partial, full = block_mask[2], block_mask[4]
    if not has_values(partial):
        return Pairs(dense, dense, dense, *sizes, members * n, UNKNOWN)
    area = prod(block_mask[-3:-1])
    tiles = " × ".join(map(str, block_mask[-3:-1])) + " blocks"
    blocks = int(partial.sum()) + (0 if full is None else int(full.sum()))
    executed = min(dense, blocks * area * (members // max(1, prod(partial.shape[:2]))))
    kinds = (partial.shape[0], partial.shape[1])  # batch elements and heads that differ
    if prod(kinds) * n * m > MOST_PAIRS:
        return Pairs(executed, executed, dense, *sizes, members * n, TOO_LARGE, tiles)
    attended = _attended(block_mask[-1], *kinds, n, m, query.device)
    needed = attended * (members // prod(kinds))
    return Pairs(needed, executed, dense, *sizes, min(needed, members * n), tiles=tiles)


def _attended(mask: Any, batch: int, heads: int, n: int, m: int, device: torch.device) -> int:
    from torch.nn.attention.flex_attention import create_mask

    return int(create_mask(mask, batch, heads, n, m, device=str(device)).sum())
