"""Encodings: how positions enter the scores of attention, each a small module.

An encoding may move tokens before they are projected, make queries and keys longer, or add a Bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lattend.attend.bias import Bias, shape_text
from lattend.errors import DomainError, NamingError, TensorError
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


MOST = 1e18  # of a sharpness: times the squares of shifts it stays far from the end of float32


class Quadratic(Encoding):
    """-(δ - Δ)ᵀ P (δ - Δ) + Δᵀ P Δ added to the score of shift δ = k - q: head h attends around its centre Δ.

    P = α I with the sharpness α, so that it is -α(‖δ - Δ‖² - ‖Δ‖²), or with isotropic=False any precision,
    (a, b, c) for a dy² + 2b dy dx + c dx². What is learned is a root of it, and no step makes it negative.
    Without `content` there are no queries and keys. `learned=False` keeps centres and sharpness as they are.
    """

    def __init__(
        self,
        heads: int,
        axes: int = 2,
        *,
        centres: Tensor | Sequence[Any] | None = None,
        alpha: Tensor | Sequence[float] | float | None = None,
        precision: Tensor | Sequence[Any] | None = None,
        isotropic: bool = True,
        content: bool = False,
        learned: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_positive(heads=heads)
        if axes not in (1, 2):
            raise DomainError(f"axes is 1 on a line and 2 on an image, not {axes}")
        self.heads, self.axes, self.content, self.learned = heads, axes, content, learned
        self.isotropic = isotropic and precision is None
        if not self.isotropic and axes == 1:
            raise DomainError("on a line there is one direction: leave out isotropic=False and precision")
        if precision is not None and alpha is not None:
            raise NamingError("give alpha, one sharpness for all directions, or precision, not both")
        kind: dict[str, Any] = {"device": device, "dtype": dtype or torch.get_default_dtype()}
        shape = (heads,) if self.isotropic else (heads, 3)
        for name, size in (("centres", (heads, axes)), ("root", shape)):
            tensor = torch.empty(size, **kind)
            if learned:
                self.register_parameter(name, nn.Parameter(tensor))
            else:
                self.register_buffer(name, tensor)
        self.centres: Tensor
        self.root: Tensor
        self.reset_parameters()
        with torch.no_grad():
            if centres is not None:
                places = _shaped("centres", centres, (heads, axes), kind["dtype"])
                if not places.is_meta and not bool(places.isfinite().all()):
                    raise DomainError(f"centres must be finite, got {places.tolist()}")
                self.centres.copy_(places)
            if alpha is not None:
                self.set_alpha(alpha)
            if precision is not None:
                self.root.copy_(_root_of(_shaped("precision", precision, (heads, 3), kind["dtype"])))

    def extra_repr(self) -> str:
        return (
            f"heads={self.heads}, isotropic={self.isotropic}, content={self.content}, learned={self.learned}"
        )

    @property
    def alpha(self) -> Tensor:
        """The sharpness of each head, [heads], the same in all directions; a larger one is narrower."""
        if not self.isotropic:
            raise NamingError("these heads have a sharpness that differs by direction: ask for precision")
        return self.root * self.root

    @property
    def precision(self) -> Tensor:
        """(a, b, c) of a dy² + 2b dy dx + c dx² for each head: [heads, 3]."""
        if self.isotropic:
            return torch.stack([self.alpha, torch.zeros_like(self.root), self.alpha], -1)
        low, cross, high = self.root.unbind(-1)  # P = L Lᵀ with L = [[low, 0], [cross, high]]
        return torch.stack([low * low, low * cross, cross * cross + high * high], -1)

    def set_alpha(self, alpha: Tensor | Sequence[float] | float) -> None:
        """Sets the sharpness of each head, from one number for all or one each."""
        given = torch.as_tensor(alpha, dtype=self.root.dtype)
        each = given.expand(self.centres.shape[0]) if given.dim() == 0 else given
        sharp = _shaped("alpha", each, (self.centres.shape[0],), self.root.dtype)
        if not sharp.is_meta and not bool(((sharp > 0) & (sharp <= MOST)).all()):
            raise DomainError(f"alpha must be positive and finite, at most {MOST:g}, got {sharp.tolist()}")
        with torch.no_grad():
            if self.isotropic:
                self.root.copy_(sharp.sqrt())
            else:
                self.root.copy_(torch.stack([sharp.sqrt(), sharp * 0, sharp.sqrt()], -1))

    def bias(self) -> Bias:
        if self.isotropic:
            return Bias.quadratic(self.alpha, self.centres)
        down, across = (f"{k} - {q} - 2*centre[head, {i}]" for i, (k, q) in enumerate(_SHIFTS))
        rows, cols = (f"({k} - {q})" for k, q in _SHIFTS)
        return Bias(
            f"-({rows}*(p[head, 0]*({down}) + p[head, 1]*({across}))"
            f" + {cols}*(p[head, 1]*({down}) + p[head, 2]*({across})))",
            p=self.precision,
            centre=self.centres,
        )

    def price(self) -> dict[str, Any]:
        """r_δ has ‖δ‖² and the components of δ, or its three squares and the components."""
        numbers = (self.axes or 2) + (1 if self.isotropic else 3)
        options = {"encoding": "quadratic", "D_p": numbers, "content": self.content}
        return options | ({} if self.learned else {"learned": False})

    def reset_parameters(self) -> None:
        """Centres within a few positions of the query, and a sharpness of 1."""
        with torch.no_grad():
            self.centres.normal_(std=2)
            self.root.fill_(1)
            if not self.isotropic:
                self.root[:, 1] = 0


_SHIFTS = (("ky", "qy"), ("kx", "qx"))


def _shaped(name: str, given: Any, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    found = torch.as_tensor(given, dtype=dtype)
    if found.shape != shape:
        wanted = f"({', '.join(map(str, shape))})"
        raise TensorError(f"{name} of these heads have shape {wanted}, got {shape_text(found)}")
    return found


def _root_of(precision: Tensor) -> Tensor:
    """The numbers of L with L Lᵀ = P, lower left triangle row by row."""
    a, b, c = precision.unbind(-1)
    if not precision.is_meta and not bool((precision.abs() <= MOST).all()):
        raise DomainError(f"precision must be finite, at most {MOST:g}, got {precision.tolist()}")
    if not precision.is_meta and not bool(((a > 0) & (a * c > b * b)).all()):
        raise DomainError(
            f"a precision (a, b, c) needs a > 0 and ac > b², so that scores fall off in every direction; "
            f"got {precision.tolist()}"
        )
    low = a.sqrt()
    return torch.stack([low, b / low, (c - b * b / a).sqrt()], -1)
