"""A rule as FlexAttention's mask_mod and BlockMask: the same pairs, the same blocks, the same output."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_rules import affine, split
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, and_masks, create_block_mask, flex_attention

import lattend as lt
from lattend.draw.grid.samples import catalogue
from lattend.errors import DomainError, NamingError

SMALL = {"n": 9, "m": 7, "rows": 4, "cols": 3, "depth": 2, "heads": 2, "shift": 1}
IDS = np.array([0, 0, 1, 1, 1, 2, 2, 2, 2])
RULES = [
    *(made for name, made in catalogue().items() if name != "documents"),
    *(lt.rule(text) for text in ("true", "q == q and false", "min(q, t) < max(k, 2, q - t)", "m <= k + q")),
    *(lt.rule(text) for text in ("t > 2 or k <= q", "not (t > 3) and k <= q", "not (t < 1 or k > q)")),
    *(lt.rule(text) for text in ("q - k <= head and heads > 1", "kz <= qz and kx != qx", "qy == ky")),
    *(lt.rule(text) for text in ("-k % 3 == q % -(-3)", "abs(q - 2*k) // 3 == 1 or head == 1")),
    lt.rule("doc[q] == doc[k] and k <= q and doc[0] == 0", data={"doc": IDS}),
    lt.rule("torch[q] == torch[k]", data={"torch": IDS}),
    lt.rule("h[head, k] == 1 and k <= q", data={"h": np.stack([IDS, IDS[::-1]])}),
    lt.rule("c[q // 3, min(k, q) // 3]", data={"c": np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1]])}),
]


def numbers(chosen: lt.Rule) -> dict[str, int]:
    return {name: SMALL.get(name, 2) for name in chosen.free}


def flat_mask(chosen: lt.Rule, at: dict[str, int]) -> np.ndarray[Any, Any]:
    """The pairs [heads, queries, keys], an image row by row."""
    mask = chosen.mask(**at)
    heads = chosen.at(**at).values["heads"] if chosen.has_heads else 1
    per_head = mask.shape[1:] if chosen.has_heads else mask.shape
    queries = int(np.prod(per_head[: len(per_head) // 2]))
    return mask.reshape(heads, queries, -1)


def asked(mod: Any, heads: int, n: int, m: int) -> np.ndarray[Any, Any]:
    h, q, k = torch.arange(heads)[:, None, None], torch.arange(n)[:, None], torch.arange(m)
    found = mod(torch.tensor(0), h, q, k)
    assert found.dtype == torch.bool
    return np.broadcast_to(found.numpy(), (heads, n, m))


# mask_mod


@pytest.mark.parametrize("chosen", RULES, ids=str)
def test_a_mask_mod_attends_the_same_pairs(chosen: lt.Rule) -> None:
    at = numbers(chosen)
    wanted = flat_mask(chosen, at)
    assert np.array_equal(asked(chosen.mask_mod(**at), *wanted.shape), wanted)


@given(st.one_of(affine(), split()), st.integers(0, 4), st.integers(1, 4))
def test_random_rules_too(text: str, t: int, w: int) -> None:
    chosen = lt.rule(text)
    at = {name: {"n": 9, "t": t, "w": w}[name] for name in chosen.free}
    wanted = flat_mask(chosen, at)
    mod = chosen.mask_mod(**at)
    assert np.array_equal(asked(mod, *wanted.shape), wanted)
    assert np.array_equal(lt.rule(mod).mask(n=9), wanted[0])


@pytest.mark.parametrize("chosen", RULES, ids=str)
def test_read_back_it_is_the_same_rule(chosen: lt.Rule) -> None:
    at = numbers(chosen)
    wanted = flat_mask(chosen, at)
    back = lt.rule(chosen.mask_mod(**at), cross=True)
    heads = {"heads": len(wanted)} if back.has_heads else {}
    found = back.mask(n=wanted.shape[1], m=wanted.shape[2], **heads)
    assert np.array_equal(np.broadcast_to(found, wanted.shape), wanted)


def test_on_a_line_it_reads_as_it_was_written() -> None:
    band = lt.rules.strided(t=3)
    assert lt.rule(band.mask_mod()).condition == band.baked().condition
    assert lt.rule(band.mask_mod()).same_as(band)
    packed = lt.rule("documents([3, 5])")
    assert lt.rule(packed.mask_mod()).text == packed.text


@pytest.mark.parametrize("chosen", RULES[::3], ids=str)
def test_it_is_compiled_whole(chosen: lt.Rule) -> None:
    at = numbers(chosen)
    wanted = flat_mask(chosen, at)
    compiled = torch.compile(chosen.mask_mod(**at), backend="eager", fullgraph=True)
    assert np.array_equal(asked(compiled, *wanted.shape), wanted)


def test_sizes_are_asked_for_only_where_the_condition_has_them() -> None:
    assert lt.rules.causal().mask_mod()(None, None, torch.tensor(3), torch.tensor(2))
    with pytest.raises(NamingError, match=r'a mask_mod of ".* <= t" needs a value for t: give t=…'):
        lt.rules.strided().mask_mod()
    with pytest.raises(NamingError, match="needs a value for cols: give cols=…"):
        lt.rules.neighbourhood(r=1).mask_mod()
    with pytest.raises(NamingError, match="gets doc when attention runs"):
        lt.rule("doc[q] == doc[k]", data={"doc": None}).mask_mod()


def test_equal_rules_share_their_code() -> None:
    """Torch compiles again for another code object, and not for another function of the same."""
    first, again = (lt.rules.strided().mask_mod(t=5) for _ in range(2))
    assert first.__code__ is again.__code__  # pyright: ignore[reportFunctionMemberAccess]


# BlockMask

TABLES = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices")
TABLES += ("q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices")


def check_blocks(chosen: lt.Rule, at: dict[str, int], block: tuple[int, int]) -> None:
    """Every table is that of create_block_mask, which looks at each pair."""
    found = chosen.block_mask(block_size=block, **at)
    heads, n, m = flat_mask(chosen, at).shape
    by_head = heads if chosen.has_heads else None
    wanted = create_block_mask(chosen.mask_mod(**at), None, by_head, n, m, device="cpu", BLOCK_SIZE=block)
    assert found.shape == wanted.shape and found.BLOCK_SIZE == wanted.BLOCK_SIZE
    for name in TABLES:
        mine, theirs = getattr(found, name), getattr(wanted, name)
        assert mine.dtype == theirs.dtype and torch.equal(mine, theirs), name
    assert torch.equal(found.to_dense(), wanted.to_dense())


@pytest.mark.parametrize("block", [(2, 2), (4, 4), (3, 5), (16, 16)], ids=str)
@pytest.mark.parametrize("chosen", RULES, ids=str)
def test_its_blocks_are_those_of_create_block_mask(chosen: lt.Rule, block: tuple[int, int]) -> None:
    check_blocks(chosen, numbers(chosen), block)


@given(st.one_of(affine(), split()), st.integers(0, 9), st.integers(1, 6), st.sampled_from([1, 2, 3, 4, 8]))
def test_so_are_those_of_random_rules(text: str, t: int, w: int, block: int) -> None:
    chosen = lt.rule(text)
    check_blocks(chosen, {name: {"n": 21, "t": t, "w": w}[name] for name in chosen.free}, (block, block))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("strided(t=255)", {"n": 1100}),
        ("natten(7)", {"rows": 30, "cols": 33}),
        ("bigbird", {"n": 1024}),
        ("documents([300, 100, 625])", {}),
        ("k <= q and q - k <= 200*(head + 1)", {"n": 1000, "heads": 3}),
    ],
)
def test_blocks_of_128_too(text: str, at: dict[str, int]) -> None:
    chosen = lt.rule(text)
    check_blocks(chosen, {**{name: 2 for name in chosen.free if name not in at}, **at}, (128, 128))


@pytest.mark.parametrize(
    "text", ["strided(t=300)", "sparse_fixed(l=64, c=4)", "q - k == 64*head and head < heads"]
)
def test_long_tables_hold_the_same_blocks(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rows share their storage, the lists are the same as far as they are read."""
    chosen = lt.rule(text)
    at = {"n": 1024, **({"heads": 2} if chosen.has_heads else {})}
    short = chosen.block_mask(block_size=32, **at)
    monkeypatch.setattr("lattend.integrations.flex.MOST_LISTED", 0)
    long = chosen.block_mask(block_size=32, **at)
    assert torch.equal(short.to_dense(), long.to_dense())
    assert long.full_kv_indices is not None and long.q_indices is not None and long.full_q_indices is not None
    # on a GPU torch reads the full blocks with the strides of the partial ones
    assert long.kv_indices.stride() == long.full_kv_indices.stride()
    assert long.q_indices.stride() == long.full_q_indices.stride()
    for counts, indices in zip(TABLES[::2], TABLES[1::2], strict=True):
        number = getattr(short, counts)
        assert torch.equal(number, getattr(long, counts))
        read = torch.arange(getattr(short, indices).shape[-1]) < number[..., None]
        assert torch.equal(getattr(short, indices)[read], getattr(long, indices)[read])


