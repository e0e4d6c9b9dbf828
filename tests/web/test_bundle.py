"""The page that is committed is the page that client/ builds, and it is small."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src" / "lattend" / "web" / "static"
MOST = 150_000  # bytes, compressed


def test_what_is_committed_is_what_would_be_built() -> None:
    if not (ROOT / "client" / "node_modules").exists() and not os.environ.get("CI"):
        pytest.skip("the page's libraries are not there: run `make browser`")
    built = subprocess.run(
        [sys.executable, "client/build.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr


def test_the_page_is_small() -> None:
    sizes = {file.name: len(gzip.compress(file.read_bytes(), 9)) for file in STATIC.iterdir()}
    assert sum(sizes.values()) < MOST, sizes
