"""Meta tensors: the shapes, dtypes and device of a call that is explained, without memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import prod
from typing import Any, cast

import torch
from torch import Tensor

from lattend.attend.bias import Bias, dtype_name
from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.call.fp8 import DTYPE as EIGHT_BITS
from lattend.attend.call.fp8 import wide_dtype
from lattend.attend.call.inputs import DTYPES, check_names, check_sinks, checked_inputs
from lattend.attend.call.options import KernelOptions, check_scoring
from lattend.attend.call.padding import check_lengths, padding_given
from lattend.attend.call.rule_names import RuleNames, rule_names
from lattend.attend.call.varlen import Packed, Sequences, check_cumulative, packed_inputs, sequence_arrays
from lattend.attend.kernels.dispatch import KERNELS, reasons
from lattend.attend.operators.operator_arguments import OperatorCall
from lattend.attend.replay.compiled_call import wants_gradient
from lattend.errors import DomainError, LattendError, NamingError, TensorError, TooLarge
from lattend.rules.rule import Rule

SIZES = {"n": 4096, "rows": 64, "cols": 64}  # where nothing says otherwise
VOLUME = {"depth": 16, "rows": 16, "cols": 16}
HEADS, HEAD_DIM = 8, 64
MOST_POSITIONS = 1 << 26  # tables of tiles stay below a few hundred MB

Shape = Sequence[int]
Lengths = Tensor | Sequence[int]
Like = Tensor | Shape | Sequence[Tensor | Shape] | None


class MetaTensor(Tensor):
    """A tensor without memory that says it is on some device, there or not."""

    on: torch.device

    @property
    def device(self) -> torch.device:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.on


@dataclass(frozen=True)
class Settings:
    """The arguments of explain besides the rule and its numbers."""

    options: KernelOptions = field(default_factory=KernelOptions)
    dtype: str | torch.dtype | None = None
    device: str | torch.device | None = None
    head_dim: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    batch: int | None = None
    bias: Bias | Tensor | None = None
    padding: Lengths | None = None
    cu_seqlens: Lengths | tuple[Lengths, Lengths] | None = None
    sinks: Tensor | bool = False


# Arguments of explain that may not be a rule's parameters too
_NO_OPTIONS = {"heads", "options", "scale"}
OPTIONS = {"like", *(one.name for one in fields(Settings)), *KernelOptions._fields} - _NO_OPTIONS


@dataclass(frozen=True)
class MetaCall:
    """A call as attention would make it, with tensors that only say what they are."""

    call: AttentionCall
    q: Tensor
    k: Tensor
    v: Tensor
    note: str = ""  # what becomes of q, k and v of 8 bits


def meta_call(rule: Rule, like: Like, settings: Settings, values: Mapping[str, Any]) -> MetaCall:
    """Returns the call, checked as attention checks it."""
    kernel = settings.options.kernel
    if kernel is not None and kernel not in KERNELS:
        known = ", ".join(KERNELS)
        raise NamingError(f"kernel is one of {known}, not {kernel!r}; leave it out for the best")
    for name in rule.parameters:
        if name in OPTIONS and name not in rule.values:
            raise NamingError(
                f"{name} is an argument of explain too; bind the rule's first: rule.at({name}=…)"
            )
    names = rule_names(rule.key)
    check_names(names, rule.values, values)
    check_scoring(settings.options)
    device, dtype = _device(like, settings), _dtype(like, settings)
    rows = None if settings.cu_seqlens is None else cumulative(settings.cu_seqlens)
    shapes = _shapes(rule, names, like, settings, values, rows)
    checked = torch.bfloat16 if dtype == EIGHT_BITS else dtype
    q, k, v = (_meta(shape, checked) for shape in shapes)
    arrays = {name: _on_meta(value) for name, value in values.items()}
    key, data = rule.key, [values[array.name] for array in names.arrays]
    if rows is None:
        inputs = checked_inputs((key, rule.values), arrays, (q, k, v), _on_meta(settings.bias))
    else:
        if settings.padding is not None:
            raise NamingError("cu_seqlens are the lengths of sequences without padding; leave padding out")
        (key, inputs, padding), data = _of_sequences(rule, arrays, (q, k, v), settings, rows)
        settings = replace(settings, padding=padding)
    q, k, v, numbers, _, term, _ = inputs
    sizes = zip(names.sizes, numbers, strict=False)
    rule.at(**{name: size for name, size in sizes if name not in rule.values})  # within its domain
    how = _weighing(q, k, settings)
    call = OperatorCall(key, numbers, data, term, _tensors(settings.bias), **how).attention_call(q)
    call = replace(call, trains=_trains(like, settings))
    flat = [x.flatten(2, -2) if x.dim() > 4 else x for x in (q, k, v)]
    if dtype == EIGHT_BITS:
        return _of_8_bits(call, flat, device)
    q, k, v = (_on(x, device) for x in flat)
    return MetaCall(call, q, k, v)


def _of_8_bits(call: AttentionCall, flat: Sequence[Tensor], device: torch.device) -> MetaCall:
    """The call of numbers of 8 bits with scales, or that of dequantized ones where no kernel takes it."""
    q, k, v = (_on(x.to(EIGHT_BITS), device) for x in flat)
    scale = torch.empty((1, 1), device="meta")
    quantized = replace(call, scales=(scale, scale, scale), trains=False)
    reason = reasons(quantized, q, k, v)["triton"]
    if reason is None:
        said = "8 bits: weights are rounded to e4m3 too, results are bfloat16 and have no gradients"
        return MetaCall(quantized, q, k, v, said)
    dtype = wide_dtype(device)
    said = f"8 bits: dequantized to {dtype_name(dtype)} before anything else, no gradients: {reason}"
    q, k, v = (_on(x.to(dtype), device) for x in flat)
    return MetaCall(replace(call, trains=False), q, k, v, said)


def _trains(like: Like, settings: Settings) -> bool:
    """Whether a backward pass may follow; where tensors are given, whether one of them wants a gradient."""
    given = [like] if isinstance(like, Tensor) else [x for x in like or () if isinstance(x, Tensor)]
    others = [*_tensors(settings.bias), *([settings.sinks] if isinstance(settings.sinks, Tensor) else [])]
    return not given or wants_gradient(*given, *others)


def _weighing(q: Tensor, k: Tensor, settings: Settings) -> dict[str, Any]:
    """Returns padding, sinks, the seed and options as fields of an OperatorCall."""
    real: tuple[Tensor | None, Tensor | None] = (None, None)
    if settings.padding is not None:
        real = padding_given(_on_cpu(settings.padding), *(_on(x, torch.device("cpu")) for x in (q, k)))
        if real[0] is not None:
            check_lengths(real[0], prod(k.shape[2:-1]))
    sinks = settings.sinks if isinstance(settings.sinks, Tensor) else None
    check_sinks(None if sinks is None else sinks.to("meta"), q)
    if settings.sinks is True:
        sinks = q.new_empty(q.shape[1])
    seed = q.new_empty(1, dtype=torch.int64) if settings.options.dropout else None
    return {
        "key_range": real[0], "key_mask": real[1], "sinks": sinks, "seed": seed,
        "options": settings.options.as_constants(),
    }  # fmt: skip


def cumulative(given: Lengths | tuple[Lengths, Lengths]) -> Sequences:
    """The cumulative lengths of queries and keys, on the CPU."""
    match given:
        case (Tensor() | list() | tuple()) as queries, (Tensor() | list() | tuple()) as keys:
            return Sequences(_on_cpu(queries), _on_cpu(keys), queries is not keys)
        case _:
            row = _on_cpu(cast(Lengths, given))
            return Sequences(row, row, False)


def _of_sequences(
    rule: Rule, values: Mapping[str, Any], given: tuple[Tensor, Tensor, Tensor], settings: Settings,
    rows: Sequences,
) -> tuple[Packed, list[Tensor]]:  # fmt: skip
    """What attention is given with cu_seqlens, and the arrays of its rule."""
    q, k, _ = given
    for name, row, x in (("queries", rows.queries, q), ("keys", rows.keys, k)):
        check_cumulative(name, row, x.shape[0])
    queries = rows.queries.to("meta")
    both = (queries, rows.keys.to("meta")) if rows.apart else queries
    packed = packed_inputs((rule.key, rule.values), values, given, _on_meta(settings.bias), both)
    more = packed.padding is not None and int(rows.keys[-1]) < k.shape[0]
    packed = packed._replace(padding=rows.keys[-1:] if more else None)
    return packed, sequence_arrays(rows, q.shape[0], k.shape[0])


def _on_cpu(lengths: Lengths) -> Tensor:
    return lengths.cpu() if isinstance(lengths, Tensor) else torch.tensor(list(lengths), device="cpu")


def _on(x: Tensor, device: torch.device) -> Tensor:
    found = x.as_subclass(MetaTensor)
    found.on = device
    return found


def _on_meta(value: Any) -> Any:
    """An array or a bias without values, as the tensors of the call are."""
    if isinstance(value, Bias):
        return Bias(value.text, **{name: tensor.to("meta") for name, tensor in value.tensors.items()})
    return value.to("meta") if isinstance(value, Tensor) else value


def _tensors(bias: Bias | Tensor | None) -> list[Tensor]:
    return [bias] if isinstance(bias, Tensor) else [] if bias is None else list(bias.tensors.values())


def _meta(shape: Shape, dtype: torch.dtype) -> Tensor:
    positions = prod(shape[2:-1])
    if positions > MOST_POSITIONS:
        raise TooLarge(
            f"{positions:,} positions have more tiles than explain lists, whose most is {MOST_POSITIONS:,}"
        )
    return torch.empty(tuple(shape), dtype=dtype, device="meta")


# Shapes


def _shapes(
    rule: Rule, names: RuleNames, like: Like, settings: Settings, values: Mapping[str, Any],
    rows: Sequences | None,
) -> list[tuple[int, ...]]:  # fmt: skip
    """The shapes of q, k and v."""
    found = [_shape(one) for one in _three(like)]
    if rows is not None:
        return _shapes_of_sequences(found, rule, settings, rows)
    if not found:
        found = [_shape_from_numbers(rule, names, settings, values)]
    asked = {
        0: ("batch", settings.batch),
        1: ("heads", settings.heads),
        -1: ("head_dim", settings.head_dim),
    }
    for axis, (name, number) in asked.items():
        if like is not None and number is not None and len(found[0]) > 3 and found[0][axis] != number:
            raise DomainError(f"{name} = {number} is given, but like has {found[0][axis]}; leave it out")
    if len(found) == 3:
        if settings.kv_heads not in (None, found[1][1] if len(found[1]) > 1 else None):
            raise DomainError(f"kv_heads = {settings.kv_heads} is given, but like has k and v; leave it out")
        return found
    (q,) = found
    keys = values.get("m", rule.values.get("m")) if names.queries == ("q",) and len(q) == 4 else None
    k = q if keys is None else (*q[:2], _whole("m", keys, 0), q[3])
    if settings.kv_heads is not None and len(k) > 1:
        k = (k[0], _whole("kv_heads", settings.kv_heads, 1), *k[2:])
    return [q, k, k]


def _shapes_of_sequences(
    found: list[tuple[int, ...]], rule: Rule, settings: Settings, rows: Sequences
) -> list[tuple[int, ...]]:
    """[total, heads, D] of q, k and v, from what is like them or from the ends of the last sequences."""
    if len(found) == 3:
        return found
    heads = rule.values.get("heads", HEADS) if settings.heads is None else settings.heads
    total, keys = (int(row[-1]) if len(row) else 0 for row in (rows.queries, rows.keys))
    q = found[0] if found else (total, heads, HEAD_DIM if settings.head_dim is None else settings.head_dim)
    if len(q) != 3:
        raise TensorError(f"like has shape {q}, and with cu_seqlens it is (total, heads, D)")
    k = (keys if rows.apart else q[0], settings.kv_heads or q[1], q[2])
    return [q, k, k]


def _three(like: Like) -> Sequence[Any]:
    """`like` as one, three or no tensors or shapes."""
    if like is None:
        return ()
    if isinstance(like, Tensor) or all(isinstance(x, int) for x in like):
        return (like,)
    if len(like) == 3:
        return like
    raise TensorError("like is q, or (q, k, v): tensors, or shapes such as (1, 8, 4096, 64)")


def _shape(one: Tensor | Shape) -> tuple[int, ...]:
    try:
        sizes = tuple(one.shape) if isinstance(one, Tensor) else tuple(int(size) for size in one)
    except (TypeError, ValueError):
        raise TensorError(
            f"like is q, or (q, k, v): tensors, or shapes such as (1, 8, 4096, 64), not {one!r}"
        ) from None
    if any(size < 0 for size in sizes):
        raise TensorError(f"like has shape {sizes}: a size is at least 0")
    return sizes


def _shape_from_numbers(
    rule: Rule, names: RuleNames, settings: Settings, values: Mapping[str, Any]
) -> tuple[int, ...]:
    sizes = names.sizes[: len(names.queries)]
    default = VOLUME if "depth" in sizes else SIZES
    long = [_whole(size, values.get(size, rule.values.get(size, default[size])), 0) for size in sizes]
    heads = rule.values.get("heads", HEADS) if settings.heads is None else settings.heads
    alone = 1 if settings.padding is None else len(settings.padding)
    batch = alone if settings.batch is None else settings.batch
    size = HEAD_DIM if settings.head_dim is None else settings.head_dim
    return (
        _whole("batch", batch, 1),
        _whole("heads", heads, 1),
        *long,
        _whole("head_dim", size, 1),
    )


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise DomainError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise DomainError(f"{name} must be at least {least}, got {value}")
    return value


# Dtype and device


def _first(like: Like) -> Tensor | None:
    found = _three(like)
    return found[0] if found and isinstance(found[0], Tensor) else None


def _device(like: Like, settings: Settings) -> torch.device:
    tensor = _first(like)
    if settings.device is None:
        return torch.device("cpu") if tensor is None or tensor.device.type == "meta" else tensor.device
    try:
        return torch.device(settings.device)
    except (RuntimeError, TypeError):
        raise LattendError(f'device is "cpu" or "cuda", not {settings.device!r}') from None


def _dtype(like: Like, settings: Settings) -> torch.dtype:
    tensor = _first(like)
    if settings.dtype is not None:
        names = {dtype_name(dtype): dtype for dtype in (*DTYPES, EIGHT_BITS)}
        name = str(settings.dtype).removeprefix("torch.")
        if name not in names:
            raise LattendError(f"dtype is one of {', '.join(names)}, not {name}")
        return names[name]
    if tensor is None:
        return torch.float32
    device = _device(like, settings).type
    if tensor.dtype != torch.float64 and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return tensor.dtype
