"""ViT: a vision transformer made of Patches, MultiHeadAttention, norms and feed-forward nets."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from lattend.attend.bias import shape_text
from lattend.cost.cost import Cost
from lattend.cost.layers.transformer import vit as price_of
from lattend.errors import DomainError, TensorError
from lattend.nn.attention.attention import MultiHeadAttention
from lattend.nn.attention.checks import check_kind, check_positive, check_tensor
from lattend.nn.images.patch_grid import Pair
from lattend.nn.images.patches import Patches

EPS = 1e-6  # of the norms, as published models have it
SMALL = 0.02


class Block(nn.Module):
    """x + attention(norm(x)), then x + feed-forward(norm(x))."""

    def __init__(self, d: int, heads: int, hidden: int, **kind: Any) -> None:
        super().__init__()
        width = d // heads
        self.norm1 = nn.LayerNorm(d, eps=EPS, **kind)
        self.attention = MultiHeadAttention(d, width, width, d, heads, bias=True, **kind)
        self.norm2 = nn.LayerNorm(d, eps=EPS, **kind)
        self.up, self.down = nn.Linear(d, hidden, **kind), nn.Linear(hidden, d, **kind)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class ViT(nn.Module):
    """A vision transformer: images (N, c, rows, cols) → (N, classes); ViT-B/16 as it stands.

    Patches become tokens, a class token goes before them, learned positions are added to all, and the class
    token after the last block and norm is classified. `patch` is a number or (rows, cols), `padding` that of
    Patches.

    >>> with torch.device("meta"):
    ...     sum(p.numel() for p in ViT().parameters())
    86567656
    """

    def __init__(
        self,
        *,
        rows: int = 224,
        cols: int = 224,
        patch: Pair = 16,
        c: int = 3,
        d: int = 768,
        layers: int = 12,
        heads: int = 12,
        hidden: int | None = None,
        classes: int = 1000,
        padding: str = "error",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_positive(rows=rows, cols=cols, c=c, d=d, layers=layers, heads=heads, classes=classes)
        if d % heads:
            raise DomainError(f"d = {d} does not divide into {heads} heads")
        kind = {"device": device, "dtype": dtype}
        hidden = 4 * d if hidden is None else hidden
        check_positive(hidden=hidden)
        self.patches = Patches(patch, padding=padding, flat=True)
        self.rows, self.cols, self.c = rows, cols, c
        self.down, self.across = (cuts.tokens for cuts in self.patches.grid(rows, cols))
        self.embed = nn.Linear(c * self.patches.size[0] * self.patches.size[1], d, **kind)
        self.token = nn.Parameter(torch.zeros(d, **kind))
        self.positions = nn.Parameter(torch.empty(self.down * self.across + 1, d, **kind))
        self.blocks = nn.ModuleList(Block(d, heads, hidden, **kind) for _ in range(layers))
        self.norm = nn.LayerNorm(d, eps=EPS, **kind)
        self.classify = nn.Linear(d, classes, **kind)
        nn.init.normal_(self.positions, std=SMALL)

    def forward(self, image: Tensor) -> Tensor:
        """The scores of the classes, before a softmax."""
        return self.classify(self.tokens(image)[:, 0])

    def tokens(self, image: Tensor) -> Tensor:
        """All tokens after the last norm, the class token first: [N, n + 1, d]."""
        wanted = (self.c, self.rows, self.cols)
        check_tensor("image", image)
        if image.dim() != 4 or image.shape[1:] != wanted:
            shown = ", ".join(map(str, wanted))
            raise TensorError(f"this ViT takes images (N, {shown}), got {shape_text(image)}")
        check_kind("image", image, self.embed.weight)
        x = self.embed(self.patches(image))
        x = torch.cat([self.token.expand(x.shape[0], 1, -1), x], 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def cost(self) -> Cost:
        """The price of one image, by lt.cost.vit; the same parameters."""
        first = next(block for block in self.blocks if isinstance(block, Block))
        return price_of(
            rows=self.down,  # a patch is a pixel of as many channels
            cols=self.across,
            patch=1,
            c=self.embed.in_features,
            d=self.embed.out_features,
            layers=len(self.blocks),
            heads=first.attention.head_count,
            hidden=first.up.out_features,
            classes=self.classify.out_features,
        )
