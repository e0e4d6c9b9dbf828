"""Model: what a whole model holds and how much it multiplies, from its config.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from lattend.cost.layer import COLUMNS
from lattend.cost.models.parts import ATTENTION, GROUPS, HEAD, ModelLayer, ModelPart
from lattend.cost.models.spans import rule_span
from lattend.cost.result import Counted, MultiplyAdds, Result, totals
from lattend.errors import DomainError, NamingError
from lattend.plans.plan import TILE, tile_text
from lattend.report.report import Printed, Report
from lattend.report.table import Table
from lattend.rules.reader import RuleLike
from lattend.rules.rule import check_integer


@dataclass(frozen=True, repr=False)
class ModelWork(Result):
    """One run of a model over `batch` sequences; `work["attention"].needed` is one of its numbers."""

    JSON = "family=model.family way length batch tile parameters multiply_adds parts"

    model: Model
    way: str  # "forward", "training" or "training, checkpointing"
    length: int
    batch: int
    tile: int
    parts: dict[str, Counted]

    @property
    def tokens(self) -> int:
        return self.length * self.batch

    @property
    def parameters(self) -> int:
        """Those of the model."""
        return self.model.parameters

    @property
    def multiply_adds(self) -> Counted:
        """Needed, executed (whole tiles, and what is computed again) and dense, all parts together."""
        return MultiplyAdds(*map(sum, zip(*self.parts.values(), strict=True)))

    def __getitem__(self, name: str) -> Counted:
        if name not in self.parts:
            raise NamingError(f"there is no part {name!r}; there are {', '.join(self.parts)}")
        return self.parts[name]

    @property
    def heading(self) -> str:
        """`gpt2, forward, length 8, batch 2`."""
        batch = f", batch {self.batch:,}" if self.batch > 1 else ""
        return f"{self.model.family}, {self.way}, length {self.length:,}{batch}"

    def report(self) -> Report:
        """The printed report."""
        rows = [(name, *(f"{value:,}" for value in columns)) for name, columns in self.parts.items()]
        parts = Table(("multiply-adds", *COLUMNS), rows)
        return Report(
            self.heading,
            [totals(self.parameters, {"multiply-adds": self.multiply_adds}, tile_text(self.tile)), parts],
        )


def gathered(counts: Iterable[tuple[str, Counted]], times: int = 1) -> dict[str, Counted]:
    """The sum of each kind of part, in the order of GROUPS; every number `times` over."""
    sums: dict[str, Counted] = {name: MultiplyAdds(0, 0, 0) for name in GROUPS}
    for name, more in counts:
        sums[name] = MultiplyAdds(*(a + b * times for a, b in zip(sums[name], more, strict=True)))
    return sums


GroupCount = tuple[str, Counted]  # of one kind of part


@dataclass(frozen=True, repr=False)
class Model(Printed):
    """A model with its layers, and the parts before and after them.

    `head` says what stands on top of the layers. `longest` is the number of learned positions, if there are
    any; `image` the tokens of an image model, whose length is fixed. `defaults` are fields that the config
    does not have and transformers fills in, `notes` what is not counted.
    """

    family: str
    source: str
    head: str
    width: int
    layers: tuple[ModelLayer, ...]
    outside: tuple[ModelPart, ...]
    longest: int | None = None
    image: int | None = None
    defaults: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def parts(self) -> Iterator[ModelPart]:
        """Every part, layer by layer, then those outside."""
        for layer in self.layers:
            yield from layer.parts
        yield from self.outside

    @property
    def parameters(self) -> int:
        """All parameters; a matrix that two parts share counts once."""
        return sum(part.parameters for part in self.parts)

    @property
    def active(self) -> int:
        """Parameters that one token is multiplied with, the N of 6N: no tables, no experts it is not sent to.

        Tables are looked up, so they are left out; a table that is the head's matrix too is
        multiplied there and counts once.
        """
        shared = sum(
            part.multiply_adds for part in self.outside if part.group == HEAD and not part.parameters
        )
        return sum(part.used for part in self.parts if not part.is_table) + shared

    @property
    def idle(self) -> int:
        """Parameters of the experts that one token is not sent to."""
        return sum(part.parameters - part.used for part in self.parts)

    @property
    def embedding(self) -> int:
        """Parameters of the tables before the layers, which are looked up: tokens, positions, types."""
        return sum(part.parameters for part in self.outside if part.is_table)

    @property
    def is_mixture(self) -> bool:
        """Whether tokens are sent to some of the experts only."""
        return self.idle > 0

    @property
    def is_causal(self) -> bool:
        """Whether no query attends to a later key."""
        spans = [layer.attention.span for layer in self.layers if layer.attention]
        return all(span.is_causal for span in spans)

    def forward(self, length: int | None = None, batch: int = 1, tile: int = TILE) -> ModelWork:
        """Multiply-adds of one forward over `batch` sequences, in three columns.

        needed: attended pairs. executed: all tile × tile boxes that hold an attended pair, counted exactly
        and whole, as a kernel with such tiles runs them (Swin: whole windows of the padded image). dense:
        what a counter of the matrix products reports. Only matrix products are counted: norms, softmax,
        rotary positions, activations and gates, a few operations a number, are left out.
        """
        length = self.check_length(length, batch, tile)
        parts = gathered(self.counts(length, tile), batch)
        return ModelWork(self, "forward", length, batch, tile, parts)

    def training(
        self, length: int | None = None, batch: int = 1, checkpointing: bool = False, tile: int = TILE
    ) -> ModelWork:
        """Multiply-adds of one forward and one backward over `batch` sequences, in three columns.

        A matrix takes twice its forward again (gradients of its input and of itself; a patch embedding only
        once, pixels need none). So does attention where its weights are saved; executed is a kernel that
        computes the scores again: 2.5 times its forward when keys and values are of one size. Checkpointing
        runs every layer once more, head and embedding not: executed and dense, but not needed.
        """
        length = self.check_length(length, batch, tile)
        parts = gathered(self.counts(length, tile, training=True, recomputed=checkpointing), batch)
        return ModelWork(self, f"training{', checkpointing' * checkpointing}", length, batch, tile, parts)

    def cache(self, length: int, batch: int = 1, bytes: int = 2) -> int:
        """Bytes of keys and values that `length` tokens leave, at `bytes` a number; 0 for encoders.

        A layer with a window of w keeps at most w tokens, one with chunks at most a chunk; DeepSeek's layers
        keep the latent and the rotary key, from which keys and values are made again.
        """
        for name, value in {"length": length, "batch": batch, "bytes": bytes}.items():
            check_positive(name, value)
        if not self.is_causal:
            return 0
        held = (layer.attention for layer in self.layers if layer.attention)
        return batch * bytes * sum(one.span.cached_keys(length) * one.cached for one in held)

    def attention_passes(self) -> int | None:
        """The shortest sequence whose attention needs more multiply-adds than all matrices together.

        It does so for every longer one too: one more token brings attention at least as many pairs as the one
        before, and the matrices always the same. None where that is never so, where the model takes no such
        length, and for attention in chunks, which begins anew with every chunk.

        >>> from lattend.cost.models import config
        >>> small = dict(model_type="gpt2", vocab_size=11, n_positions=900, n_embd=4, n_layer=2, n_head=2)
        >>> config(small).attention_passes()  # 8n(n + 1) > (128 + 256 + 44)n: n + 1 > 53.5
        53
        """
        if self.image or _in_chunks(self):
            return None
        low, high, last = 0, 1, self.longest or FAR
        while _lead(self, high) >= 0:
            if high >= last:
                return None
            low, high = high, min(2 * high, last)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if _lead(self, middle) < 0 else (middle, high)
        return high

    def formulas(self, *, training: bool = False) -> Report:
        """The work of each kind of part and layer and the KV cache as formulas: n tokens of b sequences."""
        from lattend.cost.models.summary import formula_report

        return formula_report(self, training=training)

    def weights(self, format: str = "bf16") -> int:
        """Bytes of all parameters as fp32, bf16, fp8, int8, int4 or mxfp4; `formats` says what is counted."""
        from lattend.cost.models.formats import weight_bytes, weight_format

        return weight_bytes(self, weight_format(format))

    def with_rule(self, rule: RuleLike, layers: Iterable[int] | None = None) -> Model:
        """The model whose attention follows this rule instead of its own, in these layers or in all.

        As `set_rule` does it to a loaded model: `layers` are numbers from 0. A causal model takes a rule by
        which no query attends to a later key.
        """
        if self.image:
            raise DomainError(f"{self.family} attends on an image, and a rule here is one of sequences")
        wanted = range(len(self.layers)) if layers is None else [*layers]
        for place in wanted:
            if place not in range(len(self.layers)):
                raise NamingError(f"there is no layer {place}; layers are 0 to {len(self.layers) - 1}")
        span = rule_span(rule, causal=self.is_causal)
        changed = tuple(
            replace(layer, attention=replace(layer.attention, span=span))
            if layer.attention is not None and place in wanted
            else layer
            for place, layer in enumerate(self.layers)
        )
        return replace(self, layers=changed)

    @property
    def heading(self) -> str:
        """`mistral: causal language model; 32 layers, width 4,096`."""
        return f"{self.family}: {self.head}; {len(self.layers)} layers, width {self.width:,}"

    def report(self) -> Report:
        """The printed report."""
        from lattend.cost.models.summary import report_of

        return report_of(self)

    def __repr__(self) -> str:
        active = f", {self.active:,} active" if self.is_mixture else ""
        return f"<Model {self.heading}; parameters {self.parameters:,}{active}>"

    def json(self) -> dict[str, Any]:
        """All of it in plain numbers, texts, lists and dictionaries, as JSON holds them."""
        from lattend.cost.models.summary import as_json

        return as_json(self)

    def counts(
        self, length: int, tile: int, *, training: bool = False, recomputed: bool = False
    ) -> Iterator[GroupCount]:
        """Multiply-adds of a forward over one sequence, or of `training`, with the kind of each part.

        A backward takes each product twice again; `recomputed` runs every layer once more.
        """
        needed, others = (3, 3 + recomputed) if training else (1, 1)
        for layer, times in Counter(self.layers).items():
            for part in layer.parts:
                yield _scaled(_product(part, length, times), needed, others)
            yield _scaled(_attention(layer, length, tile, times), needed, others)
            if training and layer.attention is not None:
                pairs = layer.attention.span.executed(length, tile)
                yield ATTENTION, MultiplyAdds(0, times * pairs * layer.attention.recomputed, 0)
        for part in self.outside:
            once = (2 if part.leads else 3) if training else 1
            yield _scaled(_product(part, length, 1), once, once)

    def check_alone(self, what: str) -> None:
        """Raises where this is an encoder with a decoder, for which `what` (`serving is`) is not known."""

    def check_length(self, length: int | None, batch: int = 1, tile: int = TILE) -> int:
        """The length to count at; raises where the model has none such."""
        length = self.image if length is None else length
        if length is None:
            raise DomainError(f"{self.family} takes sequences of any length: say which, as in forward(4096)")
        for name, value in {"length": length, "batch": batch, "tile": tile}.items():
            check_positive(name, value)
        if self.image is not None and length != self.image:
            raise DomainError(
                f"this {self.family} has {self.image:,} tokens, which its image size sets, not {length:,}; "
                "leave length out, or give another image_size to config"
            )
        if self.longest is not None and length > self.longest:
            raise DomainError(
                f"length {length:,} does not fit: this {self.family} has {self.longest:,} learned positions; "
                "to count a longer one, give config more of them"
            )
        return length


def check_positive(name: str, value: int) -> None:
    """Raises where a number is not a whole one of at least 1."""
    check_integer(name, value)
    if value < 1:
        raise DomainError(f"{name} must be at least 1, got {value}")


def _product(part: ModelPart, length: int, times: int) -> GroupCount:
    needed, executed = part.rows or (length, length)
    executed *= times * part.multiply_adds
    return part.group, MultiplyAdds(needed * times * part.multiply_adds, executed, executed)


def _attention(layer: ModelLayer, length: int, tile: int, times: int) -> GroupCount:
    if layer.attention is None:
        return ATTENTION, MultiplyAdds(0, 0, 0)
    span, each = layer.attention.span, times * layer.attention.multiply_adds
    pairs = span.needed(length), span.executed(length, tile), span.dense(length)
    return ATTENTION, MultiplyAdds(*(each * many for many in pairs))


def _scaled(counted: GroupCount, needed: int, others: int) -> GroupCount:
    name, columns = counted
    return name, MultiplyAdds(columns.needed * needed, columns.executed * others, columns.dense * others)


FAR = 1 << 40  # tokens beyond which nobody asks
USUAL = 1 << 20  # tokens up to which a chart goes where no position is learned


def chart_lengths(model: Model, end: int = 0) -> list[int]:
    """The lengths of a chart: powers of two and halfway between, up to the model's longest, or `end`."""
    last = model.longest or max(USUAL, end)
    steps = (size for power in range(last.bit_length()) for size in (2**power, 3 * 2**power // 2))
    return sorted({*(size for size in steps if size <= last), last})


def passing_sentence(model: Model, passes: int | None) -> str:
    """Whether `passes`, which `attention_passes` found, is ever reached, as a sentence; "" of an image."""
    if model.image:
        return ""
    if passes is not None:
        return f"Attention needs more multiply-adds than all matrices together from {passes:,} tokens on."
    if _in_chunks(model):
        return "Attention in chunks begins anew with every chunk."
    last = " up to 2^40 tokens"
    if model.longest:
        last = f" up to its {model.longest:,} learned positions"
    elif _lead(model, 2 * FAR) >= _lead(model, FAR):  # attention in windows: both grow by a constant a token
        last = ""
    return f"The matrices need more multiply-adds than attention at every length{last}."


def _lead(model: Model, length: int) -> int:
    """How many multiply-adds more the matrices need than attention."""
    work = model.forward(length)
    return work.multiply_adds.needed - 2 * work[ATTENTION].needed


def _in_chunks(model: Model) -> bool:
    spans = [layer.attention.span for layer in model.layers if layer.attention]
    return any(getattr(span, "kind", "") == "chunk" for span in spans)
