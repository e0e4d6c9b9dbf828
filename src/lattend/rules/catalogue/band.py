"""Band: a query attends to itself, at most `before` positions before it and at most `after` after it.

before + 1 + after keys away from both ends. FlashAttention's window_size=(before, after).

    ##..        before = 2, after = 1
    ###.
    ####
    .###

Reference: Dao 2023, FlashAttention-2 (window_size).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from lattend.errors import DomainError
from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule, check_integer

ABOUT = RuleInfo(
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

    >>> band(before=1, after=1).mask(n=4).sum()  # 2 + 3 + 3 + 2
    np.int64(10)
    """
    where = "before >= 0 and after >= 0"
    return entry("q - k <= before and k - q <= after", ABOUT, where=where, before=before, after=after)


def local(radius: int | None = None) -> Rule:
    """As far to both sides: band of before = after = radius, 2*radius + 1 keys.

    >>> local(radius=1).mask(n=4).sum()  # 2 + 3 + 3 + 2
    np.int64(10)
    """
    about = replace(
        ABOUT,
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
        ABOUT,
        meaning="a query attends to at most `left` positions before it, itself and at most `right` after it",
        keys=f"{back} + 1 + {ahead}",
    )
    position = "q + m - n" if shifted else "q"
    limits = [f"{position} - k <= {left}"] if left >= 0 else []
    limits += [f"k - ({position}) <= {right}" if shifted else f"k - q <= {right}"] if right >= 0 else []
    return entry(" and ".join(limits) or "true", about)
