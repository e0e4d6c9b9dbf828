"""PageLink: the page that shows what a command prints, and what is filled in there."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

from pydantic import BaseModel

from lattend.cli.command import commands, parameter, spellings

State = dict[str, Any]
Schema = Mapping[str, Any]  # of one field, as JSON Schema
# Fields of commands that are called otherwise on the page that shows them
FIELDS = {
    **{"at": "numbers", "weights": "wanted", "scores": "encoding", "noise": "noise_variance"},
    **{"derive name": "derivation", "derive formula": "f", "claim formula": "claim"},
}


class PageLink(BaseModel):
    """A page, and the fields of its state that differ from those it begins with."""

    page: str
    state: State


class TypedCommand(NamedTuple):
    """A line of the shell: the command that it runs, and its fields as they are typed; True for a flag."""

    name: str
    fields: dict[str, Any]


def read_command(line: str) -> TypedCommand:
    """The command that a line runs. An option that is given twice has both texts, with a comma between.

    >>> read_command("lattend count causal --at n=8,t=2 --per query").fields
    {'rule': 'causal', 'at': 'n=8,t=2', 'per': 'query'}
    """
    _, *words = shlex.split(line)
    name = " ".join(words[:2]) if " ".join(words[:2]) in commands() else words[0]
    del words[: len(name.split())]
    declared = {one.name: parameter(one) for one in fields(commands()[name])}
    options = {spelled: field for field, one in declared.items() for spelled in spellings(field, one)}
    typed: dict[str, Any] = {}
    arguments: list[str] = []
    while words:
        word = words.pop(0)
        option = options.get(word)
        if option is None:
            arguments.append(word)
        elif not declared[option].metavar:
            typed[option] = True
        else:
            text = words.pop(0)
            typed[option] = f"{typed[option]}, {text}" if option in typed else text
    names = [field for field, one in declared.items() if one.is_argument]
    typed = dict(zip(names, arguments, strict=False)) | typed
    if len(arguments) > len(names) > 0:
        typed[names[-1]] = arguments[len(names) - 1 :]  # the last one takes all that are left
    return TypedCommand(name, typed)


def read_option(kind: Schema, text: Any) -> Any:
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
        case "array" if isinstance(text, list):
            return text
        case "array":
            is_matrix = kind["items"].get("type") == "array"
            texts = text.split(";") if is_matrix else text.replace(",", " ").split()
            return [read_option(kind["items"], part) for part in texts]
        case _:
            return text[0] if isinstance(text, list) else text


def page_link(line: str) -> PageLink | None:
    """The page that shows what the command prints; None where there is none.

    >>> page_link('lattend claim causal "n^2/2"')
    PageLink(page='rule', state={'rule': 'causal', 'claim': 'n^2/2'})
    """
    command = read_command(line)
    page = PAGES.get(command.name) or PAGES.get(f"{command.name} {command.fields.get('model')}")
    if page is None:
        return None
    state = dict(page.state)
    for typed, value in command.fields.items():
        name = FIELDS.get(f"{command.name} {typed}", FIELDS.get(typed, typed))
        if name in page.fields:
            state[name] = read_option(page.fields[name], value)
    finished = page.finish(command, state)
    return None if finished is None else PageLink(page=page.name, state=finished)


@dataclass(frozen=True)
class Page:
    """A page that shows what a command prints.

    A field of the command fills in the field of its name where a question of `panels` has one. `state` is
    filled in always, and `finish` does what remains.
    """

    name: str
    panels: str
    state: State = field(default_factory=dict[str, Any])
    finish: Callable[[TypedCommand, State], State | None] = lambda _, state: state

    @cached_property
    def fields(self) -> dict[str, Schema]:
        """The fields of the panels' questions."""
        from lattend.web.panels import PANELS

        schemas = [PANELS[name].question.model_json_schema() for name in self.panels.split()]
        return {name: kind for schema in reversed(schemas) for name, kind in schema["properties"].items()}


