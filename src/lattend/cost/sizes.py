"""Sizes as a layer takes them, what their letters may mean, and the recipe by which a cost was made."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, reduce, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, cast

from lattend.cost.amount import ONE, ZERO, Amount
from lattend.counts.formula import BigO
from lattend.counts.formula_parser import parse_formula
from lattend.counts.progression import polynomial_of
from lattend.errors import DomainError, NamingError
from lattend.rules.language.polynomial import Polynomial
from lattend.rules.reader import read_rule
from lattend.rules.rule import Rule, check_integer

if TYPE_CHECKING:
    from lattend.cost.cost import Cost

Size = int | str


def read_size(name: str, size: Size, least: int = 1, *, parts: bool = False) -> Polynomial:
    """The size as a polynomial; a number must be at least `least`. `parts` allows d/12, known to divide.

    >>> read_size("hidden", "4*d").terms
    {(('d', 1),): Fraction(4, 1)}
    """
    if isinstance(size, str):
        size_read = _read(name, size)
        fractions = [c for c in size_read.terms.values() if c.denominator > 1]
        number = size_read.terms.get((), Fraction(0)) if size_read.is_constant else None
        if fractions and (number is not None or not parts):
            raise NamingError(f'{name}="{size}" is not always a whole number; leave out the division')
        if number is None:
            return size_read
        size = int(number)
    check_integer(name, size)
    if size < least:
        raise DomainError(f"{name} must be at least {least}, got {size}")
    return Polynomial.constant(size)


def read_sizes(*, least: int = 1, parts: bool = False, **sizes: Size) -> dict[str, Polynomial]:
    """Several sizes by their names."""
    return {name: read_size(name, size, least, parts=parts) for name, size in sizes.items()}


def multiply(*sizes: Polynomial) -> Polynomial:
    """The product of sizes."""
    return reduce(Polynomial.__mul__, sizes) if sizes else Polynomial.constant(1)


def number_of(size: Polynomial) -> int | None:
    """The number, if it is one."""
    return int(size.terms.get((), 0)) if size.is_constant else None


def need_number(name: str, size: Size, least: int = 1) -> int:
    """A size that must be a number, since a set is affine only in its multiples."""
    number = number_of(read_size(name, size, least))
    if number is None:
        raise NamingError(f"{name} must be a number here, not the name {size}: give {name}=…")
    return number


@lru_cache(maxsize=1024)
def _read(name: str, text: str) -> Polynomial:
    formula = parse_formula(text)
    if isinstance(formula, BigO):
        raise NamingError(f'{name}="{text}" is an order of growth; give a number, a name, or a formula')
    try:
        return polynomial_of(formula)
    except ValueError:
        raise NamingError(
            f'{name}="{text}": a size is a number, a name, or made of them with + - * and powers'
        ) from None


COUNT = "count"
_KINDS = {
    "positions": ("n", "m", "rows", "cols", "depth", "steps", "cross"),
    COUNT: ("layers", "heads", "kv_heads", "groups"),
    "kernel": ("kernel", "patch"),
    "width": (
        *("d", "d_in", "d_out", "D", "D_i", "D_hid", "D_o", "D_out", "D_p", "D_keys", "D_values"),
        *("c", "c_in", "c_out", "h", "inputs", "hidden", "latent", "classes", "vocabulary"),
    ),
}
KINDS = {argument: kind for kind, arguments in _KINDS.items() for argument in arguments}


@dataclass(frozen=True)
class SizeArgument:
    """A size of a layer that is a letter or a formula, and whether a person wrote it."""

    argument: str
    layer: str
    size: str
    kind: str
    written: bool

    @property
    def letters(self) -> set[str]:
        """The letters in it."""
        atoms = read_size(self.argument, self.size, parts=True).atoms
        return {atom for atom in atoms if isinstance(atom, str)}

    def shares(self, letter: str, kind: str) -> bool:
        """Whether it uses a letter of another kind of size; a width may be a formula in heads, as d/heads."""
        if self.kind == kind or letter not in self.letters:
            return False
        return self.size.strip() == letter or {self.kind, kind} != {COUNT, "width"}

    def __str__(self) -> str:
        return f"{self.argument} of {self.layer}" if self.layer else self.argument


def check_parameters(layer: str, arguments: Mapping[str, Any], own: Collection[str]) -> None:
    """Raise where the rule has a parameter with the name of an argument of the layer."""
    rule = _rule_of(arguments)
    taken = [name for name in rule.parameters if name in own and name in rule.free] if rule else []
    if rule and taken:
        raise NamingError(
            f'the rule "{rule.text}" has a parameter {taken[0]}, which is an argument of {layer} too; '
            "give the parameter another letter"
        )


def size_arguments(layer: str, arguments: Mapping[str, Any], written: Collection[str]) -> list[SizeArgument]:
    """The letters and formulas among a layer's arguments, its rule's sizes and parameters included."""
    kinds, sizes = dict(KINDS), dict(arguments)
    if rule := _rule_of(arguments):
        sizes = {name: name for name in rule.free} | sizes
        kinds |= dict.fromkeys(rule.parameters, "rule")
    return [
        SizeArgument(name, layer, part, kinds[name], name in written)
        for name, value in sizes.items()
        if name in kinds
        for part in (cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,))
        if isinstance(part, str)
    ]


def _rule_of(arguments: Mapping[str, Any]) -> Rule | None:
    rule = arguments.get("rule")
    return None if rule is None else read_rule(rule)


def repeats(size: object) -> list[SizeArgument]:
    """The number of repeats as a size, if it has a letter."""
    return [SizeArgument("the number of layers", "", size, COUNT, True)] if isinstance(size, str) else []


def check_letters(sizes: Iterable[SizeArgument]) -> None:
    """Raise where the default letter of one size is used for another kind of size."""
    users: dict[str, dict[SizeArgument, None]] = {}
    for size in sizes:
        for letter in size.letters:
            users.setdefault(letter, {})[size] = None
    for letter, default in ((letter, size) for letter, all_ in users.items() for size in all_):
        if default.written:
            continue
        other = next((size for size in users[letter] if size.shares(letter, default.kind)), None)
        if other is not None:
            raise NamingError(
                f"{letter} would mean two sizes: {other}, and {default} ({letter} by default); write another "
                f"letter for one of them, or {default.argument}={letter} if the two are equal"
            )


P = ParamSpec("P")
TOKENWISE = ("linear", "feed_forward", "norm", "embedding", "patch_embedding", "vae")
# Sizes that are another one unless they are given
TIED = {
    "D_o": "D_hid",
    "D_out": "D_i",
    "D_keys": "D_i",
    "D_values": "D_keys",
    "kv_heads": "heads",
    "D": "d/heads",
    "hidden": "4*d",
    "rows": "n",
    "cols": "n",
    "m": "n",
}
# Sizes of a block that stacks of blocks pass on to it
PASSED_ON: dict[str, tuple[str, ...]] = {
    "encoder": ("D", "hidden", "kv_heads"),
    "decoder": ("D", "hidden", "kv_heads"),
}


@dataclass(frozen=True)
class Recipe:
    """A layer by name, the function that makes it, and all its arguments."""

    name: str
    make: Callable[..., Cost]
    arguments: Mapping[str, Any]
    sizes: tuple[SizeArgument, ...] = ()  # the arguments that are letters or formulas

    def made(self, **changes: Any) -> Cost:
        """The same layer with some arguments changed."""
        return self.make(**{**self.arguments, **changes})

    def tied(self, name: str) -> bool:
        """Whether a size of it is another one here, and could have a name of its own."""
        takes = (*self.arguments, *PASSED_ON.get(self.name, ()))
        return name in TIED and name in takes and self.arguments.get(name) is None


def keeps_recipe(make: Callable[P, Cost]) -> Callable[P, Cost]:
    """The function, whose costs remember how they were made."""
    signature = inspect.signature(make)

    @wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> Cost:
        bound = signature.bind(*args, **kwargs)
        written = {*bound.arguments, *kwargs}
        bound.apply_defaults()
        arguments: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            gathered = signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
            arguments |= value if gathered else {name: value}
        check_parameters(make.__name__, arguments, signature.parameters)
        sizes = size_arguments(make.__name__, arguments, written)
        check_letters(sizes)
        recipe = Recipe(make.__name__, made, arguments, tuple(sizes))
        return replace(make(*args, **kwargs), recipes=((ONE, recipe),))

    return made


def remade(cost: Cost, change: Callable[[Recipe], Mapping[str, Any]]) -> Cost:
    """The cost made again, with other arguments of its layers where `change` gives some."""
    made = [recipe.made(**change(recipe)).times(many) for many, recipe in cost.recipes]
    total = made[0]
    for more in made[1:]:
        total = total + more
    kept = {name: getattr(cost, name) for name in ("name", "column", "way", "width", "values", "budget")}
    return replace(total, **kept)


def stacked(cost: Cost) -> Amount | None:
    """How many layers that mix tokens are stacked; None where that is not known, or there are none."""
    mixing = [(times, recipe) for times, recipe in cost.recipes if recipe.name not in TOKENWISE]
    each = (times * Amount.of(read_size("layers", r.arguments.get("layers", 1))) for times, r in mixing)
    return sum(each, ZERO) if mixing else None


def untied(cost: Cost, formula: str, known: Collection[str] = ()) -> tuple[Cost, tuple[str, ...]]:
    """The cost with names of their own for sizes that a formula tells apart, and how that is said.

    A head's values have D_hid numbers as its keys have, unless D_o is given, or a formula speaks of D_o,
    which is not `known` to stand for something else.
    """
    written = re.findall(r"[^\W\d]\w*", re.sub(r"_\{(\w+)\}", r"_\1", formula))
    names = [name for name in TIED if name in written and name not in {*cost.names, *cost.values, *known}]
    names = [name for name in names if any(recipe.tied(name) for _, recipe in cost.recipes)]
    if not names:
        return cost, ()
    apart = remade(cost, lambda recipe: {name: name for name in names if recipe.tied(name)})
    return apart, tuple(f"{name} read as a size of its own, not {TIED[name]}" for name in names)
