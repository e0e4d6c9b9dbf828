"""Pairs of attention: bands and masks against enumeration, and the fused operators by their arguments."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

from lattend.cost.measure.pairs import TILE, attended_in, band, band_tiles, pairs_of, pairs_of_fused

SIZE = st.integers(1, 40)
SIDE = st.none() | st.integers(-3, 40)


def attended(n: int, m: int, left: int | None, right: int | None) -> torch.Tensor:
    q, k = torch.arange(n)[:, None], torch.arange(m)
    result = torch.ones(n, m, dtype=torch.bool)
    result &= (q - k <= left) if left is not None else True
    return result & ((k - q <= right) if right is not None else True)


@given(SIZE, SIZE, SIDE, SIDE)
def test_band(n: int, m: int, left: int | None, right: int | None) -> None:
    pairs = attended(n, m, left, right)
    assert band(n, m, left, right) == (int(pairs.sum()), int(pairs.any(1).sum()))


@settings(max_examples=25)
@given(
    st.integers(1, 3 * TILE), st.integers(1, 3 * TILE), st.none() | st.integers(0, 700), st.integers(0, 700)
)
def test_tiles_of_a_band(n: int, m: int, left: int | None, right: int) -> None:
    pairs = attended(n, m, left, right)
    rows, cols = torch.arange(n) // TILE, torch.arange(m) // TILE
    touched = torch.zeros(int(rows[-1]) + 1, int(cols[-1]) + 1, dtype=torch.bool)
    q, k = pairs.nonzero(as_tuple=True)
    touched[rows[q], cols[k]] = True
    area = torch.bincount(rows)[:, None] * torch.bincount(cols)
    assert band_tiles(n, m, left, right) >= int(area[touched].sum())
    if left is None or n <= m:  # else rows of tiles may have a corner between both ends that is not attended
        assert band_tiles(n, m, left, right) == int(area[touched].sum())


@given(SIZE, SIZE, st.integers(1, 3), st.sampled_from([1, 2, 4]))
def test_causal(n: int, m: int, batch: int, kv_heads: int) -> None:
    q, k, v = torch.zeros(batch, 4, n, 8), torch.zeros(batch, kv_heads, m, 8), torch.zeros(batch, 1, m, 6)
    result = pairs_of(q, k, v, None, True)
    assert result.needed == batch * 4 * int(torch.ones(n, m).tril().sum())
    assert result.dense == batch * 4 * n * m
    assert result.needed <= result.executed <= result.dense
    assert result.forward.needed == result.needed * (8 + 6)
    assert result.backward.needed == 2 * result.forward.needed
    assert result.backward.executed == result.executed * (3 * 8 + 2 * 6)
    assert pairs_of(q, k, v, causal_upper_left(n, m), False).needed == result.needed
    if n <= m:
        corner = int(torch.ones(n, m).tril(m - n).sum())
        assert pairs_of(q, k, v, causal_lower_right(n, m), False).needed == batch * 4 * corner


@given(st.data(), SIZE, SIZE)
def test_masks(data: st.DataObject, n: int, m: int) -> None:
    shape = data.draw(st.sampled_from([(n, m), (2, 1, n, m), (2, 3, 1, m), (1, m), (n, 1), (1, 1, 1, 1)]))
    mask = torch.rand(shape) < data.draw(st.floats(0, 1))
    q, k = torch.zeros(2, 3, n, 4), torch.zeros(2, 3, m, 4)
    expected = int(mask.expand(2, 3, n, m).sum())
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        for low in (-torch.inf, torch.finfo(dtype).min):
            numbers = torch.where(mask, 0.5, low).to(dtype)
            assert pairs_of(q, k, k, numbers, False).needed == expected
    assert pairs_of(q, k, k, mask, False).needed == expected
    assert pairs_of(q, k, k, mask.expand(2, 3, n, m), False).needed == expected


def test_masks_without_values() -> None:
    assert attended_in(torch.ones(3, 3, device="meta")) is None
    q = torch.zeros(1, 1, 3, 4)
    result = pairs_of(q, q, q, torch.ones(3, 3, device="meta", dtype=torch.bool), False)
    assert (result.needed, result.note) == (9, "mask not known: attention in {} is counted dense")


# Operators of GPUs, by what they are given


def operands(*shape: int) -> dict[str, Any]:
    return {name: torch.zeros(shape, device="meta") for name in ("query", "key", "value")}


@pytest.mark.parametrize("name", ["flash_attention", "efficient_attention", "cudnn_attention"])
def test_fused(name: str) -> None:
    given = operands(2, 3, 200, 16)
    for operator in (f"_scaled_dot_product_{name}", f"_scaled_dot_product_{name}_backward"):
        assert pairs_of_fused(operator, given).needed == 6 * 200 * 200
        result = pairs_of_fused(operator, {**given, "is_causal": True, "attn_bias": torch.zeros(0)})
        assert (result.needed, result.executed) == (6 * 200 * 201 // 2, 6 * (64 * 64 * (1 + 2 + 3) + 8 * 200))
        bias = torch.zeros(200, 200).masked_fill(torch.ones(200, 200).triu(1).bool(), -torch.inf)
        assert pairs_of_fused(operator, {**given, "attn_bias": bias}).needed == 6 * 200 * 201 // 2


@given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.none() | st.integers(0, 9), st.booleans())
def test_packed(lengths: list[int], window: int | None, causal: bool) -> None:
    total = sum(lengths)
    ends = torch.tensor([0, *lengths]).cumsum(0)
    given = {**operands(total, 2, 8), "cum_seq_q": ends, "cum_seq_k": ends, "is_causal": causal}
    given |= {"window_size_left": window, "window_size_right": 0 if causal else window}
    result = pairs_of_fused("_flash_attention_forward", given)
    right = 0 if causal else window
    assert result.needed == 2 * sum(int(attended(n, n, window, right).sum()) for n in lengths)
    assert result.dense == 2 * sum(n * n for n in lengths)


def test_rows_before_heads() -> None:
    given = operands(3, 10, 2, 8)  # batch, positions, heads, head dimension
    assert pairs_of_fused("_flash_attention_forward", given).needed == 3 * 2 * 100
    result = pairs_of_fused("_flash_attention_forward", {**given, "is_causal": True})
    assert result.needed == 3 * 2 * 55
    result = pairs_of_fused("_efficient_attention_forward", {**given, "custom_mask_type": 1})
    assert result.needed == 3 * 2 * 55
