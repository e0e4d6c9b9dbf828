"""Agreement: what a call is, said by every rank and compared before anything travels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NoReturn

from lattend.errors import LattendError, RankError
from lattend.parallel.ranks import Ranks

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
