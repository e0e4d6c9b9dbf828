"""Ranks: those that share one sequence, how they talk, and how they agree before anything travels."""

# torch.distributed has few types
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import pickle
import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NoReturn, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.distributed_c10d import PrefixStore

from lattend.errors import LattendError, NamingError, RankError
from lattend.recent import Recent

SEQUENCE, HEADS = "sequence", "heads"  # the names of dimensions of a mesh
AXES = ("depth", "rows", "cols")  # and of those that cut an image or a volume into blocks
GRACE = 3.0  # seconds in which those that are there say so, once one is missing
MOMENT = 0.05  # seconds; sooner is "at once"
MOST_GROUPS, MOST_EXECUTIONS = 32, 64
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Group:
    """Ranks that exchange tensors: a process group, this rank's number among them, and how many there are.

    The reference is weak: torch ends the threads of a process group once nobody holds it, and a thread that
    is left when Python exits can abort the process.
    """

    reference: Callable[[], Any] | None  # to a process group; None where there is one rank
    rank: int
    size: int
    members: tuple[int, ...] | None = None  # their numbers in the process group, where it has others too

    @property
    def group(self) -> Any:
        """The process group, None where there is one rank; raises where it was destroyed."""
        return None if self.reference is None else alive(self.reference)

    def peer(self, rank: int) -> int:
        """What the process group calls one of these."""
        return rank if self.members is None else self.members[rank]

    @staticmethod
    def of(group: Any) -> Group:
        """The ranks of a process group."""
        return Group(weakref.ref(group), dist.get_rank(group), dist.get_world_size(group))


def alive(reference: Callable[[], Any]) -> Any:
    """What a weak reference refers to; raises where that was destroyed."""
    found = reference()
    if found is None:
        raise RankError(
            "the process group of these ranks was destroyed: after destroy_process_group() and "
            "init_process_group(), make meshes and caches again"
        )
    return found


ALONE = Group(None, 0, 1)