def test_a_million_positions_take_a_second_and_ten_mebibytes() -> None:
    lt.rules.strided(t=3).block_mask(n=64)  # what is loaded on first use is not counted
    tracemalloc.start()
    begin = time.perf_counter()
    found = lt.rules.strided(t=4095).block_mask(n=1 << 20)
    took = time.perf_counter() - begin
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    held = sum(getattr(found, name).untyped_storage().nbytes() for name in TABLES)
    # row r of 8192: the block of the diagonal and the one 32 before it are partial, 31 between are full
    assert int(found.kv_num_blocks.sum()) == 8192 + 8192 - 32
    assert found.full_kv_num_blocks is not None
    assert int(found.full_kv_num_blocks.sum()) == sum(min(r, 31) for r in range(8192))
    assert held < 5 << 20
    assert peak < 10 << 20
    assert took < 5  # a second on an idle machine


@pytest.mark.parametrize(
    ("text", "by_queries", "by_keys"),
    [("strided(4095)", 31, 31), ("sinks(4, 4095)", 31, 512 - 31), ("causal", 511, 511)],
)
def test_a_table_is_as_wide_as_its_longest_row(text: str, by_queries: int, by_keys: int) -> None:
    """512 rows of blocks at n = 2^16: so many full blocks, or partial ones where these are more, in one."""
    found = lt.rule(text).block_mask(n=1 << 16)
    for widest, names in ((by_queries, TABLES[1:4:2]), (by_keys, TABLES[5::2])):
        for name in names:
            entries = 512 * widest + 512  # the view reaches a row beyond the last
            assert getattr(found, name).untyped_storage().nbytes() == 4 * entries, name


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize(
    "text", ["strided(t=40)", "k <= q and q - k <= 30*(head + 1)", "documents([100, 60, 96])"]
)
def test_flex_attention_gives_the_same_output(text: str) -> None:
    chosen = lt.rule(text)
    at = {"n": 256} if "documents" not in text else {}
    heads = {"heads": 2} if chosen.has_heads else {}
    q, k, v = torch.randn(3, 1, 2, 256, 16, generator=torch.Generator().manual_seed(0))
    block = chosen.block_mask(block_size=64, **at, **heads)
    wanted = lt.attention(q, k, v, chosen)
    found = flex_attention(q, k, v, block_mask=block)
    torch.testing.assert_close(found, wanted)
    assert np.array_equal(lt.rule(block).mask(n=256, **heads), chosen.mask(**at, **heads))


