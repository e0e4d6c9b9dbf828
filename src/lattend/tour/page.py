"""The page of the tour: one HTML file that needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

import lattend as lt
from lattend.counts.terms import typeset
from lattend.tour.entry import CatalogueEntry
from lattend.tour.topics import Visit

FIGURES = ("causal", "strided", "windowed")
CLAIMS = (
    ("strided", "(2n - t)(t + 1)/2", "t <= n"),
    ("strided", "n*t + n - t^2/2 - t/2", "t <= n"),
    ("strided", "sum(i, i, n - t, n)", "t <= n"),
    ("strided", "sum(i, i, n - t, n)", None),
    ("strided", "n*t", None),
    ("windowed", "n*(w + 1)/2", "w | n"),
    ("windowed", "n*(w + 1)/2", None),
    ("causal", "n^2/2", None),
    ("causal", "O(n^2)", None),
    ("causal", "O(n)", None),
)
MARKS = {"holds": "yes", "holds only where": "partly", "fails": "no", "undecided": "open"}


def page(entries: Sequence[CatalogueEntry], visits: Sequence[Visit]) -> str:
    """The whole page as HTML."""
    style = files("lattend.tour").joinpath("page.css").read_text(encoding="utf-8")
    wrong = [entry.sample.call for entry in entries if not entry.equal]
    pairs = sum(entry.check.pairs for entry in entries if entry.check is not None)
    result = f"These differ: {escape(', '.join(wrong))}." if wrong else "Every count equals enumeration."
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Lattend: who attends to whom, and what it costs</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>Who attends to whom, and what it costs</h1>
<p>A rule says which keys a query attends to. From the rule alone follow its picture and its exact price: the
number of attended pairs, as a formula together with the places where it holds.</p>
<p>{len(entries)} rules, {pairs:,} pairs enumerated. {result} Times are those of this run:
from the rule to its formula with nothing remembered, the middle one of three.</p>
<nav>{_topic_links(visits)}</nav>
<nav>{_links(entries)}</nav>
</header>
<main>
<section><h2>Three figures</h2><div class="figures">{_figures(entries)}</div></section>
<section><h2>Is this formula right?</h2>
<p>A claim is proved piece by piece, or refuted with the smallest counterexample.</p>{_claims()}</section>
{"".join(map(_topic, visits))}
<section><h2>The catalogue</h2>{"".join(map(_article, entries))}</section>
<section><h2>A million positions</h2>{_large()}</section>
</main>
<footer><p>Lattend {lt.__version__}, written by <code>make demo</code>.</p></footer>
</body>
</html>
"""


def _anchor(entry: CatalogueEntry) -> str:
    return "".join(c if c.isalnum() else "-" for c in entry.sample.call).strip("-")


def _links(entries: Sequence[CatalogueEntry]) -> str:
    seen: set[str] = set()
    links: list[str] = []
    for entry in entries:
        if entry.sample.name not in seen:
            seen.add(entry.sample.name)
            links.append(f'<a href="#{_anchor(entry)}">{entry.sample.name}</a>')
    return " ".join(links)


def _figures(entries: Sequence[CatalogueEntry]) -> str:
    chosen = [entry for name in FIGURES for entry in entries if entry.sample.call == name]
    return "".join(
        f"<figure>{entry.sample.draw().svg()}<figcaption>{typeset.count(entry.printed)}</figcaption></figure>"
        for entry in chosen
    )


def _claims() -> str:
    rows: list[str] = []
    for name, claim, assuming in CLAIMS:
        verdict = lt.rule(name).count().claim(claim, assuming=assuming)
        sentence = str(verdict).removeprefix(f"{claim}: ")
        when = f" where {typeset.condition(assuming.replace('|', 'divides'))}" if assuming else ""
        rows.append(
            f"<tr class='{MARKS[verdict.status]}'><td>{name}</td><td><code>{escape(claim)}</code>{when}</td>"
            f"<td><span class='mark'>{MARKS[verdict.status]}</span></td><td>{escape(sentence)}</td></tr>"
        )
    head = "<tr><th>rule</th><th>claim</th><th></th><th>verdict</th></tr>"
    return f"<div class='scroll'><table class='claims'>{head}{''.join(rows)}</table></div>"


def _topic_links(visits: Sequence[Visit]) -> str:
    return " ".join(f'<a href="#topic-{one.topic.name}">{escape(one.topic.title)}</a>' for one in visits)


def _topic(one: Visit) -> str:
    """A topic beyond rules: its picture beside the code, what that printed, and the fact."""
    code = "\n".join("\n".join(filter(None, (f">>> {line}", printed))) for line, printed in one.printed)
    return (
        f"<section id='topic-{one.topic.name}'><h2>{escape(one.topic.title)}</h2>"
        f"<p>{escape(one.topic.about)}</p><p class='fact'>{escape(one.fact)}</p>"
        f"<div class='topic'><figure>{_drawn(one.picture)}</figure><pre>{escape(code)}</pre></div>"
        f"<p><code>{escape(one.topic.command)}</code></p></section>"
    )


def _drawn(figure: Any) -> str:
    return figure.svg() if hasattr(figure, "svg") else figure._repr_html_()


def _article(entry: CatalogueEntry) -> str:
    about = entry.rule.about
    note = f" <span class='note'>{escape(entry.sample.note)}</span>" if entry.sample.note else ""
    facts = {
        "Rule": f"<code>{escape(entry.rule.text)}</code>",
        "Keys per query": _code(about.keys) if about else "",
        "Pairs": typeset.count(entry.printed),
        "Defined": typeset.condition(entry.domain),
        "In numbers": f"{entry.value:,} pairs at {escape(entry.numbers)}",
        "Check": f"<span class='{'yes' if entry.equal else 'no'}'>{escape(entry.verdict)}</span>",
        "Time": entry.time,
        "Source": escape(about.reference) if about else "",
    }
    rows = "".join(f"<dt>{title}</dt><dd>{text}</dd>" for title, text in facts.items() if text)
    return (
        f"<article id='{_anchor(entry)}'><h3><code>{escape(entry.sample.call)}</code>{note}</h3>"
        f"<p>{_sentence(about.meaning) if about else ''}</p>"
        f"<div class='pair'><figure>{entry.sample.draw().svg()}</figure><dl>{rows}</dl></div></article>"
    )


def _code(text: str) -> str:
    """The text as code, unless it is words."""
    return (
        escape(text) if re.search(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}", text) else f"<code>{escape(text)}</code>"
    )


def _sentence(text: str) -> str:
    """The text as a sentence, with what stands in `backticks` as code."""
    coded = re.sub(r"`(\w+)`", r"<code>\1</code>", escape(text))
    letter = re.match(r"\w\b", coded) is not None  # a parameter's name keeps its case
    return f"{coded}." if letter and not coded.startswith("a ") else f"{coded[:1].upper()}{coded[1:]}."


def _large() -> str:
    rule = lt.rules.sparse_strided()
    picture = rule.draw(n=1_000_000, l=60_000)
    value = rule.count(n=10**12, l=10**6)
    return (
        f"<p>Tiles are shaded by how full they are, from the formula: no pair is enumerated.</p>"
        f"<figure>{picture.svg()}</figure><p>At n = 10<sup>12</sup> and l = 10<sup>6</sup> "
        f"<code>sparse_strided</code> attends to exactly {value:,} pairs.</p>"
    )
