"""tile_map: where on the grid a plan computes pairs, and how many of them are attended, at any zoom."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from lattend.errors import DomainError
from lattend.web.copies import call, command, python
from lattend.web.panel import Answer, Copies, Panel
from lattend.web.plans import PlanQuestion, explained, open_numbers

Edge = Annotated[int, Field(ge=0, le=1 << 40)]


class TileMapQuestion(PlanQuestion):
    """A plan, and what is shown of it: first query, end of queries, first key, end of keys; all if empty."""

    tiles_view: list[Edge] = Field(default_factory=list, max_length=4)


class TileMapAnswer(Answer):
    """Boxes between edges, row by row: the pairs that run in each, and those of them that are attended.

    `needed` is empty where attended pairs cannot be counted box by box.
    """

    query_edges: list[int]
    key_edges: list[int]
    executed: list[list[int]]
    needed: list[list[int]]
    queries: int
    keys: int


def answer(question: TileMapQuestion) -> TileMapAnswer:
    """The map of the plan's tiles."""
    from lattend.report.report import Report
    from lattend.report.table import Facts

    found = explained(question)
    view = question.tiles_view
    if len(view) not in (0, 4):
        raise DomainError(f"a view has four ends, of queries and of keys, not {len(view)}")
    spans = ((view[0], view[1]), (view[2], view[3])) if view else (None, None)
    made = found.tile_map(*spans)
    shown = {
        name: f"{span[0]}:{span[1]}" for name, span in zip(("queries", "keys"), spans, strict=True) if span
    }
    numbers = open_numbers(question, found)
    options = {name: value for name, value in question.options.items() if name not in found.at}
    words = {name: str(value) for name, value in options.items()}
    return TileMapAnswer(
        query_edges=list(made.query_edges),
        key_edges=list(made.key_edges),
        executed=made.executed.tolist(),
        needed=[] if made.needed is None else made.needed.tolist(),
        queries=found.shapes[0][2],
        keys=found.shapes[1][2],
        copies=Copies(
            python=python(
                call("plan = lt.explain", question.rule, **numbers, **options),
                call("tiles = plan.tile_map", *(spans if view else ())),
                "print(tiles.executed.sum(), 'pairs run here')",
                *([] if made.needed is None else ["print(tiles.needed.sum(), 'of them are attended')"]),
            ),
            command=command("explain", question.rule, at=numbers, **words, tiles=True, **shown),
            latex=Report(PANEL.title, [Facts(made.facts)]).latex(),
        ),
    )


PANEL = Panel(
    "tile_map",
    "Where a plan computes pairs",
    answer,
    torch=True,
    as_typed=True,
)