def test_what_cannot_be_made_is_refused_with_the_reason() -> None:
    with pytest.raises(lt.errors.DomainError, match="block_size must be at least 1, got 0"):
        lt.rules.causal().block_mask(n=8, block_size=0)
    with pytest.raises(NamingError, match="needs a value for n"):
        lt.rules.causal().block_mask()
    with pytest.raises(NamingError, match="gets doc when attention runs"):
        lt.rule("doc[q] == doc[k]", data={"doc": None}).block_mask(n=8)
    table = lt.rule("c[q // 4096, k // 4096]", data={"c": np.ones((256, 256), int)})
    with pytest.raises(lt.errors.TooLarge, match="is looked up for each of 1,048,576 x 1,048,576 pairs"):
        table.block_mask(n=1 << 20)


# A BlockMask as a rule: its table is a part of the mask

DOCUMENTS = torch.tensor([[0] * 5 + [1] * 27, [0] * 9 + [1] * 3 + [2] * 20])
MODS: dict[str, Any] = {
    "causal": lambda b, h, q, k: q >= k,
    "window": lambda b, h, q, k: (q - k).abs() < 3,
    "by head": lambda b, h, q, k: q - k <= 2 * h,
    "documents": lambda b, h, q, k: DOCUMENTS[0, q] == DOCUMENTS[0, k],
    "documents by element": lambda b, h, q, k: DOCUMENTS[b, q] == DOCUMENTS[b, k],
    "none": None,
}


