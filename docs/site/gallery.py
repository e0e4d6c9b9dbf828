"""The gallery: every rule of the catalogue with its picture, formula, code and paper."""

from __future__ import annotations

from itertools import groupby

from lattend.counts.count import Count
from lattend.draw.grid.samples import SAMPLES, Sample
from lattend.rules import CATALOGUE, RuleInfo

HEAD = """# Gallery of rules

The rules of the catalogue at small sizes: dark squares are attended pairs, queries down and keys across; of
an image, the keys of one pixel. Click one for its closed form, code to copy, its other names, and
the paper it comes from.
[](../docs/rules.md) has the language for rules of your own.
"""


def pages() -> dict[str, str]:
    """The index, a page for each rule, and their pictures."""
    groups = {name: list(some) for name, some in groupby(SAMPLES, key=lambda one: one.name)}
    found = {f"gallery/{name}.md": page(name, groups[name]) for name in CATALOGUE}
    for name, some in groups.items():
        found |= {f"gallery/pictures/{file(name, i)}": one.draw().svg() for i, one in enumerate(some)}
    contents = "\n".join(CATALOGUE)
    cards = "\n".join(card(name, about(some[0])) for name, some in groups.items())
    found["gallery/index.md"] = (
        f"{HEAD}\n::::{{grid}} 2 2 3 3\n:gutter: 3\n\n{cards}\n::::\n\n"
        f"```{{toctree}}\n:hidden:\n\n{contents}\n```\n"
    )
    return found


def card(name: str, said: RuleInfo) -> str:
    """A rule on the index: picture, name, sentence."""
    common = f" ({said.common})" if said.common else ""
    return (
        f":::{{grid-item-card}} {name}{common}\n:link: {name}\n:link-type: doc\n"
        f":img-top: pictures/{file(name, 0)}\n:img-alt: {name}, drawn\n:class-card: rule\n\n"
        f"{sentence(said.meaning)}\n:::\n"
    )


def page(name: str, some: list[Sample]) -> str:
    """A rule and its variants."""
    said = about(some[0])
    parts = [f"# {name}", sentence(said.meaning)]
    if said.common:
        parts.append(f"Most people call it *{said.common}*.")
    for number, one in enumerate(some):
        parts += variant(one, number)
    if said.aliases or said.elsewhere:
        parts.append("## Elsewhere")
        parts.append("\n".join(f"- {text}" for text in (*map(_alias, said.aliases), *said.elsewhere)))
    parts += ["## Where it comes from", f"{said.reference}."]
    parts.append(f"{{py:func}}`lattend.rules.{name}` in the reference has its arguments.")
    return "\n\n".join(parts) + "\n"


def variant(one: Sample, number: int) -> list[str]:
    """One way to write the rule: picture, condition, closed form, code."""
    parts = [f"## {one.note[0].upper()}{one.note[1:]}"] if one.note else []
    if number:
        parts.append(sentence(about(one).meaning))
    parts.append(f"![{one.call}, drawn](pictures/{file(one.name, number)})")
    parts += [f"The rule: `{one.rule.text}`", f"Keys of a query: {keys(about(one).keys)}"]
    parts += ["Attended pairs:", formula(one)]
    return [*parts, f"```python\n{code(one)}\n```"]


def formula(one: Sample) -> str:
    """The closed form, of an image with many pieces that of one axis; a number where the rule is data."""
    found = one.rule.count()
    if not isinstance(found, Count):
        return f"{found:,}, with this data."
    told = found.typeset()
    lines = [rf"{line.formula} & {_condition(line.when)}" for line in told.lines]
    formula = lines[0].partition(" & ")[0] if len(lines) == 1 else _cases(lines)
    where = f"\n\nwhere ${told.where}$." if told.where else ""
    more = f"\n\n{told.more}." if told.more else ""
    return f"$$\n{told.head} {formula}\n$${more}{where}"


def _cases(lines: list[str]) -> str:
    return r"\begin{cases} " + r" \\ ".join(lines) + r" \end{cases}"


def _condition(when: str) -> str:
    return r"\text{otherwise}" if when == "otherwise" else rf"\text{{if }} {when}"


def code(one: Sample) -> str:
    """What one types: the rule, its count, its picture, its attention."""
    numbers = ", ".join(f"{name}={value}" for name, value in one.at.items())
    shape = "[batch, heads, *image, head_dim]" if len(one.rule.axes) > 1 else "[batch, heads, n, head_dim]"
    parameters = ", ".join(f"{name}={one.at[name]}" for name in one.rule.parameters if name in one.at)
    given = f", {parameters}" if parameters else ""
    lines = ["import lattend as lt", "", f'rule = lt.rule("{one.call}")']
    lines += [f"rule.count({numbers})", f"rule.draw({numbers})"]
    return "\n".join([*lines, f"out = lt.attention(q, k, v, rule{given})  # q, k, v: {shape}"])


def about(one: Sample) -> RuleInfo:
    """What the catalogue says of the rule."""
    said = one.rule.about
    assert said is not None  # every rule of the catalogue says what it is
    return said


def keys(text: str) -> str:
    """How many keys a query has, as code where it is a formula."""
    in_words = text.startswith(("as many", "those"))
    return text if in_words else ", ".join(f"`{part}`" for part in text.split("; "))


def _alias(text: str) -> str:
    return f"`{text}`, read here too"


def sentence(text: str) -> str:
    """The text with a capital, unless it begins with a letter of the rule, and a full stop."""
    return f"{text}." if text[1] == " " and text[0] != "a" else f"{text[0].upper()}{text[1:]}."


def file(name: str, number: int) -> str:
    """The picture of a rule's samples, by their number."""
    return f"{name}{number or ''}.svg"
