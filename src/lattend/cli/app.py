"""app: the `lattend` command and its subcommands."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from lattend import __version__
from lattend.cli.command import Command, commands, parameter, spellings, typed_fields
from lattend.cli.failures import WRONG_INPUT
from lattend.cli.output import say, show
from lattend.errors import DeadlineError


class _Command(TyperCommand):
    """A command that accepts formulas with a leading minus: `claim strided "-t^2/2 + n*t"`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put a space before a formula's minus, so that it is not read as an option, and remove it later."""
        rest = super().parse_args(ctx, list(self._with_spaces(ctx, args)))
        ctx.params = {
            name: value[1:] if isinstance(value, str) and value.startswith(" -") else value
            for name, value in ctx.params.items()
        }
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command. A late answer advises a longer deadline only if there is an option for it."""
        try:
            return super().invoke(ctx)
        except DeadlineError as error:
            if any("--deadline" in param.opts for param in self.get_params(ctx)):
                raise
            raise DeadlineError(error.reason) from None

    def _with_spaces(self, ctx: Any, args: list[str]) -> Iterator[str]:
        params: list[Any] = self.get_params(ctx)
        missing = sum(param.param_type_name == "argument" for param in params)
        flags: dict[str, bool] = {  # every option, and whether it is one without a value
            name: param.is_flag
            for param in params
            if param.param_type_name == "option"
            for name in (*param.opts, *param.secondary_opts)
        }
        words = iter(args)
        for word in words:
            short = word[:2]
            if word == "--":
                yield word
                yield from words
            elif word in flags:
                yield word
                if not flags[word]:
                    yield from (value for value in (next(words, None),) if value is not None)
            elif word.startswith("--") or (short in flags and not flags[short]):  # --at=n=3, -ofile
                yield word
            elif missing > 0:
                missing -= 1
                yield f" {word}" if word.startswith("-") and word != "-" else word
            else:
                yield word


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
        """List the commands with their whole first sentences, however narrow the terminal is."""
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


def _help(text: str, examples: Sequence[str]) -> str:
    """The help text, then the examples as they are."""
    return f"{text}\n\n\b\n" + "\n".join(f"  {line}" for line in examples)


def parser_of(command: type[Command]) -> Callable[..., int]:
    """A function that runs the command, with the signature from which typer makes the parser."""

    def run(**values: Any) -> int:
        return show(command(**values).answer(), values.get("out"), values.get("json", False))

    types = get_type_hints(command)
    parameters: list[inspect.Parameter] = []
    for declaration in typed_fields(command):
        declared = parameter(declaration)
        options: dict[str, Any] = {
            "help": declared.help,
            "show_default": declared.show_default,
            "metavar": declared.metavar or None,
            "autocompletion": declared.complete,
        }
        if declared.is_argument:
            kind = typer.Argument(**options)
        else:
            names = spellings(declaration.name, declared)
            kind = typer.Option(*names, min=declared.least, max=declared.most, **options)
        default = inspect.Parameter.empty if declaration.default is MISSING else declaration.default
        annotation = Annotated[types[declaration.name], kind]
        parameters.append(
            inspect.Parameter(
                declaration.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )
        )
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    return run


COMMANDS = commands()
for name, command in COMMANDS.items():
    app.command(name, cls=_Command, help=_help(*command.about()))(parser_of(command))


def _version(wanted: bool) -> None:
    if wanted:
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


app.callback(invoke_without_command=True, help=_help(inspect.getdoc(lattend) or "", EXAMPLES))(lattend)
