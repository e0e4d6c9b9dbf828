"""The heads of one query against plain sums over all keys, and against the layer that runs them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from lattend.errors import DomainError, NamingError
from lattend.nn.convolution.convert import from_conv
from lattend.nn.convolution.geometry import read_geometry
from lattend.nn.convolution.query_heads import query_heads
from lattend.nn.convolution.trial import FILTERS, filter_weights, sample_image, try_heads

small = st.integers(1, 3)


@settings(max_examples=30)
@given(small, small, small, st.sampled_from(["zeros", "replicate"]), st.integers(0, 3), st.data())
def test_the_weights_mix_an_image_as_the_layer_does(kernel, stride, dilation, mode, padding, data):
    geometry = read_geometry(kernel, stride, dilation, padding, mode)
    rows, cols = 7, 8
    outputs = geometry.outputs(rows, cols)
    query = data.draw(st.tuples(*(st.integers(0, size - 1) for size in outputs)))
    conv = nn.Conv2d(1, 1, kernel, stride, padding, dilation, bias=False, padding_mode=mode).double()
    image = sample_image(rows, cols)
    found = query_heads(geometry, rows, cols, 1.5, query)
    y, x = (torch.arange(size) + start for size, start in zip(found.keys, found.origin, strict=True))
    inside = ((y >= 0) & (y < rows))[:, None] & ((x >= 0) & (x < cols))[None, :]
    keys = torch.where(inside, image[y.clamp(0, rows - 1)][:, x.clamp(0, cols - 1)], 0.0)
    taps = conv.weight.flatten().tolist()
    mixed = sum(
        w * float((torch.from_numpy(head.weights) * keys).sum())
        for w, head in zip(taps, found.heads, strict=True)
    )
    soft = from_conv(conv, 1.5)(image[None])[0].detach()
    assert mixed == pytest.approx(float(soft[query]), abs=1e-12)


@settings(max_examples=30)
@given(small, small, st.sampled_from(["zeros", "replicate"]), st.floats(0.05, 20.0))
def test_the_leak_is_what_is_not_on_the_tap(kernel, dilation, mode, alpha):
    found = query_heads(read_geometry(kernel, 1, dilation, None, mode), 5, 6, alpha, (0, 5))
    for head in found.heads:
        near = [
            min(max(tap - start, 0), size - 1)
            for tap, start, size in zip(head.tap, found.origin, found.keys, strict=True)
        ]
        assert math.isclose(1 - head.weights[near[0], near[1]], head.sharpness.leak, abs_tol=1e-12)
        assert head.sharpness.leak <= head.sharpness.bound * (1 + 1e-12)


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("mode", ["zeros", "replicate"])
def test_a_trial_stays_within_its_bound_and_hard_heads_are_the_convolution(name, mode):
    trial = try_heads(read_geometry(3, 2, 2, 2, mode), 9, 8, 1.0, name)
    assert trial.hard_error < 1e-14
    assert trial.error > 1e-3  # α = 1 is far from sharp
    assert bool(((trial.soft - trial.wanted).abs() <= trial.bound + 1e-14).all())


def test_mistakes_are_named():
    with pytest.raises(NamingError, match="filter is one of edges, average, sharpen, random, not 'blur'"):
        filter_weights("blur", 3, 3)
    with pytest.raises(DomainError, match=r"pixel \(8, 0\) lies outside an output of 8 × 8"):
        query_heads(read_geometry(3), 8, 8, 1.0, (8, 0))
