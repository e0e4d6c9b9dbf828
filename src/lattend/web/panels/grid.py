"""grid, grid_price, grid_check, grid_diagram: recurrent networks on a grid."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from lattend.cli.grid import GridCommand
from lattend.errors import DomainError
from lattend.web.panel import Answer, AnswerPart, Integer, Panel, Question
from lattend.web.snippets import command, show, snippets
from lattend.web.views import Formula, ReportView, formula, report_view

if TYPE_CHECKING:
    from lattend.draw import Picture
    from lattend.nn.pictures.grid import GridNets


MOST_DRAWN = 48  # rows or columns
LONGEST = 24  # characters of a size or a pixel


class GridQuestion(Question):
    """The image (8, or 8x12), the corners from which the net runs, and its cell."""

    size: str = Field("8", max_length=LONGEST)
    directions: Literal[1, 2, 4] = 1
    cell: Literal["rnn", "lstm", "gru"] = "rnn"

    def image(self) -> tuple[int, int]:
        """The rows and columns; raises where they are too many for the page."""
        from lattend.nn.images.patch_grid import pair, read_size

        rows, cols = pair("size", read_size("the size of the image", self.size))
        if max(rows, cols) > MOST_DRAWN:
            raise DomainError(
                f"the page draws images of at most {MOST_DRAWN} rows and columns, not {rows:,} × {cols:,}; "
                "`lattend grid` has room for more"
            )
        return rows, cols

    def arguments(self) -> dict[str, Any]:
        """The arguments of lt.nn.draw_grid that differ from its defaults."""
        several = {"directions": self.directions} if self.directions > 1 else {}
        return several | ({"cell": self.cell} if self.cell != "rnn" else {})


class GridFieldQuestion(GridQuestion):
    """And a pixel ("" for the middle), and the convnet beside the net: layers of K × K."""

    pixel: str = Field("", max_length=LONGEST)
    kernel: int = Field(3, ge=1, le=15)
    layers: int = Field(3, ge=1, le=32)

    def nets(self) -> GridNets:
        """Both nets on the image."""
        from lattend.nn.pictures.grid import grid_nets

        return grid_nets(
            self.image(), directions=self.directions, kernel=self.kernel, layers=self.layers, cell=self.cell
        )

    def place(self) -> tuple[int, int]:
        """The pixel. One beyond the edge becomes the last one."""
        from lattend.nn.images.patch_grid import read_pixel

        rows, cols = self.image()
        row, col = read_pixel("the pixel", self.pixel) or (rows // 2, cols // 2)
        return min(row, rows - 1), min(col, cols - 1)


Map = list[list[int]]


class Sweep(AnswerPart):
    """The steps of one direction: when each cell runs, and the offsets of the cells that it waits for."""

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
    """The sequential depth on n rows and m columns."""
    from lattend import cost

    return formula(cost.rnn2d(rows="n", cols="m").value("depth"))


def answer_grid(question: GridFieldQuestion) -> GridAnswer:
    """The step of each cell, the parallelism, and the receptive field of one pixel."""
    from lattend.nn.pictures.grid import waits_of
    from lattend.nn.pictures.grid_diagram import EQUATIONS, latex
    from lattend.report.latex import aligned

    nets, pixel = question.nets(), question.place()
    field, raster, until = nets.receptive_field(pixel), nets.raster_field(pixel), nets.until(pixel)
    waits = waits_of(question.directions)
    equation = [latex(line) for line in EQUATIONS[question.cell]]
    return GridAnswer(
        size=(nets.rows, nets.cols),
        sweeps=[
            Sweep(name=name, steps=waves.tolist(), waits=waits[name]) for name, waves in nets.ways.items()
        ],
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
        copies=snippets(
            show(
                "lt.nn.draw_grid",
                (nets.rows, nets.cols),
                **question.arguments(),
                pixel=pixel,
                kernel=question.kernel,
                layers=question.layers,
            ),
            command=command(GridCommand, question, pixel=pixel),
            latex=aligned(*(line.replace("=", "&=", 1) for line in equation)),
        ),
    )


def grid_picture(question: GridFieldQuestion) -> Picture:
    """The steps, and what the pixel sees."""
    from lattend.nn.pictures.grid import draw_grid

    return draw_grid(
        question.image(),
        **question.arguments(),
        pixel=question.place(),
        kernel=question.kernel,
        layers=question.layers,
    )


GRID = Panel("grid", "A 2-D RNN step by step", answer_grid, grid_picture)


WIDEST = 1 << 20


class GridPriceQuestion(GridQuestion):
    """The nets, the channels of a pixel and of a state."""

    kernel: int = Field(3, ge=1, le=15)
    layers: int = Field(3, ge=1, le=32)
    c: Integer = Field(3, ge=1, le=WIDEST)
    h: Integer = Field(64, ge=1, le=WIDEST)


class NetPrice(AnswerPart):
    """A quantity of a net: its formula, and the number at this image."""

    net: str
    quantity: str
    formula: Formula
    number: str


class GridPriceAnswer(Answer):
    """Multiplies, parameters and sequential steps of both nets."""

    prices: list[NetPrice]


QUANTITIES = ("multiplies", "parameters", "depth")


def answer_grid_price(question: GridPriceQuestion) -> GridPriceAnswer:
    """The cost of the 2-D RNN and of the convnet, for all sizes and for this image."""
    from lattend import cost
    from lattend.nn.pictures.grid import grid_nets
    from lattend.report.latex import named
    from lattend.report.numbers import format_value

    rows, cols = question.image()
    kinds = {"directions": question.directions, "kernel": question.kernel, "layers": question.layers}
    nets = grid_nets((rows, cols), cell=question.cell, **kinds)
    priced = nets.recurrent(question.c, question.h), nets.convnet(question.c, question.h)
    recurrent = cost.rnn2d(
        rows="n", cols="m", c="c", h="h", directions=question.directions, cell=question.cell
    )
    prices = [
        NetPrice(
            net="2-D RNN",
            quantity=quantity,
            formula=formula(recurrent.value(quantity)),
            number=format_value(priced[0].value(quantity)),
        )
        for quantity in QUANTITIES
    ]
    letters = nets.convnet("c", "h")
    prices += [
        NetPrice(
            net=f"convnet, {question.layers} of {question.kernel} × {question.kernel}",
            quantity=quantity,
            formula=formula(letters.value(quantity)),
            number=format_value(priced[1].value(quantity)),
        )
        for quantity in QUANTITIES
    ]
    numbers = {"c": question.c, "h": question.h}
    convnet = {"kernel": question.kernel, "layers": question.layers}
    return GridPriceAnswer(
        prices=prices,
        copies=snippets(
            show("lt.nn.draw_grid", (rows, cols), **question.arguments(), **convnet, **numbers),
            command=command(GridCommand, question, at=numbers),
            latex=named((f"{one.net}, {one.quantity}", one.formula.latex) for one in prices),
        ),
    )


GRID_PRICE = Panel("grid_price", "The price of a 2-D RNN", answer_grid_price)


MOST_CELLS = 256
NUMBERS: dict[str, Any] = {"c": 2, "h": 2}  # of a pixel and of a state: the loops are plain Python


class GridCheckAnswer(Answer):
    """Whether they are equal up to rounding, the equation in LaTeX, and each tensor's difference."""

    equal: bool
    equation: list[str]
    report: ReportView


