"""Patches counted by enumeration, and the picture of them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lattend.errors import DomainError, NamingError
from lattend.nn.images.patch_grid import Cuts, patch_grid
from lattend.nn.pictures.patches import LEFT_OUT, ZEROS, draw_patches

sizes = st.integers(1, 40)
patch_sizes = st.integers(1, 9)


def starts(size: int, patch: int, stride: int, padding: str) -> list[int]:
    """Where patches begin, one after another while they fit, or until the image has ended."""
    result = [0]
    while True:
        begin, covered = result[-1] + stride, result[-1] + patch
        if begin + patch <= size if padding == "crop" else covered < size:
            result.append(begin)
        else:
            return result


@given(sizes, patch_sizes, patch_sizes, st.sampled_from(["crop", "zeros"]))
def test_tokens_are_those_of_going_along(size, patch, stride, padding):
    if padding == "crop" and size < patch:
        with pytest.raises(DomainError, match=f"a patch of {patch} rows does not fit in an image of {size}"):
            patch_grid(size, patch, stride, padding)
        return
    cuts = patch_grid(size, patch, stride, padding).rows
    begin = starts(size, patch, stride, padding)
    assert cuts.tokens == len(begin)
    covered = {pixel for start in begin for pixel in range(start, start + patch)}
    assert cuts.added == max(0, max(covered) + 1 - size)
    missing = [pixel for pixel in range(size) if pixel not in covered]
    assert cuts.cropped == len([pixel for pixel in missing if pixel > max(covered)])
    assert cuts.skipped == len([pixel for pixel in missing if pixel < max(covered)])
    second = set(range(stride, stride + patch))
    assert cuts.overlap == len(second & set(range(patch)))


@given(sizes, patch_sizes, patch_sizes)
def test_an_error_means_that_crop_and_zeros_differ(size, patch, stride):
    if size < patch:
        return
    crop, zeros = (patch_grid(size, patch, stride, padding).rows for padding in ("crop", "zeros"))
    if crop == zeros:
        assert patch_grid(size, patch, stride).rows == crop
    else:
        with pytest.raises(DomainError, match=f"{crop.cropped} .* left over.*adds {zeros.added}$"):
            patch_grid(size, patch, stride)


@given(sizes, patch_sizes, patch_sizes)
def test_an_image_without_what_is_cropped_or_with_the_zeros_is_no_error(size, patch, stride):
    zeros = patch_grid(size, patch, stride, "zeros").rows
    assert not zeros.cropped and patch_grid(size + zeros.added, patch, stride).rows.tokens == zeros.tokens
    if size >= patch:
        crop = patch_grid(size, patch, stride, "crop").rows
        assert not crop.added and patch_grid(size - crop.cropped, patch, stride).rows.tokens == crop.tokens


def test_a_stride_longer_than_the_patch():
    """Patches of 2 every 5 in 10 pixels: 0–1, 5–6; 7, 8 and 9 are left over, and 10–11 would be the next."""
    with pytest.raises(
        DomainError,
        match=r'^10 rows are not patches of 2 every 5: 3 are left over; padding="crop" leaves them out, '
        r'padding="zeros" adds 2$',
    ):
        patch_grid(10, 2, 5)
    assert patch_grid(10, 2, 5, "zeros").rows == Cuts(10, 2, 5, 3)
    assert patch_grid(12, 2, 5).rows.tokens == 3
    assert draw_patches(10, 2, 5, "zeros").facts[2:] == (
        ("between patches", "6 rows and 6 columns in no patch"),
        ("zeros added", "2 rows and 2 columns at the end"),
    )


def test_messages():
    with pytest.raises(
        DomainError,
        match=r'^225 columns are not patches of 16 every 16: 1 is left over; padding="crop" leaves it out, '
        r'padding="zeros" adds 15$',
    ):
        patch_grid((224, 225), 16)
    with pytest.raises(NamingError, match="padding of patches is one of error, crop, zeros, not 'reflect'"):
        patch_grid(224, 16, padding="reflect")
    wrongs: list[Any] = [0, (4, 0), (1, 2, 3), True]
    for wrong in wrongs:
        with pytest.raises(DomainError, match="patch is a whole number from 1 up, or"):
            patch_grid(8, wrong)


def test_the_picture_of_a_vision_transformer():
    result = draw_patches(224, 16)
    assert result.facts == (
        ("tokens", "14 × 14 = 196"),
        ("a patch", "16 × 16 = 256 pixels, one every 16"),
        ("left over", "nothing"),
    )
    assert result.data["tokens"] == 196 and result.data["rows"]["tokens"] == 14
    assert "\n208 182 183" in result.terminal(80, False, "utf-8")
    assert result.panels[0].cells.shape == (14, 14)
    assert ">195<" in result.svg()


def painted(result) -> np.ndarray:
    """The labels of looks by pixel, from a panel with a cell a pixel."""
    panel = result.panels[0]
    return np.array([[panel.looks[cell].label for cell in row] for row in panel.cells.tolist()])


@given(st.integers(1, 16), st.integers(1, 16), st.integers(1, 5), st.integers(1, 5))
def test_pixels_show_how_many_patches_lie_over_them(rows, cols, patch, stride):
    result = draw_patches((rows, cols), patch, stride, "zeros")
    grid = patch_grid((rows, cols), patch, stride, "zeros")
    shape = [max(cuts.size, cuts.end) for cuts in grid]
    over = np.zeros(shape, int)
    for y in range(grid.rows.tokens):
        for x in range(grid.cols.tokens):
            over[y * stride : y * stride + patch, x * stride : x * stride + patch] += 1
    step = over.shape[0] // result.panels[0].cells.shape[0]  # equal pixels are drawn as one cell
    labels = painted(result).repeat(step, 0).repeat(step, 1)
    assert labels.shape == over.shape
    beyond = np.add.outer(np.arange(shape[0]) >= rows, np.arange(shape[1]) >= cols)
    assert ((labels == LEFT_OUT.label) == (over == 0)).all()
    assert ((labels == ZEROS.label) == (beyond & (over > 0))).all()
    for label, count in zip(labels[~beyond], over[~beyond], strict=True):
        if count > 1:
            low, _, high = label.removeprefix("in ").removesuffix(" patches").partition(" to ")
            assert int(low) <= count <= int(high or low)


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 40), st.integers(1, 40))
def test_any_patches_are_drawn_and_written(rows, cols, patch, stride):
    result = draw_patches((rows, cols), patch, stride, "zeros")
    assert max(result.panels[0].cells.shape) <= 300
    assert result.scene.width < 900
    for width in (16, 40, 100):
        assert max(map(len, result.terminal(width, False, "utf-8").split("\n"))) <= width


def test_many_patches_are_cut_to_a_corner():
    result = draw_patches(2048, 4, 2, "crop")
    assert "shown: 130 by 130 of 2,048 by 2,048 pixels, from the upper left corner" in result.caption
    assert Cuts(2048, 4, 2, 1023) == patch_grid(2048, 4, 2).cols
    assert "the upper left corner" in result.terminal(80, False, "utf-8")
