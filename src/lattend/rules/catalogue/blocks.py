"""The catalogue in blocks: windows and chunks, Sparse Transformers, BigBird, packed documents."""

from __future__ import annotations

import random as _random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError
from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule

WINDOWED = RuleInfo(
    name="windowed",
    meaning="causal inside windows of w positions, nothing across them",
    keys="q % w + 1",
    reference="Child et al. 2019, Generating Long Sequences with Sparse Transformers",
    aliases=("block_causal(w)",),
    elsewhere=(
        "Llama 4 and Hugging Face: chunked attention, attention_chunk_size = w",
        "block-causal elsewhere may let a block attend to all blocks before it: k // w <= q // w",
    ),
)


def windowed(w: int | None = None) -> Rule:
    """Causal inside windows: `k <= q and q // w == k // w`.

    q % w + 1 keys a query, from 1 at the start of a window to w at its end. Llama 4 calls this chunked.

        #...        w = 2
        ##..
        ..#.
        ..##

    >>> windowed(w=4).mask(n=6).sum()  # (1 + 2 + 3 + 4) + (1 + 2)
    np.int64(13)
    """
    return entry("k <= q and q // w == k // w", WINDOWED, w=w)


CHUNKED = RuleInfo(
    name="chunked",
    meaning="chunks of w positions; a query attends to its whole chunk and t chunks before it",
    keys="min(n, (q // w + 1)*w) - max(0, q // w - t)*w",
    reference="Chen et al. 2021, Developing Real-time Streaming Transformer Transducer",
    elsewhere=(
        "streaming speech recognition: chunk-wise masks",
        "Llama 4's chunked attention is windowed(w)",
    ),
)


def chunked(w: int | None = None, t: int | None = None) -> Rule:
    """Its chunk and some before: `0 <= q // w - k // w <= t`.

    Up to (t + 1)*w keys a query, the later ones of its own chunk among them: a model that streams waits for
    the end of a chunk. Llama 4's "chunked" is causal inside a chunk: that is windowed.

        ##....        w = 2, t = 1
        ##....
        ####..
        ####..
        ..####
        ..####

    >>> chunked(w=2, t=1).mask(n=6).sum()  # 2*2 + 2*4 + 2*4
    np.int64(20)
    """
    return entry("0 <= q // w - k // w <= t", CHUNKED, where="t >= 0", w=w, t=t)


SPARSE_STRIDED = RuleInfo(
    name="sparse_strided",
    meaning="the last l positions, and every l-th position before",
    keys="min(q + 1, l) + q // l",
    reference="Child et al. 2019, Generating Long Sequences with Sparse Transformers",
    elsewhere=("Sparse Transformers: strided, of stride l",),
)


def sparse_strided(l: int | None = None) -> Rule:  # noqa: E741  (the paper's letter)
    """A window and a stride: `k <= q and (q - k < l or (q - k) % l == 0)`.

    min(q + 1, l) + q // l keys a query: l of the window (itself among them), and one for each whole stride
    further back.

        #....        l = 2
        ##...
        ###..
        .###.
        #.###

    >>> sparse_strided(l=2).mask(n=5).sum()  # 1 + 2 + 3 + 3 + 4
    np.int64(13)
    """
    return entry("k <= q and (q - k < l or (q - k) % l == 0)", SPARSE_STRIDED, l=l)


SPARSE_FIXED = RuleInfo(
    name="sparse_fixed",
    meaning="causal inside blocks of l, and the last c positions of every block before",
    keys="q % l + 1 + q // l*c",
    reference="Child et al. 2019, Generating Long Sequences with Sparse Transformers",
    aliases=("fixed(l, c)",),
    elsewhere=("Sparse Transformers: fixed, of stride l and c summaries",),
)


def sparse_fixed(l: int | None = None, c: int | None = None) -> Rule:  # noqa: E741  (the paper's letter)
    """A block and summaries: `k <= q and (q // l == k // l or k % l >= l - c)`.

    q % l + 1 + q // l*c keys a query: its own block up to itself, and c of each block before it.

        #.....        l = 3, c = 1
        ##....
        ###...
        ..##..
        ..###.
        ..####

    >>> sparse_fixed(l=3, c=1).mask(n=6).sum()  # (1 + 2 + 3) + (2 + 3 + 4)
    np.int64(15)
    """
    text = "k <= q and (q // l == k // l or k % l >= l - c)"
    return entry(text, SPARSE_FIXED, where="0 <= c and c <= l", l=l, c=c)


MAX_BLOCKS = 4096

