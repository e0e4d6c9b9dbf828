"""ConvAttention: the heads of a convolution, each sharp (hard execution) or of finite α (soft)."""

from __future__ import annotations

from math import prod
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from lattend import amx
from lattend.attend.attention import attention
from lattend.attend.bias import Bias
from lattend.cost.cost import Cost
from lattend.cost.sizes import Size
from lattend.counts.verdict import Verdict
from lattend.errors import DomainError, NamingError, TensorError
from lattend.nn.attention.gaussian_heads import Head
from lattend.nn.convolution.geometry import Geometry
from lattend.nn.convolution.moves import hard_heads
from lattend.nn.convolution.price import price, same_price
from lattend.nn.convolution.sharpness import check_alpha, enough
from lattend.rules.rule import Rule

Execution = Literal["hard", "soft"]
EXECUTIONS = ("hard", "soft")
WIDEST = 256  # numbers a key that the kernels of a GPU hold
SHARPEST = 1e18  # an α whose products with squared distances stay finite in float32


class ConvAttention(nn.Module):
    """Attention called like the convolution it was made from; see `from_conv`.

    `weight` [heads, c_in / groups, c_out] holds the matrices W^(h), `centres` [heads, 2] the shifts Δ,
    `alpha` [heads] how sharp soft heads are. `execution` is "hard" or "soft" and may be set at any time.
    """

    alpha: Tensor
    centres: Tensor

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        geometry: Geometry,
        *,
        groups: int = 1,
        alpha: float | Tensor | None = None,
        execution: Execution = "hard",
        learn: bool = False,
    ) -> None:
        super().__init__()
        self.geometry, self.groups, self.learn = geometry, groups, learn
        self._one_key, self._every, self._scores = geometry.rule(), geometry.everywhere(), geometry.scores()
        self.execution = execution
        self._checked: tuple[Tensor | None, int | None] = (None, None)  # the centres, and their version
        self.weight = nn.Parameter(weight)
        self.bias = None if bias is None else nn.Parameter(bias)
        sharp = _alpha_given(alpha, weight)
        shifts = torch.tensor(geometry.shifts(), device=weight.device)
        if learn:
            self.alpha, self.centres = nn.Parameter(sharp), nn.Parameter(shifts.to(sharp.dtype))
        else:
            self.register_buffer("alpha", sharp)
            self.register_buffer("centres", shifts)

    @property
    def execution(self) -> Execution:
        """How it runs: "hard", each head with one key, or "soft", with every pixel by its distance."""
        return self._execution

    @execution.setter
    def execution(self, value: Execution) -> None:
        if value not in EXECUTIONS:
            raise NamingError(f'execution is "hard" or "soft", not {value!r}')
        self._execution: Execution = value

    @property
    def c_in(self) -> int:
        """Channels of the image."""
        return self.weight.shape[1] * self.groups

    @property
    def c_out(self) -> int:
        """Channels of the output."""
        return self.weight.shape[2]

    def split(self) -> Tensor:
        """W^(h) of every head, [heads, c_in, c_out]; zeros between channels of different groups."""
        heads, depth, _ = self.weight.shape
        parts = self.weight.view(heads, depth, self.groups, -1)
        same = torch.eye(self.groups, dtype=parts.dtype, device=parts.device)
        return torch.einsum("higo,fg->hfigo", parts, same).reshape(heads, self.c_in, self.c_out)

    def heads(self) -> list[Head]:
        """Each head as plain numbers: its centre and its precision (α, 0, α)."""
        pairs = zip(self.centres.tolist(), self.alpha.tolist(), strict=True)
        return [Head((y, x), (alpha, 0.0, alpha)) for (y, x), alpha in pairs]

    def rule(self, rows: int, cols: int) -> Rule:
        """The one key of each head, on an image of this size: queries and keys row by row."""
        high, wide = self.geometry.outputs(rows, cols)
        heads = {"heads": self.geometry.heads} if self._one_key.has_heads else {}
        return self._one_key.at(n=high * wide, m=rows * cols, **heads, **self.geometry.numbers(rows, cols))

    def cost(self, *, rows: Size = "rows", cols: Size = "cols") -> Cost:
        """The price of hard execution for one image: a matrix for every attended pair."""
        return price(self, rows, cols)

    def same_price(self, quantity: str = "multiplies") -> Verdict:
        """Whether hard execution costs what `lt.cost.conv` says, decided for all rows and cols."""
        return same_price(self, quantity)

    def extra_repr(self) -> str:
        y, x = self.geometry.y, self.geometry.x
        said = [f"{self.c_in}, {self.c_out}", f"heads={y.taps}×{x.taps}"]
        for name in ("stride", "dilation"):
            pair = (getattr(y, name), getattr(x, name))
            said += [f"{name}={pair}"] if pair != (1, 1) else []
        edges = (y.before, y.after, x.before, x.after)
        said += [f"padding={edges} {self.geometry.mode}"] if any(edges) else []
        said += [f"groups={self.groups}"] if self.groups > 1 else []
        said.append(f"execution={self.execution!r}")
        if self.execution == "soft" and self.alpha.device.type != "meta":
            low, high = (f"{float(end):g}" for end in self.alpha.detach().aminmax())
            said.append(f"alpha={low}" if low == high else f"alpha={low}…{high}")
        return ", ".join(said)

    # Running

    def forward(self, x: Tensor) -> Tensor:
        """The output of the convolution, (N, c_out, rows, cols), or without N if x has none."""
        self.check(x)
        if x.dim() == 3:
            return self.forward(x[None])[0]
        return self._hard(x) if self.execution == "hard" else self._soft(x)

    def check(self, x: Tensor) -> None:
        """Raises unless x is an image, or images, that the layer takes."""
        if x.dim() not in (3, 4):
            raise TensorError(f"x is (N, channels, rows, cols), or without N, not {tuple(x.shape)}")
        if x.shape[-3] != self.c_in:
            raise TensorError(
                f"x has {x.shape[-3]} channels (axis {x.dim() - 3}), and the layer was made for {self.c_in}: "
                f"x is {tuple(x.shape)}{'; write x.movedim(-1, -3)' if x.shape[-1] == self.c_in else ''}"
            )
        if x.dtype != self.weight.dtype and not torch.is_autocast_enabled(x.device.type):
            given, mine = (str(t.dtype).removeprefix("torch.") for t in (x, self.weight))
            raise TensorError(f"x is {given} and the weights are {mine}; cast one: layer.to(x.dtype)")

    def _hard(self, x: Tensor) -> Tensor:
        if not (torch.compiler.is_compiling() or self.centres.is_meta):
            self._check_centres()
        amx.check(x)
        self.geometry.outputs(x.shape[2], x.shape[3])  # raises where the image is too small
        return hard_heads(x, self.weight, self.bias, self.geometry, self.groups)

    def _check_centres(self) -> None:
        """Checks the centres again only where they may have changed: on a GPU that waits for it."""
        version = None if self.centres.is_inference() else self.centres._version
        checked, at = self._checked
        if checked is not self.centres or version is None or at != version:
            check_centres(self)
            self._checked = (self.centres, version)

    def _soft(self, x: Tensor) -> Tensor:
        y, across, sizes = self.geometry.y, self.geometry.x, x.shape[2:]
        outputs = self.geometry.outputs(sizes[0], sizes[1])
        if self.geometry.mode == "zeros":
            x = pad(x, (across.before, across.after, y.before, y.after))
        wide = at_least_float32(self.alpha.dtype)
        bias = Bias(self._scores, alpha=self.alpha.to(wide), centre=self.centres.to(wide))
        numbers = self.geometry.numbers(sizes[0], sizes[1])
        found = self._mixed_and_projected(x.flatten(2).mT, prod(outputs), bias, numbers)
        if self.bias is not None:
            found = found + self.bias
        return found.permute(1, 2, 0).unflatten(2, outputs).contiguous()

    def _mixed_and_projected(self, z: Tensor, n: int, bias: Bias, numbers: dict[str, Any]) -> Tensor:
        """Σ_h softmax(scores) z W^(h) as [n, N, c_out], of z [N, m, c_in].

        W^(h) comes first where that takes fewer products.
        """
        heads, depth, c_out = self.weight.shape
        m = z.shape[1]
        weight = self.weight.view(heads, depth, self.groups, -1)
        if m * c_out * depth + m * n * c_out < n * c_out * depth + m * n * self.c_in:
            values = torch.einsum("nmgi,higo->nhmgo", z.unflatten(2, (self.groups, depth)), weight).flatten(3)
            return mixed(values, heads, n, self._every, bias, numbers).sum(0)
        seen = mixed(z[:, None], heads, n, self._every, bias, numbers).unflatten(3, (self.groups, depth))
        return torch.einsum("hqngi,higo->qngo", seen, weight).flatten(2)


