"""The wheel in an environment of its own: what a person gets from pip, without extras and with torch."""

import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path
from typing import NamedTuple

import pytest

import lattend

ROOT = Path(__file__).parents[1]
SIMPLE = """
import lattend as lt
assert lt.__file__.startswith({prefix!r}), lt.__file__
print(lt.rule("k <= q and q - k <= t").count(n=9, t=3), lt.study.work([[1]], [[1]], [[1]], [[1]]).sums)
"""
ATTENTION = """
import torch, lattend as lt
x = torch.ones(1, 2, 9, 4)
print(lt.attention(x, x, x, lt.rule("k <= q and q - k <= t"), t=3).shape, lt.nn.GridRNN(4, 2)(x).shape)
"""


class Installed(NamedTuple):
    """An environment with the wheel in it."""

    folder: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        program, *arguments = command
        command = (str(self.folder / "bin" / program), *arguments)
        return subprocess.run(command, check=False, capture_output=True, text=True, env=kept, cwd=self.folder)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, check=True, capture_output=True, cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "empty", with_pip=True)
    found = Installed(folder / "empty")
    ran = found.run("python", "-m", "pip", "install", "--quiet", str(wheel))
    assert ran.returncode == 0, ran.stderr
    return found


@pytest.mark.long
def test_without_extras(installed: Installed) -> None:
    ran = installed.run("lattend", "count", "strided", "--at", "n=9,t=3")
    assert (ran.returncode, ran.stdout) == (0, "30\n"), ran.stderr  # 1 + 2 + 3 + 6*4
    assert installed.run("lattend", "--version").stdout == f"lattend {lattend.__version__}\n"
    ran = installed.run("python", "-c", SIMPLE.format(prefix=str(installed.folder)))
    assert (ran.returncode, ran.stdout.split()[0]) == (0, "30"), ran.stderr
    ran = installed.run("lattend", "elbo", "linear")
    said = "lattend: this runs on torch, an extra that is not installed: pip install 'lattend[torch]'\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "", said)


@pytest.mark.long
def test_with_torch(installed: Installed) -> None:
    """The torch that the tests run on, behind everything the wheel has brought."""
    (site,) = installed.folder.glob("lib/*/site-packages")
    path = site / "torch_at_hand.pth"
    path.write_text(f"{sysconfig.get_path('purelib')}\n")
    try:
        ran = installed.run("python", "-c", SIMPLE.format(prefix=str(installed.folder)) + ATTENTION)
    finally:
        path.unlink()
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "torch.Size([1, 2, 9, 4]) torch.Size([1, 2, 9, 2])"


def test_one_source_of_the_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"] and "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/lattend/__init__.py"
    assert lattend.__version__.count(".") == 2
