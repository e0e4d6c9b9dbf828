"""racecheck's reports are sorted by what they are about."""

from __future__ import annotations

import re

from races import FILES, SWITCH, not_listed, sorted_by_kind, switches, unknown


def line_of(file: str, text: str) -> int:
    """The first line of a kernel's file that has a text."""
    return next(at for at, line in enumerate((FILES / file).read_text().splitlines(), 1) if text in line)


def report(*accesses: tuple[str, str]) -> list[str]:
    first, *others = (f"access at a_kernel+0x460 in {file}:{line}" for file, line in accesses)
    return [
        f"========= Error: Race reported between Read {first}",
        *(f"=========     and Write {other} [229 hazards]" for other in others),
        "========= ",
    ]


def test_reports_are_told_apart() -> None:
    tiles, forward = (FILES / name for name in ("tiles.py", "forward.py"))
    begins = str(line_of(forward.name, "def attention_fwd_hopper_kernel"))
    switch = str(line_of(forward.name, "gl.warp_specialize("))
    noted, read = (str(line_of(tiles.name, text)) for text in (".store(number)", "noted.index(at).load"))
    lines = [
        "========= COMPUTE-SANITIZER",
        *report(("forward.py", begins), ("forward.py", begins), ("forward.py", switch)),
        "d128: k <= q: 2.4e-03, 3.4 s",
        *report(("tiles.py", read), ("tiles.py", noted)),
        *report(("tiles.py", read), ("forward.py", "250")),
        "========= Error: Race reported between Read access at nvjet_sm90+0xb00",
        "=========     and Write access at nvjet_sm90+0x29e0 [64 hazards]",
        "========= RACECHECK SUMMARY: 4 hazards displayed (4 errors, 0 warnings)",
    ]
    kinds, notes = sorted_by_kind(lines), f"tiles.py:{noted}, tiles.py:{read}"
    assert kinds == {SWITCH: 1, notes: 1, f"forward.py:250, tiles.py:{read}": 1, "nvjet_sm90": 1}
    assert unknown(kinds) == [notes, f"forward.py:250, tiles.py:{read}", "nvjet_sm90"]
    assert not sorted_by_kind(["========= ERROR SUMMARY: 0 errors"])
    assert not_listed(lines) == 0
    assert (
        not_listed([*lines[:-1], "========= RACECHECK SUMMARY: 4 hazards displayed (9 errors, 0 warnings)"])
        == 5
    )


def test_every_kernel_with_a_switch_is_known() -> None:
    files = {file.name for file in FILES.glob("*.py") if "gl.warp_specialize(" in file.read_text()}
    assert {re.sub(r":\d+", "", place) for place in switches()} == files
