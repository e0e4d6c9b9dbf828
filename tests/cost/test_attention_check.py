"""Attention, blocks and models checked by running them: `check`, by Python and by the command line."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import lattend as lt

C = lt.cost
SIZES: dict[str, Any] = {"n": 4, "heads": 2, "D_i": 3, "D_hid": 2, "D_o": 1, "D_out": 2}
IMAGE: dict[str, Any] = {"rows": 4, "cols": 4, "w": 2, "shift": 1, "heads": 1, "D_i": 2, "D_hid": 2}
ENCODINGS = (None, "absolute", "sinusoidal", "relative", "quadratic", "tables")


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("projections", ["shared", "naive", None])
def test_encodings_and_projections(encoding: str | None, projections: str | None) -> None:
    if projections == "naive" and encoding not in (None, "absolute"):
        return
    shape: dict[str, Any] = {**SIZES, "encoding": encoding, "projections": projections}
    shape |= {"D_p": 2} if encoding == "relative" else {}
    for rule, kv_heads, scaled in product(("causal", "full", "k < q"), (1, 2), (False, True)):
        result = C.attention(rule, **shape, kv_heads=kv_heads, scaled=scaled).check()
        assert result, str(result)


@pytest.mark.parametrize(
    "cost",
    [
        C.attention("causal", **SIZES, bias=True, out_bias=False),
        C.attention(n=4, m=3, heads=2, D_i=3, D_hid=2, D_keys=2, D_values=4),
        C.attention("k <= q", n=4, m=3, heads=2, D_i=3, D_hid=2, encoding="absolute"),
        C.attention("k <= q + head", n=4, heads=2, D_i=2, D_hid=2),
        C.attention(lt.rules.documents(lengths=[2, 3]), heads=1, D_i=2, D_hid=2),
        C.attention("causal", **SIZES, encoding="quadratic", content=True, learned=False),
        C.attention("causal", **SIZES, encoding="tables", radius=1),
        C.attention("swin", **IMAGE, encoding="tables", radius=1),
        # The rule's parameter has the name of an index of the statements
        C.attention("swin", **IMAGE, encoding="relative"),
        C.attention("abs(q - k) <= i", n=4, i=1, heads=1, D_i=2, D_hid=2),
        C.transformer_block("strided", n=5, t=2, d=4, heads=2, kv_heads=1, norms="rms", gated=True),
        C.transformer_block("causal", n=3, d=4, heads=2, hidden=3, cross=2),
        C.encoder(n=3, d=4, heads=2, D=3, hidden=2, layers=2),
        C.decoder(n=3, d=4, heads=2, hidden=2, layers=2, cross=2),
        C.decoder(n=3, d=4, heads=2, hidden=2, layers=2, vocabulary=5),
        C.decoder(n=3, d=4, heads=2, hidden=2, layers=2, vocabulary=5, tied=False, cross=2),
        C.vit(rows=4, cols=4, patch=2, c=1, d=4, layers=2, heads=2, hidden=3, classes=3),
        C.vae(n=2, d=3, hidden=2, latent=2),
    ],
    ids=lambda cost: cost.name,
)
def test_it_is_what_a_run_counts(cost: Any) -> None:
    result = cost.check()
    assert result, str(result)


def test_formulas_are_given_numbers_after() -> None:
    result = C.attention("strided").check(n=5, t=2, heads=1, D_i=2, D_hid=2)
    assert result
    assert str(result.rows[0].formula) == "D_i*(4heads*D_hid + 1)"
    assert C.encoder("causal", layers="l").check(n=3, d=4, heads=2, D=2, l=2)


def test_a_wrong_count_is_found() -> None:
    from dataclasses import replace

    right = C.attention("causal", **SIZES)
    ((times, layer),) = right.parts
    result = replace(right, parts=((times, replace(layer, statements=layer.statements[1:])),)).check()
    assert not result
    assert "multiplies" in [row.quantity for row in result.rows if not row.equal]
