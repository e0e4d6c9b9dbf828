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
        ("⟨sliding window 4⟩", "the numbers of a rule stand in brackets: write sliding_window(4)"),
        ("⟨dilated 3 2⟩", "the numbers of a rule stand in brackets: write dilated(3, 2)"),
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
        ("⟨strided(wide)⟩", "t must be an integer, got 'wide'; left out, it stays a letter"),
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


# Names from elsewhere

SAME = {
    "bidirectional": "full",
    "autoregressive": "causal",
    "autoregressive(bottom-right)": "causal(bottom-right)",
    "lower_triangular": "causal",
    "sliding_window(window=3)": "strided(2)",
    "sliding_window(1)": "strided(0)",
    "block_causal(3)": "windowed(3)",
    "banded(2, 1)": "band(2, 1)",
    "local(radius=2)": "band(2, 2)",
    "window_size(2, 1)": "band(2, 1)",
    "window_size(-1, 3)": "band(99, 3)",
    "window_size(left=2)": "band(2, 99)",
    "window_size((2, 1))": "band(2, 1)",
    "window_size([2, 1], align=top-left)": "band(2, 1)",
    "fixed(3, 1)": "sparse_fixed(3, 1)",
    "prefix(3)": "prefix_lm(3)",
    "attention_sinks(1, 2)": "sinks(1, 2)",
    "block_diagonal([3, 4])": "documents([3, 4])",
    "packed([3, 4], causal=true)": "documents([3, 4], causal=true)",
    "neighborhood(1)": "neighbourhood(1)",
    "natten(kernel_size=3)": "neighbourhood(1, edge=shift)",
    "natten(3, dilation=2)": "neighbourhood(1, 2, edge=shift)",
    "natten((3, 3), is_causal=(false, false))": "neighbourhood(1, edge=shift)",
    "natten([3, 3], [1, 1], [2, 2])": "neighbourhood(1, 2, edge=shift)",
    "criss_cross": "axial",
    "shifted_window(3, 1)": "swin(3, 1)",
    "raster_scan": "raster",
}


@pytest.mark.parametrize("text", SAME)
def test_a_name_from_elsewhere_is_the_rule(text: str) -> None:
    found, wanted = lt.rule(text), lt.rule(SAME[text])
    sizes = {"n": 7, "m": 9, "rows": 6, "cols": 7}
    at = {name: sizes[name] for name in found.free}
    assert (found.mask(**at) == wanted.mask(**at)).all()
    assert found.about is not None
    assert wanted.about is not None
    assert found.about.name == wanted.about.name == SAME[text].partition("(")[0]


def test_every_name_from_elsewhere_is_listed_and_read() -> None:
    listed = [name for make in R.CATALOGUE.values() for name in make().about.alias_names]  # pyright: ignore
    assert listed == list(R.ALIASES)
    assert {text.partition("(")[0] for text in SAME} == set(R.ALIASES)
    assert not set(R.ALIASES) & set(R.CATALOGUE)
    assert R.autoregressive() == R.causal()
    assert R.sliding_window(4).same_as(R.strided(3))


def test_the_window_stays_symbolic() -> None:
    found = lt.rule("sliding_window")
    assert found.parameters == ["window"]
    assert found.count(n=8, window=3) == 21
    with pytest.raises(lt.errors.DomainError, match="needs window >= 1, got window = 0"):
        R.sliding_window(0)
    with pytest.raises(lt.errors.DomainError, match="stride is 1 to kernel_size"):
        R.natten(4, 5)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("sliding", "strided or sliding_window"),
        ("sliding_window_attention", "strided or sliding_window"),
        ("mistral", "strided"),
        ("gpt", "causal"),
        ("causal_mask", "causal"),
        ("triangular", "causal or lower_triangular"),
        ("varlen", "documents"),
        ("neighbor", "neighborhood"),
        ("dense", "full"),
        ("windwed", "windowed"),
        ("cnn", "band or neighbourhood"),
        ("masked", "causal"),
        ("transformer", "full"),
    ],
)
def test_a_wrong_name_is_answered_by_meaning(name: str, meant: str) -> None:
    with pytest.raises(TextError) as caught:
        lt.rule(name)
    assert f"no rule is named {name}; did you mean {meant}? Or write" in caught.value.message
    with pytest.raises(AttributeError, match=f"did you mean {meant}"):
        getattr(R, name)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("sliding window", "sliding_window"),
        ("Sliding-Window attention", "sliding_window"),
        ("causal mask", "causal"),
        ("lower triangular", "lower_triangular"),
        ("local attention", "local"),
        ("self attention", "full"),
    ],
)
def test_names_of_several_words_are_answered_too(words: str, meant: str) -> None:
    with pytest.raises(TextError) as caught:
        lt.rule(words)
    assert f"no rule is named {words}; did you mean {meant}? Or write" in caught.value.message
    assert (caught.value.start, caught.value.end) == (0, len(words))


