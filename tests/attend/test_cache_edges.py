"""A cache without rows, rows without keys, and what its methods are not to be given."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
import torch

import lattend as lt
from lattend.attend.decode.static import StaticStore
from lattend.attend.kernels.native import library
from lattend.errors import DomainError, LattendError

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


CHANGES: dict[str, Any] = {
    "select": lambda cache: cache.select([1, 0]),
    "crop": lambda cache: cache.crop(3),
    "crop rows": lambda cache: cache.crop([-1, 3]),
    "keep": lambda cache: cache.keep([0, 1, 2]),
    "reset": lambda cache: cache.reset(),
    "reset a row": lambda cache: cache.reset([0]),
}


@KINDS
@pytest.mark.parametrize("change", CHANGES)
def test_keep_after_the_cache_was_changed_is_refused(static: bool, change: str) -> None:
    cache, x = cache_of(WINDOW, 2, static, rollback=4), torch.ones(2, 2, 3, 4)
    with pytest.raises(DomainError, match="keep chooses among the tokens of the last call; since then the"):
        cache.keep([])
    cache.attend(x, x, x)
    CHANGES[change](cache)
    lengths = cache.lengths.tolist()
    for path in ([0], [], torch.tensor([[0], [-1]])):
        with pytest.raises(
            DomainError, match="keep chooses among the tokens of the last call; since then the cache was chan"
        ):
            cache.keep(path)
    assert cache.lengths.tolist() == lengths


@KINDS
@pytest.mark.parametrize("path", [[3], [0, 3], [[0], [3]], torch.tensor([3]), torch.tensor([[1, 0], [0, 1]])])
def test_a_path_of_tokens_that_are_not_in_the_last_call_is_refused(static: bool, path: Any) -> None:
    cache, x = cache_of(WINDOW, 2, static, rollback=4), torch.ones(2, 2, 3, 4)
    cache.attend(x, x, x)
    with pytest.raises(
        DomainError, match="keep takes tokens of the last call, numbered from 0 to 2, in order"
    ):
        cache.keep(path)
    cache.keep([0])
    assert cache.lengths.tolist() == [1, 1]


@pytest.mark.parametrize("path", [[[0, 3], [0, 1]], [[1, 0], [0, 1]], [[-1, 1], [0, 1]]])
@pytest.mark.parametrize("changed", [False, True])
def test_where_the_host_does_not_wait_a_path_that_cannot_be_kept_gives_nan(
    path: list[list[int]], changed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StaticStore, "known_draft", lambda self: None)  # as on a GPU
    cache, x = cache_of(WINDOW, 2, True, rollback=4), torch.ones(2, 2, 3, 4)
    cache.attend(x, x, x)
    if changed:
        cache.crop(2)
    cache.keep(torch.tensor(path))
    for _ in range(9):
        out = cache.attend(*[x[:, :, :1]] * 3)
        assert out[0].isnan().all() and bool(out[1].isnan().all()) == changed
    cache.reset()
    assert not cache.attend(x, x, x).isnan().any()


JUNK = [nan, inf, -inf, 3e38]


def fill_unused(cache: lt.KVCache, junk: float) -> None:
    store = cache._store  # pyright: ignore[reportPrivateUsage]
    positions: Any = store.positions if isinstance(store, StaticStore) else store.table.positions
    for x in (cache.keys, cache.values):
        x.masked_fill_((torch.as_tensor(positions) < 0)[:, None, :, None], junk)


@pytest.mark.parametrize("path", ["native", "torch", "float64", "compiled"])
@pytest.mark.parametrize("change", ["select", "crop rows", "keep", "reset a row"])
@pytest.mark.parametrize("s", [1, 3])
@KINDS
def test_what_lies_in_unused_memory_never_changes_an_output(
    static: bool, s: int, change: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == "compiled" and not static:
        pytest.skip("torch.compile leaves it to Python")
    if path == "torch":
        monkeypatch.setattr(library, "missing", lambda: "it was not built")
    outs = list[list[torch.Tensor]]()
    for junk in (0.0, *JUNK):
        draw = torch.Generator().manual_seed(0)
        room: dict[str, Any] = {"capacity": 32} if static else {}
        kind = torch.float64 if path == "float64" else torch.float32
        cache = cache_of("k <= q", 2, static, dtype=kind, **room)
        step: Any = cache.attend
        if path == "compiled":
            step = torch.compile(cache.attend, backend="eager", fullgraph=True)
        fill_unused(cache, junk)
        x = torch.randn(2, 2, 5, 4, generator=draw).to(kind)
        cache.attend(x, x, x, padding=torch.tensor([5, 4]))
        x = x[:, :, :3]
        found = [cache.attend(x, x, x)]
        CHANGES[change](cache)
        fill_unused(cache, junk)
        for _ in range(3):
            x = torch.randn(2, 2, s, 4, generator=draw).to(kind)
            found.append(step(x, x, x))
        outs.append(found)
    assert not any(out.isnan().any() for out in outs[0])
    for found in outs[1:]:
        assert all(map(torch.equal, found, outs[0]))


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
