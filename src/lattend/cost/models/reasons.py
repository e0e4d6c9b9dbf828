"""Reasons: why ways to count a run's operations differ, and which of them cannot be right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import inf

from lattend.cost.models.model import Model
from lattend.cost.models.rule_span import RuleSpan, Span
from lattend.cost.models.spans import Windows
from lattend.report.numbers import fixed, format_share

CLOSE = 1.02  # ways that differ by less are not worth a sentence


def reasons(model: Model, length: int, found: Mapping[str, float], *, checkpointing: bool) -> tuple[str, ...]:
    """Sentences about these shares of the peak, the gravest first."""
    said: list[str] = []
    needed, dense, executed = found["needed"], found["dense"], found["executed"]
    halved = found.get("causal-halved")
    if needed > 1:
        said.append(
            f"Even the needed work is {format_share(needed)} of the peak, so it is not a matter of counting: "
            "tokens_per_s, peak or devices is not what the run had (the tokens of all devices against the "
            "peak of one, another dtype, a peak with sparsity)."
        )
    if dense > 1 >= needed:
        said.append(
            f"dense is above 100% because {_too_many(model, length)}. It is the formula that is wrong."
        )
    elif dense > CLOSE * needed and model.image is None:
        said.append(f"dense is above needed: {_too_many(model, length)}.")
    narrow = _windows(model, length)
    if halved is not None and halved > 1 >= needed:
        why = (
            f"{narrow}, fewer than the n/2 of a causal one" if narrow else "its N has norms and biases in it"
        )
        said.append(f"causal-halved is above 100% too: {why}.")
    elif halved is not None and halved > CLOSE * needed and narrow:
        said.append(f"causal-halved is above needed: {narrow}.")
    if executed > 1 >= needed:
        said.append(
            "executed is above 100%: the run's kernels skip more than whole tiles do, or save what "
            "is supposed here to be computed again."
        )
    if found.get("all experts", 0) > 1 >= dense:
        said.append(
            f"all experts is above 100%: it multiplies {model.idle:,} parameters that a token is not sent to."
        )
    if checkpointing:
        said.append("Checkpointing runs the layers again: executed, but not needed.")
    return tuple(said)


def _too_many(model: Model, length: int) -> str:
    """`it counts 32,768² pairs in each of 32 layers, 8.5 times those that are attended: …`."""
    held = [layer.attention for layer in model.layers if layer.attention]
    whole = sum(one.multiply_adds * one.span.dense(length) for one in held)
    attended = sum(one.multiply_adds * one.span.needed(length) for one in held)
    why = _windows(model, length) or ("a query attends to no later key" if model.is_causal else "")
    times = fixed(whole / max(1, attended), 1)
    return (
        f"it counts all {length:,}² pairs in each of {len(held)} layers, {times} times those "
        f"that are attended{f': {why}' if why else ''}"
    )


def _windows(model: Model, length: int) -> str:
    """`in 16 of 32 layers a query attends to at most 4,096 keys`; nothing where none has less."""
    spans = Counter(layer.attention.span for layer in model.layers if layer.attention)
    total = sum(spans.values())
    said: list[str] = []
    for span, times in spans.items():
        most = _most(span)
        if most < length:
            where = f"all {total}" if times == total else f"{times} of {total}"
            said.append(f"in {where} layers a query attends to at most {most:,} keys")
    return " and ".join(said)


def _most(span: Span) -> int | float:
    """The most keys that a query can attend to, however long the sequence is."""
    if isinstance(span, RuleSpan):
        return inf
    if isinstance(span, Windows):
        return span.window * span.window
    return {"window": span.keys, "chunk": span.keys, "band": 2 * span.keys + 1}.get(span.kind, inf)