def answer_grid_check(question: GridQuestion) -> GridCheckAnswer:
    """Compare each CPU kernel of lt.nn.GridRNN with loops in float64."""
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
        report=report_view(run.report(equation=False)),
        copies=snippets(
            show("lt.nn.check_grid", (rows, cols), **question.arguments(), **NUMBERS),
            command=command(GridCommand, question, at=NUMBERS, check=True),
            latex=run.report().latex(),
        ),
    )


GRID_CHECK = Panel("grid_check", "GridRNN against plain loops", answer_grid_check, torch=True)


class DiagramQuestion(GridQuestion):
    """The net, and the pixel whose arrows are bold."""

    pixel: str = Field("", max_length=LONGEST)


class DiagramAnswer(Answer):
    """The diagram as SVG, and its facts."""

    svg: str
    facts: list[tuple[str, str]]


def grid_diagram_picture(question: DiagramQuestion) -> Picture:
    """The two planes; of a large image the corner that is drawn has the bold pixel."""
    from lattend.nn.images.patch_grid import read_pixel
    from lattend.nn.pictures.grid_diagram import draw_diagram, drawn_cells

    rows, cols = question.image()
    pixel = read_pixel("the pixel", question.pixel)
    shown = drawn_cells(rows, cols)
    inside = pixel and (min(pixel[0], shown[0] - 1), min(pixel[1], shown[1] - 1))
    return draw_diagram(rows, cols, question.cell, inside)


def answer_grid_diagram(question: DiagramQuestion) -> DiagramAnswer:
    """The diagram of the net, and its facts."""
    from lattend.report.report import Report
    from lattend.report.table import Facts

    figure = grid_diagram_picture(question)
    kind: dict[str, Any] = {} if question.cell == "rnn" else {"cell": question.cell}
    return DiagramAnswer(
        svg=figure.svg(),
        facts=[*figure.facts],
        copies=snippets(
            show("lt.nn.draw_grid", question.image(), **kind, diagram=True),
            command=command(GridCommand, size=question.size, cell=question.cell, diagram=True),
            latex=Report(figure.title, [*figure.subtitle, Facts(figure.facts)]).latex(),
        ),
    )


GRID_DIAGRAM = Panel("grid_diagram", "A 2-D RNN as planes", answer_grid_diagram, grid_diagram_picture)
