"""The page that is committed is the page that client/ builds, and it is small."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from lattend.web.static import page_files

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src" / "lattend" / "web" / "static"
MOST = 150_000  # bytes of all pages in Brotli; browser/test_lazy.py holds what a first visit fetches in gzip


def test_what_is_committed_is_what_would_be_built() -> None:
    if not (ROOT / "client" / "node_modules").exists() and not os.environ.get("CI"):
        pytest.skip("the page's libraries are not there: run `make browser`")
    built = subprocess.run(
        [sys.executable, "client/build.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr


def test_the_page_is_small() -> None:
    loaded = {name: file for name, file in page_files().items() if name not in ("pages.json", "licences.txt")}
    sent = {name: min(map(len, file.packed.values())) for name, file in loaded.items()}
    assert sum(sent.values()) < MOST, sent


@pytest.mark.parametrize(
    ("accepted", "sent"), [("gzip, br", "br"), ("gzip;q=0.5", "gzip"), ("identity", None)]
)
def test_what_is_sent_is_the_file(address: str, accepted: str, sent: str | None) -> None:
    request = Request(f"{address}app.js", headers={"accept-encoding": accepted})
    with urlopen(request) as response:
        body = response.read()
        assert response.headers.get("content-encoding") == sent
    file = STATIC / ("app.js.br" if sent == "br" else "app.js")
    assert (gzip.decompress(body) if sent == "gzip" else body) == file.read_bytes()
