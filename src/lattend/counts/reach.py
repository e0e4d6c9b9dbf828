"""Reach: the attention span of a query, back and ahead, which decides the size of a KV cache."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from lattend.counts.closed import Closed
from lattend.counts.count import Count
from lattend.counts.counting import bind
from lattend.counts.simplify import simplified
from lattend.errors import DeadlineError, NamingError, NoClosedForm
from lattend.report.shown import Shown
from lattend.report.table import GAP, fitted
from lattend.rules.language import expr
from lattend.rules.language.expr import Compare, Name, Num
from lattend.rules.rule import Rule
from lattend.sets import PointSet, region_of
from lattend.sets.guard import remembered
from lattend.wording import listed

NO_PAIR = "no pair is attended"

# Towards earlier and later keys, by what follows q in the name of the axis
DIRECTIONS = {"": ("back", "ahead"), "y": ("up", "down"), "x": ("left", "right")}


@dataclass(frozen=True)
class AxisReach:
    """The greatest q - k and the greatest k - q of an attended pair along one axis."""

    back: Count
    ahead: Count


class Span(NamedTuple):
    """The greatest distance of an attended key in one direction: q - k or k - q."""

    direction: str
    distance: str
    most: Count


@dataclass(frozen=True)
class Reach(Shown):
    """The reach along each axis, by the name of the query; undefined where no pair is attended.

    >>> from lattend.rules.reader import rule
    >>> rule("k <= q and q - k <= t").reach()
    q - k is at most: n - 1 when t >= n; t when 0 <= t < n; no pair is attended otherwise
    k - q is at most: 0 when t >= 0; no pair is attended otherwise
    """

    axes: dict[str, AxisReach]
    keys: dict[str, str]

    @property
    def back(self) -> Count:
        """The attention span back on a line: the keys a KV cache must hold, besides the query's own."""
        return self._line().back

    @property
    def ahead(self) -> Count:
        """The attention span ahead on a line: 0 for a causal rule."""
        return self._line().ahead

    @property
    def spans(self) -> list[Span]:
        """Both directions along each axis: back and ahead on a line, up, down, left and right in an image.

        >>> from lattend.rules.reader import rule
        >>> [span.direction for span in rule("abs(qy - ky) <= 1 and kx <= qx").reach().spans]
        ['up', 'down', 'left', 'right']
        """
        spans: list[Span] = []
        for query, both in self.axes.items():
            key = self.keys[query]
            back, ahead = DIRECTIONS.get(query[1:], DIRECTIONS[""])
            spans += [Span(back, f"{query} - {key}", both.back), Span(ahead, f"{key} - {query}", both.ahead)]
        return spans

    def _line(self) -> AxisReach:
        if len(self.axes) != 1:
            raise NamingError(
                f"back and ahead are those of a line, and this rule has {len(self.axes)} axes; "
                f"use axes[{next(iter(self.axes))!r}].back"
            )
        return next(iter(self.axes.values()))

    def text(self, width: int | None = None) -> str:
        """Returns lines of at most `width` characters; a long formula gets one line for each piece."""
        lines: list[str] = []
        for span in self.spans:
            pieces = [" ".join(line.split()) for line in str(span.most).splitlines()]
            if pieces == [NO_PAIR]:
                return NO_PAIR
            line = f"{span.distance} is at most: {'; '.join(pieces)}"
            if width is None or len(line) <= width:
                lines.append(line)
            else:
                lines.append(f"{span.distance} is at most:")
                lines += [part for piece in pieces for part in fitted(f"{GAP}{piece}", width)]
        return "\n".join(lines)

    def latex(self) -> str:
        """Each greatest distance and its formula, a line each."""
        lines = (rf"{span.distance} &\le {span.most.latex()}" for span in self.spans)
        body = " \\\\\n".join(lines)
        return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"

    def _repr_latex_(self) -> str | None:
        try:
            return f"$\\displaystyle {self.latex()}$"
        except DeadlineError:
            return None

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__


def reach(rule: Rule, deadline: float | None = None) -> Reach:
    """The attention span of a query back and ahead, as formulas."""
    if expr.arrays(rule.condition):
        raise NoClosedForm.of_rule(rule.text, "looks up data, so its reach has no closed form")
    rule = rule.baked()  # with its numbers a set is smaller, and so are the formulas
    symbolic = replace(rule, values={})
    budget = rule.budget.or_seconds(deadline)
    try:
        derived = remembered(_reach, symbolic, budget=budget)
    except DeadlineError as reason:
        letters = f"; give {listed(rule.parameters)} a number" if rule.parameters else ""
        raise DeadlineError(f"the attention span was not found: {reason}{letters}") from None
    axes = {
        query: AxisReach(
            *(bind(Count(symbolic, closed, budget=budget, otherwise=NO_PAIR), rule) for closed in both)
        )
        for query, both in derived.items()
    }
    return Reach(axes, {axis.query: axis.key for axis in rule.axes})


def _reach(rule: Rule) -> dict[str, tuple[Closed, Closed]]:
    points = PointSet.of_rule(rule)
    some = expr.all_of(*(Compare(">=", Name(size), Num(1)) for size in rule.sizes))
    domain = points.domain & region_of(some, points.domain.space)

    def closed(plus: str, minus: str) -> Closed:
        pieces = simplified(points.greatest(plus, minus), points.occupied())
        return Closed(points.domain.space, domain, pieces)

    return {axis.query: (closed(axis.query, axis.key), closed(axis.key, axis.query)) for axis in rule.axes}
