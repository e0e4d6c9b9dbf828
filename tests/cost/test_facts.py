"""The prices of SYSTEMS: the 2-D RNN (S4), attention (S8, S10), RNN against Transformer (S14)."""

from __future__ import annotations

from typing import Any

import pytest

import lattend as lt

C = lt.cost


# S4, the 2-D RNN


def test_the_grid_rnn() -> None:
    cost = C.rnn2d()
    assert cost.claim("parameters", "h c + 2h^2")
    assert cost.claim("multiplies", "n^2 h c + 2n(n-1)h^2")
    assert cost.claim("adds", "n^2 h(c-1) + 2n(n-1)h^2")
    assert cost.claim("multiplies", "O(n^2 h^2 + n^2 h c)").holds
    assert cost.claim("depth", "2n - 1")
    assert str(cost.depth) == "2n - 1"
    assert cost.schedule == ["rnn2d: cell (row, col) runs at step col + row"]


@pytest.mark.parametrize(
    ("rows", "cols", "multiplies", "adds"),
    [  # the corner, a row of edge cells, and one inner cell with its three neighbours
        (1, 1, "h c", "h(c-1)"),
        (1, 2, "2 h c + h^2", "2 h(c-1) + h^2"),
        (2, 2, "4 h c + 4 h^2", "4 h(c-1) + 4 h^2"),
    ],
)
def test_corner_edge_and_inner_cells(rows: int, cols: int, multiplies: str, adds: str) -> None:
    cost = C.rnn2d(rows=rows, cols=cols)
    assert cost.claim("multiplies", multiplies)
    assert cost.claim("adds", adds)


def test_what_the_notes_get_wrong_about_the_grid_rnn() -> None:
    dropped = C.rnn2d().claim("multiplies", "O(n^2 h^2)")
    assert dropped.status == "fails"
    assert dropped.because == "along c = s the count grows faster"
    operations = C.rnn2d().claim("parameters", "n^2 h c + 2n(n-1)h^2")
    assert str(operations.counterexample) == "at n = 1, c = 1, h = 1 it gives 1, the count is 3"


def test_a_rectangle_and_numbers() -> None:
    assert C.rnn2d(n=8, h=5, c=3).multiplies == 64 * 5 * 3 + 2 * 8 * 7 * 25
    assert str(C.rnn2d(rows="rows", cols="cols").depth) == "cols + rows - 1"
    assert C.rnn2d().at(n=8).at(h=5, c=3).multiplies == 3760


# S8 and S10, attention


def test_parameters_of_attention() -> None:
    text = "N_h*D_i*(2D_hid + D_o) + N_h*D_o*D_out + D_out"
    cost = C.attention(D_o="D_o", D_out="D_out")
    assert cost.claim("parameters", text, rename={"N_h": "heads"})
    more = {"absolute": "n D_i", "sinusoidal": "0", "relative": "N_h D_hid(D_p + 2)", "tables": "N_h(2n - 1)"}
    for encoding, added in more.items():  # positions, W̃_k, u and v of each head, a number for each shift
        encoded = C.attention(D_o="D_o", D_out="D_out", D_p="D_p", encoding=encoding)
        assert encoded.claim("parameters", f"{text} + {added}", rename={"N_h": "heads"})
    bare = C.attention(D_o="D_o", D_out="D_out", encoding="quadratic")
    assert bare.claim("parameters", "heads D_i D_o + heads D_o D_out + D_out + 3 heads")
    both = C.attention(D_o="D_o", D_out="D_out", encoding="quadratic", content=True, D_p=5)
    assert both.claim("parameters", f"{text} + 5N_h", rename={"N_h": "heads"})  # 2 of a centre, 3 of a width


@pytest.mark.parametrize(
    ("encoding", "order"), [("absolute", "O(N D^2 + N^2 D)"), ("quadratic", "O(N^2*3 + N^2 D + N D^2)")]
)
def test_orders_of_the_whole_layer(encoding: str, order: str) -> None:
    cost = C.attention(n="N", heads=1, D_i="D", D_hid="D", encoding=encoding)
    assert cost.claim("multiplies", order).holds


