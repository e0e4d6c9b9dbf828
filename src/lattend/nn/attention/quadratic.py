"""Quadratic: heads that attend around a centre, the more narrowly the greater their precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lattend.attend.bias import Bias, shape_text
from lattend.errors import DomainError, NamingError, TensorError
from lattend.nn.attention.checks import check_positive
from lattend.nn.attention.encodings import Encoding

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
