"""What the panels of a game have in common: the game and the methods that a question names."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from lattend.errors import NamingError
from lattend.web.copies import call
from lattend.web.panel import Question

if TYPE_CHECKING:
    from lattend.study.games.analysis import Analysis
    from lattend.study.games.game import Game
    from lattend.study.games.methods import Method

Number = Annotated[str, Field(max_length=120)]
"""A number as people type it: 1/2, 0.3, sqrt(2)."""
Half = Annotated[float, Field(gt=1e-6, le=1e6)]
Middle = Annotated[float, Field(ge=-1e6, le=1e6)]
View = tuple[Middle, Middle, Half]
"""The middle of the plane that is shown, and half of its side."""
KEPT = 32  # games and analyses that a worker remembers


class GameQuestion(Question):
    """A formula, or dirac with its loss; `minimise` names who makes it small, where that must be said."""

    game: str = Field(max_length=400)
    minimise: str = Field(default="", max_length=100)
    loss: Literal["logistic", "linear"] = "logistic"


class MethodQuestion(GameQuestion):
    """A game and how both players step; `first`, `mass` and `weight` go to the methods that take them."""

    method: str = Field(default="alternating", max_length=40)
    first: Literal["", "p", "q"] = ""
    mass: Number = ""
    weight: Number = ""


class SteppedQuestion(MethodQuestion):
    """A method and others beside it, and the step of both players: a number, or two with a comma."""

    also: Annotated[list[str], Field(max_length=7)] = Field(default_factory=list)
    step: Number = "1"

    @property
    def methods(self) -> list[str]:
        """All methods, each once."""
        return list(dict.fromkeys((self.method, *self.also)))

    @property
    def pair(self) -> str | tuple[str, ...]:
        """The step as a game takes it."""
        parts = tuple(part.strip() for part in self.step.split(","))
        return parts[0] if len(parts) == 1 else parts


def ends(view: View) -> tuple[tuple[float, float], tuple[float, float]]:
    """From where to where p and q are shown."""
    across, up, half = view
    return (across - half, across + half), (up - half, up + half)


def read(question: GameQuestion) -> Game:
    """The game; the same one while the question does not change, with all that it has worked out."""
    return _read(question.game, question.minimise, question.loss)


@lru_cache(maxsize=KEPT)
def _read(text: str, minimise: str, loss: str) -> Game:
    from lattend.study.games.game import RING, read_game

    if text.strip() == RING:
        raise NamingError("ring trains two nets, which takes a while: `lattend game ring` in a terminal")
    return read_game(text, minimise.strip() or None, None, loss)


def method(question: MethodQuestion, name: str) -> Method:
    """The method of this name with the options that it takes."""
    return read(question).method(name, **options(question, name))


def options(question: MethodQuestion, name: str) -> dict[str, str]:
    """Those given that this method takes."""
    from lattend.study.games.methods import options_of

    given = {"first": question.first, "mass": question.mass.strip(), "weight": question.weight.strip()}
    return {key: given[key] for key in options_of(name) if given[key]}


def analysis(
    question: MethodQuestion, name: str, at: str = "", steps: tuple[str, ...] | None = None
) -> Analysis:
    """For which steps the method converges near an equilibrium, worked out once for all steps.

    `steps` are those of both players where they differ: the analysis is then for all steps of their ratio.
    """
    return _analysis(read(question), method(question, name), steps, place(at))


def place(at: str) -> tuple[str, ...] | None:
    """The equilibrium `0, 1/2` as a game takes it; None for the only one."""
    return tuple(part.strip() for part in at.split(",")) if at.strip() else None


@lru_cache(maxsize=KEPT)
def _analysis(
    game: Game, rule: Method, steps: tuple[str, ...] | None, at: tuple[str, ...] | None
) -> Analysis:
    return game.analyse(rule, steps, at)


def game_call(question: GameQuestion) -> str:
    """The game as a line of Python."""
    if question.game.strip() == "dirac":
        return call("game = lt.study.games.dirac", question.loss)
    return call("game = lt.study.games.Game", question.game, minimise=question.minimise.strip())


def command_options(question: MethodQuestion, *names: str) -> dict[str, Any]:
    """The options of `lattend game` that say the same."""
    found: dict[str, Any] = {"method": ",".join(names)}
    for name in names:
        found |= options(question, name)
    return found | game_options(question)


def game_options(question: GameQuestion) -> dict[str, Any]:
    """Those that name the game itself."""
    if question.game.strip() == "dirac":
        return {"loss": question.loss}
    return {"minimise": ",".join(question.minimise.replace(",", " ").split())}


def at_words(at: str) -> tuple[str, ...]:
    """The equilibrium as words of the command."""
    return ("--at", at.strip()) if at.strip() else ()
