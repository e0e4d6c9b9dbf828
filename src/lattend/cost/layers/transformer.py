"""Transformers and VAEs: blocks of attention and feed-forward, and whole models made of layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lattend.cost.amount import ONE, Amount
from lattend.cost.cost import Cost, single
from lattend.cost.layer import Array, Builder, Layer, ReferenceRun
from lattend.cost.layers.attention import attention
from lattend.cost.layers.conv import output_size, patch_embedding
from lattend.cost.layers.tokenwise import (
    TOKENS,
    embedding,
    feed_forward,
    linear,
    loose,
    norm,
    positions,
    residual,
    shared_input,
    tied_table,
)
from lattend.cost.points import Sizes
from lattend.cost.sizes import Size, keeps_recipe, need_number, number_of, read_size, read_sizes
from lattend.errors import DomainError
from lattend.rules.reader import RuleLike, read_rule


@keeps_recipe
def transformer_block(
    rule: RuleLike = "full",
    *,
    n: Size = "n",
    d: Size = "d",
    heads: Size = "heads",
    D: Size | None = None,
    hidden: Size | None = None,
    kv_heads: Size | None = None,
    bias: bool = True,
    norms: str = "layer",
    cross: Size | None = None,
    gated: bool = False,
    scaled: bool = False,
    **parameters: Size,
) -> Cost:
    """Attention and a feed-forward net, each with a norm and a residual.

    A head has D numbers, d/heads where d and heads are numbers; hidden is 4d where not given. `cross=m`
    adds attention to m tokens of an encoder between the two. Norms before or after cost the same.
    """
    wide = _head_dim(d, heads, D)
    shared: dict[str, Any] = {"heads": heads, "D_i": d, "D_hid": wide, "kv_heads": kv_heads}
    shared |= {"bias": bias, "out_bias": bias, "scaled": scaled}
    chosen = read_rule(rule)
    given: dict[str, Any] = {**shared, **parameters} | ({"n": n} if "n" in chosen.sizes else {})
    attended = attention(chosen, **given)
    if "n" not in chosen.sizes:  # an image or a volume, whose tokens are its pixels
        n = "*".join(f"({parameters.get(size, chosen.values.get(size, size))})" for size in chosen.sizes)
    around: dict[str, Any] = {"n": n, "d": d}
    parts = [norm(**around, kind=norms), attended, residual(**around)]
    if cross is not None:
        crossed = attention("full", **shared, n=n, m=cross).named("cross-attention")
        parts += [norm(**around, kind=norms), crossed, residual(**around)]
    hidden = _times(d, 4) if hidden is None else hidden
    inner = feed_forward(n=n, d=d, hidden=hidden, bias=bias, gated=gated)
    block = joined("transformer block", *parts, norm(**around, kind=norms), inner, residual(**around))
    sizes = {name: size for name, size in attended.runs[0][1].sizes.items() if name in chosen.free}
    named = {"d": d, "heads": heads, "kv_heads": kv_heads or heads, "D": wide, "hidden": hidden}
    named |= {} if cross is None else {"cross": cross}
    how = {"rule": chosen, "norms": norms, "bias": bias, "gated": gated, "scaled": scaled}
    return running(block, "transformer", sizes, named, how)


@keeps_recipe
def encoder(rule: RuleLike = "full", *, layers: Size = "l", **options: Any) -> Cost:
    """A stack of blocks in which, unless the rule says otherwise, every token attends to every other.

    `options` are those of transformer_block.
    """
    return _stack(rule, layers, options).named("encoder")


@keeps_recipe
def decoder(
    rule: RuleLike = "causal",
    *,
    layers: Size = "l",
    n: Size = "n",
    d: Size = "d",
    vocabulary: Size | None = None,
    tied: bool = True,
    norms: str = "layer",
    **options: Any,
) -> Cost:
    """A stack of causal blocks; with a vocabulary also embedding, last norm and output map.

    `tied` takes the embedding's table for the output map too; `options` are those of transformer_block.
    """
    blocks = _stack(rule, layers, {"n": n, "d": d, "norms": norms, **options})
    if vocabulary is None:
        return blocks.named("decoder")
    out = linear(n=n, d_in=d, d_out=vocabulary, bias=False).named("output")
    if tied:
        out = joined("output", _without_parameters(out), tied_table(n=n, d=d))
    first = embedding(n=n, vocabulary=vocabulary, d=d)
    stack = joined("decoder", first, blocks, norm(n=n, d=d, kind=norms), out)
    ((_, run),) = blocks.runs
    named: dict[str, Size] = {"layers": layers, "vocabulary": vocabulary}
    return running(stack, "transformer", run.sizes, named, {**run.options, "tied": tied})


@keeps_recipe
def vit(
    *,
    rows: int = 224,
    cols: int = 224,
    patch: int = 16,
    c: Size = 3,
    d: Size = 768,
    layers: Size = 12,
    heads: Size = 12,
    hidden: Size | None = None,
    classes: Size = 1000,
    D: Size | None = None,
) -> Cost:
    """A vision transformer: patches, a class token, positions, blocks, a norm and a linear classifier.

    >>> vit().parameters  # ViT-B/16
    86567656
    """
    need_number("patch", patch)
    down, across = (
        output_size(need_number(name, size), patch, patch) for name, size in (("rows", rows), ("cols", cols))
    )
    n = down * across + 1
    blocks = transformer_block(n=n, d=d, heads=heads, hidden=hidden, D=D).repeat(layers)
    token = Cost("class token", ((ONE, loose("class token", Amount.of(read_size("d", d)))),))
    model = joined(
        "vit",
        patch_embedding(rows=rows, cols=cols, patch=patch, c=c, d=d),
        token,
        positions(n=n, d=d),
        blocks,
        norm(n=n, d=d),
        linear(n=1, d_in=d, d_out=classes),
    )
    named = {"rows": rows, "cols": cols, "patch": patch, "c": c, "d": d, "layers": layers, "heads": heads}
    named |= {"D": _head_dim(d, heads, D), "hidden": _times(d, 4) if hidden is None else hidden}
    return running(model, "vit", {}, {**named, "classes": classes})


def _stack(rule: RuleLike, layers: Size, options: dict[str, Any]) -> Cost:
    """A stack of blocks; those that attend to the same encoder add up its gradients."""
    block = transformer_block(rule, **options)
    cross, blocks = options.get("cross"), block.repeat(layers)
    if cross is None:
        return blocks
    ((_, run),) = block.runs
    stacked_blocks = joined("blocks", shared_input(n=cross, d=options.get("d", "d"), to=layers), blocks)
    return running(stacked_blocks, "transformer", run.sizes, {"layers": layers}, run.options)


def running(
    cost: Cost, name: str, known: Sizes, sizes: dict[str, Size], options: Mapping[str, Any] | None = None
) -> Cost:
    """The cost with plain code for all of it, in place of code for its parts."""
    every = {**known, **{size: read_size(size, size_text, parts=True) for size, size_text in sizes.items()}}
    return replace(cost, runs=((ONE, ReferenceRun(name, every, options or {})),))


def joined(name: str, *parts: Cost) -> Cost:
    """The sum of costs, under one name."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total.named(name)


