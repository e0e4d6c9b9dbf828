"""DTensors, DDP, FSDP2, torch.compile, checkpointing, meshes of several dimensions, models on shards."""

from __future__ import annotations

import pytest
from gloo_ranks import Crew
from parallel_models import (
    cut_and_put_together,
    distributed_tensors,
    hybrid,
    language_model,
    refused_by_models,
    trained,
)


@pytest.mark.parametrize("wrapper", ["plain", "ddp", "fsdp", "compile", "checkpoint"])
def test_wrappers(crew: Crew, wrapper: str) -> None:
    assert max(crew.run(2, trained, wrapper)) < 1e-10


def test_distributed_tensors(crew: Crew) -> None:
    for errors in crew.run(3, distributed_tensors):
        assert max(errors) < 1e-10


def test_cut_and_put_together(crew: Crew) -> None:
    crew.run(3, cut_and_put_together)


def test_meshes_of_several_dimensions(crew: Crew) -> None:
    assert max(crew.run(8, hybrid)) < 1e-10


@pytest.mark.parametrize("kind", ["Llama", "Gemma3"])
@pytest.mark.parametrize("cut", [None, "zigzag"])
def test_language_models(crew: Crew, kind: str, cut: str | None) -> None:
    pytest.importorskip("transformers")
    within = 1e-10 if kind == "Llama" else 1e-5  # Gemma's norms are of float32
    for padded in (False, True):
        assert max(crew.run(2, language_model, kind, cut, padded)) < within


def test_what_models_on_shards_refuse(crew: Crew) -> None:
    pytest.importorskip("transformers")
    first, second = crew.run(2, refused_by_models)
    packed, past, other = first
    assert "position_ids that do not follow each other for packed sequences" in packed
    assert "its keys are a cache's: give use_cache=False" in past
    assert (
        other == "return_max_logit: under lt.parallel.sharded there is none; ask lt.max_logits in one process"
    )
    assert len(second) == 3
