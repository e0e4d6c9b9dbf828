"""The formulas people read: text, values at any size, assumptions, other forms."""

from __future__ import annotations

import json
from typing import Any

import pytest
import sympy

import lattend as lt

STRIDED = """\
(2n - t)(t + 1)/2  when t <= n
n(n + 1)/2         when t > n"""

WINDOWED = """\
n(w + 1)/2                 when w divides n
w*N(w + 1)/2 + r(r + 1)/2  otherwise
where N = n // w, r = n % w"""

# Written by hand from the definitions, not from the program's output
HAND = {
    "full": (lt.rules.full(), lambda n: n * n),
    "causal": (lt.rules.causal(), lambda n: n * (n + 1) // 2),
    "prefix_lm": (lt.rules.prefix_lm(), lambda n, p: n * (n + 1) // 2 + min(p, n) * (min(p, n) - 1) // 2),
    "strided": (
        lt.rules.strided(),
        lambda n, t: (2 * n - t) * (t + 1) // 2 if t <= n else n * (n + 1) // 2,
    ),
    "windowed": (
        lt.rules.windowed(),
        lambda n, w: (n // w) * (w * (w + 1) // 2) + (n % w) * (n % w + 1) // 2,
    ),
    "dilated": (
        lt.rules.dilated(),
        lambda n, t, step: sum(
            c * strided(size, t) for c, size in ((n % step, n // step + 1), (step - n % step, n // step))
        ),
    ),
    "axial": (lt.rules.axial(), lambda rows, cols: rows * cols * (rows + cols - 1)),
    "raster": (lt.rules.raster(), lambda rows, cols: rows * cols * (rows * cols + 1) // 2),
}


def strided(n: int, t: int) -> int:
    return (2 * n - t) * (t + 1) // 2 if t <= n else n * (n + 1) // 2


def test_the_counts_of_part_a_read_as_in_the_notes() -> None:
    assert str(lt.rules.causal().count()) == "n(n + 1)/2"
    assert str(lt.rules.strided().count()) == STRIDED
    assert str(lt.rules.windowed().count()) == WINDOWED
    assert str(lt.rules.full().count()) == "n^2"


def test_a_parameter_is_at_least_0_unless_its_rule_says_otherwise() -> None:
    usual, signed = (lt.rule("k <= q and q - k <= t", where=where) for where in (None, "t >= -9"))
    assert str(usual.count()).splitlines() == [
        "(2n - t)(t + 1)/2  when t <= n",
        "n(n + 1)/2         when t > n",
    ]
    assert usual.count().domain_text == "n >= 0 and t >= 0"
    assert str(signed.count()).splitlines() == [
        "(2n - t)(t + 1)/2  when 0 <= t <= n",
        "n(n + 1)/2         when t > n",
        "0                  otherwise",
    ]
    assert signed.count().domain_text == "n >= 0 and t >= -9"
    windows = "k <= q and q // w == k // w and q - k <= t"
    assert "0 <= t < w" in str(lt.rule(windows, where="t >= -1").reach())
    assert "0 <= t" not in str(lt.rule(windows).count())


def test_an_assumption_can_let_a_parameter_be_below_0() -> None:
    count = lt.rule("q - k >= t").count()
    below = count.assuming("t >= -2")
    assert below.domain_text == "n >= 0 and t >= -2"
    assert [below.at(n=5, t=t) for t in (-2, -1, 0)] == [22, 19, 15]
    assert str(count.assuming("t == -1, n > 4")) == "(n^2 + 3n - 2)/2"
    with pytest.raises(lt.errors.DomainError, match=r"needs t >= -2, got t = -3"):
        below.at(n=5, t=-3)


def test_numbers_below_0_are_counted_from_the_set() -> None:
    count = lt.rule("q - k >= t").count()
    assert count.at(n=5, t=-2) == 5 + 4 + 3 + 2 + 1 + 4 + 3
    assert count.at(n=1000, t=-2) == 500 * 1001 + 999 + 998
    assert str(count.at(t=-2)).splitlines() == [
        "(n + 6)(n - 1)/2  when n >= 2",
        "n^2               when n <= 1",
    ]
    assert count.assuming("n > 4").at(t=-2).at(n=5) == 22
    with pytest.raises(lt.errors.DomainError, match="n = 4, t = -2 contradicts the assumption n > 4"):
        count.assuming("n > 4").at(t=-2, n=4)
    rows = lt.rule("q - k >= t").count(per="query")
    assert [rows.at(n=5, t=-2, q=q) for q in range(5)] == [3, 4, 5, 5, 5]


def test_numbers_go_into_a_rule_before_its_form_is_looked_for() -> None:
    text = "k <= q and (q - k <= t or k < g or (q - k) % s == 0)"
    count = lt.rule(text).at(t=3, g=2, s=6).count()
    for n in range(20):
        assert count.at(n=n) == lt.rule(text).mask(n=n, t=3, g=2, s=6).sum()
    blocks = lt.rule("bigbird(64)")
    assert blocks.at(n=1024).count().at(t=1, g=1) == blocks.mask(n=1024, t=1, g=1).sum()
    count = lt.rule("k <= q and q // w == k // w and q - k <= t").at(t=30, w=16).count()
    assert count.at(n=40) == 16 * 17 + 8 * 9 // 2


def test_a_bound_value_is_known_when_the_others_are_given() -> None:
    assert lt.rule("windowed(3)").count(per="query").number({"n": 5, "q": 1}) == 2
    assert lt.rule("windowed(3)").count().number({"n": 5}) == 6 + 3
    assert str(lt.rule("strided").at(t=3).count().assuming("t < n")) == "4n - 6"


def test_the_sparse_transformer_rules() -> None:
    fixed = lt.rules.sparse_fixed().count()
    assert str(fixed) == "n(n + 1)/2 - N(l - c)(2n - l*N - l)/2  where N = n // l"
    assert lt.rules.sparse_strided().count(n=16384, l=128) == 3_129_408
    assert fixed.at(n=16384, l=128, c=8) == 9_379_840


def test_needed_squares_of_known_sizes() -> None:
    assert lt.rules.strided().count(n=65536, t=255) == 16_744_576
    assert lt.rules.windowed().count(n=65536, w=1024) == 33_587_200
    assert lt.rules.neighbourhood().count(rows=128, cols=128, r=3) == 781_456
    assert lt.rules.neighbourhood().count(rows=128, cols=128, r=6) == 2_630_884


@pytest.mark.parametrize("name", HAND)
@pytest.mark.parametrize("size", [10, 10**12 + 7, 10**30 + 1])
def test_exact_at_any_size(name: str, size: int) -> None:
    rule, formula = HAND[name]
    for other in (1, 3, size // 7 or 1, size, 2 * size):
        values = dict(zip(rule.sizes + rule.parameters, (size, other, 5), strict=False))
        assert rule.count().at(**values) == rule.count(**values) == formula(**values)


def test_images_are_written_as_a_product() -> None:
    assert str(lt.rules.neighbourhood(edge="shift").count()).splitlines() == [
        "F(rows) * F(cols) where F(n) =",
        "  n(2r + 1)  when n > 2r",
        "  n^2        when n <= 2r",
    ]


def test_values_can_come_one_by_one() -> None:
    count = lt.rules.strided().count()
    assert count.at(t=3).at(n=8) == count(n=8, t=3) == lt.rules.strided(3).count(n=8) == 26
    assert str(count.at(t=3)).splitlines() == ["4n - 6      when n >= 3", "n(n + 1)/2  when n <= 2"]
    with pytest.raises(lt.errors.LattendError, match="t already has the value 3"):
        count.at(t=3).at(t=4)


def test_a_bound_modulus_keeps_the_general_form() -> None:
    assert str(lt.rules.windowed(4).count()).splitlines()[0] == "5n/2               when 4 divides n"
    assert lt.rules.windowed(4).count(n=10) == 10 + 10 + 3


def test_outside_the_domain_it_raises() -> None:
    outside: list[dict[str, Any]] = [{"n": -1, "w": 2}, {"n": 4, "w": 0}]
    for values in outside:
        with pytest.raises(lt.errors.DomainError, match="needs"):
            lt.rules.windowed().count(**values)
    with pytest.raises(lt.errors.DomainError, match="needs c <= l"):
        lt.rules.sparse_fixed().count(n=4, l=2, c=3)
    with pytest.raises(lt.errors.DomainError, match=r"q = 8 lies outside 0 … 7"):
        lt.rules.causal().count(per="query", n=8, q=8)


def test_assumptions_prune() -> None:
    assert str(lt.rules.strided().count().assuming("t < n")) == "(2n - t)(t + 1)/2"
    assert str(lt.rules.windowed().count().assuming("w | n")) == "n(w + 1)/2"
    with pytest.raises(lt.errors.DomainError, match="never holds"):
        lt.rules.strided().count().assuming("t < 0")
    with pytest.raises(lt.errors.LattendError, match="has no s; it has n, t"):
        lt.rules.strided().count().assuming("s < n")
    with pytest.raises(lt.errors.DomainError, match="n = 3, t = 5 contradicts the assumption t < n"):
        lt.rules.strided().count().assuming("t < n").at(n=3, t=5)


def test_rows_and_columns_as_formulas() -> None:
    rows = lt.rules.strided().count(per="query")
    assert str(rows).splitlines() == ["t + 1  when t <= q", "q + 1  when t > q"]
    assert rows.at(n=12, t=3, q=7) == 4
    assert str(lt.rules.windowed().count(per="query").assuming("w | n")).startswith("1")
    assert str(lt.rules.causal().count(per="key")) == "n - k"


def test_json_is_plain_data() -> None:
    data = json.loads(json.dumps(lt.rules.windowed().count().json()))
    assert data["rule"] == "k <= q and q // w == k // w"
    assert data["parameters"] == ["n", "w"]
    assert data["pieces"][0] == {"when": "w divides n", "count": "n(w + 1)/2"}
    assert data["pieces"][1]["count"] == "w(n // w)(w + 1)/2 + (n % w)((n % w) + 1)/2"
    assert data["at"] == {} and data["value"] is None


def test_latex() -> None:
    assert lt.rules.causal().count().latex() == r"\frac{n(n + 1)}{2}"
    assert lt.rules.strided().count().latex() == (
        r"\begin{cases} \frac{(2n - t)(t + 1)}{2} & \text{if } t \le n \\ "
        r"\frac{n(n + 1)}{2} & \text{if } t > n \end{cases}"
    )


@pytest.mark.parametrize("name", ["strided", "windowed", "sparse_fixed", "chunked", "axial"])
def test_sympy_gives_the_same_numbers(name: str) -> None:
    count = getattr(lt.rules, name)().count()
    expression = count.sympy()
    for numbers in ((7, 3, 2), (12, 4, 4), (5, 9, 1), (0, 2, 1)):
        values = dict(zip(count.names, numbers, strict=False))
        symbols = {s: values[s.name] for s in expression.free_symbols}
        assert sympy.simplify(expression.subs(symbols)) == count.at(**values)
