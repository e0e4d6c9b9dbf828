"""One step of a minimax game as formulas, out of its gradients."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

from lattend.errors import DomainError, NamingError
from lattend.study.derivations.argument import Argument, Chain, Instances, Link
from lattend.study.derivations.evaluation import Environment
from lattend.study.exact.function import symbols
from lattend.study.exact.numbers import exact
from lattend.study.exact.writing import format_exact
from lattend.study.games.game import Game
from lattend.study.games.methods import METHODS, TURNS

PLACES = 5
STEP = "h"  # the letter of a step that stays open


def game(f: Any = "p*q", method: str = "alternating", step: Any = 1, **options: Any) -> Argument:
    """One step of a minimax game, p' = −q, q' = p + q, f' = −q(p + q); any polynomial, method and step."""
    played = f if isinstance(f, Game) else Game(f)
    rule = played.method(method, **options)
    if not played.polynomial or len(played.names) != 2 or rule.remembers:
        plain = [name for name in METHODS if not played.method(name).remembers]
        raise DomainError(
            "a step is derived for a polynomial of two numbers and a method that remembers nothing: "
            f"{', '.join(plain)}; got {played}, {rule}"
        )
    if STEP in played.names:
        raise NamingError("h is the step; call the game's own h something else")
    open_step = step == STEP
    found = played.map(rule) if open_step else played.map(rule, step)
    ground = Instances(
        f"exactly, on {PLACES} random places" + (" and steps" if open_step else ""),
        lambda random: _played(played, rule, None if open_step else step, random),
        many=PLACES,
    )
    p, q = played.names
    slopes = dict(zip(played.names, played.formulas.functions, strict=True))
    gradient = [
        Chain(f"f_{name}", [Link(format_exact(slope.formula), f"the derivative of f by {name}")], ground)
        for name, slope in slopes.items()
    ]
    moves = {name: _moves(played, rule, name, found.texts[f"{name}'"], found.step) for name in (q, p)}
    order = (p, q) if getattr(rule, "first", None) == "p" else (q, p)
    at_new = played.formula.at(symbols([f"{p}'", f"{q}'"])) if played.formula else None
    value = [Link(format_exact(at_new), "f at the new place")]
    if found.texts["f'"] != value[0].formula:
        value.append(Link(found.texts["f'"], f"with {p}' and {q}' put in"))
    return Argument(
        "game",
        f"One step of the game: {played}",
        f"{played.rule_text(rule)}, step {format_exact(found.step[0])}; f_{p} and f_{q} are the gradients",
        [*gradient, *(Chain(f"{name}'", moves[name], ground) for name in order), Chain("f'", value, ground)],
        [("f", played.text, "what the one makes small and the other large")],
    )


def _moves(played: Game, rule: Any, name: str, final: str, step: tuple[Any, Any]) -> list[Link]:
    """A player's move: along its gradient where the method is plain, then as a formula in the old place."""
    last = Link(final, f"one step of {played.rule_text(rule)}")
    if rule.name not in ("alternating", "simultaneous"):
        return [last]
    p, q = played.names
    down = name == p
    h = step[0 if down else 1]
    slope = played.formulas.functions[0 if down else 1]
    answers = len(TURNS[rule.first]) == 2 and rule.first != ("p" if down else "q")  # moves as the second
    names = [(f"{p}'" if answers and not down else p), (f"{q}'" if answers and down else q)]
    text = format_exact(slope.formula.xreplace(dict(zip(slope.names, symbols(names), strict=True))))
    goes = "down" if down else "up"
    where = f", where {q if down else p} is already at its new place" if answers else ""
    times = "" if h == 1 else f"{format_exact(h)} * "
    move = Link(f"{name} {'-' if down else '+'} {times}({text})", f"{name} goes {goes} its gradient{where}")
    if answers:
        return [move, Link(final, "with the new place put in")]
    return [move, Link(final, "sorted")] if slope.formula.is_Add else [move]


def _played(played: Game, rule: Any, step: Any, random: Random) -> Environment:
    """A random place, its gradient as the limit of difference quotients, and where an exact orbit goes."""

    def number() -> Any:
        return exact(Fraction(random.randint(-9, 9), random.randint(1, 5)))

    place = [number(), number()]
    h = exact(Fraction(random.randint(1, 9), 5)) if step is None else step
    orbit = played.orbit(place, h, steps=1, method=rule)
    assert played.formula is not None
    little = symbols(["ε"])[0]
    slopes: Environment = {}
    for at, name in enumerate(played.names):
        moved = [x + little if k == at else x for k, x in enumerate(place)]
        quotient = ((played.formula.at(moved) - played.formula.at(place)) / little).expand()
        slopes[f"f_{name}"] = quotient.subs(little, 0)
    new = dict(zip((f"{name}'" for name in played.names), orbit.points[1], strict=True))
    return {
        **dict(zip(played.names, place, strict=True)),
        **slopes,
        **new,
        **{"f": orbit.values[0], "f'": orbit.values[1], STEP: h},
    }
