"""Analysis: for which steps a method converges, cycles or diverges near an equilibrium, and how fast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from lattend.errors import DomainError, NamingError, NoClosedForm
from lattend.report.report import Printed, Report
from lattend.report.shown import Drawn, Shown
from lattend.study.exact.eigenvalues import (
    all_of_period,
    eigenvalues,
    form_change,
    periodic,
    quadratic_invariants,
)
from lattend.study.exact.function import as_float, symbols
from lattend.study.exact.matrix import Behaviour, H, MatrixOfH, Range, merged
from lattend.study.exact.numbers import NumberField, exact, number_field
from lattend.study.exact.radius import RadiusPiece, least_radius, radius, radius_at
from lattend.study.exact.roots import near
from lattend.study.exact.sign import inertia, sign_of
from lattend.study.exact.writing import format_exact, has_no_formula, number_text
from lattend.study.games.equilibria import Equilibrium, confirmed, hessian, least, where
from lattend.study.games.fields import StepMap, step_map, step_rows
from lattend.study.games.methods import Method
from lattend.study.games.reports import analysis_data, analysis_report, behaviour_text, factor_text

if TYPE_CHECKING:
    from lattend.draw.picture import Picture
    from lattend.study.games.game import Game

CLEAR = 1e-9  # a radius known by its decimals is not 1 if it is further from it than this
MOST_DIGITS = 40  # of a second derivative; polynomials with more take minutes to factor
MOST_STATE = 8  # numbers of a state, memory included, whose ranges of steps are derived
LARGEST_FIELD = 4  # degree of the second derivatives' number field


@dataclass(frozen=True)
class Best:
    """The step that converges fastest, and the factor by which distances shrink a step."""

    step: Any
    factor: Any


@dataclass(frozen=True)
class StepOutcome(Shown):
    """The outcome at one step: its kind, the factor by which distances change a step, and the period.

    kind is converges, settles (on one of many equilibria), cycles, grows, diverges, or undecided.
    """

    step: Any
    kind: str
    factor: Any
    behaviour: Behaviour | None = None
    period: int | None = None

    def __str__(self) -> str:
        text = behaviour_text(self.behaviour) if self.behaviour else self.kind
        if self.period:
            return f"{text}, period {self.period}: the step's matrix has M^{self.period} = 1"
        if self.behaviour is not None and self.kind == "cycles" and not self.behaviour.roots.inside:
            return f"{text} without a period: an eigenvalue is no root of 1"
        return (
            text
            if self.factor == 1 or self.kind == "undecided"
            else f"{text}, factor {factor_text(self.factor)} a step"
        )

    def __repr__(self) -> str:
        return f"<StepOutcome h = {number_text(self.step)}: {self}>"


@dataclass(frozen=True, eq=False)
class Analysis(Drawn, Printed):
    """A method near an equilibrium, as a function of the step h of the minimiser; the other's is ratio·h.

    matrix   one step's matrix, exact, in h; None where the second derivatives are in no small number field
    note     why there is no matrix, or empty
    resting  how many directions are filled with equilibria; 0 where that is not known
    """

    game: Game
    method: Method
    equilibrium: Equilibrium
    ratio: Any
    step: Any | None
    second: tuple[tuple[Any, ...], ...]
    matrix: MatrixOfH | None
    note: str = ""
    resting: int = 0

    @property
    def rational(self) -> bool:
        """Whether the matrix has no surds in it: formulas in h, the best step and invariants need that."""
        return self.matrix is not None and self.matrix.field.rational

    @cached_property
    def map(self) -> StepMap | None:
        """One step as formulas in h; None where the game has none."""
        return None if self.game.formula is None else step_map(self.game, self.method, (H, self.ratio * H))

    @cached_property
    def ranges(self) -> tuple[Range, ...]:
        """All steps h > 0, in ranges where one thing happens; proved by exact counts of eigenvalues.

        Empty where their ends are roots of polynomials of too high a degree.
        """
        try:
            all_ranges = self.matrix.ranges if self.matrix else ()
        except NoClosedForm:
            return ()
        return merged([replace(one, behaviour=self._decided(one.behaviour)) for one in all_ranges])

    def _decided(self, powers: Behaviour | None) -> Behaviour | None:
        """The behaviour of the game, from that of its linear part.

        With eigenvalues on the unit circle only a linear gradient decides, and what settles may do so away
        from the equilibria.
        """
        if powers is None or powers.kind in ("converges", "diverges"):
            return powers
        if not self.game.quadratic:
            return replace(powers, kind="undecided")
        if powers.kind == "settles" and powers.roots.on != self.resting:
            return replace(powers, kind="cycles")
        return powers

    @property
    def converging(self) -> list[Range]:
        """The ranges whose steps lead to an equilibrium."""
        kinds = ("converges", "settles")
        return [r for r in self.ranges if r.behaviour and r.behaviour.kind in kinds and r.low != r.high]

    @cached_property
    def eigenvalues(self) -> tuple[Any, ...] | None:
        """All eigenvalues as formulas in h; None where they need more than square roots."""
        pairs = self.pairs
        if pairs is None:
            return None
        return tuple(v for a, b in pairs for v in ((a + b, a - b) if b != 0 else (a,)))

    @cached_property
    def pairs(self) -> list[tuple[Any, Any]] | None:
        """The eigenvalues as middle and spread, for middle ± spread."""
        if self.matrix is None or not self.rational:
            return None
        eigenvalue_pairs = [
            eigenvalues(factor) for factor, power in self.matrix.factors for _ in range(power)
        ]
        return (
            None if None in eigenvalue_pairs else [pair for pairs in eigenvalue_pairs for pair in pairs or ()]
        )

    @cached_property
    def radius(self) -> tuple[RadiusPiece, ...] | None:
        """The factor a step, in pieces over h, of all that moves; None where that is too much work."""
        try:
            return radius(self._moving) if self.rational else None
        except NoClosedForm:
            return None

    @property
    def _moving(self) -> list[Any]:
        """The characteristic polynomial's factors, without z - 1 where all its vectors are equilibria."""
        assert self.matrix is not None
        z = self.matrix.characteristic.gens[0]
        return [
            factor
            for factor, power in self.matrix.factors
            if factor.as_expr() != z - 1 or power != self.resting
        ]

    @cached_property
    def best(self) -> Best | None:
        """The step that converges fastest, exact; None where no step converges or it was not derived."""
        if self.radius is None:
            return None
        try:
            least = [least_radius(self.radius, one.low, one.high) for one in self.converging]
        except NoClosedForm:
            return None
        return min((Best(*one) for one in least if one), key=lambda one: near(one.factor), default=None)

    @cached_property
    def searched_best(self) -> tuple[float, float] | None:
        """The step that converges fastest and its factor, by a search in floats; None beyond floats."""
        minima = [
            least(self.float_factor, as_float(one.low), as_float(min(one.high, one.low + 100)))
            for one in self.converging
        ]
        return min((one for one in minima if one[1] < 1), key=lambda one: one[1], default=None)

    @cached_property
    def invariants(self) -> tuple[Any, ...]:
        """Quadratic forms that steps of the linear part keep, for every h; of f itself if it is quadratic."""
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
        return periodic(self.matrix) if self.matrix and self.rational and self.game.quadratic else None

    def steps_of_period(self, m: int) -> list[Any]:
        """All steps at which m is the least number of steps that brings every start back; for quadratic f."""
        if not isinstance(m, Integral) or not 2 <= m <= 60:
            raise DomainError(f"a period is a whole number from 2 to 60, got {m!r}")
        if self.matrix is None or not self.rational or not self.game.quadratic:
            return []
        return all_of_period(self.matrix, int(m))

    @cached_property
    def change(self) -> tuple[Any, bool] | None:
        """F after a step less f before it, in h, and whether it is 0 on whole lines; for quadratic f."""
        if self.matrix is None or not self.rational or self.method.remembers or not self.game.quadratic:
            return None
        half = [[x / 2 for x in row] for row in self.second]
        form, lines = form_change(self.matrix, half, symbols(self.game.names))
        return self._moved(form), lines

    def at(self, step: Any) -> StepOutcome:
        """The outcome at one step h of the minimiser.

        >>> from lattend.study.games.game import Game
        >>> Game("p*q").analyse("alternating").at(1).period
        6
        """
        h = exact(step)
        if sign_of(h) <= 0:
            raise DomainError(f"a step must be above 0, got {format_exact(h)}")
        outcome = self._decided(self.matrix.at(h)) if self.matrix else None
        if outcome is None:
            factor = self.float_factor(h)
            inside = "settles" if self.resting else "converges"
            side = inside if factor < 1 - CLEAR else "diverges" if factor > 1 + CLEAR else "undecided"
            return StepOutcome(h, side, factor)
        period = self.matrix.period(h) if self.matrix and outcome.kind == "cycles" else None
        if outcome.kind in ("cycles", "grows", "undecided"):
            return StepOutcome(h, outcome.kind, exact(1), outcome, period)
        return StepOutcome(h, outcome.kind, self._factor(h), outcome)

    def _factor(self, h: Any) -> Any:
        """The spectral radius of what moves: exact where that was derived, else a float."""
        try:
            return radius_at(self.radius, h) if self.radius else self.float_factor(h)
        except NoClosedForm:
            return self.float_factor(h)

    @cached_property
    def here(self) -> StepOutcome | None:
        """The outcome at the step that was asked for."""
        return None if self.step is None else self.at(self.step)

    def float_factor(self, h: Any) -> float:
        """The spectral radius of what moves, in floats; nan where a number is beyond them."""
        second = [[as_float(x) for x in row] for row in self.second]
        steps = as_float(h), as_float(self.ratio * h)
        rows = np.array(step_rows(self.method, second, len(self.game.minimise), steps, float), dtype=float)
        if not np.isfinite(rows).all():
            return math.nan
        values = np.linalg.eigvals(rows)
        return float(np.abs(values[np.argsort(np.abs(values - 1))][self.resting :]).max())

    def draw(self) -> Picture:
        """The factor a step against the step h, with what is proved."""
        from lattend.study.games.pictures import with_factors

        return with_factors(self)

    def json(self) -> dict[str, Any]:
        """The analysis as plain data; formulas are texts that `h` may be put into."""
        return analysis_data(self)

    def report(self) -> Report:
        """The proved behaviour by ranges of steps."""
        return analysis_report(self)

    def __repr__(self) -> str:
        return f"<Analysis of {self.game.text}: {self.method}>"


