"""Patches: an image cut into tokens, and put together again."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import pad

from lattend.attend.bias import shape_text
from lattend.errors import DomainError, TensorError
from lattend.nn.images.patch_grid import Pair, PatchGrid, pair, patch_grid


class Patches(nn.Module):
    """Patches of an image (N, c, rows, cols), each a token of c·py·px numbers: [N, rows', cols', c·py·px].

    `size` and `stride` (the size, if not given) are numbers or (rows, cols); a shorter stride makes patches
    overlap. The first patch begins at the top left. What is left over at the bottom and the right is an
    "error", "crop" leaves it out, "zeros" fills the last patches up. With `flat`, tokens are [N, n, c·py·px],
    row by row. A token's numbers are those of torch's unfold: by channel, then row, then column.

    >>> import torch
    >>> Patches(16)(torch.zeros(1, 3, 224, 224)).shape  # 14 * 14 = 196 tokens of 3*16*16 numbers
    torch.Size([1, 14, 14, 768])
    """

    def __init__(
        self, size: Pair, stride: Pair | None = None, padding: str = "error", *, flat: bool = False
    ) -> None:
        super().__init__()
        self.size = pair("size of patches", size)
        self.stride = self.size if stride is None else pair("stride of patches", stride)
        self.padding, self.flat = padding, flat
        patch_grid(self.size, self.size, self.stride, padding)  # raises where these make no patches

    def grid(self, rows: int, cols: int) -> PatchGrid:
        """The patches of an image of this size: how many, what is left out, what is added.

        >>> Patches(4, padding="zeros").grid(10, 8).tokens  # 3 * 2, the third row of patches half zeros
        6
        """
        return patch_grid((rows, cols), self.size, self.stride, self.padding)

    def forward(self, image: Tensor) -> Tensor:
        """The tokens of an image (N, c, rows, cols)."""
        if image.dim() != 4:
            raise TensorError(f"an image is (N, c, rows, cols), got {shape_text(image)}")
        (py, px), (_, first, _, last) = self.size, image.shape
        if px >= 8 and last <= 4 and first >= max(py, last + 1):  # channels, not half a patch of columns
            raise TensorError(
                f"an image is (N, c, rows, cols), got {shape_text(image)}; if its last axis is the channels, "
                "write image.movedim(-1, 1)"
            )
        rows, cols = self.grid(*image.shape[-2:])
        whole = pad(image, (0, cols.added, 0, rows.added)) if cols.added or rows.added else image
        cut = whole.unfold(2, self.size[0], self.stride[0]).unfold(3, self.size[1], self.stride[1])
        tokens = cut[:, :, : rows.tokens, : cols.tokens].permute(0, 2, 3, 1, 4, 5).flatten(3)
        return tokens.flatten(1, 2) if self.flat else tokens

    def join(self, tokens: Tensor, rows: int, cols: int) -> Tensor:
        """The image (N, c, rows, cols) whose tokens these are; zeros that were added fall away.

        >>> import torch
        >>> image = torch.rand(1, 3, 8, 12)
        >>> torch.equal(Patches(4).join(Patches(4)(image), 8, 12), image)
        True
        """
        down, across = self.grid(rows, cols)
        if self.stride != self.size or down.cropped or across.cropped:
            what = "leave pixels out" if down.cropped or across.cropped else f"come every {self.stride}"
            raise DomainError(
                f"patches of {self.size} that {what} do not make one image of {rows} × {cols}; "
                "a stride equal to the size and nothing cropped do"
            )
        (py, px), depth = self.size, self.size[0] * self.size[1]
        places = (down.tokens * across.tokens,) if self.flat else (down.tokens, across.tokens)
        if tokens.dim() != 2 + len(places) or tokens.shape[1:-1] != places or tokens.shape[-1] % depth:
            wanted = ", ".join(map(str, ("N", *places, f"c*{depth}")))
            raise TensorError(f"tokens of {rows} × {cols} pixels are ({wanted}), got {shape_text(tokens)}")
        parts = tokens.unflatten(1, (down.tokens, across.tokens)) if self.flat else tokens
        parts = parts.unflatten(-1, (-1, py, px)).permute(0, 3, 1, 4, 2, 5)  # [N, c, rows', py, cols', px]
        return parts.flatten(4, 5).flatten(2, 3)[:, :, :rows, :cols]

    def extra_repr(self) -> str:
        return f'{self.size}, stride={self.stride}, padding="{self.padding}"'
