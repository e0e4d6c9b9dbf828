"""What does not fit is said, with what was found and what to do."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import lattend as lt
from lattend.errors import DomainError, NamingError, TensorError, TooLarge

MHA: Any = lt.nn.MultiHeadAttention
Quadratic, Tables, Relative, Absolute = lt.nn.Quadratic, lt.nn.Tables, lt.nn.Relative, lt.nn.Absolute
INF = float("inf")
BAD: Any = 2.5


def layer(**options: Any) -> Any:
    return MHA(4, 2, 2, 4, 2, **options)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: MHA(0, 2, 2, 4, 2), DomainError, "d_in must be at least 1, got 0"),
        (lambda: MHA(4, 2.0, 2, 4, 2), DomainError, "d_hidden must be an integer, got 2.0"),
        (lambda: layer(rule=3), lt.errors.TraceError, "a rule is a text or a function of q and k, got 3"),
        (lambda: layer(rule="causl"), lt.errors.TextError, "no rule is named causl; did you mean causal?"),
        (
            lambda: layer(rule="strided", w=3),
            NamingError,
            'q - k <= t" has no w; it has n, t',
        ),
        (lambda: layer(rule="qz <= kz"), NamingError, "is on a volume; a layer takes a line or an image"),
        (lambda: layer(n=3, rows=4), NamingError, 'rule "true" has no n; it has rows, cols'),
        (
            lambda: layer(encoding="rotary"),
            NamingError,
            "encoding is None, one of absolute.* 'rotary'",
        ),
        (
            lambda: layer(encoding="absolute"),
            NamingError,
            'encoding="absolute" has numbers for each position: give n=… or rows=…, cols=…',
        ),
        (
            lambda: layer(encoding="tables", rule="axial", rows=3),
            NamingError,
            'encoding="tables" has numbers for each position: give rows=…, cols=…',
        ),
        (lambda: layer(encoding=Quadratic(3)), TensorError, "the encoding has 3 heads and the layer 2"),
        (
            lambda: layer(encoding=Quadratic(2), rule="causal"),
            NamingError,
            'rule "k <= q" is on a line, and Quadratic on an image',
        ),
        (
            lambda: Quadratic(2, alpha=0.0),
            DomainError,
            r"alpha must be positive and .* got \[0.0, 0.0\]",
        ),
        (lambda: Quadratic(2, alpha=[1.0]), TensorError, r"alpha of these heads have shape \(2\), got \(1\)"),
        (lambda: Quadratic(1, alpha=float("inf")), DomainError, "alpha must be positive and finite"),
        (
            lambda: Quadratic(2, centres=[[0.0, 1.0, 2.0]] * 2),
            TensorError,
            r"centres of these heads have shape \(2, 2\), got \(2, 3\)",
        ),
        (lambda: Quadratic(1, precision=[[1.0, 2.0, 1.0]]), DomainError, "needs a > 0 and ac > b²"),
        (lambda: Quadratic(1, 3), DomainError, "axes is 1 on a line and 2 on an image, not 3"),
        (lambda: Quadratic(1, 1, isotropic=False), DomainError, "on a line there is one direction"),
        (
            lambda: Quadratic(1, alpha=1.0, precision=[[1.0, 0.0, 1.0]]),
            NamingError,
            "give alpha, one sharpness for all directions, or precision, not both",
        ),
        (lambda: Quadratic(1, isotropic=False).alpha, NamingError, "ask for precision"),
        (lambda: Tables(2, -1), DomainError, "radius must be at least 0, got -1"),
        (lambda: Tables(2, (1, 1, 1)), DomainError, r"radius is r on a line and \(ry, rx\) on an image"),
        (
            lambda: Relative(2, 3, 5),
            DomainError,
            "5 numbers are no sines .* take a multiple of 2",
        ),
        (lambda: Relative(3, 4, -4), DomainError, "d_p must be at least 1, got -4"),
        (lambda: Tables(2, BAD), DomainError, "radius must be an integer, got 2.5"),
        (lambda: Tables(0, 1), DomainError, "heads must be at least 1, got 0"),
        (lambda: Absolute(8, (3, 4, 5)), DomainError, r"sizes are \(n,\) on a line .* not \(3, 4, 5\)"),
        (lambda: Absolute(8, ()), DomainError, r"sizes are \(n,\) on a line .* not \(\)"),
        (lambda: Absolute(8, (-3, 4)), DomainError, "sizes must be at least 1, got -3"),
        (lambda: Absolute(8, 3, key_sizes=(3, 4)), DomainError, "both on a line or on an image"),
        (
            lambda: layer(encoding=Relative(2, 3, 4)),
            TensorError,
            "Relative has d_hidden = 3 and the layer 2",
        ),
        (lambda: layer(encoding=Absolute(8, 3)), TensorError, "Absolute has d_in = 8 and the layer 4"),
        (
            lambda: layer(encoding=Absolute(4, 3), n=5),
            DomainError,
            "Absolute has n = 3, and the layer was made for 5",
        ),
        (
            lambda: layer(encoding=Absolute(4, 3, key_sizes=5)),
            NamingError,
            "Absolute has key_sizes, .* leave out key_sizes, or give m=…",
        ),
        (lambda: Quadratic(1, alpha=3e38), DomainError, r"at most 1e\+18, got \[3.*e\+38\]"),
        (lambda: Quadratic(1, alpha=float("nan")), DomainError, r"positive and finite.* got \[nan\]"),
        (lambda: Quadratic(1, centres=[[0, INF]]), DomainError, r"centres must be finite, got \[\[0.0, inf"),
        (lambda: Quadratic(1, precision=[[INF, 0, 1]]), DomainError, r"precision must be finite, .* \[\[inf"),
    ],
)
def test_a_layer_that_cannot_be(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("options", "shape", "error", "message"),
    [
        ({}, (2, 4), TensorError, r'x has shape \(2, 4\), and the rule "true" takes \[batch, n, d_in\] or'),
        ({"rule": "axial"}, (2, 9, 4), TensorError, r"takes \[batch, rows, cols, d_in\]$"),
        ({}, (2, 9, 3), TensorError, r"x has shape \(2, 9, 3\), and its tokens have 4 numbers"),
        (
            {"encoding": "absolute", "n": 5},
            (2, 6, 4),
            TensorError,
            r"tokens of queries are \(2, 6, 4\), and the learned positions \(5, 4\)",
        ),
        ({"rule": "strided"}, (2, 6, 4), NamingError, "needs a value for t: give t=…"),
        ({"rule": "causal", "n": 5}, (2, 6, 4), DomainError, "is for n = 5, and the tensors have n = 6"),
    ],
)
def test_an_input_that_does_not_fit(
    options: dict[str, Any], shape: tuple[int, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        layer(**options)(torch.zeros(shape))


def test_waves_that_do_not_divide() -> None:
    odd = MHA(6, 2, 2, 4, 2, encoding="sinusoidal")
    assert odd(torch.zeros(1, 3, 6)).shape == (1, 3, 4)
    with pytest.raises(DomainError, match=r"6 numbers are no sines .* of an image; take a multiple of 4"):
        odd(torch.zeros(1, 3, 3, 6))


def test_keys_that_do_not_fit() -> None:
    x, y = torch.zeros(1, 3, 4), torch.zeros(1, 5, 4)
    with pytest.raises(TensorError, match=r"q has 3 positions and k has 5, .* give m=5"):
        layer(rule="causal")(x, y)
    with pytest.raises(TensorError, match=r"keys has shape \(1, 5, 4\), and its tokens have 3 numbers"):
        layer(d_keys=3)(x, y)
    own = lt.nn.Absolute(4, (3,))
    with pytest.raises(NamingError, match="whose positions have no vectors: give key_sizes=… to Absolute"):
        layer(rule="k <= q", encoding=own, m=5)


def test_what_cannot_be_looked_at() -> None:
    with pytest.raises(
        NamingError, match='belong to encoding="quadratic", and the encoding of this layer is "tables"'
    ):
        layer(encoding=Tables(2, 3)).heads()
    with pytest.raises(NamingError, match="scores without x need the sizes: give rows=…, cols=…"):
        layer(rule="axial").scores((0, 0))
    with pytest.raises(NamingError, match=r"a query of this layer has 2 numbers, got \(3,\)"):
        layer(rule="axial").scores(3)
    with pytest.raises(DomainError, match="qx = 5 lies outside 0 … 3"):
        layer(rule="axial").scores((0, 5), rows=4, cols=4)
    with pytest.raises(TooLarge, match=r"9,216 × 9,216 pairs in 2 heads .* ask for one query"):
        layer().weights(torch.zeros(1, 96, 96, 4))
    with pytest.raises(DomainError, match="n = 6 is asked for, and the layer was made for 5"):
        layer(encoding="absolute", n=5).cost(n=6)


def test_scores_of_other_sizes() -> None:
    near = layer(rule="axial")
    x = torch.zeros(1, 3, 5, 4)
    assert near.scores((0, 0), x, rows=3, cols=5).shape == (1, 2, 3, 5)
    with pytest.raises(DomainError, match="rows = 4 is given, but x has 3"):
        near.scores((0, 0), x, rows=4, cols=5)
    with pytest.raises(DomainError, match="n = 5 is given, but x has 3"):
        layer(n=5).scores(0, torch.zeros(1, 3, 4))
    with pytest.raises(DomainError, match="n = 3 is given, and the layer was made for 5"):
        layer(n=5).scores(0, n=3)
    with pytest.raises(DomainError, match="those of x alone, 3 keys, and m = 5"):
        layer(rule="k <= q", m=5).scores(0, torch.zeros(1, 3, 4))
    with pytest.raises(
        NamingError, match=r"a query of x with shape \(1, 3, 5, 4\) has 2 numbers, got \(0,\)"
    ):
        layer().scores(0, x)


@pytest.mark.parametrize("name", ["scale", "rule", "bias", "q", "return_lse", "return_max_logit"])
def test_what_the_layer_decides(name: str) -> None:
    for call in (layer(), layer().weights):
        with pytest.raises(NamingError, match=f"a call of this layer takes no {name}: "):
            call(torch.zeros(1, 3, 4), **{name: 1})


def test_inputs_of_another_kind() -> None:
    x = torch.zeros(1, 3, 4)
    for wrong, message in (
        (x.double(), "x is float64 and the weights are float32; cast one of them"),
        (x.long(), "x is int64 and the weights are float32"),
        (x.to("meta"), "x is on meta and the weights are on cpu; move one of them"),
        ([[0.0]], "x must be a tensor, got list"),
    ):
        with pytest.raises(TensorError, match=message):
            layer()(wrong)
    with pytest.raises(TensorError, match="keys is float64 and the weights are float32"):
        layer()(x, x.double())
    with torch.autocast("cpu", torch.bfloat16):
        assert layer()(x.bfloat16()).shape == (1, 3, 4)
        with pytest.raises(TensorError, match="x is float64 and the weights are float32"):
            layer()(x.double())


def test_the_sharpest_head_is_finite() -> None:
    sharpest = layer(encoding=Quadratic(2, alpha=1e18))
    assert sharpest(torch.ones(1, 3, 5, 4)).isfinite().all()
