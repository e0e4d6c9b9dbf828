"""Where a number of a worked step comes from: the rows and columns it is made of, and the sum written out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from lattend.errors import NamingError
from lattend.study.exact import writing
from lattend.study.worked.answer import Place
from lattend.study.worked.entry import LONGEST, MatrixEntry, Rows

if TYPE_CHECKING:
    from lattend.study.worked.work import Worked

MOST_TERMS = 12  # of a sum that are written
SHORT = 16  # characters of an exact form among others in a sum; longer ones are decimals there


class NumberSource(NamedTuple):
    """Numbers of an earlier table, or of what is given: one, or a row or column where the other is None."""

    name: str
    head: int
    row: int | None
    column: int | None


@dataclass(frozen=True)
class Origin:
    """The sources of a number, and how it is made of them, in LaTeX."""

    sources: tuple[NumberSource, ...]
    latex: str


def origin(worked: Worked, place: Place, places: int = 4) -> Origin:
    r"""The sources of the number at a place, (step, head, row, column).

    >>> from lattend.study.worked.work import EXAMPLE, work
    >>> print(origin(work(**EXAMPLE), ("scores", 0, 0, 1)).latex)
    1 \cdot 2 + 2 \cdot 0 = 2
    """
    name, head, row, column = place
    if name not in worked.parts:
        raise NamingError(f"the work has no step {name}; it has {', '.join(worked.parts)}")
    entry = worked.parts[name].tables[head][row][column]
    sources, made = _Origins(worked, head, row, column, places).of(name)
    return Origin(sources, made.result(entry, places))


class Made(NamedTuple):
    """How a number is made, in LaTeX; `rounded` where decimals stand in it for exact numbers."""

    latex: str = ""
    rounded: bool = False
    why: str = ""  # instead: what decides it

    def result(self, entry: MatrixEntry, places: int) -> str:
        """The number's parts, its exact form and its decimal, each once."""
        decimal = r"-\infty" if not entry.value.is_finite() else entry.decimal(places)
        exact = "" if entry.text is None else entry.latex
        if self.why:
            return rf"\text{{{self.why}: }} {exact or decimal}"
        if self.rounded:
            end = rf",\quad \text{{exactly }} {exact}" if exact else ""
            return rf"{self.latex} \approx {decimal}{end}"
        forms = [form for form in (self.latex, exact) if form]
        equal = " = ".join(dict.fromkeys(forms))
        return equal if decimal in forms else rf"{equal} \approx {decimal}" if equal else decimal


Found = tuple[tuple[NumberSource, ...], Made]


