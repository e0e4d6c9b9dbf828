"""What runs in a worker process: questions come in, answers go out as JSON."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import struct
import traceback
from typing import Any

from pydantic import ValidationError

from lattend.errors import DeadlineError, LattendError, TorchMissing
from lattend.sets.guard import deadlines_missed, fork_for_sets, limit_memory, stop_sets
from lattend.web.library import load_library
from lattend.web.panel import Answer, Problem, problem_of, problem_of_question
from lattend.web.panels import PANELS

MEMORY = 6 << 30  # bytes of address space; torch alone maps two
FIRST = b'{"rule": "causal"}'  # answered before any worker is there, so that all know what it takes
HEADER = struct.Struct("<Q")
LATE = 206  # an answer some part of which was not found in time
NOT_NOW = 504  # another time there may be an answer
MISTAKE = 500


def load(torch: bool) -> None:
    """Load what answers need once, before workers are forked from this process."""
    load_library(torch)
    for panel in PANELS.values():
        required = [name for name, field in panel.question.model_fields.items() if field.is_required()]
        if required == ["rule"] and panel.torch == torch:
            reply(panel.name, "", FIRST)
    stop_sets()  # every worker has one of its own


def serve(pipe: socket.socket) -> None:
    """Answer questions until the server is gone. A message is (panel, format, question as JSON)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which closes the pipe
    limit_memory(MEMORY)
    fork_for_sets()
    with pipe, pipe.makefile("rb") as source, contextlib.suppress(EOFError, OSError):  # the server is gone
        pipe.sendall(packed(os.getpid()))
        while True:
            (size,) = HEADER.unpack(_exactly(source, HEADER.size))
            pipe.sendall(packed(reply(*pickle.loads(_exactly(source, size)))))


def packed(message: Any) -> bytes:
    """A message with its length before it."""
    body = pickle.dumps(message)
    return HEADER.pack(len(body)) + body


def _exactly(source: Any, size: int) -> bytes:
    data = source.read(size)
    if len(data) < size:
        raise EOFError
    return data


def reply(panel: str, form: str, question: bytes) -> tuple[int, str, bytes]:
    """The status, media type and body of the answer to a question."""
    try:
        parsed = PANELS[panel].question.model_validate_json(question)
    except ValidationError as error:
        return _problem(problem_of_question(error.errors()))
    missed = deadlines_missed()
    try:
        if form:
            return _picture(panel, form, parsed)
        result = PANELS[panel].answer(parsed)
        late = isinstance(result, Answer) and (result.late or deadlines_missed() > missed)
        if isinstance(result, Answer):
            result.late = late
        return LATE if late else 200, "application/json", result.model_dump_json().encode()
    except LattendError as error:
        passing = isinstance(error, (DeadlineError, TorchMissing)) or deadlines_missed() > missed
        return _problem(problem_of(error, parsed), NOT_NOW if passing else 422)
    except MemoryError:
        message = "it needs too much memory; try smaller numbers"
        return _problem(Problem(kind="no answer", message=message), NOT_NOW)
    except RecursionError:
        return _problem(Problem(kind="no answer", message="it is nested too deeply; try a simpler text"))
    except ModuleNotFoundError as error:
        message = f"this needs {error.name}, which is not installed: pip install 'lattend[torch]'"
        return _problem(Problem(kind="no answer", message=message), NOT_NOW)
    except Exception as error:  # a mistake of ours: the page goes on, the terminal tells where
        traceback.print_exc()
        message = f"this is a mistake in lattend, please report it: {type(error).__name__}"
        if not isinstance(error, (OSError, ImportError)):  # these name files of this machine
            message += f": {error}"
        return _problem(Problem(kind="mistake", message=message[:400]), MISTAKE)


def _picture(panel: str, form: str, question: object) -> tuple[int, str, bytes]:
    draw = PANELS[panel].picture
    if draw is None:
        return _problem(Problem(kind="input", message=f"{panel} has no picture"))
    picture = draw(question)
    if form == "png":
        return 200, "image/png", picture.png()
    return 200, "image/svg+xml", picture.svg().encode()


def _problem(problem: Problem, status: int = 422) -> tuple[int, str, bytes]:
    return status, "application/json", problem.model_dump_json().encode()
