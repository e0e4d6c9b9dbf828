"""Place: the page, and what is filled in there, that shows what a command prints."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

State = dict[str, Any]
VALUED = ("work", "check")  # a flag everywhere else
# Options that take no value
FLAGS = frozenset(
    (
        *("architectures", "backward", "binary", "check", "columns", "diagram", "equal", "example", "floats"),
        *("formula", "frames", "json", "parameters", "portrait", "statements", "table", "tables"),
    )
)


class Place(BaseModel):
    """A page, and the fields of its state that differ from those it begins with."""

    page: str
    state: State


@dataclass(frozen=True)
class Command:
    """A line of the shell: what is asked, of what, with which options.

    >>> read_command("lattend count causal --at n=8,t=2 --per query").options
    {'at': ['n=8,t=2'], 'per': ['query']}
    """

    name: str
    arguments: list[str]
    options: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def option(self, name: str, default: str = "") -> str:
        """The last value given."""
        return self.options.get(name, [default])[-1]

    def pairs(self, name: str) -> dict[str, str]:
        """`n=8,t=2` as a dictionary, of all values given."""
        given = (pair for text in self.options.get(name, ()) for pair in text.split(","))
        parts = (pair.partition("=") for pair in given)
        return {left.strip(): right.strip() for left, _, right in parts}

    @property
    def numbers(self) -> dict[str, int]:
        """What --at gives."""
        return {name: int(value) for name, value in self.pairs("at").items()}

    def given(self, *names: str) -> State:
        """The options among these that are given, under the names they have in a state."""
        return {name.replace("-", "_"): self.option(name) for name in names if name in self.options}


def read_command(line: str) -> Command:
    """The command that a line runs."""
    _, name, *words = shlex.split(line)
    arguments: list[str] = []
    options: dict[str, list[str]] = {}
    while words:
        word = words.pop(0)
        if not word.startswith("--"):
            arguments.append(word)
            continue
        option = word.removeprefix("--")
        is_flag = option in FLAGS and (name, option) != VALUED
        options.setdefault(option, []).append("" if is_flag else words.pop(0))
    return Command(name, arguments, options)


def place_of(line: str) -> Place | None:
    """The page that shows what the command prints; None where there is none.

    >>> place_of('lattend claim causal "n^2/2"')
    Place(page='rule', state={'rule': 'causal', 'claim': 'n^2/2'})
    """
    command = read_command(line)
    found = _PLACES.get(command.name)
    return None if found is None else found(command)


# Rules


def _rule(command: Command) -> Place:
    state: State = {"rule": command.arguments[0]}
    if len(command.arguments) > 1:
        state["other"] = command.arguments[1]
    return Place(page="rule", state=state | _about_rule(command))


def _claim(command: Command) -> Place:
    rule, formula = command.arguments
    return Place(page="rule", state={"rule": rule, "claim": formula, **_about_rule(command)})


def _about_rule(command: Command) -> State:
    state: State = {}
    if numbers := command.numbers:
        state["numbers"] = numbers
    if "from" in command.options:
        state["first"] = int(command.option("from"))
    if "assume" in command.options:
        state["assume"] = ", ".join(command.options["assume"])
    if "rename" in command.options:
        state["rename"] = command.pairs("rename")
    return state | command.given("per")


def _explain(command: Command) -> Place:
    place = _rule(command)
    numbers = command.numbers | ({"n": int(command.option("n"))} if "n" in command.options else {})
    whole = command.given("head-dim", "heads", "kv-heads", "batch")
    return Place(
        page="rule",
        state={
            **place.state,
            **({"numbers": numbers} if numbers else {}),
            **{name: int(value) for name, value in whole.items()},
            **command.given("device", "dtype", "kernel"),
        },
    )


# Prices


def _cost(command: Command) -> Place | None:
    if not command.arguments or command.arguments[0].endswith(".json"):
        return None
    layer = command.arguments[0]
    state: State = {"view": "layer", "layer": layer, "numbers": command.numbers}
    state |= {"backward": True} if "backward" in command.options else {}
    state |= {"run": True} if "check" in command.options else {}
    if "claim" in command.options:  # it is decided for all sizes but those that the layer has
        state |= {"layer": _with_numbers(layer, command.numbers), "rename": command.pairs("rename")}
    return Place(page="price", state=state | command.given("rule", "per", "claim"))


def _with_numbers(layer: str, numbers: dict[str, int]) -> str:
    """`rnn2d(n=2)`."""
    return f"{layer}({', '.join(f'{name}={value}' for name, value in numbers.items())})" if numbers else layer


def _compare(command: Command) -> Place:
    if not command.arguments:
        return Place(page="price", state={"view": "tables"})
    state: State = {"view": "compare", "layers": command.arguments, "numbers": command.numbers}
    state |= {"equal": True} if "equal" in command.options else {}
    return Place(page="price", state=state | command.given("over", "quantity", "column"))


# Images


def _conv(command: Command) -> Place:
    state = command.given("kernel", "stride", "dilation", "padding", "padding-mode", "size")
    state |= _whole(command, "channels", "out-channels")
    if "alpha" in command.options:
        state["alpha"] = float(command.option("alpha"))
    return Place(page="conv", state=state)


def _grid(command: Command) -> Place:
    state: State = {"size": command.arguments[0], **command.given("cell", "pixel")}
    whole = command.given("directions", "kernel", "layers")
    return Place(
        page="grid", state={**state, **{name: int(value) for name, value in whole.items()}, **command.numbers}
    )


def _patches(command: Command) -> Place:
    image, patch = command.arguments
    more = command.given("stride", "padding") | _whole(command, "channels", "width")
    return Place(page="patches", state={"image": image, "patch": patch, **more})


def _whole(command: Command, *names: str) -> State:
    """Those of these options that are given, as whole numbers."""
    return {name: int(str(value)) for name, value in command.given(*names).items()}


# Worked attention and steering


def rows_of(text: str) -> list[list[str]]:
    """`1,2; 0,1` or `1 2; 0 1` as rows of texts.

    >>> rows_of("1 2; 2 0")
    [['1', '2'], ['2', '0']]
    """
    return [row.replace(",", " ").split() for row in text.split(";")]


def _work(command: Command) -> Place:
    from lattend.study.worked.work import EXAMPLE

    state: State = {name: [] for name in ("wq", "wk", "wv", "wo")}  # not given: the identity, or left out
    if "example" in command.options:
        state |= {name: [[str(number) for number in row] for row in rows] for name, rows in EXAMPLE.items()}
    given = command.given("tokens", "wq", "wk", "wv", "wo")
    state |= {name: rows_of(text) for name, text in given.items()}
    state |= {"columns": True} if "columns" in command.options else {}
    state |= {"practice": True} if "check" in command.options else {}
    return Place(page="work", state=state | command.given("rule", "scale"))


def _steer(command: Command) -> Place | None:
    many = command.option("orthonormal")
    if many and not many.isdecimal():
        return None  # weights as formulas in a letter
    size = int(many or 0)
    keys = (
        [["1" if column == row else "0" for column in range(size)] for row in range(size)]
        if size
        else rows_of(command.option("keys"))
    )
    wanted = command.option("weights").split(",")
    query = command.option("query").split(",") if "query" in command.options else ["0"] * len(keys[0])
    return Place(
        page="steer",
        state={
            "keys": keys,
            "values": [],
            "query": query,
            "wanted": [*wanted, *["0"] * (len(keys) - len(wanted))],
            **command.given("sharpness", "scale"),
        },
    )


# Bounds and games


def _elbo(command: Command) -> Place | None:
    if command.arguments != ["linear"]:
        return None
    whole = command.given("size", "latent", "examples", "seed")
    state: State = {name: int(value) for name, value in whole.items()}
    if "noise" in command.options:
        state["noise_variance"] = float(command.option("noise"))
    return Place(page="elbo", state=state)


def _game(command: Command) -> Place | None:
    if command.arguments[0] == "ring":
        return None  # networks that are trained
    state: State = {"game": command.arguments[0], **command.given("step", "first", "weight", "mass", "loss")}
    methods = command.option("method").split(",") if "method" in command.options else []
    if methods:
        state |= {"method": methods[0], "also": methods[1:]}
    if "steps" in command.options:
        state["steps"] = int(command.option("steps"))
    if "start" in command.options:
        state["start"] = command.option("start").split(",")
    return Place(page="game", state=state)


def _heads(command: Command) -> Place | None:
    if command.arguments[:1] == ["train"]:
        return Place(page="heads", state={})  # a recorded run
    if "scores" not in command.options:
        return None
    state: State = {"encoding": command.option("scores"), **command.given("size", "pixel")}
    state |= _whole(command, "channels", "seed")
    if "centres" in command.options:
        dy, dx = command.option("centres").split(",")
        state |= {"dy": float(dy), "dx": float(dx)}
    if "alpha" in command.options:
        state["alpha"] = float(command.option("alpha"))
    return Place(page="scores", state=state)


def _derive(command: Command) -> Place:
    name, *function = command.arguments
    state: State = {"derivation": name, **({"f": function[0]} if function else {})}
    return Place(page="derive", state=state | command.given("method", "step"))


_PLACES: dict[str, Callable[[Command], Place | None]] = {
    **dict.fromkeys(("count", "draw", "reach", "same"), _rule),
    "claim": _claim,
    "explain": _explain,
    "cost": _cost,
    "compare": _compare,
    "conv": _conv,
    "grid": _grid,
    "patches": _patches,
    "work": _work,
    "steer": _steer,
    "elbo": _elbo,
    "game": _game,
    "heads": _heads,
    "derive": _derive,
}
