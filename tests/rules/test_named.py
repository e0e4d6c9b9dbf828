"""A rule from one string, as the command line takes it."""

import pytest

import lattend as lt
from lattend.errors import TextError
from lattend.rules import Rule

R = lt.rules
NUMBERS = "write numbers, as in strided(255), dilated(t=3, step=2) or documents([3, 5])"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("strided", R.strided()),
        (" strided ( 255 ) ", R.strided(255)),
        ("strided()", R.strided()),
        ("strided(t=255)", R.strided(255)),
        ("dilated(3, step=2)", R.dilated(3, 2)),
        ("causal(bottom-right)", R.causal("bottom-right")),
        ('causal(align="bottom-right")', R.causal("bottom-right")),
        ("neighbourhood(r=1, step=step, edge='shift', axes=3)", R.neighbourhood(1, "step", "shift", 3)),
        ("neighbourhood(1, none)", R.neighbourhood(1)),
        ("bigbird(1, 1, 1, random=1, seed=5, n=9)", R.bigbird(1, 1, 1, random=1, seed=5, n=9)),
        ("documents(lengths=[3, 4], causal=true)", R.documents(lengths=[3, 4], causal=True)),
        ("documents(ids=[-1, 2])", R.documents(ids=[-1, 2])),
        ("true", lt.rule("true")),
        ("k <= q and q - k <= t", lt.rule("k <= q and q - k <= t")),
        ("min(q, 3) <= k", lt.rule("min(q, 3) <= k")),
    ],
)
def test_what_is_meant(text: str, rule: Rule) -> None:
    assert lt.rule(text) == rule


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        ("⟨stridde⟩", "no rule is named stridde; did you mean strided? Or write a condition, such as k <= q"),
        ("⟨Windowed⟩(4)", "no rule is named Windowed; did you mean windowed? Or write a condition"),
        ("⟨zzz⟩", "no rule is named zzz; there are full, causal, strided, windowed, band, dilated"),
        ("⟨strided(1, 2)⟩", "strided takes t; here: too many positional arguments"),
        ("⟨strided(w=3)⟩", "strided takes t; here: got an unexpected keyword argument 'w'"),
        ("⟨full(3)⟩", "full takes no arguments; here: too many positional arguments"),
        ("strided(⟨t⟩=1, ⟨t⟩=2)", "t is given twice; give it once"),
        ("dilated(step=2, ⟨3⟩)", "write arguments without a name first"),
        ("strided(⟨3 + 4⟩)", NUMBERS),
        ("strided(⟨2.5⟩)", NUMBERS),
        ("strided(3, ⟨, 4⟩)", NUMBERS),
        ("documents(⟨ids=[1, , 2]⟩)", NUMBERS),
        ("⟨strided(-1)⟩", 'rule "k <= q and q - k <= t" needs t >= 0, got t = -1'),
        ("⟨documents([1], ids=[0])⟩", "documents takes lengths=[3, 5, …] or ids=[0, 0, 0, 1, …]"),
        ("⟨bigbird(random=1)⟩", "bigbird(random=1) draws its blocks now: give n=…, w=…, t=…, g=… too"),
        ("⟨strided(wide)⟩", "t must be an integer, got 'wide'"),
        ("⟨bigbird(random=x)⟩", "random must be an integer, got 'x'"),
        ("⟨bigbird(1, 1, 1, 1, x, 9)⟩", "seed must be an integer, got 'x'"),
        ("⟨neighbourhood(1, [2])⟩", "step must be an integer, got [2]"),
        ("⟨documents(3)⟩", "documents: lengths is one row of whole numbers"),
        ("⟨documents([3], causal=maybe)⟩", "causal is True or False, got 'maybe'"),
    ],
)  # fmt: skip
def test_errors(marked: str, message: str) -> None:
    text = marked.replace("⟨", "").replace("⟩", "")
    start = marked.rindex("⟨") - 2 * (marked.count("⟨") - 1)
    length = marked.rindex("⟩") - marked.rindex("⟨") - 1
    with pytest.raises(TextError) as caught:
        lt.rule(text)
    assert message in caught.value.message
    assert (caught.value.start, caught.value.end) == (start, start + length)


def test_long_texts_go_to_the_parser() -> None:
    with pytest.raises(TextError, match="it has 20,002 characters, and 10,000 are allowed"):
        lt.rule("a(" + "1" * 20_000)
