"""Workers have loaded what panels use before they are asked."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

from lattend.web.panels import PANELS

LOADED = """
import json, sys
from lattend.web.library import load_library
load_library({torch})
print(json.dumps([*sys.modules]))
"""


def used(torch: bool) -> set[str]:
    """The modules that functions of panels import, read off their source."""
    found: set[str] = set()
    needs = {panel.answer.__module__: panel.torch for panel in PANELS.values()}
    for name in (name for name, needed in needs.items() if torch or not needed):
        tree = ast.parse(inspect.getsource(sys.modules[name]))
        functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
        imports = (node for function in functions for node in ast.walk(function))
        found |= {node.module for node in imports if isinstance(node, ast.ImportFrom) and node.module}
    return {name for name in found if not name.startswith("lattend.web.")}


@pytest.mark.parametrize("torch", [False, True])
def test_all_that_panels_import_is_loaded_before(torch: bool) -> None:
    if torch and find_spec("torch") is None:
        pytest.skip("torch is not installed")
    command = [sys.executable, "-c", LOADED.format(torch=torch)]
    loaded = {*json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)}
    assert used(torch)
    assert used(torch) <= loaded, sorted(used(torch) - loaded)
    assert ("torch" in loaded) == torch
