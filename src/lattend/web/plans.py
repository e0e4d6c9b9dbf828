"""What the panels about a plan share: the call that is explained, with numbers for every letter."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from lattend.web.panel import Numbers, Question
from lattend.web.panels.read import examples
from lattend.web.rules import numbers_of, read
from lattend.web.threads import as_elsewhere

if TYPE_CHECKING:
    from lattend.attend.explain.explain import Explanation

MOST_HEADS = 1 << 12


class PlanQuestion(Question):
    """A rule, its numbers, and the tensors of a call; `kv_heads` are as many as heads where it is 0."""

    rule: str
    numbers: Numbers = Field(default_factory=dict)
    device: Literal["cpu", "cuda"] = "cpu"
    dtype: Literal["bfloat16", "float16", "float32", "float64"] = "float32"
    head_dim: int = Field(default=64, ge=1, le=1 << 12)
    heads: int = Field(default=8, ge=1, le=MOST_HEADS)
    kv_heads: int = Field(default=0, ge=0, le=MOST_HEADS)
    batch: int = Field(default=1, ge=1, le=1 << 20)
    kernel: Literal["", "sdpa", "triton", "native", "cpu", "dense", "reference"] = ""

    @property
    def options(self) -> dict[str, str | int]:
        """What is not as it is by default, as arguments of explain."""
        given = {name: getattr(self, name) for name in ("device", "dtype", "head_dim", "heads", "kv_heads")}
        given |= {"batch": self.batch, "kernel": self.kernel}
        default = PlanQuestion(rule="")
        return {name: value for name, value in given.items() if value != getattr(default, name)}


def numbers_in(question: PlanQuestion) -> tuple[dict[str, int], dict[str, int]]:
    """The numbers given, and examples for those that have none; sizes have defaults in explain.

    A line is longer than that where the rule's own numbers ask for it.
    """
    from lattend.rules.example_numbers import priced_number

    rule = read(question.rule)
    given = numbers_of(rule, question.numbers)
    taken = examples(rule, (name for name in rule.free if name not in given))
    return given, {
        name: value for name, value in taken.items() if name in rule.parameters or value > priced_number(name)
    }


def open_numbers(question: PlanQuestion, found: Explanation) -> dict[str, int]:
    """The numbers of a call that its rule leaves open."""
    bound = read(question.rule).values
    return {name: value for name, value in found.at.items() if name not in bound}


def explained(question: PlanQuestion) -> Explanation:
    """The explanation of the call, remembered: its map is asked for after it, at one zoom after another."""
    return _explained(question.model_dump_json(include={*PlanQuestion.model_fields}))


@lru_cache(maxsize=8)
def _explained(text: str) -> Explanation:
    from lattend.attend.explain.explain import explain
    from lattend.rules.language.arrays import array_missing

    question = PlanQuestion.model_validate_json(text)
    given, taken = numbers_in(question)
    rule = read(question.rule)
    if rule.open:
        raise array_missing(question.rule, rule.open[0])
    known = given | taken
    bound = rule.at(**{name: value for name, value in known.items() if name in rule.parameters})
    sizes: dict[str, Any] = {name: value for name, value in known.items() if name not in rule.parameters}
    heads = sizes.pop("heads", question.heads)  # a rule that speaks of heads may have its own number
    with as_elsewhere():  # as the copies of the panel
        return explain(
            bound,
            device=question.device,
            dtype=question.dtype,
            head_dim=question.head_dim,
            heads=None if "heads" in rule.values else heads,
            kv_heads=question.kv_heads or None,
            batch=question.batch,
            kernel=question.kernel or None,
            **sizes,
        )
