"""`of`, the cost of a torch module on given inputs, and FlopCounter, torch's FlopCounterMode with masks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import Parameter, signature
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.parameter import UninitializedParameter
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import shape_wrapper

from lattend.cost.measure.call_sites import CallSite
from lattend.cost.measure.meter import Meter
from lattend.cost.measure.profile import WAYS, ModuleCost, Profile
from lattend.cost.measure.tally import NOTHING, Tally, tensors
from lattend.cost.result import not_counted
from lattend.errors import LattendError, NamingError, TensorError
from lattend.report.numbers import percent, with_unit
from lattend.report.table import Table


def of(
    module: Module,
    inputs: Any,
    *,
    backward: bool = False,
    device: str = "cpu",
    dtype: torch.dtype | None = None,
) -> Profile:
    """The cost of `module` on `inputs`, layer by layer: parameters and operations of the forward pass.

    `inputs` is a tensor, a tuple of arguments such as (q, k, v), or a dictionary of them by name; in each, a
    tuple of integers such as (1, 3, 224, 224) is the shape of a tensor of zeros, of `dtype` or of the
    module's, where the module is.
    On the meta device no number is computed and no memory is needed; masks have no values there, and
    attention under one that it would need is counted dense, which `notes` say. `device` is where meta
    tensors are taken to be: which tiles lt.attention executes depends on it. With `backward`, the gradients
    of all outputs are taken too. The module is as it was afterwards.

    >>> found = of(torch.nn.Linear(4, 4, bias=False), (8, 4))
    >>> found.parameters, found.multiply_adds.needed  # 8 tokens, 4 * 4 multiply-adds each
    (16, 128)
    """
    if not isinstance(module, Module):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise LattendError(f"module is a torch.nn.Module, not {type(module).__name__}")
    like = device_of(module)
    args, kwargs = arguments(inputs, module, dtype)
    names = {part: name for name, part in module.named_modules()}

    def name_of(part: Module, parent: CallSite) -> str:
        if part not in names:  # made while it runs
            names[part] = f"{parent.name}.{type(part).__name__}".lstrip(".")
        return names[part]

    meter = Meter(name_of, device=device)
    meter.places.never_records()
    try:
        with _as_it_was(module), torch.set_grad_enabled(backward), meter:
            if like.type == "meta":  # inside, so that their numbers stay known
                args, kwargs = tree_map(_moved, (args, kwargs))
            out = module(*args, **kwargs)
            if backward:
                _differentiate(module, out, [*args, *kwargs.values()])
    except TypeError:
        _check_fits(module, args, kwargs)
        raise
    except (RuntimeError, NotImplementedError) as error:
        if like.type != "meta" or "meta" not in str(error):
            raise
        raise LattendError(
            f"the module asks for a number that a meta tensor does not have ({error}): give the inputs it "
            "depends on as tensors on the CPU, or run the module there"
        ) from error
    return profile(module, meter)


def _moved(value: Any) -> Any:
    return value.to("meta") if isinstance(value, Tensor) else value


def _differentiate(module: Module, out: Any, outputs: Sequence[Any]) -> None:
    results = [x for x in tree_leaves(out) if isinstance(x, Tensor) and x.requires_grad]
    if not results:
        raise LattendError(
            "backward=True: no output depends on a parameter or input that requires a gradient; "
            "leave backward out, or call requires_grad_() on the parameters"
        )
    wanted = [x for x in [*module.parameters(), *tensors(outputs)] if x.requires_grad]
    gradients = [torch.ones_like(x) for x in results]
    torch.autograd.grad(results, wanted, gradients, allow_unused=True)


# Inputs


def arguments(
    inputs: Any, module: Module, dtype: torch.dtype | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, with shapes turned into tensors."""
    known = (p for p in module.parameters() if not isinstance(p, UninitializedParameter))
    kind = dtype or next((p.dtype for p in known if p.is_floating_point()), torch.get_default_dtype())
    device = device_of(module)

    def given(value: Any) -> Any:
        return torch.zeros(value, dtype=kind, device=device) if _is_shape(value) else value

    if isinstance(inputs, Mapping):
        return (), {str(name): given(value) for name, value in inputs.items()}
    if isinstance(inputs, Tensor) or _is_shape(inputs):
        return (given(inputs),), {}
    if isinstance(inputs, tuple | list):
        return tuple(given(value) for value in inputs), {}
    raise TensorError(
        "inputs are a tensor, a shape such as (1, 3, 224, 224), a tuple of these, or a dictionary of "
        f"arguments; got {type(inputs).__name__}"
    )


