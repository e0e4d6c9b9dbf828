"""Answers as people give them: rows of numbers whose last digit says how exact they are."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lattend.errors import DomainError, NamingError, TensorError
from lattend.exact.numbers import exact, many, short
from lattend.worked.entry import CONTEXT, MASKED, decimal_of
from lattend.worked.inputs import depth

if TYPE_CHECKING:
    from lattend.worked.recipes import Tables
    from lattend.worked.work import Worked

Place = tuple[str, int, int, int]  # step, head, row, column
MOST_POWER = 10**6  # of ten; e to the largest score has 434,294 digits
NEAR = Decimal("1e-40")  # what an exact form may be off, from the 60 digits it is compared in
ABSENT = ("", "?", "-", "–")
HIDDEN = ("-inf", "-infinity", "-∞")
SINGULAR = {
    "output": "outputs",
    "weight": "weights",
    "sum": "sums",
    "score": "scores",
    "exponential": "exponentials",
}
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class Written:
    """A number as it was written, and how far from it the true one may be."""

    text: str
    value: Decimal
    half: Decimal  # of a unit of its last digit; about 0 for an exact form
    is_form: bool = False  # 1/4 rather than 0.25

    @property
    def places(self) -> int:
        """The decimals it has; those that an exact form is compared in."""
        return max(0, -int(self.half.adjusted()) - 1)

    def near(self, value: Decimal) -> bool:
        """Whether a number rounds to this one."""
        if not (value.is_finite() and self.value.is_finite()):
            return value == self.value
        return CONTEXT.abs(CONTEXT.subtract(self.value, value)) <= self.half


def read_number(value: Any, places: int | None = None) -> Written | None:
    """The number that is written, None where there is none: "", "?" and None.

    With `places`, a decimal with fewer of them is taken as exact.

    >>> read_number(".1967").half  # half of 0.0001
    Decimal('0.00005')
    """
    if value is None:
        return None
    text = (value if isinstance(value, str) else str(value)).strip().replace("−", "-")
    if text in ABSENT:
        return None
    if text.lower() in HIDDEN:
        return Written(text, MASKED, NEAR)
    if _DECIMAL.fullmatch(text):
        number = CONTEXT.create_decimal(text)
        last = int(number.as_tuple().exponent) if number.is_finite() else MOST_POWER + 1
        if abs(last) > MOST_POWER:
            raise DomainError(f"{text} has a power of ten beyond {MOST_POWER:,}; no number here has")
        half = CONTEXT.scaleb(Decimal(5), last - 1)
        return Written(text, number, NEAR if places is not None and -last < places else half)
    return Written(text, decimal_of(exact(value)), NEAR, is_form=True)


def read_answer(worked: Worked, answer: Any, places: int | None = None) -> dict[Place, Written]:
    """Every number of an answer by its place; raises where its shape is not that of the step."""
    if not isinstance(answer, Mapping) or not answer:
        known = ", ".join(step.name for step in worked.steps)
        raise NamingError(
            f'an answer has rows of numbers for some of {known}, as in {{"sums": [["13.8256"], …]}}; '
            f"got {short(answer)}"
        )
    found: dict[Place, Written] = {}
    for given, rows in answer.items():
        name = _name(worked, str(given))
        step = worked.parts[name]
        tables = _tables(name, rows, worked.have[name], step.per_head)
        for head, table in enumerate(tables):
            for row, numbers in enumerate(table):
                for column, number in enumerate(numbers):
                    written = _read(name, head if step.per_head else None, row, column, number, places)
                    if written is not None:
                        found[name, head, row, column] = written
    if not found:
        raise DomainError("the answer has no number in it; give at least one")
    return found


def _name(worked: Worked, given: str) -> str:
    name = SINGULAR.get(given, given)
    if name in worked.parts:
        return name
    known = [step.name for step in worked.steps]
    close = difflib.get_close_matches(given, known, 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise NamingError(f"the work has no step {given}; it has {', '.join(known)}{hint}")


def _tables(name: str, rows: Any, wanted: Tables, per_head: bool) -> list[list[list[Any]]]:
    """The rows of each head; a step with one number a row may be a plain list of them."""
    listed = _listed(rows)
    tables = listed if per_head and depth(listed) >= (2 if len(wanted[0][0]) == 1 else 3) else [listed]
    if len(wanted[0][0]) == 1:
        tables = [_upright(table) for table in tables]
    fits = len(tables) == len(wanted) and all(
        isinstance(table, list)
        and len(table) == len(shape)
        and all(isinstance(row, list) and len(row) == len(shape[0]) for row in table)
        for table, shape in zip(tables, wanted, strict=True)
    )
    if not fits:
        heads = f"{len(wanted)} heads of " if per_head else ""
        alone = ", for one head" if per_head and tables[0] is listed else ""
        raise TensorError(
            f"{name} in the answer must be {heads}{many(len(wanted[0]), 'row')} of "
            f"{many(len(wanted[0][0]), 'number')}, with None where there is none; got {_shape(listed)}{alone}"
        )
    return tables


def _upright(table: Any) -> Any:
    single = isinstance(table, list) and not any(isinstance(row, list) for row in table)
    return [[number] for number in table] if single else table


def _listed(values: Any) -> Any:
    """Nested lists, from lists, tuples, arrays or tensors."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    if isinstance(values, str) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        return values
    return [_listed(value) for value in values]


def _shape(values: Any) -> str:
    if not isinstance(values, list):
        return short(values)
    if depth(values) > 2:
        return f"{many(len(values), 'head')} of {_shape(values[0])}"
    lengths = sorted({len(row) if isinstance(row, list) else 0 for row in values})
    if lengths in ([], [0]):
        return f"{many(len(values), 'number')} in one row"
    return f"{many(len(values), 'row')} of {' and '.join(map(str, lengths))}"


def _read(
    name: str, head: int | None, row: int, column: int, number: Any, places: int | None
) -> Written | None:
    try:
        return read_number(number, places)
    except DomainError as error:
        of = "" if head is None else f" of head {head + 1}"
        raise DomainError(f"{name}{of}, row {row + 1}, column {column + 1}: {error}") from None
