"""Claims: right ones proved, wrong ones refuted with the smallest counterexample."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lattend as lt
from lattend.counts.formula_scan import meant
from lattend.counts.progression import power_sum

STRIDED = lt.rules.strided().count()
WINDOWED = lt.rules.windowed().count()


@pytest.mark.parametrize(
    "formula",
    ["(2n - t)(t + 1)/2", "nt + n - t^2/2 - t/2", "sum(i, i, n - t, n)", r"\sum_{i=n-t}^{n} i",
     r"\frac{(2n-t)(t+1)}{2}", "nt + n − t²/2 − t/2"],
)  # fmt: skip
def test_the_three_ways_the_strided_count_is_written(formula: str) -> None:
    verdict = STRIDED.claim(formula)
    assert verdict.status == "holds only where"
    assert verdict.where == "t <= n"
    assert STRIDED.claim(formula, assuming="t <= n").status == "holds"
    assert verdict.counterexample is not None
    assert verdict.counterexample.values == {"n": 1, "t": 2}


def test_a_sum_is_empty_rather_than_negative() -> None:
    """Σ from n - t to n has negative terms for t > n, so it is not the count there."""
    assert STRIDED.claim("sum(i, i, max(n - t, 0), n)").status == "holds"


def test_n_times_t_is_refuted() -> None:
    verdict = STRIDED.claim("n*t")
    assert verdict.status == "fails" and not verdict
    assert verdict.counterexample is not None
    assert verdict.counterexample.values == {"n": 1, "t": 2}
    assert (verdict.counterexample.claimed, verdict.counterexample.exact) == (2, 1)
    assert "2n - t^2 - t == 0" in verdict.where


def test_windowed_holds_only_where_w_divides_n() -> None:
    verdict = WINDOWED.claim("n(w + 1)/2")
    assert (verdict.status, verdict.where) == ("holds only where", "w divides n")
    assert str(verdict.counterexample) == "at n = 1, w = 2 it gives 3/2, the count is 1"
    assert WINDOWED.claim("n(w + 1)/2", assuming="w | n")


@pytest.mark.parametrize(
    ("formula", "status"),
    [
        ("(n//w)*w(w+1)/2 + (n%w)(n%w+1)/2", "holds"),
        (r"\lfloor n/w \rfloor w(w+1)/2 + (n \bmod w)(n \bmod w + 1)/2", "holds"),
        ("floor(n/w)*w*(w+1)/2", "holds only where"),
        ("ceil(n/w)*w*(w+1)/2", "holds only where"),
        ("((n + w - 1)//w)*w*(w+1)/2", "holds only where"),
        ("n*w", "fails"),
    ],
)
def test_formulas_with_quotients(formula: str, status: str) -> None:
    assert WINDOWED.claim(formula).status == status


def test_where_a_wrong_formula_happens_to_be_right() -> None:
    assert WINDOWED.claim("n*w").where == "w((n // w) + 1)(2n - w(n // w)) - n(n + 1) == 0"
    assert STRIDED.claim("n").where == "(t >= 1 and n <= 1) or t == 0"
    assert STRIDED.claim("n^2").status == "fails"


def test_min_max_and_abs_are_split_into_cases() -> None:
    assert STRIDED.claim("min(n, t + 1)*(2n - min(n, t + 1) + 1)/2").status == "holds"
    assert STRIDED.claim("n(n+1)/2 - max(n - t - 1, 0)*max(n - t, 0)/2").status == "holds"
    assert lt.rules.causal().count().claim("abs(-n)(n + 1)/2").status == "holds"


def test_division_by_zero_is_a_counterexample() -> None:
    verdict = lt.rules.causal().count().claim("n^2(n + 1)/(2n)")
    assert verdict.status == "holds only where"
    assert str(verdict.counterexample) == "at n = 0 it is not defined, the count is 0"
    assert verdict.where == "n >= 1"


def test_quasi_polynomials_are_decided_by_residue() -> None:
    count = lt.rule("(q - k) % 2 == 0").count()
    assert count.claim("floor(n/2)^2 + ceil(n/2)^2").status == "holds"
    assert count.claim("n^2/2").where == "2 divides n"


def test_renamed_variables() -> None:
    count = lt.rules.causal().count()
    assert count.claim("L(L + 1)/2", rename={"L": "n"})
    with pytest.raises(lt.errors.TextError, match="this count has no L; it has n") as caught:
        count.claim("L(L + 1)/2")
    assert caught.value.marked().splitlines()[1] == "^"


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("N_h", ("n", "heads", "D_i", "D_hid"), ["heads"]),
        ("num_heads", ("n", "heads", "D_i", "D_hid"), ["heads"]),
        ("D_in", ("n", "heads", "D_i", "D_hid"), ["D_i"]),
        ("d_model", ("n", "heads", "D_i", "D_hid"), ["D_i"]),
        ("d_k", ("n", "heads", "D_i", "D_hid"), ["D_hid"]),
        ("Dhid", ("n", "heads", "D_i", "D_hid"), ["D_hid"]),
        ("seq_len", ("n", "heads"), ["n"]),
        ("T", ("n", "heads"), ["n"]),
        ("D_o", ("n", "heads", "D_i", "D_hid"), []),
        ("hidden_size", ("n", "h", "c"), ["h"]),
        ("C", ("n", "h", "c"), ["c"]),
        ("Theta", ("n", "t"), []),
        ("seq_len", ("n", "t"), ["n"]),
        ("seq_len", ("t", "h"), ["t"]),
        ("x", ("n", "t"), []),
    ],
)
def test_names_are_told_by_their_meaning(name: str, known: tuple[str, ...], expected: list[str]) -> None:
    assert meant(name, known) == expected


def test_a_name_with_one_meaning_is_read_so_and_a_letter_is_asked_about() -> None:
    heads = lt.cost.attention(D_o="D_o", D_out="D_out")
    verdict = heads.claim("parameters", "N_h D_i(2D_hid + D_o) + N_h D_o D_out + D_out")
    assert verdict and verdict.readings == ("N_h read as heads",)
    with pytest.raises(lt.errors.UnknownName) as caught:
        lt.rules.causal().count().claim("T^2/2 + T/2")
    assert caught.value.meant == ["n"]
    assert lt.rules.causal().count().claim("T^2/2 + T/2", rename={"T": "n"})
    with pytest.raises(lt.errors.UnknownName, match="say what it stands for"):
        lt.cost.rnn2d().claim("parameters", "D_o")


def test_a_letter_is_renamed_to_what_the_count_has() -> None:
    with pytest.raises(lt.errors.TextError, match='rename "zz": this count has no zz; it has n'):
        lt.rules.causal().count().claim("L", rename={"L": "zz"})
    with pytest.raises(lt.errors.TextError, match="is an order of growth"):
        lt.rules.causal().count().claim("L", rename={"L": "O(n)"})


def test_a_letter_may_be_renamed_to_a_formula() -> None:
    assert lt.rules.causal().count(per="query").claim("i", rename={"i": "q + 1"})
    assert lt.rules.causal().count().claim("sum(m, m, 0, L)", rename={"L": "n"})
    assert (
        lt.rules.causal().count().claim("sum(j, i, 1, n) + j(j - n)", rename={"j": "n - n"}).status == "fails"
    )


@pytest.mark.parametrize(
    ("name", "formula", "status"),
    [
        ("strided", "O(n*t)", "holds"),
        ("strided", "O(n^2)", "holds"),
        ("strided", "O(n)", "fails"),
        ("strided", "O(t^2)", "fails"),
        ("windowed", "O(n*w)", "holds"),
        ("windowed", "O(n)", "fails"),
        ("sparse_strided", "O(n^2/l + n*l)", "holds"),
        ("sparse_strided", "O(n*l)", "fails"),
        ("causal", r"\mathcal{O}(n^2)", "holds"),
        ("raster", "O(rows^2 * cols^2)", "holds"),
    ],
)
def test_growth(name: str, formula: str, status: str) -> None:
    assert getattr(lt.rules, name)().count().claim(formula).status == status


def test_order_in_chosen_variables() -> None:
    assert str(STRIDED.order("n")) == "O(n)"
    assert str(STRIDED.order()) == "O(n*t) when t <= n; O(n^2) when t > n"
    assert str(WINDOWED.order()) == "O(n*w)"
    assert str(lt.rules.windowed(4).count().order()) == "O(n)"
    assert str(lt.rules.sparse_strided().count().assuming("l <= n").order()) == "O(n^2/l + n*l)"
    with pytest.raises(lt.errors.LattendError, match="has no w; it has n, t"):
        STRIDED.order("w")


@given(st.integers(0, 8), st.integers(0, 30))
def test_power_sums(power: int, upto: int) -> None:
    value = sum(c * upto**i for i, c in enumerate(power_sum(power)))
    assert value == sum(i**power for i in range(1, upto + 1))


@given(st.integers(-3, 3), st.integers(-3, 3), st.integers(-3, 3), st.integers(-2, 2))
def test_a_perturbed_formula_is_never_proved(a: int, b: int, c: int, d: int) -> None:
    """The right formula plus a polynomial holds exactly when the polynomial is zero."""
    verdict = STRIDED.claim(f"(2n - t)(t + 1)/2 + {a}*n*t + {b}*n + {c}*t + {d}", assuming="t <= n")
    assert (verdict.status == "holds") == (a == b == c == d == 0)
    if verdict.counterexample is not None:
        at = verdict.counterexample.values
        assert verdict.counterexample.exact == lt.rules.strided().mask(**at).sum()
        assert verdict.counterexample.claimed != verdict.counterexample.exact


def test_what_cannot_be_decided_says_what_remains() -> None:
    verdict = lt.rules.causal().count().claim("n(n + 1)/2 + abs(n^2 - 3) - abs(3 - n^2)")
    assert verdict.status == "undecided"
    assert verdict.remaining == "it compares or divides something that is not linear"
    assert not verdict


@pytest.mark.parametrize(
    ("rule", "formula", "status"),
    [
        ("q == 0 and k < n // 2", "(n/2)//2", "fails"),
        ("q == 0 and k < n // 2", "(0.5*n)//2", "fails"),
        ("q == 0 and k < n // 2", "floor(n/2 + 0)", "holds"),
        ("q == 0 and k < n // 2", "floor(n - n/2)", "holds"),
        ("q == 0 and k < n // 2", "ceil(n/2 - 1/2)", "holds"),
        ("q == 0", "floor(n/2 + 1/2)*2 - 1", "holds only where"),
        ("q == 0", "min(n/(-1), n)", "fails"),
        ("q == 0", "max(n/(-1), n)", "holds"),
        ("q == 0", "abs(n/(-1))", "holds"),
        ("k <= q", "(n - n)/(n - n)", "fails"),
        ("q == 0", "n + 0/(n - n)", "fails"),
        ("q == 0 and k < t", "t/(n - n)", "fails"),
        ("q // w == k // w", "(w^2(n // w) + (n % w)^2)*n/n", "holds only where"),
        ("k <= q and q - k <= t", "(2n - t)(t + 1)/2*(n^2 - 2t)/(n^2 - 2t)", "fails"),
        ("k <= q", "sum(sum(1, j, 1, i), i, 1, n)", "holds"),
        ("k <= q", "((n+1)/2)/(1/n)", "holds only where"),
        ("k <= q", "n(n+1)/2*(1/n)^0", "holds only where"),
        ("k <= q", "n(n+1)/2 + sum(sum(1, j, i, n), i, n, n+1)", "fails"),
        ("q // w == k // w and q == k", "n + n//w - sum(n//w, w, 3, 3)", "fails"),
        ("q == 0 and k < 9", "sum(abs(i*i - 4*i + 1), i, 0, 4)", "fails"),
        ("k <= q", "O(1/(n-n))", "undecided"),
        ("k <= q", "sum(min(i, n), i, 1, n)", "holds"),
        ("k <= q", "sum(i % 2, i, 1, n)", "fails"),
        ("k <= q and q - k <= t", "O((n - t)^2)", "undecided"),
        ("k <= q and k - q >= t", "O(n)", "holds"),  # for t >= 0
        ("k <= q and q // w == k // w", "O(n^2)", "holds"),
    ],
)
def test_fractions_floors_and_sums_are_read_exactly(rule: str, formula: str, status: str) -> None:
    assert lt.rule(rule).count().claim(formula).status == status


def test_counterexamples_far_away_are_found() -> None:
    verdict = lt.rule("k <= q and (n < 50 or k == 0)").count().claim("n(n+1)/2")
    assert verdict.counterexample is not None and verdict.counterexample.values == {"n": 50}
    count = lt.rule("k <= q and t >= 0").count()
    verdict = count.claim("n(n+1)/2 + t(t-1)(t-2)(t-3)(t-4)(t-5)(t-6)", assuming="t >= 0")
    assert verdict.counterexample is not None and verdict.counterexample.values == {"n": 1, "t": 7}


def test_the_index_of_a_sum_is_known_inside_it_only() -> None:
    with pytest.raises(lt.errors.TextError, match="this count has no i"):
        lt.rules.causal().count().claim("sum(i, i, 1, n) + i")


def test_claims_on_bound_counts_speak_in_numbers() -> None:
    assert lt.rules.windowed(4).count().claim("5n/2", assuming="4 | n")
    assert lt.rules.windowed(4).count().claim("5n/2").where == "4 divides n"
    assert str(lt.rules.strided(3).count().claim("4n")) == (
        "4n: fails; it agrees only where n == 0; at n = 1 it gives 4, the count is 1"
    )


def test_finitely_many_points_are_decided_one_by_one() -> None:
    verdict = lt.rule("q // 3 == k // 3").count().claim("9(n // 3) + (n % 3)^2 + max(1 - n, 0)")
    assert (verdict.status, verdict.where) == ("holds only where", "n >= 1")


def test_a_renamed_letter_is_not_caught_by_a_sum() -> None:
    assert lt.rule("q < 3").count().claim("sum(L, n, 1, 3)", rename={"L": "n"}, assuming="n >= 3")


def test_a_quotient_grows_as_the_fastest_of_its_names() -> None:
    count = lt.rule("3*k < t + s and q == 0").count()
    assert count.claim("O(s)", assuming="0 <= t <= n and 0 <= s <= n").status == "fails"


def test_orders_with_a_modulus() -> None:
    assert str(lt.rule("(q - k) % w == 0 and k <= q").count().order()) == "O(n^2/w + (n % w))"
    assert str(WINDOWED.assuming("w > n").order()) == "O(n^2)"


def test_every_factor_of_the_difference_is_looked_at() -> None:
    count = lt.rule("k < t").at(t=3).count().assuming("n != 1")
    assert count.claim("3n").where == "n >= 3 or n == 0"
    verdict = (
        lt.rule("(q - k) % w == 0 and k <= q").count().claim("((n // w) + 1)(2n - w(n // w))/2 + n(n - 3)")
    )
    assert verdict.where == "(w divides n and n < w) or n - 3 == 0"  # n = 0, or n = 3
    assert verdict.counterexample is not None and verdict.counterexample.values == {"n": 1, "w": 1}


@pytest.mark.parametrize(
    ("rule", "numbers", "formula", "assumption", "where"),
    [
        ("windowed", {"n": 12}, "n(w+1)/2", "w | n", "w >= 1 and w | 12"),
        ("windowed", {"n": 12}, "n(w+1)/2", "n % w == 0", "w >= 1 and 12 % w == 0"),
        ("windowed", {"n": 12}, "n(w+1)/2", "w <= n and w | n", "w >= 1 and w <= 12 and w | 12"),
        ("windowed", {"w": 4}, "n(w+1)/2", "w | n", "n >= 0 and 4 | n"),
        ("strided", {"t": 3}, "4n-6", "t <= n", "3 <= n"),
        ("strided", {"t": 3}, "(t+1)n - 6", "n >= 2 + t and n % t == 0", "n >= 2 + 3 and n % 3 == 0"),
    ],
)
def test_an_assumption_names_a_letter_that_has_a_number(
    rule: str, numbers: dict[str, int], formula: str, assumption: str, where: str
) -> None:
    verdict = lt.rule(rule).at(**numbers).count().claim(formula, assuming=assumption)
    assert str(verdict) == f"{formula}: holds for {where}"
    assert str(lt.rule(rule).count().at(**numbers).claim(formula, assuming=assumption)) == str(verdict)


def test_an_assumption_whose_letter_gets_a_number_later() -> None:
    windowed = lt.rule("windowed").count().assuming("w | n")
    assert windowed.at(w=4).domain_text == "n >= 0 and 4 | n"
    strided = lt.rule("strided").count().assuming("t <= n").at(t=4)
    assert str(strided.claim("O(n)")) == "O(n): holds as n grows, for 4 <= n"
    assert strided.claim("5n - 10") and strided.at(n=6) == 20