@dataclass(eq=False)
class Ranks:
    """All ranks that share one sequence: in lines along it, which share heads too where a mesh has both.

    Shards are in the order of `whole`. `places` has the place of each along heads and along the sequence.
    """

    whole: Group
    along: Group  # exchange keys
    across: Group  # exchange heads
    places: tuple[tuple[int, int], ...]
    names: tuple[int, ...]  # what the world calls them
    control: Callable[[], Any] | None  # refers to a backend on CPUs, for what must be agreed on
    timeout: timedelta
    axes: tuple[tuple[str, int], ...] = ()  # of an image, along which a mesh cuts it over so many ranks
    connected: set[str] = field(default_factory=set[str])  # kinds of devices between which messages went
    executions: Recent[Any, Any] = field(
        default_factory=lambda: Recent(MOST_EXECUTIONS)
    )  # the same on every rank

    @property
    def rank(self) -> int:
        return self.whole.rank

    @property
    def size(self) -> int:
        return self.whole.size

    def by_heads(self) -> Ranks:
        """The same ranks, all of them sharing heads, none keys."""
        places = tuple((i, 0) for i in range(self.size))
        return Ranks(self.whole, ALONE, self.whole, places, self.names, self.control, self.timeout)

    def gathered(self, record: Sequence[int]) -> list[list[int]]:
        """The numbers of every rank, in their order; fails where one is missing."""
        if self.size == 1:
            return [[*record]]
        mine = torch.tensor(record, dtype=torch.int64)
        found = [torch.empty_like(mine) for _ in range(self.size)]
        self._all_gather(found, mine)
        return [cast(list[int], x.tolist()) for x in found]

    def told(self, what: object) -> list[Any]:
        """What every rank says, in their order: anything that can be pickled."""
        if self.size == 1:
            return [what]
        mine = torch.frombuffer(bytearray(pickle.dumps(what)), dtype=torch.uint8)
        lengths = [length for (length,) in self.gathered([len(mine)])]
        padded = torch.zeros(max(lengths), dtype=torch.uint8)
        padded[: len(mine)] = mine
        found = [torch.empty_like(padded) for _ in lengths]
        self._all_gather(found, padded)
        return [pickle.loads(x[:length].numpy().tobytes()) for x, length in zip(found, lengths, strict=True)]

    def _all_gather(self, found: list[Tensor], mine: Tensor) -> None:
        assert self.control is not None
        control = alive(self.control)
        self.guarded("agreeing on a call", lambda: control.allgather([found], [mine]).wait())

    def guarded(self, doing: str, run: Callable[[], T]) -> T:
        """What `run` gives; where ranks fail to answer, an error that says who is missing."""
        began = time.monotonic()
        try:
            return run()
        except RuntimeError as error:  # all errors of torch.distributed are such
            raise self.missing(doing, time.monotonic() - began, error) from error

    def missing(self, doing: str, waited: float, error: Exception) -> RankError:
        """The error of messages that failed: who of the ranks still answers is asked through the store."""
        names, absent = self.names, self._absent()
        first = str(error).splitlines()[0]
        who = f"of ranks {', '.join(map(str, names))}"
        if absent is None:
            lost = (
                f"some rank {who} did not answer, and neither does the store that rank 0 of the world keeps"
            )
        elif absent:
            lost = f"no answer of rank {', '.join(str(names[i]) for i in absent)} {who}"
        else:
            lost = f"a message did not arrive {who}, which all answer now"
        limit = self.timeout.total_seconds()
        timeout = f"timeout of {limit:g} s, which init_process_group(timeout=…) sets"
        if limit - waited > MOMENT:  # a clock may be ahead
            after = f"after {waited:.1f} s" if waited >= MOMENT else "at once"
            how = f"The connection was lost {after}, before the {timeout}"
        else:
            how = f"Nothing came within the {timeout}"
        return RankError(
            f"lt.parallel, rank {names[self.rank]}, {doing}: {lost}. {how}. Look for the first error in that "
            f"rank's log, and start all ranks again. torch says: {first}"
        )

    def _absent(self) -> list[int] | None:
        """Which ranks do not say within a moment that they noticed; None where there is no store to ask."""
        try:
            store = _store()
            name = f"lattend/missing/{'-'.join(map(str, self.names))}"
            store.set(f"{name}/{self.rank}", "1")
            end = time.monotonic() + GRACE
            left = list(range(self.size))
            while left and time.monotonic() < end:
                left = [i for i in left if not store.check([f"{name}/{i}"])]
                time.sleep(0.05)
            return left
        except Exception:  # the store is gone with rank 0
            return None


_KNOWN: Recent[Any, Ranks] = Recent(MOST_GROUPS)


def ranks_of(mesh: object) -> Ranks:
    """The ranks of a mesh, of a process group, or of the world where that is None.

    They are remembered, and do not keep their process groups from ending.
    """
    if not (dist.is_available() and dist.is_initialized()):
        raise LattendError(
            "lt.parallel needs torch.distributed with its process group: start the program with torchrun, "
            "and call torch.distributed.init_process_group() first"
        )
    if isinstance(mesh, DeviceMesh):  # one that is equal may follow in another world
        key = weakref.ref(_world()), mesh.mesh_dim_names, str(mesh.mesh.tolist())
        return _KNOWN.find(key, lambda: _of_mesh(mesh))
    group = _world() if mesh is None else mesh
    if not isinstance(group, dist.ProcessGroup):
        raise NamingError(
            "mesh is a DeviceMesh, a process group, or None for all ranks of the world; "
            f"got {type(group).__name__}"
        )
    return _KNOWN.find(weakref.ref(group), lambda: _of_group(group))


def _of_group(group: Any) -> Ranks:
    whole, names, timeout = Group.of(group), tuple(dist.get_process_group_ranks(group)), timeout_of(group)
    places = tuple((0, i) for i in range(whole.size))
    return Ranks(whole, whole, ALONE, places, names, _control(group, names, timeout), timeout)


