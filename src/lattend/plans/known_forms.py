"""Canonical forms that are known without isl, which takes longer to load than a small call of attention runs.

Each line says how a rule is written and what its form is; `#` is one number, from `least` to `most`. Tests
hold these to what isl proves (tests/plans/test_known_forms.py).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from lattend.rules.axes import IMAGE, LINE, Axis
from lattend.rules.canonical import Canonical
from lattend.rules.language import expr
from lattend.rules.language.expr import Condition
from lattend.rules.language.parser import parse


class Known(NamedTuple):
    """A form, on which axes it is one, and which numbers may be in it."""

    axes: tuple[Axis, ...]
    form: str
    least: int = 0
    most: int = 1 << 30


FORMS = {
    "true": Known(LINE, "true"),
    "k <= q": Known(LINE, "k <= q"),
    "k <= q and q - k <= #": Known(LINE, "k <= q and q - k <= #", 1),
    "k <= q and q // # == k // #": Known(LINE, "q // # == k // # and k <= q", 2, 4096),
    "q // # == k // #": Known(LINE, "q // # == k // #", 2, 4096),
    "abs(qy - ky) <= # and abs(qx - kx) <= #": Known(IMAGE, "abs(qx - kx) <= # and abs(qy - ky) <= #", 1),
}
_NUMBER = re.compile(r"\b\d+\b")


def known_form(condition: Condition, axes: tuple[Axis, ...]) -> Canonical | None:
    """The form of a condition whose parameters are numbers, for all sizes; None where isl is to find it.

    >>> found = known_form(parse("k <= q and q // 16 == k // 16"), LINE)
    >>> found and expr.text(found.condition)
    'q // 16 == k // 16 and k <= q'
    """
    text = expr.text(condition)
    numbers = set(_NUMBER.findall(text))
    known = FORMS.get(_NUMBER.sub("#", text))
    if known is None or known.axes != axes or len(numbers) > 1:
        return None
    (number,) = numbers or ("0",)
    if not known.least <= int(number) <= known.most:
        return None
    form = parse(known.form.replace("#", number))
    return Canonical(form, form, form)
