"""scores: the terms of a positional encoding's score around one query pixel, their sum, and its softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from lattend.cli.heads import HeadsCommand
from lattend.errors import DomainError
from lattend.web.panel import Answer, AnswerPart, Panel, Question
from lattend.web.snippets import command, show, snippets

if TYPE_CHECKING:
    from lattend.draw import Picture


LONGEST = 24  # characters of a size or a pixel
LARGEST = 24  # rows or columns
PLACES = 5
Map = list[list[float]]


class ScoresQuestion(Question):
    """An encoding, an image and its query ("" for the middle), and the quadratic one's centre and α.

    The contents and weights of the others are random: so many channels a pixel, drawn from a seed.
    """

    encoding: Literal["absolute", "sinusoidal", "relative", "quadratic"] = "quadratic"
    size: str = Field("9", max_length=LONGEST)
    pixel: str = Field("", max_length=LONGEST)
    dy: float = Field(1.0, ge=-64, le=64)
    dx: float = Field(2.0, ge=-64, le=64)
    alpha: float = Field(1.0, le=1000)
    channels: int = Field(16, ge=4, le=256)
    seed: int = Field(0, ge=0, le=10**6)

    def arguments(self) -> dict[str, Any]:
        """The arguments of lt.nn.draw_scores. A pixel beyond the edge becomes the last one."""
        from lattend.nn.images.patch_grid import pair, read_pixel, read_size

        rows, cols = pair("size", read_size("the size of the image", self.size))
        if max(rows, cols) > LARGEST:
            raise DomainError(f"the page draws images of at most {LARGEST} rows and columns")
        row, col = read_pixel("the query", self.pixel) or (rows // 2, cols // 2)
        options: dict[str, Any] = {"size": (rows, cols), "pixel": (min(row, rows - 1), min(col, cols - 1))}
        if self.encoding == "quadratic":
            return {**options, "centres": [(self.dy, self.dx)], "alpha": [self.alpha]}
        return {**options, "width": self.channels, "seed": self.seed}

    def options(self) -> dict[str, Any]:
        """The options of `lattend heads`."""
        arguments = self.arguments()
        options = {
            "scores": self.encoding,
            "size": self.size,
            "pixel": ",".join(map(str, arguments["pixel"])),
        }
        if self.encoding == "quadratic":
            return {**options, "centres": f"{self.dy:g},{self.dx:g}", "alpha": f"{self.alpha:g}"}
        return {**options, "channels": str(self.channels), "seed": str(self.seed)}


class ScoreMap(AnswerPart):
    """A summand of the score: its formula, and its value for every key."""

    name: str
    formula: str
    values: Map


class ScoresAnswer(Answer):
    """The four terms, their sum, and the weights; what of it is exact and what random, and facts."""

    made: str
    pixel: tuple[int, int]
    terms: list[ScoreMap]
    sum: Map
    weights: Map
    facts: list[tuple[str, str]]


def scores_picture(question: ScoresQuestion) -> Picture:
    """The maps, as the library draws them."""
    from lattend.nn.pictures.scores import draw_scores

    return draw_scores(question.encoding, **question.arguments())


def answer_scores(question: ScoresQuestion) -> ScoresAnswer:
    """What a query pixel's score is made of, and where its weight goes."""
    from lattend.report.report import Report
    from lattend.report.table import Facts

    drawn = scores_picture(question)
    data: Any = drawn.data
    formulas = {term["name"] for term in data["terms"]}
    return ScoresAnswer(
        made=data["made"],
        pixel=data["pixel"],
        terms=[
            ScoreMap(name=term["name"], formula=term["formula"], values=_rounded(term["values"]))
            for term in data["terms"]
        ],
        sum=_rounded(data["sum"]),
        weights=_rounded(data["weights"]),
        facts=[fact for fact in drawn.facts if fact[0] not in formulas],
        copies=snippets(
            show("lt.nn.draw_scores", question.encoding, **question.arguments()),
            command=command(HeadsCommand, **question.options()),
            latex=Report(drawn.title, [*drawn.subtitle, Facts(drawn.facts)]).latex(),
        ),
    )


def _rounded(values: Map) -> Map:
    return [[round(value, PLACES) for value in row] for row in values]


SCORES = Panel("scores", "The score of a positional encoding", answer_scores, scores_picture)
