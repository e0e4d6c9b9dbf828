"""ViT and Swin: images cut into patches; the length follows from the image."""

from __future__ import annotations

from lattend.cost.models.families.text import build_model, head_dim, unknown_head
from lattend.cost.models.fields import MISSING, MOST_LAYERS, Fields
from lattend.cost.models.model import Model
from lattend.cost.models.parts import (
    HEAD,
    ONCE,
    OTHER,
    Attention,
    ModelLayer,
    ModelPart,
    linear,
    norm,
    norms,
    plain,
    projections,
    table,
)
from lattend.cost.models.spans import AttentionSpan, Windows


def vit(fields: Fields) -> Model:
    """Patches and one class token, which all attend to one another."""
    width, heads, hidden = (
        fields.size(name) for name in ("hidden_size", "num_attention_heads", "intermediate_size")
    )
    (rows, cols), (high, wide) = fields.pair("image_size", 224), fields.pair("patch_size", 16)
    patches, channels = (rows // high) * (cols // wide), fields.usual(3, "num_channels")
    if not patches:
        raise fields.wrong("image_size", f"at least a patch of {high} × {wide}", (rows, cols))
    layer = _layer(fields, width, heads, hidden, AttentionSpan("full"))
    pixels = channels * high * wide
    outside = [
        ModelPart(
            "patches", OTHER, (pixels + 1) * width, pixels * width, rows=(patches, patches), leads=True
        ),
        table("positions", patches + 1, width),
        table("class token", 1, width),
        norm("last norm", width, bias=True),
    ]
    head, head_parts = _image_head(fields, width, pooler=fields.optional("pooler_output_size") or width)
    layers = (layer,) * fields.layers("num_hidden_layers")
    return build_model(fields, head, width, layers, [*outside, *head_parts], image=patches + 1)


def swin(fields: Fields) -> Model:
    """Stages of shifted windows; four neighbours merge into one token of twice the width between stages."""
    (high, wide), patch = fields.pair("image_size", 224), fields.pair("patch_size", 4)
    rows, cols = -(-high // patch[0]), -(-wide // patch[1])  # an image is padded to whole patches
    first, channels = fields.size("embed_dim"), fields.usual(3, "num_channels")
    depths, heads = fields.list_of("depths", int), fields.list_of("num_heads", int)
    if not depths or not heads or len(depths) != len(heads):
        raise fields.wrong("depths", "as long a list as num_heads", depths)
    if sum(depths) > MOST_LAYERS:
        raise fields.wrong("depths", f"at most {MOST_LAYERS:,} layers", depths)
    pixels = channels * patch[0] * patch[1]
    outside = [
        ModelPart(
            "patches",
            OTHER,
            (pixels + 1) * first,
            channels * first,
            rows=(high * wide, rows * cols * patch[0] * patch[1]),
            leads=True,
        ),
        norm("norm of the patches", first, bias=True),
    ]
    image = rows * cols
    if fields.flag("use_absolute_embeddings", False):
        outside.append(table("positions", (high // patch[0]) * (wide // patch[1]), first))
    layers: list[ModelLayer] = []
    for stage, (depth, many) in enumerate(zip(depths, heads, strict=True)):
        width = first << stage
        layers += [_block(fields, width, many, rows, cols, index) for index in range(depth)]
        if stage + 1 < len(depths):
            merged = -(-rows // 2) * -(-cols // 2)
            # a token of the stage meets width × 2 width numbers; an odd side is padded by one
            matrix = ModelPart("merging", OTHER, 8 * width**2, 2 * width**2, rows=(rows * cols, 4 * merged))
            outside += [matrix, norm("norm of the merging", 4 * width, bias=True)]
            rows, cols = -(-rows // 2), -(-cols // 2)
    last = first << (len(depths) - 1)
    outside.append(norm("last norm", last, bias=True))
    head, head_parts = _image_head(fields, last, pooler=None)
    return build_model(fields, head, last, layers, [*outside, *head_parts], image=image)


def _block(fields: Fields, width: int, heads: int, rows: int, cols: int, place: int) -> ModelLayer:
    window = fields.usual(7, "window_size")
    shift = window // 2 if place % 2 else 0
    entries = (2 * window - 1) ** 2
    if min(rows, cols) <= window:  # one window holds the image: nothing to shift
        window, shift = min(rows, cols), 0
    span = Windows(rows, cols, window, shift)
    more = (table("relative positions", entries, heads),)
    return _layer(fields, width, heads, _ratio(fields, width), span, (rows * cols, span.padded), more)


def _layer(
    fields: Fields,
    width: int,
    heads: int,
    hidden: int,
    span: AttentionSpan | Windows,
    rows: tuple[int, int] | None = None,
    more: tuple[ModelPart, ...] = (),
) -> ModelLayer:
    """Attention, a feed-forward of two matrices and two layer norms; `rows` are those of the projections."""
    size = head_dim(fields, width, heads)
    tokens = None if rows is None else (rows[0], rows[0])
    parts = (
        *projections(width, heads, heads, size, bias=fields.flag("qkv_bias", True), out_bias=True, rows=rows),
        *plain(width, hidden, rows=tokens),
        *norms(width, "layer norm", "layer norm", bias=True),
        *more,
    )
    return ModelLayer(parts, Attention(span, heads, heads, size, size), f"{hidden:,} wide")


def _ratio(fields: Fields, width: int) -> int:
    ratio = fields.get("mlp_ratio")
    if ratio is MISSING or ratio is None:
        ratio = 4
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not ratio > 0:
        raise fields.wrong("mlp_ratio", "a number above 0", ratio)
    return int(ratio * width)


def _image_head(fields: Fields, width: int, *, pooler: int | None) -> tuple[str, list[ModelPart]]:
    """The head of `architectures`, a classifier without one; the pooler of a model without head."""
    named = fields.architecture
    if named is None or named.endswith("ForImageClassification"):
        labels = fields.labels()
        return f"classifier of {labels:,}", [linear("classifier", HEAD, width, labels, bias=True, rows=ONCE)]
    if not named.endswith("Model"):
        raise unknown_head(fields, named, "…Model and …ForImageClassification")
    if pooler is None:
        return "no head", []
    return "no head, with pooler", [linear("pooler", OTHER, width, pooler, bias=True, rows=ONCE)]
