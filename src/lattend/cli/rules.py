"""lattend rules: the catalogue, or one of its rules in full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from lattend.cli.arguments import complete_rule, read_rule
from lattend.cli.command import Answer, Command, argument
from lattend.cli.output import say, say_json, width
from lattend.errors import NoClosedForm
from lattend.report.report import Report
from lattend.report.table import Facts, Table

if TYPE_CHECKING:
    from lattend.rules import Rule

COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "name": itemgetter("name"),
    "rule": itemgetter("text"),
    "meaning": itemgetter("meaning"),
    "keys a query has": itemgetter("keys"),
    "also called": lambda row: ", ".join(row["aliases"]),
}


@dataclass(frozen=True)
class RulesCommand(Command):
    """The rules that have a name.

    What they mean and exactly how many keys a query has; with NAME one of them in full, with its picture.

        lattend rules
        lattend rules windowed
    """

    name: str | None = argument("[NAME]", "One rule in full.", None, complete=complete_rule)

    def answer(self) -> Answer:
        from lattend.draw.grid.samples import catalogue

        known = catalogue()
        if self.name is None:
            rows = [_data(key, rule) for key, rule in known.items()]
            if self.json:
                say_json(rows)
            else:
                say("\n".join(Table.of(rows, COLUMNS, wraps=True).lines(width())))
            return
        chosen = known[self.name] if self.name in known else read_rule(self.name)
        data = _data(self.name, chosen)
        if self.json:
            say_json(data)
            return
        say(_report(data, chosen).text(width()))
        picture = _picture(chosen)
        if picture:
            say(f"\n{picture}")


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
        "domain": expr.text(rule.formula_domain),
        "at": dict(rule.values),
        "aliases": list(about.aliases) if about else [],
        "elsewhere": list(about.elsewhere) if about else [],
        "reference": about.reference if about else "",
    }


def _report(data: dict[str, Any], rule: Rule) -> Report:
    try:
        counted = str(rule.count())
    except NoClosedForm as reason:
        counted = str(reason)
    facts = {
        "rule": data["text"],
        "sizes": ", ".join(data["sizes"]),
        "parameters": ", ".join(data["parameters"]) or "none",
        "defined": data["domain"],
        "given": ", ".join(f"{key} = {value}" for key, value in data["at"].items()),
        "keys": data["keys"] and f"{data['keys']}, for each query",
        "also called": ", ".join(data["aliases"]),
        "elsewhere": "; ".join(data["elsewhere"]),
        "reference": data["reference"],
        "count": counted,
    }
    title = f"{data['name']}: {data['meaning']}" if data["meaning"] else data["name"]
    return Report(title, [Facts([(name, text) for name, text in facts.items() if text])])


def _picture(rule: Rule) -> str:
    """The rule at the numbers of its sample, where it has one."""
    from lattend.draw.grid.samples import sample

    shown = sample(rule.about.name) if rule.about else None
    if shown is None:
        return ""
    at = {key: value for key, value in shown.at.items() if key in rule.free}
    return rule.draw(pixel=shown.pixel, **at).terminal() if set(rule.free) <= set(at) else ""
