"""What plain layers say to names, numbers and shapes that do not fit."""

from __future__ import annotations

from typing import Any

import pytest

from lattend.cost import reference as plain
from lattend.errors import DomainError, NamingError, TensorError

ONE: Any = {"W_in": [[1.0]], "W_left": [[1.0]], "W_top": [[1.0]]}
KERNEL: Any = {"weight": [[[[1.0]], [[1.0]]]]}


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: plain.recurrent("elman", [], {}), NamingError, "kind is one of rnn, lstm, gru, not 'elman'"),
        (lambda: plain.rnn2d([], ONE, "elman"), NamingError, "cell is one of rnn, lstm, gru, not 'elman'"),
        (
            lambda: plain.rnn2d([], ONE, activation="gelu"),
            NamingError,
            "activation is one of tanh, relu, sigmoid, identity, not 'gelu'",
        ),
        (
            lambda: plain.rnn2d([], ONE, "gru", "relu"),
            NamingError,
            "gru has tanh alone",
        ),
        (lambda: plain.rnn2d_stack([], {}, directions=3), DomainError, "directions is 1, 2 or 4, not 3"),
        (
            lambda: plain.feed_forward([], {}, "swish"),
            NamingError,
            "activation is one of tanh, sigmoid, relu, gelu, sqrt, not 'swish'",
        ),
        (
            lambda: plain.conv2d([[[1.0]]], KERNEL),
            TensorError,
            "the kernels have 2 channels in each of 1 groups, 2 in all; the image has 1",
        ),
        (
            lambda: plain.conv2d([[[1.0]]], KERNEL, padding="full"),
            NamingError,
            'padding is two numbers, "same" or "valid", not \'full\'',
        ),
        (
            lambda: plain.conv2d([[[1.0]]], KERNEL, padding_mode="circular"),
            NamingError,
            "padding_mode is one of zeros, replicate, not 'circular'",
        ),
        (
            lambda: plain.plain_layer("mamba"),
            NamingError,
            "mamba has no plain code; these have: linear, feed_forward, norm",
        ),
    ],
)
def test_what_does_not_fit_is_said(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
