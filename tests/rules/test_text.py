"""Reading rule texts: what they mean, and what is said about the ones that cannot be read."""

import pytest

from lattend.errors import TextError
from lattend.rules.language import expr
from lattend.rules.language.expr import And, Arith, Compare, Lookup, Name, Not, Num, Or, Truth
from lattend.rules.language.parser import parse, parse_assumption, parse_term

q, k, t, w = Name("q"), Name("k"), Name("t"), Name("w")


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("k <= q", Compare("<=", k, q)),
        ("true", Truth(True)),
        ("not False", Not(Truth(False))),
        ("k <= q < t", And((Compare("<=", k, q), Compare("<", q, t)))),
        ("k < q or k < t and q < t", Or((Compare("<", k, q), And((Compare("<", k, t), Compare("<", q, t)))))),
        ("not k < q and q < t", And((Not(Compare("<", k, q)), Compare("<", q, t)))),
        ("k < q and (q < t and t < w)", parse("k < q and q < t and t < w")),
        ("q - k - t < 1", Compare("<", Arith("-", (Arith("-", (q, k)), t)), Num(1))),
        ("q - (k - t) < 1", Compare("<", Arith("-", (q, Arith("-", (k, t)))), Num(1))),
        ("q + k*t < 1", Compare("<", Arith("+", (q, Arith("*", (k, t)))), Num(1))),
        ("q // w % t < 1", Compare("<", Arith("%", (Arith("//", (q, w)), t)), Num(1))),
        ("-q * k < -3", Compare("<", Arith("*", (Arith("neg", (q,)), k)), Num(-3))),
        ("-(3) < - -q", Compare("<", Arith("neg", (Num(3),)), Arith("neg", (Arith("neg", (q,)),)))),
        ("abs(q - k) <= 65_536", Compare("<=", Arith("abs", (Arith("-", (q, k)),)), Num(65536))),
        ("min(q, k, t) < max(q, t)", Compare("<", Arith("min", (q, k, t)), Arith("max", (q, t)))),
        ("doc[q] = doc[k]", Compare("==", Lookup("doc", (q,)), Lookup("doc", (k,)))),
        ("chosen[q, k]", Compare("!=", Lookup("chosen", (q, k)), Num(0))),
        ("not chosen[q]", Not(Compare("!=", Lookup("chosen", (q,)), Num(0)))),
        ("k ≤ q and k ≠ t and q ≥ t", parse("k <= q and k != t and q >= t")),
        ("q − k <= t", parse("q - k <= t")),
        ("((k)) <= (q)", Compare("<=", k, q)),
        ("k\n<=\tq", Compare("<=", k, q)),
    ],
)
def test_meaning(text: str, meaning: expr.Condition) -> None:
    assert parse(text) == meaning


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("w | n", "n % w == 0"),
        ("w ∣ n", "n % w == 0"),
        ("2*w | n + 1, t < n", "(n + 1) % (2*w) == 0 and t < n"),
        ("w | n and t < n or t == 0", "n % w == 0 and t < n or t == 0"),
        ("t < n or t > 3, w > 2", "(t < n or t > 3) and w > 2"),
        ("0 <= t < n", "0 <= t and t < n"),
    ],
)
def test_assumption(text: str, meaning: str) -> None:
    assert parse_assumption(text) == parse(meaning)


