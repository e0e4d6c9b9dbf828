"""Table: every method against several steps, with the factor by which a step shrinks or grows distances."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lattend.draw.charts.chart import Scale
from lattend.draw.formats.palette import SIGNED, ink
from lattend.draw.grid.marks import Label
from lattend.draw.grid.panel import Panel, Side
from lattend.draw.picture import Below, Picture
from lattend.errors import DomainError
from lattend.report.numbers import fixed_beside, significant
from lattend.study.exact.numbers import exact
from lattend.study.exact.writing import decimal, format_exact
from lattend.study.games.analysis import Analysis, StepOutcome
from lattend.study.games.game import Game
from lattend.study.games.methods import Method, momentum
from lattend.study.games.reports import behaviour_text, factor_text, steps_text

STEPS = ("1/10", "1/4", "1/2", "3/4", "1", "3/2", "2", "5/2")
ROWS: tuple[Method | str, ...] = (
    *("simultaneous", "alternating", "optimistic", "extragradient", "momentum"),
    momentum("-1/2", first="q"),
    *("consensus", "gradient_penalty"),
)


def compare_methods(
    game: Game,
    steps: Any = STEPS,
    methods: Method | str | Iterable[Method | str] = ROWS,
    at: Any = None,
) -> Picture:
    """Methods against steps near an equilibrium: converges, cycles or diverges, and by what factor a step.

    Below the table stand the exact ranges in which each method converges, and its best step. Blue shrinks
    distances, red grows them.
    """
    rows, columns = _several(methods), _several(steps)
    if not rows or not columns:
        raise DomainError("a table needs one step and one method, or more")
    numbers = [exact(step) for step in columns]
    analyses = [game.analyse(one, at=at) for one in rows]
    cells = [[one.at(step) for step in numbers] for one in analyses]
    names = [str(one.method) for one in analyses]
    panel, scale = _panel(cells, _short(names), [format_exact(step) for step in numbers])
    reading = _reading(cells)
    return Picture(
        str(game),
        (panel,),
        (reading,),
        ("methods against the step h of both players",),
        facts=tuple((name, _ranges(one)) for name, one in zip(names, analyses, strict=True)),
        scales=(scale,),
        labelled=Below((reading,), scales=(scale,)),
        bare=Below(scales=(scale,)),
        grid=44.0 * max(len(numbers), len(names)),
        data={
            "game": game.text,
            "steps": [format_exact(step) for step in numbers],
            "methods": {
                name: [{"kind": outcome.kind, "factor": float(outcome.factor)} for outcome in row]
                for name, row in zip(names, cells, strict=True)
            },
            "analyses": [one.json() for one in analyses],
        },
    )


def _several(value: Any) -> list[Any]:
    """A list of what may be one alone."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]


def _panel(
    cells: Sequence[Sequence[StepOutcome]], names: Sequence[str], steps: Sequence[str]
) -> tuple[Panel, Scale]:
    scale = Scale("factor a step", 0.0, 2.0, SIGNED, most="2 or more")
    filled = scale.cells(np.array([[float(outcome.factor) for outcome in row] for row in cells]))
    words = [[_word(outcome) for outcome in row] for row in cells]
    longest = max((word for row in words for word in row), key=len)
    labels = tuple(
        Label(row + 0.5, col + 0.5, word, ink(SIGNED[filled[row, col]].fill), like=longest)
        for row, line in enumerate(words)
        for col, word in enumerate(line)
    )
    sides = Side("method", len(names), _ticks(names)), Side("step h", len(steps), _ticks(steps))
    return Panel(filled, SIGNED, *sides, "", labels), scale


def _short(names: Sequence[str]) -> list[str]:
    """The names without their numbers, which the facts have, where they stay apart."""
    short = [re.sub(", (mass|weight) [^,]+", "", name) for name in names]
    return [one if short.count(one) == 1 else name for one, name in zip(short, names, strict=True)]


def _ticks(names: Sequence[str]) -> tuple[tuple[float, str], ...]:
    return tuple((index + 0.5, name) for index, name in enumerate(names))


def _word(outcome: StepOutcome) -> str:
    """The factor where it is not 1, else what happens."""
    if outcome.kind not in ("converges", "diverges"):
        return outcome.kind
    factor = float(outcome.factor)
    return fixed_beside(factor, 3, 0, 1) if factor < 9.9995 else significant(factor, 3)


def _reading(cells: Sequence[Sequence[StepOutcome]]) -> str:
    """What the words in the cells mean, those that are there."""
    kinds = {outcome.kind for row in cells for outcome in row}
    sentences = ["a number below 1 converges, above 1 diverges"]
    sentences += ["cycles: distances stay within bounds for ever"] if "cycles" in kinds else []
    sentences += ["grows: like a power of the steps"] if "grows" in kinds else []
    sentences += ["settles: at one of the equilibria, which form a line"] if "settles" in kinds else []
    sentences += ["undecided: second derivatives do not decide"] if "undecided" in kinds else []
    return "; ".join(sentences)


def _ranges(one: Analysis) -> str:
    """Where the method converges and how fast at best; where it does not, what it does."""
    if one.matrix is None:
        return one.note
    kinds: dict[str, list[str]] = {}
    for part in one.ranges:
        steps = steps_text(part.low, part.high, part.low_in, part.high_in)
        kinds.setdefault(behaviour_text(part.behaviour), []).append(steps)
    best = (
        f"; best factor {_best_text(one.best.factor)} at h = {_best_text(one.best.step)}" if one.best else ""
    )
    if "converges" in kinds:
        return f"converges for {' and '.join(kinds['converges'])}{best}"
    return "; ".join(f"{kind} for {' and '.join(steps)}" for kind, steps in kinds.items())


def _best_text(number: Any) -> str:
    """An exact number with its decimals, the decimals alone where it has no short form."""
    text = factor_text(number)
    return text if text[0] == "s" or text.replace("/", "").isdigit() else decimal(number)
