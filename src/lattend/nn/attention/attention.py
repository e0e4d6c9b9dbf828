"""MultiHeadAttention: who attends to whom by a rule, where they are by an encoding."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod, sqrt
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lattend.attend.attention import attention
from lattend.attend.bias import Bias, shape_text
from lattend.attend.seams import evaluate
from lattend.cost.cost import Cost
from lattend.cost.layers.attention import attention as price_of
from lattend.cost.sizes import Size
from lattend.errors import DomainError, NamingError, TensorError, TooLarge
from lattend.nn.attention import exchange
from lattend.nn.attention.checks import check_kind, check_positive, check_tensor
from lattend.nn.attention.encodings import Absolute, Encoding, Quadratic, Relative
from lattend.nn.attention.gaussian_heads import Head
from lattend.nn.attention.readers import anywhere, encoding_of, rules_of, sized
from lattend.rules.reader import RuleLike, read_rule
from lattend.rules.rule import Rule

MOST_WEIGHTS = 1 << 27
OWN = {  # what attention takes besides a rule's values, and the layer decides
    "rule": "give it to the layer",
    "scale": "give it to the layer",
    "bias": "give an encoding to the layer",
    **dict.fromkeys(("q", "k", "v"), "it is made by the layer"),
    **dict.fromkeys(("return_lse", "return_max_logit"), "take lt.attention(*layer.projected(x), …)"),
}


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
        _check_given(given)
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
        centres, precisions = found.centres.tolist(), found.precision.tolist()
        padded = [(0.0, *centre) if len(centre) == 1 else tuple(centre) for centre in centres]
        return [Head(centre, tuple(p)) for centre, p in zip(padded, precisions, strict=True)]

    def scores(self, query: int | tuple[int, ...], x: Tensor | None = None, **sizes: int) -> Tensor:
        """The scores of one query, -inf where no pair is attended: [heads, *places].

        Without x those of zeros, which positions alone decide; with x [batch, heads, *places].
        """
        place = (query,) if isinstance(query, int) else tuple(query)
        if len(place) not in self.rules:
            raise NamingError(
                f"a query of this layer has {' or '.join(map(str, self.rules))} numbers, got {place}"
            )
        rule = self.rules[len(place)]
        for name, size in sizes.items():
            if rule.values.get(name, size) != size:
                raise DomainError(f"{name} = {size} is given, and the layer was made for {rule.values[name]}")
        given = {**rule.values, **sizes}
        if x is None:
            missing = [axis.queries for axis in rule.axes if axis.queries not in given]
            if missing:
                raise NamingError(
                    f"scores without x need the sizes: give {', '.join(f'{s}=…' for s in missing)}"
                )
            shape = [given[axis.queries] for axis in rule.axes]
            tokens = self.W_v.new_zeros(1, *shape, self.d_in)
        else:
            if len(self.rule_for(x).axes) != len(place):
                raise NamingError(
                    f"a query of x with shape {shape_text(x)} has {x.dim() - 2} numbers, got {place}"
                )
            tokens, shape = x, list(x.shape[1:-1])
            for axis, size in zip(rule.axes, shape, strict=True):
                if given.get(axis.queries, size) != size:
                    raise DomainError(f"{axis.queries} = {given[axis.queries]} is given, but x has {size}")
        known = {axis.queries: size for axis, size in zip(rule.axes, shape, strict=True)} | sizes
        known |= {"heads": self.head_count} if rule.has_heads else {}
        bound = rule.complete(**{name: size for name, size in known.items() if name not in rule.values})
        for axis, size in zip(bound.axes, shape, strict=True):
            if bound.lengths[axis.key] != size:
                raise DomainError(
                    f"scores are those of x alone, {size} keys, and {axis.keys} = {bound.lengths[axis.key]}"
                )
        bound.located("query", [axis.query for axis in bound.axes], place)
        q, k, _ = self.projected(tokens)
        asked = q[(slice(None), slice(None), *place)]
        found = self.scale * torch.einsum("bhd,bh...d->bh...", asked, k)
        bias = self.encoding.bias()
        if bias is not None:
            found = found + _added(bias, bound, place, self.head_count, found)
        attended = torch.from_numpy(_attended(bound, place)).to(found.device)
        found = found.masked_fill(~attended, float("-inf"))
        return found[0] if x is None else found

    def weights(self, x: Tensor, **given: Any) -> Tensor:
        """All weights, [batch, heads, *places of queries, *places of keys], of a small input."""
        _check_given(given)
        rule, places = self.rule_for(x), x.shape[1:-1]
        n = prod(places)
        if x.shape[0] * self.head_count * n * n > MOST_WEIGHTS:
            raise TooLarge(
                f"the weights of {n:,} × {n:,} pairs in {self.head_count} heads are more than "
                f"{MOST_WEIGHTS:,} numbers; ask for one query: layer.scores(query, x).softmax(…)"
            )
        q, k, _ = self.projected(x)
        units = torch.eye(n, dtype=q.dtype, device=q.device).view(*places, n)
        v = units.expand(x.shape[0], self.head_count, *units.shape)
        found = attention(q, k, v, rule, scale=self.scale, bias=self.encoding.bias(), **given)
        return found.unflatten(-1, places)

    def cost(self, **sizes: Size) -> Cost:
        """The price of the layer, for n=…, or rows=…, cols=…; sizes not given stay open.

        >>> MultiHeadAttention(3, 4, 5, 6, heads=2).cost(rows=7, cols=8).parameters
        144
        """
        wanted = {1: ("n", "m"), 2: ("rows", "cols")}
        fitting = [axes for axes in self.rules if any(name in sizes for name in wanted[axes])]
        axes = fitting[0] if fitting else min(self.rules)
        rule = self.rules[axes]
        for name, size in sizes.items():
            if name in rule.values and rule.values[name] != size:
                raise DomainError(
                    f"{name} = {size} is asked for, and the layer was made for {rule.values[name]}"
                )
        options: dict[str, Any] = {"heads": self.head_count, "D_i": self.d_in, "D_hid": self.d_hidden}
        options |= {"D_o": self.d_head_out, "D_out": self.d_out}
        options |= {"D_keys": self.d_keys, "D_values": self.d_values} if self.cross else {}
        options |= {"bias": self.b_v is not None, "out_bias": self.b_out is not None}
        options |= {**self.encoding.price(), **sizes}
        return price_of(rule, **options)

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


def _check_given(given: Mapping[str, Any]) -> None:
    """Raises where a call of the layer is given what the layer decides."""
    for name in given:
        if name in OWN:
            raise NamingError(f"a call of this layer takes no {name}: {OWN[name]}")


def _added(bias: Bias, bound: Rule, place: tuple[int, ...], heads: int, like: Tensor) -> Tensor:
    """The bias of one query's row, broadcast to [batch, heads, *places]."""
    axes, lengths = len(place), like.shape[2:]
    names: dict[str, Any] = dict(bound.values)
    names["head"] = torch.arange(heads, device=like.device).view(-1, *[1] * axes)
    names["batch"] = torch.arange(len(like), device=like.device).view(-1, *[1] * (1 + axes))
    for at, axis in enumerate(bound.axes):
        along = [-1 if other == at else 1 for other in range(axes)]
        names |= {axis.query: place[at], axis.key: torch.arange(lengths[at], device=like.device).view(along)}
    tensors = {name: tensor.to(like.dtype) for name, tensor in bias.tensors.items()}
    return evaluate(bias.term, names, tensors)


def _attended(bound: Rule, place: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """The attended keys of one query: [heads or 1, *places]."""
    ranges = {name: np.arange(length) for name, length in bound.lengths.items()}
    ranges |= {axis.query: np.array([at]) for axis, at in zip(bound.axes, place, strict=True)}
    return bound.mask_at(ranges).reshape(-1, *[bound.lengths[axis.key] for axis in bound.axes])
