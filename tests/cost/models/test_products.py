"""The dense column equals the matrix products that transformers' models run, counted one by one."""

from __future__ import annotations

from typing import Any

import pytest
from cost.models import hugging
from cost.models.published import PUBLISHED
from cost.models.small import IMAGES, LONG, SMALL, TEXT

from lattend.cost.measure.measure import of
from lattend.cost.models import Model, config


def unrouted(fields: dict[str, Any], model: Model, tokens: int) -> int:
    """What transformers' Llama 4 runs more: every expert on every token."""
    if fields["model_type"] != "llama4_text":
        return 0
    experts = [part for part in model.parts if part.name == "experts"]
    return sum(part.parameters - part.used for part in experts) * tokens


@pytest.mark.parametrize("name", SMALL)
def test_forward_and_training(name: str) -> None:
    fields, length = SMALL[name], LONG if name in TEXT else None
    model, theirs = config(fields), hugging.build(fields, "cpu")
    inputs = hugging.forward_inputs(theirs, fields, length, batch=2)
    work = model.forward(length, batch=2)
    more = unrouted(fields, model, work.tokens)
    assert work.multiply_adds.dense + more == hugging.products(theirs, inputs)
    assert model.training(length, batch=2).multiply_adds.dense + 3 * more == hugging.products(
        theirs, inputs, training=True
    )


# One of each family; Swin checkpoints its stages and their blocks, and so runs blocks twice more
@pytest.mark.parametrize(
    "name", [name for name, fields in SMALL.items() if name == fields["model_type"] != "swin"]
)
def test_checkpointing(name: str) -> None:
    fields, length = SMALL[name], LONG if name in TEXT else None
    model, theirs = config(fields), hugging.build(fields, "cpu")
    inputs = hugging.forward_inputs(theirs, fields, length, batch=1)
    work = model.training(length, checkpointing=True)
    ran = hugging.products(theirs, inputs, training=True, checkpointing=True)
    assert work.multiply_adds.dense + 4 * unrouted(fields, model, work.tokens) == ran
    assert work.multiply_adds.needed == model.training(length).multiply_adds.needed


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("experts", ["grouped_mm", "batched_mm"])
def test_a_mixture_with_sinks_is_measured_as_its_config_says(experts: str, dtype: str) -> None:
    """Grouped products, and causal, windowed attention with a column of sinks, written out."""
    fields = SMALL["gpt_oss"]
    theirs = hugging.build(fields, experts=experts).to(getattr(hugging.torch, dtype))
    result = of(theirs, hugging.forward_inputs(theirs, fields, LONG, batch=1))
    work = config(fields).forward(LONG)
    assert (result.multiply_adds.needed, result.multiply_adds.dense) == (
        work.multiply_adds.needed,
        work.multiply_adds.dense,
    )
    assert (result.unknown, result.notes) == ({}, ())


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_runs_as_it_is_counted_part_by_part(name: str) -> None:
    work = config(IMAGES[name]).forward()
    assert work.multiply_adds.needed <= work.multiply_adds.executed
    for group, row in work.parts.items():
        assert row.needed <= row.dense, group


def test_published_multiply_adds() -> None:
    vit = config(PUBLISHED["vit-base-patch16-224"][0]).forward()
    assert (vit.length, vit.multiply_adds.dense) == (197, 17_563_828_224)  # torchvision: 17.564 G
    swin = config(PUBLISHED["swin-tiny-patch4-window7-224"][0]).forward()
    assert swin.multiply_adds.dense == 4_490_566_656  # torchvision: 4.491 G
    assert swin.multiply_adds.needed == 4_474_162_176  # shifted windows at the border hold less


def test_backward_of_attention() -> None:
    model = config(PUBLISHED["Mistral-7B-v0.1"][0])
    forward, training = model.forward(8192)["attention"], model.training(8192)["attention"]
    assert training.needed == 3 * forward.needed
    assert training.dense == 3 * forward.dense
    assert 2 * training.executed == 7 * forward.executed  # 1 + 2.5
    again = model.training(8192, checkpointing=True)["attention"]
    assert 2 * again.executed == 9 * forward.executed  # one forward more


def test_backward_of_unequal_head_sizes_computes_the_score_again() -> None:
    model = config(PUBLISHED["DeepSeek-V3"][0])
    forward, training = model.forward(4096)["attention"], model.training(4096)["attention"]
    # forward: 192 + 128 a pair; backward: the score again, and two products each
    assert training.executed * 320 == forward.executed * (320 + 2 * 320 + 192)
