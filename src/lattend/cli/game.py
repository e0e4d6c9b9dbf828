"""lattend game: a minimax game step by step, for which steps it converges, and its pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lattend.cli.arguments import Json, Out, argument, option, read_names
from lattend.cli.failures import in_options
from lattend.cli.output import say, say_json, show, tell, width
from lattend.errors import DomainError, LattendError, NamingError
from lattend.report.numbers import seconds

if TYPE_CHECKING:
    from lattend.draw.picture import Picture
    from lattend.study.games.analysis import Analysis
    from lattend.study.games.methods import Method
    from lattend.study.games.modes import RingRun
    from lattend.study.games.orbit import Orbit

EXAMPLES = (
    'lattend game "p*q" --step 1 --method alternating --start 1,1 --steps 6',
    'lattend game "p*q" --table',
    'lattend game "p*q - p^2/4" --method simultaneous,optimistic --step 0.3 --out portrait.svg',
    "lattend game dirac --loss linear --method gradient_penalty --step 1/2 --portrait",
    'lattend game "p*q - p^2/4" --field',
    "lattend game ring --runs 1 --seed 7 --out ring.svg",
)
DIRAC, RING = "dirac", "ring"
# What each answer has no use for
UNUSED = {
    "a formula": ("loss", "seed", "runs"),
    DIRAC: ("minimise", "maximise", "seed", "runs"),
    RING: ("start", "at", "minimise", "maximise", "loss", "table", "field", "floats", "portrait"),
    "a table": ("start", "steps", "floats", "portrait"),
    "the field": (
        *("method", "step", "start", "steps", "first", "weight", "mass", "at"),
        *("table", "floats", "portrait"),
    ),
    "a comparison of methods": ("at",),
    "a file": ("portrait",),
}


def game(
    context: typer.Context,
    game: Annotated[str, argument("GAME", 'A formula such as "p*q", or dirac, or ring.')],
    method: Annotated[
        str | None,
        option(
            "NAME",
            "simultaneous, alternating, optimistic, extragradient, momentum, consensus or "
            "gradient_penalty; several with commas. alternating unless said.",
        ),
    ] = None,
    step: Annotated[
        str | None, option("H", "A number, or one for each player: H,H. 1. With --table, its columns.")
    ] = None,
    start: Annotated[str | None, option("P,Q", "Where both begin. 1 each unless said.")] = None,
    steps: Annotated[int | None, option("N", "How many. 12.")] = None,
    first: Annotated[
        str | None,
        option(
            "q|p", "Who moves first, if not at once: the maximiser or the minimiser, or a name of theirs."
        ),
    ] = None,
    weight: Annotated[str | None, option("W", "Of consensus and gradient_penalty. 1.")] = None,
    mass: Annotated[str | None, option("M", "Of momentum. -1/2.")] = None,
    at: Annotated[str | None, option("P,Q", "The equilibrium that is analysed.")] = None,
    minimise: Annotated[str | None, option("NAMES", "Who makes f small, as in x,y.")] = None,
    maximise: Annotated[str | None, option("NAMES", "Who makes f large.")] = None,
    loss: Annotated[str | None, option("logistic|linear", "Of dirac. logistic.")] = None,
    seed: Annotated[int | None, option("S", "Of the first run, for ring. 0.")] = None,
    runs: Annotated[int | None, option("N", "Of each method, each with the next seed, for ring. 3.")] = None,
    table: Annotated[bool, typer.Option("--table", help="Methods against steps, all unless said.")] = False,
    field: Annotated[
        bool, typer.Option("--field", help="Where the gradients pull, and the equilibria; no orbit.")
    ] = False,
    floats: Annotated[bool, typer.Option("--floats", help="Floats, where exact numbers get long.")] = False,
    portrait: Annotated[bool, typer.Option("--portrait", help="Draw in the terminal as well.")] = False,
    out: Out = None,
    json: Json = False,
) -> None:
    """A minimax game: one player makes f small, the other large.

    The orbit step by step, exact where it can be; its period, proved; for which steps the method converges,
    cycles or diverges; the equilibria. dirac is the smallest GAN, ring a GAN on a ring of Gaussians.
    """
    names, called = read_names(method), game.strip()
    _refuse_unused(
        context,
        called if called in (DIRAC, RING) else "a formula",
        "the field" if field and called != RING else "",
        "a table" if table else "",
        "a comparison of methods" if len(names) > 1 and not table else "",
        "a file" if out else "",
    )
    method_options = {"first": first, "weight": weight, "mass": mass}
    options = {name: value for name, value in method_options.items() if value is not None}
    if options and not names and (table or called == RING):
        raise NamingError(f"--{next(iter(options))} belongs to a method; name it with --method")
    many: dict[str, Any] = {} if steps is None else {"steps": steps}
    if called == RING:
        several = _seeds(0 if seed is None else seed, 3 if runs is None else runs)
        show(_ring(names, step, several, many, options), out, json)
        return
    from lattend.study.games.game import read_game

    played = read_game(called, minimise, maximise, loss or "logistic")
    if field:
        show(played.equilibria().draw(), out, json)
        return
    methods = _methods(names or ["alternating"], options, played.method)
    if table:
        from lattend.study.games.pictures import ROWS, STEPS, compare_methods

        chosen = methods if names else ROWS
        show(compare_methods(played, _numbers(step) or STEPS, chosen, _numbers(at)), out, json)
        return
    pair = _pair(step)
    point = _numbers(start) or ["1"] * len(played.names)
    orbits = [played.orbit(point, pair, method=one, floats=floats, **many) for one in methods]
    if len(orbits) > 1:
        from lattend.study.games.pictures import compare_orbits

        show(compare_orbits(*orbits), out, json)
        return
    _one(orbits[0], _numbers(at), portrait, out, json)


def _one(orbit: Orbit, at: list[str] | None, portrait: bool, out: str | None, json: bool) -> None:
    """Print one method's orbit, what is proved about it, and its pictures."""
    from lattend.study.figures import figure
    from lattend.study.games.pictures import with_pictures

    file = None if out is None else str(with_pictures(orbit, at).save(out))
    if file is not None and not json:
        say(f"{file}: {orbit.game}")
        return
    analysis, why = _analysed(orbit, at)
    if json:
        equilibria = orbit.game.equilibria().json()
        data = {"orbit": orbit.json(), "equilibria": equilibria, "analysis": analysis and analysis.json()}
        say_json({**data, "why": why or None, "file": file})
        return
    if portrait:
        say(figure(orbit.report(), with_pictures(orbit).charts[:1]).terminal(width=width()).rstrip())
    else:
        say(orbit.text(width()))
    if analysis is not None:
        more = replace(analysis.report(), title="For which steps")
    else:
        data = orbit.game.equilibria()
        nowhere = data.complete and not data.points  # which the report says itself
        parts = (*data.report().parts, *(() if nowhere else ("", why)))
        more = replace(data.report(), title="Equilibria", parts=parts)
    say(f"\n{more.text(width())}")


