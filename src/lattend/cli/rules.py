"""lattend rules: the catalogue, or one of its rules in full."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lattend.cli.arguments import Json, complete_rule
from lattend.cli.output import say, say_json, width
from lattend.errors import NoClosedForm

if TYPE_CHECKING:
    from lattend.rules import Rule

WIDE = 100  # columns that a table needs


EXAMPLES = (
    "lattend rules",
    "lattend rules windowed",
)


def rules(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", show_default=False, autocompletion=complete_rule, help="One rule in full."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """The rules that have a name.

    What they mean and exactly how many keys a query has; with NAME one of them in full, with its picture.
    """
    from lattend.draw.grid.samples import catalogue

    known = catalogue()
    if name is None:
        if json:
            say_json([_data(key, rule) for key, rule in known.items()])
        else:
            _table(known)
        return
    chosen = _chosen(name, known)
    if json:
        say_json(_data(name, chosen))
    else:
        _full(name, chosen)


def _chosen(name: str, known: dict[str, Rule]) -> Rule:
    from lattend.cli.arguments import read_rule

    return known[name] if name in known else read_rule(name)


def _data(name: str, rule: Rule) -> dict[str, Any]:
    from lattend.rules.language import expr

    about = rule.about
    return {
        "name": about.name if about else name,
        "text": rule.text,
        "meaning": about.meaning if about else "",
        "keys": about.keys if about else "",
        "sizes": rule.sizes,
        "parameters": rule.parameters,
        "domain": expr.text(rule.domain),
        "at": dict(rule.values),
        "aliases": list(about.aliases) if about else [],
        "elsewhere": list(about.elsewhere) if about else [],
        "reference": about.reference if about else "",
    }


def _table(known: dict[str, Rule]) -> None:
    rows = [_data(name, rule) for name, rule in known.items()]
    if width() < WIDE:
        for row in rows:
            say(row["name"] if row is rows[0] else f"\n{row['name']}")
            also = [f"also {', '.join(row['aliases'])}"] if row["aliases"] else []
            for line in (row["text"], row["meaning"], f"keys of a query: {row['keys']}", *also):
                say(textwrap.fill(line, width(), initial_indent="  ", subsequent_indent="    "))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("name", style="bold", no_wrap=True)
    for title, ratio in (("rule", 4), ("meaning", 4), ("keys a query has", 4), ("also called", 3)):
        table.add_column(title, ratio=ratio, overflow="fold")
    for row in rows:
        shown = (*(row[key] for key in ("name", "text", "meaning", "keys")), ", ".join(row["aliases"]))
        table.add_row(*map(_escaped, shown))
    Console(width=width(), highlight=False).print(table)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _full(name: str, rule: Rule) -> None:
    data = _data(name, rule)
    say(textwrap.fill(f"{data['name']}: {data['meaning']}" if data["meaning"] else data["name"], width()))
    say("")
    fields = {
        "rule": data["text"],
        "sizes": ", ".join(data["sizes"]),
        "parameters": ", ".join(data["parameters"]) or "none",
        "defined": data["domain"],
        "given": ", ".join(f"{key} = {value}" for key, value in data["at"].items()),
        "keys": data["keys"] and f"{data['keys']}, for each query",
        "also called": ", ".join(data["aliases"]),
        "elsewhere": "; ".join(data["elsewhere"]),
        "reference": data["reference"],
    }
    for title, text in fields.items():
        if text:
            say(textwrap.fill(text, width(), initial_indent=f"{title:<12}", subsequent_indent=" " * 12))
    try:
        counted = str(rule.count())
    except NoClosedForm as reason:
        counted = str(reason)
    say(textwrap.indent(counted, " " * 12).replace(" " * 12, f"{'count':<12}", 1))
    picture = _picture(rule)
    if picture:
        say(f"\n{picture}")


def _picture(rule: Rule) -> str:
    """The rule at the numbers of its sample, where it has one."""
    from lattend.draw.grid.samples import sample

    shown = sample(rule.about.name) if rule.about else None
    if shown is None:
        return ""
    at = {key: value for key, value in shown.at.items() if key in rule.free}
    return rule.draw(pixel=shown.pixel, **at).terminal() if set(rule.free) <= set(at) else ""
