"""Windows as other libraries define them: the rule attends what their documentation says, key by key."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lattend as lt
from lattend.errors import DomainError
from lattend.rules.language.evaluation import evaluate_term
from lattend.rules.language.parser import parse


def flash(n: int, m: int, left: int, right: int) -> np.ndarray:
    """Query i attends keys from i + m - n - left to i + m - n + right, both included; -1 is no limit."""
    mask = np.zeros((n, m), bool)
    for i, j in itertools.product(range(n), range(m)):
        at = i + m - n
        mask[i, j] = (left < 0 or j >= at - left) and (right < 0 or j <= at + right)
    return mask


def natten_keys(q: int, length: int, size: int, stride: int, step: int, causal: bool) -> list[int]:
    """The keys of one query along one axis, by NATTEN's definition: within its dilation group.

    The queries of a stride share the window of one of them, the middle one or, if causal, the last;
    there are size // 2 keys before it, and the window is moved inside at the border.
    """
    group = [place for place in range(length) if place % step == q % step]
    at = group.index(q)
    first = at - at % stride
    if causal:
        leader = min(first + stride - 1, len(group) - 1)
        return group[max(0, leader - size + 1) : at + 1]
    leader = min(first + stride // 2, len(group) - 1)
    start = min(max(leader - size // 2, 0), max(0, len(group) - size))
    return group[start : start + size]


@pytest.mark.parametrize(("left", "right"), [*itertools.product((-1, 0, 1, 3, 20), repeat=2)])
def test_flash_attention(left: int, right: int) -> None:
    found = lt.rules.window_size(left, right)
    assert lt.rules.window_size((left, right)) == found
    assert lt.rule(f"window_size(({left}, {right}))") == found
    assert np.array_equal(found.mask(n=9), flash(9, 9, left, right))
    late = lt.rules.window_size(left, right, "bottom-right")
    for n, m in ((3, 8), (8, 8), (1, 6)):
        at = {name: {"n": n, "m": m}[name] for name in late.sizes}
        if left >= 0 or right >= 0:
            assert np.array_equal(late.mask(**at), flash(n, m, left, right))


@st.composite
def natten_axes(draw: st.DrawFn) -> tuple[list[int], list[int], list[int], list[bool]]:
    """Sizes of a window, strides, dilations and whether causal, along 1, 2 or 3 axes."""
    number = draw(st.sampled_from([1, 1, 2, 3]))
    sizes = [draw(st.integers(1, 9 if number < 3 else 4)) for _ in range(number)]
    strides = [draw(st.integers(1, size)) for size in sizes]
    steps = [draw(st.integers(1, 3)) for _ in sizes]
    return sizes, strides, steps, [draw(st.booleans()) for _ in sizes]


@given(natten_axes(), st.data())
def test_natten(axes: tuple[list[int], list[int], list[int], list[bool]], data: st.DataObject) -> None:
    found = lt.rules.natten(*axes)
    number = len(axes[0])
    more = {1: 24, 2: 9, 3: 5}[number]
    least = [size * step for size, step in zip(axes[0], axes[2], strict=True)]
    lengths = [length + data.draw(st.integers(0, max(0, more - length))) for length in least]
    names = {1: ("n",), 2: ("rows", "cols"), 3: ("depth", "rows", "cols")}[number]
    mask = found.mask(**dict(zip(names, lengths, strict=True)))
    for query in itertools.product(*map(range, lengths)):
        keys = [natten_keys(*one) for one in zip(query, lengths, *axes, strict=True)]
        wanted = np.zeros(lengths, bool)
        wanted[np.ix_(*keys)] = True
        assert np.array_equal(mask[query], wanted)


@given(natten_axes(), st.data())
def test_natten_refuses_an_axis_shorter_than_kernel_size_times_dilation(
    axes: tuple[list[int], list[int], list[int], list[bool]], data: st.DataObject
) -> None:
    least = [size * step for size, step in zip(axes[0], axes[2], strict=True)]
    short = data.draw(st.sampled_from(range(len(least))))
    names = {1: ("n",), 2: ("rows", "cols"), 3: ("depth", "rows", "cols")}[len(least)]
    lengths = dict(zip(names, least, strict=True))
    lengths[names[short]] -= 1
    wanted = f"needs {names[short]} >= {least[short]}, got {names[short]} = {least[short] - 1}"
    with pytest.raises(DomainError, match=wanted):
        lt.rules.natten(*axes).mask(**lengths)


def test_natten_refuses_tensors_smaller_than_its_window() -> None:
    torch = pytest.importorskip("torch")
    q = torch.randn(1, 1, 5, 9, 4)
    with pytest.raises(DomainError, match="needs rows >= 7, got rows = 5"):
        lt.attention(q, q, q, lt.rules.natten(7))
    with pytest.raises(DomainError, match="needs cols >= 10, got cols = 9"):
        lt.attention(q, q, q, "natten((3, 5), dilation=(1, 2))")
    assert lt.attention(q, q, q, lt.rules.natten((5, 9))).shape == q.shape


def test_a_neighborhood_larger_than_the_image_is_all_of_it() -> None:
    for edge in ("clip", "shift"):
        assert lt.rules.neighbourhood(9, edge=edge).mask(rows=3, cols=4).all()
    dilated = lt.rules.neighbourhood(9, 2, edge="shift").mask(rows=3, cols=3)
    assert dilated.sum() == (2 * 2 + 1) ** 2  # keys of the query's own remainder: 2, 1 and 2 along an axis


@pytest.mark.parametrize(
    "made",
    [
        lt.rules.natten(5, axes=1),
        lt.rules.natten(3, dilation=2, axes=1),
        lt.rules.natten(4, dilation=2, is_causal=True, axes=1),
        lt.rules.natten(4, 3, is_causal=True, axes=1),
        lt.rules.natten(4, 3, 2, is_causal=True, axes=1),
        lt.rules.natten(4, 2, axes=1),
        lt.rules.natten((2, 3, 4), (2, 1, 3)),
        lt.rules.natten((3, 4), is_causal=(False, True)),
        lt.rules.window_size(2, 3),
        lt.rules.window_size(-1, 1),
    ],
    ids=str,
)
def test_the_number_of_keys_is_said(made: lt.Rule) -> None:
    assert made.about is not None
    keys = parse(f"{made.about.keys} == 0")
    sizes = {name: {"n": 9, "depth": 4, "rows": 6, "cols": 7}[name] for name in made.sizes}
    queries = [axis.query for axis in made.axes]
    for place in itertools.product(*(range(sizes[axis.queries]) for axis in made.axes)):
        names = {**sizes, **dict(zip(queries, place, strict=True))}
        assert evaluate_term(keys.left, names, {}) == len(made.keys(*place, **sizes))  # pyright: ignore


@pytest.mark.parametrize("window", [1, 2, 5])
def test_hugging_face(window: int) -> None:
    torch, masks = pytest.importorskip("torch"), pytest.importorskip("transformers.masking_utils")
    at = torch.arange(9)
    causal = masks.sliding_window_causal_mask_function(window)
    both = masks.sliding_window_bidirectional_mask_function(window)
    for asked, ours in ((causal, lt.rules.sliding_window(window)), (both, lt.rules.local(window))):
        assert ours.mask(n=9).tolist() == asked(0, 0, at[:, None], at).tolist()
    assert len(lt.rules.sliding_window(window).keys(10, n=21)) == window
    assert len(lt.rules.local(window).keys(10, n=21)) == 2 * window + 1


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(DomainError, match=r"window_size\(left=-2\): give 0 or more, or -1 for no limit"):
        lt.rules.window_size(-2, 0)
    with pytest.raises(DomainError, match=r"window_size\(left=-2\)"):
        lt.rules.window_size((-2, 0))
    with pytest.raises(DomainError, match=r"window_size\(\(1, 2, 3\)\): give one pair"):
        lt.rules.window_size((1, 2, 3))
    with pytest.raises(DomainError, match=r"window_size\(\(1, 2\), right=3\): give one pair"):
        lt.rules.window_size((1, 2), 3)
    with pytest.raises(DomainError, match=r"stride is 1 to kernel_size, got 4 with kernel_size 3"):
        lt.rules.natten(3, 4)
    with pytest.raises(DomainError, match="give one number, or one for each of 2 axes"):
        lt.rules.natten((3, 3), (1, 1, 1))
    with pytest.raises(lt.errors.LattendError, match="is_causal is True or False"):
        lt.rule("natten(3, 1, 1, maybe)")
