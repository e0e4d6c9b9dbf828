"""The server: one address on this machine, and the page opened in a browser."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable

from lattend.errors import LattendError

LOCAL = "127.0.0.1"
PORT, TRIES = 8321, 20  # the first free one from here on


def listen(host: str, port: int | None) -> socket.socket:
    """A listening socket: at this port, or at the first free one from 8321 on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    wanted = range(PORT, PORT + TRIES) if port is None else (port,)
    reason = ""
    for number in wanted:
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, number))
        except OSError as error:
            found.close()
            reason = error.strerror or str(error)
        else:
            found.listen(1024)
            return found
    tried = f"port {wanted[0]}" if len(wanted) == 1 else f"ports {wanted[0]} to {wanted[-1]}"
    raise LattendError(f"cannot listen at {host}, {tried}: {reason}; give another with --port")


def addresses(host: str, port: int) -> frozenset[str]:
    """What a browser may call this server."""
    names = {LOCAL, "localhost", "[::1]", f"[{host}]" if ":" in host else host}
    return frozenset(f"{name}:{port}" for name in names)


def serve(host: str, port: int | None, *, workers: int, browser: bool, tell: Callable[[str], None]) -> None:
    """Serve until Ctrl-C."""
    try:
        import uvicorn

        from lattend.web.app import application
    except ModuleNotFoundError as error:
        raise LattendError(
            f"the workbench needs {error.name}, an extra that is not installed: pip install 'lattend[web]'"
        ) from None
    place = listen(host, port)
    number = place.getsockname()[1]
    address = f"http://{f'[{host}]' if ':' in host else host}:{number}/"
    tell(f"the workbench is at {address}  (Ctrl-C ends it)")
    tell(
        "only this machine can reach it"
        if host in (LOCAL, "localhost", "::1")
        else f"anyone who reaches {host} can use it; there is no password"
    )
    config = uvicorn.Config(
        application(addresses(host, number), sets=workers, torch=(workers + 1) // 2),
        log_level="warning",
        server_header=False,
    )
    server = uvicorn.Server(config)
    if browser:
        threading.Timer(0.3, webbrowser.open, (address,)).start()
    with place:
        server.run(sockets=[place])
