"""Guards: who may ask, how much and how often, and what a browser may do with what it gets.

A page of another site must not reach this server through the visitor's browser: requests name us as their
host (no DNS rebinding) and, where they name an origin, ours.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lattend.web.panel import Problem

PAGE, ASKER = "x-lattend-page", "x-lattend-asker"  # headers: which page asks, and what on it
MAX_BODY = 1 << 20  # bytes: a config.json has some thousands
RATE, BURST = 60.0, 240.0  # questions a second of one page, and how many at once
PAGES = 4096  # whose rates are remembered
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass
class Rates:
    """A bucket of questions for each page, refilled as time goes by."""

    rate: float = RATE
    burst: float = BURST
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def allows(self, page: str, now: float) -> bool:
        """Whether this page may ask one more question now."""
        left, then = self._left.pop(page, (self.burst, now))
        left = min(self.burst, left + (now - then) * self.rate)
        self._left[page] = (max(0.0, left - 1), now)
        if len(self._left) > PAGES:
            self._left.popitem(last=False)
        return left >= 1


class Guards:
    """ASGI middleware around the application. `hosts` are the names under which this server is reached."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self.app, self.hosts, self.rates = app, hosts, Rates()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the reason, or pass the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is None and scope["method"] == "POST":
            body = await _read(receive)
            if body is None:
                refusal = 413, f"a question has at most {MAX_BODY:,} bytes"
            else:
                receive = _given(body)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", ()),
                    *((name.encode(), value.encode()) for name, value in HEADERS.items()),
                ]
            await send(message)

        if refusal is None:
            await self.app(scope, receive, guarded)
        else:
            await _refuse(guarded, *refusal)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if host not in self.hosts:
            return 421, "this server answers only under the address it printed when it started"
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return 403, "only the workbench's own page may ask"
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "ask with GET or POST"
        if scope["method"] == "POST":
            if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
                return 415, "questions are JSON: send content-type: application/json"
            if not self.rates.allows(headers.get("x-lattend-page", "")[:64], time.monotonic()):
                return 429, f"more than {RATE:g} questions a second; wait a moment"
        return None


async def _read(receive: Receive) -> bytes | None:
    """The whole body; None where it is too long."""
    found = b""
    while True:
        message = await receive()
        found += message.get("body", b"")
        if len(found) > MAX_BODY:
            return None
        if not message.get("more_body"):
            return found


def _given(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _refuse(send: Send, status: int, message: str) -> None:
    kind = "busy" if status == 429 else "input"
    body = Problem(kind=kind, message=message).model_dump_json().encode()
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
