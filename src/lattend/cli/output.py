"""Printing: plain text on either stream, in whatever encoding it has, and JSON."""

from __future__ import annotations

import json
import shutil
import sys
from typing import IO, TYPE_CHECKING, Any, Protocol

from lattend.report.report import Printed, Report
from lattend.wording import visible

if TYPE_CHECKING:
    from lattend.draw.picture import Picture


class Answer(Protocol):
    """A result that can be printed as text and as JSON."""

    def json(self) -> dict[str, Any]: ...


def say(text: str) -> None:
    """Print on standard output."""
    _print(text, sys.stdout)


def say_json(data: object) -> None:
    """Print as JSON, indented; plain ASCII, so that it survives any encoding."""
    say(json.dumps(data, indent=2))


def show(figure: Picture, out: str | None, json: bool) -> None:
    """Print a figure as text or as JSON, or write it to a file and say so."""
    file = None if out is None else str(figure.save(out))
    if json:
        say_json({**figure.json(), "file": file})
    else:
        say(figure.terminal(width=width()) if file is None else f"{file}: {figure.title}")


def check_out(out: str | None) -> None:
    """Raise if --out cannot be written; called before a training begins."""
    if out is not None:
        from lattend.draw.picture import check_place

        check_place(out)


def show_report(result: Answer, json: bool) -> None:
    """Print a result as JSON or as text, at most as wide as the terminal."""
    if json:
        say_json(result.json())
    else:
        say(result.text(width()) if isinstance(result, Report | Printed) else str(result))


LONGEST_MESSAGE = 1600  # characters of an error


def complain(message: str, marked: str = "") -> None:
    """Print `lattend: message` on standard error, and below it the marked text."""
    if len(message) > LONGEST_MESSAGE:  # it quotes a text that nobody reads to its end
        message = f"{message[: LONGEST_MESSAGE // 2]} … {message[-LONGEST_MESSAGE // 2 :]}"
    _print(f"lattend: {visible(message)}", sys.stderr)
    for line in marked.splitlines():
        _print(f"  {line}".rstrip(), sys.stderr)


def tell(progress: object) -> None:
    """Print progress on standard error."""
    _print(str(progress), sys.stderr)


def width() -> int:
    """The columns of the terminal; 80 where there is none."""
    return max(20, shutil.get_terminal_size().columns)


def _print(text: str, stream: IO[Any] | None) -> None:
    if stream is None:  # closed by whoever started the command
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        from lattend.draw.formats.scene import spelt

        text = spelt(text, encoding)
    print(text, file=stream)
