"""Nets on a grid over ranks: strips of rows, states and gradients beside one process, bytes to the byte."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest
import torch
from gloo_ranks import Crew
from hypothesis import given, settings
from hypothesis import strategies as st
from parallel_grids import (
    Case,
    checkpointed,
    on_a_mesh,
    over_ranks,
    refused,
    some_gradients,
    twice,
    under_autocast,
    without_gradients,
)

import lattend as lt
from lattend.nn.grid.over_ranks import border_bytes, grid_rnn, pipeline, pipeline_steps

TOLERANCE = 1e-10  # of float64


def check(crew: Crew, case: Case) -> None:
    for errors, bytes_beyond in crew.run(case.ranks, over_ranks, case):
        assert max(errors) < TOLERANCE
        assert bytes_beyond == [0, 0]


@pytest.mark.parametrize(
    "case",
    [
        Case((3, 4, 2)),
        Case((2, 1, 5), "lstm", layers=2, columns=4),
        Case((4, 0, 3), "gru", columns=21),
        Case((0, 4, 0, 3), "lstm", columns=5, masked=True),
        Case((2, 3), layers=2, columns=1, masked=True),
        Case((1, 1, 1, 1, 1, 1, 1, 2), "gru", layers=2, columns=6),
        Case((3, 2), "lstm", columns=8, shift=True),
        Case((3, 2), "lstm", directions=2, layers=2, columns=5, masked=True, shift=True),
        Case((1, 2, 1), "gru", directions=2, layers=3, columns=4),
        Case((3, 4), "lstm", directions=4, layers=2, columns=3),
        Case((2, 1, 3), "gru", directions=4, columns=4, masked=True),
        Case((2, 0, 1, 2), directions=4, layers=3, columns=6),
        Case((0, 0, 5, 0), "lstm", directions=4),
        Case((1, 2, 0, 1, 1, 3, 0, 1), "lstm", directions=4, layers=2, columns=7),
        Case((1, 1, 1, 1, 1, 1, 1, 1), "rnn", directions=4, masked=True, cols=9, columns=2),
        Case((1, 1, 2, 1, 1, 1, 1, 1), "gru", directions=2, shift=True, layers=2, cols=5, columns=1),
        Case((2, 0, 3), "lstm", directions=4, layers=2, masked=True, batch=0),
    ],
)
def test_strips_of_rows_are_the_whole_image(crew: Crew, case: Case) -> None:
    check(crew, case)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    ranks, directions = draw(st.sampled_from([2, 3, 4])), draw(st.sampled_from([1, 2, 4]))
    rows = draw(st.lists(st.integers(0, 3), min_size=ranks, max_size=ranks).filter(any))
    return Case(
        tuple(rows), draw(st.sampled_from(["rnn", "lstm", "gru"])), directions, draw(st.integers(1, 3)),
        draw(st.none() | st.integers(1, 8)), draw(st.booleans()), directions < 4 and draw(st.booleans()),
        draw(st.integers(1, 12)),
    )  # fmt: skip


@settings(max_examples=25)
@given(case=cases())
def test_any_net_and_strips(crew: Crew, case: Case) -> None:
    check(crew, case)


def test_no_gradients_where_none_are_wanted(crew: Crew) -> None:
    case = Case((2, 3, 1), "lstm", directions=4, layers=2)
    for errors, learns in crew.run(3, without_gradients, case):
        assert max(errors) < TOLERANCE and not learns


@pytest.mark.parametrize("wanted", ["x", "W_in.0", "W_top.1"])
def test_some_gradients_alone(crew: Crew, wanted: str) -> None:
    case = Case((2, 3, 1), "gru", directions=4, layers=2, columns=6)
    for errors in crew.run(3, some_gradients, case, wanted):
        assert max(errors) < TOLERANCE


def test_second_derivatives_are_refused(crew: Crew) -> None:
    for said in crew.run(3, twice, Case((2, 3, 1), directions=4)):
        assert said == "create_graph=True: lt.parallel.grid_rnn has no second derivatives"


@pytest.mark.parametrize("directions", [1, 4])
def test_activation_checkpointing(crew: Crew, directions: int) -> None:
    for errors in crew.run(3, checkpointed, Case((2, 3, 1), directions=directions, layers=2)):
        assert max(errors) < TOLERANCE


def test_a_mesh_that_shares_heads_too(crew: Crew) -> None:
    assert max(crew.run(8, on_a_mesh)) < TOLERANCE


def test_autocast(crew: Crew) -> None:
    case = Case((2, 3), "lstm", directions=4, layers=2, columns=6)
    for errors in crew.run(2, under_autocast, case):
        assert max(errors) < 0.1  # of bfloat16, whose sums over pieces are rounded in between


@pytest.mark.parametrize("directions", [1, 2, 4])
@pytest.mark.parametrize("strips", range(1, 7))
def test_a_pipeline_hands_every_row_on_one_step_later(strips: int, directions: int) -> None:
    for pieces in (1, 2, 5):
        places = [pipeline(directions, pieces, place, strips) for place in range(strips)]
        at = [{(d, number): step for step, d, number in order} for order in places]
        for steps in at:
            assert len({*steps.values()}) == len(steps) == directions * pieces  # one piece a step
            assert [*steps.values()] == sorted(steps.values())
        for direction in range(directions):
            strips_it_meets = at[::-1] if direction >= 2 else at  # up from the last, or down from the first
            for number in range(pieces):
                when = [steps[direction, number] for steps in strips_it_meets]
                assert when == [*range(when[0], when[0] + strips)]
                assert number == 0 or when[0] > strips_it_meets[0][direction, number - 1]


@pytest.mark.parametrize(
    ("directions", "layers", "strips", "pieces", "steps"),
    [
        (1, 1, 8, 32, 39),  # 32 + 8 - 1
        (1, 3, 8, 32, 103),  # 3·32 + 8 - 1: a layer begins where the one before has ended
        (2, 3, 8, 32, 199),  # 3·64 + 8 - 1
        (4, 1, 2, 5, 20),  # 4·5: no rank ever waits
        (4, 1, 3, 5, 22),  # 4·5 + 2: the strip in the middle waits for one above and one below
        (4, 1, 8, 32, 134),  # 4·32 + 6
        (4, 3, 8, 32, 402),  # 3·134: a layer needs the states from below
        (4, 2, 1, 5, 40),
    ],
)
def test_steps_of_a_pass(directions: int, layers: int, strips: int, pieces: int, steps: int) -> None:
    assert pipeline_steps(directions, layers, pieces, strips) == steps
    assert _as_soon_as_possible(directions, layers, pieces, strips) == steps


def _as_soon_as_possible(directions: int, layers: int, pieces: int, strips: int) -> int:
    """Steps until all is done, if every rank takes its pieces in order, each once its row is there."""
    left = [
        [
            (layer, d, number)
            for layer in range(layers)
            for _, d, number in pipeline(directions, pieces, p, strips)
        ]
        for p in range(strips)
    ]
    done: list[set[Any]] = [set() for _ in range(strips)]
    for step in range(10_000):
        if not any(left):
            return step
        ready: list[int] = []
        for place, order in enumerate(left):
            source = place + (1 if order and order[0][1] >= 2 else -1)
            if order and (not 0 <= source < strips or order[0] in done[source]):
                ready.append(place)
        for place in ready:
            done[place].add(left[place].pop(0))
    raise AssertionError("it does not end")


@pytest.mark.parametrize(("directions", "strips", "pieces"), [(1, 3, 3), (2, 3, 2), (4, 2, 1), (4, 3, 1)])
def test_no_order_takes_fewer_steps(directions: int, strips: int, pieces: int) -> None:
    """All that can be done after each step: so many pieces of each direction on each strip."""
    reached, steps = {((0,) * directions,) * strips}, 0
    while ((pieces,) * directions,) * strips not in reached:
        reached = {after for done in reached for after in product(*_next(done, pieces))}
        steps += 1
    assert steps == pipeline_steps(directions, 1, pieces, strips)


def _next(done: tuple[tuple[int, ...], ...], pieces: int) -> list[list[tuple[int, ...]]]:
    """What each strip may have done one step later."""
    found: list[list[tuple[int, ...]]] = []
    for place, own in enumerate(done):
        choices = [own]
        for d, many in enumerate(own):
            source = place + (1 if d >= 2 else -1)
            there = done[source][d] if 0 <= source < len(done) else pieces
            if many < there:
                choices.append((*own[:d], many + 1, *own[d + 1 :]))
        found.append(choices if len(choices) == 1 else choices[1:])  # to wait is never better
    return found


@pytest.mark.parametrize("directions", [1, 2, 4])
@pytest.mark.parametrize("backward", [False, True])
def test_no_rank_waits_for_ever_where_nothing_is_buffered(directions: int, backward: bool) -> None:
    for strips, pieces in ((2, 1), (2, 4), (3, 1), (3, 2), (4, 3), (7, 2), (8, 5)):
        left = [_exchanges(directions, 2, pieces, place, strips) for place in range(strips)]
        left = [order[::-1] if backward else order for order in left]
        arrived = set[Any]()
        while any(left):
            posted = Counter(message for order in left if order for message in order[0])
            arrived |= {message for message, ends in posted.items() if ends == 2}
            over = [order for order in left if order and order[0] <= arrived]
            assert over
            for order in over:
                order.pop(0)


def _exchanges(directions: int, layers: int, pieces: int, place: int, strips: int) -> list[set[Any]]:
    """The messages of a strip that are posted together, named by layer, direction, piece and upper strip."""
    found: list[set[Any]] = []
    for layer in range(layers):
        inner = {(layer, d, i, b) for d in range(4) for i in range(pieces) for b in range(strips - 1)}
        posted = set[Any]()
        for _, direction, number in pipeline(directions, pieces, place, strips):
            borders = (place, place - 1) if direction >= 2 else (place - 1, place)
            comes, leaves = ({(layer, direction, number, b)} & inner for b in borders)
            found.append(posted | comes)
            posted = leaves
        found.append(posted)
    return found


def test_bytes_of_borders() -> None:
    rows, row = [4, 0, 5, 1], 2 * 20 * 8 * 4  # batch 2, 20 columns, h = 8, float32
    for directions, forward, backward in (
        (1, [0, 0, 1, 1], [1, 0, 1, 0]),
        (2, [0, 0, 2, 2], [2, 0, 2, 0]),
        (4, [2, 0, 4, 2], [2, 0, 4, 2]),
    ):
        net = lt.nn.GridRNN(3, 8, directions=directions)
        assert border_bytes(net, (2, 20), rows, 4) == [row * n for n in forward]
        assert border_bytes(net, (2, 20), rows, 4, True) == [row * n for n in backward]
    deep = lt.nn.GridRNN(3, 8, "lstm", directions=4, layers=3)
    assert (
        sum(border_bytes(deep, (2, 20), rows, 4)) == row * 2 * 3 * 4 * 2
    )  # lstm, layers, directions, borders


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("net", "GridRNN(3, 5, directions=4)"),
        ("dtype", "the weights are torch.float32; cast one of them"),
        ("mask", "mask must be bool [batch, rows, cols] = [1, 2, 21], True where a pixel is"),
        ("kernel", 'kernel="native" cannot run this: x is torch.float64'),
        ("columns", "columns must be a whole number from 1 on, got 0"),
    ],
)
def test_what_one_rank_gets_wrong_is_told_on_every_rank(crew: Crew, wrong: str, message: str) -> None:
    for rank, said in enumerate(crew.run(2, refused, wrong)):
        assert message in said
        assert wrong == "net" or rank == 0 or "rank 0 of 2 cannot run this call" in said


def test_what_it_refuses(crew: Crew) -> None:
    del crew  # one process: nothing is sent, and there is no group
    net: Any = lt.nn.GridRNN(3, 4)
    with pytest.raises(lt.errors.LattendError, match="torchrun"):
        grid_rnn(net, torch.zeros(1, 2, 5, 3))
    wider: Any = grid_rnn
    for option in ("states", "return_states"):
        with pytest.raises(TypeError, match=option):
            wider(net, torch.zeros(1, 2, 5, 3), **{option: None})
