"""Tiles on a CPU against dense attention in float64: outputs, log-sum-exps and every gradient."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from lattend.attend.call.attention_call import BackwardInputs  # noqa: E402
from lattend.attend.kernels.cpu import tiles  # noqa: E402
from lattend.attend.kernels.cpu.tile_group import Positions, Strided, TileGroup, tile_group  # noqa: E402
from lattend.attend.kernels.cpu.tiles import GradientSums, OnlineSoftmax  # noqa: E402
from lattend.errors import TensorError  # noqa: E402

Tensor = Any
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 1e-4, torch.float64: 1e-12}  # bfloat16: of widened inputs


def positions(at: Positions) -> Tensor:
    return at.positions() if isinstance(at, Strided) else at


def times_attended(groups: list[TileGroup], masks: list[Tensor], n: int, m: int) -> Tensor:
    """How often the groups attend each pair [n, m]."""
    found = torch.zeros(n, m, dtype=torch.int64)
    for group, mask in zip(groups, masks, strict=True):
        q, k = map(positions, (group.queries, group.keys))
        found[q[:, :, None], k[:, None, :]] += mask.expand(group.shape).long()
    return found


def dense(
    q: Tensor, k: Tensor, v: Tensor, attended: Tensor, scale: float, bias: Tensor
) -> tuple[Tensor, Tensor]:
    """The plain formula; rows without keys give 0 and -inf."""
    scores = (q @ k.mT * scale + bias).masked_fill(~attended, -inf)
    lse = scores.logsumexp(-1)
    return (scores - lse.masked_fill(lse == -inf, 0)[..., None]).exp() @ v, lse


def check(
    groups: list[TileGroup],
    masks: list[Tensor],
    shape: tuple[int, int, int, int, int],
    *,
    dtype: Any = torch.float32,
    length: float = 1.0,
    with_lse: bool = True,
    biases: list[Tensor] | None = None,
    seed: int = 0,
) -> None:
    """Compares outputs and gradients with those of float64; `length` stretches q, and so the scores."""
    b, n, m, d, dv = shape
    torch.manual_seed(seed)
    q, k, v = ((torch.randn(b, *size) * f).to(dtype) for *size, f in ((n, d, length), (m, d, 1), (m, dv, 1)))
    attended = times_attended(groups, masks, n, m)
    assert int(attended.max()) <= 1
    attended = attended.bool()
    scale = d**-0.5
    exact = [x.double().clone().requires_grad_() for x in (q, k, v)]
    exact_biases = [x.double().clone().requires_grad_() for x in biases or []]
    bias = torch.zeros(b, n, m, dtype=torch.float64)
    for group, each in zip(groups, exact_biases, strict=False):
        rows, cols = map(positions, (group.queries, group.keys))
        put = torch.zeros_like(bias)
        for i in range(len(rows)):
            tile = each[:, i if each.shape[1] > 1 else 0].expand(b, -1, -1)
            put = put.index_put(
                (torch.arange(b)[:, None, None], rows[i][:, None], cols[i]), tile, accumulate=True
            )
        bias = bias + put
    out, lse = dense(exact[0], exact[1], exact[2], attended, scale, bias)

    running = OnlineSoftmax(q, k, v, scale, biased=biases is not None)
    for i, group in enumerate(groups):
        running.add(group, None if biases is None else biases[i])
    found, found_lse = running.finish()
    near = {"atol": TOLERANCE[dtype] * max(1.0, length), "rtol": TOLERANCE[dtype] * max(1.0, length)}
    torch.testing.assert_close(found.double(), out.detach(), **near)
    torch.testing.assert_close(found_lse.double(), lse.detach(), **near)

    dout, dlse = torch.randn(b, n, dv), torch.randn(b, n)
    loss = (out * dout).sum()
    if with_lse:
        loss = loss + (lse * dlse)[lse > -inf].sum()
        dlse = dlse.masked_fill(lse == -inf, torch.nan)  # of no consequence
    inputs = [*exact, *exact_biases]
    wanted = (
        torch.autograd.grad(loss, inputs, allow_unused=True) if loss.requires_grad else [None] * len(inputs)
    )
    grads = GradientSums(BackwardInputs(dout, dlse if with_lse else None, q, k, v, found, found_lse), scale)
    dbiases = [torch.zeros_like(x, dtype=grads.dq.dtype) for x in biases or []]
    for i, group in enumerate(groups):
        grads.add(group, None if biases is None else biases[i], None if biases is None else dbiases[i])
    for got, want in zip((grads.dq, grads.dk, grads.dv, *dbiases), wanted, strict=True):
        size = 1.0 if want is None else max(1.0, float(want.abs().max()))
        expected = torch.zeros_like(got) if want is None else want
        torch.testing.assert_close(
            got.double(), expected.double(), atol=near["atol"] * size, rtol=near["rtol"]
        )


def band(n: int, t: int, m: int) -> tuple[list[TileGroup], list[Tensor]]:
    """k <= q and q - k <= t in tiles of m queries: ragged ones first, whole windows, a remainder."""
    first = min(n, ceil_to(t, m))
    tiles = (n - first) // m
    starts = [*range(0, first, m), first]
    pieces = [(torch.arange(a, b)[None], torch.arange(b)[None]) for a, b in pairwise(starts)]
    if tiles:
        rows = torch.arange(first, first + tiles * m).view(tiles, m)
        pieces.append((rows, rows[:, :1] - t + torch.arange(m + t)))
    if first + tiles * m < n:
        rest = torch.arange(first + tiles * m, n)[None]
        pieces.append((rest, torch.arange(int(rest[0, 0]) - t, n)[None]))
    masks = [(k[:, None] <= q[:, :, None]) & (q[:, :, None] - k[:, None] <= t) for q, k in pieces]
    return [tile_group(q, k, mask) for (q, k), mask in zip(pieces, masks, strict=True)], masks


def ceil_to(value: int, step: int) -> int:
    return -(-value // step) * step


@pytest.mark.parametrize(("n", "t", "m"), [(63, 9, 8), (130, 31, 16), (65, 0, 8), (40, 100, 7), (200, 33, 1)])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_band(n: int, t: int, m: int, dtype: Any) -> None:
    groups, masks = band(n, t, m)
    check(groups, masks, (3, n, n, 8, 5), dtype=dtype)
    assert all(isinstance(group.keys, Strided) for group in groups)


def test_whole_windows_share_strips_at_their_ends() -> None:
    group = band(130, 31, 16)[0][-2]
    assert [(s.first, s.end) for s in group.masked_runs] == [(0, 15), (32, 47)]  # 16 + 31 keys
    assert isinstance(group.keys, Strided)
    assert group.keys.phases == 3  # 47 keys, 16 further on with each tile
    assert group.masked is None


def test_many_strips_become_one() -> None:
    q, k = Strided(0, 1, 40, 40), Strided(0, 1, 40, 40)
    mask = (
        torch.arange(40)[:, None] + torch.arange(40)
    ) % 40 != 8  # each key but one attended by all but one
    mask[:, ::2] = True
    group = tile_group(q, k, mask)
    assert [(s.first, s.end) for s in group.masked_runs] == [(1, 40)]
    check([group], [mask], (2, 40, 40, 4, 4))


@pytest.mark.parametrize("length", [1.0, 300.0])
def test_large_scores_neither_overflow_nor_vanish(length: float) -> None:
    groups, masks = band(70, 12, 8)
    check(groups, masks, (2, 70, 70, 16, 16), length=length)


def test_no_mask_and_other_numbers_of_keys() -> None:
    group = tile_group(Strided(1, 2, 5, 5), Strided(0, 2, 9, 9))
    check([group], [torch.tensor(True)], (2, 13, 20, 4, 4))  # queries 0, 11 and 12 have no keys


@pytest.mark.parametrize("members", [1, 2, 7])
def test_residue_classes_are_read_in_place(members: int) -> None:
    step, n = 5, 60
    at = torch.arange(n).view(-1, step).mT  # tile r holds the positions of residue r
    mask = torch.ones(n // step, n // step, dtype=torch.bool).tril()
    group = tile_group(at, at, mask)
    assert group.queries == Strided(0, step, n // step, tile_step=1, row_step=step)
    assert Strided(0, step, n // step, tile_step=1, row_step=step).phases == 1
    check([group], [mask], (members, n, n, 4, 3))


@pytest.mark.parametrize("members", [1, 9])
def test_neighbourhood_gathers_its_keys(members: int) -> None:
    rows, cols, reach = 8, 12, 2
    grid = torch.arange(rows * cols).view(rows, cols)
    queries, keys = [], []
    for y in range(0, rows, 4):
        for x in range(0, cols, 4):
            top, left = min(max(y - reach, 0), rows - 8), min(max(x - reach, 0), cols - 8)
            queries.append(grid[y : y + 4, x : x + 4].flatten())
            keys.append(grid[top : top + 8, left : left + 8].flatten())
    q, k = torch.stack(queries), torch.stack(keys)
    dy = (q // cols)[:, :, None] - (k // cols)[:, None]
    dx = (q % cols)[:, :, None] - (k % cols)[:, None]
    mask = (dy.abs() <= reach) & (dx.abs() <= reach)
    group = tile_group(q, k, mask)
    assert isinstance(group.keys, torch.Tensor)
    check([group], [mask], (members, rows * cols, rows * cols, 8, 8))


@pytest.mark.parametrize("chunk", [64, 4096])
@pytest.mark.parametrize("length", [1.0, 40.0])
def test_keys_in_several_chunks(monkeypatch: pytest.MonkeyPatch, chunk: int, length: float) -> None:
    monkeypatch.setattr(tiles, "CHUNK", chunk)
    n = 203
    q = torch.arange(n)
    mask = q[:, None] >= q
    check([tile_group(q[None], q[None], mask)], [mask], (2, n, n, 8, 8), length=length)
    groups, masks = band(n, 70, 16)
    check(groups, masks, (2, n, n, 8, 8), length=length)


def test_tiles_on_the_same_keys() -> None:
    group = tile_group(torch.arange(12).view(3, 4), torch.arange(6).expand(3, 6))
    assert group.keys == Strided(0, 3, 6, tile_step=0)
    assert Strided(0, 3, 6, tile_step=0).phases == 3
    check([group], [torch.tensor(True)], (2, 12, 12, 4, 4))


def test_parts_of_one_row_merge() -> None:
    q = torch.arange(24)
    near = (q[:, None] - q).abs() <= 3
    parts = [near & (q % 2 == 0), near & (q % 2 == 1), ~near & (q < 4)]
    groups = [tile_group(q[None], q[None], part) for part in parts]
    check(groups, parts, (2, 24, 24, 4, 4), length=50.0)
    check(groups, parts, (2, 24, 24, 4, 4))


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 4), (3, 4)])
@pytest.mark.parametrize("members", [3, 6])
def test_bias_and_its_gradient(shape: tuple[int, int], members: int) -> None:
    torch.manual_seed(1)
    groups, masks = band(40, 7, 8)
    biases = []
    for group in groups:
        t, m, w = group.shape
        biases.append(torch.randn(members if shape[0] > 1 else 1, t if shape[1] > 1 else 1, m, w) * 3)
    check(groups, masks, (members, 40, 40, 8, 8), biases=biases)


def test_a_bias_must_be_announced() -> None:
    x = torch.zeros(1, 4, 2)
    group = tile_group(Strided(0, 1, 4, 4), Strided(0, 1, 4, 4))
    with pytest.raises(TensorError, match="a bias was not announced; make OnlineSoftmax with biased=True"):
        OnlineSoftmax(x, x, x, 1.0).add(group, torch.zeros(1, 1, 4, 4))


@pytest.mark.parametrize("length", [1.0, 1000.0])
def test_a_row_without_keys_gives_zero_and_no_gradient(length: float) -> None:
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[1] = False
    group = tile_group(Strided(0, 1, 4, 4), Strided(0, 1, 4, 4), mask)
    x = torch.randn(1, 6, 2) * length
    running = OnlineSoftmax(x, x, x, 1.0)
    running.add(group)
    out, lse = running.finish()
    assert out[0, [1, 4, 5]].tolist() == [[0, 0]] * 3
    assert lse[0, [1, 4, 5]].tolist() == [-inf] * 3
    grads = GradientSums(
        BackwardInputs(torch.ones_like(x), torch.full_like(lse, inf).neg(), x, x, x, out, lse), 1.0
    )
    grads.add(group)
    assert grads.dq[0, [1, 4, 5]].tolist() == [[0, 0]] * 3


def test_gradients_are_the_same_each_time() -> None:
    groups, _ = band(500, 60, 16)
    q, k, v, dout = (torch.randn(2, 500, 16) for _ in range(4))
    running = OnlineSoftmax(q, k, v, 0.25)
    for group in groups:
        running.add(group)
    out, lse = running.finish()
    found = []
    for _ in range(2):
        grads = GradientSums(BackwardInputs(dout, None, q, k, v, out, lse), 0.25)
        for group in groups:
            grads.add(group)
        found.append((grads.dq, grads.dk, grads.dv))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_strided_inputs() -> None:
    groups, _ = band(50, 6, 8)
    x = torch.randn(2, 50, 3, 4)
    q, k, v = (x[:, :, i] for i in range(3))  # as projected together, [B, n, 3, D]
    found, plain = (
        OnlineSoftmax(*x, 0.5) for x in ((q, k, v), (q.contiguous(), k.contiguous(), v.contiguous()))
    )
    for group in groups:
        found.add(group)
        plain.add(group)
    assert torch.equal(found.finish()[0], plain.finish()[0])


@st.composite
def random_tiles(draw: st.DrawFn) -> tuple[list[TileGroup], list[Tensor], tuple[int, int, int, int, int]]:
    """Groups of tiles with random positions and masks that attend no pair twice."""
    n, m = draw(st.integers(1, 24)), draw(st.integers(1, 24))
    seed = draw(st.integers(0, 1 << 30))
    random = torch.Generator().manual_seed(seed)
    taken = torch.zeros(n, m, dtype=torch.bool)
    groups, masks = [], []
    for _ in range(draw(st.integers(1, 3))):
        rows = draw(st.integers(1, n))
        tiles = draw(st.integers(1, n // rows))
        width = draw(st.integers(1, m))
        if draw(st.booleans()):
            queries = torch.randperm(n, generator=random)[: tiles * rows].view(tiles, rows)
        else:
            queries = torch.arange(tiles * rows).view(tiles, rows)
        if draw(st.booleans()):
            keys = torch.stack([torch.randperm(m, generator=random)[:width] for _ in range(tiles)])
        else:
            step = draw(st.integers(0, (m - width) // max(1, tiles - 1)))
            keys = step * torch.arange(tiles)[:, None] + torch.arange(width)
        density = draw(st.sampled_from([0.0, 0.3, 0.8, 1.0]))
        mask = torch.rand(tiles, rows, width, generator=random) < density
        at = queries[:, :, None], keys[:, None, :]
        mask &= ~taken[at]
        taken[at] |= mask
        groups.append(tile_group(queries, keys, None if bool(mask.all()) else mask))
        masks.append(mask)
    shape = (draw(st.integers(1, 4)), n, m, draw(st.integers(1, 5)), draw(st.integers(1, 5)))
    return groups, masks, shape


@given(random_tiles(), st.sampled_from([1.0, 60.0]), st.sampled_from(list(TOLERANCE)))
def test_random_tiles(drawn: Any, length: float, dtype: Any) -> None:
    groups, masks, shape = drawn
    check(groups, masks, shape, length=length, dtype=dtype)


@given(st.integers(0, 7), st.integers(1, 9), st.integers(0, 6), st.integers(1, 5), st.integers(0, 3))
def test_tiles_a_phase_apart_share_no_position(
    tiles: int, rows: int, tile_step: int, row_step: int, start: int
) -> None:
    span = Strided(start, tiles + 1, rows, tile_step, row_step)
    sets = [set(tile) for tile in span.positions().tolist()]

    def apart(p: int) -> bool:
        return all(not a & b for i, a in enumerate(sets) for b in sets[i + p :: p])

    assert apart(span.phases)
    assert not any(apart(p) for p in range(1, span.phases))


BAD = [
    ((torch.zeros(2, 3), torch.zeros(2, 3).long()), "queries must be positions from 0 on, int64"),
    ((torch.arange(3)[None] - 1, torch.arange(3)[None]), "queries must be positions from 0 on, int64"),
    (
        (Strided(0, 2, 3, 3), Strided(-1, 2, 3, 3)),
        "keys must be at least one position from 0 on, in steps forward",
    ),
    ((Strided(0, 2, 3, 3, row_step=0), Strided(0, 2, 3, 3)), "queries must be at least one position"),
    (
        (Strided(0, 2, 3, 2), Strided(0, 2, 3, 3)),
        "a query comes twice in a group; put its keys into one tile",
    ),
    ((torch.tensor([[0, 3, 1, 3]]), Strided(0, 1, 3, 3)), "a query comes twice in a group"),
    (
        (Strided(0, 2, 3, 3), Strided(0, 3, 3, 3)),
        "queries come in 2 tiles and keys in 3; a group has one number",
    ),
    (
        (Strided(0, 2, 3, 3), Strided(0, 2, 4, 3), torch.ones(4, 3) > 0),
        r"mask must be bool \[3, 4\] or \[2, 3, 4\]",
    ),
    ((Strided(0, 1, 3, 3), Strided(0, 1, 3, 3), torch.ones(3, 3)), "not torch.float32"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_groups(arguments: Any, message: str) -> None:
    with pytest.raises(TensorError, match=message):
        tile_group(*arguments)


def test_positions_past_the_end() -> None:
    x = torch.zeros(1, 8, 2)
    with pytest.raises(TensorError, match="key 8 of a group is past the last of 8 positions"):
        OnlineSoftmax(x, x, x, 1.0).add(tile_group(Strided(0, 1, 8, 8), Strided(1, 1, 8, 8)))


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(TensorError, match=r"not \[1, 8, 2\], \[1, 8, 3\], \[1, 8, 2\]"):
        OnlineSoftmax(torch.zeros(1, 8, 2), torch.zeros(1, 8, 3), torch.zeros(1, 8, 2), 1.0)


def test_an_empty_batch() -> None:
    x = torch.zeros(0, 8, 4)
    running = OnlineSoftmax(x, x, x, 1.0)
    running.add(tile_group(Strided(0, 1, 8, 8), Strided(0, 1, 8, 8)))
    out, lse = running.finish()
    assert out.shape == (0, 8, 4)
    assert lse.shape == (0, 8)