def mixed(
    values: Tensor, heads: int, n: int, rule: Rule, bias: Bias | None, numbers: dict[str, Any]
) -> Tensor:
    """What each head gives n queries, [heads, n, N, D], of values [N, heads or 1, m, D].

    Weights depend on positions alone: where the batch can join the width of the values, softmax runs once for
    all images.
    """
    batch, _, m, width = values.shape
    together = _joins_batch(values)
    if together:
        values = values.permute(1, 2, 0, 3).flatten(2)[None]
    nothing = values.new_zeros(1, 1, 1, 1)  # scores come from the bias alone
    q, k = (nothing.expand(len(values), heads, size, 1) for size in (n, m))
    found = [
        attention(q, k, part.expand(-1, heads, -1, -1), rule, bias=bias, scale=1.0, **numbers)
        for part in ((values,) if together else values.split(WIDEST, 3))
    ]
    whole = found[0] if len(found) == 1 else torch.cat(found, 3)
    return whole[0].unflatten(2, (batch, width)) if together else whole.permute(1, 2, 0, 3)


def _joins_batch(values: Tensor) -> bool:
    """Whether the batch may join the width, which has no limit on a CPU."""
    return values.device.type == "cpu"


def at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """The dtype of α and the centres: bfloat16 has no 257, and a head there would stand on another pixel."""
    return torch.promote_types(dtype, torch.float32)


