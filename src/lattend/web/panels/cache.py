"""cache: which keys a decoder still needs at each position, and how many at most."""

from __future__ import annotations

from pydantic import Field

from lattend.errors import DeadlineError, DomainError, LattendError
from lattend.web.copies import call, command, python
from lattend.web.panel import Answer, Copies, Numbers, Panel, Question
from lattend.web.panels.read import examples
from lattend.web.rules import numbers_of, read

IMPORTS = "from lattend.plans.retention import retention"


class CacheQuestion(Question):
    """A rule, and numbers for its parameters."""

    rule: str
    numbers: Numbers = Field(default_factory=dict)


class CacheAnswer(Answer):
    """`most` is the size of the rolling buffer, "" where it grows with the sequence.

    `examples` are the numbers taken for letters that have none, and must have one; `no_cache` says why tokens
    cannot be decoded one by one.
    """

    examples: dict[str, int]
    most: str
    sentence: str
    no_cache: str


def answer(question: CacheQuestion) -> CacheAnswer:
    """How many keys a KV cache holds at most, when each is dropped after the last query that reaches it."""
    from lattend.plans.retention import retention
    from lattend.report.latex import escape
    from lattend.sets.guard import deadlines_missed

    rule = read(question.rule)
    inner = {axis.queries for axis in rule.axes[1:]}  # an image is read row by row
    wanted = [name for name in rule.free if name in inner or name == "heads" or name in rule.parameters]
    numbers = {name: value for name, value in numbers_of(rule, question.numbers).items() if name in wanted}
    taken = examples(rule, (name for name in wanted if name not in numbers))
    numbers |= taken
    bound = call("lt.rule", question.rule) + (call(".at", **numbers) if numbers else "")
    copies = Copies(
        python=python(f"print(retention({bound}))", imports=IMPORTS),
        command=command("cache", question.rule, at=numbers),
    )
    missed = deadlines_missed()
    try:
        found = retention(rule.at(**numbers))
    except DomainError:
        raise
    except LattendError as reason:
        if deadlines_missed() > missed:  # it is not that there is no cache
            raise DeadlineError(reason.reason) from None
        copies.python = python(
            "try:",
            f"    print(retention({bound}))",
            "except LattendError as reason:",
            '    print(f"no cache: {reason}")',
            imports=f"from lattend.errors import LattendError\n{IMPORTS}",
        )
        return CacheAnswer(examples=taken, most="", sentence="", no_cache=reason.reason, copies=copies)
    most = "" if found.most is None else f"{found.most:,}"
    copies.latex = escape(str(found))
    return CacheAnswer(examples=taken, most=most, sentence=str(found), no_cache="", copies=copies)


PANEL = Panel("cache", "The KV cache that a rule needs", answer)
