"""Sharp heads as a convolution, and the sign that flips its kernel."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

from lattend.study.derivations.draft import Chain, Draft, Instances, Link
from lattend.study.derivations.evaluation import Environment, exact_array
from lattend.study.exact.numbers import exact

SIZE, KERNEL, CHANNELS = 3, 3, 2
IMAGES = 3
SHIFTS = [(y, x) for y, x in product(range(-1, 2), repeat=2)]


def convolution() -> Draft:
    """K² heads, one at each shift of the kernel, are a K × K convolution."""
    definitions = [
        ("a{h}[q, k]", "is(k = q + Δ{h})", "the weights of a sharp head: the limit as α → ∞"),
        ("Y[q]", "sum(sum(a{h}[q, k] X[k], k) W{h}, h) + b", "attention, split by heads"),
        ("W{h}", "C[Δ{h}]", "the kernel at the shift of head h"),
    ]
    ground = Instances(
        f"exactly, at every pixel of {IMAGES} random {SIZE} × {SIZE} images of {CHANNELS} channels; conv by "
        "plain loops",
        _image,
        definitions,
        many=IMAGES,
        over=("q",),
    )
    links = [
        Link("sum(sum(is(k = q + Δ{h}) X[k], k) W{h}, h) + b", "each head attends to one pixel"),
        Link("sum(X[q + Δ{h}] W{h}, h) + b", "one term of the sum over k is left"),
        Link("sum(X[q + Δ{h}] C[Δ{h}], h) + b", "the kernel at the shift of head h"),
        Link("sum(X[q + Δ] C[Δ], Δ) + b", "K² heads, one at each shift: h is counted by Δ"),
        Link("conv[q]", "which is the convolution of X with C, zeros around it"),
    ]
    return Draft(
        "convolution",
        "Heads as a convolution",
        "an image X, 0 outside; K² heads with centres Δ^(h), a kernel C of K × K matrices C_Δ, and a bias b",
        [Chain("Y[q]", links, ground)],
        definitions,
        "Heads may stand in any order. W^(h) = W_v^(h) W_out^(h) is any matrix if D_o >= min(D_i, D_out).",
    )


def _image(random: Random) -> Environment:
    """A random image, kernel and order of the heads; its convolution by plain loops."""

    def matrix(rows: int) -> Any:
        return [[Fraction(random.randint(-9, 9), 4) for _ in range(CHANNELS)] for _ in range(rows)]

    image = {pixel: matrix(1)[0] for pixel in product(range(SIZE), repeat=2)}
    kernel = {shift: matrix(CHANNELS) for shift in SHIFTS}
    bias = matrix(1)[0]
    answer = {pixel: list(bias) for pixel in image}
    for y, x in image:
        for (dy, dx), weights in kernel.items():
            for c, number in enumerate(image.get((y + dy, x + dx), [])):
                for d in range(CHANNELS):
                    answer[y, x][d] += number * weights[c][d]
    zeros = dict.fromkeys(product(range(-1, SIZE + 1), repeat=2), [0] * CHANNELS)
    order = random.sample(SHIFTS, len(SHIFTS))
    return {
        **{
            "each q": [exact_array(pixel) for pixel in image],
            "each k": [exact_array(pixel) for pixel in zeros],
        },
        **{"each h": range(len(order)), "each Δ": [exact_array(shift) for shift in SHIFTS]},
        **{"X": _arrays({**zeros, **image}), "C": _arrays(kernel), "conv": _arrays(answer)},
        **{"Δ{}": exact_array(order), "b": exact_array(bias)},
    }


def _arrays(entries: dict[tuple[int, ...], Any]) -> dict[tuple[int, ...], Any]:
    return {place: exact_array(entry) for place, entry in entries.items()}


def flip() -> Draft:
    """The shift q − Δ in place of q + Δ flips the kernel, shown on the numbers 1 to 9."""
    given, flipped = "((1, 2, 3), (4, 5, 6), (7, 8, 9))", "((9, 8, 7), (6, 5, 4), (3, 2, 1))"
    definitions = [
        ("Y[q]", "sum(X[q - Δ] C[Δ], Δ)", "heads with W^(h) = C_Δ, where shifts are q − k"),
        ("U[q]", "sum(X[q - Δ] C[-Δ], Δ)", "the same heads with W^(h) = C_(−Δ)"),
    ]
    images = Instances(
        f"exactly, at the pixels of {IMAGES} random {SIZE} × {SIZE} images",
        lambda random: _numbers([random.randint(1, 9) for _ in range(SIZE**2)]),
        definitions,
        many=IMAGES,
        over=("q",),
    )
    light = Instances(
        "exactly, read off the answer to an image with a single 1 in its middle",
        lambda random: _numbers([int(index == SIZE**2 // 2) for index in range(SIZE**2)]),
        definitions,
    )
    sums = [
        Link("sum(X[q + Δ] C[-Δ], Δ)", "Δ → −Δ goes through the same shifts, in C too"),
        Link("sum(X[q + Δ] C[Δ], Δ)", "not so: q − Δ → q + Δ with C left as it is", "≠"),
    ]
    return Draft(
        "flip",
        "The sign of a shift flips the kernel",
        "shifts as q − k: the head with centre Δ attends to q − Δ; an image X, 0 outside; a 3 × 3 kernel C",
        [
            Chain("Y[q]", sums, images),
            Chain("matrix(C[Δ], Δ)", [Link(given, "the kernel that was meant")], light),
            Chain("matrix(Y[-Δ], Δ)", [Link(flipped, "the kernel that these heads apply: flipped")], light),
            Chain(
                "matrix(U[-Δ], Δ)", [Link(given, "with W^(h) = C_(−Δ) it is the one that was meant")], light
            ),
        ],
        definitions,
        "With shifts as k − q nothing flips: the head with centre Δ attends to q + Δ, and W^(h) = C_Δ.",
    )


def _numbers(image: list[int]) -> Environment:
    """An image of single numbers around the pixel (0, 0), and the kernel 1 to 9."""
    pixels = [exact_array(shift) for shift in SHIFTS]
    numbers = dict.fromkeys(product(range(-2, 3), repeat=2), exact(0))
    return {
        **{"each q": pixels, "each Δ": pixels, "C": {shift: exact(i + 1) for i, shift in enumerate(SHIFTS)}},
        "X": {**numbers, **{shift: exact(value) for shift, value in zip(SHIFTS, image, strict=True)}},
    }
