"""The gallery's code runs as it is copied."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from lattend.draw.grid.samples import SAMPLES, Sample

PATH = Path(__file__).parents[2] / "docs" / "site" / "gallery.py"


@pytest.fixture(scope="module")
def gallery() -> Any:
    spec = importlib.util.spec_from_file_location("gallery", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("one", SAMPLES, ids=lambda one: one.call)
def test_code_to_copy(gallery: Any, one: Sample) -> None:
    rule = one.rule.at(**one.at)
    queries = [rule.values[axis.queries] for axis in rule.axes]
    keys = [rule.values[axis.keys] for axis in rule.axes]
    torch.manual_seed(0)
    q = torch.randn(1, 2, *queries, 8)
    k, v = torch.randn(2, 1, 2, *keys, 8)
    names: dict[str, Any] = {"q": q, "k": k, "v": v}
    exec(gallery.code(one), names)
    mask = torch.from_numpy(rule.mask()).reshape(q[0, 0, ..., 0].numel(), -1)
    flat = (x.flatten(2, -2) for x in (q, k, v))
    exact = torch.nn.functional.scaled_dot_product_attention(*flat, attn_mask=mask)
    torch.testing.assert_close(names["out"].flatten(2, -2), exact.nan_to_num(), atol=1e-5, rtol=1e-5)
