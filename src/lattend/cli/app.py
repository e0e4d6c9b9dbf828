"""app: the `lattend` command and its subcommands."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lattend import __version__
from lattend.cli import (
    ask,
    cache,
    check,
    claim,
    compare,
    complete,
    conv,
    cost,
    count,
    derive,
    draw,
    elbo,
    elbo_discrete,
    elbo_gaussian,
    explain,
    game,
    gradients,
    grid,
    heads,
    heads_show,
    heads_train,
    patches,
    reach,
    rules,
    same,
    serve,
    shard,
    steer,
    work,
)
from lattend.cli.command import Command
from lattend.cli.failures import WRONG_INPUT
from lattend.cli.output import say

LONGEST = 1000  # characters of a first sentence
EXAMPLES = (
    'lattend draw "k <= q and q - k <= t" --at n=12,t=3',
    'lattend count "k <= q and q - k <= t"',
    "lattend cost attention --rule causal --at n=4096,heads=32,D_i=4096,D_hid=128",
    'lattend claim strided "n*t + n - t^2/2 - t/2" --assume "t <= n"',
)


class _Commands(TyperGroup):
    """Commands of one word, or of two: `heads FILE` and `heads train`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        both = " ".join(args[:2])
        if both in self.commands:
            return both, self.commands[both], args[2:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands with their first sentences whole, however narrow the terminal is."""
        listed = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.get_short_help_str(limit=LONGEST)) for name, command in listed]
            )


app = typer.Typer(
    name="lattend",
    cls=_Commands,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _help(about: object, examples: tuple[str, ...]) -> str:
    """The docstring, and below it the examples as they are written."""
    return f"{inspect.getdoc(about)}\n\n\b\n" + "\n".join(f"  {line}" for line in examples)


def name_of(module: ModuleType) -> str:
    """What is typed for the command of a module: `heads train` for heads_train."""
    return module.__name__.rpartition(".")[2].replace("_", " ")


COMMANDS = (
    *(serve, ask, rules, draw, count, claim, reach, cache, same, check, explain, shard),
    *(cost, compare, patches),
    *(heads, heads_train, heads_show, conv, grid, complete),
    *(work, steer, gradients, derive, elbo, elbo_gaussian, elbo_discrete, game),
)
for module in COMMANDS:
    command = getattr(module, module.__name__.rpartition(".")[2])
    app.command(name_of(module), cls=Command, help=_help(command, module.EXAMPLES))(command)


def _version(asked: bool) -> None:
    if asked:
        say(f"lattend {__version__}")
        raise typer.Exit


def lattend(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Write who attends to whom as a rule; get its picture and its exact cost.

    RULE is a name of the catalogue (strided), a name with numbers ("strided(3)", "dilated(t=3, step=2)")
    or a condition on q and k. Put quotes around it: the shell reads < > ( ) itself.

    Exit codes: 0 done, or the answer is yes; 1 the answer is no; 2 the input is wrong; 3 there is no answer,
    as when there is no closed form; 4 a mistake in lattend itself.
    """
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(WRONG_INPUT)


app.callback(invoke_without_command=True, help=_help(lattend, EXAMPLES))(lattend)
