"""HeadNet: a classifier of images whose heads have a centre and a width, and look at no content."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from lattend.nn.attention.attention import MultiHeadAttention
from lattend.nn.attention.gaussian_heads import Head
from lattend.nn.attention.quadratic import Quadratic

SHARE = 4  # the numbers of a position over those of one head's value


class HeadLayer(MultiHeadAttention):
    """MultiHeadAttention with isotropic quadratic heads, which give every image the same weights.

    e^{-α(dy² + dx²)} is a product, so that values are mixed along columns, then along rows: rows + cols
    products for each position in place of rows · cols.
    """

    encoding: Quadratic

    def __init__(self, width: int, heads: int, spread: float) -> None:
        encoding = Quadratic(heads, centres=spread * torch.randn(heads, 2))
        super().__init__(width, 1, max(1, width // SHARE), width, heads, encoding=encoding)

    def forward(self, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """[batch, rows, cols, width] in and out."""
        down, across = (self._weights(size, axis) for axis, size in enumerate(x.shape[1:3]))
        _, _, values = self.projected(x)  # [batch, heads, rows, cols, d_head_out]
        mixed = torch.einsum("hqk,bhrkd->bhrqd", across, values)
        mixed = torch.einsum("hqk,bhkcd->bqchd", down, mixed)
        assert self.b_out is not None
        return mixed.flatten(-2) @ self.W_out.flatten(0, 1) + self.b_out

    def _weights(self, size: int, axis: int) -> Tensor:
        """The softmax along one axis: [heads, queries, keys]."""
        places = torch.arange(size, device=self.W_v.device, dtype=self.W_v.dtype)
        off = places - places[:, None] - self.encoding.centres[:, axis, None, None]
        return (-self.encoding.alpha[:, None, None] * off.square()).softmax(-1)


class HeadBlock(nn.Module):
    """Heads, then two dense layers at each position; both take the input normalised, and add to it."""

    def __init__(self, width: int, heads: int, spread: float) -> None:
        super().__init__()
        self.attention = HeadLayer(width, heads, spread)
        self.dense = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x))
        return x + self.dense(self.norms[1](x))


class HeadNet(nn.Module):
    """Scores of classes [batch, classes] from images [batch, channels, rows, cols].

    Patches of `patch` × `patch` pixels are the positions; `layers` blocks of K² heads, first centred at
    normal random places `spread` positions from the query along each axis, with α = 1; then the mean over
    all positions.

    >>> net = HeadNet(channels=1, classes=10, kernel=3, layers=2, width=16)
    >>> net(torch.zeros(5, 1, 8, 8)).shape, len(net.heads()), len(net.heads()[0])
    (torch.Size([5, 10]), 2, 9)
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        kernel: int = 3,
        layers: int = 4,
        width: int = 32,
        patch: int = 1,
        spread: float = 1.0,
    ) -> None:
        super().__init__()
        self.patch = patch
        self.embedding = nn.Linear(channels * patch * patch, width)
        self.blocks = nn.ModuleList(HeadBlock(width, kernel * kernel, spread) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.classifier = nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        x = functional.pixel_unshuffle(images, self.patch).movedim(1, -1)
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.classifier(self.norm(x).mean((1, 2)))

    @property
    def encodings(self) -> list[Quadratic]:
        """Of each layer."""
        return [block.attention.encoding for block in self.blocks if isinstance(block, HeadBlock)]

    def heads(self) -> list[list[Head]]:
        """The heads of each layer, as plain numbers."""
        return [block.attention.heads() for block in self.blocks if isinstance(block, HeadBlock)]