def analyse(game: Game, method: Method, steps: tuple[Any, Any] | None, at: Sequence[Any] | None) -> Analysis:
    """The method near one equilibrium, with the ratio of these steps."""
    if str(H) in game.names:
        raise NamingError("h is the step in an analysis; call the game's own h something else")
    equilibrium = _only(game) if at is None else confirmed(game, at)
    if equilibrium.kinked:
        raise DomainError(
            f"f has a kink at {where(game, equilibrium.point)}: no second derivatives to analyse"
        )
    ratio = exact(1) if steps is None else steps[1] / steps[0]
    step = None if steps is None else steps[0]
    second = tuple(map(tuple, _second(game, equilibrium)))
    first = len(game.minimise)
    field = _surds([x for row in second for x in (*row, ratio)]) if equilibrium.exact else None
    matrix, note, resting = None, "", 0
    if field is None:
        note = "not derived: the second derivatives are in no small number field; ask at a step, in floats"
    else:
        rows = step_rows(method, second, first, (H, ratio * H), exact)
        if len(rows) > MOST_STATE:
            note = f"not derived: a state of {len(rows)} numbers, {MOST_STATE} is the limit; ask at a step"
        elif any(field.digits(field.of(x)) > MOST_DIGITS for row in second for x in (*row, ratio)):
            note = f"not derived: numbers of more than {MOST_DIGITS} digits; ask at a step, in floats"
        else:
            matrix = MatrixOfH(rows, field)
        if game.quadratic:  # the second derivatives' kernel, moved to the equilibrium, is all equilibria
            domain = field.domain
            resting = inertia([[domain.from_sympy(x) for x in row] for row in second], domain).zero
    return Analysis(game, method, equilibrium, ratio, step, second, matrix, note, resting)


def _only(game: Game) -> Equilibrium:
    """The equilibrium if there is one alone, or one alone that solves the game."""
    known = game.equilibria()
    good = [one for one in known if one.kind != "none"]
    for points in (known.points, good):
        if len(points) == 1:
            return points[0]
    if not known.points:
        if known.complete:
            raise DomainError(f"{game} has no equilibrium: the gradient is 0 nowhere")
        raise DomainError(
            f"{game} has no equilibrium that is known; give one: at=({', '.join('0' * len(game.names))})"
        )
    some = "; ".join(where(game, one.point) for one in (good or known.points)[:4])
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
