"""Where numbers come from: the sums that are written out, and the rows and columns that are named."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lattend.errors import NamingError
from lattend.study.worked.origin import NumberSource, origin
from lattend.study.worked.work import EXAMPLE, Worked, work

LINES = [  # of the second query, or key, and the first component or key
    (("q", 0, 1, 0), r"2 \cdot 1 + 0 \cdot 0 = 2"),
    (("scores", 0, 1, 0), r"\frac{2 \cdot 1 + 0 \cdot 0}{\sqrt{2}} = \sqrt{2} \approx 1.4142"),
    (("masked", 0, 1, 2), r"\text{the rule hides the key: } -\infty"),
    (("exponentials", 0, 1, 2), r"e^{-\infty} = 0"),
    (
        ("sums", 0, 1, 0),
        r"e^{\sqrt{2}} + e^{2 \sqrt{2}} + 0 + 0 = e^{\sqrt{2}} + e^{2 \sqrt{2}} \approx 21.0321",
    ),
    (
        ("weights", 0, 1, 0),
        r"\frac{e^{\sqrt{2}}}{e^{\sqrt{2}} + e^{2 \sqrt{2}}} = \frac{1}{1 + e^{\sqrt{2}}} \approx 0.1956",
    ),
    (
        ("outputs", 0, 1, 1),
        r"0.1956 \cdot 2 + 0.8044 \cdot 0 + 0 \cdot 1 + 0 \cdot 1 \approx 0.3911,"
        r"\quad \text{exactly } \frac{2}{1 + e^{\sqrt{2}}}",
    ),
]


@pytest.mark.parametrize(
    ("place", "latex"), LINES, ids=lambda part: part if isinstance(part, str) else part[0]
)
def test_the_sum_is_written_out(place: Any, latex: str) -> None:
    assert origin(work(**EXAMPLE, rule="causal", scale="sqrt"), place).latex == latex


def numbers(worked: Worked, source: NumberSource) -> list[Decimal]:
    tables = {step.name: step.tables for step in (*worked.exercise, *worked.parts.values())}
    rows = tables[source.name][source.head]
    return [
        entry.value
        for at, row in enumerate(rows)
        for column, entry in enumerate(row)
        if source.row in (None, at) and source.column in (None, column)
    ]


def value_of(worked: Worked, name: str, sources: tuple[NumberSource, ...]) -> Decimal:
    """The number that the named numbers make, by the step it belongs to."""
    parts = [numbers(worked, source) for source in sources]
    if name in ("exponentials",):
        return parts[0][0].exp()
    if name == "sums":
        return sum(parts[0], Decimal(0))
    if name == "weights":
        return parts[0][0] / parts[1][0] if parts[1][0] else Decimal(0)
    if len(parts) == 1:  # as it was, or masked
        return parts[0][0]
    *left, right = parts
    return sum((x * y for x, y in zip([x for part in left for x in part], right, strict=True)), Decimal(0))


MATRIX = st.lists(st.lists(st.integers(-2, 2), min_size=2, max_size=2), min_size=2, max_size=2)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.integers(-2, 2), min_size=2, max_size=2), min_size=1, max_size=3),
    *[st.none() | MATRIX] * 4,
    st.sampled_from(["full", "causal", "k < q"]),
    st.sampled_from([1, 2]),
    st.booleans(),
)
def test_sources_make_the_number(
    tokens: Any, wq: Any, wk: Any, wv: Any, wo: Any, rule: str, heads: int, columns: bool
) -> None:
    if heads == 2 and None in (wq, wk, wv):
        heads = 1  # the identity is of one head
    worked = work(tokens, wq, wk, wv, rule=rule, heads=heads, wo=wo, columns=columns)
    for step in worked.steps:
        for head, rows in enumerate(step.tables):
            for row, entries in enumerate(rows):
                for column, entry in enumerate(entries):
                    result = origin(worked, (step.name, head, row, column))
                    if result.sources:
                        made = value_of(worked, step.name, result.sources)
                        most = Decimal("1e-20") * max(1, abs(entry.value))  # 28 digits are worked with here
                        assert made == entry.value or abs(made - entry.value) < most
                    else:
                        assert not entry.value.is_finite()


def test_numbers_from_a_memory_and_long_sums() -> None:
    worked = work([[1] * 15], memory=[[2] * 15])
    assert origin(worked, ("k", 0, 0, 3)).sources == (NumberSource("memory", 0, 0, 3),)
    assert origin(worked, ("scores", 0, 0, 0)).latex.count("cdot 2") == 11
    assert origin(worked, ("scores", 0, 0, 0)).latex.endswith(r"+ \cdots + 1 \cdot 2 = 30")
    with pytest.raises(NamingError, match="no step tokens"):
        origin(worked, ("tokens", 0, 0, 0))
