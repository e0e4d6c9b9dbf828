"""Layers from text: what a person types, and what is said to mistakes."""

from __future__ import annotations

import pickle

import pytest

import lattend as lt
from lattend.cost.reader import MEANT, WORDS, arguments_of, from_text, layer_names
from lattend.cost.sizes import KINDS, remade
from lattend.counts.count import Count
from lattend.errors import LattendError, NamingError, TextError


def test_every_layer_of_lt_cost_has_its_name():
    assert {"attention", "conv", "rnn", "lstm", "gru", "rnn2d", "vit", "vae"} <= set(layer_names())
    for name in layer_names():
        assert isinstance(from_text(name), lt.cost.Cost)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("rnn2d", lt.cost.rnn2d()),
        ("rnn2d()", lt.cost.rnn2d()),
        (" rnn( steps = t , hidden = 512 ) ", lt.cost.rnn(steps="t", hidden=512)),
        ("rnn(hidden=4*d + 1)", lt.cost.rnn(hidden="4*d + 1")),
        ("rnn(hidden=(d + 1)*2)", lt.cost.rnn(hidden="(d + 1)*2")),
        ("linear(d_in=1_000)", lt.cost.linear(d_in=1000)),
        ("rnn(bias=True, initial=false)", lt.cost.rnn(bias=True, initial=False)),
        ("rnn2d(cell=gru, directions=2, layers=l)", lt.cost.rnn2d(cell="gru", directions=2, layers="l")),
        ("attention(causal)", lt.cost.attention("causal")),
        ("attention(rule=causal, projections=none)", lt.cost.attention("causal", projections=None)),
        ("attention(strided(255), n=t)", lt.cost.attention(lt.rules.strided(255), n="t")),
        ("attention(k <= q and q - k <= min(b, 9))", lt.cost.attention("k <= q and q - k <= min(b, 9)")),
        ("attention('q == k', encoding=\"relative\")", lt.cost.attention("q == k", encoding="relative")),
        ("attention(n=3, m=5)", lt.cost.attention(n=3, m=5)),
        ("conv(kernel=(3, 1), padding=(1,0))", lt.cost.conv(kernel=(3, 1), padding=(1, 0))),
        ("encoder(strided, d=8, heads=2)", lt.cost.encoder("strided", d=8, heads=2)),
        ("2 * rnn(hidden=3) + linear(n=t)", 2 * lt.cost.rnn(hidden=3) + lt.cost.linear(n="t")),
    ],
)
def test_text_is_the_call(text, same):
    result = from_text(text)
    assert str(result.multiplies) == str(same.multiplies)
    assert str(result.parameters) == str(same.parameters)


@pytest.mark.parametrize(
    ("text", "given", "value"),
    [
        ("rnn2d", {"n": 8, "h": 5, "c": 3}, 3760),
        ("rnn(steps=t, inputs=n, hidden=n)", {"t": 2, "n": 8}, 256),
        ("rnn", {"steps": 2, "hidden": 3, "inputs": 4}, 2 * 3 * 7),
        ("attention(n=t, heads=1, D_hid=n, projections=none)", {"n": 8, "t": 2}, 2 * 4 * 8),
        ("attention(heads=1, D_hid=2, projections=none)", {"rule": "causal", "n": 4}, 40),
        ("attention(strided, heads=1, D_hid=1, projections=none)", {"n": 5, "t": 2}, 24),
        ("linear(d_in=d, d_out=d/2)", {"d": 8, "n": 1}, 32),
    ],
)
def test_numbers_are_put_in_before_the_layer_is_made(text, given, value):
    result = from_text(text, given)
    assert result.multiplies == value
    assert result.values == {}
    assert result.executed.multiplies >= value


def test_a_symbol_of_one_part_may_be_left():
    assert str(from_text("rnn(hidden=h, inputs=d)", {"d": 2}).multiplies) == "h*t(h + 2)"


