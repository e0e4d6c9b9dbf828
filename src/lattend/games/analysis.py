"""Analysis: for which steps a method converges, cycles or diverges near an equilibrium, and how fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lattend.draw.figure import Figure
from lattend.errors import DomainError, NamingError, NoClosedForm
from lattend.exact.eigenvalues import eigenvalues
from lattend.exact.field import NumberField, number_field
from lattend.exact.forms import equation_text, has_no_formula, number_text, polynomial_text
from lattend.exact.function import symbols
from lattend.exact.invariants import form_change, periodic_steps, quadratic_invariants, steps_of_period
from lattend.exact.numbers import exact
from lattend.exact.radius import Best, Piece, best_step, radius, radius_at
from lattend.exact.roots import near
from lattend.exact.stepmatrix import Behaviour, H, Range, StepMatrix, period_at
from lattend.exact.writing import text as written
from lattend.games.equilibria import Equilibrium, confirmed, hessian, where
from lattend.games.linear import both_steps, step_rows
from lattend.games.methods import Method
from lattend.games.search import least
from lattend.games.words import behaviour_text, eigenvalue_text, factor_text, range_rows, steps_text

if TYPE_CHECKING:
    from lattend.games.game import Game

CLEAR = 1e-9  # a radius known by its decimals is not 1 if it is further from it than this
MOST_STATE = 8  # numbers of a state, memory included, whose ranges of steps are derived
LARGEST_FIELD = 4  # degree of the second derivatives' number field
LONGEST_EQUATION = 120  # characters
TOO_HIGH = "not derived: their ends are roots of a polynomial of too high a degree; ask at a step"


@dataclass(frozen=True)
class Here:
    """What happens at one step: kind, the factor by which distances shrink or grow a step, and the period.

    kind is converges, settles, cycles, grows, diverges, or undecided.
    """

    step: Any
    kind: str
    factor: Any
    behaviour: Behaviour | None = None
    period: int | None = None

    def __str__(self) -> str:
        said = behaviour_text(self.behaviour) if self.behaviour else self.kind
        if self.period:
            return f"{said}, period {self.period} from every start: the step's matrix has M^{self.period} = 1"
        if self.behaviour is not None and self.kind == "cycles" and not self.behaviour.roots.inside:
            return f"{said} without a period: an eigenvalue is no root of 1"
        return said if self.factor == 1 else f"{said}, factor {factor_text(self.factor)} a step"


@dataclass(frozen=True, eq=False)
class Analysis:
    """A method near an equilibrium, as a function of the step h of the minimiser; the other's is ratio·h.

    matrix   one step's matrix, exact, in h; None where the second derivatives are in no small number field
    note     why there is no matrix, or empty
    """

    game: Game
    method: Method
    equilibrium: Equilibrium
    ratio: Any
    step: Any | None
    second: tuple[tuple[Any, ...], ...]
    matrix: StepMatrix | None
    note: str = ""

    @property
    def rational(self) -> bool:
        """Whether the matrix has no surds in it: formulas in h, the best step and invariants need that."""
        return self.matrix is not None and self.matrix.field.rational

    @cached_property
    def ranges(self) -> tuple[Range, ...]:
        """All steps h > 0, in ranges where one thing happens; proved by exact counts of eigenvalues.

        Empty where their ends are roots of polynomials of too high a degree.
        """
        try:
            return self.matrix.ranges if self.matrix else ()
        except NoClosedForm:
            return ()

    @cached_property
    def eigenvalues(self) -> tuple[Any, ...] | None:
        """All eigenvalues as formulas in h; None where they need more than square roots."""
        pairs = self._pairs
        if pairs is None:
            return None
        return tuple(v for a, b in pairs for v in ((a + b, a - b) if b != 0 else (a,)))

    @cached_property
    def _pairs(self) -> list[tuple[Any, Any]] | None:
        if self.matrix is None or not self.rational:
            return None
        found = [eigenvalues(factor) for factor, power in self.matrix.factors for _ in range(power)]
        return None if None in found else [pair for pairs in found for pair in pairs or ()]

    @cached_property
    def radius(self) -> tuple[Piece, ...] | None:
        """The factor a step, in pieces over h, of all that moves; None where that is too much work."""
        try:
            return radius(self.matrix.moving) if self.matrix and self.rational else None
        except NoClosedForm:
            return None

    @cached_property
    def best(self) -> Best | None:
        """The step that converges fastest, exact; None where no step converges or it was not derived."""
        if self.radius is None:
            return None
        try:
            found = [best_step(self.radius, one.low, one.high) for one in self.ranges if _converges(one)]
        except NoClosedForm:
            return None
        return min((one for one in found if one), key=lambda one: near(one.factor), default=None)

    @cached_property
    def searched_best(self) -> tuple[float, float]:
        """The step that converges fastest and its factor, by a search in floats, where `best` is None."""
        found = [
            least(self._float_factor, float(one.low), float(min(one.high, one.low + 100)))
            for one in self.ranges
            if _converges(one)
        ]
        return min(found, key=lambda one: one[1])

    @cached_property
    def invariants(self) -> tuple[Any, ...]:
        """Quadratic forms that stay equal from step to step, for every h."""
        if self.matrix is None or not self.rational or self.method.remembers:
            return ()
        names = symbols(self.game.names)
        return tuple(self._moved(form) for form in quadratic_invariants(self.matrix, names))

    def _moved(self, form: Any) -> Any:
        """A form in the distances from the equilibrium, in the names themselves."""
        names = symbols(self.game.names)
        return form.xreplace({name: name - x for name, x in zip(names, self.equilibrium.point, strict=True)})

    @cached_property
    def periodic(self) -> Any | None:
        """The steps of period m as a formula in m and j, 0 < j < m/2 without a common factor with m."""
        return periodic_steps(self.matrix) if self.matrix and self.rational else None

    def steps_of_period(self, m: int) -> list[Any]:
        """All steps at which every orbit has period m and no smaller one, exact."""
        if not 2 <= m <= 60:
            raise DomainError(f"a period from 2 to 60 can be asked for, got {m}")
        return steps_of_period(self.matrix, m) if self.matrix and self.rational else []

    @cached_property
    def change(self) -> tuple[Any, bool] | None:
        """F after a step less f before it, in h, and whether it is 0 on whole lines; for quadratic f."""
        if self.matrix is None or self.method.remembers or not self.game.quadratic:
            return None
        form, lines = form_change(self.matrix, self.second, symbols(self.game.names))
        return self._moved(form), lines

    def at(self, step: Any) -> Here:
        """What happens at one step h of the minimiser.

        >>> from lattend.games.game import Game
        >>> Game("p*q").analyse("alternating").at(1).period
        6
        """
        h = exact(step)
        if not h > 0:
            raise DomainError(f"a step must be above 0, got {written(h)}")
        found = self.matrix.at(h) if self.matrix else None
        if found is None:
            factor = self._float_factor(h)
            side = "undecided" if abs(factor - 1) < CLEAR else "converges" if factor < 1 else "diverges"
            return Here(h, side, factor)
        period = period_at(self.matrix, h) if self.matrix and found.kind == "cycles" else None
        if found.kind in ("cycles", "grows"):
            return Here(h, found.kind, exact(1), found, period)
        return Here(h, found.kind, radius_at(self.radius, h) if self.radius else self._float_factor(h), found)

    @cached_property
    def here(self) -> Here | None:
        """What happens at the step that was asked for."""
        return None if self.step is None else self.at(self.step)

    def _float_factor(self, h: Any) -> float:
        """The spectral radius in floats."""
        second = [[float(x) for x in row] for row in self.second]
        steps = float(h), float(self.ratio * h)
        rows = step_rows(self.method, second, len(self.game.minimise), steps, float)
        return float(np.abs(np.linalg.eigvals(np.array(rows, dtype=float))).max())

    @cached_property
    def figure(self) -> Figure:
        """The analysis as facts and a table of ranges."""
        steps = "steps h" if self.ratio == 1 else f"steps h and {written(self.ratio * H)}"
        about = (f"{self.method}, {steps}, near {where(self.game, self.equilibrium.point)}",)
        table: tuple[tuple[str, ...], ...] = ()
        if self.ranges:
            table = (("steps", "what happens", "factor a step"), *range_rows(self.ranges, self.radius))
        return Figure(str(self.game), (), (), about, facts=self._facts(), table=table, data=self.json())

    def _facts(self) -> tuple[tuple[str, str], ...]:
        facts = [("equilibrium", str(self.equilibrium))]
        if self.note:
            facts.append(("ranges", self.note))
        if self.matrix is not None:
            z = [symbol for symbol in self.matrix.characteristic.gens if symbol != H]
            if self.rational:
                facts.append(("eigenvalues", self._eigenvalue_words(z)))
            facts.append(("best step", self._best_words()) if self.ranges else ("ranges", TOO_HIGH))
        facts += [(number_text(end), f"solves {said}") for end, said in self._equations()]
        for form in self.invariants:
            facts.append(("stays equal", self._in_names(form)))
        if self.periodic is not None:
            facts.append(
                ("period m", f"at h = {written(self.periodic)}, 0 < j < m/2, j and m without a common factor")
            )
        if self.change is not None and self.change[1] and self.change[0] != 0:
            said = f"f' - f = {written(self.change[0])} is 0 on whole lines"
            facts.append(("f alone", f"{said}: that f stays equal for a step does not show an equilibrium"))
        if self.here is not None:
            facts.append((f"at h = {written(self.here.step)}", str(self.here)))
        facts.append(("holds", self._reach()))
        return tuple(facts)

    def _eigenvalue_words(self, z: list[Any]) -> str:
        assert self.matrix is not None
        if self._pairs is not None:
            return ", ".join(dict.fromkeys(map(eigenvalue_text, self._pairs)))
        parts = [polynomial_text(factor.as_expr(), z) for factor, _ in self.matrix.factors]
        said = " and ".join(f"{part} = 0" for part in parts)
        return f"the roots z of {said}" if len(said) < 240 else f"{self.matrix.size}, without a short formula"

    def _equations(self) -> list[tuple[Any, str]]:
        """Steps in this analysis that have no formula, and what they solve."""
        ends = [one.high for one in self.ranges] + ([self.best.step] if self.best else [])
        found = [(end, equation_text(end)) for end in dict.fromkeys(ends)]
        return [(end, said) for end, said in found if said and len(said) < LONGEST_EQUATION]

    def _best_words(self) -> str:
        if not any(map(_converges, self.ranges)):
            return "none: no step converges"
        if self.best is None:
            step, factor = self.searched_best
            return f"about {step:.5g}, factor about {factor:.5g}: searched for in floats, not proved"
        return f"{factor_text(self.best.step)}: factor {factor_text(self.best.factor)}"

    def _in_names(self, form: Any) -> str:
        if any(self.equilibrium.point):
            return written(form)
        return polynomial_text(form, symbols(self.game.names))

    def _reach(self) -> str:
        if self.game.quadratic:
            return "from every start: the gradient is linear"
        return "close to the equilibrium; where the linear part cycles or grows, the game may do otherwise"

    def json(self) -> dict[str, Any]:
        """The analysis as plain data; formulas are texts that `h` may be put into."""
        return {
            "game": self.game.text,
            "method": str(self.method),
            "equilibrium": self.equilibrium.json(),
            "ratio": written(self.ratio),
            "characteristic": self.matrix and written(self.matrix.characteristic.as_expr()),
            "eigenvalues": self.eigenvalues and [written(value) for value in self.eigenvalues],
            "ranges": [
                {
                    "steps": steps_text(one.low, one.high, one.low_in, one.high_in),
                    "low": float(one.low),
                    "high": None if one.high.is_infinite else float(one.high),
                    "kind": one.behaviour.kind if one.behaviour else None,
                }
                for one in self.ranges
            ],
            "best": self.best and {"step": written(self.best.step), "factor": written(self.best.factor)},
            "invariants": [written(form) for form in self.invariants],
            "periodic": self.periodic and written(self.periodic),
            "at": self.here
            and {
                "step": written(self.here.step),
                "kind": self.here.kind,
                "factor": float(self.here.factor),
                "period": self.here.period,
            },
            "everywhere": self.game.quadratic,
            "note": self.note,
        }

    def __str__(self) -> str:
        return self.figure.terminal(colour=False)

    def __repr__(self) -> str:
        return f"<Analysis of {self.game.text}: {self.method}>"


def analyse(game: Game, method: Method, steps: tuple[Any, Any] | None, at: Sequence[Any] | None) -> Analysis:
    """The method near one equilibrium, with the ratio of these steps."""
    if str(H) in game.names:
        raise NamingError("h is the step in an analysis; call the game's own h something else")
    equilibrium = _only(game) if at is None else confirmed(game, at)
    ratio = exact(1) if steps is None else steps[1] / steps[0]
    step = None if steps is None else steps[0]
    second = tuple(map(tuple, _second(game, equilibrium)))
    first = len(game.minimise)
    field = _surds([x for row in second for x in (*row, ratio)]) if equilibrium.exact else None
    matrix, note = None, ""
    if field is None:
        note = "not derived: the second derivatives are in no small number field; ask at a step, in floats"
    else:
        rows = step_rows(method, second, first, both_steps(ratio), exact)
        if len(rows) > MOST_STATE:
            note = f"not derived: a state of {len(rows)} numbers, {MOST_STATE} is the limit; ask at a step"
        else:
            matrix = StepMatrix(rows, _nullity(second), field)
    return Analysis(game, method, equilibrium, ratio, step, second, matrix, note)


def _only(game: Game) -> Equilibrium:
    """The equilibrium if there is one alone, or one alone that solves the game."""
    found = game.equilibria()
    good = [one for one in found if one.kind != "none"]
    for points in (found.points, good):
        if len(points) == 1:
            return points[0]
    if not found.points:
        raise DomainError(
            f"{game} has no equilibrium that is known; give one: at=({', '.join('0' * len(game.names))})"
        )
    some = "; ".join(where(game, one.point) for one in (good or found.points)[:4])
    raise DomainError(f"{game} has several equilibria: {some}; say which: at=(...)")


def _second(game: Game, equilibrium: Equilibrium) -> list[list[Any]]:
    if equilibrium.exact:
        return hessian(game, equilibrium.point)
    return game.field().hessian(equilibrium.floats)


def _surds(numbers: Sequence[Any]) -> NumberField | None:
    """The numbers' field, if it is made by a few square roots: in others, resultants take too long."""
    if any(has_no_formula(number) for number in numbers):
        return None
    field = number_field(numbers)
    return field if field is None or field.degree <= LARGEST_FIELD else None


def _nullity(second: Sequence[Sequence[Any]]) -> int:
    return len(second) - int(np.linalg.matrix_rank(np.array(second, dtype=float)))


def _converges(one: Range) -> bool:
    return (
        one.behaviour is not None and one.behaviour.kind in ("converges", "settles") and one.low != one.high
    )
