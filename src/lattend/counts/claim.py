"""Claims: is this formula the count? Proved piece by piece, or refuted with a counterexample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import islice

from lattend.counts.algebra import factored, load
from lattend.counts.conditions import condition_text
from lattend.counts.count import Count
from lattend.counts.formula import Apply, BigO, Formula, Number, Sum, Symbol, walk
from lattend.counts.formula_parser import parse_formula
from lattend.counts.formula_value import value_at
from lattend.counts.growth import judge_growth
from lattend.counts.notation import Notation
from lattend.counts.prove import vanishes
from lattend.counts.symbolic import ONE, Case, cases, split_name
from lattend.counts.verdict import Counterexample, Verdict
from lattend.errors import DeadlineError, NoClosedForm, TextError
from lattend.rules.language.linear import Linear
from lattend.rules.language.polynomial import Polynomial
from lattend.sets import Bound, Region
from lattend.sets.guard import guarded
from lattend.sets.piece import Piece, uncovered

MOST_TRIED = 8_000  # numbers, so that a verdict does not depend on how busy the machine is
MAX_SIZE = 40
MAX_EQUATION = 100
MAX_SLICES = 16


def judge(
    count: Count, text: str, rename: Mapping[str, str] | None = None, values: Mapping[str, int] | None = None
) -> Verdict:
    """The verdict on `text` as a formula for `count`.

    `rename` maps its names to the count's; `values` are numbers for names the count no longer has.
    """
    replacements: dict[str, Formula] = {name: Symbol(new) for name, new in (rename or {}).items()}
    replacements |= {name: Number(Fraction(value)) for name, value in (values or {}).items()}
    known = {*count.names, *count.values, *replacements}
    formula = parse_formula(text, known)
    _check_names(formula, text, known)
    try:
        return guarded(_judge, count, formula, text, replacements, budget=count.budget, loading=load)
    except DeadlineError as reason:
        raise DeadlineError(
            f'formula "{text}": not decided, {reason}; write it with fewer cases, or assume more'
        ) from None


def _judge(count: Count, formula: Formula | BigO, text: str, replacements: dict[str, Formula]) -> Verdict:
    if isinstance(formula, BigO):
        return judge_growth(count, _replaced(formula.body, replacements), text)
    formula = _replaced(formula, replacements)
    try:
        agreed, open_ = _where_equal(count, formula)
    except NoClosedForm as reason:
        found = _counterexample(count, formula, None)
        if found is not None:
            return Verdict(text, "fails", counterexample=found)
        return Verdict(text, "undecided", remaining=str(reason))
    missed = count.closed.domain - agreed
    if missed.is_empty():
        return Verdict(text, "holds", count.domain_text)
    found = _counterexample(count, formula, missed)
    if found is None:
        return Verdict(text, "undecided", _words(count, missed), remaining=" or ".join(open_))
    if agreed.is_empty() or not _grows(count, agreed):
        places = [*([] if agreed.is_empty() else [_words(count, agreed)]), *open_]
        return Verdict(text, "fails", " or ".join(places), found)
    return Verdict(text, "holds only where", _words(count, agreed), found, " or ".join(open_))


def _where_equal(count: Count, formula: Formula) -> tuple[Region, list[str]]:
    """The region where the formula is the count, as far as linear conditions say; and what stays open."""
    zero = uncovered(count.pieces, count.closed.domain)
    agreed = zero - zero
    open_: list[str] = []
    pieces = [*count.closed.pieces, *(Piece(part, Polynomial({})) for part in zero.parts())]
    for piece in pieces:
        for case in cases(formula, piece.region):
            gap = case.above - piece.formula * case.below
            here, rest = _zeros(gap, case)
            agreed = agreed | here
            if rest is not None:
                equation = f"{Notation(count.names, short=False).formula(rest)} == 0"
                place = _words(count, case.region)
                bracketed = f"({place})" if " or " in place else place
                open_.append(f"{equation} and {bracketed}" if place else equation)
    short = [text for text in dict.fromkeys(open_) if len(text) < MAX_EQUATION][:3]
    return agreed, short if len(short) == len(set(open_)) else [*short, "a longer equation holds"]


def _zeros(gap: Polynomial, case: Case) -> tuple[Region, Polynomial | None]:
    """Where `gap` is 0 on the case's region, as far as linear conditions say; and what else may be 0."""
    region = _where_defined(case)
    if vanishes(gap, region):
        return region, None
    found, rest = region - region, ONE
    if region.is_point():
        return found, None
    for factor, _ in factored(gap)[1]:
        here = _zeros_of(factor, region)
        if here is not None:
            found = found | here
        elif vanishes(factor, region):
            return region, None
        else:
            rest = rest * factor
    if rest == ONE:
        return found, None
    slices = _slices(region)
    if slices is None:
        return found, rest
    for part in slices:
        here, left = _zeros(gap, Case(part, case.above, ONE))
        if left is not None:
            return found, rest
        found = found | here
    return found, None