def test_a_claim_that_is_another_column_is_told_which() -> None:
    verdict = C.rnn2d().claim("multiplies", "n^2(hc+2h^2)")
    assert not verdict
    ((how, other),) = verdict.instead
    assert how == "this is the executed count, not the needed one" and other
    backward = C.linear().backward
    ((how, _),) = C.linear().claim("multiplies", f"({backward.multiplies})").instead
    assert how == "this is the needed backward count, not the needed one"
    assert C.rnn2d().claim("multiplies", "n^2").instead == ()


def test_a_number_is_judged() -> None:
    cost = C.rnn2d(n=4, h=3, c=2)
    assert cost.claim("parameters", "24") and cost.claim("parameters", "hc + 2h^2")
    assert str(cost.claim("parameters", "25")) == (
        "25: fails; at n = 4, h = 3, c = 2 it gives 25, the count is 24"
    )
    assert C.rnn2d().at(n=4, h=3, c=2).claim("parameters", "24")
    assert C.rnn2d(n=4).claim("multiplies", "n^2 h c + 2n(n-1)h^2")  # n is a number, and still has its name


def test_naive_scores() -> None:
    naive: dict[str, Any] = {"heads": 1, "D_i": "D", "D_hid": "D", "encoding": "absolute"}
    scores = _statements(C.attention(n=1, projections="naive", **naive), "projected again", "scores")
    assert scores.claim("operations", "16D^2 - 1")
    cubic = scores.claim("operations", "D^3")
    assert cubic.status == "fails"
    assert scores.claim("operations", "O(D^2)").holds


def _statements(cost: lt.cost.Cost, *names: str) -> lt.cost.Cost:
    """The cost of some statements of a layer."""
    from dataclasses import replace

    ((times, layer),) = cost.parts
    chosen = tuple(s for s in layer.statements if s.name in names)
    return replace(cost, parts=((times, replace(layer, statements=chosen)),))


def test_scores_of_each_encoding() -> None:
    shared: dict[str, Any] = {"n": "N", "heads": 1, "D_i": "D", "D_hid": "D"}
    absolute = _statements(C.attention(encoding="absolute", **shared), "x + p", "q", "k", "scores")
    assert absolute.claim("multiplies", "2N D^2 + N^2 D")
    quadratic = _statements(C.attention(encoding="quadratic", **shared), "scores")
    assert quadratic.claim("multiplies", "3N^2")


# S14, RNN against Transformer: n neurons, l layers, t steps

RNN: dict[str, Any] = {"steps": "t", "inputs": "n", "hidden": "n", "layers": "l"}
BARE: dict[str, Any] = {"n": "t", "heads": 1, "D_i": "n", "D_hid": "n", "projections": None}


def test_rnn_against_attention() -> None:
    assert C.rnn(**RNN).claim("multiplies", "2t l n^2")
    assert (C.attention("full", **BARE) * "l").claim("multiplies", "2t^2 l n")
    projected = C.attention("full", n="t", heads=1, D_i="n", D_hid="n")
    assert projected.claim("multiplies", "2t^2 n + 4t n^2")
    assert C.attention("causal", **BARE).claim("multiplies", "n t(t+1)")
    band = C.attention("strided", **{**BARE, "t": "b"})
    assert band.claim("multiplies", "n(2t - b)(b + 1)", assuming="b <= t")
    assert C.lstm(steps="t", inputs="n", hidden="n").claim("multiplies", "8t n^2 + 3t n")


def test_steps_one_after_another() -> None:
    assert C.rnn(**RNN).claim("depth", "t + l - 1")
    assert (C.rnn(**{**RNN, "layers": 1}) * "l").claim("depth", "t l")  # layers that do not overlap
    assert (C.attention("full", **BARE) * "l").claim("depth", "l")
    assert (C.attention("full", **BARE) * "l" * "t").claim("depth", "t l")  # token by token


def test_memory() -> None:
    assert C.rnn(**RNN).claim("saved_activations", "O(t l n)").holds
    assert C.rnn(**RNN).claim("cache", "l n")
    kept = C.attention("full", n="t", D_i="n", D_hid="D") * "l"
    assert kept.claim("saved_activations", "O(t l n + t l heads D + l heads t^2)").holds
    assert kept.claim("saved_activations", "O(t l n + t l heads D)").status == "fails"


