"""Count: the number of marked squares, as formulas with the places where they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lattend.counts.algebra import as_sympy
from lattend.counts.closed import Closed
from lattend.counts.conditions import condition_text
from lattend.counts.notation import Written
from lattend.counts.polynomial import Polynomial
from lattend.counts.prove import solved
from lattend.counts.simplify import Piece
from lattend.errors import DomainError, NamingError, NoClosedForm, NotAffineError
from lattend.rules import expr
from lattend.rules.expr import Compare, Condition, Name, Num
from lattend.rules.rule import Rule, check_integer
from lattend.rules.text import parse_assumption
from lattend.sets import Bound, Linear, Quotient, Remainder, bound_at, region_of

if TYPE_CHECKING:
    from lattend.counts.claim import Verdict
    from lattend.counts.order import Order

MAX_WHOLE = 4  # terms of a product that are written out rather than factor by factor


@dataclass(frozen=True)
class Line:
    """One printed piece: the formula and when it holds; an empty `when` means always."""

    formula: str
    when: str


@dataclass(frozen=True, eq=False)
class Count:
    """A piecewise closed form; a region of its domain without a piece counts 0.

    >>> from lattend.rules import rule
    >>> rule("k <= q and q - k <= t").count()
    (2n - t)(t + 1)/2  when 0 <= t <= n
    n(n + 1)/2         when t > n
    0                  otherwise
    """

    rule: Rule
    closed: Closed
    fixed: tuple[str, ...] = ()
    values: Mapping[str, int] = field(default_factory=dict[str, int])
    assumed: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The symbols it is a formula in: sizes, parameters, and the position it is counted per."""
        known = (*self.rule.sizes, *self.rule.parameters, *self.fixed)
        return [name for name in known if name not in self.values]

    @property
    def pieces(self) -> list[Piece]:
        return self.closed.pieces

    # Numbers

    def at(self, /, **values: int) -> Any:
        """The count with these values put in: an int once all names have one, a Count before that."""
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
        return replace(self.restricted(known), values=known, rule=bound)

    __call__ = at

    def number(self, values: Mapping[str, int]) -> int:
        """The count at values for every name, which must lie in the rule's domain."""
        self._check_positions(values)
        if self.assumed and not self.closed.domain.holds(values):
            raise DomainError(f"these numbers contradict the assumption {' and '.join(self.assumed)}")
        for piece in self.closed.pieces:
            if piece.region.holds(values):
                return int(piece.formula.value(values))
        return 0

    def _check_positions(self, values: Mapping[str, int]) -> None:
        for axis in self.rule.axes:
            for position, size in ((axis.query, axis.queries), (axis.key, axis.keys)):
                if position in self.fixed and not 0 <= values[position] < values[size]:
                    raise DomainError(f"{position} = {values[position]} lies outside 0 … {values[size] - 1}")

    def restricted(self, values: Mapping[str, int]) -> Count:
        """The count with only the pieces that can hold at these values."""
        closed = self.closed
        for name, value in values.items():
            try:
                closed = _within(closed, Compare("==", Name(name), Num(value)))
            except (NoClosedForm, NotAffineError):
                continue  # a split size with its modulus unknown: no linear condition says n = 64
        return replace(self, closed=closed)

    def _in_numbers(self) -> Count:
        """The same count with bound parameters written into the rule: at w = 4 one can then say `4 | n`."""
        from lattend.counts.counting import closed_count

        if self.assumed or not any(name in self.values for name in self.rule.parameters):
            return self
        return closed_count(replace(self.rule.baked(), about=self.rule.about), self.fixed)

    # Questions

    def assuming(self, text: str) -> Count:
        """The count where `text` holds: "t < n", "w | n" (w divides n), several joined by commas.

        >>> from lattend.rules import rule
        >>> rule("k <= q and q - k <= t").count().assuming("0 <= t < n")
        (2n - t)(t + 1)/2
        """
        condition = parse_assumption(text)
        unknown = [name for name in expr.names(condition) if name not in self.names]
        if unknown:
            raise NamingError(
                f'assumption "{text}": this count has no {unknown[0]}; it has {", ".join(self.names)}'
            )
        count = self._in_numbers()
        closed = _within(count.closed, condition, text)
        if closed.domain.is_empty():
            raise DomainError(f'assumption "{text}" never holds where this count is defined')
        return replace(count, closed=closed, assumed=(*self.assumed, text))

    def order(self, *variables: str) -> Order:
        """The big-O of the count as `variables` grow and the rest stay fixed; all of them by default."""
        from lattend.counts.order import order

        return order(self, variables)

    def claim(
        self, formula: str, *, assuming: str | None = None, rename: Mapping[str, str] | None = None
    ) -> Verdict:
        """Whether `formula` is this count: proved, or refuted with the smallest counterexample.

        `rename` maps the formula's names to the count's: {"L": "n"}.

        >>> from lattend.rules import rule
        >>> rule("k <= q").count().claim("n^2/2")
        n^2/2: fails; at n = 1 it gives 1/2, the count is 1
        """
        from lattend.counts.claim import judge

        return judge(self.assuming(assuming) if assuming else self._in_numbers(), formula, rename)

    # Forms

    def written(self, *, latex: bool = False, short: bool = True) -> tuple[list[Line], str]:
        """What is printed, piece by piece, and what its short names (N = n // w) stand for."""
        if not self.names:
            return [Line(str(self.number(self.values)), "")], ""
        written = Written([*self.rule.sizes, *self.rule.parameters, *self.fixed], latex=latex, short=short)
        lines: list[Line] = []
        for piece in self.closed.pieces:
            special = self._on_multiples(piece)
            if special is not None:
                lines += self._lines(special, written)
            if special is None or not piece.region.is_subset(special.region):
                lines += self._lines(piece, written)
        shown = [line for line in lines if line.formula != "0"]
        if len(shown) < len(lines) or not self.covers():
            shown.append(Line("0", "otherwise" if shown else ""))
        elif len(shown) > 1 and not shown[-1].when:
            shown[-1] = Line(shown[-1].formula, "otherwise")
        return shown, written.where()

    def _lines(self, piece: Piece, written: Written) -> list[Line]:
        """The piece as a line, or as none where the values already given contradict its conditions."""
        clauses: list[list[Bound]] = []
        for clause in piece.region.within(self.closed.domain).clauses:
            bounds = [bound_at(bound, self.values) for bound in clause]
            if all(bound is not False for bound in bounds):
                clauses.append([bound for bound in bounds if isinstance(bound, Bound)])
        return [Line(self._formula(piece, written), condition_text(clauses, written))] if clauses else []

    def _formula(self, piece: Piece, written: Written) -> str:
        equalities = piece.region.within(self.closed.domain).equalities()
        known = {atom: p.mapped_values(self.values) for atom, p in solved(equalities).items()}
        for atom in piece.formula.atoms:
            rest = piece.region.rest(atom)
            if isinstance(atom, Quotient) and isinstance(atom.by, int) and rest is not None:
                whole = Polynomial.linear(atom.of) - Polynomial.constant(rest)
                known[atom] = whole.times(Fraction(1, atom.by))
        long = len(piece.formula.terms) > MAX_WHOLE
        factors = piece.factors if piece.factors and long else (piece.formula,)
        return written.product([factor.mapped_values(self.values) for factor in factors], known)

    def _on_multiples(self, piece: Piece) -> Piece | None:
        """The piece where the modulus divides, if its formula is a plain polynomial there and not before."""
        probe = Written([])
        self._formula(piece, probe)
        special = _where_divisible(piece.formula)
        clauses = piece.region.within(self.closed.domain).clauses
        borders = [bound for clause in clauses for bound in clause if not bound.equal]
        atoms = [atom for bound in borders for atom, _ in bound.form.terms]
        if special is None or not probe.aliases or any(isinstance(atom, Remainder) for atom in atoms):
            return None
        formula, rests = special
        region = piece.region
        for rest in rests:
            region = region.where(Bound(rest, True))
        return None if region.is_empty() else Piece(region, formula)

    def covers(self) -> bool:
        """Whether its pieces cover the domain; where they do not, it is 0."""
        rest = self.closed.domain
        for piece in self.closed.pieces:
            rest = rest - piece.region
        return rest.is_empty()

    def __str__(self) -> str:
        if self.closed.line is not None and len(self.closed.pieces) > 2:
            return self._as_product()
        return _table(*self.written())

    __repr__ = __str__

    def _as_product(self) -> str:
        """`F(rows) * F(cols)` and F: shorter than the product of all its pieces."""
        closed, line = self.closed, self.closed.line
        if line is None:
            raise ValueError("this count is not a product of one line")
        taken = {*self.rule.parameters}
        inner = Count(self.rule, line, fixed=("n", "q", "k"), values=self.values)
        symbol = next(letter for letter in "FGHABC" if letter not in taken)
        arguments = [name for name in ("n", "q", "k") if name in line.space.parameters]
        factors = [f"{symbol}({', '.join(axis[name] for name in arguments)})" for axis in closed.axes]
        lines, where = inner.written()
        head = f"{' * '.join(factors)} where {symbol}({', '.join(arguments)}) ="
        return head + "\n" + "\n".join(f"  {row}" for row in _table(lines, where).splitlines())

    def latex(self) -> str:
        """The count as LaTeX, ready for a paper."""
        lines, where = self.written(latex=True)
        tail = rf",\quad {where}" if where else ""
        if len(lines) == 1 and not lines[0].when:
            return lines[0].formula + tail
        body = r" \\ ".join(f"{line.formula} & {_latex_when(line.when)}" for line in lines)
        return rf"\begin{{cases}} {body} \end{{cases}}{tail}"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def sympy(self) -> Any:
        """The count as a sympy expression, a Piecewise where there are several pieces."""
        return as_sympy(self)

    def json(self) -> dict[str, Any]:
        """The count as plain data: rule, parameters, pieces, and the values put in so far."""
        lines, _ = self.written(short=False)
        pieces = [{"when": line.when or "always", "count": line.formula} for line in lines]
        return {
            "rule": self.rule.text,
            "parameters": self.names,
            "domain": expr.text(self.rule.domain),
            "pieces": pieces,
            "at": dict(self.values),
            "value": None,
        }


