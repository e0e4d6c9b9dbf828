"""The workbench as a site of plain files: the page, and the answers to its examples, recorded.

The page asks no server there; it looks its question up in answers.json. What a panel asks is the state of its
page, restricted to the fields of the panel's question; so the questions of an example are made here from its
state alone, for every panel that finds its fields there. Only the tiles of a large grid the page cuts itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from lattend import __version__
from lattend.errors import LattendError
from lattend.web.app import application
from lattend.web.guards import POLICY, Hosts
from lattend.web.panels import PANELS
from lattend.web.panels.draw import drawn_at, rules_of
from lattend.web.panels.start import examples
from lattend.web.worker import LATE, reply

State = dict[str, Any]
TILES = 128  # along a side of a grid
PAGES = "pages.json"  # each page and the state it begins with, written when the page is built


def export(folder: Path, tell: Callable[[str], None]) -> None:
    """Write the site into a folder."""
    static = files("lattend.web").joinpath("static")
    if not static.joinpath(PAGES).is_file():
        raise LattendError("the page is not built: run `make page`")
    try:
        (folder / "api").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LattendError(f"cannot write into {folder}: {error.strerror}") from None
    for file in static.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "index.html").write_text(
        recorded_page(static.joinpath("index.html").read_text("utf-8")), "utf-8"
    )
    schema = application(Hosts(frozenset())).openapi()
    (folder / "api" / "schema.json").write_text(json.dumps(schema), "utf-8")
    answers = recorded(json.loads(static.joinpath(PAGES).read_text("utf-8")))
    defaults = {name: _defaults(name) for name in PANELS}
    text = json.dumps({"defaults": defaults, "answers": answers}, ensure_ascii=False, separators=(",", ":"))
    (folder / "answers.json").write_text(text, "utf-8")
    tell(f"{folder}: {len(examples())} examples, {len(answers)} answers, {len(text.encode()) // 1000:,} kB")
    tell(f"to look at it: python -m http.server --directory {folder}")


def recorded_page(html: str) -> str:
    """The page's HTML with a mark that its answers are recorded, and with the server's security policy."""
    policy = "; ".join(part for part in POLICY.split("; ") if not part.startswith("frame-ancestors"))
    tags = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}" />',
        f'<meta name="lattend-recorded" content="{__version__}" />',
    )
    head, mark, rest = html.partition('<meta charset="utf-8" />')
    if not mark:
        raise LattendError("index.html has no place for the policy")
    return "\n    ".join((head + mark, *tags)) + rest


def recorded(pages: list[dict[str, Any]]) -> dict[str, Any]:
    """The answers to all examples and to every page as it begins, by panel and question."""
    begins: dict[str, State] = {page["name"]: page["state"] for page in pages}
    states = [*begins.items(), *((one.page, begins[one.page] | one.state) for one in examples())]
    all_questions = [one for _, state in states for one in questions(state)]
    grids = [("tiles", grid) for page, state in states if page == "rule" for grid in whole_grid(state)]
    answers: dict[str, Any] = {}
    for panel, question in (*all_questions, *grids):
        key = f"{panel} {canonical(_told(panel, question))}"
        if key not in answers:
            status, _, body = reply(panel, "", json.dumps(question).encode())
            answer = json.loads(body)
            if status in (200, LATE):
                answers[key] = {"answer": answer}
            elif answer["kind"] != "input":  # a question that makes no sense is of a panel of another page
                answers[key] = {"problem": answer}
    return answers


def questions(state: Mapping[str, Any]) -> Iterator[tuple[str, State]]:
    """The questions of a page in this state: those of all panels whose required fields the state has."""
    for panel in PANELS.values():
        fields = panel.question.model_fields
        question = {name: state[name] for name in fields if name in state}
        missing = [name for name, field in fields.items() if field.is_required() and name not in state]
        if not missing and (question or not fields):
            yield panel.name, question


def whole_grid(state: Mapping[str, Any]) -> list[State]:
    """The questions by which the rule page asks for its whole grid, where it is too large to send every pair.

    At most TILES tiles along a side, of 1, 2, 4, ... positions, as grid/use-cells.ts cuts them; no images.
    """
    from lattend.draw.grid.bind import bound

    rules = rules_of(state["rule"], state["other"])
    if len(rules[0].axes) != 1:
        return []
    numbers = drawn_at(rules, state["numbers"])
    axis, values = rules[0].axes[0], bound(rules, numbers)[0].values
    lengths = (values[axis.queries], values[axis.keys])
    height, width = (1 << (-(-length // TILES) - 1).bit_length() for length in lengths)
    rows, cols = -(-lengths[0] // height), -(-lengths[1] // width)
    named = {name: state[name] for name in ("rule", "other", "numbers", "head")}
    return [{**named, "height": height, "width": width, "rows": rows, "cols": cols}]


def _told(panel: str, question: State) -> State:
    """The question without the fields that are at their defaults."""
    defaults = _defaults(panel)
    return {
        name: value
        for name, value in question.items()
        if name not in defaults or canonical(value) != canonical(defaults[name])
    }


def _defaults(panel: str) -> State:
    fields = PANELS[panel].question.model_fields.items()
    defaults = {
        name: field.get_default(call_default_factory=True)
        for name, field in fields
        if not field.is_required()
    }
    return to_jsonable_python(defaults)


def canonical(value: Any) -> str:
    """JSON with the fields in alphabetical order and numbers as a browser writes them.

    >>> canonical({"n": 8, "a": [1.0, 0.5, "≤"]})
    '{"a":[1,0.5,"≤"],"n":8}'
    """
    if isinstance(value, dict):
        fields = (f"{canonical(name)}:{canonical(held)}" for name, held in sorted(value.items()))
        return f"{{{','.join(fields)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(canonical, value))}]"
    if isinstance(value, float):
        plain = value == 0 or 1e-6 <= abs(value) < 1e21
        text = f"{Decimal(repr(value)):f}" if plain else repr(value).replace("e-0", "e-")
        return "0" if value == 0 else text.removesuffix(".0")
    return json.dumps(value, ensure_ascii=False)
