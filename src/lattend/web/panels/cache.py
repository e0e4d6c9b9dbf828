"""cache: which keys a decoder still needs at each position, and how many at most."""

from __future__ import annotations

from pydantic import Field

from lattend.web.copies import call, python
from lattend.web.panel import Answer, Copies, Numbers, Panel, Question
from lattend.web.rules import numbers_of, read


class CacheQuestion(Question):
    """A rule, and numbers for its parameters."""

    rule: str
    numbers: Numbers = Field(default_factory=dict)


class CacheAnswer(Answer):
    """`most` is the size of the rolling buffer, "" where it grows with the sequence; `missing` are letters
    that need a number first.
    """

    missing: list[str]
    most: str
    sentence: str


def answer(question: CacheQuestion) -> CacheAnswer:
    """How many keys a KV cache holds at most, when each is dropped after the last query that reaches it."""
    from lattend.plans.retention import retention

    rule = read(question.rule)
    inner = {axis.queries for axis in rule.axes[1:]}  # an image is read row by row
    wanted = [name for name in rule.free if name in inner or name == "heads" or name in rule.parameters]
    numbers = {name: value for name, value in numbers_of(rule, question.numbers).items() if name in wanted}
    missing = [name for name in wanted if name not in numbers]
    copies = Copies(
        python=python(
            call("rule = lt.rule", question.rule),
            f"cache = lt.KVCache({call('rule.at', **numbers)}, batch=1, heads=8, head_dim=64)",
        ),
        command="",
    )
    if missing:
        return CacheAnswer(missing=missing, most="", sentence="", copies=copies)
    found = retention(rule, **numbers)
    most = "" if found.most is None else f"{found.most:,}"
    return CacheAnswer(missing=[], most=most, sentence=str(found), copies=copies)


PANEL = Panel("cache", "The KV cache that a rule needs", CacheQuestion, CacheAnswer, answer)
