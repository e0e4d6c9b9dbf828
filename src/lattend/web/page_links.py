"""PageLink: the page that shows what a command prints, and what is filled in there."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from pydantic import BaseModel

State = dict[str, Any]
Schema = Mapping[str, Any]  # of one field, as JSON Schema
# Options that are called otherwise than the field of the page that they set; --head-dim sets head_dim
FIELDS = {
    "at": "numbers",
    "from": "first",
    "weights": "wanted",
    "scores": "encoding",
    "noise": "noise_variance",
}


class PageLink(BaseModel):
    """A page, and the fields of its state that differ from those it begins with."""

    page: str
    state: State


class Command(NamedTuple):
    """A line of the shell: its arguments, its options with their texts, "" for a flag."""

    name: str
    arguments: list[str]
    options: dict[str, str]


def read_command(line: str) -> Command:
    """The command that a line runs. An option that is given twice has both texts, with a comma between.

    >>> read_command("lattend count causal --at n=8,t=2 --per query").options
    {'at': 'n=8,t=2', 'per': 'query'}
    """
    _, *words = shlex.split(line)
    name = " ".join(words[:2]) if " ".join(words[:2]) in PAGES else words[0]
    del words[: len(name.split())]
    fields = PAGES[name].fields if name in PAGES else {}
    arguments: list[str] = []
    options: dict[str, str] = {}
    while words:
        word = words.pop(0)
        option = word.removeprefix("--")
        if word == option:
            arguments.append(word)
        elif not words or words[0].startswith("--") or fields.get(option, {}).get("type") == "boolean":
            options[option] = ""
        else:
            text = words.pop(0)
            options[option] = f"{options[option]}, {text}" if option in options else text
    return Command(name, arguments, options)


def read_option(kind: Schema, text: str) -> Any:
    """The text of an option as a value of this kind; `option_text` of snippets.py writes it.

    >>> read_option({"type": "array", "items": {"type": "string"}}, "p, q")
    ['p', 'q']
    """
    match kind.get("type"):
        case "boolean":
            return True
        case "integer":
            return int(text)
        case "number":
            return float(text)
        case "object":
            pairs = (pair.partition("=") for pair in text.split(","))
            return {
                name.strip(): read_option(kind["additionalProperties"], value) for name, _, value in pairs
            }
        case "array":
            is_matrix = kind["items"].get("type") == "array"
            texts = text.split(";") if is_matrix else text.replace(",", " ").split()
            return [read_option(kind["items"], part) for part in texts]
        case _:
            return text


def page_link(line: str) -> PageLink | None:
    """The page that shows what the command prints; None where there is none.

    >>> page_link('lattend claim causal "n^2/2"')
    PageLink(page='rule', state={'rule': 'causal', 'claim': 'n^2/2'})
    """
    command = read_command(line)
    page = PAGES.get(command.name)
    if page is None:
        return None
    names = page.arguments.split()
    if names == ["layers"]:
        state: State = {**page.state, "layers": command.arguments}
    else:
        state = {**page.state, **dict(zip(names, command.arguments, strict=False))}
    for option, text in command.options.items():
        name = FIELDS.get(option, option.replace("-", "_"))
        if name in page.fields:
            state[name] = read_option(page.fields[name], text)
    finished = page.finish(command, state)
    return None if finished is None else PageLink(page=page.name, state=finished)


@dataclass(frozen=True)
class Page:
    """A page that shows what a command prints.

    `arguments` are the fields that the command's arguments fill in. An option fills in the field of its name
    where a question of `panels` has one. `state` is filled in always, and `finish` does what remains.
    """

    name: str
    panels: str
    arguments: str = ""
    state: State = field(default_factory=dict[str, Any])
    finish: Callable[[Command, State], State | None] = lambda _, state: state

    @cached_property
    def fields(self) -> dict[str, Schema]:
        """The fields of the panels' questions."""
        from lattend.web.panels import PANELS

        schemas = [PANELS[name].question.model_json_schema() for name in self.panels.split()]
        return {name: kind for schema in reversed(schemas) for name, kind in schema["properties"].items()}


def _with_length(command: Command, state: State) -> State:
    """`explain --n 8` is one of the numbers."""
    if "n" not in command.options:
        return state
    return {**state, "numbers": {**state.get("numbers", {}), "n": int(command.options["n"])}}


def _layer(command: Command, state: State) -> State | None:
    if not command.arguments or command.arguments[0].endswith(".json"):
        return None
    if "check" in command.options:
        state["run"] = True
    if "claim" not in command.options:
        return state
    sizes = ", ".join(f"{name}={value}" for name, value in state["numbers"].items())
    layer = state["layer"] + (f"({sizes})" if sizes else "")  # a claim is decided for all other sizes
    return {"rename": {}, **state, "layer": layer}


def _grid(command: Command, state: State) -> State:
    """`--at c=3,h=64` are fields of the page."""
    numbers = {"type": "object", "additionalProperties": {"type": "integer"}}
    return {**state, **(read_option(numbers, command.options["at"]) if "at" in command.options else {})}


def _worked(command: Command, state: State) -> State:
    from lattend.study.worked.work import EXAMPLE

    if "example" in command.options:
        example = {name: [[str(number) for number in row] for row in rows] for name, rows in EXAMPLE.items()}
        state = {**state, **example, **{name: rows for name, rows in state.items() if rows}}
    return {**state, "practice": True} if "check" in command.options else state


def _steered(command: Command, state: State) -> State | None:
    size = command.options.get("orthonormal", "")
    if size and not size.isdecimal():
        return None  # weights as formulas in a letter
    if size:
        indices = range(int(size))
        state["keys"] = [["1" if column == row else "0" for column in indices] for row in indices]
    wanted = state.get("wanted", [])
    zeros = ["0"] * (len(state["keys"]) - len(wanted)) if wanted else []
    return {"query": ["0"] * len(state["keys"][0]), **state, "wanted": wanted + zeros}


def _played(command: Command, state: State) -> State | None:
    if state["game"] == "ring":
        return None  # networks that are trained
    first, *others = state.get("method", "").split(",")
    return {**state, "method": first, "also": others} if first else state


def _scores(command: Command, state: State) -> State | None:
    if "centres" in command.options:
        state["dy"], state["dx"] = map(float, command.options["centres"].split(","))
    return state if "scores" in command.options else None


_RULE = Page("rule", "claim same", "rule other")
_NO_MATRICES: State = {name: [] for name in ("wq", "wk", "wv", "wo")}  # the identity, or left out
PAGES = {
    **dict.fromkeys(("count", "draw", "reach", "same"), _RULE),
    "claim": Page("rule", "claim same", "rule claim"),
    "explain": Page("rule", "explain", "rule", finish=_with_length),
    "cost": Page("price", "cost cost_claim", "layer", {"view": "layer", "numbers": {}}, _layer),
    "compare": Page(
        *("price", "compare", "layers"),
        {"view": "compare", "numbers": {}},
        lambda command, state: state if command.arguments else {"view": "tables"},
    ),
    "conv": Page("conv", "conv conv_price"),
    "grid": Page("grid", "grid", "size", finish=_grid),
    "patches": Page("patches", "patches", "image patch"),
    "work": Page("work", "work", state=_NO_MATRICES, finish=_worked),
    "steer": Page("steer", "steer try_query", state={"values": []}, finish=_steered),
    "elbo linear": Page("elbo", "elbo_linear"),
    "game": Page("game", "game", "game", finish=_played),
    "heads train": Page("heads", ""),
    "heads": Page("scores", "scores", finish=_scores),
    "derive": Page("derive", "derive", "derivation f"),
}
