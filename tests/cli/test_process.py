"""The command as a process: what it loads, pipes, encodings, completion."""

import os
import subprocess
import sys

import pytest

HEAVY = ("torch", "sympy", "PIL", "matplotlib", "rich")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    return subprocess.run(
        [sys.executable, "-m", "lattend", *arguments],
        capture_output=True,
        check=False,
        env={**known, "COLUMNS": "80", **environment},
    )


@pytest.mark.parametrize(
    ("arguments", "also_unloaded"),
    [
        (["--help"], ("numpy", "islpy")),
        (["count", "strided", "--at", "n=9,t=2"], ()),
        (["patches", "224", "16"], ()),
        (["reach", "strided", "--at", "n=9,t=2"], ()),
    ],
)
def test_only_what_is_needed_is_loaded(arguments: list[str], also_unloaded: tuple[str, ...]) -> None:
    probe = (
        f"import sys\nfrom lattend.cli.main import main\nmain({arguments!r})\n"
        f"print('loaded', *(name for name in {(*HEAVY, *also_unloaded)!r} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded"


def test_a_pipe_gets_plain_text() -> None:
    done = run("draw", "strided(1)", "--at", "n=4", PYTHONIOENCODING="utf-8")
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout
    assert "▒▒██" in done.stdout.decode()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_encodings_without_blocks(encoding: str) -> None:
    done = run("rules", "strided", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "##" in done.stdout.decode(encoding)
    wrong = run("draw", "strided", PYTHONIOENCODING=encoding)
    assert wrong.returncode == 2
    assert wrong.stderr.decode(encoding).startswith("lattend: rule ")


def test_a_closed_pipe_ends_quietly() -> None:
    command = f'"{sys.executable}" -m lattend draw causal --at n=250 | head -n 1; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    title, code = done.stdout.splitlines()
    assert title == "causal (n = 250)"
    assert code in ("0", "141")  # all was written before head left, or not
    assert done.stderr == ""


@pytest.mark.parametrize("redirect", [">&-", "2>&-"])
def test_closed_streams(redirect: str) -> None:
    command = f'"{sys.executable}" -m lattend count causl {redirect}'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_completion() -> None:
    done = run(_LATTEND_COMPLETE="complete_bash", COMP_WORDS="lattend count sparse", COMP_CWORD="2")
    assert done.stdout.split() == [b"sparse_strided", b"sparse_fixed"]
    done = run(_LATTEND_COMPLETE="complete_bash", COMP_WORDS="lattend c", COMP_CWORD="1")
    assert done.stdout.split() == [
        b"count",
        b"claim",
        b"check",
        b"cache",
        b"cost",
        b"compare",
        b"conv",
        b"complete",
    ]
