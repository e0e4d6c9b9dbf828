"""BigBird: in blocks of w positions, its own and t blocks to each side, g global blocks, random blocks.

Inside, a query has (2t + 1)*w keys of the window: t counts the blocks of one side, the paper's window
those of both with the middle. The first g blocks attend to all and are attended by all: g*w keys more.
`random` further blocks are drawn for each block of queries from those it does not attend to yet; they are
data, so they need n and numbers for w, t, g.

    #######        w = 1, t = 1, g = 1, random = 1, seed = 0
    ###...#
    ####..#
    #.####.
    ##.###.
    #.#.###
    #.#..##

Reference: Zaheer et al. 2020, Big Bird: Transformers for Longer Sequences.
"""

from __future__ import annotations

import random as _random
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError
from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule

MAX_BLOCKS = 4096

_TEXT = "abs(q // w - k // w) <= t or q // w < g or k // w < g"
_WHERE = "t >= 0 and g >= 0"
ABOUT = RuleInfo(
    name="bigbird",
    meaning="in blocks of w: its own and t blocks to each side, and g global blocks",
    keys="n when q // w < g; min(n, (q // w + t + 1)*w) - max(0, q // w - t)*w "
    "+ min(g, max(0, q // w - t))*w otherwise",
    reference="Zaheer et al. 2020, Big Bird: Transformers for Longer Sequences",
    elsewhere=(
        "Hugging Face: block_size = w, t = 1, num_random_blocks = random; its last block is global too",
    ),
)
WITH_RANDOM = replace(
    ABOUT,
    meaning="in blocks of w: its own and t blocks to each side, g global blocks, and random blocks as data",
    keys="those of the window and the global blocks, and those of the random blocks of its block",
)


def bigbird(
    w: int | None = None,
    t: int | None = None,
    g: int | None = None,
    random: int = 0,
    seed: int = 0,
    n: int | None = None,
) -> Rule:
    """Window, global and random blocks: `abs(q // w - k // w) <= t or q // w < g or k // w < g`.

    >>> bigbird(w=1, t=0, g=1).mask(n=3).sum()  # 3 + 2 + 2
    np.int64(7)
    """
    for name, value in (("random", random), ("seed", seed)):
        if not isinstance(value, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError(f"bigbird: {name} must be an integer, got {value!r}")
    if random < 0:
        raise DomainError(f"bigbird(random={random}): the number of random blocks is at least 0")
    plain = entry(_TEXT, ABOUT, where=_WHERE, w=w, t=t, g=g, n=n)
    if random == 0:
        return plain
    if plain.free:
        missing = ", ".join(f"{name}=…" for name in plain.free)
        raise DomainError(f"bigbird(random={random}) draws its blocks now: give {missing} too")
    at = plain.values
    table = _chosen(-(-at["n"] // at["w"]), at["t"], at["g"], random, seed)
    text = f"{_TEXT} or chosen[q // w, k // w]"
    return entry(text, WITH_RANDOM, where=_WHERE, data={"chosen": table}, **at)


def _chosen(blocks: int, t: int, g: int, random: int, seed: int) -> NDArray[np.int64]:
    """Returns a table with 1 at `random` more blocks of keys for each block of queries."""
    if blocks > MAX_BLOCKS:
        raise DomainError(
            f"bigbird: {blocks:,} blocks, and at most {MAX_BLOCKS:,} are drawn; take larger blocks"
        )
    draw = _random.Random(seed)
    table = np.zeros((blocks, blocks), np.int64)
    for row in range(g, blocks):
        left = [*range(g, row - t), *range(max(g, row + t + 1), blocks)]
        for _ in range(min(random, len(left))):
            # only random() is promised to give the same numbers in every version of Python
            table[row, left.pop(int(draw.random() * len(left)))] = 1
    return table
