"""Guards: who may ask, how much and how often, and what a browser may do with what it gets.

A page of another site must not reach this server through the visitor's browser: requests name us as their
host (no DNS rebinding) and, where they name an origin, ours.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic_core import from_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lattend.web.panel import Problem

PAGE, ASKER = "x-lattend-page", "x-lattend-asker"  # headers: which page asks, and what on it
MAX_BODY = 1 << 20  # bytes: a config.json has some thousands
REQUEST_TIMEOUT = 10.0  # seconds until a question has arrived
RATE, BURST = 300.0, 1200.0  # questions a second of one page, and how many at once
RATE_OF_ADDRESS, BURST_OF_ADDRESS = 3000.0, 6000.0  # of all pages of one machine, or of many behind one proxy
RATE_OF_ALL, BURST_OF_ALL = 6000.0, 12000.0
PAGES = 4096  # whose rates are remembered
ONCE = ("host", "origin", "content-length", "content-type")  # headers that decide who may ask
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
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
NOT_KEPT = (b"cache-control", b"no-store")  # where the answer itself says nothing about it
Refusal = tuple[int, str]


@dataclass(frozen=True)
class Hosts:
    """The names under which this server is reached.

    `addresses` allows every address in digits: a server that listens on all of a machine's addresses may be
    called by any, and no other site can make a name out of digits.
    """

    names: frozenset[str]  # "127.0.0.1:8321", or without a port where a proxy stands before it
    addresses: bool = False

    def allows(self, host: str) -> bool:
        """Whether a request may use this host name."""
        return host.lower() in self.names or (self.addresses and _is_address(host))


def _is_address(host: str) -> bool:
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@dataclass
class Rates:
    """Token buckets: how many questions each address may ask, refilled over time."""

    rate: float = RATE
    burst: float = BURST
    _left: OrderedDict[Hashable, tuple[float, float]] = field(default_factory=OrderedDict)

    def allows(self, who: Hashable, now: float, questions: int = 1) -> bool:
        """Whether this address may ask so many questions now."""
        left, then = self._left.pop(who, (self.burst, now))
        left = min(self.burst, left + (now - then) * self.rate)
        self._left[who] = (left - questions if left >= questions else left, now)
        if len(self._left) > PAGES:
            self._left.popitem(last=False)
        return left >= questions


class Guards:
    """ASGI middleware around the application."""

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        self.app, self.hosts = app, hosts
        self.rates, self.rates_of_addresses = Rates(), Rates(RATE_OF_ADDRESS, BURST_OF_ADDRESS)
        self.rate_of_all = Rates(RATE_OF_ALL, BURST_OF_ALL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the reason, or pass the request on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, _with_headers(send))
        else:
            await send({"type": "websocket.close"})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        headers = dict(pairs)
        refusal = _doubled([name for name, _ in pairs]) or self._refusal(scope["method"], headers)
        if refusal is None and scope["method"] == "POST":
            client = (scope.get("client") or ("",))[0]
            page = headers.get(PAGE, "")[:64]
            refusal = self._too_often(client, page, 1)
            if refusal is None:
                body = await _read(receive, headers.get("content-length", "0"))
                if isinstance(body, Body):
                    receive = _replayed(body.text, receive)
                    refusal = self._too_often(client, page, body.questions - 1)
                else:
                    refusal = body
        if refusal is None:
            await self.app(scope, receive, send)
        else:
            await _refuse(send, *refusal)

    def _refusal(self, method: str, headers: dict[str, str]) -> Refusal | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self.hosts.allows(host):
            return 421, "this server answers only under the address it printed; `--name` allows another"
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return 403, "only the workbench's own page may ask"
        followed = method == "GET" and headers.get("sec-fetch-mode") == "navigate"  # a link, typed or clicked
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not followed:
            return 403, "only the workbench's own page may ask"
        if method not in ("GET", "HEAD", "POST"):
            return 405, "ask with GET or POST"
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if method == "POST" and kind != "application/json":
            return 415, "questions are JSON: send content-type: application/json"
        return None

    def _too_often(self, client: str, page: str, questions: int) -> Refusal | None:
        now = time.monotonic()
        for rates, who in (
            (self.rates, (client, page)),
            (self.rates_of_addresses, client),
            (self.rate_of_all, ""),
        ):
            if not rates.allows(who, now, questions):
                return 429, f"more than {rates.rate:g} questions a second; wait a moment"
        return None


def _doubled(names: list[str]) -> Refusal | None:
    """A header that occurs twice: a proxy and this server could each trust a different one."""
    for name in ONCE:
        if names.count(name) > 1:
            return 400, f"there is more than one header {name}"
    return None


class Body(NamedTuple):
    """The text of a request, and how many questions are in it."""

    text: bytes
    questions: int


async def _read(receive: Receive, announced: str) -> Body | Refusal:
    """Read the whole body, unless it is too long, too slow or not JSON."""
    too_long = 413, f"a question has at most {MAX_BODY:,} bytes"
    if not announced.isdecimal() or int(announced[:20]) > MAX_BODY:
        return too_long
    body = bytearray()
    try:
        async with asyncio.timeout(REQUEST_TIMEOUT):
            while True:
                message = await receive()
                body += message.get("body", b"")
                if len(body) > MAX_BODY:
                    return too_long
                if message["type"] == "http.disconnect":
                    return 400, "the question ended before its end"
                if not message.get("more_body"):
                    break
    except TimeoutError:
        return 408, f"the question did not arrive within {REQUEST_TIMEOUT:g} seconds"
    try:
        panels = from_json(
            bytes(body), allow_inf_nan=False
        )  # stricter than Python's: no half characters, no depths
    except ValueError as error:
        return 400, f"the question is not JSON: {error}"
    return Body(bytes(body), len(panels) if isinstance(panels, list) and panels else 1)


def _replayed(body: bytes, after: Receive) -> Receive:
    """Pass on the body once, and then what follows it: that the client is gone."""
    left = [body]

    async def receive() -> Message:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await after()

    return receive


def _with_headers(send: Send) -> Send:
    added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ())]
            kept = any(name == b"cache-control" for name, _ in headers)
            message["headers"] = [*headers, *added, *(() if kept else (NOT_KEPT,))]
        await send(message)

    return guarded


async def _refuse(send: Send, status: int, message: str) -> None:
    kind = "busy" if status == 429 else "input"
    body = Problem(kind=kind, message=message).model_dump_json().encode()
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
