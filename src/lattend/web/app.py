"""The application: a route for each panel, one for pictures, and the page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response

from lattend import __version__
from lattend.recent import Recent
from lattend.web.guards import Guards
from lattend.web.panel import Panel, Problem
from lattend.web.panels import PANELS
from lattend.web.pool import Pool, Reply
from lattend.web.static import page_files

REMEMBERED = 2048  # answers
LARGEST = 1 << 18  # bytes of an answer that is remembered

Format = Literal["svg", "png"]


def application(hosts: frozenset[str], *, sets: int = 3, torch: int = 2) -> FastAPI:
    """The server for these hosts ("127.0.0.1:8000"), with so many workers of either kind."""
    pools = {False: Pool(sets), True: Pool(torch, torch=True)}
    known: Recent[tuple[str, str, bytes], Reply] = Recent(REMEMBERED)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        for pool in pools.values():
            pool.start()
        yield
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

    async def reply(panel: Panel, form: str, question: Any, request: Request) -> Response:
        body = question.model_dump_json().encode()
        key = (panel.name, form, body)
        found = known.get(key)
        if found is None:
            owner = request.headers.get("x-lattend-page", "")[:64] or object()
            pool = pools[panel.torch]
            found = await pool.ask(panel.name, form, body, owner=owner, seconds=panel.seconds)
            if found.status in (200, 422) and len(found.body) <= LARGEST:
                answer = found
                known.find(key, lambda: answer)
        return Response(found.body, found.status, media_type=found.media)

    for panel in PANELS.values():
        app.post(
            f"/api/{panel.name}",
            name=panel.name,
            summary=panel.title,
            response_model=panel.reply,
            responses={code: {"model": Problem} for code in (409, 422, 429, 503)},
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
        return Response(_explained(error).model_dump_json(), 422, media_type="application/json")

    pages = page_files()

    @app.get("/{name:path}", include_in_schema=False)
    async def page(name: str, request: Request) -> Response:
        file = pages.get(name or "index.html")
        if file is None:
            return Response("there is no such page here", 404, media_type="text/plain")
        return file.response(request)

    return app


Asking = Callable[[Panel, str, Any, Request], Awaitable[Response]]


def _route(panel: Panel, reply: Asking) -> Callable[..., Awaitable[Response]]:
    async def ask(question: Any, request: Request) -> Response:
        return await reply(panel, "", question, request)

    ask.__annotations__ = {"question": panel.question, "request": Request, "return": Response}
    ask.__doc__ = (panel.answer.__doc__ or "").strip()
    return ask


def _picture_route(panel: Panel, reply: Asking) -> Callable[..., Awaitable[Response]]:
    async def picture(form: Format, question: Any, request: Request) -> Response:
        return await reply(panel, form, question, request)

    hints = {"form": Format, "question": panel.question, "request": Request, "return": Response}
    picture.__annotations__ = hints
    return picture


def _explained(error: RequestValidationError) -> Problem:
    """The first thing that is wrong with a question, by the name of its field."""
    first = error.errors()[0]
    place = [str(part) for part in first.get("loc", ()) if part not in ("body", "[key]")]
    message = str(first.get("msg", "")).removeprefix("Value error, ")
    return Problem(
        kind="input",
        message=f"{'.'.join(place)}: {message}" if place else message,
        field=place[0] if place else "",
    )
