"""Reading claimed formulas: plain, Unicode and LaTeX mean the same; errors point at the characters."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lattend.counts.formula import BigO, Formula, OrderSign, Sum
from lattend.counts.formula_parser import parse_formula
from lattend.errors import TextError
from lattend.rules.language.expr import Arith, Name, Num

KNOWN = {"n", "t", "w", "r", "rows", "cols"}
n, t, w = Name("n"), Name("t"), Name("w")
one, two = Num(1), Num(2)


def value(node: Formula | BigO, at: dict[str, int]) -> Fraction:
    """The formula's value, from the definitions."""
    match node:
        case Num():
            return Fraction(node.value)
        case Name():
            return Fraction(at[node.name])
        case Sum():
            low, high = (int(value(end, at)) for end in (node.low, node.high))
            return sum(
                (value(node.body, {**at, node.variable: i}) for i in range(low, high + 1)), Fraction(0)
            )
        case Arith():
            return Fraction(OPERATIONS[node.op](*(value(arg, at) for arg in node.args)))
        case _:
            raise AssertionError(f"no value is needed of {node}")


OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "^": lambda a, b: a**b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "neg": lambda a: -a,
    "floor": math.floor,
    "ceil": math.ceil,
    "min": min,
    "max": max,
    "abs": abs,
}


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("n(n+1)/2", lambda n, t, w: Fraction(n * (n + 1), 2)),
        (r"\frac{n(n+1)}{2}", lambda n, t, w: Fraction(n * (n + 1), 2)),
        (r"$\dfrac{n^2 + n}{2}$", lambda n, t, w: Fraction(n * n + n, 2)),
        ("1/2 n(n + 1)", lambda n, t, w: Fraction(n * (n + 1), 2)),
        ("-1/2 n", lambda n, t, w: Fraction(-n, 2)),
        ("0.5n", lambda n, t, w: Fraction(n, 2)),
        (r"\binom{n+1}{2}", lambda n, t, w: math.comb(n + 1, 2)),
        ("binom(n, 3)", lambda n, t, w: math.comb(n, 3)),
        ("(2n - t)(t + 1)/2", lambda n, t, w: Fraction((2 * n - t) * (t + 1), 2)),
        (r"\tfrac{(2n-t)(t+1)}{2}", lambda n, t, w: Fraction((2 * n - t) * (t + 1), 2)),
        ("nt + n - t^2/2 - t/2", lambda n, t, w: Fraction((2 * n - t) * (t + 1), 2)),
        ("nt + n − t²/2 − t/2", lambda n, t, w: Fraction((2 * n - t) * (t + 1), 2)),
        ("sum(i, i, n - t, n)", lambda n, t, w: sum(range(n - t, n + 1))),
        ("Σ_{i=n−t}^{n} i", lambda n, t, w: sum(range(n - t, n + 1))),
        (r"\sum_{i=n-t}^{n} i", lambda n, t, w: sum(range(n - t, n + 1))),
        (r"\sum\limits_{i=1}^n i + t", lambda n, t, w: sum(range(n + 1)) + t),
        (r"2\sum_{i=1}^{n} i \cdot t - 1", lambda n, t, w: 2 * sum(i * t for i in range(n + 1)) - 1),
        (r"\sum^{n}_{i=1} i(i+1)/2", lambda n, t, w: sum(Fraction(i * (i + 1), 2) for i in range(n + 1))),
        ("sum(ni, i, 1, t)", lambda n, t, w: sum(n * i for i in range(t + 1))),
        ("∑_{i=1}^{n} ∑_{j=i}^{n} 1", lambda n, t, w: n * (n + 1) // 2),
        ("sum_{i=0}^{t} (n - i)", lambda n, t, w: sum(n - i for i in range(t + 1))),
        ("(n//w)·w(w+1)/2", lambda n, t, w: n // w * Fraction(w * (w + 1), 2)),
        (r"\left\lfloor \frac{n}{w} \right\rfloor w", lambda n, t, w: n // w * w),
        ("⌊n/w⌋ + ⌈n/w⌉", lambda n, t, w: n // w + -(-n // w)),
        ("floor(n/w) + ceil(n/w)", lambda n, t, w: n // w + -(-n // w)),
        ("n mod w + n % w", lambda n, t, w: 2 * (n % w)),
        (r"n \bmod w", lambda n, t, w: n % w),
        (r"\min(n, t) + \max\{n, t\}", lambda n, t, w: n + t),
        ("abs(n - t)", lambda n, t, w: abs(n - t)),
        ("2n^2t", lambda n, t, w: 2 * n * n * t),
        ("-t^2", lambda n, t, w: -(t**2)),
        ("(-t)^2", lambda n, t, w: t**2),
        ("n - t - w", lambda n, t, w: n - t - w),
        ("n/2/w", lambda n, t, w: Fraction(n, 2 * w)),
        ("n**2 * t^{2}", lambda n, t, w: n**2 * t**2),
        ("nwt", lambda n, t, w: n * w * t),
        (r"\mathrm{n}\,(t)\!\;{w}", lambda n, t, w: n * t * w),
        (r"\bigl(n + [t]\bigr) \times w \div 2", lambda n, t, w: Fraction((n + t) * w, 2)),
        ("(n + t)" * 32, lambda n, t, w: (n + t) ** 32),
        ("65_536 + 10^18", lambda n, t, w: 65536 + 10**18),
    ],
)
def test_meaning(text: str, meaning: Callable[..., Any]) -> None:
    found = parse_formula(text, KNOWN)
    for at in ({"n": 7, "t": 3, "w": 2}, {"n": 5, "t": 0, "w": 3}, {"n": 1, "t": 1, "w": 1}):
        assert value(found, at) == meaning(**at)


def test_names() -> None:
    assert parse_formula("nt") == Name("nt")
    assert parse_formula("nt", {"n", "t"}) == Arith("*", (n, t))
    assert parse_formula("nt", {"n", "t", "nt"}) == Name("nt")
    assert parse_formula("nx", {"n", "t"}) == Name("nx")
    assert parse_formula("rowscols", KNOWN) == Arith("*", (Name("rows"), Name("cols")))
    assert parse_formula("D_{hid} + n_1") == Arith("+", (Name("D_hid"), Name("n_1")))
    assert parse_formula(r"\ell + \text{rows}") == Arith("+", (Name("l"), Name("rows")))
    # a cut that takes the longest name first would leave "s" behind
    assert parse_formula("rowss", {"row", "ss", "rows"}) == Arith("*", (Name("row"), Name("ss")))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("α", "alpha"),
        (r"\alpha", "alpha"),
        (r"\alpha_1", "alpha_1"),
        ("α₁", "alpha_1"),
        ("λ", "lambda"),
        (r"\varepsilon", "epsilon"),
        ("Δ", "Delta"),
        ("D_o", "D_o"),
        ("Dₒ", "D_o"),
        ("D_{out}", "D_out"),
        (r"D_{\text{out}}", "D_out"),
        (r"D_{\mathrm{ out }}".replace(" ", ""), "D_out"),
        (r"W_\text{out}", "W_out"),
        (r"\mathrm{D}_{out}", "D_out"),
        (r"\ell_2", "l_2"),
    ],
)
def test_names_as_papers_write_them(text: str, name: str) -> None:
    assert parse_formula(text) == Name(name)


def test_names_of_the_same_meaning_are_cut_apart() -> None:
    assert parse_formula("N_hD_i", {"heads", "D_i"}) == Arith("*", (Name("N_h"), Name("D_i")))


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("Θ(nt)", "Theta"),
        (r"\Omega(nt)", "Omega"),
        ("o(nt)", "o"),
        ("omega(nt)", "omega"),
        (r"\mathcal{O}(nt)", "O"),
    ],
)
def test_other_orders(text: str, sign: OrderSign) -> None:
    assert parse_formula(text, KNOWN) == BigO(Arith("*", (n, t)), sign)


