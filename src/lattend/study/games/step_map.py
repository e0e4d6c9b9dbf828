"""StepMap: one step of a method as formulas: p' = -q, q' = p + q, f' = -q*(p + q)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lattend.report.report import Printed, Report
from lattend.report.table import Facts
from lattend.study.exact.function import most_digits, most_terms, symbols
from lattend.study.exact.powers.matrix import H
from lattend.study.exact.writing import LONGEST, factored_text, format_exact, polynomial_text
from lattend.study.games.fields import SymbolicField
from lattend.study.games.methods import Method

if TYPE_CHECKING:
    from lattend.study.games.game import Game

MOST_TERMS = 24  # of a formula that is multiplied out


@dataclass(frozen=True, eq=False)
class StepMap(Printed):
    """Where one step leads, for every place at once.

    formulas  the new place of each name, and what the method remembers: {"p": -q, "q": p + q}
    value     f at the new place
    step      the steps of both players, numbers or formulas in h

    What a method remembers of p is called g_p: the last gradient of optimistic, the speed of momentum.
    """

    game: Game
    method: Method
    step: tuple[Any, Any]
    formulas: dict[str, Any]
    value: Any

    @cached_property
    def texts(self) -> dict[str, str]:
        """The formulas as people type them, f' after the others."""
        assert self.game.formula is not None
        names = symbols(list(self.formulas))
        written = {f"{name}'": _text(one, names) for name, one in self.formulas.items()}
        # Numbers of hundreds of digits take minutes to factor, and their text is too long anyway
        short = most_terms(self.value) <= MOST_TERMS and most_digits(self.value) <= LONGEST
        if short and len(text := factored_text(self.value)) <= LONGEST:
            return {**written, "f'": text}
        new = symbols([f"{name}'" for name in self.game.names])
        return {**written, "f'": format_exact(self.game.formula.at(new))}

    def __getitem__(self, name: str) -> Any:
        return self.formulas[name]

    def __str__(self) -> str:
        return ", ".join(f"{name} = {text}" for name, text in self.texts.items())

    def __repr__(self) -> str:
        return f"<StepMap {self}>"

    def json(self) -> dict[str, Any]:
        """The formulas as texts."""
        return {
            "game": self.game.text,
            "method": str(self.method),
            "step": [format_exact(h) for h in self.step],
            "map": self.texts,
        }

    def report(self) -> Report:
        """The formulas as facts."""
        return Report(
            str(self.game), [self.game.rule_text(self.method), Facts(list(self.texts.items()))], self.json()
        )


def _text(formula: Any, names: Sequence[Any]) -> str:
    short = formula.is_polynomial(*names) and most_terms(formula) <= MOST_TERMS
    return polynomial_text(formula, names) if short else format_exact(formula)


def step_map(game: Game, method: Method, step: tuple[Any, Any] | None = None) -> StepMap:
    """One step of the method as formulas; both steps are h where none is given."""
    assert game.formula is not None
    h = (H, H) if step is None else step
    first = len(game.minimise)
    field = SymbolicField(game.formula, first)
    remembered = [f"g_{name}" for name in game.names] if method.remembers else []
    names = [*game.names, *remembered]
    place = np.array(symbols(names), dtype=object)
    state = (
        tuple(np.split(place, [first, len(game.names), len(game.names) + first]))
        if remembered
        else (
            place[:first],
            place[first:],
        )
    )
    after = [entry for part in method.step(field, state, h) for entry in part]
    return StepMap(
        game, method, h, dict(zip(names, after, strict=True)), field.value(after[: len(game.names)])
    )
