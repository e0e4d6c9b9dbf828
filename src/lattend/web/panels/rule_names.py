"""rules: what the rule is called here and elsewhere, and the same set as the engine writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from lattend.web.copies import call, command, python
from lattend.web.panel import Answer, Copies, Numbers, Panel, Question
from lattend.web.panels.read import examples
from lattend.web.rules import numbers_of, read

if TYPE_CHECKING:
    from lattend.rules import Rule
    from lattend.rules.catalogue.entry import RuleInfo


class NamesQuestion(Question):
    """A rule, and the numbers given so far."""

    rule: str
    numbers: Numbers = Field(default_factory=dict)


class NamesAnswer(Answer):
    """The rule of the catalogue that this is, proved for all sizes, and what others call it.

    `common` is what most people call it, where that is not its name here.
    `call` is its name as it can be typed, "" where its parameters are called otherwise: `arguments` says how.
    `canonical` is the one condition for this set at the numbers of its parameters, those of `examples` where
    they have none; `unknown` says why there is none.
    """

    name: str
    common: str
    call: str
    arguments: dict[str, str]
    meaning: str
    keys: str
    aliases: list[str]
    elsewhere: list[str]
    reference: str
    domain: str
    canonical: str
    unknown: str
    examples: dict[str, int]


def answer(question: NamesQuestion) -> NamesAnswer:
    """The names of a rule, whichever way it was written."""
    from lattend.counts.latex import condition_latex, set_latex
    from lattend.plans.canonical import canonical_form
    from lattend.report.latex import named
    from lattend.rules.language import expr

    rule = read(question.rule)
    about, arguments, typed = _names(rule)
    numbers = numbers_of(rule, question.numbers)
    given = {name: value for name, value in numbers.items() if name in rule.parameters}
    taken = examples(rule, (name for name in rule.free if name in rule.parameters and name not in given))
    found = canonical_form(rule.at(**given, **taken))
    unknown = found.as_written
    domain = rule.formula_domain
    where = "" if domain == expr.Truth(True) else rf", \quad {condition_latex(rule, domain)}"
    return NamesAnswer(
        name=about.name if about else "",
        common=about.common if about else "",
        call=typed,
        arguments=arguments,
        meaning=about.meaning if about else "",
        keys=about.keys if about else "",
        aliases=[*about.aliases] if about else [],
        elsewhere=[*about.elsewhere] if about else [],
        reference=about.reference if about else "",
        domain=expr.text(domain),
        canonical="" if unknown else expr.text(found.condition),
        unknown=unknown,
        examples=taken,
        copies=Copies(
            python=python(
                call("rule = lt.rule", question.rule),
                "print(rule.about or known_as(rule))",
                imports="from lattend.sets.recognise import known_as",
            ),
            command=command("rules", about.name if about else question.rule),
            latex=named([(about.name if about else "attended pairs", set_latex(rule) + where)]),
        ),
    )


def _names(rule: Rule) -> tuple[RuleInfo | None, dict[str, str], str]:
    """What the catalogue says of the rule, its parameters in our letters, and the name as it is typed."""
    if rule.about:
        bound = {name: str(value) for name, value in rule.values.items() if name in rule.parameters}
        return rule.about, bound, ""
    from lattend.sets.recognise import known_as

    found = known_as(rule)
    if found is None:
        return None, {}, ""
    renamed = {name: term for name, term in found.arguments.items() if name != term}
    return found.about, renamed, found.call


PANEL = Panel("rules", "What a rule is called", NamesQuestion, NamesAnswer, answer, as_typed=True)
