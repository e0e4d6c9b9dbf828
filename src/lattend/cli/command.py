"""Command: a subcommand whose arguments may be formulas, also those that begin with a minus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.core import TyperCommand

from lattend.errors import DeadlineError


class Command(TyperCommand):
    """Reads `claim strided "-t^2/2 + n*t"` as it is meant: a formula, as long as an argument is missing."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """A space before a formula's minus keeps it from being read as an option; it is taken away after."""
        rest = super().parse_args(ctx, list(self._with_spaces(ctx, args)))
        ctx.params = {
            name: value[1:] if isinstance(value, str) and value.startswith(" -") else value
            for name, value in ctx.params.items()
        }
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Runs the command. A late answer comes with the advice to wait longer only if there is an option."""
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