@dataclass(frozen=True)
class _Origins:
    """How one number is made, by the step it belongs to."""

    worked: Worked
    head: int
    row: int
    column: int
    places: int

    def of(self, name: str) -> Found:
        if name in ("q", "k", "v"):
            return self._projected(name)
        if name == "outputs":
            return self._output()
        origin_of = {
            "scores": self._score,
            "masked": self._masked,
            "exponentials": self._exponential,
            "sums": self._sum,
            "weights": self._weight,
            "mixed": self._mixed,
        }
        return origin_of[name]()

    def _rows(self, name: str) -> Rows:
        return self.worked.parts[name].tables[self.head]

    def _projected(self, name: str) -> Found:
        exercise = self.worked.given
        if exercise.direct:
            return (), Made()
        source = "memory" if exercise.crosses and name != "q" else "tokens"
        tables = {step.name: step.tables for step in self.worked.exercise}
        numbers = tables[source][0][self.row]
        if f"w{name}" in exercise.left_out:
            place = self.head * len(self._rows(name)[0]) + self.column
            return (NumberSource(source, 0, self.row, place),), Made()
        matrix = tables[f"w{name}"][self.head]
        factors = matrix[self.column] if exercise.columns else [line[self.column] for line in matrix]
        across = (self.column, None) if exercise.columns else (None, self.column)
        sources = (NumberSource(source, 0, self.row, None), NumberSource(f"w{name}", self.head, *across))
        return sources, self._dot(numbers, factors)

    def _score(self) -> Found:
        exercise = self.worked.given
        product, rounded, _ = self._dot(self._rows("q")[self.row], self._rows("k")[self.column])
        if exercise.divisor is not None:
            product = rf"\frac{{{product}}}{{{writing.latex(exercise.divisor)}}}"
        elif exercise.scale != 1:
            product = rf"{writing.latex(exercise.scale)} \cdot \left({product}\right)"
        sources = (
            NumberSource("q", self.head, self.row, None),
            NumberSource("k", self.head, self.column, None),
        )
        return sources, Made(product, rounded)

    def _masked(self) -> Found:
        if self.worked.given.mask[self.head][self.row][self.column]:
            return (NumberSource("scores", self.head, self.row, self.column),), Made(
                why="the key is attended"
            )
        return (), Made(why="the rule hides the key")

    def _exponential(self) -> Found:
        source = NumberSource(self._score_step, self.head, self.row, self.column)
        power, rounded, _ = _inside(self._rows("masked")[self.row][self.column], self.places)
        return (source,), Made(f"e^{{{power}}}", rounded)

    @property
    def _score_step(self) -> str:
        """Scores as they are shown: masked where the rule hides a key."""
        return "masked" if self.worked.given.masks else "scores"

    def _sum(self) -> Found:
        powers = [_inside(entry, self.places, SHORT) for entry in self._rows("exponentials")[self.row]]
        return (NumberSource("exponentials", self.head, self.row, None),), _plus(powers)

    def _weight(self) -> Found:
        above, below = self._rows("exponentials")[self.row][self.column], self._rows("sums")[self.row][0]
        sources = (
            NumberSource("exponentials", self.head, self.row, self.column),
            NumberSource("sums", self.head, self.row, 0),
        )
        if not below.value:
            return sources, Made(why="the query attends to no key")
        parts = [_inside(entry, self.places) for entry in (above, below)]
        rounded = any(part.rounded for part in parts)
        return sources, Made(rf"\frac{{{parts[0].latex}}}{{{parts[1].latex}}}", rounded)

    def _mixed(self) -> Found:
        values = [line[self.column] for line in self._rows("v")]
        sources = (
            NumberSource("weights", self.head, self.row, None),
            NumberSource("v", self.head, None, self.column),
        )
        return sources, self._dot(self._rows("weights")[self.row], values)

    def _output(self) -> Found:
        exercise, mixed = self.worked.given, self.worked.mixed.tables
        if exercise.wo is None and exercise.heads == 1:
            return self._mixed()
        width = len(mixed[0][0])
        if exercise.wo is None:
            head, place = divmod(self.column, width)
            return (NumberSource("mixed", head, self.row, place),), Made()
        numbers = [entry for rows in mixed for entry in rows[self.row]]
        (matrix,) = next(step for step in self.worked.exercise if step.name == "wo").tables
        factors = matrix[self.column] if exercise.columns else [line[self.column] for line in matrix]
        across = (self.column, None) if exercise.columns else (None, self.column)
        heads = tuple(NumberSource("mixed", head, self.row, None) for head in range(exercise.heads))
        return (*heads, NumberSource("wo", 0, *across)), self._dot(numbers, factors)

    def _dot(self, left: Sequence[MatrixEntry], right: Sequence[MatrixEntry]) -> Made:
        terms: list[Made] = []
        for pair in zip(left, right, strict=True):
            x, y = (_inside(entry, self.places, SHORT) for entry in pair)
            nothing = not all(entry.value for entry in pair)
            product = rf"{_bracketed(x, pair[0])} \cdot {_bracketed(y, pair[1])}"
            terms.append(Made(product, (x.rounded or y.rounded) and not nothing))
        return _plus(terms)


def _plus(terms: Sequence[Made]) -> Made:
    shown = [term.latex for term in terms]
    if len(terms) > MOST_TERMS:
        shown = [*shown[: MOST_TERMS - 2], r"\cdots", shown[-1]]
    return Made(" + ".join(shown), any(term.rounded for term in terms))


def _inside(entry: MatrixEntry, places: int, longest: int = LONGEST) -> Made:
    """A number inside a formula: its exact form where that is not too long."""
    if not entry.value.is_finite() or (entry.text is not None and len(entry.text) <= longest):
        return Made(entry.latex)
    return Made(entry.decimal(places), rounded=True)


def _bracketed(factor: Made, entry: MatrixEntry) -> str:
    """A number that is multiplied, in brackets where it needs them."""
    loose = factor.latex.startswith("-") or (not factor.rounded and entry.exact.is_Add)
    return rf"\left({factor.latex}\right)" if loose else factor.latex
