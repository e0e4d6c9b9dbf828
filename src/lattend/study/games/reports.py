"""Reports of games: orbits, equilibria, ranges of steps, eigenvalues and factors, for people and as data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lattend.counts.latex import maths
from lattend.report.maths import Maths, Sentence, marked
from lattend.report.numbers import significant
from lattend.report.report import Report
from lattend.report.table import Facts, Table
from lattend.study.exact.function import as_float, symbols
from lattend.study.exact.matrix import Behaviour, H, MatrixOfH, Range
from lattend.study.exact.radius import RadiusPiece
from lattend.study.exact.roots import at_most
from lattend.study.exact.writing import (
    LONGEST,
    equation_text,
    format_exact,
    latex,
    number_text,
    polynomial_text,
    short_decimal,
)
from lattend.study.games.equilibria import where
from lattend.wording import many

if TYPE_CHECKING:
    from lattend.study.games.analysis import Analysis, StepOutcome
    from lattend.study.games.equilibria import Equilibria
    from lattend.study.games.fields import StepMap
    from lattend.study.games.orbit import Orbit

MOST_ROWS = 24  # of an orbit's table
LONGEST_EXACT = 24  # characters of a coordinate
LONGEST_MAP, LONGEST_MATRIX = 160, 60  # characters of one step as formulas, and as a matrix
LONGEST_EQUATION, LONGEST_EIGENVALUES = 120, 240  # characters
NO_FORMULA = "no short formula"
TOO_HIGH = "not derived: their ends are roots of a polynomial of too high a degree; ask at a step"


def orbit_report(orbit: Orbit) -> Report:
    """The orbit as facts and a table of its places."""
    about = f"{orbit.game.rule_text(orbit.method)}, {orbit.step_text}"
    return Report(str(orbit.game), [about, Facts(_orbit_facts(orbit)), _places(orbit)], orbit.json())


def equilibria_report(equilibria: Equilibria) -> Report:
    """The equilibria as facts: where each one is, and what it is."""
    facts = (
        [Facts([(where(equilibria.game, one.point), str(one)) for one in equilibria])]
        if equilibria.points
        else []
    )
    return Report(str(equilibria.game), [equilibria.summary(), *facts], equilibria.json())


def analysis_report(analysis: Analysis) -> Report:
    """The analysis as facts and a table of ranges."""
    game, ratio = analysis.game, analysis.ratio
    steps = "steps h" if ratio == 1 else f"steps h and {format_exact(ratio * H)}"
    about = f"{game.rule_text(analysis.method)}, {steps}, near {where(game, analysis.equilibrium.point)}"
    parts: list[Facts | Table | str] = [about, Facts(_analysis_facts(analysis))]
    if analysis.ranges:
        rows = range_rows(analysis.ranges, analysis.radius)
        cells = [
            (maths(step), words, factor if factor == NO_FORMULA else maths(factor))
            for step, words, factor in rows
        ]
        parts.append(Table(("steps", "what happens", "factor a step"), cells))
    return Report(str(game), parts, analysis.json())


def analysis_data(analysis: Analysis) -> dict[str, Any]:
    """The analysis as plain data; formulas are texts that `h` may be put into."""
    best, outcome, matrix = analysis.best, analysis.here, analysis.matrix
    return {
        "game": analysis.game.text,
        "method": str(analysis.method),
        "equilibrium": analysis.equilibrium.json(),
        "ratio": format_exact(analysis.ratio),
        "map": analysis.map and analysis.map.texts,
        "matrix": matrix and matrix.texts,
        "characteristic": matrix and format_exact(matrix.characteristic.as_expr()),
        "eigenvalues": analysis.eigenvalues and [format_exact(value) for value in analysis.eigenvalues],
        "ranges": [
            {
                "steps": steps_text(one.low, one.high, one.low_in, one.high_in),
                "low": _finite(one.low),
                "high": _finite(one.high),
                "kind": one.behaviour.kind if one.behaviour else None,
            }
            for one in analysis.ranges
        ],
        "best": best and {"step": format_exact(best.step), "factor": format_exact(best.factor)},
        "invariants": [format_exact(form) for form in analysis.invariants],
        "periodic": analysis.periodic and format_exact(analysis.periodic),
        "at": outcome
        and {
            "step": format_exact(outcome.step),
            "kind": outcome.kind,
            "factor": _finite(outcome.factor),
            "period": outcome.period,
        },
        "everywhere": analysis.game.quadratic,
        "note": analysis.note,
    }


def _orbit_facts(orbit: Orbit) -> tuple[tuple[str, str], ...]:
    kind = (
        f"formulas in {' and '.join(orbit.letters)}"
        if orbit.letters
        else "exact"
        if orbit.exact
        else "floats"
    )
    facts = [("numbers", f"{kind}{', ' + orbit.note if orbit.note else ''}")]
    facts = [*_map_facts(orbit.map), *facts]
    if orbit.returns:
        first, second = orbit.returns
        note = f"the state after {second} steps is that after {first}"
        if orbit.period == 1:
            note = f"nobody moves from step {first} on"
        everywhere = f" for all {' and '.join(orbit.letters)}" if orbit.letters else ""
        facts.append(("period", f"{orbit.period}, proved{everywhere}: {note}"))
    elif orbit.exact:
        facts.append(("period", f"none within {many(len(orbit.points) - 1, 'step')}"))
    once = [t for t in orbit.stalls if not orbit.returns or t < orbit.returns[1]]
    if once:
        listed = ", ".join(f"{t} to {t + 1}" for t in once[:6]) + (", …" if once[6:] else "")
        note = f"from step {listed}, though the gradient is not 0: no sign of an equilibrium"
        facts.append(("f stays equal", note))
    return tuple(facts)


def _map_facts(step_map: StepMap | None) -> list[tuple[str, str]]:
    """One step as formulas, where they are short enough to be read."""
    if step_map is None or len(str(step_map)) > LONGEST_MAP:
        return []
    remembered = [name for name in step_map.formulas if name not in step_map.game.names]
    memory = f"; {' and '.join(remembered)} are what it remembers" if remembered else ""
    steps = _listed(maths(f"{name} = {text}") for name, text in step_map.texts.items())
    return [("one step", Sentence(steps, memory))]


def _listed(formulas: Iterable[str]) -> Sentence:
    """With commas between them."""
    first, *rest = formulas
    return Sentence(first, *(part for formula in rest for part in (", ", formula)))


def _places(orbit: Orbit) -> Table:
    """A row for each step; of a long orbit its beginning and its end."""
    last = len(orbit.points) - 1
    head = ("step", *orbit.game.names, "f")
    rows: list[tuple[str, ...]] = []
    for t in range(last + 1):
        if last >= MOST_ROWS and MOST_ROWS - 1 <= t < last:
            continue
        if rows and t > int(rows[-1][0]) + 1:
            rows.append(tuple("…" for _ in head))
        rows.append((str(t), *map(format_coordinate, (*orbit.points[t], orbit.values[t]))))
    return Table(head, rows)


def _analysis_facts(analysis: Analysis) -> tuple[tuple[str, str], ...]:
    called = "stationary" if analysis.equilibrium.kind == "none" else "equilibrium"
    facts = [(called, str(analysis.equilibrium))]
    facts += _map_facts(analysis.map)
    if analysis.note:
        facts.append(("ranges", analysis.note))
    if analysis.matrix is not None:
        if analysis.rational:
            if len(str(analysis.matrix)) <= LONGEST_MATRIX:
                facts.append(("matrix", Sentence(_matrix(analysis.matrix), ", by which a step multiplies")))
            facts.append(("eigenvalues", _eigenvalues(analysis)))
        facts.append(("best step", _best(analysis)) if analysis.ranges else ("ranges", TOO_HIGH))
    facts += [(number_text(end), f"solves {remark}") for end, remark in _equations(analysis)]
    quadratic = analysis.game.quadratic
    for form in analysis.invariants:
        facts.append(
            (
                "stays equal",
                Sentence(maths(_in_names(analysis, form)), "" if quadratic else ", of the linear part"),
            )
        )
    if analysis.periodic is not None:
        when = Maths(f"h = {format_exact(analysis.periodic)}", f"h = {latex(analysis.periodic)}")
        range_ = maths("0 < j < m/2")
        facts.append(("period m", Sentence("at ", when, ", ", range_, ", j and m without a common factor")))
    if analysis.change is not None and analysis.change[1] and analysis.change[0] != 0:
        change = maths(f"f' - f = {format_exact(analysis.change[0])}")
        remark = " is 0 on whole lines: that f stays equal for a step does not show an equilibrium"
        facts.append(("f alone", Sentence(change, remark)))
    if analysis.here is not None:
        facts.append((f"at h = {number_text(analysis.here.step)}", outcome_words(analysis.here)))
    reach = (
        "from every start: the gradient is linear"
        if quadratic
        else "close to the equilibrium; undecided where the linear part neither converges nor diverges"
    )
    return (*facts, ("holds", reach))


def _eigenvalues(analysis: Analysis) -> str:
    matrix = analysis.matrix
    assert matrix is not None
    if analysis.pairs is not None:
        texts = dict.fromkeys(map(eigenvalue_text, analysis.pairs))
        return _listed(map(maths, texts))
    z = matrix.characteristic.gens[:1]
    text = " and ".join(f"{polynomial_text(factor.as_expr(), z)} = 0" for factor, _ in matrix.factors)
    short = len(text) < LONGEST_EIGENVALUES
    return (
        marked(f"the roots z of {text}", [maths(one) for one in text.split(" and ")])
        if short
        else f"{matrix.size}, without a short formula"
    )


def _equations(analysis: Analysis) -> list[tuple[Any, str]]:
    """Steps in this analysis that have no formula, and what they solve."""
    ends = [one.high for one in analysis.ranges] + ([analysis.best.step] if analysis.best else [])
    equations = [(end, equation_text(end)) for end in dict.fromkeys(ends)]
    return [(end, text) for end, text in equations if text and len(text) < LONGEST_EQUATION]


def _best(analysis: Analysis) -> str:
    if not analysis.converging:
        kinds = {one.behaviour.kind if one.behaviour else "undecided" for one in analysis.ranges}
        return f"none: no step {'is proved to converge' if 'undecided' in kinds else 'converges'}"
    if analysis.best is not None:
        step, factor = (maths(factor_text(one)) for one in (analysis.best.step, analysis.best.factor))
        return Sentence(step, ": factor ", factor)
    if analysis.searched_best is None:
        return "not derived, and the numbers are beyond floats"
    step, factor = (significant(number, 5) for number in analysis.searched_best)
    return f"about {step}, factor about {factor}: searched for in floats, not proved"


def _in_names(analysis: Analysis, form: Any) -> str:
    if any(analysis.equilibrium.point):
        return format_exact(form)
    return polynomial_text(form, symbols(analysis.game.names))


def _matrix(matrix: MatrixOfH) -> Maths:
    """The matrix behind its name."""
    rows = [" & ".join(getattr(maths(text), "latex", text) for text in row) for row in matrix.texts]
    body = r" \\ ".join(rows)
    return Maths(f"M = {matrix}", rf"M = \begin{{pmatrix}} {body} \end{{pmatrix}}")


def outcome_words(outcome: StepOutcome) -> str:
    """An outcome in words, with its formulas marked."""
    return marked(
        str(outcome),
        [maths(f"M^{outcome.period} = 1") if outcome.period else maths(factor_text(outcome.factor))],
    )


def _finite(number: Any) -> float | None:
    """The number as a float; None for an infinity, which JSON has not."""
    value = as_float(number)
    return value if math.isfinite(value) else None


def format_coordinate(number: Any) -> str:
    """The number exactly where that is short, else its first six digits, as of a float."""
    if not isinstance(number, float):
        long = number.is_Rational and max(map(abs, number.as_numer_denom())) >= 10**LONGEST_EXACT
        if not long and (len(exactly := format_exact(number)) <= LONGEST_EXACT or number.free_symbols):
            return exactly
        number = Decimal(str(number.evalf(12)))
    return significant(number, 6)


def steps_text(low: Any, high: Any, low_in: bool, high_in: bool) -> str:
    """`0 < h <= 1/2`, `h = 2`, `h > 2`."""
    if low == high:
        return f"h = {number_text(low)}"
    if high.is_infinite:
        return "every h" if low == 0 else f"h {'>=' if low_in else '>'} {number_text(low)}"
    return f"{number_text(low)} {'<=' if low_in else '<'} h {'<=' if high_in else '<'} {number_text(high)}"


def behaviour_text(behaviour: Behaviour | None) -> str:
    """`grows like t`."""
    if behaviour is None:
        return "undecided"
    if behaviour.kind == "grows":
        return "grows like t" if behaviour.order == 1 else f"grows like t^{behaviour.order}"
    return {"settles": "settles on a stationary point"}.get(behaviour.kind, behaviour.kind)


def eigenvalue_text(pair: tuple[Any, Any]) -> str:
    """`1 - h^2 ± i*h`."""
    middle, spread = pair
    if spread == 0:
        return format_exact(middle)
    text = format_exact(spread)
    loose = spread.is_Add
    return f"{format_exact(middle)} ± {f'({text})' if loose else text.removeprefix('-')}"


def factor_text(number: Any) -> str:
    """`sqrt(2)/2 = 0.7071`, or the decimal alone where it is a float."""
    if isinstance(number, float):
        return significant(number, 6)
    if number.is_Integer or (number.is_Rational and number.q <= 12):
        return format_exact(number)
    text = number_text(number)
    return text if text[0].isdigit() and "." in text else f"{text} = {short_decimal(number)}"


def range_rows(ranges: Sequence[Range], pieces: Sequence[RadiusPiece] | None) -> list[tuple[str, str, str]]:
    """A row for each range of steps, cut where the factor's formula changes."""
    rows: list[tuple[str, str, str]] = []
    for one in ranges:
        words = behaviour_text(one.behaviour)
        if one.low == one.high:
            known = one.behaviour is not None and one.behaviour.kind in ("cycles", "grows", "undecided")
            rows.append((steps_text(one.low, one.high, True, True), words, "1" if known else ""))
            continue
        cut = [
            piece
            for piece in pieces or ()
            if not at_most(one.high, piece.low) and not at_most(piece.high, one.low)
        ]
        if not cut:
            rows.append((steps_text(one.low, one.high, one.low_in, one.high_in), words, ""))
        for piece in cut:
            from_start, to_end = at_most(piece.low, one.low), at_most(one.high, piece.high)
            rows.append(
                (
                    steps_text(
                        one.low if from_start else piece.low,
                        one.high if to_end else piece.high,
                        one.low_in if from_start else True,
                        one.high_in if to_end else True,
                    ),
                    words,
                    _radius_text(piece),
                )
            )
    return rows


def _radius_text(piece: RadiusPiece) -> str:
    if piece.formula is None or len(text := format_exact(piece.formula)) > LONGEST:
        return NO_FORMULA
    return text
