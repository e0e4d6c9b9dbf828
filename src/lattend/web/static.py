"""The page itself: its few files, read once, compressed once."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True)
class File:
    """A file as it is sent."""

    media: str
    body: bytes
    packed: bytes
    tag: str

    def response(self, request: Request) -> Response:
        """The file, or word that the browser has it already."""
        headers = {"etag": self.tag, "cache-control": "no-cache", "vary": "accept-encoding"}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(
                self.packed, media_type=self.media, headers={**headers, "content-encoding": "gzip"}
            )
        return Response(self.body, media_type=self.media, headers=headers)


def page_files() -> dict[str, File]:
    """Every file of the page, by its name; none where it was not built, as in a fresh checkout."""
    found: dict[str, File] = {}
    folder = files("lattend.web").joinpath("static")
    for file in folder.iterdir() if folder.is_dir() else ():
        ending = "." + file.name.rpartition(".")[2]
        if ending in MEDIA:
            body = file.read_bytes()
            tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
            found[file.name] = File(MEDIA[ending], body, gzip.compress(body, 9, mtime=0), tag)
    return found
