"""MultiHeadAttention: who attends to whom by a rule, where they are by an encoding."""

from __future__ import annotations

from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn

from lattend.attend.attention import attention
from lattend.attend.bias import shape_text
from lattend.cost.cost import Cost
from lattend.cost.sizes import Size
from lattend.errors import NamingError, TensorError
from lattend.nn.attention import exchange, inspection
from lattend.nn.attention.checks import check_kind, check_positive, check_tensor
from lattend.nn.attention.encodings import Absolute, Encoding, Relative
from lattend.nn.attention.gaussian_heads import Head
from lattend.nn.attention.named import anywhere, encoding_of, rules_of, sized
from lattend.nn.attention.quadratic import Quadratic
from lattend.rules.reader import RuleLike, read_rule
from lattend.rules.rule import Rule


class MultiHeadAttention(nn.Module):
    """Multi-head attention of tokens [batch, n, d_in], or pixels [batch, rows, cols, d_in], under a rule.

    A head's queries and keys have d_hidden numbers, its values d_head_out. `rule` is a Rule, its text or
    its name; one that names no position, such as "full", takes a line and an image. `encoding` is None,
    "absolute", "sinusoidal", "tables", "relative", "quadratic" or one of these modules. `values` are the
    rule's parameters, and the sizes n=…, m=… or rows=…, cols=… where an encoding has numbers for each
    position. Keys may come from tokens of d_keys numbers, values from d_values.

    Scores are scale · q·k, scale = 1/√d_hidden unless given, plus the bias of the encoding.

    >>> layer = MultiHeadAttention(3, 4, 5, 6, heads=2)
    >>> sum(p.numel() for p in layer.parameters())  # 2*3*(2*4 + 5) + 2*5*6 + 6
    144
    >>> layer(torch.ones(1, 7, 8, 3)).shape
    torch.Size([1, 7, 8, 6])
    """

    def __init__(
        self,
        d_in: int,
        d_hidden: int,
        d_head_out: int,
        d_out: int,
        heads: int,
        rule: RuleLike = "full",
        encoding: Encoding | str | None = None,
        bias: bool = False,
        out_bias: bool = True,
        *,
        scale: float | None = None,
        d_keys: int | None = None,
        d_values: int | None = None,
        device: Any = None,
        dtype: Any = None,
        **values: int,
    ) -> None:
        super().__init__()
        wide = {"d_in": d_in, "d_hidden": d_hidden, "d_head_out": d_head_out, "d_out": d_out, "heads": heads}
        wide["d_keys"] = d_in if d_keys is None else d_keys
        wide["d_values"] = wide["d_keys"] if d_values is None else d_values
        check_positive(**wide)
        self.d_in, self.d_hidden, self.d_head_out, self.d_out = d_in, d_hidden, d_head_out, d_out
        self.d_keys, self.d_values = wide["d_keys"], wide["d_values"]
        self.head_count = heads
        self.scale = d_hidden**-0.5 if scale is None else float(scale)
        self.rules = rules_of(rule, values)
        own = any("m" in found.sizes for found in self.rules.values())
        self.any_keys = anywhere(read_rule(rule)) and not own  # keys of any number, without being told m
        self.cross = own or (self.d_keys, self.d_values) != (d_in, d_in)
        kind = {"device": device, "dtype": dtype}
        sizes = {"heads": heads, "d_in": d_in, "d_hidden": d_hidden, "d_keys": self.d_keys}
        self.encoding = encoding_of(encoding, self.rules, cross=self.cross, **sizes, **kind)
        self._check_encoding()

        def learned(present: bool, *shape: int) -> nn.Parameter | None:
            return nn.Parameter(torch.empty(shape, **kind)) if present else None

        content = self.encoding.content
        self.W_q = learned(content, heads, d_in, d_hidden)
        self.W_k = learned(content, heads, self.d_keys, d_hidden)
        self.W_v = nn.Parameter(torch.empty(heads, self.d_values, d_head_out, **kind))
        self.W_out = nn.Parameter(torch.empty(heads, d_head_out, d_out, **kind))
        self.b_q = learned(bias and content, heads, d_hidden)
        self.b_k = learned(bias and content, heads, d_hidden)
        self.b_v = learned(bias, heads, d_head_out)
        self.b_out = learned(out_bias, d_out)
        self.reset_parameters()

    def _check_encoding(self) -> None:
        found = self.encoding
        if found.heads is not None and found.heads != self.head_count:
            raise TensorError(f"the encoding has {found.heads} heads and the layer {self.head_count}")
        if found.axes is not None:
            if found.axes not in self.rules:
                kinds = {1: "a line", 2: "an image"}
                rule = next(iter(self.rules.values()))
                raise NamingError(
                    f'rule "{rule.text}" is on {kinds[len(rule.axes)]}, '
                    f"and {type(found).__name__} on {kinds[found.axes]}"
                )
            self.rules = {found.axes: self.rules[found.axes]}
        if isinstance(found, Relative) and found.d_hidden != self.d_hidden:
            raise TensorError(f"Relative has d_hidden = {found.d_hidden} and the layer {self.d_hidden}")
        if isinstance(found, Absolute):
            widths = {"d_in": self.d_in, "d_keys": self.d_keys}
            self.rules = {len(found.sizes): sized(found, next(iter(self.rules.values())), self.cross, widths)}

    def reset_parameters(self) -> None:
        """Fills the matrices as Glorot and Bengio (2010) do, and the biases with zeros."""
        for W, width in ((self.W_q, self.d_hidden), (self.W_k, self.d_hidden), (self.W_v, self.d_head_out)):
            if W is not None:
                bound = sqrt(6 / (W.shape[1] + self.head_count * width))
                nn.init.uniform_(W, -bound, bound)
        bound = sqrt(6 / (self.head_count * self.d_head_out + self.d_out))
        nn.init.uniform_(self.W_out, -bound, bound)
        for b in (self.b_q, self.b_k, self.b_v, self.b_out):
            if b is not None:
                nn.init.zeros_(b)

    # Running

    def forward(
        self,
        x: Tensor,
        keys: Tensor | None = None,
        values: Tensor | None = None,
        *,
        kernel: str | None = None,
        **given: Any,
    ) -> Tensor:
        """Each token's output [batch, *places, d_out]; keys come from x, values from the keys' tokens.

        `given` are parameters and arrays of the rule that are still open, and m=… where a rule of positions
        meets keys of another number.
        """
        inspection.check_given(given)
        rule = self.rule_for(x)
        if keys is not None and x.dim() == 3 and self.any_keys:
            given = {"m": keys.shape[1], **given}
        q, k, v = self.projected(x, keys, values)
        how: dict[str, Any] = {"scale": self.scale, "bias": self.encoding.bias(), "kernel": kernel}
        mixed = attention(q, k, v, rule, **how, **given)
        out = mixed.movedim(1, -2).flatten(-2) @ self.W_out.flatten(0, 1)
        return out if self.b_out is None else out + self.b_out

    def rule_for(self, x: Tensor) -> Rule:
        """The rule of an input, by its number of axes."""
        check_tensor("x", x)
        shapes = {1: "[batch, n, d_in]", 2: "[batch, rows, cols, d_in]"}
        if x.dim() - 2 not in self.rules:
            rule = next(iter(self.rules.values()))
            wanted = " or ".join(shapes[axes] for axes in self.rules)
            raise TensorError(f'x has shape {shape_text(x)}, and the rule "{rule.text}" takes {wanted}')
        return self.rules[x.dim() - 2]

    def projected(
        self, x: Tensor, keys: Tensor | None = None, values: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values as they are multiplied: [batch, heads, *places, …]."""
        others = x if keys is None else keys
        valued = others if values is None else values
        widths = (("x", x, self.d_in), ("keys", others, self.d_keys), ("values", valued, self.d_values))
        for name, tokens, width in widths:
            check_tensor(name, tokens)
            if tokens.shape[-1] != width:
                first = tokens.dim() == 4 and tokens.shape[1] == width
                hint = f"; write {name}.movedim(1, -1)" if first else ""
                raise TensorError(
                    f"{name} has shape {shape_text(tokens)}, and its tokens have {width} numbers{hint}"
                )
            check_kind(name, tokens, self.W_v)
        v = _by_heads(valued, self.W_v, self.b_v)
        if self.W_q is None or self.W_k is None:  # the encoding alone decides
            q, k = (v.new_zeros(v.shape[0], self.head_count, *y.shape[1:-1], 1) for y in (x, others))
            return q, k, v
        from_queries = self.encoding.moved(x)
        from_keys = self.encoding.moved(others, "keys") if self.cross else self.encoding.moved(others)
        q = _by_heads(from_queries, self.W_q, self.b_q)
        k = _by_heads(from_keys, self.W_k, self.b_k)
        return *self.encoding.lengthened(q, k), v

    # Inspection

    def split(self) -> Tensor:
        """The matrix W^(h) = W_v^(h) W_out^(h) of each head, [heads, d_values, d_out].

        An output is Σ_h (Σ_k weight_k x_k) W^(h) + bias.
        """
        return self.W_v @ self.W_out

    @property
    def bias(self) -> Tensor | None:
        """Added to the sum over heads: b_out + Σ_h b_v^(h) W_out^(h); a row without keys gets b_out."""
        if self.b_v is None:
            return self.b_out
        added = torch.einsum("ho,hod->d", self.b_v, self.W_out)
        return added if self.b_out is None else added + self.b_out

    def heads(self) -> list[Head]:
        """Centre and precision of each head of a quadratic encoding, as plain numbers."""
        found = self.encoding
        if not isinstance(found, Quadratic):
            own = "none" if type(found) is Encoding else f'"{type(found).__name__.lower()}"'
            raise NamingError(
                f'centres and widths belong to encoding="quadratic", and the encoding of this layer is {own}'
            )
        return inspection.heads_of(found)

    def scores(self, query: int | tuple[int, ...], x: Tensor | None = None, **sizes: int) -> Tensor:
        """The scores of one query, -inf where no pair is attended: [heads, *places].

        Without x those of zeros, which positions alone decide; with x [batch, heads, *places].
        """
        return inspection.scores(self, query, x, sizes)

    def weights(self, x: Tensor, **given: Any) -> Tensor:
        """All weights, [batch, heads, *places of queries, *places of keys], of a small input."""
        return inspection.weights(self, x, given)

    def cost(self, **sizes: Size) -> Cost:
        """The price of the layer, for n=…, or rows=…, cols=…; sizes not given stay open.

        >>> MultiHeadAttention(3, 4, 5, 6, heads=2).cost(rows=7, cols=8).parameters
        144
        """
        return inspection.cost(self, sizes)

    def extra_repr(self) -> str:
        rule = next(iter(self.rules.values()))
        widths = f"{self.d_in}, {self.d_hidden}, {self.d_head_out}, {self.d_out}, heads={self.head_count}"
        return f'{widths}, rule="{rule}"'

    # To torch and back

    @classmethod
    def from_torch(
        cls, module: nn.MultiheadAttention, rule: RuleLike = "full", **values: int
    ) -> MultiHeadAttention:
        """The layer with the weights of a torch.nn.MultiheadAttention, taking [batch, n, embed_dim]."""
        return exchange.from_torch(cls, module, rule, values)

    def to_torch(self) -> nn.MultiheadAttention:
        """The torch.nn.MultiheadAttention with these weights, batch_first; raises where there is none."""
        return exchange.to_torch(self)


def _by_heads(tokens: Tensor, W: Tensor, b: Tensor | None) -> Tensor:
    """Tokens [batch, *places, d] times W [heads, d, D], plus b: [batch, heads, *places, D]."""
    heads, d, width = W.shape
    found = (tokens @ W.transpose(0, 1).reshape(d, heads * width)).unflatten(-1, (heads, width))
    return (found if b is None else found + b).movedim(-2, 1)
