"""Tables made on the device: beside those that torch makes, and steps that repeat with other data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import lattend as lt
from lattend.attend.call.options import KernelOptions
from lattend.attend.kernels.triton import device_tables
from lattend.attend.kernels.triton.launch import PlanExecutor
from lattend.attend.kernels.triton.tables import OFFSET_HIGH, refined, with_known_lists
from lattend.attend.operators.operator_arguments import OperatorCall
from lattend.attend.replay.compiled_call import COMPILED_CALLS, compiled_call_of
from lattend.attend.replay.recorder import Recorder
from lattend.plans.part import Part
from lattend.plans.plan import Plan, plan
from lattend.plans.tables.tile_costs import TileShape
from lattend.plans.tiles import (
    FULL_END,
    FULL_FIRST,
    INNER_BASE,
    INNER_END,
    INNER_FIRST,
    OUTER_BASE,
    OUTER_SLOT,
    with_lists,
)

pytestmark = [  # of the interpreter: its NumPy warns of log 0, and of scalars in arrays
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
ROWS = 8
Arrays = dict[str, Tensor]
Tile = tuple[Any, ...]


def tables(found: Plan, arrays: Arrays, rows: int = ROWS) -> Iterator[tuple[Part, Tensor, Tensor, Tensor]]:
    """Each part, the plan's own table of it, the one made on the device, and the one that torch makes."""
    shape = TileShape((rows,), 16, split=True)
    runner = PlanExecutor(found, DEVICE, shapes=lambda kernel, place: shape)
    q = torch.zeros(1, 1, 1, 16, device=DEVICE)
    sent = {name: x.to(DEVICE) for name, x in arrays.items()}
    for kernel, parts in (("forward", found.parts), ("backward_dkdv", found.transposed)):
        for place, part in enumerate(parts):
            tiles = found.tiles(place, (rows,), transposed=kernel == "backward_dkdv")
            plain = with_known_lists(tiles, torch.device("cpu"))
            mine = runner.part(Recorder(), kernel, place, q, q, sent).table
            yield part, plain, mine, refined(part, plain, rows, arrays)


def drawn_ids(source: torch.Generator, kind: str, *shape: int) -> Tensor:
    """Document ids: in order, scattered, or each in one place but in no order; some of them negative."""
    found = torch.randint(-3, 4, shape, generator=source)
    if kind == "scattered":
        return found
    ordered = found.sort(-1)[0]
    return ordered if kind == "in order" else (ordered * 5 + 20) % 7


DOCUMENTS = (
    "doc[q] == doc[k] and k <= q",
    "doc[q] == doc[k]",
    "doc[q] == of[k] and abs(q - k) <= 9",
    "doc[q] == doc[k] and of[q] == of[k]",
    "k >= begin[q] and k <= q",
    "doc[q] == doc[k] and k < begin[q] and q - k <= 6 + head",
    "k >= begin[head] and q % 3 == 1",
    "(q - k) % 3 == 0 and doc[q] == doc[k]",
    "q // 6 == k // 6 and doc[q] == doc[k]",
)


@settings(max_examples=40, deadline=None)
@given(
    text=st.sampled_from(DOCUMENTS),
    kinds=st.tuples(*[st.sampled_from(["in order", "scattered", "apart"])] * 2),
    batch=st.tuples(*[st.sampled_from([1, 2])] * 2),
    dtypes=st.tuples(*[st.sampled_from([torch.int64, torch.int32, torch.int8])] * 2),
    sizes=st.tuples(st.integers(1, 23), st.integers(1, 23)),
    zone=st.sampled_from([4, 64]),
    rows=st.sampled_from([ROWS, 6]),  # of a tile: no power of two
    seed=st.integers(0, 99),
)
def test_documents(
    text: str, kinds: Any, batch: Any, dtypes: Any, sizes: tuple[int, int], zone: int, rows: int, seed: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_tables, "ZONE", zone)
        patch.setattr(device_tables, "CHUNK", 4)
        check_documents(text, kinds, batch, dtypes, sizes, rows, seed)


