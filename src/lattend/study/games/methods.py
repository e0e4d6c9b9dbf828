"""Methods: how both players move, each written once for numbers, symbols and tensors alike.

p is the minimiser's vector and q the maximiser's: p goes down its gradient, q up. A state is (p, q) and
what the method remembers; a step is a function of the state alone. Movers are "p", "q" or "pq": whoever is
not among them has a gradient of 0, which a field need not compute.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from inspect import signature
from typing import Any, ClassVar, Protocol

from lattend.errors import DomainError, NamingError
from lattend.study.exact.numbers import fraction

Vector = Any  # numbers in a row that add and scale: a numpy array of any numbers, a torch tensor
State = tuple[Vector, ...]
Step = tuple[Any, Any]  # the minimiser's and the maximiser's, in the field's numbers
TURNS: dict[str | None, tuple[str, ...]] = {None: ("pq",), "p": ("p", "q"), "q": ("q", "p")}


class Field(Protocol):
    """The protocol of a game's gradients, for methods."""

    def gradient(self, p: Vector, q: Vector, movers: str = "pq") -> tuple[Vector, Vector]:
        """∂f/∂p and ∂f/∂q."""
        ...

    def consensus(self, p: Vector, q: Vector, movers: str = "pq") -> tuple[Vector, Vector]:
        """The gradient, over p and over q, of ½‖∂f/∂p‖² + ½‖∂f/∂q‖²."""
        ...

    def penalty(self, p: Vector, q: Vector) -> Vector:
        """The gradient over q of ½‖∂f/∂p‖²."""
        ...

    def number(self, value: Fraction, /) -> Any:
        """The value as a number that scales the field's vectors."""
        ...


@dataclass(frozen=True)
class Method(ABC):
    """A rule for one step of both players."""

    name: ClassVar[str]
    remembers: ClassVar[bool] = False  # whether a state is more than (p, q)

    def start(self, field: Field, p: Vector, q: Vector) -> State:
        """The state before the first step."""
        return p, q

    @abstractmethod
    def step(self, field: Field, state: State, h: Step) -> State:
        """The next state."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class _InTurn(Method):
    """Both at once, or one after the other: the second player answers the first one's new place."""

    first: str | None = None

    def __post_init__(self) -> None:
        if self.first not in (None, "p", "q"):
            raise NamingError(
                f'{self.name}: first is "q", the maximiser, or "p", the minimiser; got {self.first!r}'
            )

    def step(self, field: Field, state: State, h: Step) -> State:
        for movers in TURNS[self.first]:
            state = self.move(field, state, h, movers)
        return state

    def move(self, field: Field, state: State, h: Step, movers: str) -> State:
        """The state after the movers' move; who waits stays."""
        p, q = state
        down, up = self.slope(field, p, q, movers)
        return p - down * h[0], q + up * h[1]

    def slope(self, field: Field, p: Vector, q: Vector, movers: str) -> tuple[Vector, Vector]:
        """The directions that p goes down and q goes up."""
        return field.gradient(p, q, movers)

    def order(self) -> str:
        return f", {self.first} first" if self.first else ""

    def __str__(self) -> str:
        return f"{self.name}{self.order()}"


class _Simultaneous(_InTurn):
    name = "simultaneous"


class _Alternating(_InTurn):
    name = "alternating"


@dataclass(frozen=True)
class _Weighted(_InTurn):
    """Methods that add something to the gradient, with a weight."""

    weight: Fraction = Fraction(1)

    def __str__(self) -> str:
        return f"{self.name.replace('_', ' ')}, weight {self.weight}{self.order()}"


class _Consensus(_Weighted):
    """Both players also go down the length of the whole gradient."""

    name = "consensus"

    def slope(self, field: Field, p: Vector, q: Vector, movers: str) -> tuple[Vector, Vector]:
        down, up = field.gradient(p, q, movers)
        length_p, length_q = field.consensus(p, q, movers)
        weight = field.number(self.weight)
        return down + length_p * weight, up - length_q * weight


class _GradientPenalty(_Weighted):
    """The maximiser pays for the gradient that it gives the minimiser."""

    name = "gradient_penalty"

    def slope(self, field: Field, p: Vector, q: Vector, movers: str) -> tuple[Vector, Vector]:
        down, up = field.gradient(p, q, movers)
        if "q" in movers:
            up = up - field.penalty(p, q) * field.number(self.weight)
        return down, up


@dataclass(frozen=True)
class _Momentum(_InTurn):
    """Each player keeps a share of its last move; the state holds the two speeds."""

    name = "momentum"
    remembers = True
    mass: Fraction = Fraction(0)

    def start(self, field: Field, p: Vector, q: Vector) -> State:
        return p, q, p * 0, q * 0

    def move(self, field: Field, state: State, h: Step, movers: str) -> State:
        p, q, fall, rise = state
        mass = field.number(self.mass)
        down, up = field.gradient(p, q, movers)
        if "p" in movers:
            fall = fall * mass + down
            p = p - fall * h[0]
        if "q" in movers:
            rise = rise * mass + up
            q = q + rise * h[1]
        return p, q, fall, rise

    def __str__(self) -> str:
        return f"{self.name}, mass {self.mass}{self.order()}"


