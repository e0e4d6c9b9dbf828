"""Layers as a person names them in a hurry: `rnn`, `attention(causal)`, with the sizes they usually have."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lattend.cost.cost import Cost
from lattend.cost.reader import from_text
from lattend.errors import NamingError

Sizes = dict[str, int | str | tuple[int, int]]
# What stands for the positions, and for the width, of each layer that is named without its sizes
_SIZES: dict[str, Sizes] = {
    "attention": {"n": "{over}", "heads": 1, "D_i": "{d}", "D_hid": "{d}"},
    "conv": {"rows": "{over}", "cols": 1, "kernel": (3, 1), "padding": (1, 0), "c_in": "{d}", "c_out": "{d}"},
    "rnn": {"steps": "{over}", "inputs": "{d}", "hidden": "{d}"},
    "lstm": {"steps": "{over}", "inputs": "{d}", "hidden": "{d}"},
    "gru": {"steps": "{over}", "inputs": "{d}", "hidden": "{d}"},
    "feed_forward": {"n": "{over}", "d": "{d}", "hidden": "4*{d}"},
    "linear": {"n": "{over}", "d_in": "{d}", "d_out": "{d}"},
    "norm": {"n": "{over}", "d": "{d}"},
    "transformer_block": {"n": "{over}", "d": "{d}", "heads": 1},
    "rnn2d": {"n": "{over}", "h": "{d}", "c": "{d}"},
}
# Beside a layer on an image, a convolution is on the same image, and not on a line
_ON_IMAGE = "rnn2d"
_IMAGE: Sizes = {"rows": "{over}", "cols": "{over}", "kernel": 3, "padding": 1, "c_in": "{d}", "c_out": "{d}"}
MOST_LABEL = 28
_NAMED = re.compile(r"([A-Za-z]\w*)\s*=(?!=)")
_LABEL = re.compile(r"\s*([A-Za-z][\w -]*?)\s*:\s*(.+)", re.DOTALL)
_NAME = re.compile(r"\s*([A-Za-z]\w*)\s*(?:\((.*)\))?\s*", re.DOTALL)


def read_layers(texts: Sequence[str], over: str) -> tuple[dict[str, Cost], dict[str, str]]:
    """Costs by label, and what each label stands for where that is more than the label says.

    A text is a layer, `label: layer`, or a layer without sizes, which then has `over` positions, width d and
    one head; on an image, rnn2d and the convolutions beside it, `over` rows and `over` columns.

    >>> costs, meanings = read_layers(["rnn", "attention(causal)"], "t")
    >>> meanings["rnn"]
    'rnn(steps=t, inputs=d, hidden=d)'
    """
    read = [_labelled(text) for text in texts]
    on_image = any(_short(text) == _ON_IMAGE for _, text in read)
    usual = {**_SIZES, "conv": _IMAGE} if on_image else _SIZES
    costs: dict[str, Cost] = {}
    meanings: dict[str, str] = {}
    for label, (_, text) in zip(_labels(read), read, strict=True):
        if label in costs:
            raise NamingError(
                f'two layers are called {label}; name them apart, as in "wide: rnn(hidden=1024)"'
            )
        costs[label], meaning = _cost(text, over, usual)
        if meaning != label:
            meanings[label] = meaning
    return costs, meanings


def _labels(read: Sequence[tuple[str, str]]) -> list[str]:
    """The label given, or the layer's name; where several have it, with their rules, or with numbers."""
    names = [label or _short(text) for label, text in read]
    found: list[str] = []
    for place, (label, text) in enumerate(read):
        alike = [i for i, name in enumerate(names) if name == names[place]]
        longer = [_longer(read[i][1]) for i in alike]
        if label or len(alike) == 1:
            found.append(names[place])
        elif len(set(longer)) == len(longer) and max(map(len, longer)) <= MOST_LABEL:
            found.append(_longer(text))
        else:
            found.append(f"{names[place]} {alike.index(place) + 1}")
    return found


def _labelled(text: str) -> tuple[str, str]:
    found = _LABEL.fullmatch(text)
    return (found[1], found[2]) if found else ("", text)


def _short(text: str) -> str:
    found = _NAME.fullmatch(text)
    return found[1] if found else " ".join(text.split())


def _longer(text: str) -> str:
    """`attention(full, n=t)` as attention (full); the whole text where it begins with no rule."""
    found = _NAME.fullmatch(text)
    first = (found[2] or "").split(",")[0].strip() if found else ""
    return f"{found[1]} ({first})" if found and first and "=" not in first else " ".join(text.split())


def _cost(text: str, over: str, usual: dict[str, Sizes]) -> tuple[Cost, str]:
    found = _NAME.fullmatch(text)
    said = _NAMED.findall(found[2] or "") if found else []
    if found is None or found[1] not in usual or any(name in usual[found[1]] for name in said):
        return from_text(text), " ".join(text.split())
    width = "d" if over != "d" else "h"
    sizes = {
        name: size.format(over=over, d=width) if isinstance(size, str) else size
        for name, size in usual[found[1]].items()
    }
    shown = ", ".join(f"{name}={str(size).replace(' ', '')}" for name, size in sizes.items())
    inside = f"{found[2].strip()}, {shown}" if found[2] and found[2].strip() else shown
    meaning = f"{found[1]}({inside})"
    return from_text(meaning), meaning
