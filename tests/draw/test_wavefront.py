"""Receptive fields, the frames of a wavefront, and the taps of a kernel."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lattend import rules
from lattend.draw.grid.marks import Label
from lattend.nn.pictures.conv import BEYOND, LOOKS, TAKEN, ZERO, PaddedAxis, taps
from lattend.nn.pictures.grid import (
    DONE,
    NOW,
    SOME,
    WAITING,
    frame,
    layer_looks,
    layers_panel,
    layers_until,
    reached,
    step_panel,
    step_scale,
)
from lattend.nn.pictures.panels import legend

grids = st.tuples(st.integers(1, 7), st.integers(1, 7)).flatmap(
    lambda shape: st.tuples(
        st.just(shape), st.tuples(st.integers(0, shape[0] - 1), st.integers(0, shape[1] - 1))
    )
)


@given(grids)
def test_a_recurrent_pixel_sees_its_quadrant(case):
    shape, (y, x) = case
    seen = reached(shape, (y, x), [(0, -1), (-1, 0)])
    rows, cols = np.indices(shape)
    assert (seen == ((rows <= y) & (cols <= x))).all()
    assert seen.sum() == (y + 1) * (x + 1)


@given(grids, st.integers(1, 5), st.integers(1, 4))
def test_a_convolved_pixel_sees_one_kernel_more_a_layer(case, kernel, layers):
    shape, pixel = case
    seen = {pixel}
    result = layers_until(shape, pixel, (kernel, kernel), layers)
    for layer in range(1, layers + 1):
        before = seen
        seen = {
            (y + dy - (kernel - 1) // 2, x + dx - (kernel - 1) // 2)
            for y, x in before
            for dy in range(kernel)
            for dx in range(kernel)
        } | before
        seen = {(y, x) for y, x in seen if 0 <= y < shape[0] and 0 <= x < shape[1]}
        assert {tuple(place) for place in np.argwhere((result >= 0) & (result <= layer)).tolist()} == seen


def test_the_rules_of_the_catalogue_see_the_same():
    until = layers_until((9, 9), (4, 4), (3, 3), 2)
    rule = rules.neighbourhood(1).at(rows=9, cols=9)
    assert {tuple(p) for p in np.argwhere((until >= 0) & (until <= 1)).tolist()} == set(rule.keys(4, 4))


def test_frames():
    steps = np.add.outer(np.arange(3), np.arange(3))
    panel = frame("step 2", [steps, steps[:, ::-1]], 2)
    looks = [[panel.looks[cell] for cell in row] for row in panel.cells.tolist()]
    assert looks == [[NOW, DONE, NOW], [SOME, NOW, SOME], [NOW, WAITING, NOW]]


def test_numbers_of_steps_and_layers():
    steps = np.add.outer(np.arange(3), np.arange(4))
    panel = step_panel("steps", steps, step_scale(steps))
    assert panel.labels() == {(y, x): str(y + x) for y in range(3) for x in range(4)}
    until = layers_until((1, 5), (0, 0), (1, 3), 2)
    assert layers_panel("seen", until, layer_looks(2)).labels() == {(0, 1): "1", (0, 2): "2"}
    big = np.add.outer(np.arange(40), np.arange(4))
    assert step_panel("steps", big, step_scale(big)).labels() == {}


def look_at(panel, row, col, start):
    return panel.looks[panel.cells[row - start[0], col - start[1]]]


def test_taps_beyond_the_edge():
    shifts = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
    edges = (PaddedAxis(4, 1, 1), PaddedAxis(5, 1, 1))
    panel = taps("corner", edges, (0, 0), shifts, (range(4), range(5)))
    assert panel.cells.shape == (6, 7)
    for dy, dx in shifts:
        real = dy >= 0 and dx >= 0
        assert look_at(panel, dy, dx, (-1, -1)) == (TAKEN if real else ZERO)
    assert look_at(panel, 4, 5, (-1, -1)) == BEYOND
    assert panel.labels()[0, 0] == "0" and panel.labels()[2, 2] == "8"
    assert [look.label for look in legend([panel], LOOKS[1:])] == [TAKEN.label, BEYOND.label, ZERO.label]


def test_heads_at_one_pixel_and_queries_without_a_head():
    panel = taps("t", (PaddedAxis(3), PaddedAxis(3)), (0, 0), [(1, 1), (1, 1), None], ([0, 2], [0, 2]))
    texts = {mark.text for mark in panel.marks if isinstance(mark, Label)}
    assert texts == {"0…", "Q"}
    assert panel.looks[panel.cells[2, 2]].label == "another query"


@given(st.integers(1, 300), st.integers(0, 299))
def test_large_images_are_cut_around_the_query(size, place):
    place = min(place, size - 1)
    shown = PaddedAxis(size, 2, 2).visible([place, place + 1])
    assert place in shown and place + 1 in shown and len(shown) <= 40
