"""A batch of questions in one request: browsers open few connections, and a key asks many panels."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from lattend.web.panel import Panel, problem_of_question
from lattend.web.panels import PANELS
from lattend.web.pool import Reply, problem

TOGETHER = 32  # questions in one request
Asked = tuple[str, Annotated[str, Field(max_length=64)], dict[str, Any]]  # panel, asker, question
BATCH: TypeAdapter[list[Asked]] = TypeAdapter(Annotated[list[Asked], Field(max_length=TOGETHER)])
Answering = Callable[[Panel, str, BaseModel, str, str], Awaitable[Reply]]


async def answer_batch(asked: list[Asked], page: str, answer: Answering) -> AsyncIterator[bytes]:
    """A line for each question as its answer comes: [its place, status, answer or problem]."""

    async def one(place: int) -> bytes:
        name, asker, fields = asked[place]
        found = await _answered(name, fields, page, asker, answer)
        return b"[%d,%d,%s]\n" % (place, found.status, found.body)

    known = [*PANELS]  # in this order: what is shown first is asked first
    order = sorted(
        range(len(asked)), key=lambda place: known.index(asked[place][0]) if asked[place][0] in PANELS else 0
    )
    tasks = [asyncio.ensure_future(one(place)) for place in order]
    try:
        for line in asyncio.as_completed(tasks):
            yield await line
    finally:
        for task in tasks:
            task.cancel()


async def _answered(name: str, fields: dict[str, Any], page: str, asker: str, answer: Answering) -> Reply:
    panel = PANELS.get(name)
    if panel is None:
        return problem(404, "input", f"there is no panel {name[:40]!r}")
    try:
        question = panel.question.model_validate(fields)
    except ValidationError as error:
        found = problem_of_question(error.errors())
        return Reply(422, "application/json", found.model_dump_json().encode())
    return await answer(panel, "", question, page, asker)
