"""main: runs the `lattend` command and turns whatever happens into an exit code."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence

INTERRUPTED, PIPE_CLOSED = 130, 141  # what a shell reports for a command that a signal ended


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of the command with these arguments, by default those of the process."""

    def command() -> object:
        from lattend.cli.app import app

        return app(None if arguments is None else list(arguments), prog_name="lattend", standalone_mode=False)

    return exit_code(command)


def exit_code(work: Callable[[], object]) -> int:
    """Run this function and return its exit code; an error is printed in one line."""
    try:
        code = work()
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _let_go()
    except SystemExit as stop:  # typer's answer to a closed pipe
        if isinstance(stop.__context__, BrokenPipeError):
            return _let_go()
        raise
    except Exception as error:
        if os.environ.get("LATTEND_DEBUG"):
            raise
        from lattend.cli.failures import report

        return report(error)
    return code if isinstance(code, int) else 0


def _let_go() -> int:
    """Drop the rest of standard output, which nobody reads, and return the exit code."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED
