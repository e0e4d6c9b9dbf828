"""What runs in a worker process: questions come in, answers go out as JSON."""

from __future__ import annotations

import contextlib
import os
import signal
import traceback
from importlib import import_module
from multiprocessing.connection import Connection

from lattend.errors import LattendError
from lattend.web.panel import Problem, problem_of
from lattend.web.panels import PANELS

MEMORY = 6 << 30  # bytes of address space; torch alone maps two
TORCH = ("lattend.attend.explain.explain", "lattend.nn")  # what takes seconds to load
LIGHT = ("lattend.counts", "lattend.counts.algebra", "lattend.cost", "lattend.draw")


def serve(pipe: Connection, torch: bool) -> None:
    """The worker's loop. A message is (panel, format, question as JSON); "" is the answer itself as JSON."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which closes the pipe
    _limit_memory()
    for module in (*LIGHT, *(TORCH if torch else ())):
        with contextlib.suppress(ImportError):  # torch is an extra; panels that need it say so
            import_module(module)
    pipe.send((200, "", b""))  # ready
    with contextlib.suppress(EOFError, OSError):  # the server is gone
        while True:
            pipe.send(reply(*pipe.recv()))
    os._exit(0)


def reply(panel: str, form: str, question: bytes) -> tuple[int, str, bytes]:
    """Status, media type and body."""
    asked = PANELS[panel].question.model_validate_json(question)
    try:
        if form:
            return _picture(panel, form, asked)
        return 200, "application/json", PANELS[panel].answer(asked).model_dump_json().encode()
    except LattendError as error:
        return _problem(problem_of(error, asked))
    except MemoryError:
        return _problem(Problem(kind="no answer", message="it needs too much memory; try smaller numbers"))
    except ModuleNotFoundError as error:
        message = f"this needs {error.name}, which is not installed: pip install 'lattend[torch]'"
        return _problem(Problem(kind="no answer", message=message))
    except Exception as error:  # a mistake of ours: the page goes on, the terminal tells where
        traceback.print_exc()
        message = f"this is a mistake in lattend, please report it: {type(error).__name__}: {error}"
        return _problem(Problem(kind="mistake", message=message[:400]))


def _picture(panel: str, form: str, asked: object) -> tuple[int, str, bytes]:
    draw = PANELS[panel].picture
    if draw is None:
        return _problem(Problem(kind="input", message=f"{panel} has no picture"))
    picture = draw(asked)
    if form == "png":
        return 200, "image/png", picture.png()
    return 200, "image/svg+xml", picture.svg().encode()


def _problem(problem: Problem) -> tuple[int, str, bytes]:
    return 422, "application/json", problem.model_dump_json().encode()


def _limit_memory() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    except (ImportError, ValueError, OSError):  # Windows has no such limit, macOS refuses it
        return
