"""The command line called in this process: exit code, standard output, standard error."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from lattend.cli.main import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Lattend = Callable[..., Ran]


@pytest.fixture
def lattend(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Lattend:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("LATTEND_DEBUG", raising=False)

    def run(*arguments: str) -> Ran:
        code = main(arguments)
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    return run