@pytest.mark.parametrize(
    ("text", "message", "marked"),
    [
        ("rn(steps=t)", "no layer is named rn; there are attention, conv,", "rn"),
        ("rn(steps=t)", "Did you mean rnn?", "rn"),
        ("cnn(kernel=3)", "Did you mean conv?", "cnn"),
        ("mlp", "Did you mean feed_forward?", "mlp"),
        ("self_attention(causal)", "Did you mean attention?", "self_attention"),
        ("LayerNorm", "Did you mean norm?", "LayerNorm"),
        ("rnn(step=t)", "rnn has no step; it takes steps, inputs, hidden, layers, bias, initial", "step"),
        ("attention(q=3)", "attention has no q; it takes rule, heads,", "q"),
        ("attention(strided(3), t=5)", "attention has no t;", "t"),
        ("encoder(stps=3)", "encoder has no stps; it takes rule, layers, n, d,", "stps"),
        ("rnn(bias=3)", "bias of rnn is true or false, not 3", "bias"),
        ("rnn(hidden=true)", "hidden of rnn is a number, a name or a formula, not true", "hidden"),
        ("rnn(hidden=0)", "rnn: hidden must be at least 1, got 0", "rnn(hidden=0)"),
        ("rnn(hidden=t/)", 'hidden of rnn: formula "t/"', "hidden"),
        ("rnn(t)", "write arguments of rnn as name=value; it takes steps", "t"),
        ("rnn(steps=)", "a value is missing here", ")"),
        ("rnn(steps=t, steps=t)", "steps is given twice", "steps"),
        ("rnn(steps=t", "this ( is not closed", "("),
        ("rnn(steps=t))", "this ) closes nothing", ")"),
        ("rnn(steps='t)", "this ' is not closed", "'"),
        ("rnn +", "a layer is missing here", None),
        ("* rnn", "a layer is missing here", None),
        ("0 * rnn", "times must be at least 1", "0 "),
        ("", "write a layer, as in rnn(steps=t, hidden=512)", None),
        ("rnn; import os", "this is no layer", None),
        ("2-D RNN", "this is no layer; did you mean rnn2d? Else write it as in", None),
        ("attention(causl)", "no rule is named causl; did you mean causal?", "causl"),
        ("conv(stride=s)", "conv: stride must be a number here", "conv(stride=s)"),
    ],
)
def test_mistakes_point_at_their_place(text, message, marked):
    with pytest.raises(TextError) as error:
        from_text(text)
    assert message in str(error.value)
    if marked is not None:
        assert text[error.value.start : error.value.end] == marked


def test_given_names_that_fit_nowhere():
    with pytest.raises(NamingError, match="rnn has no z; it has t, c, h"):
        from_text("rnn", {"z": 3})
    with pytest.raises(NamingError, match="rnn has a rule already, or takes none; leave it out"):
        from_text("rnn", {"rule": "causal"})
    with pytest.raises(LattendError, match="d/3 is 8/3 at d = 8, and no whole number"):
        from_text("linear(d_in=d/3)", {"d": 8})


def test_what_a_wrong_name_means_is_a_layer():
    assert set(MEANT.values()) <= set(layer_names())
    assert not set(MEANT) & set(layer_names())


ONE_LETTER = [
    ("rnn2d(rows=h, cols=w)", "h would mean two sizes: rows of rnn2d, and h of rnn2d (h by default)"),
    ("rnn2d(rows=h)", "h would mean two sizes: rows of rnn2d"),
    ("rnn2d(n=c)", "c would mean two sizes: n of rnn2d, and c of rnn2d"),
    ("rnn2d(layers=n)", "n would mean two sizes: layers of rnn2d, and n of rnn2d"),
    ("rnn(steps=c)", "c would mean two sizes: steps of rnn, and inputs of rnn"),
    ("rnn(hidden=2*t)", "t would mean two sizes: hidden of rnn, and steps of rnn"),
    ("lstm(steps=h)", "or hidden=h if the two are equal"),
    ("conv(kernel=c_in)", "c_in would mean two sizes: kernel of conv, and c_in of conv"),
    ("conv(rows=c_out)", "c_out would mean two sizes: rows of conv, and c_out of conv"),
    ("patch_embedding(rows=d)", "d would mean two sizes: rows of patch_embedding"),
    ("attention(strided, n=t)", "t would mean two sizes: n of attention, and t of attention"),
    ("attention(windowed, D_hid=w)", "w would mean two sizes: D_hid of attention, and w of attention"),
    ("attention(heads=n)", "n would mean two sizes: heads of attention, and n of attention"),
    ("transformer_block(n=d)", "d would mean two sizes: n of transformer_block, and d of transformer_block"),
    ("decoder(layers=n)", "n would mean two sizes: layers of decoder, and n of decoder"),
    ("linear(n=d_in)", "d_in would mean two sizes: n of linear, and d_in of linear"),
    ("h * rnn2d", "h would mean two sizes: the number of layers, and h of rnn2d"),
    ("rnn + attention(strided)", "t would mean two sizes: t of attention, and steps of rnn"),
]


