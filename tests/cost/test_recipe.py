"""Costs remember how they were made: sizes that are tied by default may be named apart by a claim."""

import pickle

import lattend as lt
from lattend.cost.sizes import remade


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
