"""draw_heads: the heads of a layer over the image, from their numbers, a module, a state dict or a file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lattend.draw.picture import Picture
from lattend.errors import NamingError
from lattend.nn.attention.gaussian_heads import Head, from_covariance, isotropic, kernel_heads
from lattend.nn.images.patch_grid import pair
from lattend.nn.pictures.head_picture import spots
from lattend.nn.pictures.saved import heads_of_arrays, read_heads
from lattend.nn.pictures.score_picture import scores

Pixel = tuple[int, int]


def draw_heads(
    source: Any, *, size: int | Pixel | None = None, pixel: Pixel | None = None, title: str | None = None
) -> Picture:
    """Heads as ellipses around a query pixel, with their numbers at their centres.

    `source` is a list of heads (`lattend.nn.attention.gaussian_heads.Head`), layers of them by name, a module
    with the quadratic encoding or a model of such, its state dict, or a file of one: .pt, .npz, .json.
    Without a `size` the image has no edges.

    >>> from lattend.nn.attention.gaussian_heads import kernel_heads
    >>> draw_heads(kernel_heads(3)).title
    'Heads around a query pixel'
    """
    heads = _heads(source)
    named = title or (f"Heads of {Path(source).name}" if isinstance(source, str | os.PathLike) else None)
    return spots(heads, None if size is None else pair("size", size), pixel, *([named] if named else []))


def make_heads(
    *,
    kernel: int | Pixel | None = None,
    dilation: int | Pixel | None = None,
    centres: Sequence[Sequence[float]] | None = None,
    alpha: Sequence[float] | None = None,
    covariance: Sequence[Sequence[float]] | None = None,
) -> list[Head]:
    """Heads of a kernel's taps, or at these centres; one `alpha` or `covariance` for all, or one each.

    >>> make_heads(centres=[(0, 1), (1, 0)], alpha=[2])[1]
    Head(centre=(1, 0), precision=(2, 0.0, 2))
    """
    if (kernel is None) == (centres is None):
        raise NamingError("heads are those of a file, of a kernel, or at centres: give one of these")
    if kernel is None and dilation is not None:
        raise NamingError("dilation is the distance from tap to tap of a kernel; leave it out")
    if alpha is not None and covariance is not None:
        raise NamingError("give alpha, one width for all directions, or covariance, not both")
    if kernel is not None:
        places = [head.centre for head in kernel_heads(kernel, 1 if dilation is None else dilation)]
    else:
        places = [(centre[0], centre[1]) for centre in centres or ()]
    if covariance is not None:
        spread = _each("covariance", covariance, len(places))
        return [from_covariance(place, one) for place, one in zip(places, spread, strict=True)]
    widths = _each("alpha", alpha or [1.0], len(places))
    return [isotropic(place, one) for place, one in zip(places, widths, strict=True)]


def draw_scores(
    encoding: str,
    *,
    size: int | Pixel | None = None,
    pixel: Pixel | None = None,
    width: int = 16,
    seed: int = 0,
    centres: Sequence[Sequence[float]] | None = None,
    alpha: Sequence[float] | None = None,
) -> Picture:
    """Heat maps of the terms of a positional encoding's score.

    The quadratic one takes one centre and one alpha.

    >>> draw_scores("quadratic", centres=[(1, 2)], alpha=[0.5]).title
    'Scores of the quadratic encoding'
    """
    if encoding != "quadratic" and (centres is not None or alpha is not None):
        raise NamingError(f"centres and alpha are for the quadratic encoding, not for {encoding}")
    for name, given in (("centres", centres), ("alpha", alpha)):
        if given is not None and len(given) != 1:
            raise NamingError(f"scores are those of one head: give one of {name}, not {len(given)}")
    centre = (1.0, 2.0) if centres is None else (centres[0][0], centres[0][1])
    image = (9, 9) if size is None else pair("size", size)
    return scores(
        encoding,
        image,
        pixel,
        width=width,
        seed=seed,
        centre=centre,
        alpha=1.0 if alpha is None else alpha[0],
    )


def _each(name: str, given: Sequence[Any], heads: int) -> list[Any]:
    if len(given) not in (1, heads):
        have = f"{heads} heads have one {name}, or one each" if heads > 1 else f"1 head has one {name}"
        raise NamingError(f"{have}, not {len(given)}")
    return list(given) * (heads if len(given) == 1 else 1)


def _heads(source: Any) -> Sequence[Head] | Mapping[str, Sequence[Head]]:
    if isinstance(source, str | os.PathLike):
        return _one(read_heads(source))
    if hasattr(source, "state_dict"):
        return _one(_known(heads_of_arrays(source.state_dict()), source))
    if isinstance(source, Mapping) and any(str(name).endswith("centres") for name in source):
        return _one(_known(heads_of_arrays(source), source))
    layers: Any = source.values() if isinstance(source, Mapping) else [source]
    for layer in layers:
        if not isinstance(layer, Sequence) or not all(isinstance(head, Head) for head in layer):
            raise NamingError(
                "heads are a list of lattend.nn.attention.gaussian_heads.Head, layers of them by name, "
                f"a module, its state dict or a file, not {layer!r:.60}; kernel_heads(3) there gives those "
                "of a 3 × 3 kernel"
            )
    return source


def _one(layers: Mapping[str, Sequence[Head]]) -> Sequence[Head] | Mapping[str, Sequence[Head]]:
    """A single layer needs no name."""
    return next(iter(layers.values())) if len(layers) == 1 else layers


def _known(layers: Mapping[str, Sequence[Head]], source: Any) -> Mapping[str, Sequence[Head]]:
    if not layers:
        raise NamingError(f"{type(source).__name__} has no heads with the quadratic encoding to draw")
    return layers
