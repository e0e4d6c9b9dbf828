"""The weights of every plain layer by name and shape, and random numbers to fill them with."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from random import Random
from typing import Any, TypeAlias

from lattend.cost.reference.recurrence import GATES

Shape: TypeAlias = tuple[int, ...]
Shapes: TypeAlias = dict[str, Shape]


def filled(shapes: Mapping[str, Shape], source: Random) -> dict[str, Any]:
    """Random numbers for every shape."""
    return {name: fill(shape, source) for name, shape in shapes.items()}


def fill(shape: Shape, source: Random) -> Any:
    """Lists of lists of this shape, of numbers between -1 and 1."""
    return [fill(shape[1:], source) for _ in range(shape[0])] if shape else source.uniform(-1, 1)


def size(shapes: Mapping[str, Shape]) -> int:
    """How many numbers there are in all.

    >>> size(linear(3, 4))  # 3*4 + 4
    16
    """
    return sum(prod(shape) for shape in shapes.values())


def within(name: str, shapes: Shapes) -> Shapes:
    """Shapes of one part of a layer: {"weight": …} in "norm1" is {"norm1.weight": …}."""
    return {f"{name}.{inner}": shape for inner, shape in shapes.items()}


def linear(d_in: int, d_out: int, bias: bool = True) -> Shapes:
    """Those of a linear map."""
    return {"weight": (d_out, d_in)} | ({"bias": (d_out,)} if bias else {})


def feed_forward(d: int, hidden: int, bias: bool = True, gated: bool = False) -> Shapes:
    """Those of two linear maps, or of three."""
    gate = within("gate", linear(d, hidden, bias)) if gated else {}
    return within("linear1", linear(d, hidden, bias)) | within("linear2", linear(hidden, d, bias)) | gate


def norm(d: int, kind: str) -> Shapes:
    """Those of a "layer" norm, or of an "rms" norm."""
    return {"weight": (d,)} | ({"bias": (d,)} if kind == "layer" else {})


def conv2d(c_in: int, c_out: int, kernel: tuple[int, int], groups: int = 1, bias: bool = True) -> Shapes:
    """Those of a convolution."""
    return {"weight": (c_out, c_in // groups, *kernel)} | ({"bias": (c_out,)} if bias else {})


def recurrent(kind: str, inputs: int, hidden: int, layers: int, bias: bool) -> Shapes:
    """Those of an "rnn", "lstm" or "gru", layer upon layer."""
    rows = {"rnn": 1, "lstm": 4, "gru": 3}[kind] * hidden
    shapes: Shapes = {}
    for layer in range(layers):
        shapes[f"weight_ih_l{layer}"] = (rows, hidden if layer else inputs)
        shapes[f"weight_hh_l{layer}"] = (rows, hidden)
        if bias:
            shapes |= {f"bias_ih_l{layer}": (rows,), f"bias_hh_l{layer}": (rows,)}
    return shapes


def rnn2d(h: int, c: int, cell: str = "rnn", bias: bool = False) -> Shapes:
    """Those of a recurrent net on an image, one direction of one layer."""
    rows = GATES[cell] * h
    return {"W_in": (rows, c), "W_left": (rows, h), "W_top": (rows, h)} | ({"b": (rows,)} if bias else {})


def rnn2d_stack(h: int, c: int, cell: str, directions: int, layers: int, bias: bool) -> Shapes:
    """Those of every direction of every layer."""
    shapes: Shapes = {}
    for layer in range(layers):
        one = rnn2d(h, directions * h if layer else c, cell, bias)
        for way in range(directions):
            shapes |= within(f"{layer}.{way}", one)
    return shapes


def attention(
    heads: int,
    D_i: int,
    D_hid: int,
    D_o: int,
    D_out: int,
    *,
    kv_heads: int | None = None,
    bias: bool = False,
    out_bias: bool = True,
    encoding: str | None = None,
    content: bool = False,
    D_p: int = 0,
    positions: int = 0,
    entries: int = 0,
    form: int = 3,
    D_keys: int | None = None,
    D_values: int | None = None,
) -> Shapes:
    """Those of attention: one matrix a head, D_i × D_hid, and what its encoding learns."""
    shared = kv_heads or heads
    keys = D_keys or D_i
    shapes: Shapes = {"W_v": (shared, D_values or keys, D_o), "W_out": (heads * D_o, D_out)}
    if encoding != "quadratic" or content:
        shapes |= {"W_q": (heads, D_i, D_hid), "W_k": (shared, keys, D_hid)}
    if bias:
        offsets = {"b_q": (heads, D_hid), "b_k": (shared, D_hid), "b_v": (shared, D_o)}
        shapes |= {name: shape for name, shape in offsets.items() if f"W{name[1:]}" in shapes}
    if out_bias:
        shapes["b_out"] = (D_out,)
    if encoding == "absolute":
        shapes["p"] = (positions, D_i)
    if encoding == "relative":
        shapes |= {"W_r": (heads, D_p, D_hid), "u": (heads, D_hid), "v": (heads, D_hid)}
    if encoding == "quadratic":
        shapes["v"] = (heads, form)
    if encoding == "tables":
        shapes["table"] = (heads, entries)
    return shapes


def block(
    d: int,
    heads: int,
    hidden: int,
    *,
    kv_heads: int | None = None,
    bias: bool = True,
    norms: str = "layer",
    cross: bool = False,
    gated: bool = False,
    D: int | None = None,
) -> Shapes:
    """Those of a block: norm1 before attention, norm2 before the feed-forward net, norm3 between them."""
    wide = D or d // heads
    attended = attention(heads, d, wide, wide, d, kv_heads=kv_heads, bias=bias, out_bias=bias)
    shapes = within("attention", attended) | within("norm1", norm(d, norms)) | within("norm2", norm(d, norms))
    if cross:
        shapes |= within("cross", attended) | within("norm3", norm(d, norms))
    return shapes | feed_forward(d, hidden, bias, gated)


def stack(layers: int, each: Shapes) -> Shapes:
    """Those of stacked blocks: "0", "1", …."""
    return {name: shape for layer in range(layers) for name, shape in within(str(layer), each).items()}


def vit(c: int, patch: int, tokens: int, d: int, classes: int, blocks: Shapes) -> Shapes:
    """Those of a vision transformer."""
    return {
        **within("patches", conv2d(c, d, (patch, patch))),
        "class": (d,),
        "positions": (tokens, d),
        **within("blocks", blocks),
        **within("norm", norm(d, "layer")),
        **within("head", linear(d, classes)),
    }


def vae(d: int, hidden: int, latent: int) -> Shapes:
    """Those of a variational autoencoder."""
    parts = {
        "encoder": (d, hidden),
        "mean": (hidden, latent),
        "spread": (hidden, latent),
        "decoder": (latent, hidden),
        "output": (hidden, d),
    }
    return {name: s for part, sizes in parts.items() for name, s in within(part, linear(*sizes)).items()}
