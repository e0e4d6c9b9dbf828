"""grid_diagram: the planes of pixels and states of a 2-D RNN, and its weights as arrows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from lattend.web.copies import command, python, show
from lattend.web.panel import Answer, Copies, Panel
from lattend.web.panels.images.grids import LONGEST, GridQuestion

if TYPE_CHECKING:
    from lattend.draw import Picture


class DiagramQuestion(GridQuestion):
    """The net, and the pixel whose arrows are bold."""

    pixel: str = Field("", max_length=LONGEST)


class DiagramAnswer(Answer):
    """The picture as SVG, and what it tells."""

    svg: str
    facts: list[tuple[str, str]]


def picture(question: DiagramQuestion) -> Picture:
    """The two planes; of a large image the corner that is drawn has the bold pixel."""
    from lattend.nn.images.size_text import read_pixel
    from lattend.nn.pictures.grid_diagram import draw_diagram, drawn_cells

    rows, cols = question.image()
    pixel = read_pixel("the pixel", question.pixel)
    shown = drawn_cells(rows, cols)
    inside = pixel and (min(pixel[0], shown[0] - 1), min(pixel[1], shown[1] - 1))
    return draw_diagram(rows, cols, question.cell, inside)


def answer(question: DiagramQuestion) -> DiagramAnswer:
    """The diagram."""
    from lattend.report.report import Report
    from lattend.report.table import Facts

    found = picture(question)
    kind: dict[str, Any] = {} if question.cell == "rnn" else {"cell": question.cell}
    return DiagramAnswer(
        svg=found.svg(),
        facts=[*found.facts],
        copies=Copies(
            python=python(show("lt.nn.draw_grid", question.image(), **kind, diagram=True)),
            command=command("grid", question.size, diagram=True, **kind),
            latex=Report(found.title, [*found.subtitle, Facts(found.facts)]).latex(),
        ),
    )


PANEL = Panel("grid_diagram", "A 2-D RNN as planes", answer, picture)
