"""Runs kernels in Gluon without a GPU: the same source, in Python, on torch tensors.

Gluon has no interpreter. Here each group of warps is a thread, of which one runs at a time. What is
asynchronous on the chip is asynchronous here: a copy by TMA and a product of matrices lie in a queue, and
are carried out at some time between their beginning and what waits for them, when they read and write shared
memory as it is then. Who goes on next, and what is carried out when, is drawn from a seed. A kernel that
frees a buffer too early, or reads it before it is filled, gives other numbers under some seed; one that waits
for what never comes is told so. Shared memory is full of NaN at first, or of -10⁹. Reading or writing outside
a tensor raises, and so does a copy of numbers that does not begin at a multiple of 16 bytes, or one of what
was written without a fence. Nothing is said of layouts, registers and speed: for those the machine code is
looked at.
"""

# Values are torch tensors in place of Triton's
# pyright: basic, reportMissingTypeStubs=false

from __future__ import annotations

import random
import struct
import threading
import types
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import triton.language as tl
from torch import Tensor
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.hopper import warpgroup_mma_init
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

JITTED = (JITFunction, InterpretedFunction)
DTYPES = ("int8", "int32", "int64", "float32", "bfloat16", "float16")
KINDS = ("loads", "products", "copies")  # what is asynchronous
MOST_IDLE = 10_000  # draws without anything to do: it is a deadlock


class Emulated(Exception):
    """What a GPU would answer with an error, or never."""


def launch(
    kernel: Any, programs: int, arguments: Sequence[Any], constants: dict[str, Any], seed: int
) -> None:
    """Runs all programs of a kernel, one after another."""
    names = kernel.arg_names
    given = dict(zip(names, map(_given, arguments), strict=False))
    for program in range(programs):
        chip = Chip(random.Random(f"{seed} {program}"), program, programs)
        emulator = Emulator(chip)
        known = {name: emulator.value(value) for name, value in constants.items() if name in names}
        emulator.function(kernel)(**given, **known)
        chip.finish()


def _given(x: Any) -> Any:
    if isinstance(x, Tensor):
        return Pointer(x)
    if isinstance(x, tuple):
        return tuple(map(_given, x))
    if isinstance(x, int):
        return torch.tensor(x)
    return Block(x) if hasattr(x, "block_shape") else x


# Memory


