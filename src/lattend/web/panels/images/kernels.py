"""The kernel of a convolution on an image, as the page asks for it: sizes are 3, or rows by columns, 3x5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from lattend.errors import DomainError
from lattend.web.panel import Question

if TYPE_CHECKING:
    from lattend.nn.convolution.geometry import Geometry

MOST_KEYS = 32  # rows or columns of the image with its padding
MOST_HEADS = 64
LONGEST = 24  # characters of a size


class KernelQuestion(Question):
    """A kernel, and the image it runs on; padding is "" (half the kernel), "same", "valid" or a size."""

    kernel: str = Field("3", max_length=LONGEST)
    stride: str = Field("1", max_length=LONGEST)
    dilation: str = Field("1", max_length=LONGEST)
    padding: str = Field("", max_length=LONGEST)
    padding_mode: str = Field("zeros", max_length=LONGEST)
    size: str = Field("8", max_length=LONGEST)

    def arguments(self) -> dict[str, Any]:
        """The arguments of lt.nn.draw_conv, those that are not as usual."""
        from lattend.nn.images.size_text import read_size

        found: dict[str, Any] = {"kernel": read_size("the kernel", self.kernel)}
        for name in ("stride", "dilation"):
            number = read_size(f"the {name}", getattr(self, name))
            found |= {} if number == 1 else {name: number}
        if self.padding:
            word = self.padding in ("same", "valid")
            found["padding"] = self.padding if word else read_size("the padding", self.padding)
        found |= {} if self.padding_mode == "zeros" else {"padding_mode": self.padding_mode}
        return found

    def geometry(self) -> Geometry:
        """The kernel; raises where there is none."""
        from lattend.nn.convolution.geometry import read_geometry

        return read_geometry(**self.arguments())

    def image(self) -> tuple[int, int]:
        """Rows and columns."""
        from lattend.nn.images.patch_grid import pair
        from lattend.nn.images.size_text import read_size

        return pair("size", read_size("the size of the image", self.size))

    def small(self) -> tuple[Geometry, int, int]:
        """The kernel and the image; raises where the page has no room for them."""
        geometry, (rows, cols) = self.geometry(), self.image()
        geometry.outputs(rows, cols)
        if geometry.heads > MOST_HEADS:
            raise DomainError(f"{geometry.heads:,} heads are more than the page draws: at most {MOST_HEADS}")
        keys = max(rows, cols, *geometry.keys(rows, cols))
        if keys > MOST_KEYS:
            raise DomainError(
                f"the image has {keys:,} rows or columns with its padding, and the page draws {MOST_KEYS} "
                "at most; `lattend conv` has no such limit"
            )
        return geometry, rows, cols

    def options(self) -> dict[str, Any]:
        """The same as options of `lattend conv`."""
        names = {"stride": "1", "dilation": "1", "padding": "", "padding_mode": "zeros"}
        changed = {name: getattr(self, name) for name, usual in names.items() if getattr(self, name) != usual}
        return {"kernel": self.kernel, **changed, "size": self.size}

    def torch_line(self, channels: int = 1, out_channels: int = 1) -> str:
        """The line of Python that makes this convolution."""
        options = ", ".join(f"{name}={value!r}" for name, value in self.geometry().options.items())
        kernel = self.geometry().kernel
        sizes = f"{channels}, {out_channels}, {kernel}"
        return f"conv = torch.nn.Conv2d({sizes}, {options}, bias=False, dtype=torch.float64)"
