"""explain(rule, like=q): what attention would do for a call, found without doing it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Never

import torch
from torch import Tensor

from lattend.attend.bias import Bias, dtype_name
from lattend.attend.call.attended_pairs import attended_pairs
from lattend.attend.call.options import KernelOptions
from lattend.attend.explain.memory import CallMemory, memory_of
from lattend.attend.explain.meta_call import Lengths, Like, MetaCall, Settings, meta_call
from lattend.attend.explain.prediction import (
    ExecutedWork,
    Masks,
    PartWork,
    PredictedTime,
    executed_work,
    format_gradients,
    masks_of,
    pairs_of_default_tiles,
    predicted_time,
)
from lattend.attend.explain.text import (
    explanation_report,
    format_box,
    format_condition,
    format_layout,
    format_notes,
    format_numbers,
    format_rest,
    format_span,
    why_slow,
)
from lattend.attend.kernels.crossover import KernelCrossover
from lattend.attend.kernels.dispatch import chosen, chosen_backward, crossovers, reasons
from lattend.attend.kernels.sdpa import why_not_backward
from lattend.attend.kernels.tolerance import uses_tf32
from lattend.draw.grid.titles import clipped, name
from lattend.errors import LattendError, NamingError
from lattend.plans.plan import plan
from lattend.report.data import plain_data
from lattend.report.numbers import percent, seconds
from lattend.report.report import Printed, Report
from lattend.rules.reader import RuleLike, arrays_in, read_rule
from lattend.rules.rule import Rule

if TYPE_CHECKING:
    from lattend.attend.explain.tile_map import Span, TileMap
    from lattend.draw import Picture


@dataclass(frozen=True)
class ExplainedPart:
    """One part of the plan: its condition, in which order it is taken, its tiles and pairs.

    `rows` is the box of queries of a tile, `step` how many keys are taken at once; None takes all keys of
    a tile. `full` counts the steps whose pairs are all attended, None where that is not known; `masked`
    says that these run with a mask too.
    """

    JSON = "condition layout checked rows step tiles steps full partial executed hopper joins"

    condition: str
    layout: str
    checked: str
    span: str
    rows: tuple[int, ...]
    step: int | None
    tiles: int
    steps: int
    full: int | None
    masked: bool
    executed: int
    block: str = ""
    hopper: bool = False  # whether the forward pass takes the kernel written for that chip
    joins: str = ""  # the part whose programs take its steps

    @property
    def partial(self) -> int | None:
        """The steps with pairs that are not attended."""
        return None if self.full is None else self.steps - self.full

    @property
    def tile_text(self) -> str:
        """`1,024 of 64 queries, 64 keys at a time`."""
        if self.block:
            return f"counted as {format_box(self.rows)} by {self.step}: the library does not say"
        keys = "all their keys at once" if self.step is None else f"{self.step:,} keys at a time"
        queries = "queries" if prod(self.rows) > 1 else "query"
        chip = "by the warp-specialized kernel for Hopper" if self.hopper else ""
        joins = f'its steps are taken by the programs of "{self.joins}"' if self.joins else ""
        more = "".join(f"; {words}" for words in (chip, joins, self.span) if words)
        return f"{self.tiles:,} of {format_box(self.rows)} {queries}, {keys}{more}"

    @property
    def step_text(self) -> str:
        """`5,110: 3,072 full, 2,038 partial`."""
        if self.full is None:
            return f"{self.steps:,}, each with a mask"
        masks = "; each with a mask" if self.masked and self.full else ""
        return f"{self.steps:,}: {self.full:,} full, {self.partial:,} partial{masks}"


@dataclass(frozen=True)
class Explanation(Printed):
    """What attention would do: the pairs it needs and executes, its parts, kernels and time.

    Pairs are those of one head of one batch element; of all heads where the rule names `head`, and
    of the whole batch where an array differs along it: `grids` says how many masks are counted.
    """

    title: str
    subtitle: str
    rule: str
    at: dict[str, int]
    shapes: tuple[tuple[int, ...], ...]  # of q, k and v
    dtype: str
    device: str
    grids: int
    needed: int | None
    not_counted: str
    executed: int | None
    bound: str  # "at most" or "about", where executed is not exact
    dense: int
    as_written: str  # why the plan follows the rule's text rather than its set, if it does
    parts: tuple[ExplainedPart, ...]
    kernels: dict[str, str | None]  # why each cannot run it, None where it can
    kernel: str | None
    refused: str  # what attention would raise
    backward: str | None
    backward_text: str
    crossovers: tuple[KernelCrossover, ...]  # measured sizes that its kernels were chosen by
    tf32: str
    notes: tuple[str, ...]  # what padding, sequences, a softcap, sinks, dropout change
    forward_time: PredictedTime
    backward_time: PredictedTime
    _asked: MetaCall = field(repr=False, compare=False)
    _rule: Rule = field(repr=False, compare=False)

    @property
    def queries(self) -> int:
        """How many queries a head has."""
        return self.shapes[0][2]

    @property
    def useful(self) -> float | None:
        """The share of executed pairs that are needed."""
        return None if self.needed is None or not self.executed else self.needed / self.executed

    @cached_property
    def tiled(self) -> int | None:
        """The pairs of whole 64 × 64 tiles, as lt.cost counts executed ones; None for several masks."""
        return pairs_of_default_tiles(self._asked.call) if self.grids == 1 else None

    @property
    def why(self) -> str:
        """Why it is no faster than dense, or much of its work is wasted; nothing where it is fine."""
        return why_slow(self)

    @property
    def of(self) -> str:
        """What the pairs are those of: `of a head`."""
        if self.grids == 1:
            return "of a head"
        return (
            f"of {self.grids:,} heads" if self.grids != self.shapes[0][0] else f"of a batch of {self.grids:,}"
        )

    @property
    def tensors(self) -> str:
        """`q (1, 8, 4096, 64), float32 on cpu`."""
        q, k, v = (str(shape) for shape in self.shapes)
        keys = "" if q == k == v else f", k {k}, v {v}"
        return f"q {q}{keys}, {self.dtype} on {self.device}"

    @property
    def useful_text(self) -> str:
        """`79.8% of the executed pairs are needed`."""
        if self.needed is None or not self.executed:
            return ""
        least = {"at most": "at least ", "about": "about "}.get(self.bound, "")
        return (
            f"{least}{percent(self.needed, max(self.needed, self.executed))} of the executed pairs are needed"
        )

    @property
    def time_text(self) -> str:
        """`forward about 2.1 ms, backward about 6.3 ms, on an H200`."""
        found = {"forward": self.forward_time, "backward": self.backward_time}
        predicted = [
            f"{way} {t.bound} {seconds(t.seconds, 2)}" for way, t in found.items() if t.seconds is not None
        ]
        if not predicted:
            return "not predicted"
        left = [f"{way} not predicted" for way, t in found.items() if t.seconds is None]
        on = next(t.on for t in found.values() if t.seconds is not None)
        return f"{', '.join([*predicted, *left])}, on {on}"

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What is said of the kernels that run: the backward pass, crossovers, TF32 and time."""
        sides = [("crossover", str(crossover)) for crossover in self.crossovers]
        return [("backward", self.backward_text), *sides, ("TF32", self.tf32), ("time", self.time_text)]

    @cached_property
    def memory(self) -> CallMemory:
        """The bytes of its tensors, of the scores that are not held, and of the KV cache."""
        return memory_of(self._rule, self._asked)

    def report(self) -> Report:
        """Pairs, parts, kernels and time, as they are printed."""
        return explanation_report(self)

    def picture(self, *, size: int | None = None, title: str | None = None) -> Picture:
        """The rule with the tiles over it, each part in its own colour, at most `size` positions a side.

        A long line is drawn at a smaller size, with numbers and tiles scaled down alike; of an image, the
        keys that one tile reads.
        """
        from lattend.attend.explain.picture import plan_picture

        return plan_picture(self, self._rule, self._asked, size, title)

    @property
    def has_tile_map(self) -> bool:
        """Whether there is a map of the tiles: on a line, without arrays and padding."""
        call = self._asked.call
        return len(self._rule.axes) == 1 and not self._rule.data and not call.data and call.key_range is None

    def tile_map(self, queries: Span | None = None, keys: Span | None = None) -> TileMap:
        """How many pairs run, and how many of them are attended, in boxes of the grid of a line.

        `queries` and `keys` are the first position and the end of what is shown; all by default.
        """
        from lattend.attend.explain.tile_map import tile_map

        return tile_map(self, self._rule, self._asked, queries, keys)

    def json(self) -> dict[str, Any]:
        """All of it in plain numbers, texts, lists and dictionaries, as JSON holds them."""
        times = {"forward": self.forward_time, "backward": self.backward_time}
        return {
            "rule": self.rule,
            "title": self.title,
            "at": dict(self.at),
            "shapes": {name: list(shape) for name, shape in zip("qkv", self.shapes, strict=True)},
            "dtype": self.dtype,
            "device": self.device,
            "pairs": {
                "grids": self.grids,
                "needed": self.needed,
                "not_counted": self.not_counted,
                "executed": self.executed,
                "tiled": self.tiled,
                "bound": self.bound,
                "dense": self.dense,
            },
            "useful": self.useful,
            "why": self.why,
            "as_written": self.as_written,
            "parts": plain_data(self.parts),
            "kernels": dict(self.kernels),
            "kernel": self.kernel,
            "refused": self.refused,
            "backward": self.backward,
            "crossovers": [crossover.json() for crossover in self.crossovers],
            "tf32": self.tf32,
            "notes": list(self.notes),
            "time": {way: {"seconds": t.seconds, "bound": t.bound, "on": t.on} for way, t in times.items()},
        }

    def __repr__(self) -> str:
        return f"<Explanation {self.title}: {self.kernel or 'no kernel'}, {self.useful_text or self.of}>"

    def _repr_svg_(self) -> str | None:
        try:
            return self.picture().svg()
        except LattendError:
            return None


