"""grid: the steps of a 2-D RNN, and what one pixel sees in it, in raster order and in a convnet."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from pydantic import BaseModel

from lattend.web.copies import command, python, show
from lattend.web.formulas import Formula, formula
from lattend.web.panel import Answer, Copies, Panel
from lattend.web.panels.images.grids import GridFieldQuestion

if TYPE_CHECKING:
    from lattend.draw import Picture

Map = list[list[int]]


class Sweep(BaseModel):
    """One direction, and the step at which each cell runs; cells wait for those `waits` away from them."""

    name: str
    steps: Map
    waits: list[tuple[int, int]]


class GridAnswer(Answer):
    """Steps, receptive fields as 0 and 1, and the layer of the convnet that first sees a pixel, or -1."""

    size: tuple[int, int]
    sweeps: list[Sweep]
    at_once: list[int]
    depth: int
    depth_formula: Formula
    equation: list[str]
    pixel: tuple[int, int]
    field: Map
    raster: Map
    convnet: Map
    seen: list[int]  # how many pixels each of the three sees
    words: str  # the same in words


@lru_cache(maxsize=1)
def depth_formula() -> Formula:
    """The steps one after another on n rows and m columns."""
    from lattend import cost

    return formula(cost.rnn2d(rows="n", cols="m").value("depth"))


def answer(question: GridFieldQuestion) -> GridAnswer:
    """When each cell runs, how many at once, and the receptive field of one pixel."""
    from lattend.nn.pictures.grid import waits_of
    from lattend.nn.pictures.grid_diagram import EQUATIONS, latex
    from lattend.report.latex import aligned

    nets, pixel = question.nets(), question.place()
    field, raster, until = nets.receptive_field(pixel), nets.raster_field(pixel), nets.until(pixel)
    waits = waits_of(question.directions)
    equation = [latex(line) for line in EQUATIONS[question.cell]]
    return GridAnswer(
        size=(nets.rows, nets.cols),
        sweeps=[Sweep(name=name, steps=way.tolist(), waits=waits[name]) for name, way in nets.ways.items()],
        at_once=nets.at_once,
        depth=nets.depth,
        depth_formula=depth_formula(),
        equation=equation,
        pixel=pixel,
        field=field.astype(int).tolist(),
        raster=raster.astype(int).tolist(),
        convnet=until.tolist(),
        seen=[int(field.sum()), int(raster.sum()), int((until >= 0).sum())],
        words=nets.field_words(pixel),
        copies=Copies(
            python=python(
                show(
                    "lt.nn.draw_grid",
                    (nets.rows, nets.cols),
                    **question.arguments(),
                    pixel=pixel,
                    kernel=question.kernel,
                    layers=question.layers,
                )
            ),
            command=command(
                "grid",
                question.size,
                **question.options(),
                pixel=f"{pixel[0]},{pixel[1]}",
                kernel=str(question.kernel),
                layers=str(question.layers),
            ),
            latex=aligned(*(line.replace("=", "&=", 1) for line in equation)),
        ),
    )


def picture(question: GridFieldQuestion) -> Picture:
    """The steps, and what the pixel sees."""
    from lattend.nn.pictures.grid import draw_grid

    return draw_grid(
        question.image(),
        **question.arguments(),
        pixel=question.place(),
        kernel=question.kernel,
        layers=question.layers,
    )


PANEL = Panel("grid", "A 2-D RNN step by step", answer, picture)
