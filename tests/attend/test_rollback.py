"""Rows of a cache with lengths of their own, and tokens taken back, against the whole text of each row."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from decode_oracle import RULES, Texts, cache_of

import lattend as lt
from lattend.errors import DomainError, NamingError, TensorError


def filled(rule: str, length: int, batch: int = 2, **options: int) -> tuple[Texts, lt.KVCache]:
    texts = Texts(rule, batch)
    cache = cache_of(texts, **options)
    for _ in range(length):
        texts.feed(cache, [[texts.token()] for _ in range(batch)])
    return texts, cache


def test_prompts_padded_left_or_right_decode_each_at_its_own_position() -> None:
    for left in (False, True):
        texts = Texts(RULES["sinks"], 3)
        cache, lengths = cache_of(texts), [7, 2, 9]
        places = np.arange(9) if not left else np.arange(9)[::-1]
        real = places < np.array(lengths)[:, None]
        texts.feed(cache, [[texts.token() for _ in range(size)] for size in lengths], real)
        for _ in range(6):
            texts.feed(cache, [[texts.token()] for _ in range(3)])
        assert cache.lengths.tolist() == [13, 8, 15] and len(cache) == 15
        assert cache.positions_of(1).tolist() == [0, 1, 5, 6, 7]
        with pytest.raises(
            DomainError, match=r"rows of this cache have positions of their own: positions_of\("
        ):
            _ = cache.positions


@pytest.mark.parametrize("name", ["causal", "window", "blocks", "columns", "heads"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_row_of_a_padded_cache_attends_to_its_own_keys(name: str, dtype: torch.dtype) -> None:
    texts = Texts(RULES[name], 2)
    cache = cache_of(texts, dtype=dtype)
    real = np.arange(8) < np.array([[3], [8]])
    texts.feed(cache, [[texts.token() for _ in range(size)] for size in (3, 8)], real)
    cache.select([0])
    del texts.rows[1]
    for _ in range(9):
        texts.feed(cache, [[texts.token()]])
    assert cache.lengths.tolist() == [12]


def test_lengths_say_the_same_as_a_mask() -> None:
    x = torch.randn(2, 4, 5, 8, dtype=torch.float64)
    outs = []
    for padding in (torch.tensor([5, 2]), torch.arange(5) < torch.tensor([[5], [2]])):
        cache = lt.KVCache("causal", batch=2, heads=4, head_dim=8, dtype=torch.float64)
        outs.append(lt.attention(x, x, x, "causal", cache=cache, padding=padding))
        assert cache.lengths.tolist() == [5, 2]
    assert torch.equal(*outs) and (outs[0][1, :, 2:] == 0).all()
    wanted = lt.attention(x, x, x, "causal")
    torch.testing.assert_close(outs[0][1, :, :2], wanted[1, :, :2])


def test_a_padded_token_takes_no_sink_either() -> None:
    x = torch.randn(1, 2, 3, 8, dtype=torch.float64)
    cache = lt.KVCache("causal", batch=1, heads=2, head_dim=8, dtype=torch.float64)
    padding, sinks = torch.tensor([2]), torch.zeros(2, dtype=torch.float64)
    out, lse = lt.attention(x, x, x, "causal", cache=cache, padding=padding, sinks=sinks, return_lse=True)
    assert (out[:, :, 2] == 0).all() and (lse[:, :, 2] == -torch.inf).all()
    torch.testing.assert_close(out[:, :, :2], lt.attention(x, x, x, "causal", sinks=sinks)[:, :, :2])


def test_what_a_window_has_dropped_cannot_be_taken_back() -> None:
    texts, cache = filled(RULES["window"], 20, rollback=3)
    assert cache.capacity == 6 + 3
    cache.crop(-3)
    with pytest.raises(
        DomainError, match="2 tokens cannot be taken back: keys that position 15 reaches are dro"
    ):
        cache.crop(15)
    with pytest.raises(DomainError, match=r"go back to 16 tokens\. Make the cache with rollback=19 or more"):
        cache.crop(0)
    for row in range(2):
        texts.crop(row, -3)
    texts.feed(cache, [[texts.token()] for _ in range(2)])
    _, forgetful = filled(RULES["window"], 20)
    with pytest.raises(DomainError, match="Make the cache with rollback=1 or more"):
        forgetful.crop(-2)  # the step itself has dropped nothing that the last query reaches
    _, whole = filled(RULES["causal"], 20)
    whole.crop(3)
    assert len(whole) == 3 and whole.positions.tolist() == [0, 1, 2]


def test_a_draft_of_keys_that_the_rule_drops_needs_a_reserve() -> None:
    texts, cache = filled("k <= q and k % 2 == 0", 4)
    texts.feed(cache, [[texts.token() for _ in range(2)] for _ in range(2)])
    with pytest.raises(
        DomainError, match="token 1 of the draft is not held: this rule drops its key at once"
    ):
        cache.keep([1])


def test_what_keep_crop_and_reset_cannot_take() -> None:
    _, cache = filled(RULES["causal"], 3)
    with pytest.raises(
        DomainError, match=r"keep takes tokens of the last call, numbered from 0 to 0, in order; got \[1"
    ):
        cache.keep([1])
    with pytest.raises(DomainError, match=r"in order; got \[0, 0\]"):
        cache.keep([0, 0])
    with pytest.raises(
        TensorError, match="keep takes a list of tokens, or 2 lists, one for each row of the batch"
    ):
        cache.keep([[0], [0], [0]])
    with pytest.raises(TensorError, match="indices must be whole numbers, got float64"):
        cache.keep([0.5])  # pyright: ignore[reportArgumentType]
    cache.keep(torch.tensor([[0], [-1]]))
    assert cache.lengths.tolist() == [3, 2]
    with pytest.raises(
        DomainError, match="keep chooses among the tokens of the last call; since then the cache w"
    ):
        cache.keep([0])
    with pytest.raises(TensorError, match=r"crop takes one length, or 2 for the rows, got shape \(3,\)"):
        cache.crop([1, 2, 3])
    with pytest.raises(DomainError, match="there is no row 2; rows are 0 to 1"):
        cache.reset([2])
    q, k, v = (torch.zeros(2, heads, 1, size).double() for heads, size in ((4, 8), (2, 8), (2, 6)))
    with pytest.raises(
        TensorError, match=r"padding is a mask \(2, 1\) of bool, True where a new token is real, or"
    ):
        lt.attention(q, k, v, "k <= q", cache=cache, padding=torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(DomainError, match="padding has a length of 2, and there are 1"):
        lt.attention(q, k, v, "k <= q", cache=cache, padding=torch.tensor([2, 1]))
    with pytest.raises(NamingError, match="the cache takes no doc with a call: no array of its rule grows"):
        cache.attend(q, k, v, doc=1)
    with pytest.raises(DomainError, match="rollback = -1: it is at least 0"):
        filled(RULES["causal"], 0, rollback=-1)
    assert cache.lengths.tolist() == [3, 2]