def _within(closed: Closed, condition: Condition, source: str | None = None) -> Closed:
    """The pieces and the domain where `condition` holds; the line of an image too, where it can say it."""
    region = region_of(condition, closed.space, source)
    pieces = [replace(p, region=p.region & region) for p in closed.pieces]
    line = closed.line
    if line is not None:
        known = set(expr.names(condition)) <= set(line.space.parameters) - {"n", "q", "k"}
        line = _within(line, condition, source) if known else None
    return replace(
        closed,
        domain=closed.domain & region,
        pieces=[piece for piece in pieces if not piece.region.is_empty()],
        line=line,
    )


def _latex_when(when: str) -> str:
    if when == "otherwise":
        return r"\text{otherwise}"
    return rf"\text{{if }} {when}" if when else r"\text{always}"


def _table(lines: list[Line], where: str) -> str:
    """Rows with their conditions aligned; a single piece that always holds is just its formula."""
    wide = max((len(line.formula) for line in lines), default=0)
    rows: list[str] = []
    for line in lines:
        when = line.when if line.when == "otherwise" else f"when {line.when}"
        rows.append(f"{line.formula:<{wide}}  {when}" if line.when else line.formula)
    if where:
        rows = [f"{rows[0]}  where {where}"] if len(rows) == 1 else [*rows, f"where {where}"]
    return "\n".join(rows) or "0"


