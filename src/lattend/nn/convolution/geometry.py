"""Geometry: the receptive field of a kernel, as shifts, as a rule with `head` in it, and as scores.

Head h stands for one tap of the kernel, rows first. Its shift is Δ = k − q, so that pixel stride·q + Δ is the
one the tap is multiplied with: no tap is flipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from lattend.errors import DomainError, NamingError
from lattend.nn.images.patch_grid import pair
from lattend.rules.reader import rule
from lattend.rules.rule import Rule

Mode = Literal["zeros", "replicate"]
Pair = tuple[int, int]
NAMES = ("rows", "cols")


@dataclass(frozen=True)
class Along:
    """The kernel along one axis; `before` and `after` are pixels of padding."""

    taps: int
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0

    @property
    def span(self) -> int:
        """From the first pixel a kernel sees to the last, both counted."""
        return self.dilation * (self.taps - 1) + 1

    def outputs(self, size: int) -> int:
        """How many outputs an axis of so many pixels has.

        >>> Along(taps=3, stride=2, before=1, after=1).outputs(8)  # (8 + 2 - 3)//2 + 1
        4
        """
        return (size + self.before + self.after - self.span) // self.stride + 1

    def shifts(self) -> list[int]:
        """Δ of each tap.

        >>> Along(taps=3, dilation=2, before=2).shifts()
        [-2, 0, 2]
        """
        return [self.dilation * tap - self.before for tap in range(self.taps)]

    def pixel(self, query: str, tap: str) -> str:
        """The pixel a tap sees, as text: `2*qy + 3*(head // 3) - 1`."""
        terms = [_times(self.stride, query)]
        if self.taps > 1:
            terms.append(_times(self.dilation, tap))
        return " + ".join(terms) + (f" - {self.before}" if self.before else "")


@dataclass(frozen=True)
class Geometry:
    """The kernel along both axes, and what it sees beyond the edge: zeros, or the nearest pixel."""

    y: Along
    x: Along
    mode: Mode = "zeros"

    @classmethod
    def of(cls, kernel: Pair, stride: Pair, dilation: Pair, padding: Pair | str, mode: Mode) -> Geometry:
        """The kernel of a convolution with these arguments of torch's Conv2d.

        >>> Geometry.of((3, 4), (1, 1), (1, 1), "same", "zeros").x
        Along(taps=4, stride=1, dilation=1, before=1, after=2)
        """
        axes: list[Along] = []
        for axis in range(2):
            total = dilation[axis] * (kernel[axis] - 1)
            if isinstance(padding, str):
                before, after = (total // 2, total - total // 2) if padding == "same" else (0, 0)
            else:
                before = after = padding[axis]
            axes.append(Along(kernel[axis], stride[axis], dilation[axis], before, after))
        return cls(axes[0], axes[1], mode)

    @property
    def kernel(self) -> Pair:
        """Rows and columns of taps."""
        return self.y.taps, self.x.taps

    @property
    def options(self) -> dict[str, Any]:
        """Stride, dilation and padding, as Conv2d takes them; "same" where before and after differ."""
        y, x = self.y, self.x
        even = y.before == y.after and x.before == x.after
        return {
            "stride": (y.stride, x.stride),
            "dilation": (y.dilation, x.dilation),
            "padding": (y.before, x.before) if even else "same",
            "padding_mode": self.mode,
        }

    @property
    def heads(self) -> int:
        """One for each tap."""
        return self.y.taps * self.x.taps

    def shifts(self) -> list[tuple[int, int]]:
        """Δ of each head, rows first.

        >>> Geometry(Along(2), Along(2)).shifts()
        [(0, 0), (0, 1), (1, 0), (1, 1)]
        """
        return [(dy, dx) for dy in self.y.shifts() for dx in self.x.shifts()]

    def outputs(self, rows: int, cols: int) -> tuple[int, int]:
        """Rows and columns of the output; raises where the image is smaller than the kernel."""
        for name, size, along in zip(NAMES, (rows, cols), (self.y, self.x), strict=True):
            padded = size + along.before + along.after
            if size < 1 or padded < along.span:
                raise DomainError(
                    f"{name} = {size} with padding {along.before} + {along.after} is less than the "
                    f"{along.span} the kernel spans; give a larger image, or pad it more"
                )
        return self.y.outputs(rows), self.x.outputs(cols)

    def keys(self, rows: int, cols: int) -> tuple[int, int]:
        """Rows and columns of the keys of soft heads: with zeros the padded image, else the image alone."""
        if self.mode == "replicate":
            return rows, cols
        return rows + self.y.before + self.y.after, cols + self.x.before + self.x.after

    def centres(self, rows: int, cols: int) -> tuple[list[int], list[int]]:
        """The rows and the columns that the heads of all queries attend to, counted on the keys."""
        down, across = (
            [
                along.stride * at + shift + (along.before if self.mode == "zeros" else 0)
                for at in range(outputs)
                for shift in along.shifts()
            ]
            for along, outputs in zip((self.y, self.x), self.outputs(rows, cols), strict=True)
        )
        return down, across

    def pixels(self, qy: str, qx: str) -> tuple[str, str]:
        """The row and the column a head sees, as text, before anything is said about edges."""
        if self.x.taps == 1:
            return self.y.pixel(qy, "head"), self.x.pixel(qx, "0")
        width = self.x.taps
        tap = "0" if self.y.taps == 1 else f"(head // {width})"
        return self.y.pixel(qy, tap), self.x.pixel(qx, "head" if self.y.taps == 1 else f"(head % {width})")

    def numbers(self, rows: int, cols: int) -> dict[str, int]:
        """The numbers that the rule and the scores are about, for an image of this size."""
        found = {"out_cols": self.x.outputs(cols), "in_cols": cols}
        return {**found, "in_rows": rows} if self.mode == "replicate" else found

    def rule(self) -> Rule:
        """Head h of query q has the one key stride·q + Δ_h, or none where zeros are padded.

        Queries are the output's positions and keys the image's, both row by row, n and m of them.

        >>> Geometry(Along(3, before=1), Along(1), "replicate").rule()  # three rows, the image's edge again
        <Rule k == in_cols * min(max(q // out_cols + head - 1, 0), in_rows - 1) + \
min(max(q % out_cols, 0), in_cols - 1)>
        """
        row, col = self.pixels("(q // out_cols)", "(q % out_cols)")
        if self.mode == "replicate":
            row, col = f"min(max({row}, 0), in_rows - 1)", f"min(max({col}, 0), in_cols - 1)"
            return rule(f"k == in_cols*{row} + {col}", cross=True)
        # A key in another row is no neighbour: what lies beyond the edge is nothing
        edges = f"in_cols*({row}) <= k and k < in_cols*({row}) + in_cols"
        return rule(f"k == in_cols*({row}) + {col} and {edges}", cross=True)

    def scores(self) -> str:
        """The text of −α‖δ − Δ‖², with δ = k − stride·q in pixels: small, so exact, where the weight is."""
        padded = self.mode == "zeros"
        wide = f"(in_cols + {self.x.before + self.x.after})" if padded else "in_cols"
        squares: list[str] = []
        for axis, (along, part) in enumerate(((self.y, "//"), (self.x, "%"))):
            key = f"k {part} {wide}" + (f" - {along.before}" if padded and along.before else "")
            apart = f"({key} - {_times(along.stride, f'(q {part} out_cols)')} - centre[head, {axis}])"
            squares.append(f"{apart}*{apart}")
        return f"-alpha[head]*({' + '.join(squares)})"

    def everywhere(self) -> Rule:
        """Every pixel for every query; the scores speak of its numbers."""
        return rule("true", where=" and ".join(f"{name} >= 1" for name in self.numbers(1, 1)), cross=True)


def read_geometry(
    kernel: int | Pair = 3,
    stride: int | Pair = 1,
    dilation: int | Pair = 1,
    padding: int | Pair | str | None = None,
    padding_mode: str = "zeros",
) -> Geometry:
    """The kernel of these arguments, as a person gives them; without `padding`, half its span on each side.

    >>> read_geometry(3, dilation=2).y
    Along(taps=3, stride=1, dilation=2, before=2, after=2)
    """
    if padding_mode not in ("zeros", "replicate"):
        raise NamingError(
            f'padding_mode is "zeros" or "replicate", not "{padding_mode}": a head attends to the pixel '
            "nearest to its centre, and no other padding is a distance"
        )
    if isinstance(padding, str) and padding not in ("same", "valid"):
        raise NamingError(f'padding is a number, "same" or "valid", not "{padding}"')
    taps, by, apart = pair("kernel", kernel), pair("stride", stride), pair("dilation", dilation)
    if padding == "same" and by != (1, 1):
        raise DomainError('padding="same" keeps the size of the image, so that the stride must be 1')
    if padding is None:
        half = (apart[0] * (taps[0] - 1) // 2, apart[1] * (taps[1] - 1) // 2)
        padding = "same" if by == (1, 1) else half
    around = padding if isinstance(padding, str) else pair("padding", padding, least=0)
    return Geometry.of(taps, by, apart, around, "zeros" if padding_mode == "zeros" else "replicate")


def _times(factor: int, text: str) -> str:
    return text if factor == 1 else f"{factor}*{text}"
