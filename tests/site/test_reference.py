"""What is public says of itself what it is, and the site's own code does what its examples say."""

from __future__ import annotations

import importlib.util
import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SITE = Path(__file__).parents[2] / "docs" / "site"
EXAMPLES = ("docstrings", "make", "mathml", "questions", "speed")


@pytest.fixture(scope="module")
def reference() -> Any:
    spec = importlib.util.spec_from_file_location("reference", SITE / "reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = module  # where its dataclass looks for itself
    spec.loader.exec_module(module)
    return module


def test_every_name_says_what_it_is(reference: Any) -> None:
    names = [name for page in reference.PAGES for name in reference.names(page)]
    assert len(names) == len(set(names)) > 140
    for name in names:
        value = reference.found(name)
        first = (value.__doc__ or "").strip().partition("\n")[0]
        assert len(first) > 10 and not first.startswith(f"{value.__name__}("), f"{name} has no docstring"


def test_members_say_what_they_are(reference: Any) -> None:
    """Of the classes that users meet most, everything that the reference shows."""
    for name in ("lattend.Rule", "lattend.counts.count.Count", "lattend.cost.Cost"):
        given = vars(reference.found(name)).items()
        silent = [
            own for own, value in given if not own.startswith("_") and shown(value) and not value.__doc__
        ]
        assert silent == [], name


def shown(value: object) -> bool:
    return inspect.isfunction(value) or isinstance(value, property)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_the_site(name: str) -> None:
    command = [sys.executable, "-m", "doctest", "-o", "ELLIPSIS", str(SITE / f"{name}.py")]
    path = os.pathsep.join([str(SITE), *sys.path])
    ran = subprocess.run(
        command, check=False, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
