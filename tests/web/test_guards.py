"""Who may ask, how much and how often: each refusal says why, and everything else goes on."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from collections.abc import Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from lattend.web import guards
from lattend.web.guards import Guards, Hosts, Rates
from lattend.web.serve import hosts

HOST = "127.0.0.1:8321"
JSON = {"host": HOST, "content-type": "application/json"}


def ask(
    headers: Mapping[str, str] | list[tuple[str, str]],
    *parts: bytes,
    method: str = "POST",
    allowed: Hosts | None = None,
    guarded: Guards | None = None,
) -> tuple[int, str, dict[str, str]]:
    """Status, message and headers of the answer to one request; the application behind answers "passed"."""
    sent: list[dict[str, Any]] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'{"message": "passed"}'})

    async def receive() -> dict[str, Any]:
        if not waiting:
            await asyncio.sleep(60)
        return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting) or len(parts) > 1}

    async def send(message: Any) -> None:
        sent.append(message)

    waiting = [*parts] or [b"{}"]
    given = headers if isinstance(headers, list) else [*headers.items()]
    coded = [(name.encode(), value.encode("latin-1")) for name, value in given]
    scope = {"type": "http", "method": method, "path": "/api/count", "headers": coded}
    asyncio.run((guarded or Guards(application, allowed or hosts("127.0.0.1", 8321)))(scope, receive, send))
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], json.loads(sent[1]["body"])["message"], found


@pytest.mark.parametrize("host", [HOST, "localhost:8321", "LOCALHOST:8321", "[::1]:8321"])
def test_our_own_names_pass(host: str) -> None:
    assert ask(JSON | {"host": host, "origin": f"http://{host}"})[:2] == (200, "passed")


@pytest.mark.parametrize(
    "host",
    ["", "evil.example:8321", "127.0.0.1", "127.0.0.1:80", "localhost:8321.evil.example", "192.168.0.9:8321"],
)
def test_other_names_are_refused(host: str) -> None:
    """A site that has its name point to this machine is not served under that name."""
    status, message, _ = ask(JSON | {"host": host})
    assert status == 421
    assert "--name" in message


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_pages_of_other_sites_are_refused(headers: dict[str, str], method: str) -> None:
    assert ask(JSON | headers, method=method)[:2] == (403, "only the workbench's own page may ask")


def test_a_link_on_another_site_may_be_followed() -> None:
    followed = {"host": HOST, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert ask(followed, method="GET")[0] == 200
    assert ask(JSON | followed)[0] == 403  # a form of another site


def test_on_all_addresses_the_machines_names_and_its_addresses_pass() -> None:
    everywhere = hosts("0.0.0.0", 8321)
    own = f"{socket.gethostname()}:8321"
    for host in (own, "192.168.0.9:8321", "[fe80::1]:8321"):
        assert ask(JSON | {"host": host}, allowed=everywhere)[0] == 200
    for host in ("evil.example:8321", "1.2.3.4.evil.example:8321", "[evil]:8321"):
        assert ask(JSON | {"host": host}, allowed=everywhere)[0] == 421


def test_a_given_name_passes_with_and_without_the_port() -> None:
    named = hosts("127.0.0.1", 8321, ("Bench.Example",))
    for host in ("bench.example", "bench.example:8321"):
        assert ask(JSON | {"host": host, "origin": f"https://{host}"}, allowed=named)[0] == 200
    assert ask(JSON | {"host": "example"}, allowed=named)[0] == 421


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(method: str) -> None:
    assert ask(JSON, method=method)[0] == 405


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "multipart/form-data", "application/x-www-form-urlencoded"]
)
def test_forms_are_no_questions(kind: str) -> None:
    assert ask(JSON | {"content-type": kind})[0] == 415


def test_json_with_a_character_set_passes() -> None:
    assert ask(JSON | {"content-type": "Application/JSON; charset=utf-8"})[0] == 200


def test_long_bodies_are_refused_by_their_word_or_when_they_come() -> None:
    assert ask(JSON, b" " * (guards.MAX_BODY - 2) + b"{}")[0] == 200
    for headers, body in (
        ({"content-length": str(guards.MAX_BODY + 1)}, b""),
        ({}, b"x" * (guards.MAX_BODY + 1)),
    ):
        assert ask(JSON | headers, body)[:2] == (413, "a question has at most 1,048,576 bytes")
    for odd in ("-1", "1e3", "²", "9" * 30):
        assert ask(JSON | {"content-length": odd})[0] == 413


def test_slow_bodies_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "REQUEST_TIMEOUT", 0.05)
    assert ask(JSON, b"{", b"}")[0] == 408


def test_a_page_asks_so_often_and_others_go_on() -> None:
    rates = Rates(rate=10, burst=3)
    assert [rates.allows("a", 0.0) for _ in range(5)] == [True, True, True, False, False]
    assert rates.allows("b", 0.0)
    assert [rates.allows("a", 0.1), rates.allows("a", 0.1)] == [True, False]
    assert sum(rates.allows("a", 60.0) for _ in range(9)) == 3


def test_too_many_questions_are_told_to_wait() -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'{"message": "passed"}'})

    guarded = Guards(application, hosts("127.0.0.1", 8321))
    guarded.rates = Rates(rate=0, burst=1)
    assert ask(JSON | {"x-lattend-page": "a"}, guarded=guarded)[0] == 200
    assert ask(JSON | {"x-lattend-page": "a"}, guarded=guarded)[0] == 429
    assert ask(JSON | {"x-lattend-page": "b"}, guarded=guarded)[0] == 200
    guarded.rates_of_addresses = Rates(rate=0, burst=1)
    assert ask(JSON | {"x-lattend-page": "c"}, guarded=guarded)[0] == 200
    assert ask(JSON | {"x-lattend-page": "d"}, guarded=guarded)[0] == 429  # a new name is no way around it
    guarded.rates_of_addresses = Rates()
    guarded.rate_of_all = Rates(rate=0, burst=0)
    assert ask(JSON | {"x-lattend-page": "e"}, guarded=guarded)[0] == 429


def test_every_question_of_a_request_counts() -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'{"message": "passed"}'})

    guarded = Guards(application, hosts("127.0.0.1", 8321))
    guarded.rates = Rates(rate=0, burst=5)
    assert ask(JSON, b"[1, 2, 3]", guarded=guarded)[0] == 200
    assert ask(JSON, b"[1, 2, 3]", guarded=guarded)[0] == 429
    assert ask(JSON, b"[]", guarded=guarded)[0] == 200
    assert ask(JSON, b"[]", guarded=guarded)[0] == 429


@pytest.mark.parametrize("name", ["host", "origin"])
def test_a_header_that_is_there_twice_is_refused(name: str) -> None:
    """The first, or the last, may be ours: what stands before us may believe the other."""
    own = {"host": HOST, "origin": f"http://{HOST}"}[name]
    doubled = [(name, own), (name, own)]
    given = [*((key, value) for key, value in JSON.items() if key != name), *doubled]
    assert ask(given)[:2] == (400, f"there is more than one header {name}")


def test_answers_are_not_kept_by_the_browser_unless_they_say_so() -> None:
    assert ask(JSON)[2]["cache-control"] == "no-store"


def test_the_rates_of_old_pages_are_forgotten() -> None:
    rates = Rates()
    for page in range(guards.PAGES + 50):
        rates.allows(str(page), 0.0)
    assert len(rates._left) == guards.PAGES  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("headers", [JSON, {"host": "evil.example"}])
def test_every_answer_has_the_policy(headers: dict[str, str]) -> None:
    found = ask(headers)[2]
    assert found.items() >= guards.HEADERS.items()
    assert "unsafe" not in found["content-security-policy"]


RAW = {
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: HOST\r\nHost: evil\r\n\r\n",
    "wrong length": b"POST /api/count HTTP/1.1\r\nHost: HOST\r\nContent-Length: x\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "long header": b"GET / HTTP/1.1\r\nHost: HOST\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
    "long path": b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "odd path": b"GET /../../etc/passwd HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "coded path": b"GET /%2e%2e/%00%ff HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "other address": b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "websocket": b"GET / HTTP/1.1\r\nHost: HOST\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nOrigin: http://evil\r\n\r\n",
}


@pytest.mark.parametrize("name", RAW)
def test_malformed_requests_are_refused_and_the_server_goes_on(address: str, name: str) -> None:
    host = urlsplit(address).netloc
    place = ("127.0.0.1", int(host.partition(":")[2]))
    with socket.create_connection(place, timeout=60) as raw, raw.makefile("rb") as answer:
        try:
            raw.sendall(RAW[name].replace(b"HOST", host.encode()))
            status = answer.readline()
        except ConnectionResetError:
            status = b"HTTP/1.1 400"
    assert status.split()[1][:1] == b"4", status
    with closing(http.client.HTTPConnection(host, timeout=60)) as connection:
        connection.request("POST", "/api/count", b'{"rule": "causal"}', {"content-type": "application/json"})
        assert connection.getresponse().status == 200
