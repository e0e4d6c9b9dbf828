"""Drafts of derivations: written down, checked line by line, tried with lines changed; derive by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from itertools import product
from random import Random
from typing import Any, Literal, Protocol

import numpy as np

from lattend.counts.terms.notations import PLAIN
from lattend.counts.terms.term import Term, read_term
from lattend.errors import DerivationError, DomainError, LattendError, NamingError, TextError
from lattend.study.derivations.derivation import Derivation, DerivedLine
from lattend.study.derivations.evaluation import Environment, define, evaluate
from lattend.study.exact.sign import is_zero, limit, sign_of
from lattend.study.exact.writing import format_exact
from lattend.wording import close_names, cut

SEED = 14


@dataclass(frozen=True)
class Link:
    """The next line of a chain, why it holds, and where: a condition that the check must find itself."""

    formula: str
    reason: str
    relation: str = "="
    domain: str = ""


class Ground(Protocol):
    """The protocol of a check: the cases that every line of a chain must hold on."""

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


Verdict = Literal["holds", "refuted", "unread"]
# What a formula of another kind than its line may raise where it is worked out
NO_VALUE = (TypeError, ValueError, IndexError, KeyError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True)
class TriedLine:
    """A line as it was typed, and what became of it.

    `line` is None where it was not read; then `place` has the characters that the words speak of. A line
    that holds says how it was checked, a refuted one what both sides are.
    """

    text: str
    line: DerivedLine | None
    verdict: Verdict
    said: str
    place: tuple[int, int] = (0, 0)


def tried(draft: Draft, changes: Mapping[int, str] | None = None) -> list[TriedLine]:
    """Every line of the draft, those in `changes` by number from 1 with other right sides.

    A line is judged as it follows from the one before, so that a wrong line refutes itself and, where the
    next one was right, the next.

    >>> from lattend.study.derivations.draft import draft
    >>> [line.verdict for line in tried(draft("causal")(), {6: "n (n - 1)/2"})][-2:]
    ['holds', 'refuted']
    """
    changed = dict(changes or {})
    total = sum(len(chain.links) for chain in draft.chains)
    for number in changed:
        if not 1 <= number <= total:
            raise DomainError(f"{draft.name} has lines 1 to {total}, and no {number}")
    lines: list[TriedLine] = []
    for chain in draft.chains:
        before = draft.read(chain.left)
        for index, link in enumerate(chain.links):
            text = changed.get(len(lines) + 1, link.formula)
            left = None if index else draft.read(chain.left)
            lines.append(_tried(draft, chain, left, before, replace(link, formula=text)))
            line = lines[-1].line
            before = before if line is None else line.right
    return lines


def _tried(draft: Draft, chain: Chain, left: Term | None, before: Term, link: Link) -> TriedLine:
    text = link.formula
    try:
        after = draft.read(text)
    except TextError as error:
        return TriedLine(text, None, "unread", error.message, (error.start, error.end))
    line = DerivedLine(left, link.relation, after, link.reason, "", link.domain)
    try:
        how = chain.ground.check(before, link, after)
    except TextError as error:
        return TriedLine(text, line, "refuted", error.message, (error.start, error.end))
    except LattendError as error:
        return TriedLine(text, line, "refuted", str(error))
    except NO_VALUE:
        no_value = f"{PLAIN.write(after)} has no value of the kind that this line is of"
        return TriedLine(text, line, "refuted", no_value)
    return TriedLine(text, replace(line, checked=how), "holds", how)


# The file that each one is written in, in the order they are listed
HOMES: Mapping[str, str] = {
    "causal": "pair_sums",
    "strided": "pair_sums",
    "windowed": "pair_sums",
    "mhsa": "heads",
    "quadratic": "heads",
    "limit": "heads",
    "convolution": "convolutions",
    "flip": "convolutions",
    "naive": "pair_sums",
    "rnn2d": "pair_sums",
    "steer": "heads",
    "elbo": "evidence",
    "game": "game_step",
}


def derive(name: str, **options: Any) -> Derivation:
    """The derivation of this name, every line of it checked.

    >>> derivation = derive("causal")
    >>> print(derivation.lines[-1])
    = n(n + 1)/2
    >>> print(derivation.lines[-1].checked)
    proved to be the number of pairs where n >= 0
    """
    return checked(draft(name)(**options))


def draft(name: str) -> Callable[..., Draft]:
    """The function that writes down the derivation of this name."""
    if name not in HOMES:
        close = close_names(str(name).lower(), HOMES)
        hint = f"did you mean {close[0]}? There" if close else "there"
        raise NamingError(f'there is no derivation "{cut(str(name))}"; {hint} are {", ".join(HOMES)}')
    return getattr(import_module(f"lattend.study.derivations.{HOMES[name]}"), name)


def listed() -> dict[str, str]:
    """Every name and what is derived."""
    return {name: (draft(name).__doc__ or "").splitlines()[0].rstrip(".") for name in HOMES}