def _check_fits(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raises where the module takes more arguments than these, or others."""
    try:
        takes = signature(module.forward)
    except ValueError:  # a compiled module may not say
        return
    try:
        takes.bind(*args, **kwargs)
    except TypeError as error:
        rest = Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD
        needed = [name for name, x in takes.parameters.items() if x.default is x.empty and x.kind not in rest]
        raise TensorError(
            f"{type(module).__name__} takes {', '.join(needed)}: {error}. Several inputs are a tuple of "
            "tensors or shapes, ((1, 16, 64), (1, 16, 64), (1, 16, 64)), or a dictionary by name"
        ) from None


def device_of(module: Module) -> torch.device:
    """The device of the module's first parameter or buffer; the CPU where it has none."""
    first = next(module.parameters(), next(module.buffers(), None))
    return torch.device("cpu") if first is None else first.device


def _is_shape(value: Any) -> bool:
    is_shape = isinstance(value, tuple | list) and len(value) > 0
    return is_shape and all(isinstance(size, int) and not isinstance(size, bool) for size in value)


@contextmanager
def _as_it_was(module: Module) -> Iterator[None]:
    """A context that restores running statistics and random numbers afterwards."""
    parts = [part for part in module.modules() if not isinstance(part, torch.jit.ScriptModule)]
    kept = [(part, dict(part._buffers)) for part in parts]
    values = [(x, x.clone()) for x in module.buffers()] if module.training else []
    devices = {x.device.index or 0 for x in module.parameters() if x.device.type == "cuda"}
    with torch.random.fork_rng(devices=sorted(devices)):
        try:
            yield
        finally:
            for part, named in kept:
                part._buffers.clear()
                part._buffers.update(named)
            with torch.no_grad():
                for x, before in values:
                    x.copy_(before)


# Rows


def profile(module: Module, meter: Meter) -> Profile:
    """The profile of what a meter counted, by the modules' names."""
    sums: dict[str, list[Tally]] = {}
    operations: dict[str, dict[str, list[Tally]]] = {}
    for (place, label, way), tally in meter.entries.items():
        side = WAYS.index(way)
        mine = [sums.setdefault(place.name, [NOTHING, NOTHING])]
        if tally.dense:
            name = getattr(label, "__name__", str(label)).removesuffix(".default")
            mine.append(operations.setdefault(place.name, {}).setdefault(name, [NOTHING, NOTHING]))
        for tallies in mine:
            tallies[side] = tallies[side] + tally
    calls: dict[str, int] = {}
    kinds: dict[str, str] = {}
    for place, count in meter.calls.items():
        if not place.again:
            calls[place.name] = calls.get(place.name, 0) + count
        kinds.setdefault(place.name, place.kind)
    kinds = {name: type(part).__name__ for name, part in module.named_modules()} | kinds
    mine = own_parameters(module)
    rows = [
        ModuleCost(
            name,
            kind,
            mine.get(name, 0),
            *sums.get(name, (NOTHING, NOTHING)),
            calls=calls.get(name, 0),
            operations={op: (forward, back) for op, (forward, back) in operations.get(name, {}).items()},
        )
        for name, kind in kinds.items()
    ]
    return Profile(
        type(module).__name__, tuple(rows), dict(meter.unknown), notes(meter), " and ".join(meter.tiles)
    )


def own_parameters(module: Module) -> dict[str, int]:
    """How many numbers each module learns that no module before it does."""
    parameters: dict[str, int] = {}
    seen: set[int] = set()
    for name, part in module.named_modules():
        for parameter in part.parameters(recurse=False):
            if id(parameter) in seen or isinstance(parameter, UninitializedParameter):
                continue
            seen.add(id(parameter))
            parameters[name] = parameters.get(name, 0) + parameter.numel()
    return parameters


def notes(meter: Meter) -> tuple[str, ...]:
    """Sentences on inexact numbers: `mask not known: attention in layers.0.attn is counted dense`."""
    places: dict[str, list[str]] = {}
    for text, where in meter.notes:
        places.setdefault(text, []).append(where or "the module itself")
    notes: list[str] = []
    for text, where in places.items():
        names = ", ".join(where[:2]) + (f" and {len(where) - 2} more" if len(where) > 2 else "")
        notes.append(text.replace("{}", names))
    return tuple(notes)


COUNTS = ("needed", "executed", "dense")
WHOLE = "Global"


class FlopCounter:
    """Counts two floating-point operations a multiply-add, as torch does, of those that are needed.

    A drop-in for torch.utils.flop_counter.FlopCounterMode: same arguments, same answers for products and
    convolutions. Attention is counted by its attended pairs, forward and backward, on a CPU, a GPU or
    the meta device; its backward needs twice the forward. count="executed" counts whole tiles, and scores
    that are computed again, count="dense" all pairs. Multiplies by a convolution's padding are counted as
    torch does, unless padding=False leaves them out of what is needed.

    >>> import torch
    >>> q = torch.zeros(1, 1, 8, 4)
    >>> with FlopCounter(display=False) as counter:
    ...     out = torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    >>> counter.get_total_flops()  # 36 pairs, 4 + 4 multiply-adds each, two operations a multiply-add
    576
    """

    def __init__(
        self,
        mods: Module | list[Module] | None = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: Mapping[Any, Callable[..., int]] | None = None,
        *,
        count: Literal["needed", "executed", "dense"] = "needed",
        padding: bool = True,
    ) -> None:
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        if count not in COUNTS:
            raise NamingError(f"count is one of {', '.join(COUNTS)}, not {count!r}")
        self.depth, self.display, self.count, self.padding = depth, display, count, padding
        self._formulas = {
            packet: formula if getattr(formula, "_get_raw", False) else shape_wrapper(formula)
            for packet, formula in (custom_mapping or {}).items()
        }
        self._names: WeakKeyDictionary[Module, str] = WeakKeyDictionary()
        self._meter: Meter | None = None

    def __enter__(self) -> FlopCounter:
        self._meter = Meter(self._name, formulas=self._formulas)
        self._meter.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._meter is not None:
            self._meter.__exit__(*error)
        if self.display:
            print(self.get_table(self.depth))

    # What was counted

    @property
    def flop_counts(self) -> dict[str, dict[Any, int]]:
        """By module, then by operator; under "Global" all of them."""
        counts: dict[str, dict[Any, int]] = {}
        for (place, label, _), tally in ({} if self._meter is None else self._meter.entries).items():
            if not tally.dense:
                continue
            flops = 2 * self._counted(label, tally)
            for name in {step.name or WHOLE for step in place.path()}:
                mine = counts.setdefault(name, {})
                mine[label] = mine.get(label, 0) + flops
        return counts

    def _counted(self, label: Any, tally: Tally) -> int:
        if self.count == "needed" and self.padding and "convolution" in str(label):
            return tally.executed
        return getattr(tally, self.count)

    @property
    def unknown(self) -> dict[str, int]:
        """Operators whose arithmetic is not known, and how often they ran: they are not counted."""
        return {} if self._meter is None else dict(self._meter.unknown)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on inexact numbers: `mask not known: …`."""
        return () if self._meter is None else notes(self._meter)

    def get_total_flops(self) -> int:
        """Twice the multiply-adds of all that ran."""
        return sum(self.flop_counts.get(WHOLE, {}).values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """By module, then by operator; under "Global" all of them."""
        return self.flop_counts

    def get_table(self, depth: int | None = None) -> str:
        """Modules within modules down to `depth`, their operators, and each one's share."""
        depth = self.depth if depth is None else depth
        depth = 10**6 if depth is None else depth
        counts, total = self.flop_counts, self.get_total_flops()
        named = sorted(name for name in counts if name != WHOLE)
        shown = [(name, name.count(".")) for name in named if name.count(".") < depth]
        if all(sum(counts[name].values()) < total for name in named):
            shown = [(WHOLE, 0), *((name, level + 1) for name, level in shown)]
        rows: list[tuple[str, str, str]] = []
        for name, level in shown:
            mine = counts.get(name, {})
            named = {name: sum(mine.values()), **{f" - {label}": flops for label, flops in mine.items()}}
            rows += [
                (" " * level + each, with_unit(flops), percent(flops, total)) for each, flops in named.items()
            ]
        table = Table(("Module", self._heading(), "% Total"), rows).lines()
        return "\n".join([*table, *([not_counted(self.unknown)] if self.unknown else [])])

    def _heading(self) -> str:
        """`FLOP`, or `FLOP executed, by native`."""
        if self.count != "executed":
            return "FLOP"
        tiles = "" if self._meter is None else " and ".join(self._meter.tiles)
        return f"FLOP executed, {tiles}" if tiles else "FLOP executed"

    # Names as torch gives them

    def _name(self, module: Module, parent: CallSite) -> str:
        """The class of the outermost module, then the attributes that lead to this one."""
        if module not in self._names:
            self._names[module] = type(module).__name__
            for name, part in module.named_modules(prefix=type(module).__name__):
                self._names.setdefault(part, name)
        return self._names[module]