# text, the characters in question (⟨⟩ around them), the message after `rule "…": `
ERRORS = [
    ("⟨ ⟩", "it is empty; write for instance k <= q and q - k <= t"),
    ("k <= q ⟨<=⟩ ", "<= has nothing after it; write for instance k <= q"),
    ("⟨<=⟩ q", "<= has nothing before it; write for instance k <= q"),
    ("k <= q ⟨and⟩", "and has nothing after it; write for instance k <= q and q - k <= t"),
    ("k <= q ⟨or⟩ or q < t", "or has nothing after it; write for instance k <= q or k < p"),
    ("⟨not⟩", "not has nothing after it; write for instance not k == q"),
    ("k ⟨<=⟩ * 2", "<= has nothing after it; write for instance k <= q"),
    ("k <= 2 ⟨//⟩", "// has nothing after it; write for instance q // w"),
    ("k < ⟨-⟩ and q < t", "- has nothing after it; write for instance q - k"),
    ("⟨(⟩k <= q", "this ( is never closed; write ) where it ends"),
    ("k <= ⟨(⟩", "this ( is never closed; write ) where it ends"),
    ("min⟨(⟩k, q", "this ( is never closed; write ) where it ends"),
    ("doc⟨[⟩q <= 3", "this [ is never closed; write ] where it ends"),
    ("k <= q⟨)⟩", "this ) closes nothing; take it away or open a bracket before it"),
    ("⟨]⟩", "this ] closes nothing; take it away or open a bracket before it"),
    ("(k <= q⟨]⟩", "this ] cannot close the ( at character 1; write )"),
    ("doc[q⟨)⟩ == 1", "this ) cannot close the [ at character 4; write ]"),
    ("k <= ⟨()⟩", "there is nothing between these brackets; write a number or a condition there"),
    ("k ⟨q⟩", "write an operator between k and q, such as - or and"),
    ("(k ⟨q⟩) < 1", "write an operator between k and q, such as - or and"),
    ("⟨2n⟩ <= q", "write 2*n for the product"),
    ("2⟨(⟩q) < 3", "write * for the product: 2*("),
    ("k < q⟨,⟩ t", "a comma belongs inside min(…), max(…) or […]; join conditions with and"),
    ("min(k⟨,⟩) < q", "this comma has nothing after it; write a number there or take it away"),
    ("min(⟨,⟩ k) < q", "this comma has nothing before it; write a number there or take it away"),
    ("⟨[⟩q] < 1", "write the name of an array before [, as in doc[q]"),
    ("(q + k)⟨[⟩1] < 1", "only an array is looked up with [ ], as in doc[q]"),
    ("⟨doc[]⟩ == 1", "write the place to look at, as in doc[q]"),
    (
        "⟨f(⟩q) < 1",
        "there is no function f; there are abs, min and max. For a product write f*(…), for data f[…]",
    ),
    (
        "⟨mn(⟩q, 1) < 1",
        "there is no function mn, did you mean min? For a product write mn*(…), for data mn[…]",
    ),
    ("⟨abs⟩ q < 1", "write its numbers in brackets, as in abs(q - k)"),
    ("⟨abs(q, k)⟩ < 1", "abs takes one number, as in abs(q - k), and here it has 2"),
    ("⟨max(q)⟩ < 1", "max takes two numbers or more, as in max(q, t), and here it has 1"),
    ("⟨t⟩", "t is a number, not a condition; compare it with something, as in k <= t"),
    ("k <= q and ⟨k⟩", "k is a number, not a condition; compare it with something, as in k <= t"),
    ("not ⟨(q - k)⟩", "(q - k) is a number, not a condition; compare it with something, as in k <= (q - k)"),
    (
        "⟨(k <= q)⟩ + 1 < 2",
        "(k <= q) is a condition, not a number, and + stands between numbers; "
        "join conditions with and, or, not",
    ),
    (
        "q <= ⟨true⟩",
        "true is a condition, not a number, and <= stands between numbers; join conditions with and, or, not",
    ),
    (
        "-⟨(k < q)⟩ < 1",
        "(k < q) is a condition, not a number, and - stands before a number; "
        "join conditions with and, or, not",
    ),
    (
        "min(q, ⟨k < 1⟩) < 1",
        "k < 1 is a condition, not a number, and min takes numbers; join conditions with and, or, not",
    ),
    ("k <= ⟨not⟩ q", "put brackets around not and its condition, as in (not k == q)"),
    ("q // ⟨0⟩ < 1", "the divisor is 0; it must be at least 1"),
    ("q % ⟨-3⟩ < 1", "the divisor is -3; it must be at least 1"),
    ("k ⟨/⟩ 2 < q", "/ does not give whole numbers; write // (division rounded down)"),
    ("k ⟨**⟩ 2 < q", "** is not in the language; write a product out, as in t*t"),
    ("k⟨^⟩2 < q", "^ is not in the language; write a product out, as in t*t"),
    ("k⟨²⟩ < q", "² is not in the language; write a product out, as in t*t"),
    ("k <= q ⟨&⟩ q < 1", "write and instead of &"),
    ("k <= q ⟨&&⟩ q < 1", "write and instead of &&"),
    ("k <= q ⟨||⟩ q < 1", "write or instead of ||"),
    ("k <= q ⟨|⟩ q < 1", "write or instead of |"),
    ("⟨~⟩(k < q)", "write not instead of ~"),
    ("k ⟨=<⟩ q", "=< is not a comparison; there are < <= == != >= >"),
    ("k <= ⟨1.5⟩", "1.5: a rule holds whole numbers only"),
    ("k <= ⟨{⟩q}", "{ is not a bracket of the language; write ( and )"),
    ("k <= 2 ⟨·⟩ q", "write * instead of ·"),
    ("⟨_x⟩ < 1", "_x is not a name; a name begins with a letter, as in q or t2"),
    ("⟨λ⟩ < q", "λ is not a name; names are made of the letters a to z, digits and _"),
    ("⟨qé⟩ < q", "qé is not a name; names are made of the letters a to z, digits and _"),
    ("⟨if⟩ k < q", "if is a word of Python and cannot be a name in a rule"),
    ("k <= q ⟨#⟩ c", "# is not in the language"),
    ("k <= q⟨\0⟩", "U+0000 is not in the language"),
    (
        "k < ⟨1000000000000000001⟩",
        "this number has 19 digits, and at most 10**18 is allowed; "
        "write a name instead and give its value later",
    ),
]


