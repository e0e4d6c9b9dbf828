"""Markdown: the steps as tables, each cell exact ≈ decimal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.study.worked.entry import MatrixEntry
from lattend.study.worked.step import Rows, Step
from lattend.study.worked.terminal import forms_of

if TYPE_CHECKING:
    from lattend.study.worked.work import Worked


def markdown(worked: Worked, places: int = 4, show: str = "both") -> str:
    """What is given and all steps, each under a heading of its own."""
    lines = ["# Attention worked through", ""]
    for said in worked.statements(show):
        lines += [said.replace("|", r"\|"), ""]
    for step in (*worked.exercise, *worked.steps):
        lines += [f"## {step.title}", "", f"`{step.formula}`", ""]
        for head, rows in enumerate(step.tables):
            lines += [f"Head {head + 1}:", ""] if step.per_head else []
            lines += [*_table(step, rows, places, forms_of(step, rows, show)), ""]
    return "\n".join(lines)


def _table(step: Step, rows: Rows, places: int, forms: tuple[str, ...]) -> list[str]:
    names = [f"{step.across} {at + 1}" for at in range(len(rows[0]))] if step.across else [step.title.lower()]
    head = [f"| {step.down} | {' | '.join(names)} |", f"|---{'|---:' * len(names)}|"]
    return head + [
        f"| {place + 1} | {' | '.join(_cell(entry, places, forms) for entry in row)} |"
        for place, row in enumerate(rows)
    ]


def _cell(entry: MatrixEntry, places: int, forms: tuple[str, ...]) -> str:
    exact, shown = entry.text or "", entry.decimal(places)
    if "exact" not in forms or exact == shown:
        return shown.replace("-inf", "−∞")
    return f"`{exact}` ≈ {shown}" if "decimal" in forms else f"`{exact}`"