def _alpha_given(alpha: float | Tensor | None, weight: Tensor) -> Tensor:
    """One α for each head; left out, so sharp that the dtype cannot tell the leak from nothing."""
    heads = weight.shape[0]
    if alpha is None:
        alpha = enough(torch.finfo(weight.dtype).eps)
    given = torch.as_tensor(alpha, dtype=torch.float64).detach()
    if given.dim() > 1 or (given.dim() == 1 and len(given) != heads):
        raise TensorError(f"alpha is one number, or one for each of {heads} heads, not {tuple(given.shape)}")
    for value in given.flatten().tolist():
        check_alpha(value)
        if value > SHARPEST:
            raise DomainError(
                f"α = {value:g} is above {SHARPEST:g}, where scores overflow; heads of α = 40 leak nothing "
                'that float64 can tell, and execution="hard" leaks nothing at all'
            )
    return given.to(weight.device, at_least_float32(weight.dtype)).expand(heads).clone()


def check_centres(layer: ConvAttention) -> None:
    """Raises unless the heads stand where the kernel's taps are, which hard execution relies on."""
    wanted = torch.tensor(layer.geometry.shifts(), device=layer.centres.device)
    if len(layer.centres) != len(wanted):
        raise DomainError(
            f"there are {len(layer.centres)} heads, and hard execution needs one for each of {len(wanted)} "
            'taps; run them with execution = "soft"'
        )
    moved = (layer.centres.detach() != wanted).any(1).nonzero().flatten().tolist()
    if moved:
        head = moved[0]
        raise DomainError(
            f"the centre of head {head} is {tuple(layer.centres[head].tolist())}, and hard execution needs "
            f'the tap\'s own shift {tuple(wanted[head].tolist())}; run it with execution = "soft"'
        )
