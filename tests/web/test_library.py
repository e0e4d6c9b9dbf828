"""Workers have loaded what panels use before they are asked."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

from lattend.web.library import TORCH, panel_imports

LOADED = """
import json, sys
from lattend.web.library import load_library
load_library({torch})
print(json.dumps([*sys.modules]))
"""


@pytest.mark.parametrize("torch", [False, True])
def test_all_that_panels_import_is_loaded_before(torch: bool) -> None:
    if torch and find_spec("torch") is None:
        pytest.skip("torch is not installed")
    command = [sys.executable, "-c", LOADED.format(torch=torch)]
    loaded = {*json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)}
    used = panel_imports() - (set() if torch else {f"lattend.{name}" for name in TORCH})
    assert {"lattend.plans.retention", "lattend.study.worked.judge"} <= used <= loaded, sorted(used - loaded)
    assert ("torch" in loaded) == torch