def explain(
    rule: RuleLike,
    like: Like = None,
    *unnamed: Never,
    kernel: str | None = None,
    deterministic: bool = True,
    dtype: str | torch.dtype | None = None,
    device: str | torch.device | None = None,
    head_dim: int | None = None,
    heads: int | None = None,
    kv_heads: int | None = None,
    batch: int | None = None,
    bias: Bias | Tensor | None = None,
    padding: Lengths | None = None,
    cu_seqlens: Lengths | tuple[Lengths, Lengths] | None = None,
    softcap: float | None = None,
    sinks: Tensor | bool = False,
    dropout: float = 0.0,
    **values: Any,
) -> Explanation:
    """What attention(q, k, v, rule, …) would do: which pairs, which tiles, which kernel, and why.

    `like` is q, or (q, k, v), as tensors (meta tensors too) or as shapes; without it sizes come from
    `values`, by default n = 4096, 8 heads of 64, float32 on a CPU; `kv_heads` are as many unless given.
    `dtype`, also "float8_e4m3fn", and `device` take the place of those of `like`, so that a call on a GPU
    can be explained where there is none. Nothing is computed, and no memory of the size of q is taken.

    `bias`, `padding`, `cu_seqlens`, `softcap`, `sinks` and `dropout` are those of attention; lengths may be
    lists, and sinks True. Pairs with padding are not needed, and `notes` says what each of them changes.

    >>> found = explain("k <= q and q - k <= t", n=65536, t=255, dtype="bfloat16", device="cuda")
    >>> found.kernel, found.needed  # 256*65536 - 255*256/2
    ('triton', 16744576)
    """
    if isinstance(rule, Tensor) or unnamed:
        raise NamingError(
            "explain takes the rule first, and the tensors after it: lt.explain(rule, like=q), or "
            "like=(q, k, v)"
        )
    options = KernelOptions(None, softcap, dropout, kernel, deterministic)
    shape = (head_dim, heads, kv_heads, batch)
    settings = Settings(options, dtype, device, *shape, bias, padding, cu_seqlens, sinks)
    rule = read_rule(rule, arrays_in(values))
    asked = meta_call(rule, like, settings, values)
    call, q, k, v = asked.call, asked.q, asked.k, asked.v
    own = {} if cu_seqlens is not None else {"about": rule.about, "source": rule.source}
    whole = replace(call.rule, **own, budget=rule.budget)
    found, many = plan(call.rule), masks_of(call, q)
    refused, taken, back = "", None, None
    try:
        taken = chosen(call, q, k, v)
        if not asked.note:  # 8 bits have no gradients
            back = chosen_backward(replace(call, trains=True), q, k, v, None)
    except LattendError as error:
        refused = str(error)
    needed, not_counted = _needed(whole, asked, many)
    done = executed_work(taken, call, q, v, needed)
    sizes = {size: whole.values[size] for size in [*whole.sizes, *whole.parameters] if size in whole.values}
    nothing = PredictedTime(None, "")
    return Explanation(
        title=f"{name(whole)} ({format_numbers(sizes)})" if whole.about else clipped(whole.text),
        subtitle=clipped(whole.text) if whole.about else format_numbers(sizes),
        rule=whole.text,
        at=sizes,
        shapes=tuple(tuple(x.shape) for x in (q, k, v)),
        dtype=dtype_name(q.dtype),
        device=str(q.device),
        grids=many.count,
        needed=needed,
        not_counted=not_counted,
        executed=done.executed,
        bound=done.bound,
        dense=prod(axis.outer_size * axis.inner_size for axis in found.axes) * many.count,
        as_written=found.form.as_written,
        parts=tuple(_part(work, done.parts) for work in done.parts),
        kernels=reasons(call, q, k, v),
        kernel=taken,
        refused=refused,
        backward=back,
        backward_text=_backward(taken, back, asked),
        crossovers=tuple(crossovers(call, q, k, v)),
        tf32=_tf32(taken, q),
        notes=(*format_notes(call, taken, k), *([asked.note] if asked.note else [])),
        forward_time=predicted_time(taken, "forward", call, q, v, done),
        backward_time=nothing
        if back is None
        else predicted_time(back, "backward", call, q, v, _same(taken, back, done)),
        _asked=asked,
        _rule=whole,
    )


