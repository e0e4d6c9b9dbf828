"""The multiply-adds and the KV cache of a model as formulas: n tokens of a sequence, b sequences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from lattend.cost.amount import ZERO, Amount, amount
from lattend.cost.models.model import Model
from lattend.cost.models.parts import ATTENTION, FEED_FORWARD, GROUPS, PROJECTIONS, ModelLayer, ModelPart
from lattend.cost.models.spans import AttentionSpan, Windows
from lattend.cost.models.summary import heads_words
from lattend.cost.points import count_pairs, points
from lattend.cost.sizes import read_size
from lattend.counts.count import Count
from lattend.counts.latex import value_maths
from lattend.report.report import Report
from lattend.report.table import Table
from lattend.wording import many

CACHE = "KV cache, numbers"
ALONE = ""  # beside the layers
N, B = read_size("n", "n"), read_size("b", "b")


@dataclass(frozen=True)
class PartFormula:
    """What one kind of part needs, in layers that are alike: in one of them, and in all."""

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
    """What stands before and after the layers; pixels need no gradient."""
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
