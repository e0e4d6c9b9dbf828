"""Recognition: the catalogue rule that a condition describes, whatever its parameters are called.

Candidates are the rules of the catalogue with the condition's own letters, numbers and terms of both, or one
more or less, for theirs. Masks at small sizes tell most of them apart; what is left is proved by comparing
the sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DeadlineError, LattendError
from lattend.report.shown import Shown
from lattend.rules.catalogue.entry import RuleInfo
from lattend.rules.catalogue.names import CATALOGUE
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate, evaluate_term
from lattend.rules.language.expr import Arith, Name, Num, Term
from lattend.rules.rule import Rule
from lattend.sets.compare import difference

SMALL = {"n": 11, "m": 11, "rows": 5, "cols": 4, "depth": 3, "heads": 2}
NUMBERS = ((2, 3, 4, 5), (3, 2, 5, 4), (1, 4, 2, 3))  # of the parameters, in the masks that are compared
MOST_NEAR = 12  # positions looked at because the rule has a number near them
MOST_TERMS = 16  # that may stand for a parameter
MOST_PARAMETERS = 4
MOST_ZEROS = 1  # parameters that may be 0: a name of which less is left says little


@dataclass(frozen=True)
class CatalogueMatch(Shown):
    """A catalogue rule, and the term for each of its parameters."""

    about: RuleInfo
    arguments: dict[str, str]

    def __str__(self) -> str:
        numbers = ", ".join(f"{name} = {term}" for name, term in self.arguments.items() if name != term)
        return f"{self.about.name} with {numbers}" if numbers else self.about.name

    @property
    def call(self) -> str:
        """Returns the call as typed, if all parameters are numbers or keep their names; otherwise ""."""
        numbers = {name: term for name, term in self.arguments.items() if term.isdigit()}
        if any(name not in numbers and name != term for name, term in self.arguments.items()):
            return ""
        arguments = ", ".join(f"{name}={number}" for name, number in numbers.items())
        return f"{self.about.name}({arguments})" if arguments else self.about.name


def known_as(rule: Rule) -> CatalogueMatch | None:
    """Returns the catalogue rule with the same pairs for all sizes and parameters, or None.

    None says that none was found among the candidates. Raises DeadlineError where one of them might be it.

    >>> from lattend.rules.reader import rule
    >>> print(known_as(rule("q - k < t and not k > q")))
    strided with t = t - 1
    """
    bare = replace(rule.baked(), values={}, budget=rule.budget.shared())
    if bare.data or bare.open or bare.has_heads or len(bare.parameters) > MOST_PARAMETERS:
        return None
    samples = [*_samples(bare)]
    undecided: DeadlineError | None = None
    for name, make in CATALOGUE.items():
        if name == "documents":  # it is data
            continue
        named = make()
        if named.axes != bare.axes or named.about is None:
            continue
        told_apart: dict[object, bool] = {}
        for terms in _choices(named, bare):
            if not _alike(named, terms, bare, samples, told_apart):
                continue
            try:
                same = _same(named, terms, bare)
            except DeadlineError as late:
                undecided = late
                continue
            if same:
                return CatalogueMatch(
                    named.about, {letter: expr.term_text(term) for letter, term in terms.items()}
                )
    if undecided:
        raise undecided
    return None


@dataclass(frozen=True)
class _Sample:
    """Sample numbers for all letters, sample positions, and the mask of the rule there."""

    values: dict[str, int]
    places: dict[str, NDArray[np.int64]]
    mask: NDArray[np.bool_]


def _samples(rule: Rule) -> Iterator[_Sample]:
    numbers = [node.value for node in expr.walk(rule.condition) if isinstance(node, Num)]
    near = sorted({value + more for value in numbers for more in (-1, 0, 1)})[:MOST_NEAR]
    grid: dict[str, NDArray[np.int64]] = {}
    sizes: dict[str, int] = {}
    for position, size in rule.limits.items():
        size_numbers = sorted({*range(SMALL[size]), *(number for number in near if number >= 0)})
        grid[position], sizes[size] = np.array(size_numbers), size_numbers[-1] + 1
    for parameter_number in NUMBERS:
        values = {**sizes, **dict(zip(rule.parameters, parameter_number, strict=False))}
        yield _Sample(values, grid, _mask(rule.condition, values, grid))


def _mask(
    condition: expr.Condition, values: Mapping[str, int], positions: Mapping[str, NDArray[np.int64]]
) -> NDArray[np.bool_]:
    grid = dict(zip(positions, np.ix_(*positions.values()), strict=True))
    mask = np.asarray(evaluate(condition, {**values, **grid}, {}), bool)
    return np.broadcast_to(mask, [len(each) for each in positions.values()])


def _choices(named: Rule, rule: Rule) -> Iterator[dict[str, Term]]:
    """Yields terms for the parameters of a catalogue rule: letters first, then letters plus or minus one."""
    letters: list[Term] = [Name(name) for name in rule.parameters]
    integer_terms = [*_whole_terms(rule.condition, {*rule.parameters})]
    wanted = named.parameters
    for chosen in permutations(letters, len(wanted)):
        yield dict(zip(wanted, chosen, strict=True))
    numbers = sorted({node.value for node in expr.walk(rule.condition) if isinstance(node, Num)})
    near = [Num(value + more) for value in numbers for more in (0, -1, 1) if value + more >= 0]
    shifted = [_plus(one, more) for one in (*integer_terms, *letters) for more in (-1, 1)]
    terms = list(dict.fromkeys([*letters, *integer_terms, *near, *shifted, Num(0), Num(1)]))[:MOST_TERMS]
    for chosen in product(terms, repeat=len(wanted)):
        if chosen.count(Num(0)) <= MOST_ZEROS:
            yield dict(zip(wanted, chosen, strict=True))


def _whole_terms(condition: expr.Condition, parameters: set[str]) -> Iterator[Term]:
    """The largest terms of parameters and numbers alone, as 2 * t in `q - k <= 2 * t`."""
    stack: list[expr.Node] = [condition]
    while stack:
        node = stack.pop()
        if isinstance(node, Arith) and (used := {*expr.names(node)}) and used <= parameters:
            yield node
        else:
            stack.extend(reversed(expr.children(node)))


def _plus(term: Term, more: int) -> Term:
    """Returns a term plus a number, added to the number at its end if there is one."""
    match term:
        case Arith("+", (first, Num(number))):
            return _plus(first, number + more)
        case Arith("-", (first, Num(number))):
            return _plus(first, more - number)
        case _:
            return Arith("+" if more > 0 else "-", (term, Num(abs(more)))) if more else term


def _alike(
    named: Rule, terms: dict[str, Term], rule: Rule, samples: list[_Sample], known: dict[object, bool]
) -> bool:
    """Whether both say the same at the samples where they are defined; `known` remembers the answers."""
    used = {node.name for term in terms.values() for node in expr.walk(term) if isinstance(node, Name)}
    if not used >= {*rule.parameters}:
        return False
    defined = False
    for index, sample in enumerate(samples):
        numbers = {letter: int(evaluate_term(term, sample.values, {})) for letter, term in terms.items()}
        values = {**sample.values, **numbers}
        if not evaluate(named.domain, values, {}):
            continue
        key = (index, *numbers.values())
        if key not in known:
            mask = _mask(named.condition, values, sample.places)
            known[key] = np.array_equal(mask, sample.mask)
        if not known[key]:
            return False
        defined = True
    return defined


def _same(named: Rule, terms: dict[str, Term], rule: Rule) -> bool:
    renamed = replace(
        named,
        condition=expr.substituted(named.condition, terms),
        where=expr.substituted(named.where, terms),
        about=None,
        source=None,
    )
    try:
        return difference(rule, renamed, rule.budget) is None
    except DeadlineError:
        raise
    except LattendError:  # it could not be proved
        return False