def _analysed(orbit: Orbit, at: list[str] | None) -> tuple[Analysis | None, str]:
    """The analysis, or the reason why there is none; the orbit is an answer without it."""
    try:
        return orbit.game.analyse(orbit.method, orbit.step, at), ""
    except LattendError as error:
        if at is not None:
            raise
        return None, f"which steps converge is not said: {in_options(str(error))}"


def _refuse_unused(context: typer.Context, *answers: str) -> None:
    """Raise if an option is given that would have no effect."""
    used = {name for name, value in context.params.items() if value is not None and value is not False}
    for answer in filter(None, answers):
        for name in UNUSED[answer]:
            if name in used:
                raise NamingError(f"{answer} has no use for --{name}")


def _methods(names: list[str], options: dict[str, str], method: Callable[..., Method]) -> list[Method]:
    """The methods with the options that each of them takes."""
    from lattend.study.games.methods import options_of

    if len(names) == 1:
        return [method(names[0], **options)]
    known = {name: options_of(name) for name in names}
    for texts in options:
        if not any(texts in of_one for of_one in known.values()):
            raise NamingError(f"{' and '.join(names)} have no use for --{texts}")
    return [
        method(name, **{texts: value for texts, value in options.items() if texts in known[name]})
        for name in names
    ]


def _numbers(text: str | None) -> list[str] | None:
    """`1,1/2` as texts, which the game reads exactly."""
    return None if text is None else [part.strip() for part in text.split(",")]


def _pair(text: str | None) -> Any:
    """`1/2` as one step, `0.1,0.2` as two; read exactly by the game."""
    if text is None:
        return 1
    if text.strip() == "h":
        raise NamingError(
            "--step is a number; what is said for which steps holds for every h, and "
            "`lattend derive game --step h` leaves it open"
        )
    parts = _numbers(text) or []
    return parts[0] if len(parts) == 1 else parts


def _seeds(first: int, runs: int) -> list[int]:
    """The seeds of all runs, checked before the first begins."""
    from lattend.seeds import check_seed

    if not 1 <= runs <= 100:
        raise DomainError(f"--runs is 1 to 100, got {runs}")
    return [check_seed(seed) for seed in range(first, first + runs)]


def _ring(
    names: list[str], step: str | None, seeds: list[int], many: dict[str, Any], options: dict[str, str]
) -> Picture:
    """Run each method on several seeds, and print each result at its end."""
    from lattend.study.games.methods import method_of
    from lattend.study.games.modes import draw_runs
    from lattend.study.games.tensors import ring

    runs: list[RingRun] = []
    for rule in _methods(names or ["gradient_penalty", "simultaneous"], options, method_of):
        for seed in seeds:
            run = ring(rule, _pair(step) if step else None, seed=seed, **many)
            tell(f"{run.method}, seed {seed}: {run.sentence()} ({seconds(run.seconds, 2)})")
            runs.append(run)
    return draw_runs(runs)
