"""Command: one command of `lattend`, declared once as a plain dataclass.

Its fields are the arguments and options, each with its type, default, metavar and help; `answer` asks the
library, and what it returns is shown. From the declaration come the parser of the command line (app.py), the
command that a page copies (web/snippets.py), and the page that a command opens (web/page_links.py).
"""

from __future__ import annotations

import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from importlib import import_module
from inspect import getdoc
from typing import Any, ClassVar

from lattend.cli.output import Answer
from lattend.errors import NamingError


@dataclass(frozen=True)
class TypedAs:
    """How a field is typed on the command line: an argument by its position, or an option by its names."""

    metavar: str
    help: str
    names: tuple[str, ...] = ()
    is_argument: bool = False
    show_default: bool = False  # most help texts name their default themselves
    least: int | None = None
    most: int | None = None
    complete: Callable[[str], list[tuple[str, str]]] | None = None


def argument(metavar: str, help: str, default: Any = MISSING, **more: Any) -> Any:
    """A field that is an argument; it is required unless it has a default."""
    return field(default=default, metadata={"cli": TypedAs(metavar, help, is_argument=True, **more)})


def option(metavar: str, help: str, *names: str, default: Any = None, **more: Any) -> Any:
    """A field that is an option with a value; `--head-dim` is the name of the field head_dim."""
    return field(default=default, metadata={"cli": TypedAs(metavar, help, names, **more)})


def setting(metavar: str, help: str, default: Any, **more: Any) -> Any:
    """An option whose default the help text shows: `[default: 3]`."""
    return option(metavar, help, default=default, show_default=True, **more)


def flag(help: str, *names: str, default: bool = False) -> Any:
    """A field that is an option without a value."""
    return field(default=default, metadata={"cli": TypedAs("", help, names, show_default=default)})


@dataclass(frozen=True, kw_only=True)
class Command(ABC):
    """A command, called as its class: HeadsTrainCommand is `lattend heads train`.

    Its docstring is the help text, with examples at the end, each on a line of its own and indented.
    """

    command: ClassVar[str]
    has_json: ClassVar[bool] = True

    json: bool = flag("Print JSON.")

    def __init_subclass__(cls) -> None:
        cls.command = " ".join(re.findall("[A-Z][a-z]+", cls.__name__.removesuffix("Command"))).lower()

    @classmethod
    def about(cls) -> tuple[str, list[str]]:
        """The help text, and the lines of its examples."""
        text, _, examples = (getdoc(cls) or "").partition("\n\n    lattend ")
        return text, textwrap.dedent(f"    lattend {examples}").splitlines()

    @abstractmethod
    def answer(self) -> Answer:
        """Ask the library; a returned result is shown. None or an exit code: all is printed already."""

    def options(self, names: str, **renamed: str) -> dict[str, Any]:
        """The named fields as arguments of a function, without those that are not set.

        `width="channels"` is the field `channels` under the name `width`.
        """
        chosen = {**{name: name for name in names.split()}, **renamed}
        values = {name: getattr(self, field) for name, field in chosen.items()}
        kept = {name for name, field in chosen.items() if getattr(type(self), field, None)}  # has a default
        return {
            name: value
            for name, value in values.items()
            if name in kept or (value is not None and value is not False)
        }

    def refuse(self, names: Iterable[str], why: str) -> None:
        """Raise if one of these fields is set that would have no effect: `--seed is for --scores`."""
        declared = {declaration.name: declaration for declaration in fields(self)}
        for name in names:
            if getattr(self, name) != declared[name].default:
                option = label(declared[name])
                raise NamingError(why.format(option) if "{}" in why else f"{option} {why}")


def typed_fields(command: type[Command]) -> list[Field[Any]]:
    """The fields that are typed, in the order of the help; --json is the last one."""
    declared = {declaration.name: declaration for declaration in fields(command)}
    json = declared.pop("json")
    return [*declared.values(), *([json] if command.has_json else [])]


def parameter(declaration: Field[Any]) -> TypedAs:
    """How a field of a command is typed on the command line."""
    return declaration.metadata["cli"]


def spellings(name: str, declared: TypedAs) -> tuple[str, ...]:
    """All spellings of an option, the first one first; none of an argument."""
    return () if declared.is_argument else declared.names or (f"--{name.replace('_', '-')}",)


def label(declaration: Field[Any]) -> str:
    """The field as people type it: --head-dim, or the metavar of an argument."""
    declared = parameter(declaration)
    return next(iter(spellings(declaration.name, declared)), declared.metavar)


MODULES = (  # in the order in which help lists their commands
    *("serve", "ask", "rules", "draw", "count", "claim", "reach", "same", "explain", "shard", "cost"),
    *("compare", "patches", "heads", "conv", "grid", "complete", "work", "steer", "gradients", "derive"),
    *("elbo", "game"),
)


@cache
def commands() -> dict[str, type[Command]]:
    """All commands, by what is typed."""
    modules = [import_module(f"lattend.cli.{module}") for module in MODULES]
    members = [member for module in modules for member in vars(module).values()]
    kinds = [kind for kind in members if isinstance(kind, type) and issubclass(kind, Command)]
    return {kind.command: kind for kind in kinds if kind is not Command}
