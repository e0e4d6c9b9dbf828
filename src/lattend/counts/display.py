"""Display of counts as text and as LaTeX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from lattend.counts.notation import Notation, condition_text, latex_name
from lattend.counts.prove import solved
from lattend.rules.language.linear import Linear, Monomial, Quotient, Remainder, monomial
from lattend.rules.language.polynomial import Polynomial
from lattend.sets import Bound, bound_at
from lattend.sets.region import Piece

if TYPE_CHECKING:
    from lattend.counts.count import Count

MOST_PIECES, FIRST_PIECES = 12, 8  # of more than so many, so many are printed
MAX_WHOLE = 4  # terms of a product that are written out rather than factor by factor


@dataclass(frozen=True)
class PieceText:
    """One printed piece: the formula and when it holds; an empty `when` means always."""

    formula: str
    when: str


@dataclass(frozen=True)
class Typeset:
    """A count for a page. `lines` are its pieces in LaTeX, of an image with many those of one axis: `head`
    says what they are. `where` explains short names, `more` says how many pieces are not there.
    """

    head: str
    lines: list[PieceText]
    where: str
    more: str
    text: str
    latex: str


def format_pieces(
    count: Count, latex: bool, short: bool, pieces: list[Piece] | None = None
) -> tuple[list[PieceText], str]:
    """Returns the lines of a count or of these pieces, and the meaning of short names (N = n // w)."""
    if not count.names:
        holds = count.otherwise == "0" or any(piece.region.holds(count.values) for piece in count.pieces)
        return [PieceText(str(count.number(count.values)) if holds else _otherwise(count, latex), "")], ""
    names = [*count.rule.sizes, *count.rule.parameters, *count.fixed]
    pen = Notation(names, latex=latex, short=short, signed=count.closed.signed)
    lines: list[PieceText] = []
    for piece in count.pieces if pieces is None else pieces:
        special = _on_multiples(count, piece)
        if special is not None:
            lines += _lines(count, special, pen)
        if special is None or not piece.region.is_subset(special.region):
            lines += _lines(count, piece, pen)
    shown = [line for line in dict.fromkeys(lines) if line.formula != count.otherwise]
    if pieces is not None:
        return shown, pen.where()
    if any(line.formula == count.otherwise for line in lines) or not count.covers():
        shown.append(PieceText(_otherwise(count, latex), "otherwise" if shown else ""))
    elif len(shown) > 1 and not shown[-1].when:
        shown[-1] = PieceText(shown[-1].formula, "otherwise")
    return shown, pen.where()


def _otherwise(count: Count, latex: bool) -> str:
    return rf"\text{{{count.otherwise}}}" if latex and count.otherwise != "0" else count.otherwise


def as_text(count: Count) -> str:
    """Returns the count as a small table; on an image with many pieces, as a product of one line's count."""
    if count.closed.line is not None and len(count.pieces) > 2:
        return _as_product(count)
    return _text(count)


def as_latex(count: Count) -> str:
    """Returns the count as LaTeX: a formula or cases; on an image with too many, those of one axis."""
    if count.closed.line is not None and len(count.pieces) > MOST_PIECES:
        return typeset(count).latex
    first, more = _first(count)
    return _cases(*format_pieces(count, True, True, first), more)


def typeset(count: Count) -> Typeset:
    """Returns the count for a page: LaTeX for each piece, and the whole count as text and as LaTeX."""
    head, shown = "", count
    if count.closed.line is not None and len(count.pieces) > 2:
        symbol, arguments, factors, shown = _product_of(count, latex_name)
        head = rf"{' '.join(factors)},\quad {symbol}({', '.join(arguments)}) ="
    first, more = _first(shown)
    lines, where = format_pieces(shown, True, True, first)
    return Typeset(head, lines, where, more, as_text(count), f"{head} {_cases(lines, where, more)}".strip())


def _cases(lines: list[PieceText], where: str, more: str) -> str:
    tail = rf",\quad {where}" if where else ""
    if len(lines) == 1 and not lines[0].when:
        return lines[0].formula + tail
    rows = [f"{line.formula} & {_latex_when(line.when)}" for line in lines]
    rest = more.replace("…", "...")  # LaTeX is plain ASCII
    body = r" \\ ".join([*rows, *([rf"\text{{{rest}}} &"] if rest else [])])
    return rf"\begin{{cases}} {body} \end{{cases}}{tail}"


def _text(count: Count) -> str:
    first, more = _first(count)
    table = _table(*format_pieces(count, False, True, first))
    return f"{table}\n{more}" if more else table


def _first(count: Count) -> tuple[list[Piece] | None, str]:
    """Returns the pieces to print if there are too many, and a note about the others."""
    left = len(count.pieces) - FIRST_PIECES
    if len(count.pieces) <= MOST_PIECES:
        return None, ""
    return count.pieces[:FIRST_PIECES], f"… and {left:,} more pieces; .pieces has them all"


def _latex_when(when: str) -> str:
    if when == "otherwise":
        return r"\text{otherwise}"
    return rf"\text{{if }} {when}" if when else r"\text{always}"


def _table(lines: list[PieceText], where: str) -> str:
    """Rows with their conditions aligned; a single piece that always holds is just its formula."""
    wide = max((len(line.formula) for line in lines), default=0)
    rows: list[str] = []
    for line in lines:
        when = line.when if line.when == "otherwise" else f"when {line.when}"
        rows.append(f"{line.formula:<{wide}}  {when}" if line.when else line.formula)
    if where:
        rows = [f"{rows[0]}  where {where}"] if len(rows) == 1 else [*rows, f"where {where}"]
    return "\n".join(rows) or "0"


def _as_product(count: Count) -> str:
    """`F(rows) * F(cols)` and F: shorter than the product of all its pieces."""
    symbol, arguments, factors, inner = _product_of(count, str)
    table = _text(inner)
    head = f"{' * '.join(factors)} where {symbol}({', '.join(arguments)}) ="
    return "\n".join([head, *(f"  {row}" for row in table.splitlines())])


def _product_of(count: Count, name: Callable[[str], str]) -> tuple[str, list[str], list[str], Count]:
    """Returns a letter F, its arguments, F for each axis, and the count F."""
    closed, line = count.closed, count.closed.line
    if line is None:
        raise ValueError("this count is not a product of one line")
    symbol = next(letter for letter in "FGHABC" if letter not in count.rule.parameters)
    arguments = [one for one in ("n", "q", "k") if one in line.space.parameters]
    factors = [f"{symbol}({', '.join(name(axis[one]) for one in arguments)})" for axis in closed.axes]
    return symbol, arguments, factors, replace(count, closed=line, fixed=("n", "q", "k"))


def _lines(count: Count, piece: Piece, pen: Notation) -> list[PieceText]:
    """Returns the piece as a line; none if the known values contradict its conditions."""
    clauses: list[list[Bound]] = []
    for clause in piece.region.within(count.closed.domain).clauses:
        bounds = [bound_at(bound, count.values) for bound in clause]
        if all(bound is not False for bound in bounds):
            clauses.append([bound for bound in bounds if isinstance(bound, Bound)])
    return [PieceText(_formula(count, piece, pen), condition_text(clauses, pen))] if clauses else []


def _formula(count: Count, piece: Piece, pen: Notation) -> str:
    """Returns the piece's formula with everything substituted that is known on its region."""
    equalities = piece.region.within(count.closed.domain).equalities()
    known = {atom: p.at(count.values) for atom, p in solved(equalities).items()}
    one = Polynomial.constant(1)
    for atom in piece.formula.atoms:
        if (
            isinstance(atom, Quotient) and isinstance(atom.by, str) and known.get(atom.by) == one
        ):  # n // t where t is 1
            known[atom] = Polynomial.linear(atom.of).at(count.values)
        rest = piece.region.rest(atom)
        if isinstance(atom, Quotient) and isinstance(atom.by, int) and rest is not None:
            multiple = Polynomial.linear(atom.of) - Polynomial.constant(rest)
            known[atom] = multiple.times(Fraction(1, atom.by))
    long = len(piece.formula.terms) > MAX_WHOLE
    factors = piece.factors if piece.factors and long else (piece.formula,)
    return pen.product([factor.at(count.values) for factor in factors], known)


def _on_multiples(count: Count, piece: Piece) -> Piece | None:
    """Returns the piece where the modulus divides, if only there its formula is a plain polynomial."""
    special = _where_divisible(piece.formula)
    clauses = piece.region.within(count.closed.domain).clauses
    borders = [bound for clause in clauses for bound in clause if not bound.equal]
    if special is None or any(isinstance(a, Remainder) for bound in borders for a, _ in bound.form.terms):
        return None
    probe = Notation([])
    _formula(count, piece, probe)
    if not probe.aliases:  # plain everywhere
        return None
    formula, rests = special
    region = piece.region
    for rest in rests:
        region = region.where(Bound(rest, True))
    return None if region.is_empty() else Piece(region, formula)


def _where_divisible(formula: Polynomial) -> tuple[Polynomial, list[Linear]] | None:
    """Returns the formula where every division leaves no remainder, if it is a polynomial there.

    There n % w is 0 and n // w is n/w: w*(n // w) becomes n.
    """
    atoms = [atom for atom in formula.atoms if not isinstance(atom, str)]
    if not atoms or any(isinstance(atom.by, int) or len(atom.of.terms) != 1 for atom in atoms):
        return None
    terms: list[tuple[Fraction, Monomial]] = []
    for powers, coefficient in formula.terms.items():
        if any(isinstance(atom, Remainder) for atom, _ in powers):
            continue
        names = [(atom, exponent) for atom, exponent in powers if isinstance(atom, str)]
        for atom, exponent in powers:
            if isinstance(atom, Quotient):
                names += [(str(atom.of), exponent), (str(atom.by), -exponent)]
        product = monomial(names)
        if any(exponent < 0 for _, exponent in product):
            return None
        terms.append((coefficient, product))
    rests = {Remainder(atom.of, atom.by) for atom in atoms}
    return Polynomial.of(terms), [Linear(((rest, 1),)) for rest in sorted(rests, key=str)]
