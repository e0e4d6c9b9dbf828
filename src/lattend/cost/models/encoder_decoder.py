"""EncoderDecoder: a model whose decoder also attends to what its encoder made of the input, such as T5."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Never

from lattend.cost.models.model import GroupCount, Model, ModelWork, check_positive, gathered
from lattend.cost.models.parts import ATTENTION, HEAD, Attention, ModelLayer, ModelPart
from lattend.cost.models.summary import filled_in, layer_json, layer_table, part_json, runs
from lattend.cost.result import MultiplyAdds
from lattend.errors import DomainError
from lattend.plans.plan import TILE
from lattend.report.report import Report
from lattend.report.table import Table
from lattend.rules.reader import RuleLike


@dataclass(frozen=True, repr=False, kw_only=True)
class EncoderDecoder(Model):
    """An encoder, and a decoder whose layers attend to themselves and to the encoder's output.

    `layers` and `outside` are those of the decoder, a table that both share among them. `cross` has for each
    layer of the decoder what runs on the encoder's output: the matrices of its keys and values, and the
    attention to these. `fixed` is the encoder's length where the config sets it, as Whisper's does.

    A length is that of the decoder. That of the encoder is `fixed`, or the same unless it is given.
    """

    encoder: Model
    cross: tuple[ModelLayer, ...]
    fixed: int | None = None

    @property
    def parts(self) -> Iterator[ModelPart]:
        """Every part: the encoder's, the decoder's, and those of the cross-attention's keys and values."""
        yield from self.encoder.parts
        yield from super().parts
        for layer in self.cross:
            yield from layer.parts

    @property
    def embedding(self) -> int:
        """Parameters of the tables before the layers of both."""
        return super().embedding + self.encoder.embedding

    def encoder_length(self, length: int, encoder_length: int | None = None) -> int:
        """How long the encoder's input is: as given, as the config fixes it, or as long as the decoder's."""
        if self.fixed is not None and encoder_length not in (None, self.fixed):
            raise DomainError(
                f"the encoder of this {self.family} takes {self.fixed:,} positions, not {encoder_length:,}: "
                "leave encoder_length out"
            )
        usual = length if self.fixed is None else self.fixed
        return self.encoder.check_length(usual if encoder_length is None else encoder_length)

    def forward(
        self, length: int | None = None, batch: int = 1, tile: int = TILE, encoder_length: int | None = None
    ) -> ModelWork:
        """Multiply-adds of encoder, decoder and cross-attention, each by itself, in three columns."""
        return self._work("forward", length, batch, tile, encoder_length)

    def training(
        self,
        length: int | None = None,
        batch: int = 1,
        checkpointing: bool = False,
        tile: int = TILE,
        encoder_length: int | None = None,
    ) -> ModelWork:
        """Multiply-adds of one forward and one backward; checkpointing runs the layers of both once more."""
        way = f"training{', checkpointing' * checkpointing}"
        how = {"training": True, "recomputed": checkpointing}
        return self._work(way, length, batch, tile, encoder_length, **how)

    def _work(
        self, way: str, length: int | None, batch: int, tile: int, encoder_length: int | None, **how: bool
    ) -> ModelWork:
        length = self.check_length(length, batch, tile)
        inputs = self.encoder_length(length, encoder_length)
        sides = {
            "encoder": self.encoder.counts(inputs, tile, **how),
            "decoder": self.counts(length, tile, **how),
            "cross": self._crossed(length, inputs, tile, **how),
        }
        parts = {  # each kind of part that is there, with the side it belongs to: `encoder projections`
            f"{side} {name}": columns
            for side, counts in sides.items()
            for name, columns in gathered(counts, batch).items()
            if columns.dense
        }
        return ModelWork(self, f"{way}, encoder length {inputs:,}", length, batch, tile, parts)

    def cross_cache(self, encoder_length: int | None = None, batch: int = 1, bytes: int = 2) -> int:
        """Bytes of keys and values of the encoder's output, which every step of the decoder reads.

        They are written once; `cache` has those that the decoder's own tokens leave.
        """
        length = self.fixed if encoder_length is None else encoder_length
        if length is None:
            raise DomainError(
                f"the encoder of {self.family} takes any length: say which, as in cross_cache(512)"
            )
        for name, value in {"encoder_length": length, "batch": batch, "bytes": bytes}.items():
            check_positive(name, value)
        return batch * bytes * self.encoder_length(length, length) * self.cross_numbers

    @property
    def cross_numbers(self) -> int:
        """Numbers that a position of the encoder's input leaves for the cross-attention of all layers."""
        return sum(attention.cached for attention in self._cross_attentions())

    @property
    def heading(self) -> str:
        """`t5: language model; encoder of 6 and decoder of 6 layers, width 512`."""
        layers = f"encoder of {len(self.encoder.layers)} and decoder of {len(self.layers)} layers"
        return f"{self.family}: {self.head}; {layers}, width {self.width:,}"

    def report(self) -> Report:
        """The printed report."""
        return report_of(self)

    def json(self) -> dict[str, Any]:
        """All of it in plain numbers, texts, lists and dictionaries, as JSON holds them."""
        return as_json(self)

    def check_alone(self, what: str) -> Never:
        error = DomainError(
            f"{self.family} is an encoder and a decoder, of which {what} not priced; parameters, forward, "
            "training, weights, cache and cross_cache are"
        )
        raise error.with_reason(
            f"{self.family} is an encoder and a decoder, and has two lengths; in a terminal, "
            "lattend cost config.json prices it"
        )

    def formulas(self, *, training: bool = False) -> Report:
        """Refused: a formula has one length."""
        self.check_alone("formulas are")

    def attention_passes(self) -> int | None:
        """Refused: there are two lengths."""
        self.check_alone("the length from which on attention is most of the work is")

    def with_rule(self, rule: RuleLike, layers: Iterable[int] | None = None) -> Model:
        """Refused: a rule would be of the encoder, of the decoder, or of the attention between them."""
        self.check_alone("other rules are")

    def _cross_attentions(self) -> Iterator[Attention]:
        return (layer.attention for layer in self.cross if layer.attention is not None)

    def _crossed(
        self, length: int, inputs: int, tile: int, *, training: bool = False, recomputed: bool = False
    ) -> Iterator[GroupCount]:
        """Keys and values of the encoder's output, and the pairs of every query with all of them."""
        needed, others = (3, 3 + recomputed) if training else (1, 1)
        tiles = -(-length // tile) * -(-inputs // tile) * tile * tile
        for layer, times in Counter(self.cross).items():
            for part in layer.parts:
                rows = times * inputs * part.multiply_adds
                yield part.group, MultiplyAdds(needed * rows, others * rows, others * rows)
            if layer.attention is not None:
                each, recomputed_work = layer.attention.multiply_adds, training * layer.attention.recomputed
                pairs = length * inputs * each * times
                executed = times * tiles * (others * each + recomputed_work)
                yield ATTENTION, MultiplyAdds(needed * pairs, executed, others * pairs)


def report_of(model: EncoderDecoder) -> Report:
    """Parameters of both, their layers, what a position costs in each, and the two KV caches."""
    counted = [(name, f"{count:,}", words) for name, count, words in _parameters(model)]
    each = [(name, f"{count:,}") for name, count in _each(model).items()]
    fixed = f"encoder length: {model.fixed:,}, set by the config" if model.fixed else "encoder length: any"
    if model.encoder.longest and not model.fixed:
        fixed = f"encoder length: at most {model.encoder.longest:,}, the learned positions"
    decoder = f", decoder at most {model.longest:,}" if model.longest else ""
    own = sum(layer.attention.cached for layer in model.layers if layer.attention)
    return Report(
        model.heading,
        [
            Table(("parameters", "", ""), counted),
            layer_table(model.encoder, "encoder"),
            layer_table(model, "decoder"),
            Table(("multiply-adds of matrices", ""), each),
            "",
            f"KV cache: {own:,} numbers a token of the decoder, over all layers",
            f"KV cache of the cross-attention: {model.cross_numbers:,} numbers a position of the encoder's "
            "input, written once",
            f"{fixed}{decoder}",
            *filled_in(model),
            *(f"note: {note}" for note in model.notes),
        ],
    )


def as_json(model: EncoderDecoder) -> dict[str, Any]:
    """The model in plain data; layers in runs of equal ones."""
    return {
        "family": model.family,
        "source": model.source,
        "head": model.head,
        "width": model.width,
        "parameters": {name: count for name, count, _ in _parameters(model)},
        "multiply_adds": _each(model),
        "encoder_length": model.fixed,
        "encoder_longest": model.encoder.longest,
        "longest": model.longest,
        "encoder": [layer_json(*run) for run in runs(model.encoder)],
        "layers": [layer_json(*run) for run in runs(model)],
        "cross_cache_numbers": model.cross_numbers,
        "outside": [part_json(part) for part in (*model.encoder.outside, *model.outside)],
        "defaults": dict(model.defaults),
        "notes": list(model.notes),
    }


def _parameters(model: EncoderDecoder) -> list[tuple[str, int, str]]:
    encoder = sum(layer.parameters for layer in model.encoder.layers)
    decoder = sum(layer.parameters for layer in model.layers)
    cross = sum(layer.parameters for layer in model.cross)
    head = sum(part.parameters for part in model.outside if part.group == HEAD)
    rest = model.parameters - encoder - decoder - cross - head - model.embedding
    return [
        ("total", model.parameters, ""),
        ("embedding", model.embedding, "looked up, not multiplied"),
        ("encoder layers", encoder, ""),
        ("decoder layers", decoder, ""),
        ("cross-attention", cross, "its keys and values; the rest is the decoder's"),
        ("output head", head, ""),
        ("other", rest, ""),
    ]


def _each(model: EncoderDecoder) -> dict[str, int]:
    """Multiply-adds of matrices for one position of either side."""
    cross = sum(layer.multiply_adds for layer in model.cross)
    encoder = sum(layer.multiply_adds for layer in model.encoder.layers)
    decoder = sum(layer.multiply_adds for layer in model.layers)
    return {
        "encoder, a position": encoder,
        "cross-attention, a position": cross,
        "decoder, a token": decoder,
        "output head, a token": _products(model.outside, HEAD),
    }


def _products(parts: tuple[ModelPart, ...], group: str) -> int:
    return sum(part.multiply_adds for part in parts if part.group == group)
