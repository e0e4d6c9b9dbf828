"""Patches against torch's unfold and fold, and against pixels picked one by one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import fold, pad, unfold

import lattend as lt
from lattend.errors import DomainError, NamingError, TensorError

Patches: Any = lt.nn.Patches
SIDE = st.integers(1, 4)
PAIR = st.tuples(SIDE, SIDE)


def image_of(c: int, rows: int, cols: int) -> torch.Tensor:
    return torch.arange(2.0 * c * rows * cols, dtype=torch.float64).view(2, c, rows, cols) + 1


def test_a_photograph_is_196_tokens() -> None:
    assert Patches(16)(torch.zeros(1, 3, 224, 224)).shape == (1, 14, 14, 768)
    assert Patches(16, flat=True)(torch.zeros(1, 3, 224, 224)).shape == (1, 196, 768)
    assert Patches(16).grid(224, 224).tokens == 196


@settings(max_examples=60)
@given(st.integers(1, 3), st.tuples(st.integers(4, 11), st.integers(4, 11)), PAIR, PAIR)
def test_cropped_they_are_unfold(
    c: int, sizes: tuple[int, int], size: tuple[int, int], stride: tuple[int, int]
) -> None:
    image = image_of(c, *sizes)
    wanted = unfold(image, size, stride=stride).transpose(1, 2)
    assert torch.equal(Patches(size, stride, "crop", flat=True)(image), wanted)
    places = [(side - patch) // step + 1 for side, patch, step in zip(sizes, size, stride, strict=True)]
    found = Patches(size, stride, "crop")(image)
    assert found.shape == (2, *places, c * size[0] * size[1])
    assert torch.equal(found.flatten(1, 2), wanted)


@settings(max_examples=60)
@given(st.integers(1, 2), st.tuples(st.integers(1, 9), st.integers(1, 9)), PAIR, PAIR)
def test_filled_up_they_hold_every_pixel(
    c: int, sizes: tuple[int, int], size: tuple[int, int], stride: tuple[int, int]
) -> None:
    """With zeros at the bottom and the right, patch (i, j) begins at (i, j) strides."""
    image = image_of(c, *sizes)
    found = Patches(size, stride, "zeros")(image)
    wide = pad(image, (0, 20, 0, 20))
    for i in range(found.shape[1]):
        for j in range(found.shape[2]):
            top, left = i * stride[0], j * stride[1]
            patch = wide[:, :, top : top + size[0], left : left + size[1]]
            assert torch.equal(found[:, i, j], patch.flatten(1))
    for side, patch, step, places in zip(sizes, size, stride, found.shape[1:3], strict=True):
        assert (places - 1) * step + patch >= side  # the last patch ends with the image, or behind it
        assert places == 1 or (places - 2) * step + patch < side  # and no other one does
    if stride[0] <= size[0] and stride[1] <= size[1]:  # no gaps: nothing is lost, no patch is all zeros
        assert set(found.flatten().tolist()) | {0.0} == {*image.flatten().tolist(), 0.0}
        assert found.ne(0).any(-1).all()


@settings(max_examples=40)
@given(st.integers(1, 3), st.tuples(st.integers(1, 9), st.integers(1, 9)), PAIR, st.booleans())
def test_joined_they_are_the_image(c: int, sizes: tuple[int, int], size: tuple[int, int], flat: bool) -> None:
    image = image_of(c, *sizes).requires_grad_()
    patches = Patches(size, padding="zeros", flat=flat)
    tokens = patches(image)
    assert torch.equal(patches.join(tokens, *sizes), image)
    (grad,) = torch.autograd.grad((tokens * tokens).sum(), image)
    assert torch.equal(grad, 2 * image)


def test_joined_they_are_what_fold_gives() -> None:
    tokens = torch.randn(2, 6, 3 * 4 * 2, dtype=torch.float64)
    found = Patches((4, 2), flat=True).join(tokens, 8, 6)
    assert torch.equal(found, fold(tokens.transpose(1, 2), (8, 6), (4, 2), stride=(4, 2)))


def test_a_patch_embedding_is_a_convolution() -> None:
    conv = torch.nn.Conv2d(3, 5, (4, 2), stride=(4, 2), dtype=torch.float64)
    image = torch.randn(2, 3, 8, 6, dtype=torch.float64)
    found = Patches((4, 2))(image) @ conv.weight.flatten(1).T + conv.bias
    torch.testing.assert_close(found, conv(image).permute(0, 2, 3, 1))


def test_whole_numbers_and_no_memory() -> None:
    assert Patches(2)(torch.arange(16).view(1, 1, 4, 4))[0, 1, 0].tolist() == [8, 9, 12, 13]
    assert Patches(7, 4, "zeros")(torch.zeros(1, 3, 224, 224, device="meta")).shape == (1, 56, 56, 147)


ZEROS = torch.zeros


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Patches(0), DomainError, "size of patches is a whole number from 1 up, .* got 0"),
        (lambda: Patches(2.5), DomainError, "size of patches is a whole number from 1 up, .* got 2.5"),
        (lambda: Patches((2, 2, 2)), DomainError, r"or \(rows, cols\), got \(2, 2, 2\)"),
        (
            lambda: Patches(2, (1, 0)),
            DomainError,
            r"stride of patches is a whole .* got \(1, 0\)",
        ),
        (lambda: Patches(2, padding="mirror"), NamingError, "padding of .* one of error, crop, zeros"),
        (lambda: Patches(2)(ZEROS(3, 4, 4)), TensorError, r"an image is \(N, c, .*, got \(3, 4, 4\)"),
        (lambda: Patches(3)(ZEROS(1, 3, 6, 7)), DomainError, "7 columns are not patches of 3 .* 1 is left"),
        (lambda: Patches(2, 5)(ZEROS(1, 3, 12, 10)), DomainError, "10 columns are not .* 3 are left over"),
        (lambda: Patches(3)(ZEROS(1, 3, 2, 7)), DomainError, "a patch of 3 rows does not fit"),
        (lambda: Patches(3, 2).join(ZEROS(1, 3, 3, 9), 7, 7), DomainError, r"of \(3, 3\) that come every"),
        (
            lambda: Patches(3, padding="crop").join(ZEROS(1, 2, 2, 9), 7, 7),
            DomainError,
            r"patches of \(3, 3\) that leave pixels out do not make one image of 7 × 7",
        ),
        (
            lambda: Patches(3).join(ZEROS(1, 2, 3, 9), 6, 6),
            TensorError,
            r"tokens of 6 × 6 pixels are \(N, 2, 2, c\*9\), got \(1, 2, 3, 9\)",
        ),
        (lambda: Patches(3, flat=True).join(ZEROS(1, 4, 8), 6, 6), TensorError, r"are \(N, 4, c\*9\)"),
    ],
)
def test_what_makes_no_patches(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_channels_last_are_noticed() -> None:
    with pytest.raises(TensorError, match=r"got \(1, 224, 224, 3\); .* write image.movedim\(-1, 1\)"):
        Patches(16)(torch.zeros(1, 224, 224, 3))
    narrow = torch.zeros(1, 3, 224, 3)  # channels first, and columns to be filled up
    assert Patches(16, padding="zeros")(narrow).shape == (1, 14, 1, 768)


@given(PAIR, st.integers(1, 4))
def test_numbers_of_a_patch(patch: tuple[int, int], channels: int) -> None:
    grid = Patches(patch).grid(*patch)
    found = Patches(patch)(image_of(channels, *patch))
    assert grid.numbers(channels) == found.shape[-1]
    assert grid.numbers_text(channels) == f"{patch[0]} × {patch[1]} × {channels} = {found.shape[-1]}"
