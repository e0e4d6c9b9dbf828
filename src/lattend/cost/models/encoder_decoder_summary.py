"""What an encoder with a decoder prints, and the same as plain data."""

from __future__ import annotations

from typing import Any

from lattend.cost.models.encoder_decoder import EncoderDecoder
from lattend.cost.models.parts import HEAD, ModelPart
from lattend.cost.models.summary import filled_in, layer_json, layer_table, part_json, runs
from lattend.report.report import Report
from lattend.report.table import Table


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
