"""Command: a subcommand whose arguments may be formulas, also those that begin with a minus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.core import TyperCommand


class Command(TyperCommand):
    """Reads `claim strided "-t^2/2 + n*t"` as it is meant: only a word that it knows as an option is one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """A space before a formula's minus keeps it from being read as an option; it is taken away after."""
        rest = super().parse_args(ctx, list(self._formulas_apart(ctx, args)))
        ctx.params = {
            name: value[1:] if isinstance(value, str) and value.startswith(" -") else value
            for name, value in ctx.params.items()
        }
        return rest

    def _formulas_apart(self, ctx: Any, args: list[str]) -> Iterator[str]:
        params = self.get_params(ctx)
        options = {name: param for param in params for name in (*param.opts, *param.secondary_opts)}
        missing = sum(param.param_type_name == "argument" for param in params)
        at = 0
        while at < len(args):
            word = args[at]
            at += 1
            if word == "--":
                yield from args[at - 1 :]
                return
            option = options.get(word) or (
                options.get(word[:2]) if _has_value(options.get(word[:2])) else None
            )
            if option is not None and option.param_type_name == "option":
                yield word
                if word in options and _has_value(option) and at < len(args):
                    yield args[at]
                    at += 1
                continue
            is_operand = not word.startswith("-") or word == "-"
            if is_operand or (not word.startswith("--") and missing > 0):
                missing -= 1
                yield word if is_operand else f" {word}"
            else:
                yield word


def _has_value(option: Any) -> bool:
    return (
        option is not None and not getattr(option, "is_flag", False) and not getattr(option, "count", False)
    )
