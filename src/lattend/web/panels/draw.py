"""draw, tiles: the grid of a rule, and how full the tiles of a large grid are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import ge
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from lattend.cli.draw import DrawCommand
from lattend.errors import DomainError
from lattend.web.panel import Answer, AnswerPart, Integer, Panel
from lattend.web.rules import RuleQuestion, letters, read
from lattend.web.snippets import call, command, show, snippets

if TYPE_CHECKING:
    from lattend.draw import Picture
    from lattend.rules import Rule


MOST_TIKZ = 60_000  # characters


class DrawQuestion(RuleQuestion):
    """A rule, a second one drawn over it or "", and numbers.

    Of an image, the keys of one pixel are drawn, of the one in the middle where `pixel` is none of its own;
    where `flat`, all queries against all keys.
    """

    other: str = ""
    pixel: list[Integer] = Field(default=[], max_length=3)
    flat: bool = False


class DrawAnswer(Answer):
    """The title and the caption of the picture."""

    title: str
    caption: list[str]


def rules_of(rule: str, other: str = "") -> list[Rule]:
    """The rule and, if there is one, the second rule."""
    return [read(rule), *([read(other)] if other else [])]


def drawn_at(rules: Sequence[Rule], numbers: Mapping[str, int]) -> dict[str, int]:
    """A number for every open letter: the question's, or else the example that the page shows."""
    bound = {name for rule in rules for name in rule.sizes if name in rule.values}
    examples = {letter.name: letter.example for rule in reversed(rules) for letter in letters(rule)}
    free = dict.fromkeys(name for rule in rules for name in rule.free if name not in bound)
    return {name: numbers.get(name, examples[name]) for name in free}


def grid_picture(question: DrawQuestion) -> Picture:
    """The grid as squares, or as tiles shaded by their fullness; for an image, the keys of one pixel."""
    rules = rules_of(question.rule, question.other)
    numbers = drawn_at(rules, question.numbers)
    over = rules[1] if len(rules) > 1 else None
    return rules[0].draw(compare=over, pixel=_pixel(question, rules[0], numbers), **numbers)


def answer_draw(question: DrawQuestion) -> DrawAnswer:
    """The title and the caption of the picture, and code that draws it."""
    rules = rules_of(question.rule, question.other)
    numbers, shown = drawn_at(rules, question.numbers), grid_picture(question)
    pixel = _pixel(question, rules[0], numbers)
    return DrawAnswer(
        title=shown.title,
        caption=[*shown.caption],
        copies=snippets(
            call("rule = lt.rule", question.rule),
            show("rule.draw", compare=question.other, pixel=pixel, **numbers),
            command=command(DrawCommand, question, at=numbers, compare=question.other, pixel=pixel),
            latex=_latex(shown, rules),
        ),
    )


def _latex(shown: Picture, rules: Sequence[Rule]) -> str:
    """The picture as TikZ, or the rules as sets where it has too many parts for TeX."""
    from lattend.counts.latex import set_latex
    from lattend.report.latex import named

    tikz = shown.tikz()
    if len(tikz) <= MOST_TIKZ:
        return tikz
    return named((f"rule {number}", set_latex(rule)) for number, rule in enumerate(rules, 1))


