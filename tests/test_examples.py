"""The examples in the docstrings give what they say."""

import doctest
import importlib
import pkgutil

import pytest

import lattend

MODULES = [
    found.name
    for found in pkgutil.walk_packages(lattend.__path__, "lattend.")
    if not found.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module)
    assert failed == 0