class Pointer:
    """Places in a tensor's memory."""

    def __init__(self, base: Tensor, offset: Any = 0) -> None:
        self.base, self.offset = base, offset
        self.dtype = types.SimpleNamespace(element_ty=base.dtype)

    def __add__(self, more: Any) -> Pointer:
        return Pointer(self.base, self.offset + more)

    def to(self, kind: Any) -> Pointer:
        """An address is a number, of which the emulator keeps what it means."""
        return self

    def __sub__(self, less: Any) -> Pointer:
        return Pointer(self.base, self.offset - less)

    def places(self, mask: Any) -> tuple[Tensor, Tensor, Tensor]:
        """The whole memory, the places in it, and which of them are meant."""
        whole = torch.as_strided(
            self.base, (self.base.untyped_storage().nbytes() // self.base.itemsize,), (1,), 0
        )
        offset = torch.as_tensor(self.offset) + self.base.storage_offset()
        meant = torch.as_tensor(True if mask is None else mask)
        offset, meant = torch.broadcast_tensors(offset, meant)
        if bool((meant & ((offset < 0) | (offset >= len(whole)))).any()):
            raise Emulated("outside a tensor")
        return whole, offset, meant


def load(pointer: Pointer, mask: Any = None, other: Any = 0, cache_modifier: str = "") -> Tensor:
    whole, offset, meant = pointer.places(mask)
    found = whole[torch.where(meant, offset, 0)]
    return torch.where(meant, found, torch.as_tensor(other, dtype=found.dtype))


def store(pointer: Pointer, value: Tensor, mask: Any = None) -> None:
    whole, offset, meant = pointer.places(mask)
    whole[offset[meant]] = _as_computed(torch.as_tensor(value).to(whole.dtype)).expand(offset.shape)[meant]


def _as_computed(x: Tensor) -> Tensor:
    """The same numbers, and the NaN that a GPU computes: all its bits are set but the sign."""
    if not x.is_floating_point():
        return x
    whole = {2: torch.int16, 4: torch.int32}[x.itemsize]
    return torch.where(x.isnan(), torch.iinfo(whole).max, x.contiguous().view(whole)).view(x.dtype)


class Block:
    """A tensor as TMA copies it, a box at once."""

    def __init__(self, described: Any) -> None:
        self.base, self.box = described.base, described.block_shape
        self.shape, self.strides = described.shape, described.strides
        self.dtype, self.layout, self.block_shape = described.base.dtype, None, list(self.box)
        size = self.base.itemsize
        for value in self.box:
            size *= value
        self.block_type = types.SimpleNamespace(nbytes=size)

    def places(self, begin: Sequence[Any]) -> tuple[Tensor, Tensor]:
        """The places of a box in the tensor, and which of them are inside."""
        offset, inside = torch.zeros(self.box, dtype=torch.int64), torch.ones(self.box, dtype=torch.bool)
        for axis, (first, size, whole, stride) in enumerate(
            zip(begin, self.box, self.shape, self.strides, strict=True)
        ):
            at = (int(first) + torch.arange(size)).view(
                *[-1 if axis == x else 1 for x in range(len(self.box))]
            )
            offset, inside = offset + at * stride, inside & (at >= 0) & (at < whole)
        if int(begin[-1]) * self.base.itemsize % 16:
            raise Emulated("TMA copies rows from multiples of 16 bytes on")
        return offset, inside

    def read(self, begin: Sequence[Any]) -> Tensor:
        offset, inside = self.places(begin)
        return load(Pointer(self.base, torch.where(inside, offset, 0)), inside, 0.0)

    def write(self, begin: Sequence[Any], value: Tensor) -> None:
        offset, inside = self.places(begin)
        store(Pointer(self.base, torch.where(inside, offset, 0)), value, inside)


class Shared:
    """Shared memory, or a view of it."""

    def __init__(self, data: Tensor, written: list[bool] | None = None) -> None:
        self.data, self.dtype, self.shape = data, data.dtype, data.shape
        self.written = [False] if written is None else written  # by a thread, and no fence since

    def index(self, place: Any) -> Shared:
        if not 0 <= int(place) < len(self.data):
            raise Emulated(f"part {int(place)} of shared memory that has {len(self.data)}")
        return Shared(self.data[int(place)], self.written)

    def reshape(self, shape: Sequence[int]) -> Shared:
        return Shared(self.data.view(*shape), self.written)

    def permute(self, order: Sequence[int]) -> Shared:
        return Shared(self.data.permute(*order), self.written)

    def load(self, layout: Any) -> Tensor:
        return self.data.clone()

    def store(self, value: Tensor) -> None:
        self.data.copy_(value)
        self.written[0] = True


@dataclass
class Barrier:
    """Passed when so many have arrived, and as many bytes as were expected."""

    count: int
    phase: int = 0
    missing: int = 0
    bytes: int = 0

    def __post_init__(self) -> None:
        self.missing = self.count

    def arrive(self, count: int = 0, size: int = 0) -> None:
        self.missing, self.bytes = self.missing - count, self.bytes + size
        if self.missing < 0:
            raise Emulated("more arrive at a barrier than it waits for")
        if self.missing == self.bytes == 0:
            self.phase, self.missing = self.phase ^ 1, self.count


class Barriers:
    """Barriers in shared memory."""

    def __init__(self, count: int) -> None:
        self.all: list[Barrier | None] = [None] * count
        self.shape = (count, 1)

    def index(self, place: Any) -> tuple[Barriers, int]:
        return self, int(place)


def barrier(at: tuple[Barriers, int]) -> Barrier:
    found = at[0].all[at[1]]
    if found is None:
        raise Emulated("a barrier that was not made")
    return found


# Time


@dataclass
class Begun:
    """A product of matrices, which is carried out at some time, and then has a result."""

    a: Any
    b: Shared
    total: Any
    use_acc: bool
    result: Tensor | None = None

    def carry_out(self) -> None:
        a = self.a.data if isinstance(self.a, Shared) else self.a
        total = self.total.done() if isinstance(self.total, Begun) else self.total
        found = a.float() @ self.b.data.float()
        self.result = found + total if self.use_acc else found

    def done(self) -> Tensor:
        if self.result is None:
            raise Emulated("a product is read before it was waited for")
        return self.result


@dataclass
class Group:
    """A group of warps: a thread, its products and its copies to memory, each in their order."""

    name: str
    products: deque[Begun] = field(default_factory=deque)
    copies: deque[Callable[[], None]] = field(default_factory=deque)
    ended: bool = False


class Chip:
    """A multiprocessor: one thread runs at a time, and what it began is carried out when it is drawn."""

    def __init__(self, draw: random.Random, program: int, programs: int) -> None:
        self.draw, self.program, self.programs = draw, program, programs
        self.turn = threading.Condition()
        self.groups: list[Group] = []
        self.running: Group | None = None
        self.loads: list[Callable[[], None]] = []
        self.shared: list[Shared] = []
        self.failed: BaseException | None = None
        self.own = threading.local()
        # of some schedules copies are slow and products fast, of others it is the other way round
        self.eagerness = {kind: draw.choice((0.01, 0.4, 0.95)) for kind in KINDS}
        self.restlessness = draw.choice((0.05, 0.4, 0.8))

    def group(self) -> Group:
        if not hasattr(self.own, "group"):  # all warps are one group
            self.own.group = Group("all")
            self.groups.append(self.own.group)
        return self.own.group

    def carry_out(self, kind: str) -> bool:
        """Carries out one of the things that were begun, if there is any of its kind."""
        if kind == "loads":  # in any order
            if self.loads:
                self.loads.pop(self.draw.randrange(len(self.loads)))()
                return True
            return False
        queues = [queue for group in self.groups if (queue := getattr(group, kind))]
        if queues:
            one = self.draw.choice(queues).popleft()
            one.carry_out() if kind == "products" else one()
        return bool(queues)

    def pause(self) -> None:
        """Some of what was begun may be carried out, and another thread may go on."""
        for kind, eagerness in self.eagerness.items():
            while self.draw.random() < eagerness and self.carry_out(kind):
                pass
        if self.draw.random() < self.restlessness:
            self.hand_on()

    def hand_on(self) -> None:
        me = self.group()
        with self.turn:
            self.running = self.draw.choice([group for group in self.groups if not group.ended])
            self.turn.notify_all()
            self.turn.wait_for(lambda: self.running is me or self.failed is not None)
        if self.failed is not None:
            raise Emulated("another group failed")

    def until(self, holds: Callable[[], bool]) -> None:
        """Others go on until it holds."""
        for _ in range(MOST_IDLE):
            if holds():
                return
            self.pause()
            if self.draw.random() < 0.1:  # at last also what is slow
                self.carry_out(self.draw.choice(KINDS))
            self.hand_on()
        raise Emulated("a deadlock: a barrier that nobody passes")

    def run(self, works: Sequence[Callable[[], None]]) -> None:
        """Runs the trades of all groups to their end."""
        self.groups = [Group(str(place)) for place in range(len(works))]
        threads = [
            threading.Thread(target=self._run, args=one, daemon=True)
            for one in zip(self.groups, works, strict=True)
        ]
        self.running = self.draw.choice(self.groups)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failed is not None:
            raise self.failed

    @torch.no_grad()  # which is said for each thread
    def _run(self, group: Group, work: Callable[[], None]) -> None:
        self.own.group = group
        try:
            with self.turn:
                self.turn.wait_for(lambda: self.running is group or self.failed is not None)
            if self.failed is None:
                work()
        except BaseException as error:
            self.failed = self.failed or error
        with self.turn:
            group.ended = True
            left = [other for other in self.groups if not other.ended]
            self.running = self.draw.choice(left) if left else None
            self.turn.notify_all()

    def finish(self) -> None:
        while any(map(self.carry_out, KINDS)):
            pass


# The language


class Emulator:
    """Functions of Triton and Gluon as Python functions: their language's names stand for those above."""

    def __init__(self, chip: Chip) -> None:
        self.chip, self.known = chip, dict[int, Any]()
        self.language = types.SimpleNamespace(
            int1=torch.bool, float8e4nv=torch.float8_e4m3fn,
            **{name: getattr(torch, name) for name in DTYPES},
            constexpr=gl.constexpr, static_range=range, load=load, store=store,
            expand_dims=torch.unsqueeze, thread_barrier=chip.pause,
            program_id=lambda axis: torch.tensor(chip.program),
            num_programs=lambda axis: torch.tensor(chip.programs),
            where=lambda c, a, b: torch.where(torch.as_tensor(c), *_alike(a, b)),
            maximum=lambda a, b: torch.maximum(*_alike(a, b)),
            minimum=lambda a, b: torch.minimum(*_alike(a, b)),
            cdiv=lambda a, b: (a + b - 1) // b,
            full=lambda shape, value, dtype, layout: torch.full(shape, float(value), dtype=dtype),
            arange=lambda first, end, layout=None: torch.arange(first, end, dtype=torch.int32),
            abs=torch.abs, exp2=torch.exp2, log2=torch.log2, max=torch.amax, min=torch.amin, sum=torch.sum,
            split=lambda x: x.unbind(-1), join=lambda a, b: torch.stack((a, b), -1),
            cast=lambda x, dtype, bitcast: x.view(dtype),
            convert_layout=lambda x, layout, assert_trivial=False: x, inline_asm_elementwise=_assembly,
            allocate_shared_memory=self.allocate, warp_specialize=self.specialize,
            NVMMASharedLayout=types.SimpleNamespace(get_default_for=lambda *given: None),
            **dict.fromkeys(
                (
                    "SliceLayout", "NVMMADistributedLayout", "DotOperandLayout", "BlockedLayout",
                    "SwizzledSharedLayout",
                ),
                lambda *given: None,
            ),
        )  # fmt: skip
        self.mbarrier = types.SimpleNamespace(
            MBarrierLayout=lambda: "barriers", init=self.init, wait=self.wait, expect=self.expect,
            arrive=self.arrive,
        )  # fmt: skip
        self.tma = types.SimpleNamespace(
            async_copy_global_to_shared=self.load, async_copy_shared_to_global=self.store,
            store_wait=self.store_wait,
        )  # fmt: skip
        self.stands = {
            id(gl): self.language, id(tl): self.language, id(hopper.mbarrier): self.mbarrier,
            id(hopper.tma): self.tma, id(hopper.fence_async_shared): self.fence,
            id(warpgroup_mma_init): lambda x: x,
            id(hopper.warpgroup_mma): self.product, id(hopper.warpgroup_mma_wait): self.product_wait,
        }  # fmt: skip

    def function(self, jitted: Any) -> Callable[..., Any]:
        """The Python function of a jitted one, in a space of its own."""
        if id(jitted) not in self.known:
            plain = jitted.fn
            if plain.__name__ == "looked_up":  # it asks Triton's types
                self.known[id(jitted)] = _looked_up
                return self.known[id(jitted)]
            space: dict[str, Any] = {}
            found = types.FunctionType(
                plain.__code__, space, plain.__name__, plain.__defaults__, plain.__closure__
            )
            self.known[id(jitted)] = found
            names = plain.__code__.co_names
            space |= {
                name: self.value(plain.__globals__[name]) for name in names if name in plain.__globals__
            }
            space["__builtins__"] = plain.__globals__["__builtins__"]
        return self.known[id(jitted)]

    def value(self, x: Any) -> Any:
        if isinstance(x, JITTED):
            return self.function(x)
        return x.value if isinstance(x, gl.constexpr) else self.stands.get(id(x), x)

    def allocate(self, dtype: Any, shape: Sequence[int], layout: Any) -> Any:
        if layout == "barriers":
            return Barriers(shape[0])
        found = Shared(torch.full(shape, torch.nan if dtype.is_floating_point else -(10**9), dtype=dtype))
        self.chip.shared.append(found)
        return found

    def specialize(self, trades: Sequence[tuple[Any, Any]], warps: Any, registers: Any) -> None:
        self.chip.run([partial(trade, *given) for trade, given in trades])

    def init(self, at: tuple[Barriers, int], count: int) -> None:
        at[0].all[at[1]] = Barrier(count)

    def wait(self, at: tuple[Barriers, int], phase: Any, pred: Any = True) -> None:
        self.chip.pause()
        if bool(pred):
            self.chip.until(lambda: barrier(at).phase != int(phase))

    def expect(self, at: tuple[Barriers, int], size: int) -> None:
        barrier(at).arrive(1, size)
        self.chip.pause()

    def arrive(self, at: tuple[Barriers, int], count: int, pred: Any = True) -> None:
        self.chip.pause()
        if bool(pred):
            barrier(at).arrive(count)
        self.chip.pause()

    def load(self, block: Block, begin: Sequence[Any], at: tuple[Barriers, int], to: Shared) -> None:
        def copy() -> None:
            to.data.copy_(block.read(begin))
            barrier(at).arrive(0, -block.block_type.nbytes)

        self.chip.loads.append(copy)
        self.chip.pause()

    def store(self, block: Block, begin: Sequence[Any], source: Shared) -> None:
        if source.written[0]:
            raise Emulated("a copy of what was written without a fence")
        self.chip.group().copies.append(lambda: block.write(begin, source.data))
        self.chip.pause()

    def store_wait(self, pending: int) -> None:
        copies = self.chip.group().copies
        while len(copies) > pending:
            copies.popleft()()

    def fence(self) -> None:
        for one in self.chip.shared:
            one.written[0] = False

    def product(
        self, a: Any, b: Shared, total: Any, *, use_acc: bool = True, is_async: bool = False
    ) -> Begun:
        if b.written[0] or (isinstance(a, Shared) and a.written[0]):
            raise Emulated("a product of what was written without a fence")
        begun = Begun(a, b, total, use_acc)
        self.chip.group().products.append(begun)
        self.chip.pause()
        return begun

    def product_wait(self, outstanding: int, deps: Sequence[Any]) -> Any:
        self.chip.pause()
        products = self.chip.group().products
        while len(products) > outstanding:
            products.popleft().carry_out()
        found = tuple(x.done() if isinstance(x, Begun) else x for x in deps)
        return found[0] if len(found) == 1 else found


def _looked_up(entry: Pointer) -> Tensor:
    """An entry of an array in 32 bits, if it has no more."""
    found = load(entry)
    return (
        found.to(torch.int32) if found.dtype in (torch.bool, torch.uint8, torch.int8, torch.int16) else found
    )


def _alike(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Both as tensors of one dtype, as plain numbers take that of a tensor."""
    if not isinstance(a, Tensor):
        return torch.as_tensor(a, dtype=b.dtype if isinstance(b, Tensor) else None), torch.as_tensor(b)
    if not isinstance(b, Tensor):
        return a, torch.as_tensor(b, dtype=a.dtype)
    kind = torch.promote_types(a.dtype, b.dtype)
    return a.to(kind), b.to(kind)


def _assembly(text: str, constraints: str, given: Sequence[Any], *how: Any) -> Any:
    """What the kernels have in assembly."""
    if "e4m3x2" in text:  # four numbers of 8 bits in a word, the first the lowest
        most = torch.finfo(torch.float8_e4m3fn).max
        rounded = [x.clamp(-most, most).to(torch.float8_e4m3fn) for x in given]
        return torch.stack(rounded, -1).view(torch.int32).squeeze(-1)
    if "shfl" in text:  # rows one lower, and another before the first
        x, above = given
        return torch.cat((above[:, :1], x[:, :-1]), 1)
    if "and.b32 all" in text:  # an order of instructions
        return torch.zeros(())
    if "ld.relaxed" in text:  # numbers that another program has written
        *pointers, wanted, _, _ = given
        return tuple(Received(load(pointer, wanted != 0)) for pointer in pointers)
    if "rcp" in text:
        return 1 / given[0]
    if "shl" in text:  # bits from the first to before the end, of 32
        first, end = (x.long().clamp(0, 32) for x in given)
        return (((1 << end) - 1) & ~((1 << first) - 1)) & 0xFFFFFFFF
    x, bits, bit = given  # a number where its bit is set, else a constant
    (other,) = struct.unpack(">f", bytes.fromhex(text.partition("0f")[2][:8]))
    return torch.where((bits & (bit.long() & 0xFFFFFFFF)) != 0, x, other)


class Received:
    """Numbers that another program has written, as their bits."""

    def __init__(self, found: Tensor) -> None:
        whole = {2: torch.int16, 4: torch.int32}[found.itemsize]
        if bool((found.view(whole) == -1).any()):
            raise Emulated("a program waits for one that has not come")
        self.found = found

    def to(self, kind: Any, bitcast: bool) -> Tensor:
        return self.found
