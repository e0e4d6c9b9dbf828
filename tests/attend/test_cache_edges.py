"""A cache without rows, rows without keys, and what its methods are not to be given."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import lattend as lt
from lattend.errors import LattendError

WINDOW = "k <= q and q - k <= 3"
KINDS = pytest.mark.parametrize("static", [False, True])


def cache_of(rule: str, batch: int, static: bool, **options: Any) -> lt.KVCache:
    return lt.KVCache(rule, batch=batch, heads=2, head_dim=4, static=static, **options)


@KINDS
def test_a_batch_of_none_goes_through_every_step(static: bool) -> None:
    cache = cache_of(WINDOW, 0, static, rollback=4)
    for s in (5, 1, 3):
        x = torch.zeros(0, 2, s, 4)
        assert cache.attend(x, x, x).shape == x.shape
        assert cache.attend(x, x, x, padding=torch.zeros(0, dtype=torch.int64)).shape == x.shape
        cache.keep([0])
    cache.crop([])
    cache.crop(1)
    cache.select([])
    cache.reset([])
    assert len(cache) == 0 and cache.lengths.tolist() == [] and cache.positions.tolist() == []
    assert "0 of 0 keys" in repr(cache)


def test_ragged_rows_may_all_be_dropped_from_a_batch() -> None:
    cache = cache_of(WINDOW, 2, False)
    x = torch.ones(2, 2, 6, 4)
    cache.attend(x, x, x, padding=torch.tensor([6, 2]))
    cache.select([])
    assert cache.attend(x[:0], x[:0], x[:0]).shape == (0, 2, 6, 4)


def test_ragged_rows_under_a_rule_that_keeps_no_key() -> None:
    cache = cache_of("k <= q and q - k <= 0", 2, False)
    x = torch.arange(8.0).view(2, 1, 1, 4).expand(2, 2, 1, 4)
    for real in ([True, False], [False, True], [True, True]):
        mask = torch.tensor(real)[:, None]
        out = cache.attend(x, x, x, padding=mask)
        torch.testing.assert_close(out, x * mask[:, :, None, None])
    assert cache.lengths.tolist() == [2, 2]


def test_a_kept_token_that_a_static_cache_has_overwritten_is_never_taken_for_another() -> None:
    cache = cache_of("k <= q and (k < 2 or q - k <= 3)", 1, True)
    x = torch.randn(1, 2, 11, 4)
    cache.attend(x, x, x)
    cache.keep([0, 3])  # 4 slots go round beside 2 that stay: token 3 is gone
    outs = [cache.attend(*[torch.randn(1, 2, 1, 4)] * 3) for _ in range(12)]
    assert torch.cat(outs).isnan().all()
    cache.reset()
    assert not cache.attend(x, x, x).isnan().any()


@KINDS
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda cache, x: cache.select([0, 2]), "there is no row 2; rows are 0 to 1"),
        (lambda cache, x: cache.select([0, -1]), "there is no row -1; rows are 0 to 1"),
        (lambda cache, x: cache.select([[0, 1]]), r"rows are a list of numbers, got \[\[0, 1"),
        (lambda cache, x: cache.select([True, False]), "rows must be whole numbers, got bool"),
        (lambda cache, x: cache.positions_of(5), "there is no row 5; rows are 0 to 1"),
        (lambda cache, x: cache.reset(0), "rows are a list of numbers, got 0"),
        (lambda cache, x: cache.reset([True]), "rows must be whole numbers, got bool"),
        (lambda cache, x: cache.crop(1.5), "lengths must be whole numbers, got float64"),
        (lambda cache, x: cache.crop(torch.tensor([1.0, 2.0])), "lengths must be whole numbers, got"),
        (lambda cache, x: cache.crop([1, 2, 3]), r"or 2 for the rows, got shape \(3,\)"),
        (lambda cache, x: cache.keep(0), "keep takes a list of tokens, or 2 lists"),
        (lambda cache, x: cache.keep(None), "indices must be whole numbers, got object"),
        (lambda cache, x: cache.keep(torch.zeros(3, 1, dtype=torch.int64)), "keep takes a "),
        (lambda cache, x: cache.keep(torch.zeros(2, 1)), "indices must be whole numbers, got"),
        (lambda cache, x: cache.keep([1, 0]), r"in order; got \[1, 0\]"),
        (lambda cache, x: cache.attend(x, x, None), "v must be a tensor, got NoneType"),
        (lambda cache, x: cache.attend(x, x, x, scale="1"), "scale must be a number, got str"),
        (lambda cache, x: cache.attend(x, x, x, softcap=0.0), "softcap bends scores to within"),
        (lambda cache, x: cache.attend(x, x, x, sinks=torch.ones(3)), r"sinks has shape \(3\), and q has 2"),
        (lambda cache, x: cache.attend(x, x, x, sinks=1.0), "sinks must be a tensor with one logit a head"),
    ],
)
def test_what_is_wrong_is_said(static: bool, wrong: Any, message: str) -> None:
    cache = cache_of(WINDOW, 2, static)
    x = torch.ones(2, 2, 3, 4)
    cache.attend(x, x, x)
    with pytest.raises(LattendError, match=message):
        wrong(cache, x)
    assert cache.lengths.tolist() == [3, 3]
