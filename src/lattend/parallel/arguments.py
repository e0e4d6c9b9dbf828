"""What lt.parallel.attention is given, checked: on a rank alone first, then with what all ranks have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from lattend.attend.bias import Bias, check_floating, dtype_name, shape_text, table_text
from lattend.attend.seams import (
    KERNELS,
    KernelOptions,
    RuleNames,
    as_one_kind,
    check_names,
    check_scoring,
    check_shapes,
    check_sinks,
    numbers_given,
    rule_names,
    sizes_given,
    term_given,
)
from lattend.errors import DomainError, NamingError, TensorError
from lattend.parallel.cluster import Cluster, cluster_of
from lattend.parallel.layout import Cut, Layout, contiguous, of_lengths, zigzag
from lattend.parallel.rank_schedule import whole_bias
from lattend.parallel.ranks import Agreed, CallDigest, Ranks
from lattend.rules.axes import HEADS
from lattend.rules.reader import RuleLike, arrays_in, read_rule
from lattend.rules.rule import Rule

STRATEGIES = ("halo", "gather", "ring", "ulysses")
CUTS = ("contiguous", "zigzag")


@dataclass(frozen=True, eq=False)
class Asked:
    """A call as one rank sees it: tensors of a line, and the rule without the sizes of the whole."""

    rule: Rule
    names: RuleNames
    values: Mapping[str, Any]
    q: Tensor  # [batch, heads, n, D], flat
    k: Tensor
    v: Tensor
    shape: tuple[int, ...]  # of this rank's image; of a line none
    cut_along: tuple[tuple[str, int], ...]  # axes that are cut, by their sizes' names, over so many ranks
    cut: Cut | str | None
    strategy: str | None
    cluster: Cluster | None
    trains: bool
    bias: Bias | Tensor | None
    padding: Tensor | None
    sinks: Tensor | None
    options: KernelOptions  # those without tensors
    said: CallDigest  # what the ranks must have in common

    @property
    def said_now(self) -> CallDigest:
        """The same of numbers that are others in every call: the lengths of sequences."""
        padding = self.padding
        return {} if padding is None or self.masked else {"lengths of padding": tuple(_entries(padding))}

    @property
    def masked(self) -> bool:
        """Whether there is a mask of this rank's keys."""
        return self.padding is not None and self.padding.dim() == 2

    @property
    def own_rows(self) -> bool:
        """Whether the bias is a table of this rank's queries."""
        return isinstance(self.bias, Tensor)

    @property
    def learned(self) -> list[Tensor]:
        """The tensors besides q, k and v that get gradients: those of the bias, then the sinks."""
        bias = [self.bias] if isinstance(self.bias, Tensor) else []
        bias = [*self.bias.tensors.values()] if isinstance(self.bias, Bias) else bias
        return [*(x.to(self.q.device) for x in bias), *([] if self.sinks is None else [self.sinks])]


