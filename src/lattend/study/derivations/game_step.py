"""One step of a minimax game as formulas, out of its gradients."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from lattend.errors import DomainError, NamingError
from lattend.study.derivations.draft import Chain, Draft, Instances, Link
from lattend.study.derivations.evaluation import Environment, vector
from lattend.study.exact.function import symbols
from lattend.study.exact.numbers import exact
from lattend.study.exact.writing import format_exact
from lattend.study.games.fields import StepMap
from lattend.study.games.game import Game
from lattend.study.games.methods import Method

PLACES = 5
STEP = "h"  # the letter of a step that stays open
PLAIN_METHODS = ("alternating", "simultaneous")


def game(f: Any = "p*q", method: str = "alternating", step: Any = 1, **options: Any) -> Draft:
    """One step of a minimax game, p' = −q, q' = p + q, f' = −q(p + q); any polynomial, method and step."""
    played = f if isinstance(f, Game) else Game(f)
    rule = played.method(method, **options)
    if not played.polynomial or played.formula is None:
        raise DomainError(f"a step is derived for polynomials with rational coefficients; got {played}")
    if STEP in played.names:
        raise NamingError("h is the step; call the game's own h something else")
    is_open = step == STEP
    step_map = played.map(rule, None if is_open else step)
    ground = Instances(
        f"exactly, on {PLACES} random places{' and steps' if is_open else ''}",
        lambda random: _played(step_map, random),
        many=PLACES,
    )
    slopes = zip(played.names, played.formulas.functions, strict=True)
    chains = [
        (f"f_{name}", [Link(format_exact(slope.formula), f"the derivative of f by {name}")])
        for name, slope in slopes
    ]
    first = getattr(rule, "first", None)
    in_turn = (*played.minimise, *played.maximise) if first == "p" else (*played.maximise, *played.minimise)
    chains += [(f"{name}'", _moves(step_map, name)) for name in in_turn]
    remembered = [name for name in step_map.formulas if name not in played.names]
    chains += [
        (f"{name}'", [Link(step_map.texts[f"{name}'"], "what is remembered next")]) for name in remembered
    ]
    value = [Link(format_exact(played.formula.at(symbols([f"{name}'" for name in played.names]))), "f there")]
    if step_map.texts["f'"] != value[0].formula:
        value.append(Link(step_map.texts["f'"], "with the new place put in"))
    letters = " and ".join(f"f_{name}" for name in played.names)
    steps = " and ".join(dict.fromkeys(map(format_exact, step_map.step)))
    memory = f"; it remembers {' and '.join(remembered)}" if remembered else ""
    return Draft(
        "game",
        f"One step of the game: {played}",
        f"{played.rule_text(rule)}, step {steps}{memory}; {letters} are the gradients",
        [Chain(left, links, ground) for left, links in (*chains, ("f'", value))],
        [("f", played.text, "what the one makes small and the other large")],
    )


def _moves(step_map: StepMap, name: str) -> list[Link]:
    """A player's move: along its gradient where the method is plain, then as a formula in the old place."""
    played, rule, final = step_map.game, step_map.method, step_map.texts[f"{name}'"]
    if rule.name not in PLAIN_METHODS:
        return [Link(final, f"one step of {played.rule_text(rule)}")]
    down = name in played.minimise
    others = played.maximise if down else played.minimise
    first = getattr(rule, "first", None)
    answers = first is not None and first != ("p" if down else "q")  # moves when the others have
    slope = played.formulas.functions[played.names.index(name)]
    names = [f"{one}'" if answers and one in others else one for one in played.names]
    text = format_exact(slope.formula.xreplace(dict(zip(slope.names, symbols(names), strict=True))))
    h = step_map.step[0 if down else 1]
    times = "" if h == 1 else f"({format_exact(h)}) * "
    where = f", where {' and '.join(others)} moved already" if answers else ""
    reason = f"{name} goes {'down' if down else 'up'} its gradient{where}"
    move = Link(f"{name} {'-' if down else '+'} {times}({text})", reason)
    if answers:
        return [move, Link(final, "with the new place put in")]
    return [move, Link(final, "sorted")] if slope.formula.is_Add else [move]


def _played(step_map: StepMap, random: Random) -> Environment:
    """A random state, the gradients as limits of difference quotients, and the method's step in numbers."""
    played = step_map.game
    assert played.formula is not None
    state = [exact(Fraction(random.randint(-9, 9), random.randint(1, 5))) for _ in step_map.formulas]
    place = state[: len(played.names)]
    step = exact(Fraction(random.randint(1, 9), 5))
    h = [one.subs(dict.fromkeys(one.free_symbols, step)) for one in step_map.step]
    after = _step(step_map.method, played, state, (h[0], h[1]))
    little = symbols(["ε"])[0]
    slopes: Environment = {}
    for at, name in enumerate(played.names):
        moved = [x + little if k == at else x for k, x in enumerate(place)]
        quotient = ((played.formula.at(moved) - played.formula.at(place)) / little).expand()
        slopes[f"f_{name}"] = quotient.subs(little, 0)
    return {
        **dict(zip(step_map.formulas, state, strict=True)),
        **slopes,
        **dict(zip((f"{name}'" for name in step_map.formulas), after, strict=True)),
        **{"f": played.formula.at(place), "f'": played.formula.at(after[: len(place)]), STEP: h[0]},
    }


def _step(rule: Method, played: Game, state: list[Any], h: tuple[Any, Any]) -> list[Any]:
    """The state after one step, p and q and what is remembered of each in turn."""
    first, many = len(played.minimise), len(played.names)
    parts = np.split(vector(state), [first, many, many + first][: 3 if rule.remembers else 1])
    return [entry for part in rule.step(played.field(exact), tuple(parts), h) for entry in part]
