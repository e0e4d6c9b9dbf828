"""Settings shared by all tests: one hypothesis profile for people, one for CI."""

import os
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from lattend import amx

settings.register_profile("dev", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# Before torch is loaded: some machines announce AMX and end the process at its first bfloat16 product
amx.limit(os.environ)

# Where there is no GPU, Triton's kernels run under its interpreter; the variable is read when Triton loads
if not os.path.exists("/dev/nvidia0"):  # noqa: PTH110  (before anything heavier is imported)
    os.environ.setdefault("TRITON_INTERPRET", "1")

# torch.compile keeps programs from earlier runs, which may call operators as they were then
_PROGRAMS = tempfile.TemporaryDirectory(prefix="lattend-inductor-")
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", _PROGRAMS.name)


@pytest.fixture(autouse=True, scope="module")
def fresh_compiler() -> Iterator[None]:
    """Has torch.compile forget what a module compiled.

    Where a trace fails, as it must where an error is tested, it leaves attention to Python from then on.
    """
    yield
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        dynamo.reset()


@pytest.fixture
def without_native(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where Lattend was built without a C++ compiler."""
    from lattend.attend.kernels.native import library

    monkeypatch.setattr(library, "missing", lambda: "it was not built")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say aloud where the browser tests did not run."""
    skipped = [one for one in terminalreporter.stats.get("skipped", ()) if "no Chromium" in str(one.longrepr)]
    if skipped:
        terminalreporter.write_line(
            f"THE {len(skipped)} BROWSER TESTS DID NOT RUN: there is no Chromium, and npm's could not be had."
            " Install one (Debian: apt-get install chromium), or name it: LATTEND_CHROMIUM=/path/to/chrome",
            yellow=True,
            bold=True,
        )
