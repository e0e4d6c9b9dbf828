"""Letters of sizes: one letter never means two kinds of size unless a person writes both."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from lattend.cost.sizes import read_size
from lattend.errors import NamingError
from lattend.rules.reader import read_rule
from lattend.rules.rule import Rule

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
