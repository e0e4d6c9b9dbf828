"""What `import lattend` gives; test_architecture says what it leaves unloaded."""

import subprocess
import sys
from importlib import import_module
from pkgutil import walk_packages

import pytest

import lattend as lt

# Looks up half of the names before and all after the files are imported; prints what the table does not say
STAYS = """
import sys
from importlib import import_module
folder = import_module(sys.argv[1])
for name in list(folder._HOME)[::2]:
    getattr(folder, name)
for module in sys.argv[2:]:
    import_module(module)
for name, home in folder._HOME.items():
    if getattr(folder, name) is not getattr(import_module(home), name):
        print(name, "is", getattr(folder, name))
"""


FROM_IMPORTS = """
import sys
from importlib import import_module
folder = import_module(sys.argv[1])
for name in folder._HOME:
    found = {}
    exec(f"from {sys.argv[1]} import {name}", found)
    home = import_module(folder._HOME[name])
    if found[name] is not (home if folder._HOME[name] == f"{sys.argv[1]}.{name}" else getattr(home, name)):
        print(name, "is", found[name])
"""
# Imports every file, then prints those that their folder has something else for under their name
SHADOWS = """
import pkgutil, sys
from importlib import import_module
import lattend
files = [found.name for found in pkgutil.walk_packages(lattend.__path__, "lattend.")]
for name in files:
    if name != "lattend.__main__":
        import_module(name)
for name in files:
    folder, _, own = name.rpartition(".")
    if name in sys.modules and getattr(sys.modules[folder], own) is not sys.modules[name]:
        print(name)
"""
FOLDERS = [
    "lattend",
    "lattend.cost",
    "lattend.nn",
    "lattend.study",
    "lattend.study.games",
    "lattend.study.generative",
]


def printed(code: str, *arguments: str) -> list[str]:
    """The lines that a fresh process prints."""
    command = [sys.executable, "-c", code, *arguments]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_public_name_can_be_imported_from_its_folder(folder: str) -> None:
    assert printed(FROM_IMPORTS, folder) == []


def test_no_module_is_shadowed_by_what_it_holds() -> None:
    """`import lattend.counts.reach as reach` gives the module."""
    assert printed(SHADOWS) == []


def test_public_names() -> None:
    assert len(lt.__all__) <= 15
    assert set(lt.__all__) <= set(dir(lt))
    for name in lt.__all__:
        assert getattr(lt, name) is not None
    with pytest.raises(AttributeError, match="lattend has no 'rul'; it has rule, Rule, rules"):
        lt.rul  # noqa: B018


@pytest.mark.parametrize("folder", FOLDERS[1:3] + FOLDERS[4:])
def test_names_stay_what_they_are(folder: str) -> None:
    """Importing a file puts it into its folder under its name, over whatever is public under that name."""
    home = import_module(folder)
    files = [found.name for found in walk_packages(home.__path__, f"{folder}.")]
    own = {name.removeprefix(f"{folder}.") for name in files}
    assert files and not own & {*home._HOME}  # so that the order of imports does not matter
    assert printed(STAYS, folder, *files) == []


@pytest.mark.parametrize("folder", [lt.study.games, lt.study.generative, lt.nn])
def test_every_name_is_listed(folder: object) -> None:
    for name in dir(folder):
        assert getattr(folder, name).__module__.startswith("lattend.")