@pytest.mark.parametrize(
    "text", ["O(n*t)", r"\mathcal{O}(nt)", r"$\mathcal O (n t)$", "O( nt )", r"O\left(nt\right)"]
)
def test_big_o(text: str) -> None:
    assert parse_formula(text, KNOWN) == BigO(Arith("*", (n, t)))


# text, the characters in question (❬❭ around them), the message after `formula "…": `
ERRORS = [
    ("❬ ❭", "it is empty; write for instance n(n + 1)/2"),
    ("n ❬+❭", "+ has nothing after it; write a number, a name or a bracket"),
    ("❬*❭ n", "* has nothing before it; write a number, a name or a bracket"),
    ("n ❬*❭ / t", "* has nothing after it; write a number, a name or a bracket"),
    ("❬(❭n", "this ( is never closed; write ) where it ends"),
    ("n❬(❭", "a formula is missing after this"),
    ("n❬)❭", "this ) closes nothing; take it away or open a bracket before it"),
    ("(n❬]❭", "this ] cannot close the ( at character 1; write )"),
    ("⌊n❬)❭", "this ) cannot close the ⌊ at character 1; write ⌋"),
    ("❬()❭", "there is nothing between these brackets; write a formula there"),
    ("❬n 2❭", "write * between n and 2"),
    ("❬n/2(❭w + 1)", "n/2( can be read in two ways; write * or brackets, as in (n/2)*(w + 1) or 1/(2*n)"),
    ("❬1/2n❭", "1/2n can be read in two ways; write * or brackets, as in (n/2)*(w + 1) or 1/(2*n)"),
    ("n/❬0❭", "this divides by 0"),
    ("2^❬n❭", "an exponent is a whole number from 0 to 32; counts have no other powers"),
    ("n^❬(1/2)❭", "an exponent is a whole number from 0 to 32; counts have no other powers"),
    ("n^❬-1❭", "an exponent is a whole number from 0 to 32; counts have no other powers"),
    ("9^❬9^9❭", "an exponent is a whole number from 0 to 32; counts have no other powers"),
    ("❬((n+1)^8)^8❭", "this has degree 64, and at most 32 is read"),
    ("❬(n+t+w+r+a+b)^20❭", "multiplied out, this may have more than 5,000 terms; write a smaller formula"),
    ("❬sum(i, i, 1)❭", "sum is written sum(i, i, 1, n), and here it has 3 parts"),
    ("sum(i, ❬2❭, 1, n)", "the second part of a sum is the name it runs over, as in sum(i, i, 1, n)"),
    ("❬min(n)❭", "min is written min(n, t), and here it has 1 parts"),
    ("❬floor❭ n", "write what it works on in brackets, as in floor(n/w)"),
    ("❬Σ❭ i", "a sum has both its limits, as in Σ_{i=1}^{n} i"),
    ("❬Σ❭_{i=1} i", "a sum has both its limits, as in Σ_{i=1}^{n} i"),
    ("❬Σ❭_{i}^{n} i", "write where the sum begins in braces, as in Σ_{i=1}^{n} i"),
    ("Σ_{i=1}^{n❬}❭", "a formula is missing after this"),
    ("❬log❭(n)", "there is no log here; a formula is made of + - * / // % ^ floor ceil min max abs sum"),
    (r"❬\sqrt❭{n}", "there is no sqrt here; a formula is made of + - * / // % ^ floor ceil min max abs sum"),
    (r"❬\foo❭", r"\foo is not known here; write the formula without it"),
    (r"❬\frac❭{n}", r"\frac takes two groups in braces, as in \frac{n}{2}"),
    (r"\binom{n}❬{t}❭", "the lower number of a binomial is a whole number from 1 to 8"),
    ("❬|❭n|", "write abs(…) instead of |…|"),
    ("n❬!❭", "! is not in the language of formulas"),
    ("n ❬≈❭ t", "a claim is exact; for how it grows write Theta(n^2)"),
    ("❬~❭n", "a claim is exact; for how it grows write Theta(n^2)"),
    ("n ❬~❭ t", "a claim is exact; for how it grows write Theta(n^2)"),
    (r"n ❬\sim❭ t", "a claim is exact; for how it grows write Theta(n^2)"),
    ("n ❬≤❭ t", "a claim is an equation; for an upper bound write O(n^2), for a lower one Omega(n^2)"),
    (r"n ❬\le❭ t", "a claim is an equation; for an upper bound write O(n^2), for a lower one Omega(n^2)"),
    ("n❬\0❭", "U+0000 is not in the language of formulas"),
    ("n ❬=❭ 3", "write only one side of the equation, the formula"),
    ("n❬,❭ t", "a comma belongs inside min(…), max(…) or sum(…)"),
    ("❬_❭n", "_ cannot stand here; _ belongs to a name or a sum, as in Σ_{i=1}^{n} i"),
    ("❬O❭(n) + 1", "O(…) stands alone: put all of the formula inside it"),
    ("1 + ❬O❭(n)", "O(…) stands alone: put all of the formula inside it"),
    ("❬O❭(n)(t)", "O(…) stands alone: put all of the formula inside it"),
]