def _of_mesh(mesh: DeviceMesh) -> Ranks:
    names = mesh.mesh_dim_names or ()
    if cast(Tensor, mesh.mesh).flatten().diff().le(0).any():  # a process group sorts its ranks
        raise NamingError(f"mesh has its ranks out of order, {mesh.mesh.tolist()}: give them ascending")
    blocks = tuple(name for name in names if name in AXES)
    if blocks:
        return _of_blocks(mesh, blocks)
    if mesh.ndim == 1:
        return _of_group(mesh.get_group())
    if SEQUENCE not in names:
        raise NamingError(
            f"mesh has {mesh.ndim} dimensions, {', '.join(names) or 'without names'}: name the one along "
            f'which positions are cut "{SEQUENCE}", and one that shares heads "{HEADS}"; of blocks of an '
            f"image {', '.join(AXES[1:])}; or give mesh[name]"
        )
    if HEADS not in names:
        return _of_group(mesh.get_group(SEQUENCE))
    own = tuple(name for name in names if name in (SEQUENCE, HEADS))
    table: Tensor = cast(Any, mesh[own]).mesh
    order = tuple(cast(list[int], table.flatten().tolist()))
    flip = own == (SEQUENCE, HEADS)
    places = [divmod(i, table.shape[1]) for i in range(len(order))]
    along, across = (mesh.get_group(name) for name in (SEQUENCE, HEADS))
    world, timeout = _world(), timeout_of(along)
    whole = Group(weakref.ref(world), order.index(dist.get_rank()), len(order), order)
    placed = tuple((b, a) if flip else (a, b) for a, b in places)
    control = _control(world, order, timeout)
    return Ranks(whole, Group.of(along), Group.of(across), placed, order, control, timeout)


def _of_blocks(mesh: DeviceMesh, names: tuple[str, ...]) -> Ranks:
    """The ranks of the dimensions that cut an image, in the order of their blocks."""
    others = [name for name in mesh.mesh_dim_names or () if name in (SEQUENCE, HEADS)]
    if others:
        raise NamingError(f"mesh cuts {' and '.join(names)} of an image, and {others[0]} too: leave that out")
    if [*names] != sorted(names, key=AXES.index):
        raise NamingError(
            f"mesh cuts {' and '.join(names)}: its dimensions go in the order {', '.join(AXES)}"
        )
    own: Any = mesh if mesh.ndim == len(names) else mesh[names]
    group = own.get_group() if own.ndim == 1 else own._flatten().get_group()
    return replace(_of_group(group), axes=tuple(zip(names, own.mesh.shape, strict=True)))


_MADE: Counter[tuple[int, ...]] = Counter()


def _control(group: Any, names: tuple[int, ...], timeout: timedelta) -> Callable[[], Any] | None:
    """A reference to a backend on CPUs for these ranks, which ends with the group or when Python exits.

    Not a group of torch's: to name one, all ranks of the world must have made equally many before.
    """
    if len(names) == 1:
        return None
    _MADE[names] += 1
    store = PrefixStore(f"lattend/{'-'.join(map(str, names))}/{_MADE[names]}", _store())
    made = dist.ProcessGroupGloo(store, names.index(dist.get_rank()), len(names), timeout)
    weakref.finalize(group, _let_go, made)
    return weakref.ref(made)


def _let_go(_: Any) -> None:
    """Drops the last reference to a backend, which ends its threads."""


def _world() -> Any:
    return cast(Any, dist.group.WORLD)


def _store() -> Any:
    return _world().get_group_store()


def timeout_of(group: Any) -> timedelta:
    """How long a process group waits."""
    for kind in ("cuda", "cpu"):
        try:
            return group._get_backend(torch.device(kind)).options._timeout
        except RuntimeError:  # it has no such backend
            continue
    return dist.default_pg_timeout


# Agreement: what a call is, compared by all ranks before anything travels

