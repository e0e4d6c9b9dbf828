"""Count: the number of attended pairs, as formulas with the regions where they hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, overload

from lattend.budget import DEFAULT, Budget
from lattend.counts.algebra import as_sympy, load
from lattend.counts.closed import Closed, at_sizes
from lattend.counts.display import PieceText, Typeset, as_latex, as_text, format_pieces, typeset
from lattend.errors import DeadlineError, DomainError, NamingError, NoClosedForm, NotAffineError
from lattend.report.shown import Shown
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.expr import Condition, Truth
from lattend.rules.language.linear import Linear, declared_ranges
from lattend.rules.language.parser import parse_assumption
from lattend.rules.rule import Rule, check_integer
from lattend.sets import Bound, Region, region_of
from lattend.sets.guard import guarded
from lattend.sets.region import Piece, uncovered
from lattend.wording import many

if TYPE_CHECKING:
    from sympy import Expr  # pyright: ignore[reportMissingTypeStubs]  (it has none)

    from lattend.counts.growth import Growth
    from lattend.counts.verdict import Verdict


@dataclass(frozen=True, eq=False)
class Count(Shown):
    """A piecewise closed form; a region of its domain without a piece counts 0.

    A parameter is at least 0 unless its rule or an assumption says otherwise: `where="t >= -3"`. Numbers
    below 0 are still counted, from the set itself.

    >>> from lattend.rules.reader import rule
    >>> rule("k <= q and q - k <= t").count()
    (2n - t)(t + 1)/2  when t <= n
    n(n + 1)/2         when t > n
    """

    rule: Rule
    closed: Closed
    fixed: tuple[str, ...] = ()
    values: Mapping[str, int] = field(default_factory=dict[str, int])
    assumed: tuple[str, ...] = ()
    budget: Budget = DEFAULT  # of each question that is asked of it
    first: int = 0  # the number of the first position, where it is counted per query or per key
    otherwise: str = "0"  # what it is where no piece holds; other words than 0 say that there is no number

    @property
    def names(self) -> list[str]:
        """The names in the formula: sizes, parameters, and the position it is counted per."""
        known = (*self.rule.sizes, *self.rule.parameters, *self.fixed)
        return [name for name in known if name not in self.values]

    @property
    def pieces(self) -> list[Piece]:
        """The formulas and the regions where they hold."""
        return self.closed.pieces

    # Numbers

    @overload
    def at(self, /, *, n: int, **values: int) -> int: ...  # pyright: ignore[reportOverlappingOverload]
    @overload
    def at(self, /, *, rows: int, cols: int, **values: int) -> int: ...  # pyright: ignore[reportOverlappingOverload]
    @overload
    def at(self, /, **values: int) -> Count: ...  # pyright: ignore[reportOverlappingOverload]
    def at(self, /, **values: int) -> Count | int:
        """Returns the count with these values: an int if all names have one, otherwise a Count."""
        return self.bound(values)

    __call__ = at

    def bound(self, values: Mapping[str, int]) -> Count | int:
        """The same, for values in a mapping."""
        for name in values:
            if name in self.values:
                raise NamingError(f"{name} already has the value {self.values[name]}; give it once")
        positions = {name: value for name, value in values.items() if name in self.fixed}
        for name, value in positions.items():
            check_integer(name, value)
        rest = {name: value for name, value in values.items() if name not in self.fixed}
        bound = self.rule.at(**{name: v for name, v in rest.items() if name not in self.rule.values})
        known = {**self.values, **bound.values, **positions}
        if all(name in known for name in (*self.rule.sizes, *self.rule.parameters, *self.fixed)):
            return self.number(known)
        count = self._derived_again(bound) if self._is_outside(rest) else self.restricted(known)
        return replace(count, values={**count.values, **known}, rule=bound)

    def number(self, values: Mapping[str, int]) -> int:
        """The count at values for every name, which must lie in the rule's domain."""
        values = {**self.values, **values}
        self._check_positions(values)
        if not all(evaluate(parse_assumption(text), values, {}) for text in self.assumed):
            numbers = ", ".join(f"{name} = {values[name]}" for name in self.names)
            raise DomainError(f"{numbers} contradicts the assumption {' and '.join(self.assumed)}")
        if self._is_outside(values):
            from lattend.counts.counting import number_at

            rule = self.rule.at(**{name: values[name] for name in self.rule.free})
            positions = {name: values[name] for name in self.fixed}
            return number_at(rule, self.fixed, positions, self.first, self.budget)
        for piece in self.closed.pieces:
            if piece.region.holds(values):
                number = piece.formula.value(values)
                if number != int(number):
                    numbers = ", ".join(f"{name} = {values[name]}" for name in self.names)
                    raise DomainError(f"at {numbers} a size is not a whole number")
                return int(number)
        if self.otherwise != "0":
            numbers = ", ".join(f"{name} = {value}" for name, value in values.items())
            raise DomainError(f"{self.otherwise} at {numbers}, so there is no number to give")
        return 0

    def _is_outside(self, values: Mapping[str, int]) -> bool:
        """Whether a parameter is below 0, where these formulas say nothing."""
        negative = {name for name in self.closed.space.parameters if values.get(name, 0) < 0}
        return bool(negative) and not negative <= self.closed.signed

    def _check_positions(self, values: Mapping[str, int]) -> None:
        for axis in self.rule.axes:
            for position, size in ((axis.query, axis.queries), (axis.key, axis.keys)):
                last = values[size] - 1 + self.first
                if position in self.fixed and not self.first <= values[position] <= last:
                    raise DomainError(f"{position} = {values[position]} lies outside {self.first} … {last}")

    def restricted(self, values: Mapping[str, int]) -> Count:
        """The count with only the pieces that can hold at these values."""
        split = self.closed.space.split
        # With its modulus unknown, no linear condition says that a split size is 64
        known = {name: value for name, value in values.items() if split.get(name, name) in values}
        if not known:
            return self
        return replace(self, closed=guarded(at_values, self.closed, known, budget=self.budget))

    def _in_numbers(self) -> Count:
        """Returns the count with bound parameters written into the rule, to say `4 | n` at w = 4."""
        from lattend.counts.counting import closed_count

        if self.assumed or not any(name in self.values for name in self.rule.parameters):
            return self
        return replace(
            closed_count(self.rule.baked(), self.fixed, self.budget, self.first), values=self.values
        )

    def with_sizes(self) -> Count:
        """The same count without the blocks of sizes that have numbers: at n = 12, n // w is 12, 6, 4, ….

        A condition on w can then say where `w*(n // w) + n % w` is 12.
        """
        split = self.closed.space.split
        sizes = {n: v for n, v in self.values.items() if n in split and split[n] not in self.values}
        return replace(self, closed=at_sizes(self.closed, sizes)) if sizes else self

    def counted_from(self, first: int) -> Count:
        """The same count per query or per key, with positions that begin at another number."""
        return replace(self, first=first)._derived_again(self.rule)

    def related(self) -> Iterator[tuple[Count, str]]:
        """Yields other counts of the same rule that a formula may be, with their descriptions."""
        from lattend.counts.counting import closed_count

        if not self.rule.axes:
            return  # a cost, whose names stand where a count has its rule
        with suppress(NoClosedForm, NotAffineError):
            if self.fixed:
                total = closed_count(self.rule, (), self.budget)
                yield total, f"the count of all pairs, not per {'query' if self._is_per_query else 'key'}"
            dense = closed_count(
                replace(self.rule, condition=Truth(True)), self.fixed, self.budget, self.first
            )
            yield dense, "the dense count, of all pairs whether attended or not"

    @property
    def _is_per_query(self) -> bool:
        return self.rule.axes[0].query in self.fixed

    # Questions

    def assuming(self, text: str) -> Count:
        """The count where `text` holds: "t < n", "w | n" (w divides n), several joined by commas.

        >>> from lattend.rules.reader import rule
        >>> rule("k <= q and q - k <= t").count().assuming("0 <= t < n")
        (2n - t)(t + 1)/2
        """
        text = self._with_numbers(text)
        condition = parse_assumption(text)
        unknown = [name for name in expr.names(condition) if name not in self.names]
        if unknown:
            raise NamingError(
                f'assumption "{text}": this count has no {unknown[0]}; it has {", ".join(self.names)}'
            )
        below = {name for name, below in declared_ranges(condition).items() if below} - self.closed.signed
        if below & set(self.rule.parameters) - declared_ranges(self.rule.domain).keys():
            return self._derived_again(replace(self.rule, where=expr.all_of(self.rule.where, condition)))
        count = self._in_numbers()
        closed = guarded(assumed, count.closed, condition, text, budget=self.budget)
        return replace(count, closed=closed, assumed=(*self.assumed, text))

    def _with_numbers(self, text: str) -> str:
        """An assumption with numbers for the names that have one: `w | 12` for `w | n` at n = 12."""
        for name in {*expr.names(parse_assumption(text))} & self.values.keys():
            value = self.values[name]
            text = re.sub(rf"\b{name}\b", f"({value})" if value < 0 else f"{value}", text)
        return text

    def _derived_again(self, rule: Rule) -> Count:
        """The count of the rule with other numbers, or on another domain, under the same assumptions."""
        from lattend.counts.counting import closed_count

        count = closed_count(rule, self.fixed, self.budget, self.first)
        for text in self.assumed:
            count = count.assuming(text)
        return count

    def order(self, *variables: str) -> Growth:
        """Returns the big-O of the count as `variables`, by default all names, grow."""
        from lattend.counts.growth import growth

        return guarded(growth, self, variables, budget=self.budget)

    def claim(
        self,
        formula: str,
        *,
        assuming: str | None = None,
        rename: Mapping[str, str] | None = None,
        exact: bool = False,
    ) -> Verdict:
        """Whether `formula` is this count: proved, or refuted with the smallest counterexample.

        It may be a chain of equations, "N = 1 + 2 + … + n = n(n + 1)/2", each of which is judged, or an
        order: O, Θ, Ω, o or ω. `rename` maps its names to the count's, or to formulas of them: {"L": "n"}.
        The verdict is true as a condition when the formula is the count. That on an order raises if it is
        taken for a condition: ask for its `holds`. With `exact=True` an order fails.

        >>> from lattend.rules.reader import rule
        >>> rule("k <= q").count().claim("n^2/2")
        n^2/2: fails; it agrees only where n == 0; at n = 1 it gives 1/2, the count is 1
        """
        from lattend.counts.claim import judge

        count = self.assuming(assuming) if assuming else self._in_numbers()
        return judge(count, formula, rename, self.values, exact=exact)

    # Forms

    def format_pieces(self, *, latex: bool = False, short: bool = True) -> tuple[list[PieceText], str]:
        """Returns the printed pieces, and the meaning of their short names (N = n // w)."""
        return guarded(format_pieces, self, latex, short, budget=self.budget, loading=load)

    def typeset(self) -> Typeset:
        """Returns the count for a page: LaTeX for each piece, and the whole count as text and as LaTeX."""
        return guarded(typeset, self, budget=self.budget, loading=load)

    @property
    def assumptions(self) -> list[str]:
        """What is assumed of the names that have no number."""
        texts = map(self._with_numbers, self.assumed)
        return [text for text in texts if expr.names(parse_assumption(text))]

    @property
    def domain_text(self) -> str:
        """Where it is defined, as text: the rule's domain and the assumptions, without repetition."""
        open_ = [
            part for part in expr.conjuncts(self.rule.formula_domain) if {*expr.names(part)} - {*self.values}
        ]
        if self.assumptions:
            # At n = 12 the space cannot say 12 % w == 0, at w = 4 not n % 4 == 0
            with suppress(NoClosedForm, NotAffineError):
                region = region_of(expr.all_of(*map(parse_assumption, self.assumptions)), self.closed.space)
                open_ = [part for part in open_ if not region.is_subset(region_of(part, self.closed.space))]
        return " and ".join([*map(expr.text, open_), *self.assumptions])

    def covers(self) -> bool:
        """Returns whether its pieces cover the domain; elsewhere the count is 0."""
        return uncovered(self.pieces, self.closed.domain).is_empty()

    def __str__(self) -> str:
        try:
            return guarded(as_text, self, budget=self.budget, loading=load)
        except DeadlineError as reason:
            return f"a count in {many(len(self.pieces), 'piece')}, not written out: {reason}"

    __repr__ = __str__

    def latex(self) -> str:
        """The count as LaTeX, ready for a paper."""
        return guarded(as_latex, self, budget=self.budget, loading=load)

    def _repr_latex_(self) -> str | None:
        try:
            return f"$\\displaystyle {self.latex()}$"
        except DeadlineError:
            return None  # the notebook then shows the text, which says so

    def sympy(self) -> Expr:
        """The count as a sympy expression, a Piecewise where there are several pieces."""
        return guarded(as_sympy, self, budget=self.budget, loading=load)

    def json(self) -> dict[str, Any]:
        """The count as plain data: rule, parameters, pieces, and the values put in so far."""
        lines, _ = self.format_pieces(short=False)
        pieces = [{"when": line.when or "always", "count": line.formula} for line in lines]
        return {
            "rule": self.rule.text,
            "parameters": self.names,
            "domain": expr.text(self.rule.formula_domain),
            "pieces": pieces,
            "at": dict(self.values),
            "value": None,
        }


