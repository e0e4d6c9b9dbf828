"""The 2-D RNN and patches on the page: what they say is what the library says."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.errors import LattendError
from lattend.nn.grid.check import check_grid
from lattend.nn.images.patch_grid import patch_grid
from lattend.nn.pictures.grid import draw_grid, grid_nets
from lattend.nn.pictures.patches import draw_patches
from lattend.nn.pictures.scores import draw_scores
from lattend.web.views import report_view
from lattend.web.worker import reply

sides = st.integers(1, 9)


def ask(panel: str, **question: Any) -> tuple[int, Any]:
    status, _, body = reply(panel, "", json.dumps(question).encode())
    return status, json.loads(body)


@settings(max_examples=20)
@given(
    sides, sides, st.sampled_from([1, 2, 4]), st.tuples(sides, sides), st.integers(1, 4), st.integers(1, 4)
)
def test_steps_and_fields_are_the_librarys(rows, cols, directions, pixel, kernel, layers):
    status, found = ask(
        "grid",
        size=f"{rows}x{cols}",
        directions=directions,
        pixel=f"{pixel[0]},{pixel[1]}",
        kernel=kernel,
        layers=layers,
    )
    assert status == 200
    here = min(pixel[0], rows - 1), min(pixel[1], cols - 1)  # beyond the last is the last
    drawn = draw_grid((rows, cols), directions=directions, pixel=here, kernel=kernel, layers=layers)
    assert {one["name"]: one["steps"] for one in found["sweeps"]} == drawn.data["steps"]
    assert found["depth"] == drawn.data["depth"] == len(found["at_once"]) == rows + cols - 1
    seen = drawn.data["receptive_field"]
    assert [found["seen"][0], found["seen"][2]] == [seen["rnn2d"], seen["convnet"]]
    assert sum(map(sum, found["field"])) == seen["rnn2d"]
    assert sum(map(sum, found["raster"])) == found["seen"][1] == here[0] * cols + here[1] + 1
    assert found["words"] == dict(drawn.facts)["receptive field"]
    for sweep in found["sweeps"]:  # a cell runs one step after the last of those it waits for
        for y, row in enumerate(sweep["steps"]):
            for x, step in enumerate(row):
                near = [(y + dy, x + dx) for dy, dx in sweep["waits"]]
                before = [sweep["steps"][a][b] for a, b in near if 0 <= a < rows and 0 <= b < cols]
                assert step == max(before, default=-1) + 1


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_prices_of_both_nets_are_those_of_their_costs(cell):
    _, found = ask("grid_price", size="6x8", cell=cell, directions=2, c=3, h="16", kernel=5, layers=2)
    nets = grid_nets((6, 8), directions=2, cell=cell, kernel=5, layers=2)
    wanted = [
        f"{net.value(quantity):,}"
        for net in (nets.recurrent(3, 16), nets.convnet(3, 16))
        for quantity in ("multiplies", "parameters", "depth")
    ]
    assert [price["number"] for price in found["prices"]] == wanted
    letters = lt.cost.rnn2d(rows="n", cols="m", cell=cell, directions=2)
    assert found["prices"][0]["formula"]["text"] == str(letters.multiplies)


def test_the_check_and_the_diagram_are_the_librarys():
    _, found = ask("grid_check", size="3x4", cell="gru")
    run = check_grid((3, 4), cell="gru", c=2, h=2)
    assert found["equal"] and found["report"] == json.loads(
        report_view(run.report(equation=False)).model_dump_json()
    )
    assert found["equation"] == ask("grid", size="3x4", cell="gru")[1]["equation"]
    _, diagram = ask("grid_diagram", size="3x4", pixel="99,0")
    assert diagram["svg"] == draw_grid((3, 4), diagram=True, pixel=(2, 0)).svg()


@settings(max_examples=30)
@given(sides, sides, sides, sides, st.sampled_from(["error", "crop", "zeros"]))
def test_patches_are_the_librarys_or_refused_with_its_words(rows, cols, patch, stride, padding):
    status, found = ask(
        "patches", image=f"{rows}x{cols}", patch=str(patch), stride=str(stride), padding=padding, channels=2
    )
    try:
        grid = patch_grid((rows, cols), patch, stride, padding)
    except LattendError as error:
        assert (status, found["message"]) == (422, str(error))
        return
    assert status == 200 and found["tokens"] == grid.tokens
    for axis, cuts in zip((found["rows"], found["cols"]), grid, strict=True):
        assert all(axis[name] == getattr(cuts, name) for name in axis if name != "latex")
        assert axis["latex"].endswith(str(cuts.tokens))
    facts = draw_patches((rows, cols), patch, stride, padding).facts
    assert [(fact["name"], fact["words"]) for fact in found["facts"]] == list(facts)


@pytest.mark.parametrize("encoding", ["absolute", "sinusoidal", "relative", "quadratic"])
def test_scores_are_those_of_the_picture(encoding):
    _, found = ask("scores", encoding=encoding, size="5x6", pixel="1,9", dy=-0.5, dx=1, alpha=0.7, seed=3)
    own: dict[str, Any] = {"centres": [(-0.5, 1)], "alpha": [0.7]} if encoding == "quadratic" else {"seed": 3}
    data = draw_scores(encoding, size=(5, 6), pixel=(1, 5), **own).data
    assert np.allclose(found["sum"], data["sum"], atol=1e-5)
    assert np.allclose(found["weights"], data["weights"], atol=1e-5)
    assert np.allclose(np.sum([term["values"] for term in found["terms"]], axis=0), found["sum"], atol=1e-4)
    assert (found["pixel"], found["made"]) == ([1, 5], data["made"])


def test_the_price_of_tokens_is_that_of_a_vit():
    _, found = ask("patches_price")
    by_name = {part["name"]: part for part in found["parts"]}
    assert by_name["patch embedding"]["parameters"] == "590,592"  # 16*16*3*768 + 768
    attention = by_name["one attention layer over 196 tokens"]
    assert attention["multiplies"] == f"{4 * 196 * 768**2 + 2 * 196**2 * 768:,}"
    assert found["mark"]["texts"] in [size["texts"] for size in found["sizes"]]
    assert found["attention"]["text"] == "1536n(n + 1536)"


@pytest.mark.parametrize(
    ("panel", "question", "message"),
    [
        ("grid", {"size": "8x"}, "the size of the image is a whole number, or rows by columns"),
        ("grid", {"size": "49"}, "the page draws images of at most 48 rows and columns, not 49 × 49"),
        ("grid", {"size": "0"}, "size is a whole number from 1 up"),
        ("grid", {"pixel": "a"}, "the pixel is a row and a column, as in 3,4"),
        ("grid_price", {"size": "999999999"}, "the page draws images of at most 48"),
        ("grid_check", {"size": "17"}, "plain loops are slow"),
        ("grid_diagram", {"pixel": "é"}, "the pixel is a row and a column"),
        ("patches", {"patch": "(" * 24}, "the patch is a whole number, or rows by columns"),
        ("patches", {"image": "999999999", "padding": "crop"}, "at most 100,000 rows and columns"),
        ("patches", {"image": "230"}, "6 are left over"),
        ("scores", {"alpha": 0}, "alpha must be above 0, got 0"),
        ("scores", {"size": "25"}, "at most 24 rows and columns"),
        ("patches_price", {"width": 770}, "width = 770 does not divide into 12 heads"),
    ],
)
def test_what_cannot_be_is_told(panel, question, message):
    status, problem = ask(panel, **question)
    assert status == 422 and message in problem["message"]


@pytest.mark.parametrize(
    ("panel", "question"),
    [
        *((panel, {"size": "3x4"}) for panel in ("grid", "grid_price", "grid_check", "grid_diagram")),
        *(("scores", {"encoding": name}) for name in ("quadratic", "relative")),
        *((panel, {"image": "8x12", "patch": "4", "stride": "2"}) for panel in ("patches", "patches_price")),
    ],
)
def test_lines_of_python_run_as_they_stand(panel, question):
    _, found = ask(panel, **question)
    exec(found["copies"]["python"], {})
