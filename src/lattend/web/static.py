"""The page itself: its few files, read once, compressed once; Brotli, which Python lacks, at its build."""

from __future__ import annotations

import gzip
import hashlib
import re
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
    packed: dict[str, bytes]  # by encoding, the smallest first
    tag: str

    def response(self, request: Request) -> Response:
        """The file, or status 304 if the browser has it already."""
        headers = {"etag": self.tag, "cache-control": "no-cache", "vary": "accept-encoding"}
        known = {part.strip().removeprefix("W/") for part in _parts(request, "if-none-match")}
        if known & {self.tag, "*"}:
            return Response(status_code=304, headers=headers)
        accepted = {name for part in _parts(request, "accept-encoding") if (name := _wanted(part))}
        encoding = next((name for name in self.packed if name in accepted), None)
        if encoding is None:
            return Response(self.body, media_type=self.media, headers=headers)
        headers["content-encoding"] = encoding
        return Response(self.packed[encoding], media_type=self.media, headers=headers)


def _parts(request: Request, header: str) -> list[str]:
    return ",".join(request.headers.getlist(header)).split(",")


def _wanted(part: str) -> str:
    """The encoding in a part of accept-encoding; "" where its weight is nothing, as in `br;q=0`."""
    name, _, weight = part.partition(";")
    nothing = re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", weight, re.IGNORECASE)
    return "" if nothing else name.strip().lower()


def page_files() -> dict[str, File]:
    """Every file of the page, by its name; none where it was not built, as in a fresh checkout."""
    pages: dict[str, File] = {}
    folder = files("lattend.web").joinpath("static")
    bodies = {file.name: file.read_bytes() for file in (folder.iterdir() if folder.is_dir() else ())}
    for name, body in bodies.items():
        media = MEDIA.get("." + name.rpartition(".")[2])
        if media is not None:
            brotli = {"br": bodies[f"{name}.br"]} if f"{name}.br" in bodies else {}
            packed = {**brotli, "gzip": gzip.compress(body, 9, mtime=0)}
            pages[name] = File(media, body, packed, f'"{hashlib.sha256(body).hexdigest()[:20]}"')
    return pages