WORDS = 4  # of 64 bits, of a digest
MOST_AXES = 3  # of an image or a volume, at most
CallDigest = Mapping[str, str | int | float | bool | tuple[Any, ...] | None]


@dataclass(frozen=True)
class Agreed:
    """What the ranks told each other: the digest of the kind of call, and each one's lengths and seed."""

    digest: tuple[int, ...]
    queries: tuple[int, ...]
    keys: tuple[int, ...]
    seeds: tuple[int, ...]
    masked: bool  # whether some rank has a mask of its keys
    shapes: tuple[tuple[int, ...], ...]  # of each rank's image


def agree(
    ranks: Ranks, said: CallDigest, now: CallDigest, queries: int, keys: int, seed: int, masked: bool,
    shape: tuple[int, ...] = (),
) -> Agreed:  # fmt: skip
    """What all ranks have in common; raises on every rank where they differ, or one has refused the call.

    What is said `now` must be the same too, and is no part of the kind.
    """
    digest = kind = _digest(tuple(said.items()))
    if now:
        digest = _digest((*said.items(), *now.items()))
    image = [*shape, *[0] * (MOST_AXES - len(shape))]
    found = ranks.gathered([*digest, 0, queries, keys, seed, masked, *image])
    if any(row[:WORDS] != [*digest] or row[WORDS] for row in found):
        _differ(ranks, ranks.told({**said, **now}))
    lengths, of_keys, seeds, masks = (tuple(row[WORDS + 1 + i] for row in found) for i in range(4))
    shapes = tuple(tuple(row[-MOST_AXES:][: len(shape)]) for row in found)
    return Agreed(kind, lengths, of_keys, seeds, any(masks), shapes)


def refuse(ranks: Ranks, error: LattendError) -> NoReturn:
    """Raises an error of this rank's arguments, once the others know that there is one."""
    ranks.gathered([0] * WORDS + [1, 0, 0, 0, 0] + [0] * MOST_AXES)
    ranks.told(f"{type(error).__name__}: {error}")
    raise error


def all_told(ranks: Ranks, find: Any) -> list[Any]:
    """What `find` gives on every rank; raises on every rank where it raises on one."""
    try:
        mine, error = find(), None
    except LattendError as problem:
        mine, error = None, problem
    told = ranks.told((mine, None if error is None else f"{type(error).__name__}: {error}"))
    if error is not None:
        raise error
    for rank, (_, problem) in enumerate(told):
        if problem is not None:
            raise RankError(f"rank {rank} of {ranks.size} cannot run this call: {problem}")
    return [found for found, _ in told]


def _differ(ranks: Ranks, told: list[Any]) -> NoReturn:
    refused = [(rank, one) for rank, one in enumerate(told) if isinstance(one, str)]
    if refused:
        rank, problem = refused[0]
        raise RankError(f"rank {rank} of {ranks.size} cannot run this call: {problem}")
    lines: list[str] = []
    for name in dict.fromkeys(name for one in told for name in one):
        values: dict[str, list[int]] = {}
        for rank, one in enumerate(told):
            values.setdefault(repr(one.get(name)), []).append(rank)
        if len(values) > 1:
            lines.append(
                f"{name} is " + " and ".join(f"{value} on {_named(who)}" for value, who in values.items())
            )
    raise RankError(
        f"the {ranks.size} ranks do not make the same call: {'; '.join(lines)}. Every rank must give "
        "the same rule, options and shapes but for its number of positions"
    )


def _named(who: list[int]) -> str:
    return f"rank {who[0]}" if len(who) == 1 else f"ranks {', '.join(map(str, who))}"


@lru_cache(maxsize=1024)
def _digest(said: tuple[tuple[str, Any], ...]) -> tuple[int, ...]:
    found = blake2b(repr(said).encode(), digest_size=8 * WORDS).digest()
    return tuple(int.from_bytes(found[i : i + 8], "little", signed=True) for i in range(0, len(found), 8))
