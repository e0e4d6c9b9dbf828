"""Parameters equal those of transformers' own models, to the last one."""

from __future__ import annotations

from typing import Any

import pytest
from cost.models import hugging
from cost.models.published import PUBLISHED
from cost.models.small import SMALL

from lattend.cost.models import config

TABLES = {"embed_tokens", "embed_in", "wte", "wpe", "embed_positions", "position_embeddings"}
TABLES |= {"word_embeddings", "tok_embeddings", "token_type_embeddings", "cls_token"}


def used_by_a_token(model: Any) -> int:
    """Parameters that multiply a token: no idle experts, no table but one that is the head's matrix."""
    made = model.config.get_text_config()
    idle = 0
    for name, one in model.named_parameters():
        if ".experts." in name:
            count = one.shape[0]  # experts are stacked
            idle += one.numel() // count * (count - made.num_experts_per_tok)
    head = model.get_output_embeddings()
    tables = {
        id(one): one.numel()
        for name, one in model.named_parameters()
        if {*TABLES, "relative_position_bias_table"} & set(name.split("."))
        and (head is None or one is not head.weight)
    }
    return hugging.parameters(model) - idle - sum(tables.values())


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models(name: str) -> None:
    fields, total, used = PUBLISHED[name]
    model, theirs = config(fields), hugging.build(fields)
    assert model.parameters == total == hugging.parameters(theirs)
    assert model.parameters - model.idle == used  # as publishers count: tables whole
    assert model.active == used_by_a_token(theirs)


@pytest.mark.parametrize("name", SMALL)
def test_small_models(name: str) -> None:
    fields = SMALL[name]
    model, theirs = config(fields), hugging.build(fields)
    assert model.parameters == hugging.parameters(theirs)
    assert model.active == used_by_a_token(theirs)
    assert model.embedding == sum(
        one.numel() for part, one in theirs.named_parameters() if TABLES & set(part.split("."))
    )


def test_a_shared_table_is_counted_once_and_multiplied() -> None:
    fields = PUBLISHED["gpt2"][0]
    tied, untied = config(fields), config(fields, tie_word_embeddings=False)
    assert untied.parameters - tied.parameters == 50257 * 768
    assert tied.forward(64).multiply_adds.needed == untied.forward(64).multiply_adds.needed
    # N of 6N: everything but positions, as the table is the head's matrix
    assert tied.active == 124_439_808 - 1024 * 768 == untied.active
