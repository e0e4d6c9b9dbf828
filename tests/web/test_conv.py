"""A convolution as attention on the page: what it says is what the library says."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.nn.convolution.geometry import read_geometry
from lattend.nn.convolution.query_heads import query_heads
from lattend.nn.convolution.trial import try_heads
from lattend.nn.pictures.conv import draw_conv
from lattend.report.numbers import format_number
from lattend.web.worker import reply

PANELS = ("conv", "conv_leak", "conv_error", "conv_price", "conv_same")


def ask(panel: str, **question: Any) -> tuple[int, Any]:
    status, _, body = reply(panel, "", json.dumps(question).encode())
    return status, json.loads(body)


@settings(max_examples=25)
@given(
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 2),
    st.sampled_from(["zeros", "replicate"]),
    st.floats(0.05, 50),
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
def test_heads_are_the_librarys(kernel, stride, dilation, mode, alpha, pixel):
    texts = {"kernel": f"{kernel}x2", "stride": str(stride), "dilation": str(dilation), "padding_mode": mode}
    status, found = ask("conv", **texts, size="7x6", alpha=alpha, pixel=f"{pixel[0]},{pixel[1]}")
    assert status == 200
    geometry = read_geometry((kernel, 2), stride, dilation, None, mode)
    last = geometry.outputs(7, 6)
    query = min(pixel[0], last[0] - 1), min(pixel[1], last[1] - 1)  # beyond the last is the last
    wanted = query_heads(geometry, 7, 6, alpha, query)
    assert found["query"] == list(query) and found["leak"] == format_number(wanted.leak)
    for mine, head in zip(found["heads"], wanted.heads, strict=True):
        assert mine["tap"] == list(head.tap) and mine["leak"] == format_number(head.sharpness.leak)
        assert np.allclose(mine["weights"], head.weights, atol=1e-6)


def test_the_leak_is_the_curve_of_the_picture():
    _, found = ask("conv_leak", kernel="3", size="8", alpha=2.0)
    drawn = draw_conv(3, size=8, alpha=2.0).data["sharpness"]
    assert [[a, y] for a, y in zip(found["alphas"], found["curves"][1]["values"], strict=True)] == drawn[
        "curve"
    ]["worst pixel"]
    assert found["leak"] == format_number(drawn["leak"]) == "0.381"
    least = lt.nn.sharpness(rows=10, cols=10).for_error(1e-6)
    assert found["needed"][2]["smallest"] == format_number(least.smallest, 5)


def test_the_curve_ends_where_a_chart_can_show_it():
    _, found = ask("conv_leak", alpha=900)
    assert found["alphas"][-1] == pytest.approx(44) and found["leak"] == "5.46e−391"  # 4e^-900
    assert min(value for curve in found["curves"] for value in curve["values"]) > 1e-20


def test_the_difference_is_that_of_the_layer():
    _, found = ask("conv_error", kernel="3", stride="2", size="7x9", alpha=1.0, filter="sharpen")
    trial = try_heads(read_geometry(3, 2), 7, 9, 1.0, "sharpen")
    assert found["difference"] == (trial.soft - trial.wanted).tolist()
    assert found["error"] == format_number(trial.error)
    assert float(found["error"]) <= float(found["bound"])


def test_prices_are_the_commands_and_proved_the_same():
    _, found = ask("conv_price", kernel="3", size="8", channels=16, out_channels="32")
    facts = dict(draw_conv(3, size=8, c_in=16, c_out=32).facts)
    assert all(facts[name] == words for name, words in found["facts"])
    _, same = ask("conv_same", kernel="3", size="8", channels=16, out_channels=32)
    assert [one["quantity"] for one in same["same"]] == ["parameters", "multiplies", "adds"]
    assert all(one["holds"] for one in same["same"])
    assert same["same"][1]["number"] == "247,808"


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(
    ("question", "message", "field"),
    [
        ({"kernel": "abc"}, "the kernel is a whole number, or rows by columns as in 8x12", "kernel"),
        ({"size": "(" * 24}, "the size is a whole number, or rows", "size"),
        ({"kernel": "99"}, "9,801 heads are more than the page draws: at most 64", ""),
        ({"size": "999999999"}, "and the page draws 32 at most", ""),
        ({"kernel": "5", "padding": "0", "size": "3"}, "is less than the 5 the kernel spans", ""),
        ({"padding": "same", "stride": "2"}, "the stride must be 1", ""),
        ({"padding_mode": "wrap"}, 'padding_mode is "zeros" or "replicate", not "wrap"', ""),
    ],
)
def test_what_cannot_be_is_told(panel, question, message, field):
    status, problem = ask(panel, **question)
    assert status == 422 and problem["kind"] == "input"
    assert message in problem["message"] and problem["field"] == field


@pytest.mark.parametrize("panel", ["conv", "conv_leak", "conv_error"])
@pytest.mark.parametrize("alpha", [0, -1, 1e-300, 1000])
def test_any_sharpness_is_answered_or_refused(panel, alpha):
    status, found = ask(panel, alpha=alpha)
    assert status == (200 if alpha > 0 else 422), found


@pytest.mark.parametrize("panel", PANELS)
def test_lines_of_python_run_as_they_stand(panel):
    _, found = ask(panel, kernel="1x3", size="6x7")
    exec(found["copies"]["python"], {})
