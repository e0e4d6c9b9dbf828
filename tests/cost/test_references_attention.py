"""The references of attention, blocks and whole models against torch, outputs and gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cost.against_torch import Tensors, check, drawn
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from lattend.cost.reference import attention as attended
from lattend.cost.reference import nets as whole
from lattend.cost.reference import numbers, shapes

N, D = 5, 4
CAUSAL = [[k <= q for k in range(N)] for q in range(N)]
HOLES = [[(q + k) % 3 == 0 and q != 2 for k in range(N)] for q in range(N)]  # row 2 has no keys


def looked(
    x: Tensor,
    w: Tensors,
    masks: list[Any],
    scale: float,
    extra: Tensor | float = 0.0,
    moved: Tensor | None = None,
) -> Tensor:
    """Attention by torch's own, head by head, `extra` added to the scores; rows with no keys give zeros."""
    source = x if moved is None else moved
    sources = {"q": source, "k": source, "v": x}
    q, k, v = (torch.einsum("ni,hid->hnd", x, w[f"W_{name}"]) for name, x in sources.items())
    if "b_q" in w:
        q, k, v = (each + w[f"b_{name}"][:, None] for name, each in zip("qkv", (q, k, v), strict=True))
    group = len(q) // len(k)
    k, v = (each.repeat_interleave(group, 0) for each in (k, v))
    mask = torch.tensor(masks)
    bias = torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, -torch.inf) + extra
    bias = torch.where(mask.any(-1, keepdim=True), bias, 0.0)
    mixed = functional.scaled_dot_product_attention(q, k, v, bias, scale=scale)
    mixed = torch.where(mask.any(-1, keepdim=True), mixed, 0.0)
    out = torch.einsum("hnd,hdo->no", mixed, w["W_out"].unflatten(0, (len(q), -1)))
    return out + w["b_out"] if "b_out" in w else out


@pytest.mark.parametrize("masks", [[CAUSAL, CAUSAL], [HOLES, CAUSAL]])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kv_heads", [1, 2])
def test_attention(masks: list[Any], bias: bool, kv_heads: int) -> None:
    weights = shapes.attention(2, D, 3, 2, 5, kv_heads=kv_heads, bias=bias, out_bias=bias)
    check(
        lambda x, w: looked(x, w, masks, 0.3),
        lambda x, w: attended.attention(x, x, w, masks, scale=0.3),
        drawn(N, D),
        weights,
    )


@pytest.mark.parametrize("naive", [True, False])
def test_absolute_encoding(naive: bool) -> None:
    masks = [CAUSAL, HOLES]
    check(
        lambda x, w: looked(x, w, masks, 1.0, moved=x + w["p"]),
        lambda x, w: attended.attention(x, x, w, masks, encoding="absolute", naive=naive),
        drawn(N, D),
        shapes.attention(2, D, 3, 2, 5, encoding="absolute", positions=N),
    )


def test_relative_encoding() -> None:
    masks, wide = [CAUSAL, HOLES], 3
    table = drawn(2 * N - 1, wide)
    shifts = dict(zip(range(1 - N, N), table.tolist(), strict=True))
    places = torch.arange(N)[None] - torch.arange(N)[:, None] + N - 1

    def wanted(x: Tensor, w: Tensors) -> Tensor:
        """The four terms of Transformer-XL, each a plain product of matrices."""
        far = torch.einsum("qkp,hpd->hqkd", table[places], w["W_r"])
        q = torch.einsum("ni,hid->hnd", x, w["W_q"])
        k = torch.einsum("ni,hid->hnd", x, w["W_k"])
        extra = torch.einsum("hqd,hqkd->hqk", q, far) + torch.einsum("hd,hkd->hk", w["u"], k)[:, None]
        return looked(x, w, masks, 1.0, extra + torch.einsum("hd,hqkd->hqk", w["v"], far))

    check(
        wanted,
        lambda x, w: attended.attention(x, x, w, masks, encoding="relative", shifts=shifts),
        drawn(N, D),
        shapes.attention(2, D, 3, 2, 5, encoding="relative", D_p=wide),
    )


def test_quadratic_encoding() -> None:
    masks = [CAUSAL, HOLES]
    shifts = {s: [float(s * s), float(s), 0.0] for s in range(1 - N, N)}
    places = torch.arange(N)[None] - torch.arange(N)[:, None]
    table = torch.stack([places**2, places, 0 * places], -1).double()

    def wanted(x: Tensor, w: Tensors) -> Tensor:
        nothing = torch.zeros(2, D, 1, dtype=torch.float64)
        extra = torch.einsum("hp,qkp->hqk", w["v"], table)
        return looked(x, w | {"W_q": nothing, "W_k": nothing}, masks, 1.0, extra)

    check(
        wanted,
        lambda x, w: attended.attention(x, x, w, masks, encoding="quadratic", shifts=shifts),
        drawn(N, D),
        shapes.attention(2, D, 3, 2, 5, encoding="quadratic"),
    )


def in_torch_names(w: Tensors, ours: str, theirs: str) -> Tensors:
    """Our matrices, one a head, as nn.MultiheadAttention holds them."""
    rows = [w[f"{ours}.W_{name}"].transpose(1, 2).flatten(0, 1) for name in "qkv"]
    offsets = [w[f"{ours}.b_{name}"].flatten() for name in "qkv"]
    return {
        f"{theirs}.in_proj_weight": torch.cat(rows),
        f"{theirs}.in_proj_bias": torch.cat(offsets),
        f"{theirs}.out_proj.weight": w[f"{ours}.W_out"].T,
        f"{theirs}.out_proj.bias": w[f"{ours}.b_out"],
    }


