"""Formulas as LaTeX: what stands over a bar is whole, and words side by side stay apart."""

from __future__ import annotations

from lattend.counts.notation import Notation
from lattend.rules.language.linear import Linear, Quotient, Remainder
from lattend.rules.language.polynomial import Polynomial


def test_a_sum_that_is_divided_has_brackets() -> None:
    written = Notation((), latex=True)
    shifted = Linear.of([("n", 1)], 253)
    assert written.plain(Quotient(shifted, 255)) == r"\lfloor (n + 253) / 255 \rfloor"
    assert written.plain(Remainder(shifted, 255)) == r"(n + 253) \bmod 255"
    assert written.plain(Quotient(Linear.of([("n", 1)]), "w")) == r"\lfloor n / w \rfloor"


def test_names_of_several_letters_have_a_space_between() -> None:
    n, heads, wide = (Polynomial.atom(name) for name in ("n", "heads", "D_hid"))
    written = Notation((), latex=True)
    assert written.formula(n * heads * wide) == r"n \, \mathrm{heads} \, D_{\mathrm{hid}}"
    assert written.formula(Polynomial.constant(4) * heads * n * n) == r"4n^{2} \, \mathrm{heads}"
    assert written.formula(heads * (n + wide)) == r"\mathrm{heads} \, (n + D_{\mathrm{hid}})"


def test_a_short_name_inside_the_meaning_of_another_is_explained_too() -> None:
    inner = Quotient(Linear.of([("n", 4)], 3), 7)
    outer = Quotient(Linear.of([(inner, 1)], 3), 4)
    written = Notation(("n",), latex=True)
    assert written.formula(Polynomial.atom(outer)) == "r"
    assert written.where() == r"r = \lfloor (s + 3) / 4 \rfloor, s = \lfloor (4n + 3) / 7 \rfloor"