def test_what_mixes_tokens() -> None:
    result = C.transformer_block(heads=1).mixes_tokens
    assert result == {"layer norm": False, "attention": True, "residual": False, "feed-forward": False}
    assert C.attention("q == k", n="n", heads=1).mixes_tokens == {"attention": False}
    assert C.rnn().mixes_tokens == {"rnn": True}


# Three columns


def test_three_columns() -> None:
    cost = C.attention("causal", n=100, heads=2, D_hid=8, projections=None)
    assert cost.multiplies == 2 * 16 * 5050
    assert cost.executed.multiplies == 2 * 16 * (64 * 64 + 36 * 64 + 64 * 64 - 36 * 64 + 64 * 64)
    assert cost.dense.multiplies == 2 * 16 * 100 * 100
    with pytest.raises(lt.errors.NamingError, match="what is executed is known when every size"):
        _ = C.attention("causal").executed.multiplies


def test_the_backward_pass_of_attention() -> None:
    """Twice the products in needed work; executed, the scores are computed once more: 2.5 times."""
    cost = C.attention("causal", n=128, heads=2, D_hid=8, projections=None)
    products = _statements(cost, "scores", "mixing")
    assert products.backward.total() == 2 * products.total()
    assert 2 * products.backward.executed.total() == 5 * products.executed.total()
    assert products.backward.dense.total() == 2 * products.dense.total()


def test_padding_is_not_needed() -> None:
    cost = C.conv(rows=5, cols=5, c_in=2, c_out=3, padding=1, bias=False)
    assert cost.multiplies == (3 * 5 - 2) ** 2 * 6
    assert cost.dense.multiplies == 9 * 25 * 6


# Putting together


def test_costs_add_and_repeat() -> None:
    one = C.linear(n=2, d_in=3, d_out=4)
    assert (one + one).multiplies == 48
    assert (3 * one).parameters == 3 * 16
    assert (one * "l").claim("multiplies", "24 l")
    assert (one + one * 2).depth == 3


def test_published_sizes() -> None:
    assert C.vit().parameters == 86_567_656
    assert C.vit(d=1024, layers=24, heads=16).parameters == 304_326_632  # ViT-L/16
    gpt2 = C.decoder(n=1024, d=768, heads=12, layers=12, vocabulary=50257)
    assert gpt2.total("parameters") + 1024 * 768 == 124_439_808  # with its table of positions


def _loosely(make: Any, **given: Any) -> Any:
    """A call with arguments of a wrong type."""
    return make(**given)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: C.rnn2d(n=0), "rows must be at least 1, got 0"),
        (lambda: C.attention("causal", w=3), 'attention under "k <= q" has no w; it has n'),
        (lambda: C.attention(encoding="rotary"), "encoding is one of None, absolute, relative, quadratic"),
        (lambda: C.attention(content=True), "content=True goes with encoding quadratic, not None"),
        (
            lambda: C.attention(encoding="relative", learned=False),
            "learned=False goes with encoding absolute, ",
        ),
        (lambda: C.attention(radius=2), "radius goes with encoding tables, not None"),
        (lambda: C.attention(encoding="tables", radius=(1, 2)), "1 in all, not (1, 2\\)"),
        (lambda: C.attention(encoding="tables", radius=-1), "radius must be at least 0, got -1"),
        (lambda: C.attention(projections="naive", D_keys=3), "naive projections take keys of D_i numbers"),
        (lambda: _loosely(C.conv, stride="s"), "stride must be a number here, not the name s"),
        (lambda: C.conv(rows=2, cols=2), "rows = 2 with padding 0 is less than the 3 the kernel spans"),
        (lambda: C.conv(c_in=3, groups=2), "c_in = 3 cannot be cut into 2 groups"),
        (lambda: C.transformer_block(d=10, heads=3), "d = 10 does not divide into 3 heads"),
        (lambda: C.rnn2d().at(k=3), "rnn2d has no k; it has n, c, h"),
        (lambda: C.rnn2d().claim("cost", "n"), "a cost has no cost; it has parameters, multiply_adds"),
        (lambda: C.rnn2d(n=1, h=1, c=1).order("multiplies"), "multiplies of rnn2d is the number 1"),
        (lambda: C.norm(kind="batch"), "kind of norm is one of layer, rms, not 'batch'"),
    ],
)
def test_what_does_not_fit_is_said(make: Any, message: str) -> None:
    with pytest.raises(lt.errors.LattendError, match=message.replace("(", r"\(")):
        make()


