"""The weights of a piece of work as a heat picture, with the numbers in the cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lattend.draw.charts.heat import Scale
from lattend.draw.formats.palette import ink
from lattend.draw.grid.layout import draws_labels
from lattend.draw.grid.marks import Label
from lattend.draw.grid.panel import Panel, Side
from lattend.draw.picture import Below, Picture
from lattend.study.worked.step import Rows

if TYPE_CHECKING:
    from lattend.study.worked.work import Worked

SIDE = 240.0
MOST_TICKS = 16


def draw_work(worked: Worked, places: int = 4) -> Picture:
    """A panel a head, queries down and keys across; keys that the rule hides have no number."""
    scale = Scale("weight", 0.0, 1.0)
    given = worked.given
    panels = tuple(
        _panel(f"head {head + 1}" if given.heads > 1 else "", rows, given.mask[head], scale, places)
        for head, rows in enumerate(worked.weights.tables)
    )
    hidden = ("no number: the rule hides the key",) if given.masks else ()
    return Picture(
        "Attention weights",
        panels,
        hidden if draws_labels(panels[0], len(panels), SIDE) else (),
        worked.facts,
        scales=(scale,),
        labelled=Below(hidden, (), (scale,)),
        bare=Below((), (), (scale,)),
        columns=2 if given.heads in (2, 4) else 3,
        grid=SIDE,
        data={"weights": worked.weights.json(places)},
    )


def _panel(title: str, rows: Rows, mask: tuple[tuple[bool, ...], ...], scale: Scale, places: int) -> Panel:
    cells = scale.cells(np.array([[float(entry.value) for entry in row] for row in rows]))
    texts = [[entry.decimal(places) for entry in row] for row in rows]
    longest = max((text for row in texts for text in row), key=len)
    marks = tuple(
        Label(query + 0.5, key + 0.5, text, ink(scale.looks[int(cells[query, key])].fill), like=longest)
        for query, row in enumerate(texts)
        for key, text in enumerate(row)
        if mask[query][key]
    )
    return Panel(cells, scale.looks, _side("query", len(rows)), _side("key", len(rows[0])), title, marks)


def _side(label: str, length: int) -> Side:
    """A side whose cells are counted from 1, as rows and columns of a matrix are."""
    every = -(-length // MOST_TICKS)
    return Side(label, length, tuple((at + 0.5, str(at + 1)) for at in range(0, length, every)))
