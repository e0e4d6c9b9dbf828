"""work: attention worked through by hand, every number exact and in decimals."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from lattend.draw.charts.chart import Scale
from lattend.draw.formats.palette import ink
from lattend.draw.grid.layout import draws_labels
from lattend.draw.grid.marks import Label
from lattend.draw.grid.panel import Panel, Side
from lattend.draw.picture import Below, Picture
from lattend.errors import DomainError, NamingError
from lattend.report.numbers import significant
from lattend.report.shown import Shown
from lattend.study.exact.writing import format_exact
from lattend.study.figures import checked_path, page, save_form
from lattend.study.worked import build
from lattend.study.worked.build import ORDER, Tables, follow
from lattend.study.worked.entry import Rows, Step, check_places, too_long
from lattend.study.worked.inputs import Exercise, read, read_direct, shape
from lattend.wording import many

if TYPE_CHECKING:
    from lattend.study.worked.judge import Judgement

LARGEST_SCORE = 10**6
PICTURES = (".svg", ".png", ".pdf", ".tikz")
EXAMPLE: dict[str, Any] = {  # keys are the tokens' first numbers, values their second
    "tokens": [[1, 2], [2, 0], [0, 1], [1, 1]],
    "wq": [[1, 0], [0, 1]],
    "wk": [[1, 0], [0, 0]],
    "wv": [[0, 0], [0, 1]],
}


def work(
    tokens: Any = None,
    wq: Any = None,
    wk: Any = None,
    wv: Any = None,
    rule: Any = "full",
    scale: Any = 1,
    heads: int = 1,
    wo: Any = None,
    memory: Any = None,
    columns: bool = False,
    q: Any = None,
    k: Any = None,
    v: Any = None,
    **sizes: Any,
) -> Worked:
    """Attention worked through: q, k, v, scores, exponentials, row sums, weights and outputs.

    Tokens are rows, q = x W_q; with `columns`, q = W_q x. A matrix that is left out is the identity. `scale`
    multiplies the scores: a number, or "sqrt" for 1/sqrt(D). Matrices have a leading axis of heads, or
    `heads` share their columns (their rows, with `columns`); outputs of heads stand side by side, and are
    multiplied by `wo` if it is given. `rule` is a Rule, its text or a name of the catalogue, `sizes` its
    parameters. Keys and values come from `memory` where it is given. In place of tokens and matrices `q`,
    `k` and `v` themselves can be given.

    >>> found = work(**EXAMPLE)
    >>> found.weights.decimals()[0]  # e/(e² + 2e + 1) = 2.71828/13.82562
    ['0.1966', '0.5344', '0.0723', '0.1966']
    """
    if q is None and k is None and v is None:
        exercise = read(tokens, wq, wk, wv, rule, scale, heads, wo, memory, columns, sizes)
    else:
        others = {
            "tokens": tokens,
            "wq": wq,
            "wk": wk,
            "wv": wv,
            "memory": memory,
            "columns": columns or None,
        }
        too_many = [name for name, one in others.items() if one is not None]
        if too_many:
            raise NamingError(
                f"q, k and v are given, which {too_many[0]} would make; leave {too_many[0]} out"
            )
        exercise = read_direct(q, k, v, rule, scale, heads, wo, sizes)
    have: dict[str, Tables] = {}
    for name in ORDER:
        have[name] = follow(name, have, exercise)
        if name == "scores":
            _check_scores(have["scores"])
    return Worked(exercise, have, build.steps(exercise, have))


def _check_scores(tables: Tables) -> None:
    most = max(abs(score) for table in tables for row in table for score in row)
    if most > LARGEST_SCORE:
        raise DomainError(
            f"a score is {significant(most, 4)} away from 0, and e^s is written out to {LARGEST_SCORE:,}; "
            "give a smaller scale"
        )


class StepOf:
    """A step of the work by the name it has there."""

    def __init__(self, about: str) -> None:
        self.__doc__ = about

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, worked: None, owner: type) -> StepOf: ...
    @overload
    def __get__(self, worked: Worked, owner: type) -> Step: ...
    def __get__(self, worked: Worked | None, owner: type) -> StepOf | Step:
        return self if worked is None else worked.parts[self.name]


@dataclass(frozen=True, eq=False)
class Worked(Shown):
    """Every step of one piece of work; prints as tables that fit the terminal.

    `have` holds the decimals of each step to 60 digits.
    """

    given: Exercise
    have: dict[str, Tables]
    parts: dict[str, Step]

    q = StepOf("The queries, x W_q.")
    k = StepOf("The keys, x W_k.")
    v = StepOf("The values, x W_v.")
    scores = StepOf("Each query with each key.")
    masked = StepOf("The scores, -inf where the rule hides a key.")
    exponentials = StepOf("Of each score s, exp(s).")
    sums = StepOf("The sum of each row of exponentials.")
    weights = StepOf("The exponentials over their row sums.")
    mixed = StepOf("What each head gives, before heads are put side by side.")
    outputs = StepOf("The values, each row mixed by its weights.")

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps in order; masked scores where the rule masks, outputs of heads where they go on.

        Queries, keys and values only where they are not given themselves.
        """
        left_out = {
            "masked": not self.given.masks,
            "mixed": self.given.heads == 1 and self.given.wo is None,
            **dict.fromkeys(("q", "k", "v"), self.given.direct),
        }
        return tuple(step for name, step in self.parts.items() if not left_out.get(name))

    @cached_property
    def exercise(self) -> tuple[Step, ...]:
        """The exercise as tables: tokens, memory, W_q, W_k, W_v and W_o; or q, k, v and W_o."""
        return build.exercise(self.given)

    @property
    def facts(self) -> tuple[str, ...]:
        """The exercise in sentences: sizes, how matrices are multiplied, queries that attend to no key."""
        exercise = self.given
        count = f"{many(len(exercise.tokens), 'token')} of {many(len(exercise.tokens[0]), 'number')}"
        memory = f", {many(len(exercise.memory), 'key')} from a memory" if exercise.crosses else ""
        if exercise.direct:
            count, memory = f"q is {shape(exercise.tokens)}", f", {many(len(exercise.memory), 'key')}"
        scale = "no scaling" if exercise.scale == 1 else f"scores times {format_exact(exercise.scale)}"
        if exercise.divisor is not None:
            scale = f"scores divided by {format_exact(exercise.divisor)}"
        rule = f"rule {exercise.rule}" if exercise.masks else "every query attends to every key"
        summary = f"{count}{memory}; {many(exercise.heads, 'head')}; {scale}; {rule}"
        return (summary, build.convention(exercise), *self._empty())

    def statements(self, show: str = "both") -> tuple[str, ...]:
        """The facts, and which tables have decimals alone though exact forms are asked for."""
        return (*self.facts, *too_long((*self.exercise, *self.steps), show))

    def _empty(self) -> list[str]:
        empty: list[str] = []
        for head, mask in enumerate(self.given.mask):
            rows = [str(row + 1) for row, seen in enumerate(mask) if not any(seen)]
            of = f" of head {head + 1}" if self.given.heads > 1 else ""
            if len(rows) == 1:
                empty.append(f"row {rows[0]}{of} attends to no key: its weights and output are 0")
            elif rows:
                empty.append(f"rows {', '.join(rows)}{of} attend to no key: their weights and outputs are 0")
        return empty

    # Forms

    def terminal(self, width: int | None = None, places: int = 4, show: str = "both") -> str:
        """The steps as tables in lines no longer than `width`; `show` is "both", "exact" or "decimal"."""
        from lattend.study.worked.documents import terminal

        return terminal(self, width, places, show)

    def html(self, places: int = 4, show: str = "both") -> str:
        """The steps as HTML, with real fractions; one element that can stand in any page."""
        from lattend.study.worked.documents import html

        return html(self, places, show)

    def latex(self, places: int = 4, show: str = "both") -> str:
        """The steps as LaTeX, for a document that uses amsmath."""
        from lattend.study.worked.documents import latex

        return latex(self, places, show)

    def markdown(self, places: int = 4, show: str = "both") -> str:
        """The steps as Markdown tables."""
        from lattend.study.worked.documents import markdown

        return markdown(self, places, show)

    def json(self, places: int = 4) -> dict[str, Any]:
        """The steps as plain data; exact forms are texts, null where they are too long to be read."""
        exercise = self.given
        return {
            "rule": str(exercise.rule),
            "scale": format_exact(exercise.scale),
            "heads": exercise.heads,
            "columns": exercise.columns,
            "places": places,
            "facts": list(self.facts),
            "given": {step.name: step.json(places) for step in self.exercise},
            "steps": {step.name: step.json(places) for step in self.steps},
        }

    def draw(self, places: int = 4) -> Picture:
        """The weights as a heat picture, with the numbers in the cells."""
        return draw_work(self, places)

    def save(self, path: str | os.PathLike[str], places: int = 4, show: str = "both") -> Path:
        """Writes the form that the path's ending names: .html .tex .md .json .txt, or a picture."""
        forms: dict[str, Callable[[], str]] = {
            ".html": lambda: page("Attention worked through", self.html(places, show)),
            ".tex": lambda: self.latex(places, show),
            ".md": lambda: self.markdown(places, show),
            ".json": lambda: json.dumps(self.json(places), indent=2) + "\n",
            ".txt": lambda: self.terminal(100, places, show) + "\n",
        }
        path = checked_path(path, "save the work", (*forms, *PICTURES))
        if path.suffix.lower() in PICTURES:
            return self.draw(places).save(path)
        return save_form(path, "save the work", forms)

    def check(self, answer: Any, places: int | None = None) -> Judgement:
        """A given answer, judged number by number: right, a slip, or following from an earlier slip.

        `answer` has rows of numbers for any of the steps, or a list of such rows for each head. None stands
        for a number, row or head that is not given; a step or its last rows may be left out. A number passes
        within half a unit of its last digit, so give it as text where that matters: "0.1050". With `places`,
        a number with fewer decimals must be exact.

        >>> print(work(**EXAMPLE).check({"sums": [["13.8256"], ["70.3774"], [4], ["13.8256"]]}))
        row 2, sum: you have 70.3774, exact 70.3763
        4 numbers: 3 right, 1 slip
        """
        from lattend.study.worked.judge import judge

        if places is not None:
            check_places(places)
        return judge(self, answer, places)

    def _repr_html_(self) -> str:
        return self.html()

    def __str__(self) -> str:
        return self.terminal()

    def __repr__(self) -> str:
        return f"<Worked {self.facts[0]}>"


SIDE = 240.0
MOST_TICKS = 16


def draw_work(worked: Worked, places: int = 4) -> Picture:
    """A panel a head, queries down and keys across; keys that the rule hides have no number."""
    scale = Scale("weight", 0.0, 1.0)
    exercise = worked.given
    panels = tuple(
        _panel(f"head {head + 1}" if exercise.heads > 1 else "", rows, exercise.mask[head], scale, places)
        for head, rows in enumerate(worked.weights.tables)
    )
    hidden = ("no number: the rule hides the key",) if exercise.masks else ()
    return Picture(
        "Attention weights",
        panels,
        hidden if draws_labels(panels[0], len(panels), SIDE) else (),
        worked.facts,
        scales=(scale,),
        labelled=Below(hidden, (), (scale,)),
        bare=Below((), (), (scale,)),
        columns=2 if exercise.heads in (2, 4) else 3,
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
