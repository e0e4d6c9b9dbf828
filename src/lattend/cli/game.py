"""lattend game: a minimax game step by step, for which steps it converges, and its pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lattend.cli.arguments import out_option, read_names
from lattend.cli.command import Answer, Command, argument, flag, option
from lattend.cli.failures import in_options
from lattend.cli.output import say, say_json, tell, width
from lattend.errors import DomainError, LattendError, NamingError
from lattend.report.numbers import seconds

if TYPE_CHECKING:
    from lattend.draw.picture import Picture
    from lattend.study.games.analysis import Analysis
    from lattend.study.games.methods import Method
    from lattend.study.games.modes import RingRun
    from lattend.study.games.orbit import Orbit

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


@dataclass(frozen=True)
class GameCommand(Command):
    """A minimax game: one player makes f small, the other large.

    The orbit step by step, exact where it can be; its period, proved; for which steps the method converges,
    cycles or diverges; the equilibria. dirac is the smallest GAN, ring a GAN on a ring of Gaussians.

        lattend game "p*q" --step 1 --method alternating --start 1,1 --steps 6
        lattend game "p*q" --table
        lattend game "p*q - p^2/4" --method simultaneous,optimistic --step 0.3 --out portrait.svg
        lattend game dirac --loss linear --method gradient_penalty --step 1/2 --portrait
        lattend game "p*q - p^2/4" --field
        lattend game ring --runs 1 --seed 7 --out ring.svg
    """

    game: str = argument("GAME", 'A formula such as "p*q", or dirac, or ring.')
    method: str | None = option(
        "NAME",
        "simultaneous, alternating, optimistic, extragradient, momentum, consensus or "
        "gradient_penalty; several with commas. alternating unless said.",
    )
    step: str | None = option("H", "A number, or one for each player: H,H. 1. With --table, its columns.")
    start: str | None = option("P,Q", "Where both begin. 1 each unless said.")
    steps: int | None = option("N", "How many. 12.")
    first: str | None = option(
        "q|p", "Who moves first, if not at once: the maximiser or the minimiser, or a name of theirs."
    )
    weight: str | None = option("W", "Of consensus and gradient_penalty. 1.")
    mass: str | None = option("M", "Of momentum. -1/2.")
    at: str | None = option("P,Q", "The equilibrium that is analysed.")
    minimise: str | None = option("NAMES", "Who makes f small, as in x,y.")
    maximise: str | None = option("NAMES", "Who makes f large.")
    loss: str | None = option("logistic|linear", "Of dirac. logistic.")
    seed: int | None = option("S", "Of the first run, for ring. 0.")
    runs: int | None = option("N", "Of each method, each with the next seed, for ring. 3.")
    table: bool = flag("Methods against steps, all unless said.")
    field: bool = flag("Where the gradients pull, and the equilibria; no orbit.")
    floats: bool = flag("Floats, where exact numbers get long.")
    portrait: bool = flag("Draw in the terminal as well.")
    out: str | None = out_option()

    def answer(self) -> Answer:
        names, called = read_names(self.method), self.game.strip()
        self._refuse_unused(
            called if called in (DIRAC, RING) else "a formula",
            "the field" if self.field and called != RING else "",
            "a table" if self.table else "",
            "a comparison of methods" if len(names) > 1 and not self.table else "",
            "a file" if self.out else "",
        )
        options, many = self.options("first weight mass"), self.options("steps")
        if options and not names and (self.table or called == RING):
            raise NamingError(f"--{next(iter(options))} belongs to a method; name it with --method")
        if called == RING:
            several = _seeds(0 if self.seed is None else self.seed, 3 if self.runs is None else self.runs)
            return _ring(names, self.step, several, many, options)
        from lattend.study.games.game import read_game

        played = read_game(called, self.minimise, self.maximise, self.loss or "logistic")
        if self.field:
            return played.equilibria().draw()
        methods = _methods(names or ["alternating"], options, played.method)
        if self.table:
            from lattend.study.games.pictures import ROWS, STEPS, compare_methods

            chosen = methods if names else ROWS
            return compare_methods(played, _numbers(self.step) or STEPS, chosen, _numbers(self.at))
        pair = _pair(self.step)
        point = _numbers(self.start) or ["1"] * len(played.names)
        orbits = [played.orbit(point, pair, method=one, floats=self.floats, **many) for one in methods]
        if len(orbits) > 1:
            from lattend.study.games.pictures import compare_orbits

            return compare_orbits(*orbits)
        _one(orbits[0], _numbers(self.at), self.portrait, self.out, self.json)

    def _refuse_unused(self, *answers: str) -> None:
        """Raise if an option is given that would have no effect."""
        for answer in filter(None, answers):
            self.refuse(UNUSED[answer], f"{answer} has no use for {{}}")


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
