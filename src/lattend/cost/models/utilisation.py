"""mfu: how much of a machine a training run uses, counted in four ways, and why they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

from lattend.cost.models.configuration import config
from lattend.cost.models.fields import Source
from lattend.cost.models.model import Model
from lattend.cost.models.spans import RuleSpan, Span, Windows
from lattend.errors import DomainError, NamingError
from lattend.machines import DATA_SHEET, MACHINES
from lattend.plans.plan import tile_text
from lattend.report.numbers import fixed, format_share, scientific, significant
from lattend.report.report import Printed, Report
from lattend.report.table import Table


@dataclass(frozen=True)
class Convention:
    """One way to count: operations for one token (2 a multiply-add), and the share of the peak that is."""

    name: str
    operations: float
    utilisation: float
    words: str


@dataclass(frozen=True, repr=False)
class Utilisation(Printed):
    """A run's share of the peak, counted in several ways; `words` say why they differ."""

    family: str
    tokens_per_s: float
    peak: float
    machine: str
    devices: int
    length: int
    batch: int
    checkpointing: bool
    conventions: tuple[Convention, ...]
    words: tuple[str, ...]

    @property
    def needed(self) -> float:
        """With attended pairs only, nothing computed twice."""
        return self._share("needed") or 0.0

    @property
    def causal_halved(self) -> float | None:
        """With half of attention's n² pairs: 6N + 6·l·d·n; None where attention is not causal."""
        return self._share("causal-halved")

    @property
    def dense(self) -> float:
        """With all n² pairs: 6N + 12·l·d·n, as it is usually printed."""
        return self._share("dense") or 0.0

    @property
    def executed(self) -> float:
        """With whole tiles, the scores computed again in the backward, and layers again if checkpointed."""
        return self._share("executed") or 0.0

    @property
    def seconds(self) -> float:
        """Time of one step of `batch` sequences."""
        return self.batch * self.length / self.tokens_per_s

    def _share(self, name: str) -> float | None:
        return next((line.utilisation for line in self.conventions if line.name == name), None)

    @property
    def heading(self) -> str:
        """`mistral, training, length 8,192, batch 1: 12,000 tokens/s`."""
        suffix = ", checkpointing" if self.checkpointing else ""
        size = f"length {self.length:,}, batch {self.batch:,}{suffix}"
        return f"{self.family}, training, {size}: {fixed(self.tokens_per_s, 0, grouped=True)} tokens/s"

    def report(self) -> Report:
        """The printed report."""
        peak = significant(self.peak * self.devices, 4)
        most = f"{self.devices:,} × {self.machine}: {peak} operations/s at most"
        rows = [
            (line.name, scientific(line.operations, 4), format_share(line.utilisation), line.words)
            for line in self.conventions
        ]
        table = Table(("", "operations a token", "utilisation", ""), rows)
        return Report(self.heading, [most, table, *([""] if self.words else []), *self.words])

    def __repr__(self) -> str:
        shares = ", ".join(f"{line.name} {format_share(line.utilisation)}" for line in self.conventions)
        return f"<Utilisation of {self.heading}: {shares}>"

    def json(self) -> dict[str, Any]:
        """All of it in plain numbers, texts, lists and dictionaries, as JSON holds them."""
        return {**asdict(self), "seconds": self.seconds}


def mfu(
    model: Model | Source,
    tokens_per_s: float,
    peak: float | str,
    *,
    length: int | None = None,
    batch: int = 1,
    checkpointing: bool = False,
    devices: int = 1,
) -> Utilisation:
    """The share of `peak` that training at `tokens_per_s` uses: needed, causal-halved, dense and executed.

    `tokens_per_s` is that of all `devices` together, `peak` that of one: operations a second, 2 a
    multiply-add, or a machine of data sheets, "H200", "H100" (989.4e12, dense bf16), "A100" (312e12). The
    model is one of `config`, or what `config` takes. An image model's tokens are its patches; leave length
    out.
    """
    model = model if isinstance(model, Model) else config(model)
    model.check_alone("utilisation is")
    rate, machine = _peak(peak)
    _positive("tokens_per_s", tokens_per_s)
    if isinstance(devices, bool) or devices < 1:
        raise DomainError(f"devices must be at least 1, got {devices!r}")
    work = model.training(length, batch, checkpointing)
    once = model.training(length, batch)
    counts = {
        "needed": 2 * work.multiply_adds.needed / work.tokens,
        **_usual(model, work.length, 2 * once.multiply_adds.dense / work.tokens),
    }
    if checkpointing:
        counts["dense, recomputed"] = counts["dense"] * 4 / 3
    counts["executed"] = 2 * work.multiply_adds.executed / work.tokens
    words_of = _descriptions(model, checkpointing)
    shares = {name: count * tokens_per_s / (rate * devices) for name, count in counts.items()}
    conventions = tuple(
        Convention(name, count, shares[name], words_of[name]) for name, count in counts.items()
    )
    words = reasons(model, work.length, shares, checkpointing=checkpointing)
    return Utilisation(
        family=model.family,
        tokens_per_s=float(tokens_per_s),
        peak=rate,
        machine=machine,
        devices=devices,
        length=work.length,
        batch=batch,
        checkpointing=checkpointing,
        conventions=conventions,
        words=words,
    )


