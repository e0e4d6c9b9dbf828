"""The tour: its page is well formed and whole, its formulas are typeset, its terminal part is true."""

from __future__ import annotations

import re
import shlex
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from lattend.cli import app
from lattend.counts.terms.typeset import condition, count, formula
from lattend.draw.grid.samples import SAMPLES, catalogue, sample
from lattend.rules import CATALOGUE
from lattend.tour.__main__ import main
from lattend.tour.topics import TOPICS, Topic

VOID = {"meta", "br", "img", "hr", "link", "input"}


class Tour(NamedTuple):
    code: int
    out: str
    page: str


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Tour:
    path = tmp_path_factory.mktemp("tour") / "deep" / "tour.html"
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr("lattend.tour.terminal.say", printed.append)
        code = main(["--out", str(path)])
    return Tour(code, "\n".join(printed), path.read_text(encoding="utf-8"))


class Outline(HTMLParser):
    """Every element closed where it was opened; ids, links and attributes noted."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.tags: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links += [given["href"] or ""] if "href" in given else []
        self.sources += [given["src"] or ""] if "src" in given else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


def test_page_is_well_formed_and_stands_alone(tour: Tour) -> None:
    outline = Outline(tour.page)
    assert outline.open == []
    assert outline.sources == []
    assert len(outline.ids) == len(set(outline.ids))
    assert all(link.startswith("#") and link[1:] in outline.ids for link in outline.links)
    assert "url(" not in tour.page
    assert "@import" not in tour.page
    assert outline.tags.count("article") == len(SAMPLES)
    three_again_and_the_large_one = 3 + 1
    assert (
        outline.tags.count("svg") == len(SAMPLES) + three_again_and_the_large_one + len(TOPICS) - 1
    )  # one is formulas


def test_every_topic_has_its_picture_and_its_fact(tour: Tour) -> None:
    for topic in TOPICS:
        section = re.search(rf"<section id='topic-{topic.name}'>(.*?)</section>", tour.page, re.DOTALL)
        assert section is not None
        assert "<svg" in section[1] or "<math" in section[1]
        assert topic.title in tour.out
        assert f"$ {topic.command}" in tour.out


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_commands_of_topics_are_commands(topic: Topic) -> None:
    words = shlex.split(topic.command)
    assert (words[0], words[1] in app.COMMANDS) == ("lattend", True)


def test_every_formula_of_the_page_is_typeset(tour: Tour) -> None:
    tables = re.findall(r"<table class='pieces'>.*?</table>", tour.page)
    assert len(tables) == len(SAMPLES) + 3
    assert [table for table in tables if "<code>" in table] == []
    for markup in re.findall(r"<math.*?</math>", tour.page):
        ElementTree.fromstring(markup)


def test_every_count_equals_enumeration(tour: Tour) -> None:
    assert tour.code == 0
    assert "every count equals enumeration" in tour.out
    assert "Every count equals enumeration." in tour.page
    assert "DIFFERS" not in tour.out


@pytest.mark.parametrize(
    "text",
    [
        ">>> band.count(n=65536, t=255)\n16744576\n",
        "\nn(w + 1)/2                 when w divides n\n",
        r'>>> price.claim(r"\sum_{i=n-t}^{n} i", assuming="t <= n")',
        r"\sum_{i=n-t}^{n} i: holds for n >= 0 and t >= 0 and t <= n",
        '>>> price.claim("n*t")\nn*t: fails;',
        "at n = 5 only 'k <= q and q - k <= 3' has the pair (4, 1)",
        "58,207,870,000 of 1,000,000,000,000 pairs",
    ],
)
def test_terminal(tour: Tour, text: str) -> None:
    assert text in tour.out


@pytest.mark.parametrize(
    "fact",
    [
        "68,702,699,520 multiply-adds that nobody needs",
        "A sheet of course notes, checked to its last digit: 16 numbers: 9 right, 7 slips.",
        "for 512 × 512 pixels 1,023, not 262,144",
        "come back after 6 steps",
    ],
)
def test_facts(tour: Tour, fact: str) -> None:
    assert fact in " ".join(tour.out.split())


def test_a_wrong_count_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from lattend.tour import __main__ as program
    from lattend.tour.entry import CatalogueEntry, measured

    def differing(shown: object) -> CatalogueEntry:
        return replace(measured(SAMPLES[0]), equal=shown is not SAMPLES[1])

    printed: list[str] = []
    monkeypatch.setattr("lattend.tour.terminal.say", printed.append)
    monkeypatch.setattr("lattend.tour.terminal.STATIONS", ())
    monkeypatch.setattr(program, "measured", differing)
    monkeypatch.setattr(program, "SAMPLES", SAMPLES[:2])
    monkeypatch.setattr(program, "TOPICS", ())
    assert program.main(["--out", str(tmp_path / "tour.html")]) == 1
    assert "differ: full" in printed
    assert "These differ: full." in (tmp_path / "tour.html").read_text(encoding="utf-8")


def test_samples_cover_the_catalogue() -> None:
    assert list(catalogue()) == list(CATALOGUE)
    for name in CATALOGUE:
        shown = sample(name)
        assert shown is not None
        assert not shown.rule.at(**shown.at).free


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("12", "<mn>12</mn>"),
        ("-n", "<mrow><mo>−</mo><mi>n</mi></mrow>"),
        ("2n", "<mrow><mn>2</mn><mo>\u2062</mo><mi>n</mi></mrow>"),
        ("rows*cols", "<mrow><mi>rows</mi><mo>·</mo><mi>cols</mi></mrow>"),
        ("n^2/2", "<mfrac><msup><mi>n</mi><mn>2</mn></msup><mn>2</mn></mfrac>"),
        ("(n + 1)/2", "<mfrac><mrow><mi>n</mi><mo>+</mo><mn>1</mn></mrow><mn>2</mn></mfrac>"),
        (
            "N = n // w",
            "<mrow><mi>N</mi><mo>=</mo>"
            "<mrow><mo>⌊</mo><mfrac><mi>n</mi><mi>w</mi></mfrac><mo>⌋</mo></mrow></mrow>",
        ),
        (
            "(n % w)^2",
            "<msup><mrow><mo>(</mo><mrow><mi>n</mi><mo>mod</mo><mi>w</mi></mrow><mo>)</mo></mrow>"
            "<mn>2</mn></msup>",
        ),
        ("0 <= t < n", "<mrow><mn>0</mn><mo>≤</mo><mi>t</mi><mo>&lt;</mo><mi>n</mi></mrow>"),
    ],
)
def test_formulas(text: str, markup: str) -> None:
    found = re.sub(r" (stretchy|lspace|rspace)='[\w.]+'", "", formula(text)).replace("&#x2062;", "\u2062")
    assert found == f"<math>{markup}</math>"


@pytest.mark.parametrize("text", ["n +", "(n", "n)", "n ? 2", "", "n^", "1.5"])
def test_what_is_no_formula_is_shown_as_it_is(text: str) -> None:
    assert formula(text) == f"<code>{text}</code>"


def test_factors_before_the_bar_are_all_above_it() -> None:
    tree = ElementTree.fromstring(formula("w*N(w + 1)/2 + r(r + 1)/2").replace("&#x2062;", "\u2062"))
    bars = list(tree.iter("mfrac"))
    assert ["".join(bar.itertext()).replace("\u2062", "") for bar in bars] == ["wN(w+1)2", "r(r+1)2"]


def _words(markup: str) -> str:
    return " ".join(re.sub(r"<[^>]*>|&#x2062;", " ", markup).split())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 <= t <= n", "0 ≤ t ≤ n"),
        ("w does not divide n and t < n", "w does not divide n and t &lt; n"),
        ("n < w or t >= 2", "n &lt; w or t ≥ 2"),
        ("(r > u and t <= Q) or (N > Q and r <= u)", "r &gt; u and t ≤ Q , or N &gt; Q and r ≤ u"),
    ],
)
def test_conditions(text: str, words: str) -> None:
    assert _words(condition(text)) == words


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("n^2", "n 2"),
        ("c*Q + 1  where Q = q // l", "c Q + 1 where Q = ⌊ q l ⌋"),
        ("t + 1  when t < n\nn - k  otherwise", "t + 1 when t &lt; n n − k otherwise"),
        (
            "F(rows) * F(cols) where F(n) =\n  n^2  when r > n",
            "F ( rows ) F ( cols ) where F ( n ) is n 2 when r &gt; n",
        ),
        ("0", "0"),
    ],
)
def test_counts(printed: str, words: str) -> None:
    assert _words(count(printed)) == words
