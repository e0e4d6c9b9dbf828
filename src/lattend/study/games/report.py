"""What results say: facts and tables for people, plain data for programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lattend.draw.picture import Picture
from lattend.report.numbers import significant
from lattend.study.exact.forms import equation_text, number_text, polynomial_text
from lattend.study.exact.function import as_float, symbols
from lattend.study.exact.powers.matrix import H
from lattend.study.exact.writing import text as written
from lattend.study.games.equilibria import where
from lattend.study.games.orbit import shown, steps_said
from lattend.study.games.sentences import eigenvalue_text, factor_text, range_rows, steps_text

if TYPE_CHECKING:
    from lattend.study.games.analysis import Analysis
    from lattend.study.games.equilibria import Equilibria
    from lattend.study.games.orbit import Orbit

MOST_ROWS = 24  # of an orbit's table
LONGEST_EQUATION, LONGEST_EIGENVALUES = 120, 240  # characters
TOO_HIGH = "not derived: their ends are roots of a polynomial of too high a degree; ask at a step"


def orbit_told(orbit: Orbit) -> Picture:
    """The orbit as facts and a table of its places."""
    about = (f"{orbit.game.rule_text(orbit.method)}, {orbit.step_text}",)
    facts, table = _orbit_facts(orbit), _places(orbit)
    return Picture(str(orbit.game), (), (), about, facts=facts, table=table, data=orbit.json())


def equilibria_told(found: Equilibria) -> Picture:
    """The equilibria as facts: where each one is, and what it is."""
    facts = tuple((where(found.game, one.point), str(one)) for one in found)
    return Picture(str(found.game), (), (), (found.summary(),), facts=facts, data=found.json())


def analysis_told(analysis: Analysis) -> Picture:
    """The analysis as facts and a table of ranges."""
    game, ratio = analysis.game, analysis.ratio
    steps = "steps h" if ratio == 1 else f"steps h and {written(ratio * H)}"
    about = (f"{game.rule_text(analysis.method)}, {steps}, near {where(game, analysis.equilibrium.point)}",)
    table: tuple[tuple[str, ...], ...] = ()
    if analysis.ranges:
        table = (("steps", "what happens", "factor a step"), *range_rows(analysis.ranges, analysis.radius))
    facts = _analysis_facts(analysis)
    return Picture(str(game), (), (), about, facts=facts, table=table, data=plain(analysis))


def plain(analysis: Analysis) -> dict[str, Any]:
    """The analysis as plain data; formulas are texts that `h` may be put into."""
    best, here, matrix = analysis.best, analysis.here, analysis.matrix
    return {
        "game": analysis.game.text,
        "method": str(analysis.method),
        "equilibrium": analysis.equilibrium.json(),
        "ratio": written(analysis.ratio),
        "characteristic": matrix and written(matrix.characteristic.as_expr()),
        "eigenvalues": analysis.eigenvalues and [written(value) for value in analysis.eigenvalues],
        "ranges": [
            {
                "steps": steps_text(one.low, one.high, one.low_in, one.high_in),
                "low": _finite(one.low),
                "high": _finite(one.high),
                "kind": one.behaviour.kind if one.behaviour else None,
            }
            for one in analysis.ranges
        ],
        "best": best and {"step": written(best.step), "factor": written(best.factor)},
        "invariants": [written(form) for form in analysis.invariants],
        "periodic": analysis.periodic and written(analysis.periodic),
        "at": here
        and {
            "step": written(here.step),
            "kind": here.kind,
            "factor": _finite(here.factor),
            "period": here.period,
        },
        "everywhere": analysis.game.quadratic,
        "note": analysis.note,
    }


def _orbit_facts(orbit: Orbit) -> tuple[tuple[str, str], ...]:
    kind = "exact" if orbit.exact else "floats"
    facts = [("numbers", f"{kind}{', ' + orbit.note if orbit.note else ''}")]
    if orbit.returns:
        first, again = orbit.returns
        said = f"the state after {again} steps is that after {first}"
        if orbit.period == 1:
            said = f"nobody moves from step {first} on"
        facts.append(("period", f"{orbit.period}, proved: {said}"))
    elif orbit.exact:
        facts.append(("period", f"none within {steps_said(len(orbit.points) - 1)}"))
    once = [t for t in orbit.stalls if not orbit.returns or t < orbit.returns[1]]
    if once:
        listed = ", ".join(f"{t} to {t + 1}" for t in once[:6]) + (", …" if once[6:] else "")
        said = f"from step {listed}, though the gradient is not 0: no sign of an equilibrium"
        facts.append(("f stays equal", said))
    return tuple(facts)


def _places(orbit: Orbit) -> tuple[tuple[str, ...], ...]:
    """A heading and a row for each step; of a long orbit its beginning and its end."""
    last = len(orbit.points) - 1
    listed = [t for t in range(last + 1) if last < MOST_ROWS or t < MOST_ROWS - 1 or t == last]
    rows: list[tuple[str, ...]] = [("step", *orbit.game.names, "f")]
    for t in listed:
        if rows[1:] and t > int(rows[-1][0]) + 1:
            rows.append(tuple("…" for _ in rows[0]))
        rows.append((str(t), *map(shown, (*orbit.points[t], orbit.values[t]))))
    return tuple(rows)


def _analysis_facts(analysis: Analysis) -> tuple[tuple[str, str], ...]:
    facts = [("equilibrium", str(analysis.equilibrium))]
    if analysis.note:
        facts.append(("ranges", analysis.note))
    if analysis.matrix is not None:
        if analysis.rational:
            facts.append(("eigenvalues", _eigenvalues(analysis)))
        facts.append(("best step", _best(analysis)) if analysis.ranges else ("ranges", TOO_HIGH))
    facts += [(number_text(end), f"solves {said}") for end, said in _equations(analysis)]
    quadratic = analysis.game.quadratic
    for form in analysis.invariants:
        facts.append(
            ("stays equal", f"{_in_names(analysis, form)}{'' if quadratic else ', of the linear part'}")
        )
    if analysis.periodic is not None:
        when = f"at h = {written(analysis.periodic)}"
        facts.append(("period m", f"{when}, 0 < j < m/2, j and m without a common factor"))
    if analysis.change is not None and analysis.change[1] and analysis.change[0] != 0:
        said = f"f' - f = {written(analysis.change[0])} is 0 on whole lines"
        facts.append(("f alone", f"{said}: that f stays equal for a step does not show an equilibrium"))
    if analysis.here is not None:
        facts.append((f"at h = {number_text(analysis.here.step)}", str(analysis.here)))
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
        return ", ".join(dict.fromkeys(map(eigenvalue_text, analysis.pairs)))
    z = matrix.characteristic.gens[:1]
    said = " and ".join(f"{polynomial_text(factor.as_expr(), z)} = 0" for factor, _ in matrix.factors)
    short = len(said) < LONGEST_EIGENVALUES
    return f"the roots z of {said}" if short else f"{matrix.size}, without a short formula"


def _equations(analysis: Analysis) -> list[tuple[Any, str]]:
    """Steps in this analysis that have no formula, and what they solve."""
    ends = [one.high for one in analysis.ranges] + ([analysis.best.step] if analysis.best else [])
    found = [(end, equation_text(end)) for end in dict.fromkeys(ends)]
    return [(end, said) for end, said in found if said and len(said) < LONGEST_EQUATION]


def _best(analysis: Analysis) -> str:
    if not analysis.converging:
        kinds = {one.behaviour.kind if one.behaviour else "undecided" for one in analysis.ranges}
        return f"none: no step {'is proved to converge' if 'undecided' in kinds else 'converges'}"
    if analysis.best is not None:
        return f"{factor_text(analysis.best.step)}: factor {factor_text(analysis.best.factor)}"
    if analysis.searched_best is None:
        return "not derived, and the numbers are beyond floats"
    step, factor = (significant(found, 5) for found in analysis.searched_best)
    return f"about {step}, factor about {factor}: searched for in floats, not proved"


def _in_names(analysis: Analysis, form: Any) -> str:
    if any(analysis.equilibrium.point):
        return written(form)
    return polynomial_text(form, symbols(analysis.game.names))


def _finite(number: Any) -> float | None:
    """The number as a float; None for an infinity, which JSON has not."""
    found = as_float(number)
    return found if math.isfinite(found) else None
