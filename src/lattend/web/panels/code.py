"""rules, code: the names of a rule here and in other libraries, and the rule as their code."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from lattend.cli.draw import DrawCommand
from lattend.cli.rules import RulesCommand
from lattend.web.panel import Answer, AnswerPart, Panel
from lattend.web.rules import RuleQuestion, examples, letters, numbers_of, read
from lattend.web.snippets import call, command, show, snippets

if TYPE_CHECKING:
    from lattend.rules import Rule
    from lattend.rules.catalogue.entry import RuleInfo


class NamesAnswer(Answer):
    """The catalogue's rule that equals this one, proved for all sizes, and its names elsewhere.

    `common` is what most people call it, where that is not its name here.
    `call` is its name as it can be typed, "" where its parameters are called otherwise: `arguments` says how.
    `canonical` is the one condition for this set at the numbers of its parameters, those of `examples` where
    they have none; `unknown` says why there is none.
    """

    name: str = ""
    common: str = ""
    call: str
    arguments: dict[str, str]
    meaning: str = ""
    keys: str = ""
    aliases: list[str] = []
    elsewhere: list[str] = []
    reference: str = ""
    domain: str
    canonical: str
    unknown: str
    examples: dict[str, int]


def answer_rule_names(question: RuleQuestion) -> NamesAnswer:
    """The names of a rule, however it is written."""
    from lattend.counts.latex import condition_latex, set_latex
    from lattend.plans.canonical import canonical_form
    from lattend.report.latex import named
    from lattend.rules.language import expr

    rule = read(question.rule)
    about, arguments, typed = _catalogue_names(rule)
    numbers = numbers_of(rule, question.numbers)
    parameters = {name: value for name, value in numbers.items() if name in rule.parameters}
    taken = examples(rule, (name for name in rule.free if name in rule.parameters and name not in parameters))
    canonical = canonical_form(rule.at(**parameters, **taken))
    unknown = canonical.as_written
    domain = rule.formula_domain
    where = "" if domain == expr.Truth(True) else rf", \quad {condition_latex(rule, domain)}"
    return NamesAnswer.view_of(
        about,
        call=typed,
        arguments=arguments,
        domain=expr.text(domain),
        canonical="" if unknown else expr.text(canonical.condition),
        unknown=unknown,
        examples=taken,
        copies=snippets(
            call("rule = lt.rule", question.rule),
            "print(rule.about or known_as(rule))",
            imports="from lattend.sets.recognise import known_as",
            command=command(RulesCommand, name=about.name if about else question.rule),
            latex=named([(about.name if about else "attended pairs", set_latex(rule) + where)]),
        ),
    )


def _catalogue_names(rule: Rule) -> tuple[RuleInfo | None, dict[str, str], str]:
    """The catalogue's entry of a rule, its parameters in the catalogue's letters, and its name as typed."""
    if rule.about:
        bound = {name: str(value) for name, value in rule.values.items() if name in rule.parameters}
        return rule.about, bound, ""
    from lattend.sets.recognise import known_as

    known = known_as(rule)
    if known is None:
        return None, {}, ""
    renamed = {name: term for name, term in known.arguments.items() if name != term}
    return known.about, renamed, known.call


RULE_NAMES = Panel("rules", "What a rule is called", answer_rule_names, as_typed=True)


MOST_PAIRS = 1 << 24  # of a mask that is printed


class CodeSample(AnswerPart):
    """Code that runs as it is."""

    title: str
    code: str


class CodeAnswer(Answer):
    """The rule in several libraries."""

    snippets: list[CodeSample]


def answer_code(question: RuleQuestion) -> CodeAnswer:
    """Attention under the rule in several libraries, and its mask."""
    from lattend.counts.latex import attention_latex
    from lattend.rules.code import mask_mod, numpy_mask

    rule = read(question.rule)
    typed = numbers_of(rule, question.numbers)
    examples = {letter.name: letter.example for letter in letters(rule) if letter.value is None}
    numbers = {name: typed.get(name, example) for name, example in examples.items()}
    samples = [CodeSample(title="Lattend", code=_attention(question.rule, rule, numbers))]
    if not rule.data and not rule.open:
        sdpa = "\n".join(
            (
                numpy_mask(rule, **numbers),
                "",
                "import torch",
                "from torch.nn.functional import scaled_dot_product_attention",
                "",
                _tensors(rule, numbers, flat=True),
                f"attended = torch.from_numpy(mask){_flattened(rule)}",
                "out = scaled_dot_product_attention(query, key, value, attn_mask=attended)",
            )
        )
        flexible = mask_mod(rule, **numbers).replace(
            "\nout = ", f"\n{_tensors(rule, numbers, flat=True)}\nout = "
        )
        samples += [
            CodeSample(title="FlexAttention", code=flexible),
            CodeSample(title="NumPy", code=numpy_mask(rule, **numbers)),
            CodeSample(title="PyTorch SDPA", code=sdpa),
        ]
    return CodeAnswer(
        snippets=samples,
        copies=snippets(
            call("rule = lt.rule", question.rule),
            *_mask(rule, numbers),
            command=command(DrawCommand, question, at=numbers),
            latex=attention_latex(rule),
        ),
    )


def _mask(rule: Rule, numbers: dict[str, int]) -> list[str]:
    """Lines that print the mask; its picture where it is too large."""
    if rule.at(**numbers).dense > MOST_PAIRS:
        return [show("rule.draw", **numbers)]
    return [f"{call('mask = rule.mask', **numbers)}.astype(int)", "print(mask)"]


def _attention(text: str, rule: Rule, numbers: dict[str, int]) -> str:
    parameters = {name: value for name, value in numbers.items() if name in rule.parameters}
    made = call("rule = lt.rule", text)
    line = call("out = lt.attention", **parameters).replace("(", "(query, key, value, rule, ", 1)
    lines = ("import torch", "import lattend as lt", "", made, _tensors(rule, numbers, flat=False))
    return "\n".join((*lines, line.replace(", )", ")")))


def _tensors(rule: Rule, numbers: dict[str, int], *, flat: bool) -> str:
    """Query, key and value of random numbers, in the shape that a call takes."""
    known = {**rule.values, **numbers}
    heads = known.get("heads", 8)
    lengths = ([known[a.queries] for a in rule.axes], [known[a.keys] for a in rule.axes])
    shapes = [[prod(side)] if flat else side for side in lengths]
    query, key = (", ".join(map(str, (1, heads, *side, 64))) for side in shapes)
    if query == key:
        return f"query, key, value = torch.randn(3, {query})"
    return f"query = torch.randn({query})\nkey, value = torch.randn(2, {key})"


def _flattened(rule: Rule) -> str:
    if len(rule.axes) == 1:
        return ""
    queries = "*".join(axis.queries for axis in rule.axes)
    keys = "*".join(axis.keys for axis in rule.axes)
    return f".reshape({queries}, {keys})"


CODE = Panel("code", "A rule as code", answer_code, as_typed=True)
