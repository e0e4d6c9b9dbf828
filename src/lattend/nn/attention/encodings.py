"""Encodings: how positions enter the scores of attention, each a small module.

An encoding may move tokens before they are projected, make queries and keys longer, or add a Bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lattend.attend.bias import Bias, shape_text
from lattend.errors import DomainError, TensorError
from lattend.nn.attention.checks import check_positive, read_places
from lattend.rules.rule import check_integer

SMALL = 0.02  # spread of learned positions to begin with

LONGEST = 10000.0  # the slowest wave turns once in about 2π times as many positions


class Encoding(nn.Module):
    """No encoding: positions do not matter. The others change one of its parts."""

    content = True  # whether queries are multiplied with keys
    axes: int | None = None  # of the inputs it fits: 1 for a line, 2 for an image, None for both
    heads: int | None = None

    def moved(self, tokens: Tensor, side: str = "queries") -> Tensor:
        """Tokens [batch, *places, d] as "queries" or "keys" are projected from."""
        return tokens

    def lengthened(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys [batch, heads, *places, D_hid], as they are multiplied."""
        return q, k

    def bias(self) -> Bias | None:
        """What is added to the scaled products."""
        return None

    def price(self) -> dict[str, Any]:
        """Its arguments to lt.cost.attention."""
        return {}

    def reset_parameters(self) -> None:
        """Fills what is learned with numbers to begin with."""