def check_documents(
    text: str, kinds: Any, batch: Any, dtypes: Any, sizes: tuple[int, int], rows: int, seed: int
) -> None:
    source, most = torch.Generator().manual_seed(seed), max(sizes) + seed % 3
    arrays = {
        name: drawn_ids(source, kind, count, most).to(dtype)
        for name, kind, count, dtype in zip(("doc", "of"), kinds, batch, dtypes, strict=True)
        if f"{name}[" in text
    }
    if "begin[" in text:
        arrays["begin"] = torch.randint(-2, most + 2, (batch[0], most), generator=source)
    heads = {"heads": 2} if "head" in text else {}
    found = plan(lt.rule(text, data=dict.fromkeys(arrays)), n=sizes[0], m=sizes[1], **heads)
    ascending = all((x.diff() >= 0).all() for name, x in arrays.items() if name != "begin")
    for _, _, made, theirs in tables(found, arrays, rows):
        mine = made.cpu().expand_as(theirs)
        unlike = [INNER_FIRST, INNER_END, FULL_FIRST, FULL_END]
        assert torch.equal(mine[..., :INNER_FIRST], theirs[..., :INNER_FIRST])
        begin, end, full_begin, full_end = (mine[..., place] for place in unlike)
        least, most, full_least, full_most = (theirs[..., place] for place in unlike)
        assert ((most <= least) | ((begin <= least) & (end >= most))).all(), "no attended pair is left out"
        none = full_end <= full_begin
        assert (none | ((full_begin >= full_least) & (full_end <= full_most))).all(), "full is full"
        if ascending and "begin" not in text and "of" not in text:  # one kind of ids, in order
            assert torch.equal(end - begin, most - least)
            assert torch.equal((full_end - full_begin), (full_most - full_least))


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("n", [1, 7, 8, 40])
@pytest.mark.parametrize("kind", ["in order", "scattered", "one"])
def test_rows_are_told_where_their_documents_begin_and_end(
    kind: str, n: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_tables, "ZONE", 4)
    monkeypatch.setattr(device_tables, "CHUNK", 4)
    source = torch.Generator().manual_seed(n)
    ids = drawn_ids(source, kind, batch, n) if kind != "one" else torch.full((batch, n), 3)
    found = plan(lt.rule("doc[q] == doc[k]", data={"doc": None}), n=n)
    runner = PlanExecutor(found, DEVICE, shapes=lambda kernel, place: TileShape((ROWS,), 16, hopper=True))
    q = torch.zeros(1, 1, 1, 16, device=DEVICE)
    bounds = runner.part(Recorder(), "forward", 0, q, q, {"doc": ids.to(DEVICE)}).row_bounds
    assert bounds is not None
    held = plan(lt.rule("doc[q] == doc[k]", data={"doc": ids[0].tolist()}), n=n)  # in the rule itself
    runner = PlanExecutor(held, DEVICE, shapes=lambda kernel, place: TileShape((ROWS,), 16, hopper=True))
    recorder = Recorder()
    known = runner.part(recorder, "forward", 0, q, q, {"doc": ids[:1].to(DEVICE)}).row_bounds
    assert known is not None and recorder.steps_to(known) is not None, "such calls are repeated too"
    same = ids[:, :, None] == ids[:, None, :]
    first = same.int().argmax(-1)
    last = n - 1 - same.flip(-1).int().argmax(-1)
    for found_bounds, some_ids, *wanted in zip(bounds.cpu(), ids, first, last, strict=True):
        if (some_ids.diff() >= 0).all():
            assert torch.equal(found_bounds, torch.stack(wanted).int())
        else:
            assert (found_bounds[0] == -1).all(), "their pairs are to be asked"


@pytest.mark.parametrize("shape", [(1, 1, 5), (2, 3, 17)])
def test_heavy_tiles_come_first(shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_tables, "CHUNK", 4)
    table = torch.randint(0, 9, (*shape, 7), generator=torch.Generator().manual_seed(0), dtype=torch.int32)
    found = device_tables._heavy_first(Recorder(), table.to(DEVICE)).cpu()  # pyright: ignore[reportPrivateUsage]
    order = (table[..., INNER_FIRST] - table[..., INNER_END]).sort(dim=-1, stable=True).indices
    assert torch.equal(found, table.gather(2, order[..., None].expand_as(table)))


