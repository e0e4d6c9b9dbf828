"""Linear maps, norms, convolutions and embeddings on lists; blocks and models that are made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeAlias

from lattend.cost.reference.attention import Mask, attention
from lattend.cost.reference.numbers import (
    Matrix,
    Scalar,
    Vector,
    Weights,
    apply,
    by_entry,
    check_function,
    dot,
    each,
    exp,
    part,
    plus,
    times,
    total,
    unit,
    zeros,
)
from lattend.errors import NamingError, TensorError


def linear(tokens: Matrix, weights: Weights) -> Matrix:
    """Y = W x + b for every token; without "bias" in the weights none is added.

    >>> linear([[1.0, 2.0]], {"weight": [[3.0, 4.0]], "bias": [5.0]})  # 3*1 + 4*2 + 5
    [[16.0]]
    """
    rows = [times(weights["weight"], x) for x in tokens]
    return [plus(row, weights["bias"]) for row in rows] if "bias" in weights else rows


def feed_forward(tokens: Matrix, weights: Weights, activation: str | None) -> Matrix:
    """Two maps with an activation between, which is multiplied with a third map if there is a "gate"."""
    hidden = linear(tokens, part(weights, "linear1"))
    if activation is not None:
        check_function(activation)
        hidden = [each(activation, row) for row in hidden]
    if gate := part(weights, "gate"):
        hidden = [by_entry(*rows) for rows in zip(hidden, linear(tokens, gate), strict=True)]
    return linear(hidden, part(weights, "linear2"))


def layer_norm(tokens: Matrix, weights: Weights, epsilon: float = 1e-5) -> Matrix:
    """(x - mean) / √(variance + ε) of every token, times a weight, plus a bias."""

    def normed(x: Vector) -> Vector:
        mean = total(x) / float(len(x))
        centred = [a - mean for a in x]
        variance = dot(centred, centred) / float(len(x))
        inverse = 1.0 / apply("sqrt", variance + epsilon)
        return plus(by_entry([a * inverse for a in centred], weights["weight"]), weights["bias"])

    return [normed(x) for x in tokens]


def rms_norm(tokens: Matrix, weights: Weights, epsilon: float = 1e-5) -> Matrix:
    """X / √(mean of squares + ε) of every token, times a weight."""

    def normed(x: Vector) -> Vector:
        inverse = 1.0 / apply("sqrt", dot(x, x) / float(len(x)) + epsilon)
        return by_entry([a * inverse for a in x], weights["weight"])

    return [normed(x) for x in tokens]


def embedding(tokens: Sequence[int], weights: Weights) -> Matrix:
    """The row of the table for every token."""
    return [weights["weight"][token] for token in tokens]


Masks = Sequence[Mask]
Change = Callable[[Matrix], Matrix]


def normed(tokens: Matrix, weights: Weights, name: str) -> Matrix:
    """A layer norm where there is a bias, otherwise an RMS norm."""
    own = part(weights, name)
    return unit(layer_norm(tokens, own) if "bias" in own else rms_norm(tokens, own))


def added(left: Matrix, right: Matrix) -> Matrix:
    """Two lists of tokens added."""
    return unit([plus(x, y) for x, y in zip(left, right, strict=True)])


def block(
    tokens: Matrix,
    weights: Weights,
    masks: Masks,
    *,
    activation: str = "gelu",
    norm_first: bool = True,
    scale: float | None = None,
    memory: Matrix | None = None,
) -> Matrix:
    """Attention, to `memory` too if there is one, and a feed-forward net, each with norm and residual."""

    def step(tokens: Matrix, name: str, change: Change) -> Matrix:
        if norm_first:
            return added(tokens, unit(change(normed(tokens, weights, name))))
        return normed(added(tokens, unit(change(tokens))), weights, name)

    def attend(x: Matrix) -> Matrix:
        return attention(x, x, part(weights, "attention"), masks, scale=scale)

    def attend_to_memory(x: Matrix) -> Matrix:
        everything = [[[True] * len(memory or ())] * len(x)] * len(masks)
        return attention(x, memory or [], part(weights, "cross"), everything, scale=scale)

    tokens = step(tokens, "norm1", attend)
    if memory:
        tokens = step(tokens, "norm3", attend_to_memory)
    return step(tokens, "norm2", lambda x: feed_forward(x, weights, activation))


def stack(tokens: Matrix, weights: Weights, masks: Masks, **options: Any) -> Matrix:
    """Stacked blocks: layers "0", "1", … of the weights, each with the options of `block`."""
    for layer in range(1 + max(int(name.split(".")[0]) for name in weights)):
        tokens = block(tokens, part(weights, str(layer)), masks, **options)
    return tokens


def language_model(
    words: Sequence[int],
    weights: Weights,
    masks: Masks,
    scale: float | None = None,
    memory: Matrix | None = None,
) -> Matrix:
    """Embedding, blocks, a norm and a map to the vocabulary: the embedding's own table if there is none."""
    tokens = unit(embedding(words, part(weights, "embedding")))
    tokens = stack(tokens, part(weights, "blocks"), masks, scale=scale, memory=memory)
    tokens = normed(tokens, weights, "norm")
    return unit(linear(tokens, part(weights, "output") or part(weights, "embedding")))


