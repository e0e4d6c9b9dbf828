"""Checks the arguments of attention: tensors fit, every name has a number, every open array is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lattend.attend.bias import (
    ELEMENT,
    Bias,
    check_floating,
    dtype_name,
    indexed_axes,
    names_in,
    shape_text,
    table_text,
)
from lattend.attend.call.options import OPTIONS, close_name, meant_by
from lattend.attend.call.rule_names import OpenArray, RuleNames, array_names, attends_all, rule_names
from lattend.errors import DomainError, NamingError, TensorError

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
MOST_POSITIONS, MOST_NUMBER = 2**31 - 1, 2**62


class Inputs(NamedTuple):
    """q, k and v of one dtype and device, and the operator's other arguments."""

    q: Tensor
    k: Tensor
    v: Tensor
    numbers: list[int]
    arrays: list[Tensor]
    term: str | None
    tensors: list[Tensor]


def checked_inputs(
    rule: tuple[str, Mapping[str, int]],
    values: Mapping[str, Any],
    qkv: tuple[Tensor, Tensor, Tensor],
    bias: Bias | Tensor | None,
) -> Inputs:
    """Checks all arguments against a rule, its key and its numbers, and returns the operator's arguments."""
    key, bound = rule
    names = rule_names(key)
    check_names(names, bound, values)
    check_shapes(names, *qkv)
    q, k, v = as_one_kind(*qkv)
    said = "m" in values or "m" in names.sizes or len(names.queries) > 1
    if isinstance(bias, Bias):
        known = not said and "m" in names_in(bias.text) and q.shape[2] == k.shape[2]
    else:
        known = not said and q.shape[2] != k.shape[2] and attends_all(key)  # nothing to align
    values = {"m": k.shape[2], **values} if known else values
    sizes = sizes_given(names, bound, values, q, k)
    numbers = numbers_given(names, bound, values, sizes)
    arrays = arrays_given(names, values, sizes, q)
    return Inputs(q, k, v, numbers, arrays, *term_given(names, key, bias, sizes, q))


# Tensors


def check_shapes(names: RuleNames, q: Tensor, k: Tensor, v: Tensor) -> None:
    """Raises unless q, k and v are tensors whose axes fit the rule and each other."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TensorError(f"{name} must be a tensor, got {type(x).__name__}")
        if x.layout != torch.strided:
            raise TensorError(f"{name} is sparse, and attention takes dense tensors: {name}.to_dense()")
    if q.dim() not in (4, 3 + len(names.queries)):
        raise TensorError(f"q has shape {shape_text(q)}, and {_expected(names)}")
    for name, x in (("k", k), ("v", v)):
        if x.dim() != q.dim():
            raise TensorError(
                f"{name} has {x.dim()} axes and q has {q.dim()}: {name} is {shape_text(x)}, "
                f"and {_expected(names)}"
            )
        _same("batch", name, x, "q", q, 0)
    _same("heads", "v", v, "k", k, 1)
    if k.shape[1] < 1 or q.shape[1] % k.shape[1] != 0:
        raise TensorError(
            f"q has {q.shape[1]} heads and k has {k.shape[1]}; "
            "the heads of q must be a multiple of those of k"
        )
    for axis in range(2, k.dim() - 1):
        _same("keys", "v", v, "k", k, axis)
    _same("head dimension", "k", k, "q", q, -1)
    if q.shape[-1] < 1:
        raise TensorError(
            f"q has shape {shape_text(q)}: its head dimension, the last axis, must be at least 1"
        )
    for name, x in (("q", q), ("k", k)):
        length = 1
        for size in x.shape[2:-1]:
            length = length * size
        if length > MOST_POSITIONS:
            raise TensorError(
                f"{name} has {length:,} positions, and at most {MOST_POSITIONS:,} can be addressed; "
                "cut it into parts"
            )


def as_one_kind(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the tensors, cast under autocast; raises unless kernels take their device and dtype."""
    for name, x in (("k", k), ("v", v)):
        if x.device != q.device:
            raise TensorError(f"q is on {q.device} and {name} on {x.device}; move one: {name}.to(q.device)")
    device = q.device.type
    if device != "meta" and torch.is_autocast_enabled(device):
        kind = torch.get_autocast_dtype(device)
        q, k, v = (x.to(kind) if x.is_floating_point() and x.dtype != torch.float64 else x for x in (q, k, v))
    if q.dtype == torch.float8_e4m3fn:
        raise TensorError(
            "q is float8_e4m3fn: give what its numbers are multiplied by, scales=(q_scale, k_scale, v_scale)"
        )
    if q.dtype not in DTYPES:
        raise TensorError(
            f"q is {dtype_name(q.dtype)}, and attention takes {', '.join(map(dtype_name, DTYPES))}; "
            "cast it first"
        )
    for name, x in (("k", k), ("v", v)):
        if x.dtype != q.dtype:
            raise TensorError(
                f"q is {dtype_name(q.dtype)} and {name} is {dtype_name(x.dtype)}; "
                f"cast one: {name}.to(q.dtype)"
            )
    return q, k, v