@pytest.mark.parametrize(("marked", "message"), ERRORS)
def test_error_points_at_the_characters(marked: str, message: str) -> None:
    before, rest = marked.split("⟨")
    part, after = rest.split("⟩")
    with pytest.raises(TextError) as caught:
        parse(before + part + after)
    shown = (before + part + after).replace("\0", " ")
    assert caught.value.message == f'rule "{shown}": {message}'
    assert (caught.value.start, caught.value.end) == (len(before), len(before) + len(part))


def test_an_assumption_and_a_term_say_what_they_are() -> None:
    for read, text, message in (
        (parse_assumption, "0 | n", 'assumption "0 | n": the divisor is 0; it must be at least 1'),
        (parse_assumption, "", 'assumption "": it is empty; write for instance t < n, w | n'),
        (parse_term, "k < q", 'term "k < q": k < q is a condition, not a number, and a term is a number'),
        (parse_term, "", 'term "": it is empty; write for instance min(q, t) + 1'),
    ):
        with pytest.raises(TextError) as caught:
            read(text)
        assert caught.value.message.startswith(message)
    assert parse_term("min(q, t) + 1") == Arith("+", (Arith("min", (q, t)), Num(1)))


def test_every_node_knows_its_characters() -> None:
    text = "k <= q and (q - k)*2 < abs(t) or not doc[q + 1]"
    spans = {text[slice(*node.span)] for node in expr.walk(parse(text)) if node.span}
    assert all(node.span for node in expr.walk(parse(text)))
    assert {"k <= q", "q - k", "(q - k)*2", "abs(t)", "doc[q + 1]", "not doc[q + 1]", "q + 1", text} <= spans


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(" * 10_000, "this is more than 100 levels deep; write it with fewer"),
        ("(" * 4_000 + "k" + ")" * 4_000 + " < q", "this is more than 100 levels deep; write it with fewer"),
        ("not " * 2_000 + "k < q", "this is more than 100 levels deep; write it with fewer"),
        ("-" * 9_000 + "k < q", "this is more than 100 levels deep; write it with fewer"),
        ("doc[" * 2_000, "this is more than 100 levels deep; write it with fewer"),
        ("k + " * 2_000 + "k < q", "this is more than 100 operations one in another; write it with fewer"),
        ("k <= q and " * 10_000, "it has 110,000 characters, and 10,000 are allowed; shorten it"),
        ("9" * 9_000 + " < q", "this number has 9000 digits, and at most 10**18 is allowed"),
    ],
)
def test_too_much_text_is_refused_at_once(text: str, message: str) -> None:
    with pytest.raises(TextError) as caught:
        parse(text)
    assert message in caught.value.message
    assert len(caught.value.message) < 250


def test_the_limits_themselves_are_allowed() -> None:
    assert parse("(" * 100 + "k" + ")" * 100 + " < q") == Compare("<", k, q)
    assert expr.depth(parse("k + " * 98 + "k < q")) == 100
    assert parse(" and ".join(["k <= q"] * 900)) == And((Compare("<=", k, q),) * 900)
    assert parse(f"k < {10**18}") == Compare("<", k, Num(10**18))
    assert parse("k <= q" + " " * 9_994) == Compare("<=", k, q)


def test_divides_is_said_in_words_too() -> None:
    assert parse_assumption("w divides n, t < n") == parse_assumption("w | n, t < n")
    with pytest.raises(TextError, match=r'assumption "w divides n and n >= 2w"'):
        parse_assumption("w divides n and n >= 2w")
