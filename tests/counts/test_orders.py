"""O, Θ, Ω, o and ω of counts and costs against numbers along many ways to grow; where claims agree."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.counts.count import Count

CAUSAL = lt.rules.causal().count()
STRIDED = lt.rules.strided().count()
NARROW = STRIDED.assuming("t <= n")
BLOCKS = lt.rules.windowed().count().assuming("w <= n")
STAYS = 100  # what a name is that does not grow, large enough for "large enough"
NEAR, FAR = 10**4, 10**8


def ratios(
    count: Count, powers: list[dict[str, int]], ray: dict[str, int]
) -> tuple[Fraction, Fraction] | None:
    """The count over the sum of these products near and far along a ray; None outside the domain."""
    found: list[Fraction] = []
    for step in (NEAR, FAR):
        at = {name: step**power if power else STAYS for name, power in ray.items()}
        if not count.closed.domain.holds(at):
            return None
        bound = Fraction(0)
        for monomial in powers:
            term = Fraction(1)
            for name, power in monomial.items():
                term *= at[name] ** power
            bound += term
        found.append(Fraction(count.number(at)) / bound)
    return found[0], found[1]


def truth(count: Count, powers: list[dict[str, int]], sign: str) -> bool:
    """Whether the claim is true along all rays with small exponents."""
    strictly = sign in ("o", "omega")
    rays = product(range(1 if strictly else 0, 7), repeat=len(count.names))
    along = [ratios(count, powers, dict(zip(count.names, ray, strict=True))) for ray in rays if any(ray)]
    found = [pair for pair in along if pair is not None]
    above = all(far < near if strictly else far < 100 * near for near, far in found)
    below = all(far > near if strictly else 100 * far > near for near, far in found)
    if strictly:  # a ratio that only nears a number changes little
        above = above and all(far * 2 < near for near, far in found)
        below = below and all(far > near * 2 for near, far in found)
    return {"O": above, "o": above, "Omega": below, "omega": below, "Theta": above and below}[sign]


@pytest.mark.parametrize(
    "count", [CAUSAL, STRIDED, NARROW, BLOCKS], ids=["causal", "strided", "narrow", "blocks"]
)
@pytest.mark.parametrize("sign", ["O", "Theta", "Omega", "o", "omega"])
def test_orders_are_true_along_every_ray(count: Count, sign: str) -> None:
    @settings(max_examples=20)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        exponents = st.fixed_dictionaries({name: st.integers(0, 2) for name in count.names})
        powers = data.draw(st.lists(exponents, min_size=1, max_size=2))
        text = " + ".join("*".join(f"{name}^{p}" for name, p in term.items()) for term in powers)
        verdict = count.claim(f"{sign}({text})")
        assert verdict.status == ("holds" if truth(count, powers, sign) else "fails"), text
        if sign == "O" and verdict.holds:
            assert verdict.tight == truth(count, powers, "Theta")

    check()


@pytest.mark.parametrize(
    "text", ["Theta(n^2)", "Θ(n^2)", r"\Theta(n^2)", r"\Theta\left(n^2\right)", r"$\Theta(n²)$"]
)
def test_the_ways_to_write_an_order(text: str) -> None:
    verdict = CAUSAL.claim(text)
    assert verdict.holds and verdict.tight is True


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("O(n^3)", "O(n^3): holds, not tight: the order is O(n^2)"),
        ("Ω(n)", "Ω(n): holds, not tight: the order is O(n^2)"),
        ("Θ(n^3)", "Θ(n^3): fails; along n = s the count grows slower; the order is O(n^2)"),
        ("o(n^2)", "o(n^2): fails; along n = s the count does not grow slower; the order is O(n^2)"),
        ("ω(n^2)", "ω(n^2): fails; along n = s the count does not grow faster; the order is O(n^2)"),
        ("o(n^3)", "o(n^3): holds as n grows"),
        (r"\omega(n)", r"\omega(n): holds as n grows"),
        ("O(n^2 - n)", "O(n^2 - n): holds as n grows"),
    ],
)
def test_what_is_said_of_orders(text: str, said: str) -> None:
    assert str(CAUSAL.claim(text)) == said


def test_loose_claims_about_layers_are_shown() -> None:
    cell = lt.cost.rnn2d()
    loose = cell.claim("parameters", "O(h^2n^2 + hcn^2)")
    assert loose.holds and loose.tight is False
    assert loose.because == "the order is O(c*h + h^2)"
    assert cell.claim("multiplies", "O(h^2n^2 + hcn^2)").tight is True
    assert cell.claim("multiplies", "Θ(h^2n^2 + hcn^2)").holds
    little = cell.claim("parameters", "o(h^2)")
    assert little.because.startswith("along n = s, c = s, h = s the count does not grow slower")
    naive = lt.cost.attention(encoding="absolute", projections="naive", D_i="D", D_hid="D", heads=1)
    assert str(naive.claim("operations", "O(n^2 D^3)")).endswith("holds, not tight: the order is O(n^2*D^2)")


def test_where_the_order_is_right_only_along_some_ways_one_is_named() -> None:
    verdict = lt.rules.windowed().count().claim("O(n*w)")
    assert str(verdict) == "O(n*w): holds, not tight: along w = s with n = 10 the count grows slower"
    assert lt.rules.windowed().count().claim("O(n*w)", assuming="w <= n").tight is True


def test_the_letter_of_a_way_is_none_of_the_count() -> None:
    assert lt.rules.sinks().count().claim("Theta(n^2)").because.startswith("along n = x with s = t = 10")


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        ("O(d^2)", True),
        ("Θ(d^2)", True),
        ("O(d)", False),
        ("Ω(d^5)", False),
        ("o(d^2)", False),
        ("o(d^3)", True),
        ("ω(d)", True),
    ],
)
def test_a_parameter_that_cannot_grow_hides_nothing(claim: str, holds: bool) -> None:
    cost = lt.cost.conv(rows=8, cols=8, kernel="k", c_in="d", c_out="d")  # 1 <= k <= 8
    assert str(cost.order("multiplies")) == "O(d^2)"
    assert cost.claim("multiplies", claim).holds is holds


def test_growth_where_all_is_bounded_is_constant() -> None:
    assert str(lt.rule("k <= q and n <= 9").count().order()) == "O(1)"
    assert str(lt.rule("k <= q and q - k <= t and t <= 5").count().order("n", "t")) == "O(n)"


def test_a_count_that_is_zero_somewhere_is_no_lower_bound() -> None:
    verdict = lt.rule("k - q >= t").count().claim("Omega(n)", assuming="t >= 0")
    assert verdict.status == "fails" and "grows slower" in verdict.because


def test_terms_that_may_cancel_are_left_undecided() -> None:
    assert STRIDED.claim("O((n - t)^2)").status == "undecided"
    gap = lt.rule("k > q + t").count()
    assert gap.claim("Theta(n^2)", assuming="0 <= t < n").status in ("fails", "undecided")
    assert gap.claim("O(n^2)", assuming="0 <= t < n").tight is not True


def test_a_name_of_the_count_is_no_order() -> None:
    count = lt.rule("k <= q and q - k <= o").count()
    assert count.claim("o(n)").status == "fails"
    assert count.claim("(2n - o)(o + 1)/2", assuming="0 <= o <= n")


# Where a claim agrees


@pytest.mark.parametrize(
    ("count", "formula", "where"),
    [
        (CAUSAL, "n^2 + 1", "nowhere"),  # n^2 - n + 2 has no root
        (CAUSAL, "n(n + 1)/2 + n^2 - 2", "nowhere"),  # √2 is no whole number
        (STRIDED, "(2n - t)(t + 1)/2 + n^2 + t^2 + 1", "nowhere"),
        (CAUSAL, "n(n + 1)/2 + n - 3", "n == 3"),
    ],
)
def test_agreement_is_never_said_of_impossible_numbers(count: Count, formula: str, where: str) -> None:
    verdict = count.claim(formula)
    assert verdict.status == "fails"
    assert verdict.where.startswith(where)
    assert ("it agrees nowhere" in str(verdict)) == (where == "nowhere")


def test_impossible_by_sign_by_residue_and_by_a_condition() -> None:
    wide = lt.rule("q == 0").count().assuming("n >= 1")
    assert wide.claim("n + 4n^2 + 4n + 3").where == "nowhere"
    two = lt.rule("q == 0 and k < t").count().assuming("1 <= t <= n")
    assert two.claim("t + n^2*t + n*t^2 + 1").where == "nowhere"  # all terms are positive
    assert two.claim("t + 4n^2*t - 6n*t^2 + 1").where == "nowhere"  # odd
    assert two.claim("t + n^2 - t^2/2 + 1").where == "nowhere"  # n >= t
    assert two.claim("t + n^3 - 2t^2").where == "n == 2 and t == 2"
    assert two.claim("t + n^3 - 3t^2 - 9000001").where.endswith("9000001 - 3t^2 == 0 and t < n, if anywhere")


@settings(max_examples=30)
@given(*(st.integers(-4, 4) for _ in range(4)))
def test_nowhere_is_true(a: int, b: int, c: int, d: int) -> None:
    """Where a claim is said to agree nowhere, no small numbers make it agree."""
    count = lt.rule("q == 0 and k < t").count().assuming("0 <= t <= n")
    verdict = count.claim(f"t + {a}*n^2 + {b}*n*t + {c}*t^2 + {d}")
    if verdict.where == "nowhere":
        assert all(a * n * n + b * n * t + c * t * t + d for n in range(25) for t in range(n + 1))
