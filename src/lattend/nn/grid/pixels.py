"""PixelModel: the probability of an image, pixel after pixel, with a recurrent net on the grid."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lattend.errors import DomainError, NamingError, TensorError
from lattend.nn.grid.rnn import GridRNN
from lattend.nn.grid.states import format_tensor

HEADS = ("categorical", "bernoulli")


class PixelModel(nn.Module):
    """p(image) = Π p(pixel | pixels before it), each factor read from a GridRNN with the causal shift.

    A pixel is one of `levels` whole numbers from 0 on. With `directions` 1 the pixels before it are those of
    its quadrant, up and left; with 2 all those before it row by row. A pixel of several `channels` has them
    one after the other: images are then [batch, rows, cols, channels], with one channel [batch, rows, cols].

    The net reads `embedding` learned numbers for each level; with embedding=0 the level itself, scaled to
    -1 … 1. `head` is "categorical", a logit for each level, or "bernoulli", one logit, for 2 levels.
    h, cell, layers and kernel are those of GridRNN, whose cells have a bias here.

    >>> model = PixelModel(levels=4, h=8, embedding=2)
    >>> model(torch.zeros(5, 6, 7, dtype=torch.long)).shape  # logits of the 4 levels at each pixel
    torch.Size([5, 6, 7, 4])
    >>> model.nats(torch.zeros(5, 6, 7, dtype=torch.long)).shape
    torch.Size([5])
    >>> sum(
    ...     p.numel() for p in model.parameters()
    ... )  # 4*2 levels, an lstm of 5*8*(2 + 8 + 8 + 1), 4*(8 + 1) logits
    804
    """

    def __init__(
        self,
        levels: int,
        h: int,
        cell: str = "lstm",
        directions: int = 1,
        layers: int = 1,
        channels: int = 1,
        head: str | None = None,
        embedding: int = 16,
        kernel: str | None = None,
        *,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        for name, value, least in (
            ("levels", levels, 2),
            ("channels", channels, 1),
            ("embedding", embedding, 0),
        ):
            if not isinstance(value, int) or value < least:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise DomainError(f"{name} must be a whole number from {least} on, got {value!r}")
        head = head or ("bernoulli" if levels == 2 else "categorical")
        if head not in HEADS:
            raise NamingError(f"head is one of {', '.join(HEADS)}, not {head!r}")
        if head == "bernoulli" and levels != 2:
            raise DomainError(f'head="bernoulli" has 2 levels, not {levels}; take head="categorical"')
        if directions not in (1, 2):
            raise DomainError(
                f"directions is 1 or 2, not {directions!r}: what comes before a pixel is above it"
            )
        self.levels, self.channels, self.head, self.embedding = levels, channels, head, embedding
        kind: dict[str, Any] = {"device": device, "dtype": dtype}
        self.width = embedding or 1  # numbers that stand for one channel of a pixel
        self.table = nn.Parameter(torch.empty(channels * levels, embedding, **kind)) if embedding else None
        self.net = GridRNN(
            channels * self.width, h, cell, directions,
            bias=True, layers=layers, shift=True, kernel=kernel, **kind,
        )  # fmt: skip
        logits = 1 if head == "bernoulli" else levels
        self.heads = nn.ModuleList(
            nn.Linear(directions * h + earlier * self.width, logits, **kind) for earlier in range(channels)
        )
        if self.table is not None:
            nn.init.normal_(self.table)

    def forward(self, images: Tensor) -> Tensor:
        """The logits of every pixel given those before it, [batch, rows, cols, (channels,) levels].

        A Bernoulli head gives the logit of level 1 alone, in the shape of the images.
        """
        found = self._scores(self.levels_of(self.shaped(images)))
        found = found[..., 1] if self.head == "bernoulli" else found
        return found.squeeze(3) if self.channels == 1 else found

    def nats(self, images: Tensor, where: Tensor | None = None) -> Tensor:
        """-log p of each image, [batch], exactly: the sum over its pixels.

        With `where` [batch, rows, cols] or [rows, cols] only the pixels that are True there are summed, each
        given all those before it.
        """
        images = self.levels_of(self.shaped(images))
        scores = self._scores(images)
        each = functional.cross_entropy(scores.flatten(0, 3), images.flatten(), reduction="none")
        each = each.view(images.shape).sum(3)
        if where is not None:
            each = each.masked_fill(~mask_of("where", where, images), 0)
        return each.flatten(1).sum(1)

    def shaped(self, images: Tensor) -> Tensor:
        """The images as [batch, rows, cols, channels]; raises where they are not of that shape."""
        axes = "[batch, rows, cols]" if self.channels == 1 else f"[batch, rows, cols, {self.channels}]"
        if images.is_floating_point() or images.is_complex():
            raise TensorError(
                f"pixels are whole numbers from 0 to {self.levels - 1}, got {format_tensor(images)}"
            )
        whole = images[..., None] if self.channels == 1 else images
        if whole.dim() != 4 or whole.shape[-1] != self.channels or 0 in whole.shape:
            raise TensorError(f"images must be {axes} with at least one pixel, got {format_tensor(images)}")
        home = self.net.W_in[0].device
        if images.device != home:
            raise TensorError(f"images are on {images.device} and the model is on {home}; move one of them")
        return whole.long()

    def levels_of(self, pixels: Tensor) -> Tensor:
        """The pixels; raises where they are not levels of this model."""
        low, high = (int(end) for end in pixels.aminmax())
        if low < 0 or high >= self.levels:
            raise DomainError(f"pixels are whole numbers from 0 to {self.levels - 1}, got {low} to {high}")
        return pixels

    def encode(self, pixels: Tensor) -> Tensor:
        """The numbers the net reads for the first channels of pixels: levels [.., k] give [.., k*width]."""
        if self.table is None:
            return (pixels * (2 / (self.levels - 1)) - 1).to(self.net.W_in[0].dtype)
        start = self.levels * torch.arange(pixels.shape[-1], device=pixels.device)
        return functional.embedding(pixels + start, self.table).flatten(-2)

    def scores(self, features: Tensor, earlier: Tensor, channel: int) -> Tensor:
        """The logits of all levels of a channel, [.., levels], with either head.

        From what the net gives at the pixels [.., directions*h], and what `encode` gives for the channels
        before this one.
        """
        found = self.heads[channel](torch.cat((features, earlier), -1) if channel else features)
        return torch.cat((torch.zeros_like(found), found), -1) if self.head == "bernoulli" else found

    def _scores(self, images: Tensor) -> Tensor:
        """The logits of all levels, [batch, rows, cols, channels, levels]."""
        read = self.encode(images)
        features = self.net(read)
        each = [self.scores(features, read[..., : c * self.width], c) for c in range(self.channels)]
        return torch.stack(each, 3)

    def extra_repr(self) -> str:
        """What its parts do not tell."""
        return f"levels={self.levels}, channels={self.channels}, head={self.head!r}"


def mask_of(name: str, mask: Tensor, images: Tensor) -> Tensor:
    """A mask [batch, rows, cols] or [rows, cols] as one of all pixels of images [batch, rows, cols, ..]."""
    shape = list(images.shape[:3])
    if mask.dtype != torch.bool or list(mask.shape) not in (shape, shape[1:]):
        raise TensorError(f"{name} must be bool {shape} or {shape[1:]}, got {format_tensor(mask)}")
    if mask.device != images.device:
        raise TensorError(f"{name} is on {mask.device}, the images on {images.device}; move one of them")
    return mask.expand(shape)
