"""How --at, --rename, --pixel and RULE are read; the place of a mistake is marked."""

import pytest

from lattend.cli.arguments import complete_rule, read_names, read_numbers, read_pixel, read_renames


def test_numbers():
    assert read_numbers(None) == {}
    assert read_numbers(["n=12,t=3"]) == {"n": 12, "t": 3}
    assert read_numbers([" n = -12 ", "t=+3,w=1_000"]) == {"n": -12, "t": 3, "w": 1000}


def test_other_lists():
    assert read_renames(["L=n, w=t", "m=n"]) == {"L": "n", "w": "t", "m": "n"}
    assert read_pixel(None) is None
    assert read_pixel("3, 4") == (3, 4)
    assert read_names(" n,t ") == ["n", "t"]
    assert read_names(None) == []


@pytest.mark.parametrize(
    ("text", "message", "marks"),
    [
        ("n=5,n=6", "--at: n is given twice; give it once", "    ^^^"),
        ("n=x", "n must be an integer, got x", "  ^"),
        ("n=1.5", "n must be an integer, got 1.5", "  ^^^"),
        ("n=1e6", "n must be an integer, got 1e6", "  ^^^"),
        ("t=3, n", "--at: write name=value, as in n=12,t=3", "     ^"),
        ("n=", "--at: write name=value, as in n=12,t=3", "^^"),
        ("3=n", "--at: write name=value, as in n=12,t=3", "^^^"),
        ("", "--at: write name=value, as in n=12,t=3", "^"),
        ("n=5,", "--at: write name=value, as in n=12,t=3", "    ^"),
        ("n=" + "9" * 301, "n has more than 300 digits", "  " + "^" * 76),
    ],
)
def test_numbers_that_cannot_be_read(lattend, text, message, marks):
    ran = lattend("count", "strided", "--at", text)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines() == [f"lattend: {message}", f"  {text[:78]}".rstrip(), f"  {marks}"]


def test_a_name_twice_in_two_options(lattend):
    ran = lattend("count", "strided", "--at", "n=5", "--at", "n=6")
    assert ran.err.splitlines() == ["lattend: --at: n is given twice; give it once", "  n=6", "  ^^^"]


@pytest.mark.parametrize(
    ("text", "message", "marks"),
    [
        ("k < = q", 'rule "k < = q": write <= without a space in it', "  ^^^"),
        (
            "stridd",
            'rule "stridd": no rule is named stridd; did you mean strided? Or write a condition, such as',
            "^^^^^^",
        ),
        ("strided(x=3)", "", "^^^^^^^^^^^^"),
    ],
)
def test_rules_that_cannot_be_read(lattend, text, message, marks):
    ran = lattend("count", text)
    assert (ran.code, ran.out) == (2, "")
    first, *place = ran.err.splitlines()
    assert first.startswith(f"lattend: {message}")
    assert place == [f"  {text}", f"  {marks}"]


@pytest.mark.parametrize("text", ["-", ""])
def test_no_rule_at_all(lattend, text):
    ran = lattend("count", text)
    assert ran.code == 2
    assert ran.err.startswith(f'lattend: "{text}" is no rule. RULE is a catalogue name such as strided')
    assert ran.err.count("\n") == 1


def test_long_and_deep_texts(lattend):
    long = lattend("count", "k <= q and " * 9000 + "k <= q")
    assert (long.code, long.out) == (2, "")
    assert "characters, and" in long.err
    deep = lattend("count", "(" * 4000 + "k <= q" + ")" * 4000)
    assert (deep.code, deep.out) == (2, "")
    assert "levels deep" in deep.err
    assert max(map(len, deep.err.splitlines())) < 200


def test_completion_of_names():
    assert dict(complete_rule("sparse")) == {
        "sparse_strided": "the last l positions, and every l-th position before",
        "sparse_fixed": "causal inside blocks of l, and the last c positions of every block before",
    }
    assert complete_rule("zzz") == []
