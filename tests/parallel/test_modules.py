"""DTensors, DDP, FSDP2, torch.compile, checkpointing, meshes of several dimensions, models on shards."""

from __future__ import annotations

import pytest
from gloo_ranks import Crew
from parallel_models import (
    blocks_of_an_image,
    cache_in_a_mesh,
    cut_and_put_together,
    distributed_tensors,
    hybrid,
    language_model,
    refused_blocks,
    refused_by_models,
    second_derivative,
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
    assert max(crew.run(8, cache_in_a_mesh)) < 1e-10


def test_blocks_of_an_image(crew: Crew) -> None:
    assert max(crew.run(8, blocks_of_an_image)) < 1e-10


def test_what_meshes_of_blocks_refuse(crew: Crew) -> None:
    for said in crew.run(8, refused_blocks):
        for message, wanted in zip(
            said,
            [
                "mesh cuts rows and cols: give q, k and v an axis for each, [batch, heads, rows, cols, D]",
                "q has shape (1, 1, 3, 2, 4)",
                "blocks in one line of a mesh 4 × 2 must have the same rows; the ranks have 3, 3, 3, 1, 3, 3",
                'strategy="ulysses" needs strips of rows: cut the image so, or leave it out',
                "cut='zigzag': blocks of an image follow each other; leave it out",
                "cut='zigzag': blocks of an image follow each other; leave it out",
                "mesh cuts rows, cols, and n = 48 does not have them: give n as (rows, cols)",
                "mesh cuts cols and rows: its dimensions go in the order depth, rows, cols",
                "mesh has its ranks out of order, [7, 6, 5, 4, 3, 2, 1, 0]: give them ascending",
                "mesh cuts an image, and a cache has a line of positions: give another mesh",
                "mesh cuts columns, and a net on a grid runs on strips of rows: give another",
                "mesh cuts rows of an image, and heads too: leave that out",
            ],
            strict=True,
        ):
            assert wanted in message


def test_no_second_derivatives(crew: Crew) -> None:
    for said in crew.run(2, second_derivative):
        assert said == "create_graph=True: lt.parallel.attention has no second derivatives"


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
