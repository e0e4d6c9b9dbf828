"""Convolutions whose kernel is a letter: at numbers they are those of that number, and their orders say k."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.cost.reader import from_text
from lattend.errors import DomainError, NamingError

QUANTITIES = ("parameters", "multiplies", "adds", "saved_activations", "bytes_read", "bytes_written")


@settings(max_examples=40)
@given(
    st.integers(1, 5), st.integers(0, 4), st.integers(0, 4), st.integers(1, 2), st.integers(1, 2),
    st.sampled_from([0, 1, 2, (0, 1), "same", "valid"]), st.booleans(),
)  # fmt: skip
def test_a_letter_is_any_number(kernel, rows, cols, dilation, stride, padding, bias):
    """Sizes counted with k as a parameter of the sets, against sets with the number in its place."""
    if padding == "same":
        kernel, stride = 2 * (kernel // 2) + 1, 1
    reach = dilation * (kernel - 1) + 1
    sizes = {"rows": rows + reach, "cols": cols + reach, "c_in": 2, "c_out": 3}
    options = {"dilation": dilation, "stride": stride, "padding": padding, "bias": bias}
    letter = lt.cost.conv(kernel="k", **options).at(k=kernel, **sizes)
    number = lt.cost.conv(kernel=kernel, **options, **sizes)
    for quantity in QUANTITIES:
        assert letter.value(quantity) == number.value(quantity), quantity
        assert letter.dense.value(quantity) == number.dense.value(quantity), quantity
    for quantity in ("multiplies", "adds"):
        assert letter.backward.value(quantity) == number.backward.value(quantity), quantity


@pytest.mark.parametrize("padding", [0, "same"])
def test_the_order_has_k_squared(padding):
    cost = lt.cost.conv(
        kernel="k", rows="n", cols=1 if padding else "n", c_in="d", c_out="d", padding=padding
    )
    image = "n d^2 k^2" if padding else "n^2 d^2 k^2"
    assert cost.dense.claim("multiplies", f"O({image})").holds
    assert not cost.dense.claim("multiplies", f"O({image.replace('k^2', 'k')})").holds


def test_where_a_letter_does_not_go():
    cost = from_text("conv(kernel=k, padding=same, c_in=1, c_out=1)")
    with pytest.raises(DomainError, match="k % 2 == 1, got k = 4"):
        cost.at(rows=8, cols=8, k=4).total()
    with pytest.raises(DomainError, match="rows >= k"):
        cost.at(rows=2, cols=8, k=3).total()
    with pytest.raises(NamingError, match="needs a kernel that is a number"):
        lt.cost.conv(kernel="k", padding_mode="replicate")
    with pytest.raises(NamingError, match="stride must be a number here"):
        lt.cost.conv(kernel="k", stride="s")  # type: ignore[arg-type]