def others(w: Tensors, **renamed: str) -> Tensors:
    """What is no attention, under torch's names."""
    result = {name: each for name, each in w.items() if name.split(".")[-2] not in ("attention", "cross")}
    for ours, theirs in renamed.items():
        result = {name.replace(ours, theirs): each for name, each in result.items()}
    return result


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [True, False])
def test_transformer_block(norm_first: bool, activation: str) -> None:
    made = nn.TransformerEncoderLayer(D, 2, 6, 0.0, activation, norm_first=norm_first)
    hidden = ~torch.tensor(CAUSAL)

    def wanted(x: Tensor, w: Tensors) -> Tensor:
        theirs = others(w) | in_torch_names(w, "attention", "self_attn")
        return functional_call(made, theirs, (x,), {"src_mask": hidden})

    check(
        wanted,
        lambda x, w: whole.block(
            x, w, [CAUSAL] * 2, activation=activation, norm_first=norm_first, scale=2**-0.5
        ),
        drawn(N, D),
        shapes.block(D, 2, 6),
    )


def test_encoder_stack() -> None:
    made = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(D, 2, 6, 0.0, "gelu", norm_first=True), 2, enable_nested_tensor=False
    )

    def wanted(x: Tensor, w: Tensors) -> Tensor:
        theirs = {f"layers.{name}": each for name, each in others(w).items()}
        for layer in "01":
            theirs |= in_torch_names(w, f"{layer}.attention", f"layers.{layer}.self_attn")
        return functional_call(made, theirs, (x,))

    everything = [[[True] * N] * N] * 2
    check(
        wanted,
        lambda x, w: whole.stack(x, w, everything, scale=2**-0.5),
        drawn(N, D),
        shapes.stack(2, shapes.block(D, 2, 6)),
    )


@pytest.mark.parametrize("norm_first", [True, False])
def test_decoder_block_with_an_encoder_s_tokens(norm_first: bool) -> None:
    made = nn.TransformerDecoderLayer(D, 2, 6, 0.0, "relu", norm_first=norm_first)
    memory = drawn(3, D)
    hidden = ~torch.tensor(CAUSAL)

    def wanted(x: Tensor, w: Tensors) -> Tensor:
        theirs = others(w, norm3="norm_", norm2="norm3", norm_="norm2")
        theirs |= in_torch_names(w, "attention", "self_attn") | in_torch_names(w, "cross", "multihead_attn")
        return functional_call(made, theirs, (x, memory), {"tgt_mask": hidden})

    def result(x: Any, w: Any) -> Any:
        options: dict[str, Any] = {"activation": "relu", "norm_first": norm_first, "scale": 2**-0.5}
        return whole.block(x, w, [CAUSAL] * 2, memory=memory.tolist(), **options)

    check(wanted, result, drawn(N, D), shapes.block(D, 2, 6, cross=True))


def test_vit() -> None:
    tokens = 5
    made = nn.TransformerEncoderLayer(D, 2, 6, 0.0, "gelu", norm_first=True)

    def wanted(x: Tensor, w: Tensors) -> Tensor:
        patches = functional.conv2d(x, w["patches.weight"], w["patches.bias"], stride=3)
        seen = torch.cat([w["class"][None], patches.flatten(1).T]) + w["positions"]
        block = numbers.part(w, "blocks.0")
        seen = functional_call(made, others(block) | in_torch_names(block, "attention", "self_attn"), (seen,))
        seen = functional.layer_norm(seen, (D,), w["norm.weight"], w["norm.bias"])
        return functional.linear(seen[:1], w["head.weight"], w["head.bias"])

    check(
        wanted,
        lambda x, w: whole.vit(x, w, 2, scale=2**-0.5),
        drawn(2, 6, 7),
        shapes.vit(2, 3, tokens, D, 3, shapes.stack(1, shapes.block(D, 2, 6))),
    )


def test_language_model() -> None:
    words = [3, 0, 3, 1, 2]
    made = nn.TransformerEncoderLayer(D, 2, 6, 0.0, "gelu", norm_first=True)
    hidden = ~torch.tensor(CAUSAL)

    def wanted(x: Tensor, w: Tensors) -> Tensor:
        block = numbers.part(w, "blocks.0")
        theirs = others(block) | in_torch_names(block, "attention", "self_attn")
        seen = functional_call(made, theirs, (x[words],), {"src_mask": hidden})
        return functional.layer_norm(seen, (D,), w["norm.weight"], w["norm.bias"]) @ x.T

    def result(x: Any, w: Any) -> Any:
        return whole.language_model(words, w | {"embedding.weight": x}, [CAUSAL] * 2, scale=2**-0.5)

    blocks = shapes.within("blocks.0", shapes.block(D, 2, 6))
    check(wanted, result, drawn(6, D), blocks | shapes.within("norm", shapes.norm(D, "layer")))


def test_vae() -> None:
    noise = drawn(3, 2)

    def wanted(x: Tensor, w: Tensors) -> Tensor:
        def mapped(x: Tensor, name: str) -> Tensor:
            return functional.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

        hidden = torch.relu(mapped(x, "encoder"))
        latent = mapped(hidden, "mean") + torch.exp(mapped(hidden, "spread") / 2) * noise
        return mapped(torch.relu(mapped(latent, "decoder")), "output")

    check(wanted, lambda x, w: whole.vae(x, w, noise.tolist()), drawn(3, 5), shapes.vae(5, 4, 2))