_BIGBIRD = "abs(q // w - k // w) <= t or q // w < g or k // w < g"
_BIGBIRD_DOMAIN = "t >= 0 and g >= 0"
BIGBIRD = RuleInfo(
    name="bigbird",
    meaning="in blocks of w: its own and t blocks to each side, and g global blocks",
    keys="n when q // w < g; min(n, (q // w + t + 1)*w) - max(0, q // w - t)*w "
    "+ min(g, max(0, q // w - t))*w otherwise",
    reference="Zaheer et al. 2020, Big Bird: Transformers for Longer Sequences",
    elsewhere=(
        "Hugging Face: block_size = w, t = 1, num_random_blocks = random; its last block is global too",
    ),
)
RANDOM_BIGBIRD = replace(
    BIGBIRD,
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

    Inside, a query has (2t + 1)*w keys of the window: t counts the blocks of one side, the paper's window
    those of both with the middle. The first g blocks attend to all and are attended by all: g*w keys more.
    `random` further blocks are drawn for each block of queries from those it does not attend to yet; they
    are data, so they need n and numbers for w, t, g.

        #######        w = 1, t = 1, g = 1, random = 1, seed = 0
        ###...#
        ####..#
        #.####.
        ##.###.
        #.#.###
        #.#..##

    >>> bigbird(w=1, t=0, g=1).mask(n=3).sum()  # 3 + 2 + 2
    np.int64(7)
    """
    for name, value in (("random", random), ("seed", seed)):
        if not isinstance(value, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError(f"bigbird: {name} must be an integer, got {value!r}")
    if random < 0:
        raise DomainError(f"bigbird(random={random}): the number of random blocks is at least 0")
    plain = entry(_BIGBIRD, BIGBIRD, where=_BIGBIRD_DOMAIN, w=w, t=t, g=g, n=n)
    if random == 0:
        return plain
    if plain.free:
        missing = ", ".join(f"{name}=…" for name in plain.free)
        raise DomainError(f"bigbird(random={random}) draws its blocks now: give {missing} too")
    at = plain.values
    table = _chosen(-(-at["n"] // at["w"]), at["t"], at["g"], random, seed)
    text = f"{_BIGBIRD} or chosen[q // w, k // w]"
    return entry(text, RANDOM_BIGBIRD, where=_BIGBIRD_DOMAIN, data={"chosen": table}, **at)


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


DOCUMENTS = RuleInfo(
    name="documents",
    meaning="a query attends to the positions of its own document, given as data",
    keys="as many as its document has positions",
    reference="Krell et al. 2021, Efficient Sequence Packing without Cross-contamination",
    aliases=("block_diagonal(lengths)", "packed(lengths)"),
    elsewhere=(
        "xformers: BlockDiagonalMask",
        "FlashAttention: varlen, cu_seqlens = 0 and the running sums of lengths",
        "attention-gym: generate_doc_mask_mod",
    ),
)
CAUSAL_DOCUMENTS = replace(
    DOCUMENTS,
    meaning="a query attends to itself and the positions before it in its own document, given as data",
    keys="as many as its document has positions up to itself",
)


def documents(
    lengths: Sequence[int] | NDArray[np.integer] | None = None,
    *,
    ids: Sequence[int] | NDArray[np.integer] | None = None,
    causal: bool = False,
) -> Rule:
    """Its own document: `doc[q] == doc[k]`, from the documents' lengths or from each position's id.

    As many keys as its document has positions; with causal=True only those up to itself.

        ##..        lengths 2, 1, 1
        ##..
        ..#.
        ...#

    With neither, the ids are given when attention runs: `attention(q, k, v, documents(), doc=ids)`.

    >>> documents(lengths=[2, 1]).mask().sum()  # 2*2 + 1*1
    np.int64(5)
    """
    if lengths is not None and ids is not None:
        raise DomainError("documents takes lengths=[3, 5, …] or ids=[0, 0, 0, 1, …], and not both")
    if not isinstance(causal, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError(f"documents: causal is True or False, got {causal!r}")
    text = "k <= q and doc[q] == doc[k]" if causal else "doc[q] == doc[k]"
    about = CAUSAL_DOCUMENTS if causal else DOCUMENTS
    if lengths is None and ids is None:
        return entry(text, about, data={"doc": None})
    doc = _from_lengths(lengths) if lengths is not None else _whole_numbers("ids", ids)
    return entry(text, about, data={"doc": doc}, n=len(doc))


def _from_lengths(lengths: object) -> NDArray[np.int64]:
    sizes = _whole_numbers("lengths", lengths)
    if (sizes < 0).any():
        raise DomainError(f"documents: a length is at least 0, got {int(sizes.min())}")
    return np.repeat(np.arange(len(sizes)), sizes)


def _whole_numbers(name: str, values: object) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in ("biu" if name == "ids" else "iu"):
        raise DomainError(f"documents: {name} is one row of whole numbers, got {array.dtype} {array.shape}")
    return array.astype(np.int64)
