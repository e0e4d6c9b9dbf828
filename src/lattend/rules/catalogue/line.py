"""The catalogue on a line: full and causal attention, windows, sinks and prefixes."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from lattend.errors import DomainError
from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule, check_integer

FULL = RuleInfo(
    name="full",
    meaning="every query attends to every key",
    keys="n",
    reference="Vaswani et al. 2017, Attention Is All You Need",
    aliases=("bidirectional",),
    elsewhere=("dense attention; FlexAttention's noop_mask; an encoder such as BERT",),
)


def full() -> Rule:
    """Every pair: `true`.

    n keys a query (m, when the keys have a number of their own): n*n pairs.

        ####
        ####
        ####
        ####

    >>> full().mask(n=3).sum()  # 3 * 3
    np.int64(9)
    """
    return entry("true", FULL)


CAUSAL = RuleInfo(
    name="causal",
    meaning="a query attends to itself and all keys before it",
    keys="q + 1",
    reference="Vaswani et al. 2017, Attention Is All You Need",
    aliases=(
        "autoregressive",
        "lower_triangular",
    ),
    elsewhere=(
        "torch: is_causal=True, causal_upper_left",
        "xformers: LowerTriangularMask",
        "a decoder such as GPT",
    ),
)
CAUSAL_BOTTOM_RIGHT = RuleInfo(
    name="causal",
    meaning="the last query attends to the last key, and each query before it one key fewer",
    keys="max(0, q + 1 + m - n)",
    reference="Dao 2023, FlashAttention 2.1 (change of the causal mask when n and m differ)",
    elsewhere=(
        "FlashAttention since 2.1: causal=True",
        "torch: causal_lower_right",
        "xformers: LowerTriangularFromBottomRightMask",
    ),
)


def causal(align: Literal["top-left", "bottom-right"] = "top-left") -> Rule:
    """Itself and everything before: `k <= q`, or `k - q <= m - n` aligned to the bottom right.

    q + 1 keys a query: n(n + 1)/2 pairs when n = m.

        #...
        ##..
        ###.
        ####

    When there are m keys and n queries, two conventions exist. `align="top-left"` counts both from the
    start (PyTorch's is_causal); `align="bottom-right"` lets the last query attend to the last key, as when
    the queries continue a cache (FlashAttention since 2.1): query q attends to q + 1 + m - n keys, none
    when that is below 1. For n = m the two are equal. Here n = 2, m = 4:

        top-left   bottom-right
        #...       ###.
        ##..       ####

    >>> causal().mask(n=4).sum()  # 1 + 2 + 3 + 4
    np.int64(10)
    """
    if align == "top-left":
        return entry("k <= q", CAUSAL)
    if align == "bottom-right":
        return entry("k - q <= m - n", CAUSAL_BOTTOM_RIGHT)
    raise DomainError(f'causal(align={align!r}): align is "top-left" or "bottom-right"')


STRIDED = RuleInfo(
    name="strided",
    meaning="a query attends to itself and at most t positions before it",
    keys="min(q, t) + 1",
    reference="Child et al. 2019, Generating Long Sequences with Sparse Transformers",
    aliases=("sliding_window(window = t + 1)",),
    elsewhere=(
        "Hugging Face and Mistral: sliding_window = t + 1",
        "FlashAttention: window_size = (t, 0)",
        "attention-gym: generate_sliding_window(t)",
        "Sparse Transformers: their strided attention is sparse_strided, this is its first head",
    ),
    common="sliding window",
)


def strided(t: int | None = None) -> Rule:
    """Itself and t before: `k <= q and q - k <= t`.

    min(q, t) + 1 keys a query, so t + 1 away from the start. A sliding window of w keys, as in Hugging
    Face, is t = w - 1; FlashAttention's window_size=(t, 0) and attention-gym's window of t are this t.
    Sparse Transformers call another rule strided: see sparse_strided.

        #...        t = 1
        ##..
        .##.
        ..##

    >>> strided(t=2).mask(n=8).sum()  # 1 + 2 + 6*3
    np.int64(21)
    """
    return entry("k <= q and q - k <= t", STRIDED, where="t >= 0", t=t)


def sliding_window(window: int | None = None) -> Rule:
    """A window of `window` keys including the query's own, as Hugging Face counts: t = window - 1.

    >>> sliding_window(window=3).mask(n=8).sum()  # 1 + 2 + 6*3
    np.int64(21)
    """
    about = replace(
        STRIDED,
        meaning="a query attends to `window` keys: itself and those just before",
        keys="min(q + 1, window)",
    )
    return entry("k <= q and q - k < window", about, where="window >= 1", window=window)


BAND = RuleInfo(
    name="band",
    meaning="a query attends to itself, at most `before` positions before it and at most `after` after it",
    keys="min(q, before) + 1 + min(n - 1 - q, after)",
    reference="Dao 2023, FlashAttention-2 (window_size)",
    aliases=(
        "banded(before, after)",
        "local(radius = before = after)",
        "window_size(left = before, right = after)",
    ),
    elsewhere=(
        "FlashAttention: window_size = (before, after)",
        "xformers: LocalAttentionFromBottomRightMask(before, after)",
        "LongT5: local_radius = before = after",
        "Hugging Face, bidirectional: sliding_window = before = after",
    ),
)


def band(before: int | None = None, after: int | None = None) -> Rule:
    """Both sides: `q - k <= before and k - q <= after`.

    before + 1 + after keys away from both ends. FlashAttention's window_size=(before, after).

        ##..        before = 2, after = 1
        ###.
        ####
        .###

    >>> band(before=1, after=1).mask(n=4).sum()  # 2 + 3 + 3 + 2
    np.int64(10)
    """
    where = "before >= 0 and after >= 0"
    return entry("q - k <= before and k - q <= after", BAND, where=where, before=before, after=after)


def local(radius: int | None = None) -> Rule:
    """As far to both sides: band of before = after = radius, 2*radius + 1 keys.

    >>> local(radius=1).mask(n=4).sum()  # 2 + 3 + 3 + 2
    np.int64(10)
    """
    about = replace(
        BAND,
        meaning="a query attends to itself and at most `radius` positions to each side",
        keys="min(q, radius) + 1 + min(n - 1 - q, radius)",
    )
    return entry("abs(q - k) <= radius", about, where="radius >= 0", radius=radius)


def window_size(
    left: int | tuple[int, ...] | list[int] = -1,
    right: int = -1,
    align: Literal["top-left", "bottom-right"] = "top-left",
) -> Rule:
    """FlashAttention's window_size=(left, right), both ends included, -1 is no limit; causal is right = 0.

    The two numbers may come as one pair. FlashAttention and xformers align windows to the bottom right: where
    there are more keys than queries give align="bottom-right".

    >>> window_size(2, 0).mask(n=8).sum()  # 1 + 2 + 6*3
    np.int64(21)
    >>> window_size((2, 0)) == window_size(2, 0)
    True
    >>> window_size(1, 0, "bottom-right").mask(n=2, m=5).astype(int).tolist()
    [[0, 0, 1, 1, 0], [0, 0, 0, 1, 1]]
    """
    if isinstance(left, (tuple, list)):
        if len(left) != 2 or right != -1:
            also = "" if right == -1 else f", right={right!r}"
            raise DomainError(
                f"window_size({left!r}{also}): give one pair, window_size((40, 8)), or two numbers, "
                "window_size(40, 8); align by its name"
            )
        left, right = left
    for name, number in (("left", left), ("right", right)):
        check_integer(name, number)
        if number < -1:
            raise DomainError(f"window_size({name}={number}): give 0 or more, or -1 for no limit")
    if align not in ("top-left", "bottom-right"):
        raise DomainError(f'window_size(align={align!r}): align is "top-left" or "bottom-right"')
    shifted = align == "bottom-right"
    operand = "(q + m - n)" if shifted else "q"
    size = "m" if shifted else "n"
    back = f"min({operand}, {left})" if left >= 0 else operand
    ahead = f"min({size} - 1 - {operand}, {right})" if right >= 0 else f"{size} - 1 - {operand}"
    about = replace(
        BAND,
        meaning="a query attends to at most `left` positions before it, itself and at most `right` after it",
        keys=f"{back} + 1 + {ahead}",
    )
    position = "q + m - n" if shifted else "q"
    limits = [f"{position} - k <= {left}"] if left >= 0 else []
    limits += [f"k - ({position}) <= {right}" if shifted else f"k - q <= {right}"] if right >= 0 else []
    return entry(" and ".join(limits) or "true", about)


DILATED = RuleInfo(
    name="dilated",
    meaning="a query attends to itself and t keys before it, every step-th one",
    keys="min(q // step, t) + 1",
    reference="Beltagy et al. 2020, Longformer (dilated sliding window, here its causal half)",
    elsewhere=("NATTEN in one dimension, causal: kernel_size = t + 1, dilation = step",),
)


def dilated(t: int | None = None, step: int | None = None) -> Rule:
    """Every step-th of the past: `k <= q and q - k <= t*step and (q - k) % step == 0`.

    min(q // step, t) + 1 keys a query; the farthest is t*step back.

        #...        t = 1, step = 2
        .#..
        #.#.
        .#.#

    >>> dilated(t=1, step=2).mask(n=4).sum()  # 1 + 1 + 2 + 2
    np.int64(6)
    """
    text = "k <= q and q - k <= t*step and (q - k) % step == 0"
    return entry(text, DILATED, where="t >= 0", t=t, step=step)


LONGFORMER = RuleInfo(
    name="longformer",
    meaning="a query attends to t positions to each side; the first g attend to all, and all to them",
    keys="n when q < g; min(q, t) + 1 + min(n - 1 - q, t) + min(g, max(0, q - t)) otherwise",
    reference="Beltagy et al. 2020, Longformer: The Long-Document Transformer",
    elsewhere=("Longformer: attention_window = 2*t, global tokens anywhere",),
)


def longformer(t: int | None = None, g: int | None = None) -> Rule:
    """A window and global positions: `abs(q - k) <= t or q < g or k < g`.

    2t + 1 keys in the window, away from the ends: t counts one side. The paper's and Hugging Face's
    attention_window is the two sides together, so attention_window = 2t. A global position has n keys; any
    other has its window and the global keys outside it.

        #####        t = 1, g = 1
        ###..
        ####.
        #.###
        #..##

    >>> longformer(t=1, g=1).mask(n=5).sum()  # 5 + 3 + 4 + 4 + 3
    np.int64(19)
    """
    return entry("abs(q - k) <= t or q < g or k < g", LONGFORMER, where="t >= 0 and g >= 0", t=t, g=g)


PREFIX_LM = RuleInfo(
    name="prefix_lm",
    meaning="the first p positions are attended by all, the rest is causal",
    keys="max(q + 1, min(p, n))",
    reference="Raffel et al. 2020, Exploring the Limits of Transfer Learning (T5)",
    aliases=("prefix(p)",),
    elsewhere=(
        "attention-gym: generate_prefix_lm_mask(p)",
        "T5: prefix LM, non-causal decoder",
    ),
)


def prefix_lm(p: int | None = None) -> Rule:
    """A prefix attended by all: `k <= q or k < p`.

    max(q + 1, min(p, n)) keys a query.

        ##..        p = 2
        ##..
        ###.
        ####

    >>> prefix_lm(p=2).mask(n=4).sum()  # 2 + 2 + 3 + 4
    np.int64(11)
    """
    return entry("k <= q or k < p", PREFIX_LM, where="p >= 0", p=p)


SINKS = RuleInfo(
    name="sinks",
    meaning="the first s keys, and a window of itself and t positions before",
    keys="min(q, t) + 1 + min(s, max(0, q - t))",
    reference="Xiao et al. 2024, Efficient Streaming Language Models with Attention Sinks",
    aliases=("attention_sinks(s, t)",),
    elsewhere=(
        "StreamingLLM: start_size = s",
        "gpt-oss: sinks are learned logits there, not keys",
    ),
)


def sinks(s: int | None = None, t: int | None = None) -> Rule:
    """Sinks and a window: `k <= q and (k < s or q - k <= t)`.

    min(q, t) + 1 + min(s, max(0, q - t)) keys a query: at most s + t + 1, whatever n is. StreamingLLM's
    cache of s sinks and a window of w keys is t = w - 1.

        #....        s = 1, t = 1
        ##...
        ###..
        #.##.
        #..##

    >>> sinks(s=1, t=1).mask(n=5).sum()  # 1 + 2 + 3 + 3 + 3
    np.int64(12)
    """
    return entry("k <= q and (k < s or q - k <= t)", SINKS, where="s >= 0 and t >= 0", s=s, t=t)