def _same(what: str, name: str, x: Tensor, other: str, y: Tensor, axis: int) -> None:
    if x.shape[axis] != y.shape[axis]:
        raise TensorError(
            f"{name} has {what} {x.shape[axis]} and {other} has {y.shape[axis]} (axis {axis}); "
            f"they must be equal: {name} is {shape_text(x)}, {other} is {shape_text(y)}"
        )


def _expected(names: RuleNames) -> str:
    if len(names.queries) == 1:
        return f'the rule "{names.text}" on a line takes (batch, heads, n, D)'
    sizes, kind = names.sizes[: len(names.queries)], "an image" if len(names.queries) == 2 else "a volume"
    return (
        f'the rule "{names.text}" on {kind} takes (batch, heads, {", ".join(sizes)}, D), '
        f"or (batch, heads, n, D) with {_choices(sizes)}"
    )


def _choices(sizes: tuple[str, ...]) -> str:
    """`rows=… or cols=…`, `two of depth=…, rows=… and cols=…`."""
    if len(sizes) == 2:
        return f"{sizes[0]}=… or {sizes[1]}=…"
    return f"two of {sizes[0]}=…, {sizes[1]}=… and {sizes[2]}=…"


# Sinks


def check_sinks(sinks: object, q: Tensor) -> None:
    """Raises unless there is one logit for each head of q."""
    if sinks is None:
        return
    if not isinstance(sinks, Tensor):
        raise TensorError(f"sinks must be a tensor with one logit a head, got {type(sinks).__name__}")
    if sinks.shape != (q.shape[1],):
        raise TensorError(
            f"sinks has shape {shape_text(sinks)}, and q has {q.shape[1]} heads: one logit for each"
        )
    check_floating("sinks", sinks)
    _check_device("sinks", sinks, q)


# Numbers


def check_names(names: RuleNames, bound: Mapping[str, int], values: Mapping[str, Any]) -> None:
    """Raises unless each named value is one of the rule's, and no parameter or array is missing."""
    arrays = [array.name for array in names.arrays]
    for name, value in values.items():
        if name in arrays:
            continue
        line_keys = name == "m" and names.queries == ("q",)  # any rule on a line takes it
        if name not in names.sizes and name not in names.parameters and not line_keys:
            raise _unknown(name, names, arrays)
        if name in names.parameters and name in bound:
            raise NamingError(f"{name} already has the value {bound[name]}; give it once")
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise DomainError(f"{name} must be an integer, got {value!r}")
    missing = [name for name in names.parameters if name not in values and name not in bound]
    if missing:
        raise _missing(names, missing)
    for name in arrays:
        if name not in values:
            raise NamingError(f'rule "{names.text}" needs the array {name}: give {name}=tensor')


def sizes_given(
    names: RuleNames, bound: Mapping[str, int], values: Mapping[str, Any], q: Tensor, k: Tensor
) -> dict[str, int]:
    """Returns each size by its name, from the shapes; raises where the caller's number differs."""
    sizes = _line(names, values, q, k) if names.queries == ("q",) else _image(names, bound, values, q, k)
    if "heads" in names.sizes:
        sizes["heads"] = q.shape[1]
    for name, size in sizes.items():
        if values.get(name, size) != size:
            raise DomainError(
                f"{name} = {values[name]} is given, but the tensors have {name} = {size}; leave it out"
            )
        if bound.get(name, size) != size:
            raise DomainError(
                f'the rule "{names.text}" is for {name} = {bound[name]}, and the tensors have {name} = {size}'
            )
    return sizes


def numbers_given(
    names: RuleNames, bound: Mapping[str, int], values: Mapping[str, Any], sizes: Mapping[str, int]
) -> list[int]:
    """Returns the sizes, the parameters, then m where the rule has none: in the order of rule_at."""
    numbers = [sizes[name] for name in names.sizes]
    for name in names.parameters:
        value = values[name] if name in values else bound[name]
        if not -MOST_NUMBER <= value <= MOST_NUMBER:
            raise DomainError(f"{name} = {value} is more than 64 bits hold; take a smaller one")
        numbers.append(value if isinstance(value, int) else int(value))
    if "m" in sizes and "m" not in names.sizes:
        numbers.append(sizes["m"])
    return numbers


