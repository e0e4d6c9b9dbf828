"""Blocks, stacks and whole models, priced by lt.cost and run on numbers that count."""

from __future__ import annotations

from typing import Any

from cost.running import check, check_numbers, run
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.cost.reference import nets as whole
from lattend.cost.reference import shapes

SMALL = st.integers(1, 3)
FEW = settings(max_examples=15)


def causal(n: int) -> list[list[bool]]:
    return [[k <= q for k in range(n)] for q in range(n)]


@settings(max_examples=25)
@given(
    SMALL,
    SMALL,
    SMALL,
    st.integers(1, 2),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from(["layer", "rms"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_transformer_block(
    n: int,
    D: int,
    kv_heads: int,
    group: int,
    hidden: int,
    bias: bool,
    norms: str,
    gated: bool,
    scaled: bool,
    norm_first: bool,
) -> None:
    heads = kv_heads * group
    d = D * heads
    weights = shapes.block(d, heads, hidden, kv_heads=kv_heads, bias=bias, norms=norms, gated=gated)
    masks, scale = [causal(n)] * heads, 0.5 if scaled else None
    result = run(lambda x, w: whole.block(x, w, masks, norm_first=norm_first, scale=scale), weights, (n, d))
    sizes = {"n": n, "d": d, "heads": heads, "kv_heads": kv_heads, "D": D, "hidden": hidden}
    check(
        result, "transformer_block", sizes, rule="causal", bias=bias, norms=norms, gated=gated, scaled=scaled
    )


@FEW
@given(SMALL, SMALL, SMALL, SMALL, st.integers(1, 4))
def test_block_that_looks_at_an_encoder(n: int, m: int, D: int, heads: int, hidden: int) -> None:
    d, masks = D * heads, [causal(n)] * heads
    weights = shapes.block(d, heads, hidden, cross=True)
    result = run(lambda x, y, w: whole.block(x, w, masks, memory=y), weights, (n, d), (m, d))
    sizes = {"n": n, "cross": m, "d": d, "heads": heads, "D": D, "hidden": hidden}
    check(result, "transformer_block", sizes, rule="causal")


@FEW
@given(SMALL, SMALL, SMALL, SMALL, st.integers(1, 4))
def test_encoder(layers: int, n: int, D: int, heads: int, hidden: int) -> None:
    d, masks = D * heads, [[[True] * n] * n] * heads
    weights = shapes.stack(layers, shapes.block(d, heads, hidden))
    result = run(lambda x, w: whole.stack(x, w, masks), weights, (n, d))
    sizes = {"layers": layers, "n": n, "d": d, "heads": heads, "D": D, "hidden": hidden}
    check(result, "encoder", sizes)


@FEW
@given(SMALL, SMALL, SMALL, SMALL, SMALL)
def test_decoder_that_looks_at_an_encoder(layers: int, n: int, m: int, D: int, heads: int) -> None:
    """All layers attend to the same tokens of the encoder, whose gradients meet."""
    d, masks = D * heads, [causal(n)] * heads
    weights = shapes.stack(layers, shapes.block(d, heads, 2, cross=True))
    result = run(lambda x, y, w: whole.stack(x, w, masks, memory=y), weights, (n, d), (m, d))
    check(result, "decoder", {"layers": layers, "n": n, "cross": m, "d": d, "heads": heads, "D": D}, hidden=2)


@FEW
@given(SMALL, SMALL, SMALL, SMALL, SMALL, st.booleans(), st.sampled_from(["layer", "rms"]))
def test_decoder(layers: int, n: int, D: int, heads: int, more: int, tied: bool, norms: str) -> None:
    """Words that are all different, so that no two of them share a row of the table."""
    d, masks, vocabulary = D * heads, [causal(n)] * heads, n + more
    blocks = shapes.stack(layers, shapes.block(d, heads, 2, norms=norms))
    weights = {"embedding.weight": (vocabulary, d)} | shapes.within("blocks", blocks)
    weights |= shapes.within("norm", shapes.norm(d, norms))
    if not tied:
        weights["output.weight"] = (vocabulary, d)
    result = run(lambda w: whole.language_model(range(n), w, masks), weights)
    sizes = {"layers": layers, "n": n, "vocabulary": vocabulary, "d": d, "heads": heads, "D": D}
    check(result, "decoder", sizes, hidden=2, tied=tied, norms=norms)


@settings(max_examples=8)
@given(st.integers(2, 4), st.integers(2, 4), SMALL, SMALL, st.integers(1, 2), SMALL, SMALL)
def test_vit(rows: int, cols: int, c: int, layers: int, heads: int, D: int, classes: int) -> None:
    patch, d = 2, D * heads
    tokens = (rows // patch) * (cols // patch) + 1
    blocks = shapes.stack(layers, shapes.block(d, heads, 2))
    weights = shapes.vit(c, patch, tokens, d, classes, blocks)
    result = run(lambda x, w: whole.vit(x, w, heads), weights, (c, rows, cols))
    sizes: dict[str, Any] = {"rows": rows, "cols": cols, "patch": patch, "c": c, "classes": classes}
    check_numbers(result, lt.cost.vit(**sizes, d=d, layers=layers, heads=heads, hidden=2))


@settings(max_examples=25)
@given(SMALL, st.integers(1, 5), st.integers(1, 5), SMALL)
def test_vae(n: int, d: int, hidden: int, latent: int) -> None:
    noise: Any = [[0.3] * latent] * n
    result = run(lambda x, w: whole.vae(x, w, noise), shapes.vae(d, hidden, latent), (n, d))
    check(result, "vae", {"n": n, "d": d, "hidden": hidden, "latent": latent})
