"""The server: one address on this machine, and the page opened in a browser."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lattend.errors import LattendError

if TYPE_CHECKING:
    from lattend.web.guards import Hosts

LOCAL = "127.0.0.1"
EVERYWHERE = ("0.0.0.0", "::")
PORT, TRIES = 8321, 20  # the first free one from here on
# A person pauses for longer than five seconds; questions that run when the server is stopped get two
SETTINGS: dict[str, Any] = {
    "log_level": "warning",
    "access_log": False,
    "server_header": False,
    "ws": "none",
    "proxy_headers": False,  # whoever asks could name another address, and have the rate of that
    "lifespan": "on",
    "timeout_keep_alive": 30,
    "timeout_graceful_shutdown": 2,
    "limit_concurrency": 900,  # fewer than the files that a process may have open
}


def listen(host: str, port: int | None) -> socket.socket:
    """A listening socket: at this port, or at the first free one from 8321 on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    wanted = range(PORT, PORT + TRIES) if port is None else (port,)
    reason = ""
    for number in wanted:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
            listener.listen(1024)
        except OSError as error:
            listener.close()
            reason = error.strerror or str(error)
        else:
            return listener
    tried = f"port {wanted[0]}" if len(wanted) == 1 else f"ports {wanted[0]} to {wanted[-1]}"
    raise LattendError(f"cannot listen at {host}, {tried}: {reason}; give another with --port")


def hosts(host: str, port: int, names: Sequence[str] = ()) -> Hosts:
    """The host names of this server: its address, the machine's own names, and `names`.

    A given name counts with any port or none: a proxy may stand before the server.
    """
    from lattend.web.guards import Hosts

    known = {LOCAL, "localhost", "[::1]", _bracketed(host)}
    if host in EVERYWHERE:
        own = {socket.gethostname(), socket.getfqdn()}
        known |= own | {f"{name}.local" for name in own if "." not in name}
    called = {f"{name}:{port}" for name in {*known, *names}}
    bare = {*names, *(known if port == 80 else ())}
    return Hosts(frozenset(name.lower() for name in called | bare), host in EVERYWHERE)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def serve(
    host: str,
    port: int | None,
    *,
    workers: int,
    browser: bool,
    tell: Callable[[str], None],
    names: Sequence[str] = (),
) -> None:
    """Serve until Ctrl-C."""
    uvicorn, application = needed()
    listener = listen(host, port)
    number = listener.getsockname()[1]
    shown = socket.gethostname() if host in EVERYWHERE else _bracketed(host)
    address = f"http://{shown}:{number}/"
    tell(f"the workbench is at {address}  (Ctrl-C ends it)")
    tell(
        "only this machine can reach it"
        if host in (LOCAL, "localhost", "::1")
        else f"anyone who reaches {shown} can use it; there is no password"
    )
    app = application(hosts(host, number, names), sets=workers, torch=(workers + 1) // 2)
    server = uvicorn.Server(uvicorn.Config(app, **SETTINGS))
    if browser and _has_screen():
        local = f"http://{LOCAL if host in EVERYWHERE else _bracketed(host)}:{number}/"
        threading.Timer(0.3, webbrowser.open, (local,)).start()
    with listener, contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listener])


def needed() -> tuple[Any, Callable[..., Any]]:
    """Import the server and the application; if one is missing, raise with what to install."""
    try:
        import uvicorn

        from lattend.web.app import application
    except ModuleNotFoundError as error:
        raise LattendError(
            f"the workbench needs {error.name}, an extra that is not installed: pip install 'lattend[web]'"
        ) from None
    return uvicorn, application


def _has_screen() -> bool:
    """Whether there is a screen for a browser: on a remote machine it would take over the terminal."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
