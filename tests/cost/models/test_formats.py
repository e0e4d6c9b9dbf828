"""Bytes of weights: by hand, against transformers' own matrices, and against published checkpoints."""

from __future__ import annotations

from typing import Any

import pytest
from cost.models import hugging
from cost.models.published import PUBLISHED
from cost.models.small import TEXT

from lattend.cost.models import config
from lattend.cost.models.formats import WEIGHT_FORMATS, bytes_read, weight_format
from lattend.errors import NamingError

LLAMA = config(PUBLISHED["Meta-Llama-3-8B"][0])
OSS = config(PUBLISHED["gpt-oss-20b"][0])


@pytest.mark.parametrize("name", PUBLISHED)
def test_fp32_and_bf16_hold_every_parameter(name: str) -> None:
    fields, total, _ = PUBLISHED[name]
    assert config(fields).weights("fp32") == 4 * total
    assert config(fields).weights() == 2 * total


def test_llama_by_hand() -> None:
    """Seven matrices a layer; the table, the head and 65 norms stay as they are."""
    layer = [(4096, 4096), (4096, 1024), (4096, 1024), (4096, 4096)]
    layer += [(4096, 14336), (4096, 14336), (14336, 4096)]
    rest = 2 * (2 * 128256 * 4096 + 65 * 4096)
    weights = 32 * sum(inputs * outputs for inputs, outputs in layer)
    outputs = 32 * sum(outputs for _, outputs in layer)
    assert LLAMA.weights("fp8") == LLAMA.weights("int8") == rest + weights + 2 * outputs
    assert LLAMA.weights("int4") == rest + weights // 2 + 2 * (weights // 128)
    assert LLAMA.weights("mxfp4") == rest + weights // 2 + weights // 32


def test_published_checkpoints_of_mxfp4() -> None:
    """OpenAI's model card: 12.8 GiB and 60.8 GiB, experts alone in mxfp4."""
    assert OSS.weights("mxfp4") / 2**30 == pytest.approx(12.8, abs=0.05)
    large = config(PUBLISHED["gpt-oss-20b"][0], num_hidden_layers=36, num_local_experts=128)
    assert large.parameters == pytest.approx(116.8e9, rel=1e-3)
    assert large.active == pytest.approx(5.13e9, rel=2e-3)
    assert large.weights("mxfp4") / 2**30 == pytest.approx(60.8, abs=0.05)


def matrices(model: Any) -> int:
    """Numbers in the matrices of transformers' layers, but for routers; experts are stacked."""
    inside = [(name, one) for name, one in model.named_parameters() if ".layers." in name]
    named = [one for name, one in inside if "router" not in name and ".gate." not in name]
    return sum(one.numel() for one in named if one.dim() >= 2 and min(one.shape[-2:]) > 1)


@pytest.mark.parametrize("name", ["llama", "mistral", "qwen2", "qwen3", "gemma2", "mixtral", "qwen3_moe"])
def test_the_matrices_are_those_of_transformers(name: str) -> None:
    model = config(TEXT[name])
    held = sum(
        count * inputs * outputs
        for part in model.parts
        for count, inputs, outputs in part.matrices
        if part.group in ("projections", "feed-forward")
    )
    assert held == matrices(hugging.build(TEXT[name]))


def test_groups_that_do_not_come_out_even_have_a_scale_of_their_own() -> None:
    four, small = weight_format("int4"), weight_format("mxfp4")
    assert four.matrix_bytes(129, 1) == 65 + 2 * 2
    assert small.matrix_bytes(33, 3) == 3 * (17 + 2)


def test_what_a_run_reads() -> None:
    plain = weight_format("bf16")
    assert bytes_read(LLAMA, plain, 1) == bytes_read(LLAMA, plain, 1000) == 2 * LLAMA.active
    tied = config(PUBLISHED["gemma-2-9b"][0])
    assert bytes_read(tied, plain, 1) == 2 * tied.active == 2 * tied.parameters
    assert bytes_read(OSS, plain, 1) == 2 * OSS.active
    assert bytes_read(OSS, plain, 10**6) == 2 * (OSS.parameters - OSS.embedding)
    assert bytes_read(OSS, plain, 1) < bytes_read(OSS, plain, 2) < 2 * bytes_read(OSS, plain, 1)


def test_experts_of_two_tokens_enumerated() -> None:
    """Two tokens that choose 2 of 8 experts each, all choices: 4 less the 2*2/8 that they share."""
    from itertools import combinations

    choices = [*combinations(range(8), 2)]
    seen = sum(len({*one, *other}) for one in choices for other in choices) / len(choices) ** 2
    model = config(PUBLISHED["Mixtral-8x7B-v0.1"][0])
    experts = sum(part.parameters for part in model.parts if part.name == "experts")
    more = bytes_read(model, weight_format("bf16"), 2) - bytes_read(model, weight_format("bf16"), 1)
    assert more == pytest.approx(2 * experts * (seen - 2) / 8)


def test_a_format_that_is_not_known() -> None:
    with pytest.raises(NamingError, match=f"there are {', '.join(WEIGHT_FORMATS)}"):
        weight_format("q4_k_m")