def _usual(model: Model, length: int, counted: float) -> dict[str, float]:
    """The formulas as they are usually printed; for images, what a counter reports."""
    if model.image is not None:
        return {"dense": counted}
    pairs = 6 * sum(layer.attention.multiply_adds for layer in model.layers if layer.attention) * length
    counts = {"causal-halved": 6 * model.active + pairs / 2} if model.is_causal else {}
    counts |= {"dense": float(6 * model.active + pairs)}
    if model.is_mixture:
        counts["all experts"] = counts["dense"] + 6.0 * model.idle
    return counts


def _descriptions(model: Model, checkpointing: bool) -> dict[str, str]:
    return {
        "needed": "attended pairs; nothing computed twice",
        "causal-halved": "6N + 6·l·d·n",
        "dense": f"6N + 12·l·d·n, N = {model.active:,}" if model.image is None else "as counters report",
        "all experts": "the same with N of all experts",
        "dense, recomputed": "4/3 of it, for checkpointing",
        "executed": f"{tile_text()}, scores{' and layers' if checkpointing else ''} again",
    }


def _peak(peak: float | str) -> tuple[float, str]:
    if not isinstance(peak, str):
        _positive("peak", peak)
        return float(peak), "device"
    sheets = {name.lower(): one for name, one in MACHINES.items() if one.about.startswith(DATA_SHEET)}
    sheet = sheets.get(peak.strip().lower())
    if sheet is None:
        names = ", ".join(one.name for one in sheets.values())
        raise NamingError(f"peak {peak!r} is not known; give operations a second, or {names}")
    return sheet.rate, f"{sheet.name} {sheet.about.removeprefix(DATA_SHEET)}"


def _positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < inf:
        raise DomainError(f"{name} must be a number above 0, got {value!r}")


CLOSE = 1.02  # ways that differ by less are not worth a sentence


def reasons(model: Model, length: int, ways: Mapping[str, float], *, checkpointing: bool) -> tuple[str, ...]:
    """Sentences about these shares of the peak, the gravest first."""
    sentences: list[str] = []
    needed, dense, executed = ways["needed"], ways["dense"], ways["executed"]
    halved = ways.get("causal-halved")
    if needed > 1:
        sentences.append(
            f"Even the needed work is {format_share(needed)} of the peak, so it is not a matter of counting: "
            "tokens_per_s, peak or devices is not what the run had (the tokens of all devices against the "
            "peak of one, another dtype, a peak with sparsity)."
        )
    if dense > 1 >= needed:
        sentences.append(
            f"dense is above 100% because {_too_many(model, length)}. It is the formula that is wrong."
        )
    elif dense > CLOSE * needed and model.image is None:
        sentences.append(f"dense is above needed: {_too_many(model, length)}.")
    narrow = _windows(model, length)
    if halved is not None and halved > 1 >= needed:
        why = (
            f"{narrow}, fewer than the n/2 of a causal one" if narrow else "its N has norms and biases in it"
        )
        sentences.append(f"causal-halved is above 100% too: {why}.")
    elif halved is not None and halved > CLOSE * needed and narrow:
        sentences.append(f"causal-halved is above needed: {narrow}.")
    if executed > 1 >= needed:
        sentences.append(
            "executed is above 100%: the run's kernels skip more than whole tiles do, or save what "
            "is supposed here to be computed again."
        )
    if ways.get("all experts", 0) > 1 >= dense:
        sentences.append(
            f"all experts is above 100%: it multiplies {model.idle:,} parameters that a token is not sent to."
        )
    if checkpointing:
        sentences.append("Checkpointing runs the layers again: executed, but not needed.")
    return tuple(sentences)


def _too_many(model: Model, length: int) -> str:
    """`it counts 32,768² pairs in each of 32 layers, 8.5 times those that are attended: …`."""
    held = [layer.attention for layer in model.layers if layer.attention]
    all_pairs = sum(one.multiply_adds * one.span.dense(length) for one in held)
    attended = sum(one.multiply_adds * one.span.needed(length) for one in held)
    why = _windows(model, length) or ("a query attends to no later key" if model.is_causal else "")
    times = fixed(all_pairs / max(1, attended), 1)
    return (
        f"it counts all {length:,}² pairs in each of {len(held)} layers, {times} times those "
        f"that are attended{f': {why}' if why else ''}"
    )


def _windows(model: Model, length: int) -> str:
    """`in 16 of 32 layers a query attends to at most 4,096 keys`; nothing where none has less."""
    spans = Counter(layer.attention.span for layer in model.layers if layer.attention)
    total = sum(spans.values())
    clauses: list[str] = []
    for span, times in spans.items():
        most = _most(span)
        if most < length:
            where = f"all {total}" if times == total else f"{times} of {total}"
            clauses.append(f"in {where} layers a query attends to at most {most:,} keys")
    return " and ".join(clauses)


def _most(span: Span) -> int | float:
    """The most keys that a query can attend to, however long the sequence is."""
    if isinstance(span, RuleSpan):
        return inf
    if isinstance(span, Windows):
        return span.window * span.window
    return {"window": span.keys, "chunk": span.keys, "band": 2 * span.keys + 1}.get(span.kind, inf)
