"""`lattend serve`: it starts, says where, answers all that is sent to it, and leaves nothing behind."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.requests import Request
from starlette.responses import Response
from web.processes import gone, processes_of

from lattend.errors import LattendError
from lattend.web import serve
from lattend.web.app import application
from lattend.web.guards import Hosts
from lattend.web.panels import PANELS
from lattend.web.static import File

COMMAND = (sys.executable, "-m", "lattend", "serve", "--no-browser", "--workers", "1")
HARD = "(q % (k % (p + 1) + 1)) % (k % (s + 1) + 1) == (k % (q % (r + 1) + 1)) % 7"


def ask(address: str, panel: str, body: bytes) -> tuple[int, Any]:
    """Status and answer."""
    with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)) as connection:
        connection.request("POST", f"/api/{panel}", body, {"content-type": "application/json"})
        found = connection.getresponse()
        return found.status, json.loads(found.read())


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_no_process_is_left_however_it_ends(how: signal.Signals) -> None:
    """Also while a hard question runs, whose set work is in a process of its own."""
    with subprocess.Popen((*COMMAND, "--port", "0"), stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        address = re.findall(r"http://\S+", server.stderr.readline())[0]
        assert server.stderr.readline() == "only this machine can reach it\n"
        assert ask(address, "count", b'{"rule": "k <= q and q - k <= 5*t"}')[0] == 200
        with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)) as hard:
            body = json.dumps({"rule": HARD}).encode()
            hard.request("POST", "/api/count", body, {"content-type": "application/json"})
            processes = processes_of(server.pid)
            server.send_signal(how)
            server.wait(60)
            said = server.stderr.read()
    assert len(processes) >= 4  # the server, the fork server, a worker and its set work
    assert not gone(processes)
    assert "Traceback" not in said


def test_a_port_in_use_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            LattendError, match=f"port {port}: Address already in use; give another with --port"
        ):
            serve.listen("127.0.0.1", port)


def test_without_a_port_the_next_free_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve.listen("127.0.0.1", 0) as taken:
        monkeypatch.setattr(serve, "PORT", taken.getsockname()[1])
        with serve.listen("127.0.0.1", None) as found:
            assert serve.PORT < found.getsockname()[1] < serve.PORT + serve.TRIES


def test_an_address_of_another_machine_is_said() -> None:
    with pytest.raises(LattendError, match=r"cannot listen at 192\.0\.2\.1, port 8000: "):
        serve.listen("192.0.2.1", 8000)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(LattendError, match=r"pip install 'lattend\[web\]'"):
        serve.needed()


UNREADABLE = {
    "nothing": b"",
    "no JSON": b"{rule}",
    "half": b'{"rule": "causal"',
    "not a question": b'["causal"]',
    "null": b"null",
    "NaN": b"NaN",
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"rule":' * 50_000 + b"1" + b"}" * 50_000,
    "no UTF-8": b'{"rule": "\xff\xfe"}',
    "half a surrogate": b'{"rule": "\\ud800"}',
    "no rule": b"{}",
    "a field too many": b'{"rule": "causal", "__proto__": {"x": 1}}',
    "a number for a text": b'{"rule": 1}',
    "a text for a number": b'{"rule": "causal", "numbers": {"n": "eight"}}',
    "NaN for a number": b'{"rule": "causal", "numbers": {"n": NaN}}',
    "a fraction for a number": b'{"rule": "causal", "numbers": {"n": 1.5}}',
    "endless digits": b'{"rule": "causal", "numbers": {"n": "' + b"9" * 5000 + b'"}}',
    "endless number": b'{"rule": "causal", "numbers": {"n": ' + b"9" * 5000 + b"}}",
    "many numbers": json.dumps({"rule": "causal", "numbers": {f"a{i}": 1 for i in range(1000)}}).encode(),
    "an empty rule": b'{"rule": ""}',
    "a long rule": json.dumps({"rule": "k <= q or " * 10_000 + "k <= q"}).encode(),
    "brackets": json.dumps({"rule": "(" * 10_000 + "q" + ")" * 10_000 + " <= k"}).encode(),
    "signs": json.dumps({"rule": "k <= " + "-" * 10_000 + "q"}).encode(),
    "control characters": json.dumps({"rule": "k \x00\x1b[31m <= q\r\n"}).encode(),
    "other scripts": json.dumps({"rule": "k ≤ 🦆 \u202e q"}).encode(),
    "markup": b'{"rule": "<img src=x onerror=alert(1)>"}',
}


@pytest.mark.parametrize("panel", ["count", "read"])
@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_answered_says_why(address: str, panel: str, name: str) -> None:
    status, problem = ask(address, panel, UNREADABLE[name])
    assert status in (400, 422), problem
    assert problem["kind"] in ("input", "no answer")
    assert 0 < len(problem["message"]) < 2000


def lines(address: str, body: bytes) -> tuple[int, list[Any]]:
    """Status, and the lines of the answer to several questions."""
    with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)) as connection:
        connection.request("POST", "/api/batch", body, {"content-type": "application/json"})
        found = connection.getresponse()
        return found.status, [json.loads(line) for line in found.read().splitlines()]


def test_several_questions_are_answered_each_by_itself(address: str) -> None:
    asked = [
        ["count", "1", {"rule": "causal"}],
        ["read", "2", {"rule": "k <= "}],
        ["nothing", "3", {}],
        ["count", "4", {"rule": 1}],
        ["count", "5", {"rule": "causal", "numbers": {"n": 8}}],
    ]
    status, found = lines(address, json.dumps(asked).encode())
    assert status == 200
    assert {place: status for place, status, _ in found} == {0: 200, 1: 422, 2: 404, 3: 422, 4: 200}
    answers = {place: answer for place, _, answer in found}
    assert answers[0] == ask(address, "count", b'{"rule": "causal"}')[1]
    assert answers[3]["field"] == "rule"
    assert answers[4]["value"] == "36"


@pytest.mark.parametrize(
    "asked", [{}, [1], [["count"]], [["count", "1", "causal"]], [["start", "1", {}]] * 33]
)
def test_what_is_not_several_questions_is_refused(address: str, asked: Any) -> None:
    status, (problem,) = lines(address, json.dumps(asked).encode())
    assert status == 422
    assert problem["kind"] == "input"


def test_a_sequence_length_of_any_size_is_answered(address: str) -> None:
    body = json.dumps({"rule": "causal", "numbers": {"n": str(10**30)}}).encode()
    status, answer = ask(address, "count", body)
    assert (status, answer["value"]) == (200, f"{10**30 * (10**30 + 1) // 2:,}")


def test_what_is_not_there_is_said(address: str) -> None:
    assert ask(address, "nothing", b"{}")[0] in (404, 405)
    assert ask(address, "count/picture.exe", b'{"rule": "causal"}')[0] in (404, 405, 422)


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, br", "br"),
        ("gzip;q=1.0, br;q=0", "gzip"),
        ("br;q=0.0, gzip ; q = 0", None),
        ("GZIP;q=0.5", "gzip"),
        ("identity", None),
        ("", None),
    ],
)
def test_a_file_is_packed_as_the_browser_wants_it(accepted: str, encoding: str | None) -> None:
    assert sent({"accept-encoding": accepted}).headers.get("content-encoding") == encoding


@pytest.mark.parametrize(
    ("known", "status"),
    [('"tag"', 304), ('W/"tag"', 304), ('"old", W/"tag"', 304), ("*", 304), ('"old"', 200), ("", 200)],
)
def test_a_file_that_the_browser_has_is_not_sent_again(known: str, status: int) -> None:
    assert sent({"if-none-match": known}).status_code == status


def sent(headers: dict[str, str]) -> Response:
    """The answer to one who asks for a file with these headers."""
    coded = [(name.encode(), value.encode()) for name, value in headers.items()]
    file = File("text/plain", b"text", {"br": b"b", "gzip": b"g"}, '"tag"')
    return file.response(Request({"type": "http", "headers": coded}))


def test_every_type_of_the_api_has_a_name_of_its_own() -> None:
    schemas = application(Hosts(frozenset())).openapi()["components"]["schemas"]
    assert [name for name in schemas if "__" in name] == []  # of two alike, the modules are named too


def test_the_page_and_the_server_answer_the_same_questions_first() -> None:
    priority = Path(__file__).parents[2] / "client" / "src" / "core" / "priority.ts"
    (listed,) = re.findall(r"const FIRST = new Set\((\[.*?\])\)", priority.read_text())
    assert sorted(json.loads(listed)) == sorted(name for name, panel in PANELS.items() if panel.first)
    assert not PANELS["claim"].first  # a proof takes seconds