def asked_of(
    ranks: Ranks, q: Tensor, k: Tensor, v: Tensor, rule: RuleLike, values: Mapping[str, Any],
    how: Mapping[str, Any],
) -> Asked:  # fmt: skip
    """The call, all of it checked that one rank can check alone."""
    cut, strategy, bias, padding, sinks = (
        how[name] for name in ("cut", "strategy", "bias", "padding", "sinks")
    )
    _check_options(how)
    cluster = None if how["cluster"] is None else cluster_of(how["cluster"])
    found = read_rule(rule, arrays_in(values))
    names = rule_names(found.key)
    check_names(names, found.values, values)
    check_shapes(names, q, k, v)
    q, k, v = as_one_kind(q, k, v)
    check_sinks(sinks, q)
    shape = tuple(q.shape[2:-1]) if q.dim() > 4 else ()
    cut_along = _cut_along(ranks, found, shape)
    if shape:
        q, k, v = (x.flatten(2, -2) for x in (q, k, v))
    numbers = {name: int(value) for name, value in values.items() if name not in found.open}
    options = _kernel_options(how).as_constants()
    learned = [*_tensors(bias), *([] if sinks is None else [sinks])]
    trains = torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v, *learned))
    said: CallDigest = {
        "rule": found.key,
        "its numbers": tuple({**found.values, **numbers}.items()),
        "its arrays": tuple((name, *_kind(values[name], -1)) for name in found.open),
        "batch": q.shape[0],
        "heads": q.shape[1],
        "kv heads": k.shape[1],
        "head dimension": q.shape[3],
        "value dimension": v.shape[3],
        "axes of an image": tuple(
            size for axis, size in zip(found.axes, shape, strict=False) if axis.queries not in dict(cut_along)
        ),
        "dtype": dtype_name(q.dtype),
        "device": q.device.type,
        ", ".join(options._fields): tuple(options),
        "cut": cut.pieces if isinstance(cut, Cut) else cut,
        "strategy": strategy,
        "cluster": None if cluster is None else f"{cluster}, {cluster.shares}",
        "bias": _bias_said(bias, q),
        "padding": _padding_said(padding, q, k),
        "sinks": None if sinks is None else dtype_name(sinks.dtype),
        "return_lse": how["return_lse"],
        "gradients": trains,
    }
    sharing = (shape, cut_along, cut, strategy, cluster, trains)
    return Asked(found, names, values, q, k, v, *sharing, bias, padding, sinks, options, said)


