"""serving: what a model takes on a machine, by roofline: prompts, tokens a second, KV cache, what fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import ItemsView, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from lattend.cost.models.configuration import config
from lattend.cost.models.fields import Source
from lattend.cost.models.formats import (
    CACHE_FORMATS,
    WEIGHT_FORMATS,
    bytes_read,
    cache_width,
    is_quantised,
    weight_format,
)
from lattend.cost.models.model import Model, ModelWork
from lattend.cost.models.parts import ATTENTION, GROUPS, HEAD, Attention, ModelPart
from lattend.cost.models.spans import RuleSpan, Span
from lattend.cost.roofline import Floor
from lattend.draw.picture import Picture
from lattend.errors import DomainError
from lattend.machines import Machine, machine
from lattend.machines import machine as machine_of
from lattend.report.numbers import format_bytes, seconds
from lattend.report.report import Printed, Report
from lattend.report.shown import Drawn
from lattend.report.table import Facts
from lattend.rules.reader import RuleLike
from lattend.wording import many

USUAL_LENGTH = 8192
OWN, GIVEN = "its own attention", "the rules it was given"


@dataclass(frozen=True, repr=False)
class ServingPrice(Printed):
    """The price of serving with one kind of attention; FLOPs are two a multiply-add, by kind of part.

    `prefill_flops` are those of a token of the prompt on average, `decode_flops` those of the token made at
    this context. `cache_bytes` are those of one sequence, `fits` is how many such sequences the machine's
    memory holds beside the weights. A model that makes no tokens has no `decode` and no cache.
    """

    JSON = (
        "attention=name prefill_flops_a_token=prefill_flops decode_flops_a_token=decode_flops "
        "cache_bytes batch_that_fits=fits prefill decode tokens_per_s"
    )

    name: str
    prefill_flops: dict[str, float]
    decode_flops: dict[str, int]
    cache_bytes: int
    fits: int | None
    prefill: Floor
    decode: Floor | None
    batch: int

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens that all sequences of the batch get in a second."""
        return None if self.decode is None else self.batch / self.decode.seconds

    def report(self) -> Report:
        """The printed report."""
        rows = [("prefill", str(self.prefill))]
        if self.decode is not None:
            rows += [
                ("decoding step", str(self.decode)),
                ("KV cache of a sequence", format_bytes(self.cache_bytes)),
            ]
        if self.fits is not None:
            rows.append(("sequences that fit", f"{self.fits:,}"))
        return Report(self.name, [Facts(rows)], self.json())

    def __repr__(self) -> str:
        return f"<ServingPrice {self.name}: {_told(self)}>"


