"""Layers as a person names them in a hurry: `rnn`, `attention(causal)`, with the sizes they usually have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from lattend.cost.cost import Cost
from lattend.cost.reader import LAYERS, from_text, layer_names
from lattend.errors import NamingError, TextError
from lattend.report.numbers import format_value
from lattend.rules.language.call import parts
from lattend.rules.language.grammar import Source

_ON_IMAGE = "rnn2d"  # beside it, a convolution is on the same image, and what is on a line reads its pixels
MOST_LABEL = 28
_NAMED = re.compile(r"([A-Za-z]\w*)\s*=(?!=)")
_LABEL = re.compile(r"\s*([A-Za-z][\w -]*?)\s*:\s*(.+)", re.DOTALL)
_NAME = re.compile(r"\s*([A-Za-z]\w*)\s*(?:\((.*)\))?\s*", re.DOTALL)


class NamedLayers(NamedTuple):
    """Costs by label, what labels stand for, and what is said of all of them."""

    costs: dict[str, Cost]
    meanings: dict[str, str]  # where that is more than the label says
    note: str


def read_layers(texts: Sequence[str], over: str) -> NamedLayers:
    """Costs by label, and what each label stands for.

    A text is a layer, `label: layer`, or a layer without sizes, which then has `over` positions, width d and
    one head. Beside rnn2d all are on the same image of `over` rows and columns, as many tokens as pixels.

    >>> read_layers(["rnn", "attention(causal)"], "t").meanings["rnn"]
    'rnn(steps=t, inputs=d, hidden=d)'
    >>> read_layers(["rnn2d", "lstm"], "n").note
    'the same n × n pixels of d channels: lstm is given them as n^2 positions in a line'
    """
    read = [_labelled(text) for text in texts]
    width = "d" if over != "d" else "h"
    line = {"positions": over, "c": width, "h": width}
    image = next((_image(text, line) for _, text in read if _short(text) == _ON_IMAGE), None)
    costs: dict[str, Cost] = {}
    meanings: dict[str, str] = {}
    for label, (_, text) in zip(_labels(read), read, strict=True):
        if label in costs:
            raise NamingError(
                f'two layers are called {label}; name them apart, as in "wide: rnn(hidden=1024)"'
            )
        costs[label], meaning = _cost(text, line, image)
        if meaning != label:
            meanings[label] = meaning
    return NamedLayers(costs, meanings, "" if image is None else _note(costs, meanings, image))


def _image(text: str, line: dict[str, str]) -> dict[str, str]:
    """The image that a recurrent net is on: its rows, columns, channels and hidden size."""
    cost, _ = _cost(text, line, None)
    arguments = cost.recipes[0][1].arguments
    rows, cols = (
        str(arguments["n"] if arguments[side] is None else arguments[side]) for side in ("rows", "cols")
    )
    pixels = f"{rows}^2" if rows == cols and rows.isidentifier() else f"{rows}*{cols}"
    return {
        "rows": rows,
        "cols": cols,
        "positions": pixels,
        "c": str(arguments["c"]),
        "h": str(arguments["h"]),
    }


def _note(costs: dict[str, Cost], meanings: dict[str, str], image: dict[str, str]) -> str:
    """A note that all layers are on one image, and which of them read it as a line."""
    pixels = image["positions"]
    lines = [label for label, meaning in meanings.items() if f"={pixels}" in meaning]
    if len({format_value(cost.positions) for cost in costs.values()}) > 1:
        return ""  # sizes of their own, of which the comparison warns
    reading = f": {_listed(lines)} given them as {pixels} positions in a line" if lines else ""
    return f"the same {image['rows']} × {image['cols']} pixels of {image['c']} channels{reading}"


def _listed(names: list[str]) -> str:
    return f"{names[0]} is" if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]} are"


def _labels(read: Sequence[tuple[str, str]]) -> list[str]:
    """The label given, or the layer's name; where several have it, with their rules, or with numbers."""
    names = [label or _short(text) for label, text in read]
    labels: list[str] = []
    for index, (label, text) in enumerate(read):
        alike = [i for i, name in enumerate(names) if name == names[index]]
        longer = [_longer(read[i][1]) for i in alike]
        if label or len(alike) == 1:
            labels.append(names[index])
        elif len(set(longer)) == len(longer) and max(map(len, longer)) <= MOST_LABEL:
            labels.append(_longer(text))
        else:
            labels.append(f"{names[index]} {alike.index(index) + 1}")
    return labels


def _labelled(text: str) -> tuple[str, str]:
    match = _LABEL.fullmatch(text)
    return (match[1], match[2]) if match else ("", text)


class _Layer(NamedTuple):
    """A layer as it is written: how many, its name, and what it is given."""

    times: str  # "l * ", or nothing
    name: str
    inner: str


def _written(text: str) -> _Layer | None:
    """The one layer that a text is, with a number before it or behind it; None where it is something else."""
    try:
        spans = list(parts(Source("layer", text), 0, len(text), "*"))
    except TextError:
        return None
    factors = [text[start:end].strip() for start, end in spans]
    calls = [match for factor in factors if (match := _NAME.fullmatch(factor)) and match[1] in layer_names()]
    if len(calls) != 1:
        return None
    times = "".join(f"{factor} * " for factor in factors if factor != calls[0][0])
    return _Layer(times, calls[0][1], (calls[0][2] or "").strip())


def _short(text: str) -> str:
    layer = _written(text)
    return f"{layer.times}{layer.name}" if layer else " ".join(text.split())


def _longer(text: str) -> str:
    """`attention(full, n=t)` as attention (full); the whole text where it begins with no rule."""
    layer = _written(text)
    first = layer.inner.split(",")[0].strip() if layer else ""
    return f"{_short(text)} ({first})" if first and "=" not in first else " ".join(text.split())


def _cost(text: str, line: dict[str, str], image: dict[str, str] | None) -> tuple[Cost, str]:
    """The layer, with the sizes of the line, or of the image beside it, where it has none of its own."""
    times, name, inner = _written(text) or _Layer("", "", "")
    layer = LAYERS.get(name, {})
    usual = layer.get("sizes", {}) if image is None else layer.get("on_image", layer.get("sizes", {}))
    if not usual or any(word in usual for word in _NAMED.findall(inner)):
        return from_text(text), " ".join(text.split())
    sizes = line if image is None or name == _ON_IMAGE else image
    shown = [f"{word}={_size_text(size, sizes)}" for word, size in usual.items()]
    meaning = f"{times}{name}({', '.join([inner, *shown] if inner else shown)})"
    return from_text(meaning), meaning


def _size_text(size: Any, sizes: dict[str, str]) -> str:
    """A size of layers.toml with the positions and widths put in."""
    text = size.format(**sizes) if isinstance(size, str) else str(size)
    return text.replace(" ", "").replace("[", "(").replace("]", ")")
