"""Verdict: whether a claim holds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Any, Literal

from lattend.errors import NamingError
from lattend.report.shown import Shown

Status = Literal["holds", "holds only where", "fails", "undecided"]
NOWHERE = "nowhere"
LINK: dict[Status, str] = {
    "holds": " for",
    "holds only where": "",
    "fails": "; it agrees only where",
    "undecided": " where",
}
# How a notebook shows them: by sign, colour and word
MARKS: dict[Status, str] = {"holds": "✓", "holds only where": "≈", "fails": "✗", "undecided": "?"}
LOOKS: dict[Status, str] = {"holds": "good", "holds only where": "open", "fails": "bad", "undecided": "open"}


@dataclass(frozen=True)
class Counterexample(Shown):
    """Numbers at which the formula and the count differ, or the two sides of an equation do."""

    values: dict[str, int]
    claimed: Fraction | None
    exact: int | Fraction | None
    is_equation: bool = False

    def __str__(self) -> str:
        at = ", ".join(f"{name} = {value}" for name, value in self.values.items()) or "these numbers"
        if self.is_equation:
            return f"at {at} the left side {_is(self.exact)}, the right side {_is(self.claimed)}"
        claimed = "is not defined" if self.claimed is None else f"gives {self.claimed}"
        return f"at {at} it {claimed}, the count is {self.exact}"

    def json(self) -> dict[str, Any]:
        exact = self.exact if isinstance(self.exact, int) or self.exact is None else str(self.exact)
        claimed = None if self.claimed is None else str(self.claimed)
        return {"at": self.values, "claimed": claimed, "exact": exact}


@dataclass(frozen=True)
class Verdict(Shown):
    """The verdict on a claim; as a condition it is true if the formula is the count on the whole domain.

    `where` says where the claim holds, or of an undecided one where it is open; `remaining` is the
    equation or question that is left, and `because` the reason a claim about growth fails, or is loose.
    `tight` says of O(…), Ω(…) and their like that hold whether Θ(…) holds too; None where that is not known.
    A chain of equations has a verdict for each of its `links`. `readings` say how the text was understood,
    and `instead` has the verdicts on other readings that fit better, each with what was read differently.
    """

    claim: str
    status: Status
    where: str = ""
    counterexample: Counterexample | None = None
    remaining: str = ""
    because: str = ""
    tight: bool | None = None
    links: tuple[Verdict, ...] = ()
    readings: tuple[str, ...] = ()
    instead: tuple[tuple[str, Verdict], ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the claim holds on the whole domain."""
        return self.status == "holds"

    def __bool__(self) -> bool:
        return self.holds

    @property
    def broken(self) -> Verdict | None:
        """The first link of a chain that fails, or else is undecided, or else holds only somewhere."""
        order: tuple[Status, ...] = ("fails", "undecided", "holds only where")
        return next((link for status in order for link in self.links if link.status == status), None)

    @property
    def first_counterexample(self) -> Counterexample | None:
        """The counterexample of the claim, or of the first equation that has one."""
        all_of_them = (self.counterexample, *(link.counterexample for link in self.links))
        return next((counterexample for counterexample in all_of_them if counterexample is not None), None)

    def __str__(self) -> str:
        lines = [self._sentence()]
        lines += [f"  {link}" for link in self.links]
        if self.readings:
            lines.append("; ".join(self.readings))
        lines += [f"{how}: {verdict}".replace("\n", "\n  ") for how, verdict in self.instead]
        return "\n".join(lines)

    def _sentence(self) -> str:
        text = f"{self.claim}: {self.status}"
        if self.broken is not None and self.broken.status == self.status != "holds only where":
            which = f"equation {self.links.index(self.broken) + 1} of {len(self.links)}"
            status_text = "is undecided" if self.status == "undecided" else "is the first that fails"
            return f"{text}; {which} {status_text}"
        if self.tight is False:
            return f"{text}, not tight: {self.because}"
        if self.where == NOWHERE:
            text += "; it agrees nowhere"
        elif self.where:
            link = "" if isinstance(self, OrderVerdict) and self.holds else LINK[self.status]
            text += f"{link} {self.where}"
        if self.counterexample is not None:
            text += f"; {self.counterexample}"
        if self.because:
            text += f"; {self.because}"
        if self.remaining:
            text += f"; what remains: {self.remaining}"
        return text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        sentence, *more = (escape(line) for line in str(self).splitlines())
        claim, status = escape(self.claim), escape(self.status)
        rest = sentence.removeprefix(f"{claim}: {status}")
        mark, look = MARKS[self.status], LOOKS[self.status]
        html = f'{mark} <code>{claim}</code>: <span class="{look}">{status}</span>{rest}'
        return f"<p>{'<br />'.join([html, *more])}</p>"

    def json(self) -> dict[str, Any]:
        counterexample = self.counterexample
        data: dict[str, Any] = {
            "claim": self.claim,
            "status": self.status,
            "where": self.where,
            "counterexample": None if counterexample is None else counterexample.json(),
            "remaining": self.remaining,
            "because": self.because,
            "tight": self.tight,
            "readings": list(self.readings),
            "instead": [{"how": how, **verdict.json()} for how, verdict in self.instead],
        }
        return data | ({"links": [link.json() for link in self.links]} if self.links else {})


@dataclass(frozen=True, repr=False)
class OrderVerdict(Verdict):
    """The verdict on a claim about growth, such as O(n); `holds` is whether it is true.

    It is no condition: a formula can be of the right order without being the count.
    """

    def __bool__(self) -> bool:
        raise NamingError(
            f'"{self.claim}" is about growth, which does not say whether it is the count: ask for .holds, or '
            "claim(…, exact=True) to accept nothing but the count"
        )

    def json(self) -> dict[str, Any]:
        return super().json() | {"is_order": True}


def _is(value: int | Fraction | None) -> str:
    return "is not defined" if value is None else f"is {value}"