def test_a_call_of_no_rule_is_no_condition() -> None:
    with pytest.raises(TextError, match="there is no function f"):
        lt.rule("f(q) and g(k)")


# Names as conditions of a text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("causal and q - k < 4096", "k <= q and q - k < 4096"),
        ("not causal", "not k <= q"),
        ("(causal)", "k <= q"),
        ("strided(3) or k < 2", "k <= q and q - k <= 3 or k < 2"),
        ("k < 2 or strided ( t = 3 )", "k < 2 or k <= q and q - k <= 3"),
        ("causal and not strided(2)", "k <= q and not (k <= q and q - k <= 2)"),
        ("autoregressive and window < 3", "k <= q and window < 3"),
        ("q - k <= causal", "q - k <= causal"),
        ("causal and q - k <= causal", "k <= q and q - k <= causal"),
        ("causal(bottom-right) and k > 3", "k - q <= m - n and k > 3"),
        ("raster and qy - ky <= r", "(ky < qy or ky == qy and kx <= qx) and qy - ky <= r"),
    ],
)
def test_a_name_is_its_condition(text: str, written: str) -> None:
    assert lt.rule(text) == lt.rule(written)


def test_parameters_of_a_named_rule_stay_letters_in_their_domain() -> None:
    found = lt.rule("strided and k % 2 == 0")
    assert found == lt.rule("k <= q and q - k <= t and k % 2 == 0", where="t >= 0")
    assert found.count(n=8, t=2) == 11  # keys 0, 2, 4: three queries each; 6: two
    with pytest.raises(lt.errors.DomainError, match="needs t >= 0, got t = -1"):
        found.at(t=-1)
    assert lt.rule("swin(w=4) and ky <= qy").parameters == ["shift"]
    with pytest.raises(lt.errors.DomainError, match="needs shift < 4, got shift = 4"):
        lt.rule("swin(w=4) and ky <= qy").at(shift=4)


def test_arrays_of_a_named_rule_come_along() -> None:
    found = lt.rule("documents([2, 1]) and causal")
    assert found.mask().tolist() == R.documents([2, 1], causal=True).mask().tolist()
    assert lt.rule("documents and causal").open == ("doc",)
    given = lt.rule("doc = [0, 0, 1]; causal and documents")
    assert given.mask().sum() == 4  # 1 + 2 + 1
    with pytest.raises(TextError, match="has an array doc of its own"):
        lt.rule("documents([2, 1]) or documents(ids=[0, 1, 1])")
    with pytest.raises(TextError, match="this rule has n = 4, and one before it n = 3"):
        lt.rule("documents([2, 1]) or documents([2, 2])")


@pytest.mark.parametrize(
    ("text", "part", "message"),
    [
        ("causal and strided(1, 2)", "strided(1, 2)", "strided takes t; here: too many"),
        ("strided(3 + 4) and causal", "3 + 4", NUMBERS),
        (
            "causal and sliding",
            "sliding",
            "no rule is named sliding; did you mean strided or sliding_window?",
        ),
        ("causal and t", "t", "t is a number, not a condition"),
        ("strided(3) < q", "strided(3)", "strided(3) is a condition, not a number"),
        ("causal and q_idx - kv_idx < 3", "q_idx", "q_idx and kv_idx are no positions"),
        ("causal and strided(3", "(", "this ( is not closed"),
    ],
)
def test_mistakes_beside_a_name(text: str, part: str, message: str) -> None:
    with pytest.raises(TextError) as caught:
        lt.rule(text)
    assert message in caught.value.reason
    assert text[caught.value.start : caught.value.end] == part
