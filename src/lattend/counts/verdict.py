"""Verdict: what became of a claim."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

Status = Literal["holds", "holds only where", "fails", "undecided"]
LINK: dict[Status, str] = {
    "holds": " for",
    "holds only where": "",
    "fails": "; it agrees only where",
    "undecided": " where",
}


@dataclass(frozen=True)
class Counterexample:
    """Numbers at which the formula and the count differ."""

    values: dict[str, int]
    claimed: Fraction | None
    exact: int

    def __str__(self) -> str:
        at = ", ".join(f"{name} = {value}" for name, value in self.values.items())
        claimed = "is not defined" if self.claimed is None else f"gives {self.claimed}"
        return f"at {at} it {claimed}, the count is {self.exact}"


@dataclass(frozen=True)
class Verdict:
    """What is known of a claim; true as a condition when it holds on the whole domain.

    `where` says where the claim holds, or of an undecided one where it is open; `remaining` is the
    equation or question that is left, and `because` the reason a claim about growth fails.
    """

    claim: str
    status: Status
    where: str = ""
    counterexample: Counterexample | None = None
    remaining: str = ""
    because: str = ""

    def __bool__(self) -> bool:
        return self.status == "holds"

    def __str__(self) -> str:
        text = f"{self.claim}: {self.status}"
        if self.where:
            text += f"{LINK[self.status]} {self.where}"
        if self.counterexample is not None:
            text += f"; {self.counterexample}"
        if self.because:
            text += f"; {self.because}"
        if self.remaining:
            text += f"; what remains: {self.remaining}"
        return text

    __repr__ = __str__

    def json(self) -> dict[str, Any]:
        found = self.counterexample
        return {
            "claim": self.claim,
            "status": self.status,
            "where": self.where,
            "counterexample": None
            if found is None
            else {
                "at": found.values,
                "claimed": None if found.claimed is None else str(found.claimed),
                "exact": found.exact,
            },
            "remaining": self.remaining,
            "because": self.because,
        }