def listed(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """The table of FlexAttention for blocks [batch, heads, rows, columns] of bool."""
    return blocks.sum(-1, dtype=torch.int32), torch.argsort(~blocks, dim=-1, stable=True).int()


def from_states(states: Tensor, mod: Any, size: tuple[int, int], lengths: tuple[int, int]) -> BlockMask:
    """A BlockMask of blocks that are absent (0), partial (1) or full (2)."""
    full = listed(states == 2) if bool((states == 2).any()) else (None, None)
    partial = listed(states == 1)
    return BlockMask.from_kv_blocks(*partial, *full, BLOCK_SIZE=size, mask_mod=mod, seq_lengths=lengths)


def expanded(states: Tensor, mod: Any, size: tuple[int, int], lengths: tuple[int, int]) -> Tensor:
    """Its pairs [2, 2, queries, keys]: each block of the table expanded, and mask_mod in the partial ones."""
    wide = states.repeat_interleave(size[0], 2).repeat_interleave(size[1], 3)
    wide = wide[:, :, : lengths[0], : lengths[1]].expand(2, 2, *lengths)
    b, h, q, k = torch.meshgrid(*(torch.arange(s) for s in wide.shape), indexing="ij")
    inside = torch.ones(wide.shape, dtype=torch.bool) if mod is None else mod(b, h, q, k)
    return (wide == 2) | (wide == 1) & inside


@given(st.data())
def test_the_table_of_a_block_mask_is_a_part_of_its_rule(data: st.DataObject) -> None:
    """Random tables and sizes, by head and by batch element, lengths that are no multiple of a block."""
    size = data.draw(st.sampled_from([1, 2, 5, 8])), data.draw(st.sampled_from([1, 3, 4, 8]))
    rows, columns = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    lengths = (
        rows * size[0] - data.draw(st.integers(0, size[0] - 1)),
        columns * size[1] - data.draw(st.integers(0, size[1] - 1)),
    )
    batch, heads = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2))
    seed = data.draw(st.integers(0, 99))
    high = data.draw(st.integers(2, 3))
    states = torch.randint(high, (batch, heads, rows, columns), generator=torch.Generator().manual_seed(seed))
    mod = MODS[data.draw(st.sampled_from([*MODS]))]
    mask = from_states(states, mod, size, lengths)
    pairs = expanded(states, mod, size, lengths)
    q, k, v = torch.randn(3, 2, 2, 32, 4, generator=torch.Generator().manual_seed(seed))
    q, k, v = q[:, :, : lengths[0]], k[:, :, : lengths[1]], v[:, :, : lengths[1]]
    weights = (q @ k.mT / 2).masked_fill(~pairs, -1e30).softmax(-1) * pairs.any(-1, keepdim=True)
    sizes: dict[str, Any] = {} if lengths[0] == lengths[1] else {"m": lengths[1]}
    torch.testing.assert_close(lt.attention(q, k, v, mask, **sizes), weights @ v, atol=2e-6, rtol=1e-5)


