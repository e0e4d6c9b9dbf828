"""The application: a route for each panel, one for pictures, one for batches, and the page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException

from lattend import __version__
from lattend.web.answer_cache import Answers, meaning_of
from lattend.web.guards import ASKER, PAGE, Guards, Hosts
from lattend.web.panel import Panel, Problem, problem_of_question
from lattend.web.panels import PANELS
from lattend.web.pool import Asking, Pool, Reply, problem
from lattend.web.static import page_files
from lattend.web.worker import LATE

Format = Literal["svg", "png"]


def application(hosts: Hosts, *, sets: int = 3, torch: int = 2) -> FastAPI:
    """The server for these hosts. `sets` and `torch` are the numbers of workers without and with torch."""
    pools = {False: Pool(sets), True: Pool(torch, torch=True)}
    known = Answers()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        starting = asyncio.ensure_future(_start(pools))
        yield
        starting.cancel()
        for pool in pools.values():
            pool.stop()

    app = FastAPI(
        title="Lattend workbench",
        version=__version__,
        summary="What the page asks, for scripts: every panel is one POST of a question as JSON.",
        lifespan=lifespan,
        docs_url=None,  # they load scripts from elsewhere; the page shows the schema itself
        redoc_url=None,
        openapi_url="/api/schema.json",
    )
    app.add_middleware(Guards, hosts=hosts)

    async def answer(panel: Panel, form: str, question: BaseModel, page: str, asker: str) -> Reply:
        meaning = meaning_of(panel, form, question)
        body = known.get(panel.name, form, meaning)
        if body is None:
            message = (panel.name, form, question.model_dump_json().encode())
            whose = Asking(page, asker or object(), panel.first)
            body = await pools[panel.torch].ask(message, whose, panel.seconds)
            known.keep(panel.name, form, meaning, body)
        return body._replace(status=200) if body.status == LATE else body  # the answer says it, too

    async def reply(panel: Panel, form: str, question: BaseModel, request: Request) -> Response:
        page, asker = (request.headers.get(name, "")[:64] for name in (PAGE, ASKER))
        result = await answer(panel, form, question, page, asker)
        return Response(result.body, result.status, {"cache-control": "no-store"}, result.media)

    @app.post("/api/batch", include_in_schema=False)
    async def ask(request: Request) -> Response:
        """Answer several questions of one request: a line for each answer as soon as it is ready."""
        page = request.headers.get(PAGE, "")[:64]
        try:
            batch = BATCH.validate_json(await request.body())
        except ValidationError as error:
            return _problem(422, problem_of_question(error.errors()))
        return StreamingResponse(answer_batch(batch, page, answer), media_type="application/x-ndjson")

    for panel in PANELS.values():
        app.post(
            f"/api/{panel.name}",
            name=panel.name,
            summary=panel.title,
            response_model=panel.reply,
            responses={code: {"model": Problem} for code in (409, 422, 429, 500, 503, 504)},
        )(_route(panel, reply))
        if panel.picture is not None:
            app.post(
                f"/api/{panel.name}/picture.{{form}}",
                name=f"{panel.name} picture",
                summary=f"{panel.title}: the picture",
                response_class=Response,
                responses={422: {"model": Problem}},
            )(_picture_route(panel, reply))

    @app.exception_handler(RequestValidationError)
    async def unreadable(_: Request, error: RequestValidationError) -> Response:
        return _problem(422, problem_of_question(error.errors()))

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> Response:
        return _problem(error.status_code, Problem(kind="input", message=str(error.detail)))

    pages = page_files()

    @app.api_route("/{name:path}", methods=["GET", "HEAD"], include_in_schema=False)
    async def page(name: str, request: Request) -> Response:
        file = pages.get(name or "index.html")
        if file is None:
            message = "there is no such page here" if pages else "the page is not built: run `make page`"
            return Response(message, 404, media_type="text/plain")
        return file.response(request)

    return app


Replying = Callable[[Panel, str, Any, Request], Awaitable[Response]]


def _route(panel: Panel, reply: Replying) -> Callable[..., Awaitable[Response]]:
    async def ask(question: Any, request: Request) -> Response:
        return await reply(panel, "", question, request)

    ask.__annotations__ = {"question": panel.question, "request": Request, "return": Response}
    ask.__doc__ = (panel.answer.__doc__ or "").strip()
    return ask


def _picture_route(panel: Panel, reply: Replying) -> Callable[..., Awaitable[Response]]:
    async def picture(form: Format, question: Any, request: Request) -> Response:
        return await reply(panel, form, question, request)

    hints = {"form": Format, "question": panel.question, "request": Request, "return": Response}
    picture.__annotations__ = hints
    return picture


def _problem(status: int, problem: Problem) -> Response:
    return Response(problem.model_dump_json(), status, media_type="application/json")


async def _start(pools: dict[bool, Pool]) -> None:
    """Start the workers. Those with torch take seconds to load, so the others start first."""
    for pool in pools.values():
        await pool.ready()


MOST_IN_A_BATCH = 32  # questions in one request
BatchedQuestion = tuple[str, Annotated[str, Field(max_length=64)], dict[str, Any]]  # panel, asker, question
BATCH: TypeAdapter[list[BatchedQuestion]] = TypeAdapter(
    Annotated[list[BatchedQuestion], Field(max_length=MOST_IN_A_BATCH)]
)
Answering = Callable[[Panel, str, BaseModel, str, str], Awaitable[Reply]]


async def answer_batch(batch: list[BatchedQuestion], page: str, answer: Answering) -> AsyncIterator[bytes]:
    """Yield a line for each question as soon as it is answered: [index, status, answer or problem]."""

    async def one(index: int) -> bytes:
        name, asker, fields = batch[index]
        reply = await _answered(name, fields, page, asker, answer)
        return b"[%d,%d,%s]\n" % (index, reply.status, reply.body)

    known = [*PANELS]  # in this order: what is shown first is asked first
    order = sorted(
        range(len(batch)), key=lambda index: known.index(batch[index][0]) if batch[index][0] in PANELS else 0
    )
    tasks = [asyncio.ensure_future(one(index)) for index in order]
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
        invalid = problem_of_question(error.errors())
        return Reply(422, "application/json", invalid.model_dump_json().encode())
    return await answer(panel, "", question, page, asker)
