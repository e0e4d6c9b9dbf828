"""The price of patches against that of the layers they stand for, and by hand."""

from __future__ import annotations

import pytest

import lattend as lt
from lattend.errors import DomainError
from lattend.nn.images.patch_grid import patch_grid
from lattend.nn.images.patch_price import attention_cost, embedding_cost, patch_sizes, position_cost


@pytest.mark.parametrize(("rows", "cols"), [(224, 224), (8, 12), (7, 7), (1, 5)])
def test_every_size_costs_what_its_layers_cost(rows, cols):
    for one in patch_sizes(rows, cols, 3, 16, 4):
        grid = patch_grid((rows, cols), one.patch, padding="crop")
        assert one.tokens == grid.tokens
        assert one.embedding == embedding_cost(grid, 3, 16).multiplies
        # four projections and two products of n × n, by hand
        assert one.attention == 4 * one.tokens * 16 * 16 + 2 * one.tokens**2 * 16


def test_a_vit_has_these_parts():
    """The parameters of ViT-B/16 before its blocks: embedding, a class token, positions."""
    with_blocks, more = (lt.cost.vit(layers=layers).total("parameters") for layers in (1, 2))
    head = 768 * 1000 + 1000 + 2 * 768
    layers = embedding_cost(patch_grid(224, 16), 3, 768), position_cost(196, 768)
    parts = sum(layer.total("parameters") for layer in layers)
    assert with_blocks - (more - with_blocks) - head == parts + 768


def test_heads_divide_the_width():
    with pytest.raises(DomainError, match="width = 770 does not divide into 12 heads"):
        attention_cost(770, 12)
