"""Convolution on lists, as torch's Conv2d: what lies in the padding is left out, not multiplied."""

from __future__ import annotations

from itertools import product
from typing import TypeAlias

from lattend.cost.reference.numbers import Matrix, Scalar, Vector, Weights, total, zeros
from lattend.errors import NamingError, TensorError

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
