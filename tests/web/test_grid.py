"""The panels behind the grid: tiles hold what the mask holds, pictures are the library's."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.web.worker import reply

LEVELS = 20


def ask(panel: str, **question: object) -> tuple[int, dict[str, Any]]:
    status, _, body = reply(panel, "", json.dumps(question).encode())
    return status, json.loads(body)


@settings(max_examples=40)
@given(
    st.sampled_from(
        ["causal", "k <= q and q - k <= t", "(q*k) % 5 == 1", "windowed(4)", "k % heads == head"]
    ),
    st.integers(1, 40),
    st.integers(0, 39),
    st.integers(0, 39),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_a_tile_is_as_full_as_the_mask(
    text: str, n: int, top: int, left: int, height: int, width: int
) -> None:
    top, left = top % n, left % n
    where = {"top": top, "left": left, "height": height, "width": width, "rows": 4, "cols": 3}
    status, found = ask("tiles", rule=text, numbers={"n": n, "t": 3, "heads": 2}, head=1, **where)
    assert status == 200
    rule = lt.rule(text)
    mask = rule.mask(**{name: {"n": n, "t": 3, "heads": 2}[name] for name in rule.free})
    mask = mask[1] if rule.has_heads else mask
    for i, row in enumerate(found["cells"]):
        for j, letter in enumerate(row):
            y, x = top + i * height, left + j * width
            tile = mask[y : y + height, x : x + width]
            assert ord(letter) - ord("a") == -(-LEVELS * int(tile.sum()) // tile.size)
    seen = mask[top : top + 4 * height, left : left + 3 * width]
    assert (found["counts"], found["pairs"]) == ([f"{seen.sum():,}"], f"{seen.size:,}")


def test_tiles_of_two_rules_tell_which_of_them_attend() -> None:
    status, found = ask(
        "tiles", rule="causal", other="strided(2)", numbers={"n": 9}, height=3, width=3, rows=3, cols=3
    )
    assert status == 200
    a, b = lt.rule("causal").mask(n=9), lt.rule("strided(2)").mask(n=9)
    assert found["counts"] == [f"{(a & ~b).sum():,}", f"{(b & ~a).sum():,}", f"{(a & b).sum():,}"]
    assert found["cells"] == ["daa", "eda", "bed"]


@pytest.mark.parametrize(
    "text", ["neighbourhood(edge=shift)", "swin", "ky < qy or ky == qy and kx % rows < 3"]
)
def test_the_keys_of_a_pixel_are_tiles_as_well(text: str) -> None:
    numbers = {"rows": 7, "cols": 9, "r": 2, "w": 3, "shift": 1}
    where = {"pixel": [3, 7], "height": 2, "width": 3, "rows": 4, "cols": 3}
    status, found = ask("tiles", rule=text, numbers=numbers, **where)
    rule = lt.rule(text)
    keys = rule.mask(**{name: numbers[name] for name in rule.free})[3, 7]
    assert status == 200
    assert found["counts"] == [f"{keys.sum():,}"]
    for i, row in enumerate(found["cells"]):
        for j, letter in enumerate(row):
            tile = keys[2 * i : 2 * i + 2, 3 * j : 3 * j + 3]
            assert ord(letter) - ord("a") == -(-LEVELS * int(tile.sum()) // tile.size)


def test_the_keys_of_a_voxel_are_those_of_one_slice() -> None:
    rule, numbers = "abs(qz - kz) + abs(qy - ky) <= 2 and kx <= qx", {"depth": 4, "rows": 5, "cols": 6}
    where = {"pixel": [1, 2, 3], "slice": 3, "height": 1, "width": 1, "rows": 5, "cols": 6}
    _, found = ask("tiles", rule=rule, numbers=numbers, **where)
    keys = lt.rule(rule).mask(**numbers)[1, 2, 3, 3]
    assert found["cells"] == ["".join("u" if key else "a" for key in row) for row in keys]


def test_long_documents_are_counted_by_the_server_and_not_sent_to_the_page() -> None:
    text = "documents([400000, 600000])"
    assert ask("read", rule=text)[1]["data"] == {}
    _, found = ask("tiles", rule=text, height=500_000, width=500_000, rows=2, cols=2)
    assert found["counts"] == [f"{400_000**2 + 600_000**2:,}"]


def test_a_window_of_a_trillion_positions_is_counted() -> None:
    corner = {"top": str(10**12 - 1000), "left": str(10**12 - 1000), "height": 1000, "width": 1000}
    _, found = ask("tiles", rule="causal", numbers={"n": str(10**12)}, rows=1, cols=1, **corner)
    assert found["counts"] == ["500,500"]
    assert found["share"] == "50.0%" or found["share"].startswith("50")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"rule": "k <= q orr"}, "orr"),
        ({"rule": "causal", "numbers": {"n": 10}, "top": 10}, "there are 10 positions"),
        ({"rule": "neighbourhood"}, "the image is 8 by 8, and has no pixel ()"),
        ({"rule": "neighbourhood", "pixel": [1, 8]}, "has no pixel (1, 8)"),
        ({"rule": "neighbourhood(axes=3)", "pixel": [1, 1, 1], "slice": 3}, "3 slices"),
        ({"rule": "causal", "numbers": {"n": str(10**30)}, "top": str(2**60)}, "1,152,921,504,606,846,976"),
        ({"rule": "causal", "other": "neighbourhood"}, "different axes"),
        (
            {"rule": "(q*q + k) % 3 == 0", "numbers": {"n": 10**9}, "height": 10**8, "width": 10**8},
            "too many",
        ),
    ],
)
def test_what_cannot_be_counted_is_told(wrong: dict[str, Any], told: str) -> None:
    status, found = ask("tiles", **({"height": 1, "width": 1, "rows": 2, "cols": 2} | wrong))
    assert status == 422
    assert told in found["message"]


def test_the_picture_is_the_librarys() -> None:
    question = json.dumps({"rule": "strided", "other": "windowed(4)", "numbers": {"n": 9, "t": 2, "w": 77}})
    status, media, body = reply("draw", "svg", question.encode())
    picture = lt.rule("strided").draw(compare="windowed(4)", n=9, t=2)
    assert (status, media, body.decode()) == (200, "image/svg+xml", picture.svg())
    _, found = ask("draw", **json.loads(question))
    assert (found["title"], found["caption"]) == (picture.title, [*picture.caption])


def test_letters_without_a_number_are_drawn_at_the_examples_of_the_page() -> None:
    _, found = ask("draw", rule="documents([5, 3, 4])", other="strided")
    assert found["title"] == lt.rule("documents([5, 3, 4])").draw(compare="strided", t=3).title
    assert "rule.draw(compare='strided', t=3)" in found["copies"]["python"]


@pytest.mark.parametrize(
    ("pixel", "drawn"), [([1, 2], (1, 2)), ([99, 0], (3, 4)), ([3], (3, 4)), ([], (3, 4))]
)
def test_of_an_image_the_keys_of_a_pixel_that_it_has_are_drawn(
    pixel: list[int], drawn: tuple[int, int]
) -> None:
    numbers = {"rows": 6, "cols": 9}
    _, found = ask("draw", rule="neighbourhood", numbers=numbers, pixel=pixel)
    assert found["caption"] == [*lt.rule("neighbourhood").draw(pixel=drawn, r=2, **numbers).caption]
    _, found = ask("draw", rule="neighbourhood", numbers=numbers, pixel=pixel, flat=True)
    assert found["caption"] == [*lt.rule("neighbourhood").draw(r=2, **numbers).caption]


def test_the_copied_python_runs() -> None:
    _, found = ask("draw", rule="neighbourhood", other="axial", numbers={"rows": 5, "cols": 4}, pixel=[1, 2])
    held: dict[str, Any] = {}
    exec(found["copies"]["python"].replace("print(", "picture = ("), held)
    assert held["picture"].title == found["title"]
    assert np.array_equal(
        held["rule"].mask(rows=2, cols=2, r=0), lt.rule("qy == ky and qx == kx").mask(rows=2, cols=2)
    )