def _where_divisible(formula: Polynomial) -> tuple[Polynomial, list[Linear]] | None:
    """The formula where every modulus divides what it divides, if it is a polynomial there."""
    atoms = [atom for atom in formula.atoms if not isinstance(atom, str)]
    if not atoms or any(isinstance(atom.by, int) or len(atom.of.terms) != 1 for atom in atoms):
        return None
    result: list[tuple[Any, Any]] = []
    for monomial, coefficient in formula.terms.items():
        exponents: dict[str, int] = {}
        if any(isinstance(atom, Remainder) for atom, _ in monomial):
            continue
        for atom, exponent in monomial:
            if isinstance(atom, str):
                exponents[atom] = exponents.get(atom, 0) + exponent
            elif isinstance(atom, Quotient):
                name, by = str(atom.of), str(atom.by)
                exponents[name] = exponents.get(name, 0) + exponent
                exponents[by] = exponents.get(by, 0) - exponent
        if any(exponent < 0 for exponent in exponents.values()):
            return None
        result.append((coefficient, tuple(sorted((n, e) for n, e in exponents.items() if e))))
    rests = {Remainder(atom.of, atom.by) for atom in atoms}
    return Polynomial.of(result), [Linear(((rest, 1),)) for rest in sorted(rests, key=str)]