@pytest.mark.parametrize(("marked", "message"), ERRORS)
def test_error_points_at_the_characters(marked: str, message: str) -> None:
    before, rest = marked.split("❬")
    part, after = rest.split("❭")
    text = before + part + after
    with pytest.raises(TextError) as caught:
        parse_formula(text, KNOWN)
    shown = text.replace("\0", " ")
    assert caught.value.message == f'formula "{shown}": {message}'
    assert (caught.value.start, caught.value.end) == (len(before), len(before) + len(part))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(" * 10_000, "this is more than 100 levels deep"),
        ("-" * 5_000 + "n", "this is more than 100 levels deep"),
        ("sum(" * 2_000, "this is more than 100 levels deep"),
        ("2^" * 3_000 + "2", "this is more than 100 levels deep"),
        (r"\frac{" * 1_000, "this is more than 100 levels deep"),
        ("Σ_{i=1}^{n} " * 500 + "i", "this is more than 100 levels deep"),
        ("n + " * 2_000 + "n", "this is more than 100 operations one in another"),
        ("n*" * 50_000, "it has 100,000 characters, and 10,000 are allowed; shorten it"),
        ("9" * 5_000, "this number has 5000 digits, and at most 10**18 is allowed"),
        ("n" * 5_000, "this name has 5,000 characters, and 64 are allowed"),
        ("(n + t)" * 40, "this has degree 33, and at most 32 is read"),
        ("(n+t+w+a+b+c)" * 12, "multiplied out, this may have more than 5,000 terms"),
    ],
)
def test_too_much_is_refused_at_once(text: str, message: str) -> None:
    with pytest.raises(TextError) as caught:
        parse_formula(text, KNOWN)
    assert message in caught.value.message