class _Optimistic(Method):
    """Each player takes its gradient to change again as it just did; the state holds the last gradient."""

    name = "optimistic"
    remembers = True

    def start(self, field: Field, p: Vector, q: Vector) -> State:
        return p, q, *field.gradient(p, q)

    def step(self, field: Field, state: State, h: Step) -> State:
        p, q, last_down, last_up = state
        down, up = field.gradient(p, q)
        return p - (down * 2 - last_down) * h[0], q + (up * 2 - last_up) * h[1], down, up


class _Extragradient(Method):
    """Each player looks a step ahead, and moves by the gradient found there."""

    name = "extragradient"

    def step(self, field: Field, state: State, h: Step) -> State:
        p, q = state
        down, up = field.gradient(p, q)
        down, up = field.gradient(p - down * h[0], q + up * h[1])
        return p - down * h[0], q + up * h[1]


def simultaneous() -> Method:
    """Both players move at once: p' = p − h ∂f/∂p, q' = q + h ∂f/∂q."""
    return _Simultaneous()


def alternating(first: str = "q") -> Method:
    """One player moves, then the other answers: q' = q + h ∂f/∂q(p, q), p' = p − h ∂f/∂p(p, q').

    `first` is "q", the maximiser, or "p", the minimiser.
    """
    return _Alternating(first)


def optimistic() -> Method:
    """Twice the gradient less the last one: p' = p − h(2g − g_last), both at once; first a plain step."""
    return _Optimistic()


def extragradient() -> Method:
    """The gradient of one step ahead: p' = p − h ∂f/∂p(p − h ∂f/∂p, q + h ∂f/∂q), and q' likewise."""
    return _Extragradient()


def momentum(mass: Any, first: str | None = None) -> Method:
    """Heavy balls: speed' = mass·speed + gradient, p' = p − h·speed', |mass| < 1; at once unless `first`."""
    value = _fraction("mass", mass)
    if not -1 < value < 1:
        raise DomainError(f"mass must lie between -1 and 1, got {mass}: the speed would never die down")
    return _Momentum(first, value)


def consensus(weight: Any, first: str | None = None) -> Method:
    """Both also go down weight·½‖v‖², v being the whole gradient; at once unless `first`."""
    return _Consensus(first, _positive("weight", weight))


def gradient_penalty(weight: Any, first: str | None = None) -> Method:
    """The maximiser goes up f − weight·½‖∂f/∂p‖²; at once unless `first`."""
    return _GradientPenalty(first, _positive("weight", weight))


METHODS: dict[str, Callable[..., Method]] = {
    "simultaneous": simultaneous,
    "alternating": alternating,
    "optimistic": optimistic,
    "extragradient": extragradient,
    "momentum": momentum,
    "consensus": consensus,
    "gradient_penalty": gradient_penalty,
}
# What a name alone means, where the method needs a number
USUAL: dict[str, dict[str, Any]] = {
    "momentum": {"mass": Fraction(-1, 2)},
    "consensus": {"weight": 1},
    "gradient_penalty": {"weight": 1},
}


def method_of(wanted: Method | str, **options: Any) -> Method:
    """The method of this name, with its options; a method stays as it is.

    >>> print(method_of("alternating", first="p"))
    alternating, p first
    """
    if isinstance(wanted, Method):
        if options:
            raise NamingError(
                f"{wanted} is made already, so {', '.join(options)} comes too late: "
                "give it where that is made"
            )
        return wanted
    known = options_of(wanted)
    if not {*options} <= {*known}:
        raise NamingError(f"{wanted} takes {' and '.join(known) or 'no options'}, got {', '.join(options)}")
    name = _name(wanted)
    return METHODS[name](**{**USUAL.get(name, {}), **options})


def options_of(name: str) -> list[str]:
    """The options of the method of this name.

    >>> options_of("momentum")
    ['mass', 'first']
    """
    return list(signature(METHODS[_name(name)]).parameters)


def _name(text: str) -> str:
    if not isinstance(text, str):
        raise NamingError(f"a method is one of {', '.join(METHODS)}, got {text!r:.60}")
    name = text.strip().replace("-", "_").replace(" ", "_")
    if name not in METHODS:
        raise NamingError(f'there is no method "{text}"; there are {", ".join(METHODS)}')
    return name


def _fraction(name: str, value: Any) -> Fraction:
    number = fraction(value)
    if number is None:
        raise DomainError(f"{name} must be a whole number, a fraction or a decimal, got {value}")
    return number


def _positive(name: str, value: Any) -> Fraction:
    number = _fraction(name, value)
    if number <= 0:
        raise DomainError(f"{name} must be above 0, got {value}; without it this is plain descent and ascent")
    return number