def _same(taken: str | None, back: str, done: ExecutedWork) -> ExecutedWork:
    """The work of the forward pass, where the backward pass goes through the same tiles."""
    return done if back == taken else ExecutedWork((), None)


def _needed(rule: Rule, asked: MetaCall, many: Masks) -> tuple[int | None, str]:
    """The attended pairs of all masks, or why they are not counted."""
    try:
        return attended_pairs(asked.call, many.batch, rule), ""
    except LattendError as error:
        return None, str(error)


def _part(work: PartWork, others: Sequence[PartWork]) -> ExplainedPart:
    shape, host = work.cut.shape, work.cut.joins
    return ExplainedPart(
        condition=format_condition(work.part),
        layout=work.block or format_layout(work.part, work.cut.rows),
        checked=format_rest(work.part),
        span=format_span(work.part),
        rows=work.cut.rows,
        step=work.cut.step,
        tiles=work.tiles,
        steps=work.steps,
        full=work.full,
        masked=shape is not None and not shape.split,
        executed=work.executed,
        block=work.block,
        hopper=shape is not None and shape.hopper,
        joins="" if host is None else format_condition(others[host].part),
    )


def _backward(taken: str | None, back: str | None, asked: MetaCall) -> str:
    """The kernel of the backward pass, and why it is another one."""
    if back is None:
        return "none: 8 bits have no gradients" if asked.note else ""
    hopper = format_gradients(asked.call, asked.q, asked.v) if back == "triton" else ""
    if back in (taken, "sdpa"):
        anyhow = back == "sdpa" and asked.q.device.type != "cpu"
        said = f"{back}, nondeterministic (atomics)" if anyhow else f"{back}, the same on every run{hopper}"
        steps = chosen(replace(asked.call, trains=True), asked.q, asked.k, asked.v)
        return said if steps == taken else f"{said}; a training step has {steps} in its forward pass too"
    return f"{back}{hopper}; not sdpa: {why_not_backward(asked.call, asked.q, asked.k, None)}"


def _tf32(taken: str | None, q: Tensor) -> str:
    """Whether float32 products are rounded to TF32, and why."""
    if q.dtype != torch.float32:
        return f"not used: q is {dtype_name(q.dtype)}"
    if q.device.type != "cuda":
        return f"not used: it is a format of GPUs, and q is on {q.device.type}"
    if taken == "reference":
        return "not used: the reference computes in float64"
    if uses_tf32():
        return "used: torch.backends.cuda.matmul.allow_tf32 is True"
    return "not used: torch.backends.cuda.matmul.allow_tf32 is False; True is faster, and rounds factors"