def _zeros_of(factor: Polynomial, region: Region) -> Region | None:
    """Where an irreducible factor is 0, if that is a linear condition: it is linear, or a split size."""
    if factor.degree() == 1:
        return region.where(Bound(factor.as_linear()[0], True))
    for name in region.space.split:
        if factor == split_name(region.space, name):
            for _, atom in region.space.coordinates((name,)):
                region = region.where(Bound(Linear(((atom, 1),)), True))
            return region
    return None


def _slices(region: Region) -> list[Region] | None:
    """The region cut along a direction in which it has few points, if there is one."""
    for polyhedron in region.polyhedra():
        for form, low, high in polyhedron.bounded():
            if high - low < MAX_SLICES:
                values = range(low, high + 1)
                parts = [region.where(Bound(Linear(form.terms, form.constant - v), True)) for v in values]
                inside = [part for part in parts if not part.is_empty()]
                if uncovered([Piece(part, Polynomial({})) for part in inside], region).is_empty():
                    return inside
    return None


def _where_defined(case: Case) -> Region:
    """The case's region without the zeros of the denominator."""
    region = case.region
    for factor, _ in factored(case.below)[1]:
        zeros = _zeros_of(factor, region)
        if zeros is None:
            raise NoClosedForm("it is not known where its denominator is 0")
        region = region - zeros
    return region


def _grows(count: Count, region: Region) -> bool:
    """Whether sizes can be arbitrarily large in the region: equality at n = 0 alone is no success."""
    sizes = set(count.rule.sizes) - set(count.values)
    return not sizes or region.unbounded(sizes)


def _words(count: Count, region: Region) -> str:
    return condition_text(region.within(count.closed.domain).clauses, Notation(count.names, short=False))


def _check_names(formula: Formula | BigO, text: str, known: set[str]) -> None:
    """Raises at a name that is neither the count's nor the index of a sum around it."""
    for node, bound in walk(formula):
        if isinstance(node, Symbol) and node.name not in known | bound:
            start, end = node.span or (0, len(text))
            raise TextError(
                f'formula "{text}": this count has no {node.name}; it has {", ".join(sorted(known))}. '
                f"To use another letter, rename it: rename={{{node.name!r}: 'n'}}",
                text,
                start,
                end,
            )


def _replaced(formula: Formula, replacements: Mapping[str, Formula]) -> Formula:
    """The formula with names replaced; the index of a sum hides a name of the same spelling."""
    match formula:
        case Symbol():
            return replacements.get(formula.name, formula)
        case Number():
            return formula
        case Apply():
            return Apply(
                formula.op, tuple(_replaced(arg, replacements) for arg in formula.args), formula.span
            )
        case Sum():
            low, high = _replaced(formula.low, replacements), _replaced(formula.high, replacements)
            index = formula.variable
            while any(isinstance(new, Symbol) and new.name == index for new in replacements.values()):
                index += "_"  # a replacement must not be caught by the sum
            inner = {**replacements, formula.variable: Symbol(index)}
            return Sum(_replaced(formula.body, inner), index, low, high, formula.span)


def _counterexample(count: Count, formula: Formula, missed: Region | None) -> Counterexample | None:
    """The first numbers, least size first and then parameters in order, where the two differ.

    The least point of `missed`, where they are not known to agree, if the formula is wrong there;
    nothing before it needs a look. Otherwise numbers are tried in order: for a size n every parameter
    runs past n by more than a degree, beyond which a polynomial that agrees cannot differ.
    """
    if missed is not None:
        least = missed.least(count.names)
        if least is not None:
            found = _compared(count, formula, {**count.values, **least})
            if found is not None:
                return found
    margin = 3 + max((piece.formula.degree() for piece in count.closed.pieces), default=0)
    numbers = (abs(int(node.value)) for node, _ in walk(formula) if isinstance(node, Number))
    margin += min(MAX_SIZE, max(numbers, default=0))
    tried = (
        values for size in range(MAX_SIZE) for values in _points(count, count.names, size, size + margin)
    )
    found = (_compared(count, formula, values) for values in islice(tried, MOST_TRIED))
    return next((wrong for wrong in found if wrong is not None), None)


def _compared(count: Count, formula: Formula, values: Mapping[str, int]) -> Counterexample | None:
    exact, claimed = count.number(values), value_at(formula, values)
    if claimed == exact:
        return None
    return Counterexample({name: values[name] for name in count.names}, claimed, exact)


def _points(count: Count, names: list[str], size: int, limit: int) -> Iterator[dict[str, int]]:
    """All values within `limit` whose first name is `size`, in order; only those of the domain."""
    order = sorted(range(-limit, limit + 1), key=lambda value: (value < 0, abs(value)))

    def extended(values: dict[str, int], rest: list[str]) -> Iterator[dict[str, int]]:
        if not rest:
            if count.closed.domain.holds(values):
                yield values
            return
        name = rest[0]
        lowest = 0 if name in count.rule.sizes or name in count.fixed else -limit
        lowest = 1 if name in count.rule.moduli else lowest
        for value in [size] if name == names[0] else order:
            if value >= lowest:
                yield from extended({**values, name: value}, rest[1:])

    yield from extended(dict(count.values), names)