def at_values(closed: Closed, values: Mapping[str, int]) -> Closed:
    """Returns the pieces and the domain at these values; a split name needs one for its modulus too."""
    region = closed.domain
    for atom, value in closed.space.coordinates_at(values).items():
        region = region.where(Bound(Linear(((atom, 1),), -value), True))
    line = closed.line
    return _inside(closed, region, line and at_values(line, values) if _on_line(closed, values) else None)


def within(closed: Closed, condition: Condition, source: str | None = None) -> Closed:
    """Returns the pieces and the domain where `condition` holds, and those of an image's line if possible."""
    line = closed.line if _on_line(closed, expr.names(condition)) else None
    region = region_of(condition, closed.space, source)
    return _inside(closed, closed.domain & region, line and within(line, condition, source))


def _on_line(closed: Closed, names: Iterable[str]) -> bool:
    """Whether these names mean the same along each axis of an image."""
    line = closed.line
    return line is not None and set(names) <= set(line.space.parameters) - {"n", "q", "k"}


def _inside(closed: Closed, region: Region, line: Closed | None) -> Closed:
    pieces = [replace(p, region=p.region & region) for p in closed.pieces]
    inside = [piece for piece in pieces if not piece.region.is_empty()]
    return replace(closed, domain=region, pieces=inside, line=line).ready()


def assumed(closed: Closed, condition: Condition, text: str) -> Closed:
    """The same where that leaves anything."""
    inside = within(closed, condition, text)
    if inside.domain.is_empty():
        raise DomainError(f'assumption "{text}" never holds where this count is defined')
    return inside
