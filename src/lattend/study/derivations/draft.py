"""Draft: a derivation as it is written down, and `checked`, which checks every line of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from random import Random
from typing import Any, Protocol

import numpy as np

from lattend.counts.terms.notations import PLAIN
from lattend.counts.terms.term import Term, read_term
from lattend.errors import DerivationError
from lattend.study.derivations.derivation import Derivation, DerivedLine
from lattend.study.derivations.evaluation import Environment, define, evaluate
from lattend.study.exact.identity import is_zero, limit
from lattend.study.exact.sign import sign_of
from lattend.study.exact.writing import format_exact

SEED = 14


@dataclass(frozen=True)
class Link:
    """The next line of a chain, why it holds, and where: a condition that the check must find itself."""

    formula: str
    reason: str
    relation: str = "="
    domain: str = ""


class Ground(Protocol):
    """What a chain is checked on."""

    def check(self, before: Term, link: Link, after: Term) -> str:
        """How the link from `before` to `after` was checked; raises DerivationError where it fails."""
        ...


@dataclass(frozen=True)
class Chain:
    """Lines that follow from each other, from a left side on."""

    left: str
    links: Sequence[Link]
    ground: Ground


@dataclass(frozen=True)
class Draft:
    """A derivation before it is checked; `definitions` are (left, right, what it is called)."""

    name: str
    title: str
    given: str
    chains: Sequence[Chain]
    definitions: Sequence[tuple[str, str, str]] = ()
    remark: str = ""
    distributions: str = ""

    def read(self, text: str) -> Term:
        return read_term(text, self.distributions)


def checked(draft: Draft) -> Derivation:
    """The derivation, every line checked; raises DerivationError at the first that fails."""
    definitions = [
        DerivedLine(draft.read(left), "=", draft.read(right), why) for left, right, why in draft.definitions
    ]
    lines: list[DerivedLine] = []
    for chain in draft.chains:
        start = before = draft.read(chain.left)
        for index, link in enumerate(chain.links):
            after = draft.read(link.formula)
            try:
                how = chain.ground.check(before, link, after)
            except DerivationError as error:
                raise DerivationError(f"{draft.name}, line {len(lines) + 1}: {error}") from None
            left = None if index else start
            lines.append(DerivedLine(left, link.relation, after, link.reason, how, link.domain))
            before = after
    return Derivation(draft.name, draft.title, draft.given, tuple(definitions), tuple(lines), draft.remark)


class Instances:
    """Environments in which both sides of a line must have the same value.

    `make` draws one from a random generator; `definitions` are added to it, and each index of `over` takes
    all its values. `grows` is the symbol that grows without end in a limit.
    """

    def __init__(
        self,
        how: str,
        make: Callable[[Random], Environment],
        definitions: Sequence[tuple[str, str, str]] = (),
        *,
        many: int = 1,
        over: Sequence[str] = (),
        grows: str = "",
        distributions: str = "",
    ) -> None:
        self.how, self.make, self.over, self.grows = how, make, over, grows
        self.definitions = [
            (read_term(left, distributions), read_term(right, distributions))
            for left, right, _ in definitions
        ]
        self.many = many
        self._values: dict[Term, list[Any]] = {}

    @cached_property
    def environments(self) -> list[Environment]:
        """All of them, the same at every call."""
        random = Random(SEED)
        drawn: list[Environment] = []
        for _ in range(self.many):
            made = self.make(random)
            for chosen in product(*(made[f"each {index}"] for index in self.over)):
                names = {**made, **dict(zip(self.over, chosen, strict=True))}
                for left, right in self.definitions:
                    define(names, left, right)
                drawn.append(names)
        return drawn

    def values(self, term: Term) -> list[Any]:
        """The term's value in each environment; the next line asks for it again."""
        if term not in self._values:
            self._values[term] = [evaluate(term, names) for names in self.environments]
        return self._values[term]

    def check(self, before: Term, link: Link, after: Term) -> str:
        pairs = list(zip(self.values(before), self.values(after), strict=True))
        if not pairs:
            raise DerivationError(f"{PLAIN.write(after)} is checked on nothing")
        if link.relation == "≠" and any(not _holds(left, "=", right, "") for left, right in pairs):
            return self.how
        for left, right in pairs:
            if not _holds(left, link.relation, right, self.grows):
                sides = [PLAIN.write(side) for side in (before, after)]
                raise DerivationError(
                    f"{sides[0]} {link.relation} {sides[1]} fails {self.how}: "
                    f"the left side is {_shown(left)}, the right side {_shown(right)}"
                )
        return self.how


def _holds(left: Any, relation: str, right: Any, grows: str) -> bool:
    """Whether two values, or arrays of them entry by entry, are so related."""
    if np.shape(left) != np.shape(right):
        return False
    pairs = zip(np.ravel(left), np.ravel(right), strict=True)
    match relation:
        case "=":
            return all(is_zero(a - b) for a, b in pairs)
        case "≥":
            return all(sign_of(a - b) >= 0 for a, b in pairs)
        case "→":
            return all(is_zero(limit(a, grows) - b) for a, b in pairs)
        case _:
            return False


def _shown(value: Any) -> str:
    entries = [format_exact(entry) for entry in np.ravel(value)]
    text = entries[0] if np.ndim(value) == 0 else f"({', '.join(entries)})"
    return text if len(text) <= 80 else f"{text[:77]}..."
