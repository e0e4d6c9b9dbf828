"""The weights of every layer by name and shape, and random numbers to fill them with."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, TypeAlias

Shape: TypeAlias = tuple[int, ...]
Shapes: TypeAlias = dict[str, Shape]


def filled(shapes: Mapping[str, Shape], source: Random) -> dict[str, Any]:
    return {name: fill(shape, source) for name, shape in shapes.items()}


def fill(shape: Shape, source: Random) -> Any:
    """Lists of lists of this shape, of numbers between -1 and 1."""
    return [fill(shape[1:], source) for _ in range(shape[0])] if shape else source.uniform(-1, 1)


def within(name: str, shapes: Shapes) -> Shapes:
    return {f"{name}.{inner}": shape for inner, shape in shapes.items()}


def linear(d_in: int, d_out: int, bias: bool = True) -> Shapes:
    return {"weight": (d_out, d_in)} | ({"bias": (d_out,)} if bias else {})


def feed_forward(d: int, hidden: int, bias: bool = True, gated: bool = False) -> Shapes:
    gate = within("gate", linear(d, hidden, bias)) if gated else {}
    return within("linear1", linear(d, hidden, bias)) | within("linear2", linear(hidden, d, bias)) | gate


def norm(d: int, kind: str) -> Shapes:
    return {"weight": (d,)} | ({"bias": (d,)} if kind == "layer" else {})


def conv2d(c_in: int, c_out: int, kernel: tuple[int, int], groups: int = 1, bias: bool = True) -> Shapes:
    return {"weight": (c_out, c_in // groups, *kernel)} | ({"bias": (c_out,)} if bias else {})


def recurrent(kind: str, inputs: int, hidden: int, layers: int, bias: bool) -> Shapes:
    rows = {"rnn": 1, "lstm": 4, "gru": 3}[kind] * hidden
    found: Shapes = {}
    for layer in range(layers):
        found[f"weight_ih_l{layer}"] = (rows, hidden if layer else inputs)
        found[f"weight_hh_l{layer}"] = (rows, hidden)
        if bias:
            found |= {f"bias_ih_l{layer}": (rows,), f"bias_hh_l{layer}": (rows,)}
    return found


def rnn2d(h: int, c: int) -> Shapes:
    return {"W_in": (h, c), "W_left": (h, h), "W_top": (h, h)}


def attention(
    heads: int,
    D_i: int,
    D_hid: int,
    D_o: int,
    D_out: int,
    *,
    key_heads: int | None = None,
    bias: bool = False,
    out_bias: bool = True,
    encoding: str | None = None,
    D_p: int = 0,
    positions: int = 0,
) -> Shapes:
    few = key_heads or heads
    found: Shapes = {"W_v": (few, D_i, D_o), "W_out": (heads * D_o, D_out)}
    if encoding != "quadratic":
        found |= {"W_q": (heads, D_i, D_hid), "W_k": (few, D_i, D_hid)}
    if bias:
        offsets = {"b_q": (heads, D_hid), "b_k": (few, D_hid), "b_v": (few, D_o)}
        found |= {name: shape for name, shape in offsets.items() if f"W{name[1:]}" in found}
    if out_bias:
        found["b_out"] = (D_out,)
    if encoding == "absolute":
        found["p"] = (positions, D_i)
    if encoding == "relative":
        found |= {"W_r": (heads, D_p, D_hid), "u": (heads, D_hid), "v": (heads, D_hid)}
    if encoding == "quadratic":
        found["v"] = (heads, 3)
    return found


def block(
    d: int,
    heads: int,
    hidden: int,
    *,
    key_heads: int | None = None,
    bias: bool = True,
    norms: str = "layer",
    cross: bool = False,
    gated: bool = False,
) -> Shapes:
    """One norm for every part: norm1 for attention, norm2 for the feed-forward net, norm3 between them."""
    D = d // heads
    looks = attention(heads, d, D, D, d, key_heads=key_heads, bias=bias, out_bias=bias)
    found = within("attention", looks) | within("norm1", norm(d, norms)) | within("norm2", norm(d, norms))
    if cross:
        found |= within("cross", looks) | within("norm3", norm(d, norms))
    return found | feed_forward(d, hidden, bias, gated)


def stack(layers: int, each: Shapes) -> Shapes:
    return {name: shape for layer in range(layers) for name, shape in within(str(layer), each).items()}


def vit(c: int, patch: int, tokens: int, d: int, classes: int, blocks: Shapes) -> Shapes:
    return {
        **within("patches", conv2d(c, d, (patch, patch))),
        "class": (d,),
        "positions": (tokens, d),
        **within("blocks", blocks),
        **within("norm", norm(d, "layer")),
        **within("head", linear(d, classes)),
    }


def vae(d: int, hidden: int, latent: int) -> Shapes:
    parts = {
        "encoder": (d, hidden),
        "mean": (hidden, latent),
        "spread": (hidden, latent),
        "decoder": (latent, hidden),
        "output": (hidden, d),
    }
    return {name: s for part, sizes in parts.items() for name, s in within(part, linear(*sizes)).items()}