def _cut_along(ranks: Ranks, rule: Rule, shape: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
    """Along which axes of an image the ranks cut it: those that a mesh names, or its first."""
    sizes = [axis.queries for axis in rule.axes]
    named = " and ".join(name for name, _ in ranks.axes)
    if not ranks.axes:
        return ((sizes[0], ranks.size),) if shape else ()
    if not shape:
        raise TensorError(
            f"mesh cuts {named}: give q, k and v an axis for each, [batch, heads, rows, cols, D] on an image"
        )
    if [name for name in sizes if name in dict(ranks.axes)] != [name for name, _ in ranks.axes]:
        raise NamingError(
            f'mesh cuts {named}, and the rule "{rule.text}" has the sizes {", ".join(sizes)}: name the '
            "mesh's dimensions after some of these, in their order"
        )
    return ranks.axes


def _kernel_options(how: Mapping[str, Any]) -> KernelOptions:
    return KernelOptions(*[how[name] for name in KernelOptions._fields])


def _check_options(how: Mapping[str, Any]) -> None:
    check_scoring(_kernel_options(how))
    kernel, strategy, cut = how["kernel"], how["strategy"], how["cut"]
    for name in ("deterministic", "return_lse"):
        if not isinstance(how[name], bool):
            raise NamingError(f"{name} is True or False, not {how[name]!r}")
    if kernel is not None and kernel not in KERNELS:
        raise NamingError(f"kernel is one of {', '.join(KERNELS)}, not {kernel!r}; leave it out for the best")
    if strategy is not None and strategy not in STRATEGIES:
        raise NamingError(
            f"strategy is one of {', '.join(STRATEGIES)}, not {strategy!r}; "
            "leave it out for that of fewest bytes"
        )
    if strategy is not None and how["cluster"] is not None:
        raise NamingError("a cluster says which strategy is quickest: give that or a strategy, not both")
    if cut is not None and not isinstance(cut, Cut) and cut not in CUTS:
        raise NamingError(f"cut is a Cut, or one of {', '.join(CUTS)}, not {cut!r}")


def _tensors(bias: object) -> list[Tensor]:
    return [*bias.tensors.values()] if isinstance(bias, Bias) else [bias] if isinstance(bias, Tensor) else []


def _kind(x: object, but: int) -> tuple[Any, ...]:
    """A tensor's dtype and shape, without one axis that may differ from rank to rank."""
    if not isinstance(x, Tensor):
        return (type(x).__name__,)
    return dtype_name(x.dtype), tuple(
        size for axis, size in enumerate(x.shape) if axis != but % max(1, x.dim())
    )


def _bias_said(bias: object, q: Tensor) -> tuple[Any, ...] | None:
    if isinstance(bias, Bias):
        tensors = [(name, dtype_name(x.dtype), tuple(x.shape)) for name, x in bias.tensors.items()]
        return (bias.text, *tensors)
    if not isinstance(bias, Tensor):
        if bias is not None:
            raise NamingError(f"bias is a Bias or a table of this rank's queries, not {type(bias).__name__}")
        return None
    check_floating("bias", bias)
    if bias.dim() not in (2, 3, 4) or bias.shape[-2] != q.shape[2]:
        raise TensorError(
            f"bias has shape {shape_text(bias)}, and a table has a row for each of this rank's {q.shape[2]} "
            "queries and a column for each key of all ranks: (n, m), (heads, n, m) or (batch, heads, n, m)"
        )
    return _kind(bias, -2)


def _padding_said(padding: object, q: Tensor, k: Tensor) -> str | None:
    if padding is None:
        return None
    batch, keys = q.shape[0], k.shape[2]
    if isinstance(padding, Tensor) and padding.device == q.device:
        if padding.dtype == torch.bool and padding.shape == (batch, keys):
            return None  # where some ranks have one, the keys of others are all real
        if not padding.is_floating_point() and padding.dtype != torch.bool and padding.shape == (batch,):
            return "lengths"
    kind = (
        f"{shape_text(padding)} of {dtype_name(padding.dtype)}"
        if isinstance(padding, Tensor)
        else repr(padding)
    )
    raise TensorError(
        f"padding is a mask ({batch}, {keys}) of bool, True where a key of this rank is real, or ({batch}) "
        f"lengths of the whole sequences, on the device of q; got {kind}"
    )


_ENTRIES = WeakTensorKeyDictionary()  # lengths that were looked at: every layer of a model is given the same


def _entries(lengths: Tensor) -> list[int]:
    """What a tensor holds: on a GPU waited for, but once."""
    if lengths.is_inference():
        return lengths.tolist()
    version, found = cast(tuple[int | None, list[int]], _ENTRIES.get(lengths, (None, [])))
    if version != lengths._version:  # pyright: ignore[reportPrivateUsage]
        found = lengths.tolist()
        _ENTRIES[lengths] = (lengths._version, found)  # pyright: ignore[reportPrivateUsage]
    return found


# With all ranks


def check_lengths(asked: Asked, m: int) -> None:
    """Raises where padding gives a length that the whole cannot have."""
    if asked.padding is not None and asked.padding.dim() == 1:
        for length in _entries(asked.padding):
            if not 0 <= length <= m:
                raise DomainError(f"padding has a length of {length}, and there are {m} keys on all ranks")


def layouts_of(asked: Asked, agreed: Agreed) -> tuple[Layout, Layout]:
    """Which positions each rank has, of queries and of keys; raises where lengths do not fit the cut."""
    if asked.shape:
        found = _image_layout(asked, np.array(agreed.shapes))
        return found, found
    queries = cut_of(asked.cut, agreed.queries, "queries")
    if agreed.queries == agreed.keys:
        return Layout.on_line(queries), Layout.on_line(queries)
    keys = cut_of(None if isinstance(asked.cut, Cut) else asked.cut, agreed.keys, "keys")
    return Layout.on_line(queries), Layout.on_line(keys)


def _image_layout(asked: Asked, shapes: NDArray[np.int64]) -> Layout:
    """The cuts of an image's axes, from the sizes that every rank has of it."""
    mesh, names = [count for _, count in asked.cut_along], [name for name, _ in asked.cut_along]
    if len(mesh) > 1 and asked.cut not in (None, "contiguous"):
        raise DomainError(f"cut={asked.cut!r}: blocks of an image follow each other; leave it out")
    cuts: list[Cut] = []
    for axis, sizes in zip(asked.rule.axes, shapes.T, strict=True):
        if axis.queries not in names:
            cuts.append(contiguous(int(sizes[0]), 1))
            continue
        place = names.index(axis.queries)
        table = np.moveaxis(sizes.reshape(mesh), place, 0).reshape(mesh[place], -1)
        if (table != table[:, :1]).any():
            raise DomainError(
                f"blocks in one line of a mesh {' × '.join(map(str, mesh))} must have the same "
                f"{axis.queries}; the ranks have {', '.join(map(str, sizes.tolist()))}"
            )
        cuts.append(cut_of(asked.cut, table[:, 0].tolist(), axis.queries))
    whole = tuple(cut.n for cut in cuts)
    last = max(i for i, cut in enumerate(cuts) if cut.ranks > 1 or i == 0)
    return Layout(tuple(cuts[: last + 1]), whole)


def cut_of(cut: Cut | str | None, lengths: Sequence[int], what: str) -> Cut:
    """The cut as given, checked against the number of positions that each rank has."""
    if cut is None or cut == "contiguous":
        return of_lengths(lengths)
    wanted = zigzag(sum(lengths), len(lengths)) if isinstance(cut, str) else cut.checked()
    if wanted.ranks != len(lengths):
        raise DomainError(
            f"cut is for {wanted.ranks} ranks, and there are {len(lengths)}: make one for these"
        )
    asked = [wanted.length(rank) for rank in range(wanted.ranks)]
    if asked != [*lengths]:
        raise DomainError(
            f"cut {wanted.name} gives the ranks {', '.join(map(str, asked))} positions, and they came with "
            f"{', '.join(map(str, lengths))} {what}: cut tensors with lt.parallel.shard(x, mesh, cut=…)"
        )
    return wanted


def complete_rule(asked: Asked, layouts: tuple[Layout, Layout]) -> Rule:
    """The rule with all its numbers: the sizes of the whole."""
    rule, names = asked.rule, asked.names
    n, m = (int(layout.lengths.sum()) for layout in layouts)
    numbers = {name: int(value) for name, value in asked.values.items() if name not in rule.open}
    line = len(names.queries) == 1
    if line and n != m and "m" not in names.sizes and "m" not in numbers:
        raise TensorError(
            f'q has {n} positions and k has {m} on all ranks, but the rule "{names.text}" has one size n '
            f"for both; give m={m}, and q = 0, k = 0 are the first of each"
        )
    # tensors without memory, of the whole: every size is read off them as attention does
    batch, (heads, kv_heads) = asked.q.shape[0], (asked.q.shape[1], asked.k.shape[1])
    q, k = (
        torch.empty((batch, count, *layout.sizes, 1), device="meta")
        for count, layout in zip((heads, kv_heads), layouts, strict=True)
    )
    sizes = sizes_given(names, rule.values, asked.values, q, k)
    numbers_given(names, rule.values, asked.values, sizes)
    known = {name: value for name, value in {**numbers, **sizes}.items() if name not in rule.values}
    bound = rule.at(
        **{name: value for name, value in known.items() if name in (*names.sizes, *names.parameters, "m")}
    )
    return bound if HEADS not in names.sizes or HEADS in bound.values else bound.at(heads=heads)


def bias_key(asked: Asked, rule: Rule, keys: Layout) -> str | None:
    """The key of the bias, which must fit the whole."""
    bias, q, m = asked.bias, asked.q, int(keys.lengths.sum())
    if bias is None:
        return None
    if isinstance(bias, Tensor):
        batch, heads = q.shape[:2]
        leading = {2: [()], 3: [(heads,)], 4: [(a, b) for a in (1, batch) for b in (1, heads)]}[bias.dim()]
        if tuple(bias.shape[:-2]) not in leading or bias.shape[-1] != m:
            raise TensorError(
                f"bias has shape {shape_text(bias)}, and a table has a row for each of this rank's queries "
                f"and a column for each key of all ranks: (n, {m}), ({heads}, n, {m}) or "
                f"({batch}, {heads}, n, {m}), where the first two may be 1"
            )
        return f"table\n{table_text(bias, 'q, k')}"
    sizes = {name: rule.values[name] for name in rule.sizes}
    key = term_given(asked.names, asked.rule.key, bias, sizes, q)[0]
    return None if key is None else whole_bias(key, rule, on_line=not asked.shape)
