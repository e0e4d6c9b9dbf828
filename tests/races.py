"""Reports of compute-sanitizer's racecheck, sorted: what is ordered in ways it does not follow, and the rest.

Two kinds of pairs are ordered, as PTX shows, and reported all the same, in the kernels in Gluon alone:

- the word by which Triton's own code tells warps which function they run, between two barriers of all warps;
- a tile's numbers, noted before the warp that loads arrives at the mbarrier that TMA's bytes complete, and
  read after that was waited for.

So racecheck says nothing of the order of these two; a change of it has to be read in the PTX.
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
SWITCH, NOTES = "Triton's switch", "notes of a tile"


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
    ordered = ordered_places()
    return Counter(
        next((kind for kind, known in ordered.items() if places <= known), ", ".join(sorted(places)))
        for places in reports(lines)
    )


def not_listed(lines: Iterable[str]) -> int:
    """How many reports were counted at the end and not listed before it."""
    text = "\n".join(lines)
    counted = sum(int(found) for found in re.findall(r"RACECHECK SUMMARY: .*\((\d+) errors?,", text))
    return max(0, counted - sum(1 for _ in reports(text.splitlines())))


def unknown(kinds: Counter[str]) -> list[str]:
    """The kinds that are not known to be ordered."""
    return [kind for kind in kinds if kind not in (SWITCH, NOTES)]


@cache
def ordered_places() -> dict[str, set[str]]:
    """Where the accesses stand that are ordered, by kind."""
    found: dict[str, set[str]] = {SWITCH: set(), NOTES: set()}
    for file in FILES.glob("*.py"):
        for node in ast.parse(file.read_text()).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            if node.name in ("note", "tile_noted"):
                lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                found[NOTES] |= {f"{file.name}:{line}" for line in lines}
            switches = [
                inner.lineno
                for inner in ast.walk(node)
                if isinstance(inner, ast.Attribute) and inner.attr == "warp_specialize"
            ]
            found[SWITCH] |= {
                f"{file.name}:{line}" for line in [*switches, *([node.lineno] * bool(switches))]
            }
    return found
