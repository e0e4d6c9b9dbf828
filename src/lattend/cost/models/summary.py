"""What a model prints, and the same as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from lattend.cost.models.model import Model
from lattend.cost.models.parts import ATTENTION, GROUPS, HEAD, Attention, ModelLayer, ModelPart
from lattend.report.report import Report
from lattend.report.table import Table


def report_of(model: Model, *, usage: bool = True) -> Report:
    """Parameters, kinds of layers, what a token costs, notes; `usage`: and what to type for a length."""
    rows = [(name, f"{count:,}", words) for name, count, words in _parameters(model)]
    what = "an image" if model.image else "a token"
    each = [(name, f"{count:,}") for name, count in a_token(model).items()]
    parts: list[Table | str] = [Table(("parameters", "", ""), rows), layer_table(model)]
    parts.append(Table((f"multiply-adds {what}", ""), each))
    if usage and not model.image:
        parts.append("attention's depend on the length: --length N, in Python forward(N)")
    if a_sequence(model):
        parts.append(f"once a sequence: {a_sequence(model):,}")
    remarks = list(_remarks(model))
    return Report(model.heading, [*parts, *([""] if remarks else []), *remarks])


def as_json(model: Model) -> dict[str, Any]:
    """The model in plain data; layers in runs of equal ones."""
    return {
        "family": model.family,
        "source": model.source,
        "head": model.head,
        "width": model.width,
        "parameters": {name: count for name, count, _ in _parameters(model)},
        "multiply_adds_a_token": a_token(model),
        "multiply_adds_a_sequence": a_sequence(model),
        "longest": model.longest,
        "image": model.image,
        "layers": [layer_json(*run) for run in runs(model)],
        "outside": [part_json(part) for part in model.outside],
        "defaults": dict(model.defaults),
        "notes": list(model.notes),
    }


def runs(model: Model) -> list[tuple[int, int, ModelLayer]]:
    """First and last place of layers that are alike, side by side."""
    runs: list[tuple[int, int, ModelLayer]] = []
    place = 0
    for layer, group in groupby(model.layers):
        size = len(list(group))
        runs.append((place, place + size - 1, layer))
        place += size
    return runs


def a_token(model: Model) -> dict[str, int]:
    """Multiply-adds of the matrices for one token, by kind; of an image, for one image."""
    totals = dict.fromkeys((name for name in GROUPS if name != ATTENTION), 0)
    for part in model.parts:
        if model.image or not part.rows:
            totals[part.group] += part.multiply_adds * (part.rows[0] if part.rows else model.image or 1)
    return totals


def a_sequence(model: Model) -> int:
    """Multiply-adds of poolers and classifiers, which run once a sequence."""
    return 0 if model.image else sum(part.multiply_adds for part in model.parts if part.rows)


def _parameters(model: Model) -> list[tuple[str, int, str]]:
    head = sum(part.parameters for part in model.outside if part.group == HEAD)
    layers = sum(layer.parameters for layer in model.layers)
    rest = model.parameters - head - layers - model.embedding
    return [
        ("total", model.parameters, ""),
        ("active", model.active, "used by one token, tables left out"),
        ("embedding", model.embedding, "looked up, not multiplied"),
        ("layers", layers, ""),
        ("output head", head, ""),
        ("other", rest, ""),
    ]


def layer_table(model: Model, name: str = "layers") -> Table:
    """One line a kind of layer, with the places of its runs; words that do not fit go on below."""
    kinds: dict[tuple[str, ...], list[str]] = {}
    for first, last, layer in runs(model):
        place = f"{first}" if first == last else f"{first}-{last}"
        kind = (_span(layer), heads_words(layer), layer.feed_forward, f"{layer.parameters:,}")
        kinds.setdefault(kind, []).append(place)
    head = (name, "attention", "heads", "feed-forward", "parameters")
    return Table(head, [(_short(places), *kind) for kind, places in kinds.items()], wraps=True)


def _short(places: list[str]) -> str:
    return ", ".join(places) if len(places) <= 3 else f"{places[0]}, {places[1]}, … {places[-1]}"


def _span(layer: ModelLayer) -> str:
    return layer.attention.span.words if layer.attention else "none"


def heads_words(layer: ModelLayer) -> str:
    """`32 × 128, 8 kv heads`."""
    one = layer.attention
    if one is None:
        return "none"
    size = f"{one.head_dim}" if one.head_dim == one.value_dim else f"{one.head_dim}/{one.value_dim}"
    return f"{one.heads} × {size}" + (f", {one.kv_heads} kv heads" if one.kv_heads != one.heads else "")


def _remarks(model: Model) -> Iterator[str]:
    if model.is_causal:
        held = [layer.attention for layer in model.layers if layer.attention]
        latent = " of latents" if any(one.latent for one in held) else ""
        yield f"KV cache: {sum(one.cached for one in held):,} numbers{latent} a token over all layers"
        kept = {most for one in held if (most := one.span.most_cached_keys) is not None}
        if kept:
            most = " or ".join(f"{size:,}" for size in sorted(kept))
            yield f"KV cache: layers that drop keys keep at most {most} tokens"
    if model.longest is not None:
        yield f"length: at most {model.longest:,}, the learned positions"
    if model.image is not None:
        yield f"length: {model.image:,} tokens, set by the image"
    yield from filled_in(model)
    yield from (f"note: {note}" for note in model.notes)


def filled_in(model: Model) -> list[str]:
    """What the config leaves out, as a sentence; none where it says all."""
    defaults = ", ".join(f"{name} = {value:,}" for name, value in model.defaults)
    return [f"not in the config, taken as transformers does: {defaults}"] if defaults else []


def layer_json(first: int, last: int, layer: ModelLayer) -> dict[str, Any]:
    """A run of equal layers, as plain data."""
    one = layer.attention
    return {
        "first": first,
        "last": last,
        "parameters": layer.parameters,
        "multiply_adds_a_token": layer.multiply_adds,
        "attention": None if one is None else _attention_json(one),
        "feed_forward": layer.feed_forward,
        "parts": [part_json(part) for part in layer.parts],
    }


def _attention_json(one: Attention) -> dict[str, Any]:
    rule = one.span.rule
    sizes = {name: getattr(one, name) for name in ("heads", "kv_heads", "head_dim", "value_dim", "cached")}
    return {"rule": rule.text, "values": dict(rule.values), "words": one.span.words, **sizes}


def part_json(part: ModelPart) -> dict[str, Any]:
    """A part, as plain data."""
    return {
        "name": part.name,
        "group": part.group,
        "parameters": part.parameters,
        "active": part.used,
        "multiply_adds": part.multiply_adds,
    }
