"""grid_check: the torch module of a 2-D RNN against plain loops of its equation, gradients too."""

from __future__ import annotations

from typing import Any

from lattend.errors import DomainError
from lattend.web.copies import command, python, show
from lattend.web.panel import Answer, Copies, Panel
from lattend.web.panels.images.grids import GridQuestion
from lattend.web.reports import ReportView, view

MOST_CELLS = 256
NUMBERS: dict[str, Any] = {"c": 2, "h": 2}  # of a pixel and of a state: the loops are plain Python


class GridCheckAnswer(Answer):
    """Whether they are equal up to rounding, the equation in LaTeX, and each tensor's difference."""

    equal: bool
    equation: list[str]
    report: ReportView


def answer(question: GridQuestion) -> GridCheckAnswer:
    """lt.nn.GridRNN by each of its CPU kernels, against loops in float64."""
    from lattend.nn.grid.check import check_grid
    from lattend.nn.pictures.grid_diagram import EQUATIONS, latex

    rows, cols = question.image()
    cells = rows * cols * question.directions
    if cells > MOST_CELLS:
        raise DomainError(
            f"plain loops are slow: the page checks {MOST_CELLS} cells, and these are {cells:,}"
        )
    run = check_grid((rows, cols), cell=question.cell, directions=question.directions, **NUMBERS)
    return GridCheckAnswer(
        equal=bool(run),
        equation=[latex(line) for line in EQUATIONS[question.cell]],
        report=view(run.report(equation=False)),
        copies=Copies(
            python=python(show("lt.nn.check_grid", (rows, cols), **question.arguments(), **NUMBERS)),
            command=command("grid", question.size, at=NUMBERS, check=True, **question.options()),
            latex=run.report().latex(),
        ),
    )


PANEL = Panel("grid_check", "GridRNN against plain loops", answer, torch=True)
