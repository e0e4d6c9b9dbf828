"""code: the same rule for who goes on elsewhere: Lattend, FlexAttention, NumPy, PyTorch's own attention."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from lattend.web.copies import call, command, python, show
from lattend.web.panel import Answer, Copies, Numbers, Panel, Question
from lattend.web.panels.read import letters
from lattend.web.rules import numbers_of, read

if TYPE_CHECKING:
    from lattend.rules import Rule

MOST_PAIRS = 1 << 24  # of a mask that is printed


class CodeQuestion(Question):
    """A rule, and the numbers given so far; letters without one get an example."""

    rule: str
    numbers: Numbers = Field(default_factory=dict)


class Snippet(BaseModel):
    """Lines that run as they stand."""

    title: str
    code: str


class CodeAnswer(Answer):
    """The rule in several libraries."""

    snippets: list[Snippet]


def answer(question: CodeQuestion) -> CodeAnswer:
    """Attention under the rule in several libraries, and its mask."""
    from lattend.counts.latex import attention_latex
    from lattend.rules.code import mask_mod, numpy_mask

    rule = read(question.rule)
    given = numbers_of(rule, question.numbers)
    examples = {letter.name: letter.example for letter in letters(rule) if letter.value is None}
    numbers = {name: given.get(name, example) for name, example in examples.items()}
    snippets = [Snippet(title="Lattend", code=_attention(question.rule, rule, numbers))]
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
        snippets += [
            Snippet(title="FlexAttention", code=flexible),
            Snippet(title="NumPy", code=numpy_mask(rule, **numbers)),
            Snippet(title="PyTorch SDPA", code=sdpa),
        ]
    return CodeAnswer(
        snippets=snippets,
        copies=Copies(
            python=python(
                call("rule = lt.rule", question.rule),
                *_mask(rule, numbers),
            ),
            command=command("draw", question.rule, at=numbers),
            latex=attention_latex(rule),
        ),
    )


def _mask(rule: Rule, numbers: dict[str, int]) -> list[str]:
    """Lines that print the mask; its picture where it is too large."""
    if rule.at(**numbers).dense > MOST_PAIRS:
        return [show("rule.draw", **numbers)]
    return [f"{call('mask = rule.mask', **numbers)}.astype(int)", "print(mask)"]


def _attention(text: str, rule: Rule, numbers: dict[str, int]) -> str:
    given = {name: value for name, value in numbers.items() if name in rule.parameters}
    made = call("rule = lt.rule", text)
    line = call("out = lt.attention", **given).replace("(", "(query, key, value, rule, ", 1)
    lines = ("import torch", "import lattend as lt", "", made, _tensors(rule, numbers, flat=False))
    return "\n".join((*lines, line.replace(", )", ")")))


def _tensors(rule: Rule, numbers: dict[str, int], *, flat: bool) -> str:
    """Query, key and value of random numbers, in the shape that a call takes."""
    known = {**rule.values, **numbers}
    heads = known.get("heads", 8)
    lengths = ([known[a.queries] for a in rule.axes], [known[a.keys] for a in rule.axes])
    places = [[prod(side)] if flat else side for side in lengths]
    query, key = (", ".join(map(str, (1, heads, *side, 64))) for side in places)
    if query == key:
        return f"query, key, value = torch.randn(3, {query})"
    return f"query = torch.randn({query})\nkey, value = torch.randn(2, {key})"


def _flattened(rule: Rule) -> str:
    if len(rule.axes) == 1:
        return ""
    queries = "*".join(axis.queries for axis in rule.axes)
    keys = "*".join(axis.keys for axis in rule.axes)
    return f".reshape({queries}, {keys})"


PANEL = Panel("code", "A rule as code", CodeQuestion, CodeAnswer, answer, as_typed=True)