def test_every_node_knows_its_characters() -> None:
    text = r"n(n + 1)/2 + \sum_{i=1}^{n} i"
    found = parse_formula(text)
    assert isinstance(found, Arith)
    assert [text[slice(*(arg.span or ()))] for arg in found.args] == ["n(n + 1)/2", r"\sum_{i=1}^{n} i"]
    assert found.span == (0, len(text))


def _compound(formulas: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    pairs = st.tuples(formulas, formulas)
    return st.one_of(
        st.builds(Arith, st.sampled_from(["+", "-", "*"]), pairs),
        st.builds(Arith, st.sampled_from(["/", "//", "%"]), st.tuples(formulas, st.just(w))),
        st.builds(Arith, st.sampled_from(["min", "max"]), pairs),
        st.builds(lambda a, op: Arith(op, (a,)), formulas, st.sampled_from(["neg", "floor", "ceil", "abs"])),
        st.builds(lambda a, e: Arith("^", (a, Num(e))), formulas, st.integers(0, 2)),
        st.builds(lambda a, b: Sum(a, "i", one, b), formulas, st.sampled_from([n, t, two])),
    )


LEAVES = st.one_of(st.sampled_from([n, t, w]), st.integers(0, 9).map(Num))
FORMULAS: st.SearchStrategy[Formula] = st.recursive(LEAVES, _compound, max_leaves=6)


def plain(node: Any) -> str:
    """The formula as fully bracketed plain text."""
    match node:
        case Num() | Name():
            return str(node.value if isinstance(node, Num) else node.name)
        case Sum():
            return f"sum({plain(node.body)}, {node.variable}, {plain(node.low)}, {plain(node.high)})"
        case Arith(op="neg", args=(a,)):
            return f"(-({plain(a)}))"
        case Arith(op="floor" | "ceil" | "abs" | "min" | "max"):
            return f"{node.op}({', '.join(map(plain, node.args))})"
        case Arith(op=op, args=(a, b)):
            return f"(({plain(a)}) {op} ({plain(b)}))"
    raise AssertionError(node)


def latex(node: Any) -> str:
    """The formula as LaTeX."""
    match node:
        case Num() | Name():
            return plain(node)
        case Sum():
            limits = rf"_{{{node.variable}={latex(node.low)}}}^{{{latex(node.high)}}}"
            return rf"{{\sum{limits} {{{latex(node.body)}}}}}"
        case Arith(op="/", args=(a, b)):
            return rf"\frac{{{latex(a)}}}{{{latex(b)}}}"
        case Arith(op="floor" | "ceil", args=(a,)):
            return rf"\left\l{node.op} {latex(a)} \right\r{node.op}"
        case Arith(op="min" | "max", args=(a, b)):
            return rf"\{node.op}\left\{{{latex(a)}, {latex(b)}\right\}}"
        case Arith(op="abs", args=(a,)):
            return rf"abs({latex(a)})"
        case Arith(op="neg", args=(a,)):
            return rf"\left(-{{{latex(a)}}}\right)"
        case Arith(op=op, args=(a, b)):
            sign = {"*": r"\cdot", "%": r"\bmod"}.get(op, op)
            return rf"\left({{{latex(a)}}} {sign} {{{latex(b)}}}\right)"
    raise AssertionError(node)


@given(FORMULAS)
def test_plain_text_and_back(formula: Formula) -> None:
    assert parse_formula(plain(formula), KNOWN) == formula


@given(FORMULAS)
def test_latex_and_back(formula: Formula) -> None:
    assert parse_formula(latex(formula), KNOWN) == formula