def _line(names: RuleNames, values: Mapping[str, Any], q: Tensor, k: Tensor) -> dict[str, int]:
    n, m = q.shape[2], k.shape[2]
    if "m" in names.sizes or "m" in values:
        return {"n": n, "m": m}
    if n != m:
        raise TensorError(
            f'q has {n} positions and k has {m}, but the rule "{names.text}" has one size n for both; '
            f"give m={m}, and q = 0, k = 0 are the first of each"
        )
    return {"n": n}


def _image(
    names: RuleNames, bound: Mapping[str, int], values: Mapping[str, Any], q: Tensor, k: Tensor
) -> dict[str, int]:
    for axis in range(2, q.dim() - 1):
        _same("positions", "k", k, "q", q, axis)
    sizes = names.sizes[: len(names.queries)]
    if q.dim() > 4:
        return dict(zip(sizes, q.shape[2:-1], strict=True))
    known = {name: values.get(name, bound.get(name)) for name in sizes}
    left = [name for name, size in known.items() if size is None]
    n, area = q.shape[2], 1
    if len(left) > 1:
        raise NamingError(f"q is flattened to {n} positions: give {_choices(sizes)}")
    for size in known.values():
        area = area if size is None else area * size
    if left:
        known[left[0]] = n // area if area > 0 else 0
        area = area * known[left[0]]
    if area != n:
        shown = ", ".join(f"{name} = {size}" for name, size in known.items() if name not in left)
        raise TensorError(f"q has {n} positions, which {shown} does not cut into {' × '.join(sizes)}")
    return known


def _unknown(name: str, names: RuleNames, arrays: list[str]) -> NamingError:
    known = (*names.sizes, *names.parameters, *arrays)
    return NamingError(f'rule "{names.text}" has no {name}; it has {", ".join(known)}{meant_by(name, known)}')


def _missing(names: RuleNames, missing: list[str]) -> NamingError:
    for name in missing:
        if name in OPTIONS:
            return NamingError(
                f"{name} is an argument of attention too; bind the rule's first: rule.at({name}=…)"
            )
    asked = ", ".join(f"{name}=…" for name in missing)
    return NamingError(f'rule "{names.text}" needs a value for {" and ".join(missing)}: give {asked}')


# Arrays


def arrays_given(
    names: RuleNames, values: Mapping[str, Any], sizes: Mapping[str, int], q: Tensor
) -> list[Tensor]:
    """Returns the arrays that the rule leaves open, in its order; raises unless each fits its lookups."""
    extent = _extents(names, sizes, q)
    found: list[Tensor] = []
    for array in names.arrays:
        x = values[array.name]
        _check_array(array, x, extent, q)
        found.append(x)
    return found


def _extents(names: RuleNames, sizes: Mapping[str, int], q: Tensor) -> dict[str, int]:
    """Returns how many values each position has."""
    axes = names.sizes[: len(names.queries)]
    extent = {query: sizes[name] for query, name in zip(names.queries, axes, strict=True)}
    keys = {key: sizes[name] for key, name in zip(names.keys, axes, strict=True)}
    extent.update(keys if "m" not in sizes else {"k": sizes["m"]})
    extent["head"], extent[ELEMENT] = q.shape[1], sizes.get(ELEMENT, q.shape[0])
    return extent


def _check_array(array: OpenArray, x: object, extent: Mapping[str, int], q: Tensor) -> None:
    name, axes = array.name, len(array.positions)
    if not isinstance(x, Tensor):
        raise TensorError(f"{name} must be a tensor, got {type(x).__name__}: torch.as_tensor({name})")
    if x.is_floating_point() or x.is_complex():
        raise TensorError(f"{name} must hold whole numbers, got {dtype_name(x.dtype)}")
    if x.device != q.device:
        raise TensorError(f"q is on {q.device} and {name} on {x.device}; move one: {name}.to(q.device)")
    if x.dim() not in (axes, axes + 1) or (x.dim() > axes and x.shape[0] != q.shape[0]):
        raise TensorError(
            f"{name} has shape {shape_text(x)}; {array.lookup} takes {axes} axes, "
            f"or {axes + 1} with the batch of {q.shape[0]} first"
        )
    for axis, positions in enumerate(array.positions, x.dim() - axes):
        for position in positions:
            if x.shape[axis] < extent[position]:
                raise TensorError(
                    f"{name} has shape {shape_text(x)}; {array.lookup} needs {extent[position]} places "
                    f"on axis {axis}, one for each {position}"
                )


# The bias