def _with_length(command: TypedCommand, state: State) -> State:
    """`explain --n 8` is one of the numbers."""
    if "n" not in command.fields:
        return state
    return {**state, "numbers": {**state.get("numbers", {}), "n": int(command.fields["n"])}}


def _beside(command: TypedCommand, state: State) -> State:
    """The second of several rules is the page's other one."""
    rules = command.fields["rule"]
    return {**state, "other": rules[1]} if isinstance(rules, list) else state


def _layer(command: TypedCommand, state: State) -> State | None:
    if not state.get("layer") or state["layer"].endswith(".json"):
        return None
    if "check" in command.fields:
        state["run"] = True
    if "claim" not in command.fields:
        return state
    sizes = ", ".join(f"{name}={value}" for name, value in state["numbers"].items())
    layer = state["layer"] + (f"({sizes})" if sizes else "")  # a claim is decided for all other sizes
    return {"rename": {}, **state, "layer": layer}


def _grid(command: TypedCommand, state: State) -> State:
    """`--at c=3,h=64` are fields of the page."""
    numbers = {"type": "object", "additionalProperties": {"type": "integer"}}
    return {**state, **(read_option(numbers, command.fields["at"]) if "at" in command.fields else {})}


def _worked(command: TypedCommand, state: State) -> State:
    from lattend.study.worked.work import EXAMPLE

    if "example" in command.fields:
        example = {name: [[str(number) for number in row] for row in rows] for name, rows in EXAMPLE.items()}
        state = {**state, **example, **{name: rows for name, rows in state.items() if rows}}
    return {**state, "practice": True} if "check" in command.fields else state


def _steered(command: TypedCommand, state: State) -> State | None:
    size = command.fields.get("orthonormal", "")
    if size and not size.isdecimal():
        return None  # weights as formulas in a letter
    if size:
        indices = range(int(size))
        state["keys"] = [["1" if column == row else "0" for column in indices] for row in indices]
    wanted = state.get("wanted", [])
    zeros = ["0"] * (len(state["keys"]) - len(wanted)) if wanted else []
    return {"query": ["0"] * len(state["keys"][0]), **state, "wanted": wanted + zeros}


def _played(command: TypedCommand, state: State) -> State | None:
    if state["game"] == "ring":
        return None  # networks that are trained
    first, *others = state.get("method", "").split(",")
    return {**state, "method": first, "also": others} if first else state


def _scores(command: TypedCommand, state: State) -> State | None:
    if "centres" in command.fields:
        state["dy"], state["dx"] = map(float, command.fields["centres"].split(","))
    return state if "scores" in command.fields else None


_RULE = Page("rule", "read claim same")
_NO_MATRICES: State = {name: [] for name in ("wq", "wk", "wv", "wo")}  # the identity, or left out
PAGES = {
    **dict.fromkeys(("count", "reach", "same", "claim"), _RULE),
    "draw": replace(_RULE, finish=_beside),
    "explain": Page("rule", "explain", finish=_with_length),
    "cost": Page("price", "cost cost_claim", {"view": "layer", "numbers": {}}, _layer),
    "compare": Page(
        *("price", "compare", {"view": "compare", "numbers": {}}),
        lambda _, state: state if state.get("layers") else {"view": "tables"},
    ),
    "conv": Page("conv", "conv conv_price"),
    "grid": Page("grid", "grid", finish=_grid),
    "patches": Page("patches", "patches"),
    "work": Page("work", "work", _NO_MATRICES, _worked),
    "steer": Page("steer", "steer try_query", {"values": []}, _steered),
    "elbo linear": Page("elbo", "elbo_linear"),
    "game": Page("game", "game", finish=_played),
    "heads train": Page("heads", ""),
    "heads": Page("scores", "scores", finish=_scores),
    "derive": Page("derive", "derive"),
}
