"""The axes of a rule: which names stand for positions and which for sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lattend.errors import NamingError


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: the query's and the key's position on it, and how many of each there are."""

    query: str
    key: str
    queries: str
    keys: str


LINE = (Axis("q", "k", "n", "n"),)
CROSS = (Axis("q", "k", "n", "m"),)  # keys of their own number, as from an encoder or a cache
IMAGE = (Axis("qy", "ky", "rows", "rows"), Axis("qx", "kx", "cols", "cols"))
VOLUME = (Axis("qz", "kz", "depth", "depth"), *IMAGE)

HEAD, HEADS = "head", "heads"
SIZES = ("n", "m", "depth", "rows", "cols", HEADS)  # in the order formulas are written
POSITIONS = frozenset({name for axis in (*LINE, *VOLUME) for name in (axis.query, axis.key)} | {HEAD})
RESERVED = POSITIONS | frozenset(SIZES)  # names that are never parameters


def axes_of(names: list[str], cross: bool = False) -> tuple[Axis, ...]:
    """The axes a rule with these names lives on: a line, an image or a volume.

    `m` among the names, or `cross`, gives the keys a number of their own.
    """
    line = [name for name in names if name in ("q", "k", "n", "m")]
    volume = [name for name in names if name in ("qz", "kz", "depth")]
    image = [name for name in names if name in ("qy", "ky", "qx", "kx", "rows", "cols")]
    if line and (image or volume):
        raise NamingError(
            f"a rule lives on a line ({line[0]}) or on an image ({(image + volume)[0]}), not on both: "
            "use q, k, n, m or qy, qx, ky, kx, rows, cols"
        )
    if image or volume:
        if cross:
            raise NamingError("cross=True needs a rule on a line: an image has one size for queries and keys")
        return VOLUME if volume else IMAGE
    return CROSS if cross or "m" in names else LINE


def untied(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """The same line with keys of their own number `m`."""
    return tuple(replace(axis, keys="m") if axis.queries == "n" else axis for axis in axes)


def size_names(axes: tuple[Axis, ...]) -> list[str]:
    """The sizes of these axes, each once, in order."""
    return list(dict.fromkeys(size for axis in axes for size in (axis.queries, axis.keys)))
