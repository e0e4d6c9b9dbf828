"""Reports of compute-sanitizer's racecheck, sorted: what is ordered though it does not see it, and the rest.

One kind of pairs is ordered, as PTX shows, and reported all the same, in the kernels in Gluon alone: the word
by which Triton's own code tells warps which function they run, between two barriers of all warps. It stands
in every warp-specialized kernel that Triton compiles.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import lattend.attend.kernels.triton as triton_kernels

FILES = Path(triton_kernels.__file__).parent / "hopper"
ACCESS = re.compile(r"(between|and) (?:Read|Write) access at (\w+)\+0x[0-9a-f]+(?: in (\S+:\d+))?")
SWITCH = "Triton's switch"


def reports(lines: Iterable[str]) -> Iterator[set[str]]:
    """Of each report the places it is about: a file and its line, or a kernel."""
    places: set[str] = set()
    for found in map(ACCESS.search, lines):
        if found is None:
            continue
        if found[1] == "between" and places:
            yield places
            places = set()
        places.add(found[3] or found[2])
    if places:
        yield places


def sorted_by_kind(lines: Iterable[str]) -> Counter[str]:
    """How many reports there are of each kind; those that nothing is known of by their places."""
    ordered = switches()
    return Counter(SWITCH if places <= ordered else ", ".join(sorted(places)) for places in reports(lines))


def not_listed(lines: Iterable[str]) -> int:
    """How many reports were counted at the end and not listed before it."""
    text = "\n".join(lines)
    counted = sum(int(found) for found in re.findall(r"RACECHECK SUMMARY: .*\((\d+) errors?,", text))
    return max(0, counted - sum(1 for _ in reports(text.splitlines())))


def unknown(kinds: Counter[str]) -> list[str]:
    """The kinds that are not known to be ordered."""
    return [kind for kind in kinds if kind != SWITCH]


@cache
def switches() -> set[str]:
    """Where reports place Triton's switch: a kernel's first line, and where its functions are listed."""
    found: set[str] = set()
    for file in FILES.glob("*.py"):
        for node in ast.parse(file.read_text()).body:
            inner = ast.walk(node) if isinstance(node, ast.FunctionDef) else ()
            lines = [
                one.lineno
                for one in inner
                if isinstance(one, ast.Attribute) and one.attr == "warp_specialize"
            ]
            if lines and isinstance(node, ast.FunctionDef):
                found |= {f"{file.name}:{line}" for line in (node.lineno, *lines)}
    return found
