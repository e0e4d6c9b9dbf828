"""Recipe: the function that made a cost and what it was given, so that it can be made again otherwise."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

from lattend.cost.amount import ONE, ZERO, Amount
from lattend.cost.sizes import SizeArgument, check_letters, check_parameters, read_size, size_arguments

if TYPE_CHECKING:
    from lattend.cost.cost import Cost

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
