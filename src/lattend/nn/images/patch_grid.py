"""Cuts: an image in patches, counted along each axis, and what is left over or added."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from lattend.errors import DomainError, NamingError, TextError

PADDINGS = ("error", "crop", "zeros")
Pair = int | tuple[int, int]


class Cuts(NamedTuple):
    """Patches along one axis: the first begins at 0, each next one `stride` later.

    `cropped` pixels lie behind the last patch, `added` zeros behind the image. A stride longer than the
    patch leaves pixels of the image between patches that are `skipped`.
    """

    size: int
    patch: int
    stride: int
    tokens: int

    @property
    def end(self) -> int:
        """Where the last patch ends: size - cropped + added."""
        return (self.tokens - 1) * self.stride + self.patch

    @property
    def cropped(self) -> int:
        return max(0, self.size - self.end)

    @property
    def added(self) -> int:
        return max(0, self.end - self.size)

    @property
    def skipped(self) -> int:
        last = (self.tokens - 1) * self.stride  # what lies between the image and it are zeros
        return (self.tokens - 1) * max(0, self.stride - self.patch) - max(0, last - self.size)

    def latex(self, padding: str) -> str:
        r"""How many patches there are, as a formula with its numbers.

        >>> print(Cuts(10, 4, 4, 3).latex("zeros"))
        \lceil \frac{10 - 4}{4} \rceil + 1 = 3
        """
        if self.size < self.patch:
            return str(self.tokens)
        share = rf"\frac{{{self.size} - {self.patch}}}{{{self.stride}}}"
        if padding == "error":
            return rf"{share} + 1 = {self.tokens}"
        end = "ceil" if padding == "zeros" else "floor"
        return rf"\l{end} {share} \r{end} + 1 = {self.tokens}"

    @property
    def overlap(self) -> int:
        """The pixels that a patch shares with the next one."""
        return max(0, self.patch - self.stride)


class PatchGrid(NamedTuple):
    """The patches of an image: one `Cuts` for its rows and one for its columns."""

    rows: Cuts
    cols: Cuts

    @property
    def tokens(self) -> int:
        return self.rows.tokens * self.cols.tokens

    def numbers(self, channels: int) -> int:
        """How many numbers a patch has."""
        return self.rows.patch * self.cols.patch * channels

    def numbers_text(self, channels: int) -> str:
        """The same as a product.

        >>> patch_grid(224, 16).numbers_text(3)
        '16 × 16 × 3 = 768'
        """
        return f"{self.rows.patch} × {self.cols.patch} × {channels} = {self.numbers(channels):,}"


def patch_grid(image: Pair, patch: Pair, stride: Pair | None = None, padding: str = "error") -> PatchGrid:
    """The patches of an image, both sizes a number or (rows, cols); `stride` is the patch if not given.

    What is left over at the bottom and the right is an "error", "crop" leaves it out, "zeros" adds as many
    as make a last patch end there.

    >>> patch_grid(224, 16).tokens  # 14 * 14
    196
    >>> patch_grid(10, 4, 3).rows.tokens  # at 0, 3 and 6, the last one up to 10
    3
    >>> patch_grid(10, 4, padding="zeros").cols  # 3 * 4 = 10 + 2
    Cuts(size=10, patch=4, stride=4, tokens=3)
    """
    if padding not in PADDINGS:
        raise NamingError(f"padding of patches is one of {', '.join(PADDINGS)}, not {padding!r}")
    sizes = (
        pair("image", image),
        pair("patch", patch),
        pair("stride", patch if stride is None else stride),
    )
    rows, cols = (
        _cuts(name, *along, padding)
        for name, along in zip(("rows", "columns"), zip(*sizes, strict=True), strict=True)
    )
    return PatchGrid(rows, cols)


def _cuts(name: str, size: int, patch: int, stride: int, padding: str) -> Cuts:
    if size < patch and padding != "zeros":
        raise DomainError(
            f'a patch of {patch} {name} does not fit in an image of {size}; padding="zeros" fills it up, '
            f"or take a smaller patch"
        )
    steps, rest = divmod(max(0, size - patch), stride)
    crop, zeros = (Cuts(size, patch, stride, steps + 1 + more) for more in (0, rest > 0))
    if padding == "zeros":
        return zeros
    if padding == "error" and rest:
        verb, it = ("is", "it") if rest == 1 else ("are", "them")
        raise DomainError(
            f"{size} {name} are not patches of {patch} every {stride}: {rest} {verb} left over; "
            f'padding="crop" leaves {it} out, padding="zeros" adds {zeros.added}'
        )
    return crop


def pair(name: str, given: Any, least: int = 1) -> tuple[int, int]:
    """Rows and columns from one whole number for both, or from two.

    >>> pair("kernel", 3), pair("kernel", (3, 5))
    ((3, 3), (3, 5))
    """
    both: list[Any] = [*given] if isinstance(given, (tuple, list)) else [given, given]
    whole = all(hasattr(number, "__index__") and not isinstance(number, bool) for number in both)
    if len(both) != 2 or not whole or min(both) < least:
        raise DomainError(f"{name} is a whole number from {least} up, or (rows, cols), got {given!r}")
    return int(both[0]), int(both[1])


_SIZE = re.compile(r"\s*(\d{1,9})\s*(?:[x×,]\s*(\d{1,9})\s*)?")
_PIXEL = re.compile(r"\s*(\d{1,9})\s*[,x×\s]\s*(\d{1,9})\s*")


def read_size(name: str, text: str) -> int | tuple[int, int]:
    """`8` as 8, and `8x12` as (8, 12): rows by columns."""
    text = text.strip()
    found = _SIZE.fullmatch(text)
    if found is None:
        raise TextError(f"{name} is a whole number, or rows by columns as in 8x12", text, 0, len(text))
    return int(found[1]) if found[2] is None else (int(found[1]), int(found[2]))


def read_pixel(name: str, text: str) -> tuple[int, int] | None:
    """`3,4` as row 3, column 4; None where nothing is typed."""
    if not text.strip():
        return None
    found = _PIXEL.fullmatch(text)
    if found is None:
        raise TextError(f"{name} is a row and a column, as in 3,4", text, 0, len(text))
    return int(found[1]), int(found[2])
