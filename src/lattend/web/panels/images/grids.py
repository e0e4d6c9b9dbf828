"""A 2-D RNN on an image, as the page asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from lattend.errors import DomainError
from lattend.web.panel import Question

if TYPE_CHECKING:
    from lattend.nn.pictures.grid import GridNets

MOST_DRAWN = 48  # rows or columns
LONGEST = 24  # characters of a size or a pixel


class GridQuestion(Question):
    """The image (8, or 8x12), the corners that the net begins at, and what runs at each pixel."""

    size: str = Field("8", max_length=LONGEST)
    directions: Literal[1, 2, 4] = 1
    cell: Literal["rnn", "lstm", "gru"] = "rnn"

    def image(self) -> tuple[int, int]:
        """Rows and columns; raises where the page has no room for them."""
        from lattend.nn.images.patch_grid import pair
        from lattend.nn.images.size_text import read_size

        rows, cols = pair("size", read_size("the size of the image", self.size))
        if max(rows, cols) > MOST_DRAWN:
            raise DomainError(
                f"the page draws images of at most {MOST_DRAWN} rows and columns, not {rows:,} × {cols:,}; "
                "`lattend grid` has room for more"
            )
        return rows, cols

    def options(self) -> dict[str, Any]:
        """The same as options of `lattend grid`, those that are not as usual."""
        several = {"directions": str(self.directions)} if self.directions > 1 else {}
        return several | ({"cell": self.cell} if self.cell != "rnn" else {})

    def arguments(self) -> dict[str, Any]:
        """The same as arguments of lt.nn.draw_grid."""
        return {**self.options(), **({"directions": self.directions} if self.directions > 1 else {})}


class GridFieldQuestion(GridQuestion):
    """And a pixel ("" for the middle), and the convnet beside the net: layers of K × K."""

    pixel: str = Field("", max_length=LONGEST)
    kernel: int = Field(3, ge=1, le=15)
    layers: int = Field(3, ge=1, le=32)

    def nets(self) -> GridNets:
        """Both nets on the image."""
        from lattend.nn.pictures.grid import grid_nets

        return grid_nets(
            self.image(),
            directions=self.directions,
            kernel=self.kernel,
            layers=self.layers,
            cell=self.cell,
        )

    def place(self) -> tuple[int, int]:
        """The pixel; one beyond the last stands for the last."""
        from lattend.nn.images.size_text import read_pixel

        rows, cols = self.image()
        row, col = read_pixel("the pixel", self.pixel) or (rows // 2, cols // 2)
        return min(row, rows - 1), min(col, cols - 1)