def test_a_block_diagonal_table_of_a_causal_mask_mod() -> None:
    """2 blocks of 128 · 129 / 2 pairs, where causal alone has 256 · 257 / 2."""
    states = torch.eye(2, dtype=torch.int64)[None, None]
    mask = from_states(states, MODS["causal"], (128, 128), (256, 256))
    assert lt.rule(mask).text == "blocks[q // 128, k // 128] == 1 and q >= k"
    assert lt.rule(mask).count(n=256) == 2 * 128 * 129 // 2
    alone = from_states(states, None, (128, 128), (256, 256))
    assert lt.rule(alone).text == "blocks[q // 128, k // 128] > 0"
    both = from_states(2 * states + 1 - states, MODS["causal"], (128, 128), (256, 256))
    assert lt.rule(both).text.startswith("blocks[q // 128, k // 128] == 2 or blocks")


@pytest.mark.parametrize("name", MODS)
def test_a_table_that_mask_mod_implies_leaves_the_rule_as_it_is(name: str) -> None:
    if name == "none":
        mask = from_states(torch.ones(1, 1, 2, 2, dtype=torch.int64), None, (8, 8), (16, 16))
        assert lt.rule(mask).same_as(lt.rule("full"))
        return
    mod = MODS[name]
    made = create_block_mask(mod, 2, 2, 32, 32, device="cpu", BLOCK_SIZE=8)
    assert lt.rule(made) == lt.rule(mod)
    larger = from_states(torch.ones(2, 2, 4, 4, dtype=torch.int64), mod, (8, 8), (32, 32))
    assert lt.rule(larger) == lt.rule(mod)  # all blocks partial: mask_mod alone decides
    apart = create_block_mask(
        and_masks(mod, lambda b, h, q, k: q // 8 != 3), 2, 2, 32, 32, device="cpu", BLOCK_SIZE=8
    )
    apart.mask_mod = mod
    assert "blocks" in lt.rule(apart).text


def test_a_table_that_changes_is_read_again() -> None:
    mask = create_block_mask(MODS["causal"], None, None, 32, 32, device="cpu", BLOCK_SIZE=8)
    assert lt.rule(mask).text == "q >= k"
    mask.kv_num_blocks[:, :, 3] = 0
    mask.full_kv_num_blocks[:, :, 3] = 0  # pyright: ignore[reportOptionalSubscript]
    assert lt.rule(mask).count(n=32) == 24 * 25 // 2


def test_a_table_made_for_one_head_holds_for_all() -> None:
    """FlexAttention reads one table for all heads, although mask_mod differs between them."""
    mod = MODS["by head"]
    mask = create_block_mask(mod, None, None, 32, 32, device="cpu", BLOCK_SIZE=8)
    assert "blocks" in lt.rule(mask).text


def test_tables_that_do_not_fit() -> None:
    table = torch.ones(1, 1, 2, dtype=torch.int32), torch.full((1, 1, 2, 2), 5, dtype=torch.int32)
    mask = BlockMask((16, 16), *table, None, None, None, None, None, None, BLOCK_SIZE=(8, 8))
    with pytest.raises(DomainError, match="the BlockMask lists block 5 of keys, and there are 0 to 1"):
        lt.rule(mask)
    short = from_states(torch.eye(2, dtype=torch.int64)[None, None], MODS["causal"], (8, 8), (16, 16))
    q = torch.zeros(1, 1, 32, 4)
    with pytest.raises(
        DomainError, match=r"blocks\[q // 8, k // 8\] is read at q // 8 = \d, outside the blocks"
    ):
        lt.attention(q, q, q, short)