def listed(part: Part, table: Tensor) -> list[set[Tile]]:
    """For each batch element and head, the rows of its tiles, their blocks and their ranges of slots."""
    assert part.block_table is not None
    whole = torch.as_strided(table, (table.untyped_storage().nbytes() // 4,), (1,), 0).tolist()
    found: list[set[Tile]] = []
    for place, rows in enumerate(table.flatten(0, 1)):
        some: set[Tile] = set()
        for tile, row in enumerate(rows.tolist()):
            begin = (place * len(rows) + tile) * len(row) + row[INNER_BASE] + (row[OFFSET_HIGH] << 31)
            blocks = tuple(whole[begin : begin - (-row[INNER_END] // part.block_table.inner)])
            assert row[FULL_FIRST] <= row[FULL_END] <= row[INNER_END]
            full = (row[FULL_FIRST], row[FULL_END]) if row[FULL_FIRST] < row[FULL_END] else None
            some.add((row[OUTER_SLOT] + row[OUTER_BASE], blocks, row[INNER_END], full))
        found.append(some)
    return found


@settings(max_examples=10, deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    b=st.integers(4, 8),
    more=st.sampled_from(["", " and abs(q - k) <= 20", " and k <= q", " and k <= q and k >= begin[q]"]),
    by_head=st.booleans(),
    across=st.booleans(),
    seed=st.integers(0, 99),
)
def test_lists_of_blocks(
    sizes: tuple[int, int], b: int, more: str, by_head: bool, across: bool, seed: int
) -> None:
    source = torch.Generator().manual_seed(seed)
    chosen = torch.randint(-1, 2, (2, *([3] if by_head else []), 10, 10), generator=source)
    arrays = {"chosen": chosen}
    if "begin" in more:
        arrays["begin"] = torch.randint(0, 12, (2, 40), generator=source)
    places = "k // b, q // 4" if across else "q // 4, k // b"
    text = f"chosen[{'head, ' if by_head else ''}{places}] > 0{more}"
    heads = {"heads": 3} if by_head else {}
    found = plan(lt.rule(text, data=dict.fromkeys(arrays)), n=sizes[0], m=sizes[1], b=b, **heads)
    for place, (part, _, mine, theirs) in enumerate(tables(found, arrays)):
        assert part.block_table is not None
        assert listed(part, mine.cpu()) == listed(part, theirs)
        if "begin" not in more:
            transposed = place >= len(found.parts)
            tiles = found.tiles(place % len(found.parts), (ROWS,), transposed=transposed)
            known = [with_lists(part, tiles, {"chosen": one.numpy()}) for one in chosen]
            planned = [with_known_lists(one, torch.device("cpu")) for one in known]
            assert listed(part, theirs) == [x for one in planned for x in listed(part, one)]


def test_a_table_that_is_too_small_is_refused() -> None:
    x = torch.ones(1, 1, 12, 16, device=DEVICE)
    rule, chosen = (
        lt.rule("chosen[k // 4, q // 4]", data={"chosen": None}),
        x.new_ones(2, 3, dtype=torch.int64),
    )
    with pytest.raises(lt.errors.DomainError, match=r"k // 4 = 2, outside the chosen given \(0 … 1\)"):
        lt.attention(x, x, x, rule, kernel="triton", chosen=chosen)


@pytest.mark.parametrize(
    ("rule", "name", "shape"),
    [
        ("doc[q] == doc[k] and k <= q", "doc", (2, 20)),
        ("doc[q] == doc[k]", "doc", (20,)),
        ("chosen[head, q // 8, k // 8] > 0 and k <= q", "chosen", (2, 3, 3)),
        ("chosen[q // 16, k // 16]", "chosen", (2, 2, 2)),
        ("k >= begin[q] and k <= q", "begin", (20,)),
    ],
)
def test_steps_repeat_with_other_data(
    rule: str, name: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    COMPILED_CALLS.clear()
    written = lt.rule(rule, data={name: None})
    decided: list[int] = []
    prepared = PlanExecutor._prepared  # pyright: ignore[reportPrivateUsage]

    def watched(*given: Any) -> Any:
        decided.append(1)
        return prepared(*given)

    monkeypatch.setattr(PlanExecutor, "_prepared", watched)
    for seed in range(2):
        source = torch.Generator().manual_seed(seed)
        q, k, v = (torch.randn(2, 2, 20, 16, generator=source).to(DEVICE).requires_grad_() for _ in range(3))
        data: dict[str, Any] = {name: torch.randint(0, 3, shape, generator=source).to(DEVICE)}
        results: list[list[Tensor]] = []
        for kernel in ("triton", "reference"):
            out, lse = lt.attention(q, k, v, written, kernel=kernel, return_lse=True, **data)
            end = out.sin().sum() + lse.clamp(-9, 9).sum()
            results.append([out, lse, *torch.autograd.grad(end, (q, k, v))])
        for found, wanted in zip(*results, strict=True):
            torch.testing.assert_close(found, wanted, rtol=2e-4, atol=2e-4)
        assert len(decided) == 3, "each kernel is decided on once"
    record = next(one for one in COMPILED_CALLS.values() if one.call.kernel == "triton")
    assert record.forward_pass is not None and len(record.backward_passes) == 1


def test_the_operator_finds_the_same_record() -> None:
    COMPILED_CALLS.clear()
    rule = lt.rule("doc[q] == doc[k]", data={"doc": None})
    q = torch.randn(1, 1, 9, 16, device=DEVICE)
    options = KernelOptions(kernel="triton")
    records = set[int]()
    for ids in ([0] * 9, [0] * 5 + [1] * 4):
        arrays = [torch.tensor(ids, device=DEVICE)]
        call = OperatorCall(rule.key, [9], arrays, None, [], options=options)
        record, given = compiled_call_of(q, q, q, call)
        before = record.forward_pass is not None
        out, _ = record.forward(q, q, q, *given)
        wanted = lt.attention(q, q, q, rule, doc=given[0], kernel="reference")
        torch.testing.assert_close(out, wanted, rtol=1e-4, atol=1e-4)
        assert before == (id(record) in records)
        records.add(id(record))
    assert len(records) == 1
