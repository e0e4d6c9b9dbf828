"""The weights of attention, of blocks and of models by name and shape."""

from __future__ import annotations

from lattend.cost.reference.shapes import Shapes, conv2d, feed_forward, linear, norm, within


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
    content: bool = False,
    D_p: int = 0,
    positions: int = 0,
    entries: int = 0,
    form: int = 3,
    D_keys: int | None = None,
    D_values: int | None = None,
) -> Shapes:
    few = key_heads or heads
    keys = D_keys or D_i
    found: Shapes = {"W_v": (few, D_values or keys, D_o), "W_out": (heads * D_o, D_out)}
    if encoding != "quadratic" or content:
        found |= {"W_q": (heads, D_i, D_hid), "W_k": (few, keys, D_hid)}
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
        found["v"] = (heads, form)
    if encoding == "tables":
        found["table"] = (heads, entries)
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
