"""Printing: plain text on either stream, in whatever encoding it has, and JSON."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeGuard

from lattend.report.report import Printed, Report
from lattend.wording import visible

if TYPE_CHECKING:
    from lattend.draw.picture import Picture


class HasData(Protocol):
    """A picture, a report, or another result with text and JSON; one that may be false then says no."""

    def json(self) -> dict[str, Any]: ...


Answer = HasData | int | None


def say(text: str) -> None:
    """Print on standard output."""
    _print(text, sys.stdout)


def say_json(data: object) -> None:
    """Print as JSON, indented; plain ASCII, so that it survives any encoding."""
    say(json.dumps(data, indent=2))


def show(answer: Answer, out: str | None, json: bool) -> int:
    """Print an answer as text or as JSON, or write a picture into a file and say so; the exit code."""
    if answer is None or isinstance(answer, int):  # printed already
        return answer or 0
    if _is_picture(answer):
        file = save(lambda: answer, out)
        if json:
            say_json({**answer.json(), "file": file})
        else:
            say(answer.terminal(width=width()) if file is None else f"{file}: {answer.title}")
    elif json:
        say_json(answer.json())
    else:
        say(answer.text(width()) if isinstance(answer, Report | Printed) else str(answer))
    return 1 if hasattr(type(answer), "__bool__") and not answer else 0  # the answer is no


def _is_picture(answer: HasData) -> TypeGuard[Picture]:
    """Whether the answer is drawn; pictures are loaded by those who draw."""
    return hasattr(answer, "terminal")


def save(draw: Callable[[], Picture], out: str | None) -> str | None:
    """Draw into the file of --out, if there is one."""
    return None if out is None else str(draw().save(out))


def check_out(out: str | None) -> None:
    """Raise if --out cannot be written; called before a training begins."""
    if out is not None:
        from lattend.draw.picture import check_place

        check_place(out)


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
