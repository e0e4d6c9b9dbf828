"""The program of examples/ that a test file names as EXAMPLE."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from types import ModuleType

import pytest
import torch


@pytest.fixture
def example(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    path = request.module.EXAMPLE
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    threads = torch.get_num_threads()
    spec.loader.exec_module(module)
    yield module
    torch.set_num_threads(threads)