def vit(image: Image, weights: Weights, heads: int, scale: float | None = None) -> Matrix:
    """Patches behind a class token, positions, blocks, a norm; then the class token's classes."""
    tokens = [weights["class"], *unit(patch_embedding(image, part(weights, "patches")))]
    tokens = added(tokens, weights["positions"])
    everything = [[[True] * len(tokens)] * len(tokens)] * heads
    tokens = normed(stack(tokens, part(weights, "blocks"), everything, scale=scale), weights, "norm")
    return unit(linear(tokens[:1], part(weights, "head")))


def vae(examples: Matrix, weights: Weights, noise: Matrix) -> Matrix:
    """Z = mean + exp(spread / 2) * noise between an encoder and a decoder, each with one hidden layer."""

    def mapped(x: Matrix, name: str) -> Matrix:
        return unit(linear(x, part(weights, name)))

    def bent(x: Matrix) -> Matrix:
        return unit([each("relu", row) for row in x])

    hidden = bent(mapped(examples, "encoder"))
    means, spreads = mapped(hidden, "mean"), mapped(hidden, "spread")
    latent = unit(
        [
            [mean + exp(0.5 * spread) * e for mean, spread, e in zip(*rows, strict=True)]
            for rows in zip(means, spreads, noise, strict=True)
        ]
    )
    return mapped(bent(mapped(latent, "decoder")), "output")


Image: TypeAlias = list[Matrix]  # [channel][row][column]
Pair: TypeAlias = tuple[int, int]
MODES = ("zeros", "replicate")


def conv2d(
    image: Image,
    weights: Weights,
    stride: Pair = (1, 1),
    dilation: Pair = (1, 1),
    padding: Pair | str = (0, 0),
    groups: int = 1,
    padding_mode: str = "zeros",
) -> Image:
    """[out][row][column] of an image [in][row][column]; the kernel is not flipped, as in torch.

    Padding is two numbers, "same" or "valid". What lies outside is left out, or with the padding_mode
    "replicate" is the nearest pixel.

    >>> conv2d([[[1.0, 2.0, 3.0]]], {"weight": [[[[10.0, 1.0]]]]})  # 10*1 + 2, 10*2 + 3
    [[[12.0, 23.0]]]
    """
    if padding_mode not in MODES:
        raise NamingError(f"padding_mode is one of {', '.join(MODES)}, not {padding_mode!r}")
    kernels = weights["weight"]  # [out][in / groups][kernel rows][kernel columns]
    rows, cols = len(image[0]), len(image[0][0])
    tall, wide = len(kernels[0][0]), len(kernels[0][0][0])
    spans = [far * (taps - 1) for far, taps in zip(dilation, (tall, wide), strict=True)]
    before, after = _padded(padding, spans)
    ends = [
        (size + sum(pad) - span) // step + 1
        for size, pad, span, step in zip(
            (rows - 1, cols - 1), zip(before, after, strict=True), spans, stride, strict=True
        )
    ]
    depth, share = len(kernels[0]), len(kernels) // groups
    if len(image) != depth * groups:
        raise TensorError(
            f"the kernels have {depth} channels in each of {groups} groups, {depth * groups} in all; "
            f"the image has {len(image)}"
        )

    def at(out: int, i: int, j: int) -> Scalar:
        products: Vector = []
        for c, a, b in product(range(depth), range(tall), range(wide)):
            row = i * stride[0] - before[0] + a * dilation[0]
            col = j * stride[1] - before[1] + b * dilation[1]
            if padding_mode == "replicate":
                row, col = min(max(row, 0), rows - 1), min(max(col, 0), cols - 1)
            if 0 <= row < rows and 0 <= col < cols:
                products.append(kernels[out][c][a][b] * image[out // share * depth + c][row][col])
        if "bias" not in weights:
            return total(products) if products else zeros(kernels[0][0][0][0], 1)[0]
        return total(products) + weights["bias"][out] if products else weights["bias"][out]

    return [[[at(o, i, j) for j in range(ends[1])] for i in range(ends[0])] for o in range(len(kernels))]


def _padded(padding: Pair | str, spans: list[int]) -> tuple[Pair, Pair]:
    """How many rows and columns are put before and after; of an odd number "same" puts one more after."""
    if isinstance(padding, tuple):
        return padding, padding
    if padding not in ("same", "valid"):
        raise NamingError(f'padding is two numbers, "same" or "valid", not {padding!r}')
    tall, wide = spans if padding == "same" else (0, 0)
    return (tall // 2, wide // 2), ((tall + 1) // 2, (wide + 1) // 2)


def patch_embedding(image: Image, weights: Weights) -> Matrix:
    """One token a patch, row after row: a convolution that steps by its own kernel."""
    kernel = weights["weight"][0][0]
    channels = conv2d(image, weights, stride=(len(kernel), len(kernel[0])))
    rows, cols = len(channels[0]), len(channels[0][0])
    return [[plane[i][j] for plane in channels] for i in range(rows) for j in range(cols)]