def term_given(
    names: RuleNames, key: str, bias: Bias | Tensor | None, sizes: Mapping[str, int], q: Tensor
) -> tuple[str | None, list[Tensor]]:
    """Returns the key of the bias and its tensors; raises unless they fit the rule, its sizes and q."""
    if bias is None:
        return None, []
    if isinstance(bias, Tensor):
        return _table_given(names, bias, sizes, q)
    if not isinstance(bias, Bias):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise NamingError(
            "bias is a Bias or a tensor [n, m], [heads, n, m] or [batch, heads, n, m], not "
            f"{type(bias).__name__}"
        )
    tensors = _tensors_given(names, bias, sizes, q)
    arrays = array_names(key)
    for name in bias.tensors:
        if name in names.parameters or name in arrays:
            what = "a parameter" if name in names.parameters else "an array"
            raise NamingError(f"bias: {name} is {what} of the rule too; give the tensor another name")
    extent = _extents(names, sizes, q)
    for lookup, name, axis, position in indexed_axes(bias.text):
        tensor, needed = bias.tensors[name], extent[position]
        more = position == "head" and tensor.shape[axis] > needed  # it is of another model
        if tensor.shape[axis] < needed or more:
            raise TensorError(
                f"bias: {name} has shape {shape_text(tensor)}; {lookup} needs {needed} places "
                f"on axis {axis}, one for each {position}"
            )
    if all(extent.values()):
        check_entries(bias)
    return bias.key, tensors


def check_entries(bias: Bias) -> None:
    """Raises where a tensor of the bias has no entries, and there are pairs that read one."""
    for name, tensor in bias.tensors.items():
        if any(size == 0 for size in tensor.shape):
            raise TensorError(f"bias: {name} has shape {shape_text(tensor)}, without an entry to read")


def _tensors_given(names: RuleNames, bias: Bias, sizes: Mapping[str, int], q: Tensor) -> list[Tensor]:
    """Returns the tensors of the bias; raises unless its names are known and they are on the device of q."""
    known = (*names.queries, *names.keys, *sizes, *names.parameters, "head", ELEMENT, *bias.tensors)
    for name in names_in(bias.text):
        if name == ELEMENT and name in names.parameters:
            raise NamingError(
                f'bias "{bias.text}" names {name}, the element of the batch, and the rule "{names.text}" has '
                f"a parameter {name} too; give that another name"
            )
        if name not in known:
            hint = close_name(name, known) or f"; give it as a tensor, Bias(…, {name}=…)"
            raise NamingError(f'bias "{bias.text}" names {name}, which this rule does not have{hint}')
    for name, tensor in bias.tensors.items():
        if tensor.dim():
            _check_device(f"bias: {name}", tensor, q)
    return [tensor.to(q.device) for tensor in bias.tensors.values()]


def _table_given(
    names: RuleNames, table: Tensor, sizes: Mapping[str, int], q: Tensor
) -> tuple[str | None, list[Tensor]]:
    """Returns the key of a table of all pairs, and the table; on an image its positions are flat."""
    extent, n, m = _extents(names, sizes, q), 1, 1
    for query, key in zip(names.queries, names.keys, strict=True):
        n, m = n * extent[query], m * extent[key]
    check_floating("bias", table)
    _check_device("bias", table, q)
    batch, heads = q.shape[:2]
    shape = (n, m) if table.dim() == 2 else (heads, n, m)
    if table.dim() == 4:  # the first two may be 1, one for all
        each = (1 if table.shape[0] == 1 else batch, 1 if table.shape[1] == 1 else heads)
        shape = (*each, n, m)
    if table.dim() not in (2, 3, 4) or table.shape != shape:
        raise TensorError(
            f"bias has shape {shape_text(table)}, and a table has one number for each pair: "
            f"({n}, {m}), ({heads}, {n}, {m}) with heads, or ({batch}, {heads}, {n}, {m}) with the batch, "
            "where the first two may be 1"
        )
    rows, columns = (_flat(positions, names.sizes) for positions in (names.queries, names.keys))
    return f"table\n{table_text(table, f'{rows}, {columns}')}", [table]


def _flat(positions: tuple[str, ...], sizes: tuple[str, ...]) -> str:
    """Returns the text of a flat position: `(qz*rows + qy)*cols + qx`."""
    text = positions[0]
    for i in range(1, len(positions)):
        text = f"({text})*{sizes[i]} + {positions[i]}"
    return text


def _check_device(name: str, tensor: Tensor, q: Tensor) -> None:
    if tensor.device != q.device:
        raise TensorError(f"{name} is on {tensor.device} and q on {q.device}; put them on one device")
