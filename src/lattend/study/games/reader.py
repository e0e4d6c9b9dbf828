"""read_game: the game that a text names, as commands and pages take it."""

from __future__ import annotations

from lattend.errors import NamingError
from lattend.study.games.game import Game, Names, dirac
from lattend.wording import close_names

DIRAC, RING = "dirac", "ring"


def read_game(text: str, minimise: Names = None, maximise: Names = None, loss: str = "logistic") -> Game:
    """The game of a formula, or dirac with this loss; a name that is nearly one is told.

    >>> print(read_game("dirac", loss="linear"))
    min over p, max over q of -p*q
    """
    text = text.strip()
    if text == DIRAC:
        return dirac(loss)
    close = close_names(text.lower(), (DIRAC, RING)) if text.isidentifier() else []
    if close:
        raise NamingError(f'there is no game "{text}"; did you mean {close[0]}?')
    return Game(text, minimise, maximise)