def test_an_unknown_layer_is_named() -> None:
    with pytest.raises(AttributeError, match=r"lt\.cost has no 'rnn3d'; it has"):
        _ = C.rnn3d


# Sizes


def test_sizes_with_one_name_are_that_name() -> None:
    """Also three of them; at numbers both ways agree."""
    given: dict[str, Any] = {"heads": 1, "D_hid": 1, "projections": None}
    for a in range(1, 6):
        one = C.attention("neighbourhood", rows="a", cols="a", r="a", **given).at(a=a)
        assert one.multiplies == C.attention("neighbourhood", rows=a, cols=a, r=a, **given).multiplies
    assert C.attention("strided", n="a", t="a", **given).claim("multiplies", "a(a+1)")
    with pytest.raises(lt.errors.NoClosedForm, match="have one name; give them two, or numbers"):
        C.attention("windowed", n="a", w="a", **given)


def test_formulas_as_sizes_have_a_domain() -> None:
    cost = C.linear(n="d - 5", d_in=2, d_out=1)
    assert cost.at(d=7).multiplies == 4
    with pytest.raises(lt.errors.DomainError, match="got d = 3"):
        _ = cost.at(d=3).multiplies
    with pytest.raises(lt.errors.DomainError, match="needs d % 4 == 0, got d = 6"):
        _ = C.transformer_block(heads=4).at(d=6, n=2).multiplies
    assert C.transformer_block(heads=4).at(d=8, n=2).adds == C.transformer_block(heads=4, d=8, n=2).adds


def test_scalar_depth() -> None:
    assert C.rnn(steps=3, inputs=6, hidden=10).scalar_depth == 3 * (1 + 4 + 1)  # a sum of 16, tanh
    assert C.rnn2d(n=3, h=2, c=4).scalar_depth == 5 * (1 + 3 + 1)  # a sum of 8
    depth = C.attention("causal", n=4096, heads=32, D_i=4096, D_hid=128).scalar_depth
    assert depth == (1 + 12) + (1 + 7) + 1 + 12 + 1 + (1 + 12) + (1 + 12) + 1


@pytest.mark.parametrize("rule", ["k <= q and q - k <= -1", "q == 0 and k == 0", "k < q", "causal"])
@pytest.mark.parametrize("backward", [False, True])
def test_no_less_is_executed_than_needed(rule: str, backward: bool) -> None:
    """Rows without keys add nothing up."""
    cost = C.attention(rule, n=100, heads=1, D_i=4, D_hid=4)
    cost = cost.backward if backward else cost
    adds, executed = cost.adds, cost.executed.adds
    assert isinstance(adds, int) and isinstance(executed, int) and 0 <= adds <= executed


def test_executed_is_found_when_it_is_asked_for() -> None:
    huge = C.attention("causal", n=10**12, heads=1, D_hid=1, projections=None)
    assert huge.multiplies == 10**12 * (10**12 + 1)
    late = C.attention("causal", heads=1, D_hid=1, projections=None).at(n=100)
    assert (
        late.executed.multiplies
        == C.attention("causal", n=100, heads=1, D_hid=1, projections=None).executed.multiplies
    )
    with pytest.raises(lt.errors.TooLarge, match="tiles of 1,000,000,000,000 positions are not listed"):
        _ = huge.executed.multiplies


def test_what_is_added_is_alike() -> None:
    one = C.linear(n=2, d_in=3, d_out=4)
    assert (one.backward + one.backward).multiplies == 96
    total: Any = sum([one, one, one])
    assert total.parameters == 48
    with pytest.raises(lt.errors.NamingError, match="add first, then ask for backward"):
        _ = one.backward + one
    with pytest.raises(lt.errors.NamingError, match="bytes_read is known of the forward pass"):
        _ = one.backward.bytes_read
    assert one.with_width(2).total("bytes_read") * 2 == one.total("bytes_read")


def test_a_rule_of_data() -> None:
    packed = lt.rules.documents(lengths=[3000, 2000])
    cost = C.attention(packed, heads=1, D_hid=1, projections=None)
    assert cost.multiplies == 2 * (3000**2 + 2000**2)
    assert cost.adds == 3000**2 + 2000**2 - 5000 + 3000**2 + 2000**2 - 5000