class Absolute(Encoding):
    """A learned vector for each position, added to the tokens of queries and keys, not of values.

    `sizes` are (n,) or (rows, cols); keys that come from other tokens have a table [*key_sizes, d_keys].
    """

    def __init__(
        self,
        d_in: int,
        sizes: int | Sequence[int],
        *,
        d_keys: int | None = None,
        key_sizes: int | Sequence[int] | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        places, wide = read_places("sizes", sizes), d_in if d_keys is None else d_keys
        check_positive(d_in=d_in, d_keys=wide)
        self.axes = len(places)
        self.P = nn.Parameter(torch.empty(*places, d_in, device=device, dtype=dtype))
        self.P_k = None
        if key_sizes is not None:
            others = read_places("key_sizes", key_sizes)
            if len(others) != len(places):
                raise DomainError(f"sizes are {places} and key_sizes {others}: both on a line or on an image")
            self.P_k = nn.Parameter(torch.empty(*others, wide, device=device, dtype=dtype))
        self.reset_parameters()

    @property
    def sizes(self) -> tuple[int, ...]:
        """(n,) or (rows, cols) of the positions of queries."""
        return tuple(self.P.shape[:-1])

    def moved(self, tokens: Tensor, side: str = "queries") -> Tensor:
        table = self.P if side == "queries" else self.P_k
        if table is None:
            raise TensorError(
                "keys come from other tokens, whose positions have no vectors: give key_sizes=… to Absolute"
            )
        if tokens.shape[1:] != table.shape:
            raise TensorError(
                f"tokens of {side} are {shape_text(tokens)}, and the learned positions {shape_text(table)}: "
                "an absolute encoding takes inputs of its own sizes only"
            )
        return tokens + table

    def price(self) -> dict[str, Any]:
        return {"encoding": "absolute"}

    def extra_repr(self) -> str:
        return f"{self.P.shape[-1]}, {self.sizes}"

    def reset_parameters(self) -> None:
        for table in self.parameters():
            nn.init.normal_(table, std=SMALL)


class Sinusoidal(Encoding):
    """Sines and cosines of each position, added to the tokens of queries and keys; nothing is learned.

    On an image the first half of a token's numbers tells the row, the second half the column.
    """

    def __init__(self, longest: float = LONGEST) -> None:
        super().__init__()
        self.longest = longest

    def moved(self, tokens: Tensor, side: str = "queries") -> Tensor:
        at = waves(tokens.shape[1:-1], tokens.shape[-1], self.longest, like=tokens)
        return tokens + at.flatten(-3)

    def price(self) -> dict[str, Any]:
        return {"encoding": "sinusoidal"}


class Tables(Encoding):
    """A learned number for each head and shift δ = k - q, added to the scores: [heads, 2r + 1, …].

    `radius` is r, or (ry, rx) on an image; a key further away takes the number at the end.
    """

    def __init__(
        self, heads: int, radius: int | Sequence[int], *, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        check_positive(heads=heads)
        reach = tuple(radius) if isinstance(radius, Sequence) else (radius,)
        for r in reach:
            check_integer("radius", r)
            if r < 0:
                raise DomainError(f"radius must be at least 0, got {r}")
        if len(reach) not in (1, 2):
            raise DomainError(f"radius is r on a line and (ry, rx) on an image, not {radius}")
        self.heads, self.axes, self.radius = heads, len(reach), reach
        sizes = [2 * r + 1 for r in reach]
        self.table = nn.Parameter(torch.empty(heads, *sizes, device=device, dtype=dtype))
        self.reset_parameters()

    def bias(self) -> Bias:
        return Bias.relative(self.table)

    def price(self) -> dict[str, Any]:
        return {"encoding": "tables", "radius": self.radius}

    def extra_repr(self) -> str:
        return f"heads={self.heads}, radius={self.radius}"

    def reset_parameters(self) -> None:
        nn.init.normal_(self.table, std=SMALL)


class Relative(Encoding):
    """Four terms: x_q W_q W_kᵀ x_k + x_q W_q W̃ r_δ + u W_k x_k + v W̃ r_δ, r_δ sines and cosines of δ = k - q.

    The first and third are (x_q W_q + u) · x_k W_k. In the others waves of k - q split into waves of k
    times waves of q: D_p more numbers in each query and key, and no array of pairs.
    """

    def __init__(
        self,
        heads: int,
        d_hidden: int,
        d_p: int,
        longest: float = LONGEST,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_positive(heads=heads, d_hidden=d_hidden, d_p=d_p)
        check_width(d_p, 1)
        self.heads, self.d_hidden, self.d_p, self.longest = heads, d_hidden, d_p, longest
        self.W_r = nn.Parameter(torch.empty(heads, d_p, d_hidden, device=device, dtype=dtype))
        self.u = nn.Parameter(torch.empty(heads, d_hidden, device=device, dtype=dtype))
        self.v = nn.Parameter(torch.empty(heads, d_hidden, device=device, dtype=dtype))
        self.reset_parameters()

    def lengthened(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        places, between = q.shape[2:-1], [1] * (q.dim() - 3)
        u, v = (x.view(x.shape[0], *between, x.shape[1]) for x in (self.u, self.v))
        W_r = self.W_r.view(self.W_r.shape[0], *between[1:], *self.W_r.shape[1:])
        asked = (q + v) @ W_r.mT  # [batch, heads, *places, d_p]
        here = waves(places, self.d_p, self.longest, like=q)
        there = waves(k.shape[2:-1], self.d_p, self.longest, like=k).flatten(-3)
        far = there.expand(*k.shape[:-1], self.d_p)
        return torch.cat([q + u, rotated(asked, here)], -1), torch.cat([k, far], -1)

    def price(self) -> dict[str, Any]:
        return {"encoding": "relative", "D_p": self.d_p}

    def extra_repr(self) -> str:
        return f"heads={self.heads}, d_p={self.d_p}"

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.W_r)
        nn.init.zeros_(self.u)
        nn.init.zeros_(self.v)


def waves(places: Sequence[int], d: int, longest: float = LONGEST, *, like: Tensor | None = None) -> Tensor:
    """The sines, then the cosines, of each axis at every position: [*places, axes, 2, d / (2 axes)].

    Along an axis wave i is sin and cos of ω_i·position, ω_i = longest^(-i/f) for f = d/(2 axes) waves.

    >>> waves([3], 2)[2].flatten()  # sin 2, cos 2
    tensor([ 0.9093, -0.4161], dtype=torch.float64)
    """
    axes = len(places)
    check_width(d, axes)
    many = d // (2 * axes)
    device = None if like is None else like.device
    speeds = longest ** (-torch.arange(many, dtype=torch.float64, device=device) / many)
    found: list[Tensor] = []
    for axis, size in enumerate(places):
        angles = torch.arange(size, dtype=torch.float64, device=device)[:, None] * speeds
        both = torch.stack([angles.sin(), angles.cos()], 1)  # [size, 2, many]
        along = [size if other == axis else 1 for other in range(axes)]
        found.append(both.view(*along, 2, many).expand(*places, 2, many))
    whole = torch.stack(found, -3)
    return whole if like is None else whole.to(like.dtype)


def rotated(numbers: Tensor, at: Tensor) -> Tensor:
    """Numbers g that meet waves of k - q, as numbers that meet waves of k: rotated by the waves `at` q.

    sin(k-q) = sin k cos q - cos k sin q and cos(k-q) = cos k cos q + sin k sin q, so that
    g_s sin(k-q) + g_c cos(k-q) = (g_s cos q + g_c sin q) sin k + (g_c cos q - g_s sin q) cos k.
    """
    g_s, g_c = numbers.unflatten(-1, at.shape[-3:]).unbind(-2)
    s, c = at.unbind(-2)
    return torch.stack([g_s * c + g_c * s, g_c * c - g_s * s], -2).flatten(-3)


def check_width(d: int, axes: int) -> None:
    """Raises unless d numbers are a sine and a cosine for each axis, the same number of times."""
    if d % (2 * axes):
        where = "a line" if axes == 1 else "an image"
        raise DomainError(
            f"{d} numbers are no sines and cosines of each axis of {where}; take a multiple of {2 * axes}"
        )
