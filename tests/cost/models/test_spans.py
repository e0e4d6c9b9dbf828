"""Which keys layers attend to: against the weights transformers' models give, and pairs enumerated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cost.models import hugging
from cost.models.published import PUBLISHED
from cost.models.small import IMAGES, LONG, TEXT
from hypothesis import given
from hypothesis import strategies as st

from lattend.cost.models import config
from lattend.cost.models.spans import AttentionSpan, Kind, Windows


@pytest.mark.parametrize("name", TEXT)
def test_needed_is_what_transformers_gives_a_weight(name: str) -> None:
    fields = TEXT[name]
    model, theirs = config(fields), hugging.build(fields, "cpu")
    seen = hugging.attended(theirs, hugging.forward_inputs(theirs, fields, LONG, batch=1))
    expected = 0
    for mask, layer in zip(seen, model.layers, strict=True):
        assert layer.attention is not None
        assert (mask == layer.attention.span.rule.mask(n=LONG)).all()
        assert layer.attention.span.needed(LONG) == mask.sum()
        expected += layer.attention.multiply_adds * int(mask.sum())
    assert model.forward(LONG)["attention"].needed == expected


@pytest.mark.parametrize("name", ["swin", "swin, one window"])
def test_swin_windows_are_those_of_transformers(name: str) -> None:
    fields = IMAGES[name]
    model, theirs = config(fields), hugging.build(fields, "cpu").eval()
    result: list[Any] = []  # [windows, heads, w*w, w*w] a layer
    for part in theirs.modules():
        if type(part).__name__ == "SwinAttention":
            part.register_forward_hook(lambda *given: result.append(given[-1][1]))
    theirs(**hugging.forward_inputs(theirs, fields, None, batch=1), output_attentions=True)
    for weights, layer in zip(result, model.layers, strict=True):
        assert layer.attention is not None
        # what a shift parts has -100 added to its score
        assert int((weights[:, 0] > 1e-20).sum()) == layer.attention.span.needed(0)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 5), st.data())
def test_swin_squares_one_by_one(rows: int, cols: int, window: int, data: st.DataObject) -> None:
    shift = data.draw(st.integers(0, window - 1))
    span = Windows(rows, cols, window, shift)
    high, wide = (-(-size // window) * window for size in (rows, cols))
    place = np.full((high, wide), -1)
    place[:rows, :cols] = np.arange(rows * cols).reshape(rows, cols)
    region = np.zeros((high, wide), int)
    for axis, size in enumerate((high, wide)):  # rolled to the end: parted from the window they land in
        edge = np.arange(size) >= size - shift if shift else np.zeros(size, bool)
        region += (edge[:, None] if axis == 0 else edge[None, :]) * (1 + axis)
    place = np.roll(place, (-shift, -shift), (0, 1))
    result = 0
    for top in range(0, high, window):
        for left in range(0, wide, window):
            box = np.s_[top : top + window, left : left + window]
            who, where = place[box].ravel(), region[box].ravel()
            real = who >= 0
            result += int(((where[:, None] == where) & real[:, None] & real).sum())
    assert span.needed(rows * cols) == result <= span.executed(rows * cols, 1)


KINDS: list[Kind] = ["full", "causal", "window", "chunk", "band"]


@given(st.sampled_from(KINDS), st.integers(1, 40), st.integers(1, 70), st.integers(1, 9))
def test_tiles_one_by_one(kind: Kind, keys: int, length: int, tile: int) -> None:
    span = AttentionSpan(kind, keys)
    mask = span.rule.mask(n=length)
    assert span.needed(length) == mask.sum()
    size = -(-length // tile)
    padded = np.zeros((size * tile, size * tile), bool)
    padded[:length, :length] = mask
    touched = padded.reshape(size, tile, size, tile).any((1, 3)).sum()
    assert span.executed(length, tile) == touched * tile * tile


def test_a_window_of_w_is_w_keys() -> None:
    assert AttentionSpan("window", 3).rule.mask(n=6)[5].tolist() == [False, False, False, True, True, True]
    assert AttentionSpan("window", 1).needed(9) == 9
    assert AttentionSpan("window", 100).needed(9) == AttentionSpan("causal").needed(9)


@pytest.mark.parametrize(
    "name", [name for name, fields in TEXT.items() if config(fields).is_causal and "bert" not in name]
)
def test_cache_holds_what_transformers_keeps(name: str) -> None:
    fields = TEXT[name]
    model, theirs = config(fields), hugging.build(fields, "cpu").eval()
    for length in (3, LONG):
        inputs = hugging.forward_inputs(theirs, fields, length, batch=2)
        cache = theirs(**inputs, use_cache=True).past_key_values
        held = sum(one.numel() for layer in cache.layers for one in (layer.keys, layer.values))
        # the next query is a window's last key, so theirs keeps one token fewer there
        spare = sum(
            2 * layer.attention.cached
            for layer in model.layers
            if layer.attention
            and layer.attention.span.cached_keys(LONG) < LONG
            and layer.attention.span.cached_keys(length) == layer.attention.span.cached_keys(LONG)
        )
        assert model.cache(length, batch=2, bytes=1) - spare == held


def test_cache_bytes() -> None:
    mistral = config(PUBLISHED["Mistral-7B-v0.1"][0])
    a_token = 32 * 2 * 8 * 128 * 2  # layers, keys and values, kv heads, head dimension, bytes
    assert mistral.cache(1000) == 1000 * a_token
    assert mistral.cache(100_000) == 4096 * a_token
    gemma = config(PUBLISHED["gemma-2-9b"][0])
    assert gemma.cache(8192) == 21 * (4096 + 8192) * 2 * 8 * 256 * 2
    assert config(PUBLISHED["DeepSeek-V3"][0]).cache(4096) == 61 * 4096 * (512 + 64) * 2
    assert config(PUBLISHED["roberta-base"][0]).cache(64) == 0