def _pixel(question: DrawQuestion, rule: Rule, numbers: Mapping[str, int]) -> tuple[int, ...] | None:
    """The question's pixel if this rule's image has it: it may belong to an earlier rule."""
    if len(rule.axes) == 1 or question.flat:
        return None
    values = {**rule.values, **numbers}
    lengths = [values[axis.queries] for axis in rule.axes]
    inside = len(question.pixel) == len(lengths) and all(
        map(range.__contains__, map(range, lengths), question.pixel)
    )
    return tuple(question.pixel) if inside else tuple(length // 2 for length in lengths)


DRAW = Panel("draw", "The picture of a rule", answer_draw, grid_picture, as_typed=True)


MOST_TILES = 160  # along a side

Position = Annotated[Integer, Field(ge=0)]
Length = Annotated[Integer, Field(ge=1)]


class TilesQuestion(RuleQuestion):
    """A rule, a second one or "", numbers, and the start, size and number of the tiles.

    Of an image, `pixel` is the query whose keys are wanted, by row and column; of a volume, in one slice.
    """

    other: str = ""
    head: Position = 0
    pixel: list[Position] = Field(default=[], max_length=3)
    slice: Position = 0
    top: Position = 0
    left: Position = 0
    height: Length  # queries in a tile
    width: Length  # keys in a tile
    rows: int = Field(ge=1, le=MOST_TILES)
    cols: int = Field(ge=1, le=MOST_TILES)


class TilesAnswer(AnswerPart):
    """A text for every row of tiles, a letter for every tile.

    Of one rule, "a" is empty and the next 20 letters are steps of fullness: "b" holds up to 1/20 of its
    pairs, "u" all or nearly all. Of two, "a" is empty, "b" only A, "c" only B, "d" both, "e" several.
    `counts` are the pairs in all tiles: attended ones, or only A, only B and both; `pairs` is all there are.
    """

    cells: list[str]
    counts: list[str]
    pairs: str
    share: str


def answer_tiles(question: TilesQuestion) -> TilesAnswer:
    """The fullness of each tile from exact counts."""
    from lattend.counts import tile_counts
    from lattend.draw.grid.bind import at_head, bound
    from lattend.draw.grid.panel import Side
    from lattend.draw.grid.view import tile_areas, tile_classes, tile_panel
    from lattend.report.numbers import percent

    typed = rules_of(question.rule, question.other)
    numbers = drawn_at(typed, question.numbers)
    rules = [_on_a_line(at_head(rule, question.head), question) for rule in bound(typed, numbers)]
    axis, values = rules[0].axes[0], rules[0].values
    rows = _edges(question.top, question.height, question.rows, values[axis.queries])
    cols = _edges(question.left, question.width, question.cols, values[axis.keys])
    counts, areas = tile_classes(rules, tile_counts, rows, cols), tile_areas(rows, cols)
    cells = tile_panel(counts, areas, Side("", len(rows) - 1), Side("", len(cols) - 1), "").cells
    sums, pairs = [int(count.astype(object).sum()) for count in counts], int(areas.sum())
    return TilesAnswer(
        cells=["".join(chr(ord("a") + level) for level in row) for row in cells.tolist()],
        counts=[f"{total:,}" for total in sums],
        pairs=f"{pairs:,}",
        share=percent(sums[0], pairs) if len(rules) == 1 else "",
    )


def _on_a_line(rule: Rule, question: TilesQuestion) -> Rule:
    """The rule itself; for an image, the keys of the question's pixel."""
    from lattend.draw.grid.bind import keys_on_a_line

    if len(rule.axes) == 1:
        return rule
    lengths = [rule.values[axis.queries] for axis in rule.axes]
    pixel = f"({', '.join(map(str, question.pixel))})"
    if len(question.pixel) != len(lengths) or any(map(ge, question.pixel, lengths)):
        raise DomainError(f"the image is {' by '.join(map(str, lengths))}, and has no pixel {pixel}")
    if len(lengths) == 3 and question.slice >= lengths[0]:
        raise DomainError(f"there are {lengths[0]} slices, and none of number {question.slice}")
    return keys_on_a_line(rule, question.pixel, question.slice)


def _edges(start: int, tile: int, many: int, length: int) -> list[int]:
    """The edges of the tiles, cut at the length."""
    if start >= length:
        raise DomainError(f"the tiles begin at {start:,}, and there are {length:,} positions")
    return [
        *(at for at in range(start, start + tile * many, tile) if at < length),
        min(start + tile * many, length),
    ]


TILES = Panel("tiles", "How full the tiles of a grid are", answer_tiles, first=True)