@dataclass(frozen=True, repr=False, eq=False)
class Serving(Printed, Drawn):
    """A model on a machine, with its own attention and, if asked for, under a rule."""

    model: Model
    ruled_model: Model | None
    machine: Machine  # all of them as one
    machines: int
    length: int
    batch: int
    weights: str
    cache: str

    @cached_property
    def own(self) -> ServingPrice:
        """With its own attention, or with the rules that a loaded model was given."""
        spans = [layer.attention.span for layer in self.model.layers if layer.attention]
        return self._price(self.model, GIVEN if any(isinstance(one, RuleSpan) for one in spans) else OWN)

    @cached_property
    def ruled(self) -> ServingPrice | None:
        """Under the rule, if one was asked for."""
        model = self.ruled_model
        return None if model is None else self._price(model, _rule_name(self.model, model))

    @property
    def prices(self) -> tuple[ServingPrice, ...]:
        """With its own attention, then under the rule."""
        return (self.own,) if self.ruled is None else (self.own, self.ruled)

    @property
    def weight_bytes(self) -> dict[str, int]:
        """Bytes of the weights in each format."""
        return {name: self.model.weights(name) for name in WEIGHT_FORMATS}

    @property
    def cache_bytes(self) -> dict[str, int]:
        """Bytes of the KV cache of one sequence in each format, with its own attention."""
        return {name: self.model.cache(self.length, 1, width) for name, width in CACHE_FORMATS.items()}

    @property
    def room(self) -> float | None:
        """Bytes of memory that the weights leave, below 0 where they do not fit; None where nobody knows."""
        memory = self.machine.memory
        return None if memory is None else memory - self.model.weights(self.weights)

    def at(self, length: int) -> Serving:
        """The same at another context length."""
        return replace(self, length=self.model.check_length(length, self.batch))

    def draw(self) -> Picture:
        """KV cache, tokens a second and prefill time as the context grows."""
        from lattend.cost.models.serving_report import draw_serving

        return draw_serving(self)

    @property
    def heading(self) -> str:
        """`llama, serving on H100: context 8,192, 1 sequence`."""
        sequences = many(self.batch, "sequence")
        return f"{self.model.family}, serving on {self.machine.name}: context {self.length:,}, {sequences}"

    def report(self) -> Report:
        """The printed report."""
        from lattend.cost.models.serving_report import serving_report

        return serving_report(self)

    def _price(self, model: Model, name: str) -> ServingPrice:
        how = (self.length, self.batch, self.machine, self.weights, self.cache)
        held, decodes = model.cache(self.length, 1, cache_width(self.cache)), generates(model)
        prefill, decode = prefill_work(model, self.length), decode_work(model, self.length) if decodes else {}
        return ServingPrice(
            name,
            {group: 2 * work / self.length for group, work in prefill.items()},
            {group: 2 * work for group, work in decode.items()},
            held,
            None if self.room is None or not held else max(0, int(self.room // held)),
            prefill_time(model, *how),
            decode_time(model, *how) if decodes else None,
            self.batch,
        )

    def __repr__(self) -> str:
        prices = ", ".join(f"{one.name} {_told(one)}" for one in self.prices)
        return f"<Serving {self.heading}: {prices}>"

    def json(self) -> dict[str, Any]:
        """All of it in plain numbers, texts, lists and dictionaries, as JSON holds them."""
        on = self.machine
        return {
            "family": self.model.family,
            "machine": {"name": on.name, "rate": on.rate, "bandwidth": on.bandwidth, "memory": on.memory},
            "machines": self.machines,
            "length": self.length,
            "batch": self.batch,
            "weights": self.weights,
            "cache": self.cache,
            "parameters": self.model.parameters,
            "active": self.model.active,
            "weight_bytes": self.weight_bytes,
            "cache_bytes": self.cache_bytes,
            "prices": [one.json() for one in self.prices],
        }


def serving(
    model: Model | Source,
    length: int | None = None,
    *,
    batch: int = 1,
    machine: str | Machine = "H100",
    machines: int = 1,
    weights: str = "bf16",
    cache: str = "bf16",
    rule: RuleLike | None = None,
    layers: Iterable[int] | None = None,
) -> Serving:
    """The price of serving a model at a context of `length` tokens, by a roofline.

    The model is one of `config`, or what `config` takes. A machine is a name, a Machine, or numbers as in
    "flops=990T,bandwidth=3.35TB/s,memory=80GB"; several `machines` are taken as one, nothing lost between
    them. `weights` and `cache` are formats. With a rule, the same under it, in these layers or in all.

    >>> small = dict(model_type="gpt2", vocab_size=11, n_positions=8, n_embd=4, n_layer=2, n_head=2)
    >>> found = serving(small, 8, rule="strided(3)")
    >>> found.own.cache_bytes, found.ruled.cache_bytes  # 2 layers * (4 + 4) numbers * 2 bytes * 8 or 4 tokens
    (256, 128)
    """
    model = model if isinstance(model, Model) else config(model)
    model.check_alone("serving is")
    weight_format(weights)
    cache_width(cache)
    one = machine_of(machine)
    ruled = None if rule is None else model.with_rule(rule, None if layers is None else [*layers])
    if length is None:
        length = model.image or min(model.longest or USUAL_LENGTH, USUAL_LENGTH)
    length = model.check_length(length, batch)
    return Serving(model, ruled, one.times(machines), machines, length, batch, weights, cache)


def _rule_name(model: Model, ruled: Model) -> str:
    """`strided(4095)`, and in which layers where it is not all of them."""
    changed = [
        after.attention.span.words
        for before, after in zip(model.layers, ruled.layers, strict=True)
        if before != after and after.attention
    ]
    total = len(model.layers)
    name = changed[0] if changed else "the rule"
    return name if len(changed) in (0, total) else f"{name} in {len(changed)} of {total} layers"


def _told(one: ServingPrice) -> str:
    return seconds(one.prefill.seconds) if one.decode is None else f"{seconds(one.decode.seconds)} a token"


BF16, FP32 = "bf16", "fp32"
CLASSIFIER = "classifier"


def run_time(work: ModelWork, on: str | Machine = "H100") -> Floor:
    """The least time of a run: its needed multiply-adds, or reading the weights once, whichever takes longer.

    >>> from lattend.cost.models import config
    >>> small = dict(model_type="gpt2", vocab_size=11, n_positions=8, n_embd=4, n_layer=2, n_head=2)
    >>> run_time(config(small).forward(8)).operations  # 2*(8*428 + 576)
    8000
    """
    chosen = machine(on)
    operations, moved = 2 * work.multiply_adds.needed, chosen.width * work.model.active
    arithmetic, memory = operations / chosen.rate, moved / chosen.bandwidth
    return Floor(chosen, operations, moved, arithmetic, memory, max(arithmetic, memory), chosen.width)


def prefill_work(model: Model, length: int) -> dict[str, int]:
    """Multiply-adds of a prompt of so many tokens, by kind of part; the head scores its last token alone."""
    pairs = sum(one.multiply_adds * one.span.needed(length) * many for one, many in _attentions(model))
    return _by_group(model, length, pairs)


def decode_work(model: Model, length: int) -> dict[str, int]:
    """Multiply-adds to make the last of `length` tokens, those before it being cached, by kind of part."""
    pairs = sum(one.decoding * last_keys(one.span, length) * many for one, many in _attentions(model))
    return _by_group(model, 1, pairs)


def prefill_time(
    model: Model,
    length: int,
    batch: int = 1,
    on: str | Machine = "H100",
    weights: str = BF16,
    cache: str = BF16,
) -> Floor:
    """The least time to read `batch` prompts of `length` tokens: their work, or what moves."""
    written = model.cache(length, batch, cache_width(cache))
    pairs = prefill_work(model, length)[ATTENTION]
    return _floor(model, length, batch, pairs, written, machine(on), weights)


def decode_time(
    model: Model,
    length: int,
    batch: int = 1,
    on: str | Machine = "H200 measured",
    weights: str = BF16,
    cache: str = BF16,
) -> Floor:
    """The least time to make the last of `length` tokens of each sequence, those before it being cached.

    The weights are read once for all sequences, of experts those that some token is sent to
    (`formats.bytes_read`), and of the KV cache the keys that the last token attends to.
    """
    if not generates(model):
        raise DomainError(f"{model.family} makes no tokens one after another")
    width = batch * cache_width(cache)
    read = sum(width * one.cached * last_keys(one.span, length) * many for one, many in _attentions(model))
    return _floor(model, 1, batch, decode_work(model, length)[ATTENTION], read, machine(on), weights)


def generates(model: Model) -> bool:
    """Whether the model makes tokens one after another."""
    return model.is_causal and not model.image and not model.head.startswith(CLASSIFIER)


def _floor(
    model: Model, tokens: int, batch: int, pairs: int, cached: int, on: Machine, weights: str
) -> Floor:
    """`tokens` of each of `batch` sequences run through the matrices; quantised ones at their own rate."""
    format = weight_format(weights)
    usual = on.rate_of(FP32 if weights == FP32 else BF16)
    operations, arithmetic = 2 * batch * pairs, 2 * batch * pairs / usual
    for part, rows in _products(model, tokens):
        work = 2 * batch * rows * part.multiply_adds
        small = is_quantised(part, format, mixture=model.is_mixture)
        operations += work
        arithmetic += work / (on.rate_of(weights) if small else usual)
    moved = bytes_read(model, format, batch * tokens) + cached
    memory = moved / on.bandwidth
    return Floor(on, operations, moved, arithmetic, memory, max(arithmetic, memory), None)


def _products(model: Model, tokens: int) -> Iterator[tuple[ModelPart, int]]:
    """Each part that multiplies, and how many rows it takes in all layers; a causal head only the last."""
    for part, times in Counter(model.parts).items():
        if part.multiply_adds:
            last = part.group == HEAD and generates(model)
            yield part, times * (part.rows[0] if part.rows else 1 if last else tokens)


def _attentions(model: Model) -> ItemsView[Attention, int]:
    """Each kind of attention, and how many layers have it."""
    return Counter(layer.attention for layer in model.layers if layer.attention).items()


def last_keys(span: Span, length: int) -> int:
    """The keys that the last of `length` queries attends to, where none attends ahead."""
    return span.needed(length) - (span.needed(length - 1) if length > 1 else 0)


def _by_group(model: Model, tokens: int, pairs: int) -> dict[str, int]:
    totals: dict[str, int] = dict.fromkeys(GROUPS, 0)
    for part, rows in _products(model, tokens):
        totals[part.group] += rows * part.multiply_adds
    totals[ATTENTION] += pairs
    return totals
