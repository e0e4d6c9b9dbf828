"""What the library advises in Python, said as the page can follow it."""

from __future__ import annotations

import re

_ADVICE = (
    (r"rule & lt\.rules\.causal\(\)", "k <= q and (…)"),
    (r"rule & lt\.rules\.raster\(\)", "(…) and the condition of raster"),
    (r', or count by enumeration with count\(method="enumerate"\)', ", or give every letter a number"),
    (r"; counting at given numbers still works: count\(.*?\)", "; at numbers for all letters it is counted"),
    (r": compare their masks, as in .*", ": the grid shows where they differ"),
    (r"; or pass it as data=\{[^}]*\}", ""),
    (r'^rule "[^"]*" looks up data', "it looks up data"),
    (r"; give it numbers and it is counted from the data", ": its pairs are counted from the data"),
    (r"; picture\(\) shows some tiles of any rule", ""),
    (r"(give \w+ a number), as in at\([^)]*\)", r"\1"),
)
_PATTERNS = tuple((re.compile(python), page) for python, page in _ADVICE)


def for_page(message: str) -> str:
    """The message with advice that a person at the page can follow.

    >>> for_page('not affine, or count by enumeration with count(method="enumerate").')
    'not affine, or give every letter a number.'
    """
    for python, page in _PATTERNS:
        message = python.sub(page, message)
    return message
