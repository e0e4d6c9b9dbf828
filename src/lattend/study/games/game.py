"""Game: a function that one player makes small and the other makes large."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import prod
from numbers import Integral
from typing import TYPE_CHECKING, Any

from lattend.errors import DomainError, LattendError, NamingError, TraceError
from lattend.report.shown import Shown
from lattend.study.exact.formula import formula
from lattend.study.exact.function import Function, is_formula, symbols
from lattend.study.exact.numbers import exact
from lattend.study.exact.sign import sign_of
from lattend.study.exact.writing import format_exact, number_text
from lattend.study.games.fields import FormulaField
from lattend.study.games.methods import Method, method_of
from lattend.wording import close_names

if TYPE_CHECKING:
    from lattend.study.games.analysis import Analysis
    from lattend.study.games.equilibria import Equilibria
    from lattend.study.games.fields import StepMap
    from lattend.study.games.orbit import Orbit
    from lattend.study.games.tensors import TensorField

Names = str | Sequence[str] | None
STEPS, MOST_STEPS = 12, 100_000  # of an orbit
# What a discriminator of value t on the generated point is worth; the data's share is a constant
LOSSES = {
    "logistic": "-softplus(p*q) - log(2)",
    "linear": "-p*q",
}


class Game(Shown):
    """min over p, max over q of f(p, q); f is a formula or a function, of two numbers or of more.

    Of two names the first in the alphabet minimises, of a function's arguments the first; `minimise` and
    `maximise` say otherwise, and share out more than two: Game("x*u + y*v", minimise="x y"). A function that
    takes symbols is read as a formula; one that needs torch numbers is played in floats.

    >>> game = Game("p*q")
    >>> print(game)
    min over p, max over q of p*q
    >>> game.orbit((1, 1), step=1, steps=6).period  # q first: q' = q + p, p' = p - q' = -q
    6
    """

    def __init__(self, f: Any, minimise: Names = None, maximise: Names = None) -> None:
        self.function: Callable[..., Any] | None = None
        function_of, listed = _read(f)
        if function_of is not None and function_of.is_number:
            raise DomainError(
                f"f has no gradient: it is {format_exact(function_of)} everywhere, and nobody would move"
            )
        self.minimise, self.maximise = _players(listed, minimise, maximise)
        self.names = (*self.minimise, *self.maximise)
        if function_of is None:
            self.function, self.formula = _in_order(f, listed, self.names), None
            name = getattr(f, "__name__", "f")
            self.text = f"{name if name.isidentifier() else 'f'}({', '.join(listed)})"
            _try(self.field())
        else:
            self.formula = Function(function_of, symbols(self.names))
            self.text = format_exact(function_of)
            _needs_gradient(self.formula, self.text, self.minimise, self.maximise)

    @property
    def polynomial(self) -> bool:
        """Whether f is a polynomial with rational coefficients, so that orbits can be exact."""
        return self.formula is not None and self.formula.terms is not None

    @cached_property
    def quadratic(self) -> bool:
        """Whether the gradient is linear, so that what holds near an equilibrium holds everywhere."""
        degree = None if self.formula is None else self.formula.degree
        return degree is not None and degree <= 2

    @cached_property
    def formulas(self) -> FormulaField:
        """The field with its formulas, for games that have one."""
        assert self.formula is not None
        return FormulaField(self.formula, len(self.minimise))

    def field(self, number: Callable[[Fraction], Any] = float) -> FormulaField | TensorField:
        """The gradients that methods step along, in floats or in the numbers that `number` makes."""
        if self.formula is not None:
            return FormulaField(self.formula, len(self.minimise), number)
        try:
            from lattend.study.games.tensors import TensorField
        except ModuleNotFoundError as error:
            raise TraceError(
                "the function takes no symbols, so it needs torch numbers, and torch is not installed: "
                "pip install lattend[torch], or write it with + - * / **"
            ) from error

        assert self.function is not None
        return TensorField(self.function, len(self.minimise), len(self.names))

    def value(self, point: Any) -> float:
        """F at a point, as a float.

        >>> Game("p*q").value((2, 3))
        6.0
        """
        return float(self._floats.value([float(x) for x in self.point(point)]))

    def gradient(self, point: Any) -> tuple[float, ...]:
        """∂f for each name, as floats."""
        return tuple(map(float, self._floats.all([float(x) for x in self.point(point)])))

    @cached_property
    def _floats(self) -> FormulaField | TensorField:
        return self.field()

    def orbit(
        self,
        start: Any,
        step: Any = 1,
        steps: int = STEPS,
        method: Method | str = "alternating",
        *,
        floats: bool = False,
        **options: Any,
    ) -> Orbit:
        """The players' places, step by step; exact where f is a polynomial and the numbers are exact.

        `step` is one number or a pair, the minimiser's first; texts such as "sqrt(3)" are exact too. A start
        may have letters in it, ("p0", "q0"): the places are then formulas. `floats` computes in floats all
        the same.
        """
        from lattend.study.games.orbit import orbit

        if not (isinstance(steps, Integral) and 0 <= steps <= MOST_STEPS):
            raise DomainError(f"an orbit has 0 to {MOST_STEPS:,} steps, got {steps!r}")
        rule = self.method(method, **options)
        return orbit(self, self.point(start), step_pair(step), steps, rule, floats=floats)

    def analyse(
        self, method: Method | str = "alternating", step: Any = None, at: Any = None, **options: Any
    ) -> Analysis:
        """For which steps h the method converges, cycles or diverges near an equilibrium, proved.

        Both steps are h; a pair (a, b) fixes their ratio: h and (b/a)h, asked at h = a. `at` is the
        equilibrium, by default the only one.
        """
        from lattend.study.games.analysis import analyse

        steps = None if step is None else step_pair(step)
        point = None if at is None else self.point(at, "at")
        return analyse(self, self.method(method, **options), steps, point)

    def map(self, method: Method | str = "alternating", step: Any = None, **options: Any) -> StepMap:
        """One step of the method as formulas; its step is the letter h where none is given.

        >>> print(Game("p*q").map(step=1))
        p' = -q, q' = p + q, f' = -q*(p + q)
        """
        from lattend.study.games.fields import step_map

        if step is None and "h" in self.names:
            raise NamingError("h is the step of a map; call the game's own h something else, or give step=")
        if self.formula is None:
            raise DomainError("the game is a function that takes no symbols; its steps have no formulas")
        return step_map(self, self.method(method, **options), None if step is None else step_pair(step))

    def method(self, wanted: Method | str, **options: Any) -> Method:
        """The method of this name; `first` may be a player's own name as well as "p" or "q".

        >>> print(Game("x*u", minimise="x").method("alternating", first="x"))
        alternating, p first
        """
        first = options.get("first")
        if first not in ("p", "q") and first in self.names:
            options["first"] = "p" if first in self.minimise else "q"
        return method_of(wanted, **options)

    def rule_text(self, method: Method) -> str:
        """The method as it is said of this game, with the player's own name.

        >>> game = Game("x*u", minimise="x")
        >>> game.rule_text(game.method("alternating", first="x"))
        'alternating, x first'
        """
        players = {"p": " and ".join(self.minimise), "q": " and ".join(self.maximise)}
        return re.sub(r"\b([pq])(?= first)", lambda found: players[found[1]], str(method))

    def equilibria(self) -> Equilibria:
        """The points where the gradient is 0, exact and complete for polynomials, with the kind of each."""
        return self._equilibria

    @cached_property
    def _equilibria(self) -> Equilibria:
        from lattend.study.games.equilibria import equilibria

        return equilibria(self)

    def point(self, values: Any, name: str = "start") -> tuple[Any, ...]:
        """A number for each name, exact; from a list in the order of `names`, or from {name: number}."""
        wanted = f"{name} must be {len(self.names)} numbers, for {', '.join(self.names)}"
        if isinstance(values, Mapping):
            if set(values) != set(self.names):
                raise NamingError(f"{wanted}; got some for {', '.join(map(str, values)) or 'none'}")
            values = [values[key] for key in self.names]
        if hasattr(values, "detach"):  # a torch tensor
            values = values.detach().cpu().numpy()
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise DomainError(f"{wanted}; got {values!r}")
        numbers = list(values)
        if len(numbers) != len(self.names):
            raise DomainError(f"{wanted}; got {len(numbers)}")
        try:
            return tuple(
                formula(number) if name == "start" and _has_letters(number) else exact(number)
                for number in numbers
            )
        except DomainError as error:
            raise DomainError(f"{name}: {error}") from None

    def __str__(self) -> str:
        return f"min over {', '.join(self.minimise)}, max over {', '.join(self.maximise)} of {self.text}"

    def __repr__(self) -> str:
        return f"<Game {self}>"


def step_pair(step: Any) -> tuple[Any, Any]:
    """The minimiser's and the maximiser's step, exact and above 0.

    >>> step_pair(0.5)
    (1/2, 1/2)
    """
    pair = tuple(step) if isinstance(step, Sequence) and not isinstance(step, str) else (step, step)
    if len(pair) != 2:
        raise DomainError(f"step is one number or two, the minimiser's and the maximiser's; got {len(pair)}")
    try:
        numbers = exact(pair[0]), exact(pair[1])
    except DomainError as error:
        raise DomainError(f"step: {error}") from None
    for number in numbers:
        sign = sign_of(number)
        if sign <= 0:
            less = "nobody would move" if sign == 0 else "the players would change sides"
            raise DomainError(f"a step must be above 0, got {number_text(number)}: {less}")
    return numbers


def _read(f: Any) -> tuple[Any, list[str]]:
    """The formula, or None for a function that takes no symbols, and its names in order."""
    if isinstance(f, str):
        value = _multiplied(formula(f))
        return value, sorted(str(name) for name in value.free_symbols)
    if is_formula(f):
        listed = sorted(str(name) for name in f.free_symbols)
        return _real(f.xreplace({name: symbols([str(name)])[0] for name in f.free_symbols})), listed
    try:
        parameters = inspect.signature(f).parameters
    except (TypeError, ValueError):  # no function, or one that does not tell its arguments
        raise NamingError(
            f'a game is a formula, as in Game("p*q"), or a function of the players\' numbers; got {f!r:.60}'
        ) from None
    listed = [
        name
        for name, parameter in parameters.items()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    try:
        value = f(*symbols(listed))
    except LattendError:
        raise
    except Exception:  # whatever a function says of symbols, it may still take numbers
        return None, listed
    if isinstance(value, int | float):
        return exact(value), listed
    return _real(value) if is_formula(value) else None, listed


def _multiplied(f: Any) -> Any:
    """The formula with `pq` read as p*q: a name of two letters, alone or beside one of its letters.

    >>> _multiplied(formula("pq - p"))
    p*q - p
    """
    names = {str(name) for name in f.free_symbols}
    pairs = [name for name in names if len(name) == 2 == len(set(name)) and name.isalpha()]
    meant = [name for name in pairs if len(names) == 1 or names & set(name)]
    return f.xreplace({symbols([name])[0]: prod(symbols(list(name))) for name in meant})


def _has_letters(text: Any) -> bool:
    """Whether this is the text of a formula with names in it, as p0 or a + 1."""
    return isinstance(text, str) and bool(formula(text).free_symbols)


def _real(f: Any) -> Any:
    for atom in f.atoms():
        if atom.is_number and not atom.is_real:
            raise DomainError(f"f must be a real number wherever the players are, and it has {atom} in it")
    return f


def _players(listed: list[str], minimise: Names, maximise: Names) -> tuple[tuple[str, ...], tuple[str, ...]]:
    first, second = _split(minimise), _split(maximise)
    if first is None and second is None:
        if len(listed) != 2:
            if len(listed) > 2:
                raise NamingError(
                    f"f has {', '.join(listed)}: say which of them minimise, as in "
                    'Game("x*u + y*v", minimise="x y")'
                )
            raise NamingError(
                "a game needs two players, one that minimises and one that maximises; "
                f"f has {''.join(listed) or 'none'}"
            )
        return (listed[0],), (listed[1],)
    if first is None:
        first = tuple(name for name in listed if name not in (second or ()))
    if second is None:
        second = tuple(name for name in listed if name not in first)
    for name in {*first} & {*second}:
        raise NamingError(f"{name} cannot both minimise and maximise")
    for name in listed:
        if name not in (*first, *second):
            raise NamingError(f"f has {name}, which neither minimises nor maximises: give it to a player")
    for names, does in ((first, "minimises"), (second, "maximises")):
        if not {*names} & {*listed}:
            reason = f"f has no {' or '.join(names)}, which {does}" if names else f"nobody {does}"
            raise NamingError(f"{reason}; f has {', '.join(listed) or 'no names'}")
    return first, second


def _split(names: Names) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str):
        names = names.replace(",", " ").split()
    if not (isinstance(names, Sequence) and all(isinstance(name, str) for name in names)):
        raise NamingError(f'a player has names, as in minimise="x y", got {names!r:.60}')
    players = tuple(names)
    if len(set(players)) < len(players):
        raise NamingError(f"a name is given twice in {', '.join(players)}")
    return players


def _needs_gradient(f: Function, text: str, *players: tuple[str, ...]) -> None:
    for names, does in zip(players, ("minimises", "maximises"), strict=True):
        if all(f.derivative(name).formula.is_zero for name in symbols(names)):
            raise DomainError(
                f"the game {text} has no gradient for the player that {does}: "
                f"f does not depend on {', '.join(names)}"
            )


def _in_order(f: Callable[..., Any], listed: list[str], names: tuple[str, ...]) -> Callable[..., Any]:
    """The function with its arguments in the order of the players."""
    for name in names:
        if name not in listed:
            raise NamingError(f"the function has no argument {name}; it has {', '.join(listed)}")
    place = [names.index(name) for name in listed]
    return lambda *values: f(*(values[at] for at in place))


def _try(field: Any) -> None:
    point = [0.5 + 0.1 * k for k in range(field.many)]
    try:
        with warnings.catch_warnings():  # what torch says of lost gradients is said below
            warnings.simplefilter("ignore")
            slope = field.all(point)
    except LattendError:
        raise
    except Exception as error:
        raise TraceError(
            f"the function takes neither symbols nor torch numbers ({type(error).__name__}: {error}); "
            "write it with + - * / ** and torch's functions"
        ) from error
    for part, does in ((slope[: field.first], "minimises"), (slope[field.first :], "maximises")):
        if not part.any():
            raise DomainError(
                f"the game has no gradient for the player that {does} at {point}; write f with torch's "
                "functions: torch does not see through those of math or numpy"
            )


def dirac(loss: str = "logistic") -> Game:
    """The Dirac-GAN as a game: min over p, max over q of g(p·q) + g(0), with the loss's g.

    The smallest GAN (Mescheder, Geiger and Nowozin, 2018): data at 0, a generator of one point p and a
    discriminator D(x) = q·x.

    logistic   g(t) = −log(1 + e^t): the GAN of Goodfellow et al., 2014
    linear     g(t) = −t: a Wasserstein GAN without its bound, the game p·q turned round

    At the equilibrium (0, 0) its field turns with frequency |g'(0)|, 1/2 or 1, and nothing pulls inwards. R1,
    the usual cure, penalises the discriminator's slope at the data, ½q². `gradient_penalty` penalises
    ½‖∂f/∂p‖² = ½q²g'(pq)²: R1 itself for the linear loss, and for the other R1 of weight g'(0)² = 1/4 near
    the equilibrium.

    >>> print(dirac("linear"))
    min over p, max over q of -p*q
    """
    if loss not in LOSSES:
        raise NamingError(f'dirac has no loss "{loss}"; it has {", ".join(LOSSES)}')
    return Game(LOSSES[loss], minimise="p", maximise="q")


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