@pytest.mark.parametrize(("text", "message"), ONE_LETTER)
def test_a_default_letter_means_one_size(text, message):
    with pytest.raises(TextError) as error:
        from_text(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"), [row for row in ONE_LETTER if row[0][-1] == ")" and "+" not in row[0]]
)
def test_numbers_for_the_letter_do_not_hide_it(text, message):
    with pytest.raises(TextError) as error:
        from_text(text, dict.fromkeys("hcntdw", 3) | {"d_in": 3, "c_in": 3, "c_out": 3})
    assert message in str(error.value)


def test_a_default_letter_means_one_size_in_python():
    rnn2d, rnn, attention = lt.cost.rnn2d, lt.cost.rnn, lt.cost.attention
    for make, message in [
        (lambda: rnn2d(rows="h", cols="w"), "rows of rnn2d, and h of rnn2d"),
        (lambda: attention("strided", n="t"), "n of attention, and t of attention"),
        (lambda: lt.cost.encoder("strided", n="t"), "n of encoder, and t of encoder"),
        (lambda: rnn() + attention("strided"), "t of attention, and steps of rnn"),
        (lambda: rnn2d() * "h", "the number of layers, and h of rnn2d"),
        (lambda: attention("q - k <= D_i"), "has a parameter D_i, which is an argument of attention too"),
    ]:
        with pytest.raises(NamingError) as error:
            make()
        assert message in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "rnn2d(rows=h, cols=w, h=h)",
        "rnn2d(c=h)",
        "rnn2d(rows=n, cols=n)",
        "rnn(steps=t, inputs=n, hidden=n) + attention(n=t)",
        "attention(strided, n=t, t=t)",
        "transformer_block(heads=h, hidden=4*heads*h)",
        "l * attention(n=t) + linear(n=t)",
    ],
)
def test_a_letter_that_is_written_for_both_sizes_is_both(text):
    assert from_text(text).multiplies


def test_every_size_of_every_layer_has_a_kind():
    switches = {"rule", "radius", "stride", "dilation", "padding", "padding_mode", "directions", "activation"}
    for layer in layer_names():
        sizes = {name for name, value in arguments_of(layer).items() if not isinstance(value, bool)}
        assert sizes - switches - set(WORDS) <= set(KINDS), layer


def test_an_image_of_h_by_w_pixels_equals_the_same_image_by_other_letters():
    named = from_text("rnn2d(rows=h, cols=w, h=d)").multiplies
    assert isinstance(named, Count)
    at = {"h": 3, "w": 4, "d": 5, "c": 2}
    assert named.number(at) == lt.cost.rnn2d(rows=3, cols=4, h=5, c=2).multiplies


def test_a_claim_unties_sizes():
    formula = "N_h D_i(2D_{hid} + D_o) + N_h D_o D_{out} + D_{out}"
    verdict = lt.cost.attention().claim("parameters", formula)
    assert verdict
    assert verdict.readings[:2] == (
        "D_o read as a size of its own, not D_hid",
        "D_out read as a size of its own, not D_i",
    )
    assert (2 * lt.cost.attention()).claim("parameters", f"2({formula})")
    assert not lt.cost.attention().claim("parameters", formula.replace("2D_{hid}", "D_{hid}"))
    assert lt.cost.rnn2d().claim("functions", "rows cols h")
    assert (
        lt.cost.attention(D_hid=3, D_i=3).at(n=2).claim("parameters", "heads (24 + 3D_o) + 3").status
        == "fails"
    )


def test_a_stack_passes_its_sizes_on():
    """Norms 4d, attention 4d^2 + 4d, a feed-forward net d hidden twice, and its biases."""
    for stack in (lt.cost.encoder(heads=1), lt.cost.decoder(heads=1)):
        verdict = stack.claim("parameters", "l(4d^2 + 9d + 2 d hidden + hidden)")
        assert verdict and verdict.readings == ("hidden read as a size of its own, not 4*d",)
    assert lt.cost.decoder(heads=1, hidden=8).claim("parameters", "l(4d^2 + 25d + 8)").readings == ()


def test_a_letter_that_is_renamed_stands_for_what_is_said():
    verdict = lt.cost.attention().claim("W_v", "heads D_i D_o", rename={"D_o": "D_hid"})
    assert verdict and verdict.readings == ()


def test_costs_are_made_again():
    block = lt.cost.transformer_block("causal", heads=2, d=4) * 3 + lt.cost.linear(d_in=4, d_out=2)
    same = remade(block, lambda recipe: {})
    assert str(same) == str(block) and same.name == block.name
    longer = remade(block, lambda recipe: {"n": 5})
    assert longer.multiplies == block.at(n=5).multiplies
    copied = pickle.loads(pickle.dumps(lt.cost.linear().recipes[0][1]))
    assert str(copied.made().multiplies) == "n*d_in*d_out"