def _head_dim(d: Size, heads: Size, head_dim: Size | None) -> Size:
    if head_dim is not None:
        return head_dim
    width, many = number_of(read_size("d", d)), number_of(read_size("heads", heads))
    if many is None:
        return "D"
    if width is None:
        return d if many == 1 else f"({d})/{many}"
    if width % many:
        raise DomainError(f"d = {width} does not divide into {many} heads; give D, the head dimension")
    return width // many


def _times(size: Size, factor: int) -> Size:
    return size * factor if isinstance(size, int) else f"{factor}*({size})"


def _without_parameters(cost: Cost) -> Cost:
    """The same work with parameters that are counted elsewhere."""
    return replace(cost, parts=tuple((times, replace(layer, parameters=())) for times, layer in cost.parts))


@keeps_recipe
def vae(*, n: Size = "n", d: Size = "d", hidden: Size = "hidden", latent: Size = "z") -> Cost:
    """A VAE of n examples: hidden layer, mean and log-variance, one sample, hidden layer, output.

    A sample is mean + exp(log-variance / 2) * noise: two multiplies, one exponential and one add a number.
    """
    first = joined("encoder", linear(n=n, d_in=d, d_out=hidden), bend(n=n, d=hidden))
    heads = linear(n=n, d_in=hidden, d_out=f"2*({latent})").named("mean and log-variance")
    last = joined(
        "decoder",
        linear(n=n, d_in=latent, d_out=hidden),
        bend(n=n, d=hidden),
        linear(n=n, d_in=hidden, d_out=d),
    )
    model = joined("vae", first, heads, sample(n=n, z=latent), last)
    sizes = {"n": n, "d": d, "hidden": hidden, "latent": latent}
    return running(model, "vae", {}, sizes)


def bend(*, n: Size = "n", d: Size = "d") -> Cost:
    """An activation at every number."""
    build = Builder(read_sizes(n=n, d=d))
    build.take("activation", "functions", TOKENS, build.given("x", TOKENS))
    bare = replace(build.statements[0], saves="")  # the next layer saves it as its input
    return single(Layer("activation", (bare,)))


def sample(*, n: Size = "n", z: Size = "z") -> Cost:
    """Mean + exp(log-variance / 2) * noise."""
    build, over = Builder(read_sizes(n=n, z=z)), "token < n and i < z"
    mean, log = build.given("mean", over), build.given("log-variance", over)
    half = build.take("half", "constant multiplies", over, log)
    spread = build.take("spread", "exponentials", over, half)
    noise = Array("noise", mean.size, "constant")
    moved = build.take("spread * noise", "constant multiplies", over, spread, noise)
    build.take("z", "adds", over, mean, moved)
    return single(build.layer("sample"))
