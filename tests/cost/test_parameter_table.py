"""Parameters by matrix: against the shapes of plain code and of torch, and the formulas of a lecture."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.cost.reader import from_text
from lattend.cost.reference import shapes
from lattend.errors import NamingError

SMALL = st.integers(1, 4)


@settings(max_examples=25)
@given(SMALL, SMALL, SMALL, SMALL, SMALL, st.booleans(), st.sampled_from([None, "absolute", "relative"]))
def test_attention_has_the_shapes_of_plain_code(heads, D_i, D_hid, D_o, D_out, bias, encoding):
    sizes = {"heads": heads, "D_i": D_i, "D_hid": D_hid, "D_o": D_o, "D_out": D_out}
    result = lt.cost.attention(n=3, encoding=encoding, bias=bias, **sizes).parameters_by_matrix()
    named = {"W_r": "W̃", "p": "positions"}
    wanted = shapes.attention(*sizes.values(), bias=bias, encoding=encoding, D_p=D_i, positions=3)
    assert {row.matrix for row in result.rows} == {named.get(name, name) for name in wanted}
    for name, shape in wanted.items():
        numbers = shapes.size({name: shape})
        assert result[named.get(name, name)] == numbers
        if len(shape) > 1 and name not in ("W_out", "p"):  # one matrix a head
            assert result.of_head(named.get(name, name)) == numbers // shape[0]
    assert result["total"] == shapes.size(wanted)


def test_the_four_boxes_of_a_lecture():
    """One head, all heads, W_out and b_out."""
    result = lt.cost.attention(D_o="D_o", D_out="D_out").parameters_by_matrix()
    assert str(result["one head"]) == "D_i*(2D_hid + D_o)"
    assert [str(result[name]) for name in ("W_out", "b_out")] == ["heads*D_o*D_out", "D_out"]
    rows = [" ".join(line.split()) for line in str(result).splitlines()]
    assert rows[5:9] == [
        "W_v D_i*D_o heads*D_i*D_o",
        "the heads D_i*(2D_hid + D_o) heads*D_i*(2D_hid + D_o)",
        "W_out heads*D_o*D_out",
        "b_out D_out",
    ]
    assert "D_o = D_hid and D_out = D_i" in str(lt.cost.attention().parameters_by_matrix())
    assert "D_o = D_hid" not in str(result)


@pytest.mark.parametrize(
    ("matrix", "formula"),
    [
        ("one head", "D_i(2D_hid + D_o)"),
        ("all heads", "N_h D_i(2D_hid + D_o)"),
        ("W_out", "N_h D_o D_out"),
        ("b_out", "D_out"),
        ("W_v", "N_h D_i D_o"),
    ],
)
def test_a_matrix_may_be_claimed(matrix, formula):
    assert lt.cost.attention().claim(matrix, formula)
    wrong = lt.cost.attention().claim(matrix, f"{formula} + 1")
    assert wrong.status == "fails"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("rnn2d", {"W_in": "c*h", "W_left": "h^2", "W_top": "h^2"}),
        ("rnn(layers=l, bias=true)", {"W": "c*h", "W above": "h^2(l - 1)", "U": "h^2*l", "b_W": "h*l"}),
        ("lstm", {"W": "4c*h", "U": "4h^2"}),
        ("conv(kernel=k)", {"W": "c_in*c_out*k^2", "b": "c_out"}),
        ("norm", {"weight": "d", "bias": "d"}),
        ("attention(kv_heads=g)", {"W_q": "heads*D_hid*D_i", "W_k": "D_hid*D_i*g"}),
        ("attention(encoding=quadratic)", {"v": "3heads"}),
        ("l * attention", {"W_q": "heads*D_hid*D_i*l"}),
    ],
)
def test_formulas(text, wanted):
    table = from_text(text).parameters_by_matrix()
    assert {name: str(table[name]) for name in wanted} == wanted


@pytest.mark.parametrize("text", [entry.example for entry in lt.cost.catalogue().entries.values()])
def test_the_rows_add_up(text):
    cost = from_text(text)
    table = cost.parameters_by_matrix()
    if table.rows:
        assert str(table["total"]) == str(cost.parameters)


def test_torch_has_the_same_matrices():
    torch = pytest.importorskip("torch")
    table = lt.cost.lstm(steps=3, inputs=4, hidden=5, layers=2, bias=True).parameters_by_matrix()
    net = dict(torch.nn.LSTM(4, 5, 2).named_parameters())
    assert table["W"] == net["weight_ih_l0"].numel() and table["W above"] == net["weight_ih_l1"].numel()
    assert table["U"] == net["weight_hh_l0"].numel() + net["weight_hh_l1"].numel()
    assert table["total"] == sum(p.numel() for p in net.values())


def test_what_is_not_there():
    with pytest.raises(NamingError, match="rnn2d has no W_q; it has W_in, W_left, W_top"):
        lt.cost.rnn2d().parameters_by_matrix()["W_q"]
    with pytest.raises(NamingError, match="rnn2d has no W_in that is cut into heads"):
        lt.cost.rnn2d().parameters_by_matrix().of_head("W_in")
    with pytest.raises(NamingError, match="a cost has no one head; it has parameters"):
        lt.cost.rnn2d().claim("one head", "1")
