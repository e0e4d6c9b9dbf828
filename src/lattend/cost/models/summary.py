"""What a model prints, as plain data, and its multiply-adds and KV cache as formulas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from lattend.cost.amount import ZERO, Amount, amount
from lattend.cost.models.model import Model
from lattend.cost.models.parts import (
    ATTENTION,
    FEED_FORWARD,
    GROUPS,
    HEAD,
    PROJECTIONS,
    Attention,
    ModelLayer,
    ModelPart,
)
from lattend.cost.models.spans import AttentionSpan, Windows
from lattend.cost.points import count_pairs, points
from lattend.cost.sizes import read_size
from lattend.counts.count import Count
from lattend.counts.latex import value_maths
from lattend.report.report import Report
from lattend.report.table import Table
from lattend.wording import many


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
    """The defaults that were filled in, as a sentence; nothing where the config says all."""
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


CACHE = "KV cache, numbers"
ALONE = ""  # beside the layers
N, B = read_size("n", "n"), read_size("b", "b")


@dataclass(frozen=True)
class PartFormula:
    """The formula of one kind of part in layers that are alike: for one of them, and for all."""

    part: str
    layers: int
    kind: str
    each: Count | int
    needed: Count | int

    @property
    def words(self) -> str:
        """`32 layers: causal`."""
        return f"{many(self.layers, 'layer')}: {self.kind}" if self.kind else ""


def model_formulas(model: Model, *, training: bool = False) -> list[PartFormula]:
    """A formula for each kind of part in each kind of layer, as `forward` or `training` needs it.

    The length of an image model is its own, so that its formulas are in b alone.

    >>> from lattend.cost import config
    >>> small = dict(model_type="gpt2", vocab_size=11, n_positions=8, n_embd=4, n_layer=2, n_head=2)
    >>> [str(one.needed) for one in model_formulas(config(small)) if one.part == "attention"]
    ['8n*b(n + 1)']
    """
    amounts: dict[tuple[str, str, str], tuple[int, Amount]] = {}
    for layer, layers in Counter(model.layers).items():
        for part, kind, one in _of_layer(layer, model, training):
            key = (part, kind, str(one))
            amounts[key] = (amounts[key][0] + layers if key in amounts else layers, one)
    rows = [_formula(part, kind, layers, one) for (part, kind, _), (layers, one) in amounts.items()]
    rows += [_formula(part, ALONE, 1, one) for part, one in _outside(model, training).items()]
    return sorted(rows, key=lambda row: (*GROUPS, CACHE).index(row.part))


def formula_report(model: Model, *, training: bool = False) -> Report:
    """The formulas as a table."""
    rows = [
        (row.part, row.words, value_maths(row.each) if row.kind else "", value_maths(row.needed))
        for row in model_formulas(model, training=training)
    ]
    letters = "b images" if model.image else "n tokens of b sequences"
    title = f"multiply-adds needed and KV cache, {letters}"
    return Report(title, [Table(("", "layers", "one layer", "in all"), rows)])


def _formula(part: str, kind: str, layers: int, each: Amount) -> PartFormula:
    return PartFormula(part, layers, kind, each.count(part), (each * layers).count(part))


def _of_layer(layer: ModelLayer, model: Model, training: bool) -> Iterator[tuple[str, str, Amount]]:
    """Each kind of part, what kind of it the layer has, and the multiply-adds of one layer."""
    sequences, times = Amount.of(B), 3 if training else 1  # a backward takes each product twice again
    words = {PROJECTIONS: heads_words(layer), FEED_FORWARD: layer.feed_forward}
    for group in GROUPS:
        parts = [part for part in layer.parts if part.group == group and part.multiply_adds]
        if parts:
            yield (
                group,
                words.get(group) or ", ".join(part.name for part in parts),
                sum((_product(part, model) for part in parts), ZERO) * times,
            )
    if layer.attention is not None:
        one, tokens = layer.attention, read_size("n", model.image or "n")
        pairs = (
            Amount.number(one.span.needed(0))
            if isinstance(one.span, Windows)
            else count_pairs(one.span.rule, {"n": tokens})
        )
        yield ATTENTION, one.span.words, pairs * sequences * (times * one.multiply_adds)
        if model.is_causal and not model.image and isinstance(one.span, AttentionSpan):
            kept = one.span.keys
            within = f"key < n and key < {kept}" if kept else "key < n"
            yield CACHE, one.span.words, points(within, {"n": N}) * sequences * one.cached


def _outside(model: Model, training: bool) -> dict[str, Amount]:
    """The parts before and after the layers; pixels need no gradient."""
    amounts: dict[str, Amount] = {}
    for part in model.outside:
        if part.multiply_adds:
            times = (2 if part.leads else 3) if training else 1
            amounts[part.group] = amounts.get(part.group, ZERO) + _product(part, model) * times
    return amounts


def _product(part: ModelPart, model: Model) -> Amount:
    """The multiply-adds of a matrix for all rows of all sequences."""
    rows = Amount.number(part.rows[0]) if part.rows else amount(read_size("n", model.image or "n"))
    return rows * Amount.of(B) * part.multiply_adds
