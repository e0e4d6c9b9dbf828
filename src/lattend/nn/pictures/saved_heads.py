"""Saved heads: centres and widths read from JSON, from numpy's .npz, or from a state dict in a .pt file."""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.errors import LattendError, NamingError, TensorError
from lattend.nn.attention.gaussian_heads import Head, from_covariance, isotropic

Floats = NDArray[np.float64]
Layers = dict[str, list[Head]]
ENDINGS = (".json", ".npz", ".pt", ".pth")
WIDTHS = ("root", "alpha", "precision", "covariance")
EXAMPLE = '[{"centre": [0, 1], "alpha": 2}]'


def read_heads(path: str | os.PathLike[str]) -> Layers:
    """The heads of each layer in a file, by the layer's name.

    A .pt file holds the state dict of a layer or a model with the quadratic encoding, and needs torch; a .npz
    the same arrays: centres [heads, 2], and root, alpha, precision or covariance. JSON has a list of heads,
    or layers by name.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise LattendError(f'cannot read heads from "{path}": the ending is not one of {", ".join(ENDINGS)}')
    if not path.is_file():
        raise LattendError(f'there is no file "{path}"')
    if ending == ".json":
        return _from_json(path)
    arrays = _arrays(path) if ending == ".npz" else _tensors(path)
    found = heads_of_arrays(arrays)
    if not found:
        some = ", ".join(list(arrays)[:6]) or "nothing"
        raise NamingError(
            f'"{path}" has no heads with the quadratic encoding: no centres [heads, 2] beside '
            f"{', '.join(WIDTHS[:-1])} or {WIDTHS[-1]}; it has {some}{', …' if len(arrays) > 6 else ''}"
        )
    return found


def heads_of_arrays(arrays: Mapping[str, Any]) -> Layers:
    """The heads of every layer whose centres and widths are among these arrays, a state dict's for instance.

    >>> heads_of_arrays({"first.centres": [[0, 1]], "first.alpha": 2.0})
    {'first': [Head(centre=(0.0, 1.0), precision=(2.0, 0.0, 2.0))]}
    """
    found: Layers = {}
    for key in arrays:
        prefix, _, last = key.rpartition(".")
        if last != "centres":
            continue
        start = f"{prefix}." if prefix else ""
        kind = next((kind for kind in WIDTHS if f"{start}{kind}" in arrays), None)
        if kind is not None:
            name = prefix.removesuffix(".encoding").removesuffix("encoding")
            found[name] = _heads(name or "the layer", arrays[key], kind, arrays[f"{start}{kind}"])
    return found


def _heads(name: str, centres: Any, kind: str, widths: Any) -> list[Head]:
    places, wide = _floats(f"centres of {name}", centres), _floats(f"{kind} of {name}", widths)
    if places.ndim == 2 and places.shape[1] == 1:  # on a line heads lie along one row
        places = np.concatenate([np.zeros_like(places), places], axis=1)
    if places.ndim != 2 or places.shape[1] != 2:
        raise TensorError(f"centres of {name} are [heads, 2], got {list(places.shape)}")
    many = len(places)
    if kind in ("root", "alpha") and wide.ndim < 2:
        wide = np.broadcast_to(wide, (many,)) if wide.ndim == 0 else wide
        wanted = [many]
    else:
        wanted = [many, 3]
    if list(wide.shape) != wanted or (kind == "alpha" and wide.ndim == 2):
        heads = f"{many} head{'s' if many > 1 else ''}"
        raise TensorError(f"{kind} of {name} is {wanted} for {heads}, got {list(wide.shape)}")
    return [
        _head((float(place[0]), float(place[1])), kind, width)
        for place, width in zip(places, wide, strict=True)
    ]


def _head(centre: tuple[float, float], kind: str, width: Any) -> Head:
    if kind == "covariance":
        return from_covariance(centre, [float(number) for number in width])
    if kind == "precision":
        a, b, c = (float(number) for number in width)
        return Head(centre, (a, b, c))
    if np.ndim(width) == 0:
        alpha = float(width) ** 2 if kind == "root" else float(width)
        return isotropic(centre, alpha) if alpha else Head(centre, (0.0, 0.0, 0.0))
    low, cross, high = (float(number) for number in width)  # P = L Lᵀ with L = [[low, 0], [cross, high]]
    return Head(centre, (low * low, low * cross, cross * cross + high * high))


def _floats(name: str, values: Any) -> Floats:
    if hasattr(values, "detach"):  # a tensor of any device and dtype
        values = values.detach().cpu().double().numpy()
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TensorError(f"{name}: {error}") from None


def _arrays(path: Path) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise LattendError(f'cannot read "{path}" as .npz: {error}') from None


def _tensors(path: Path) -> dict[str, Any]:
    """The tensors of a state dict; nothing but weights is loaded, so that a file cannot run code."""
    try:
        import torch
    except ModuleNotFoundError:
        raise LattendError(
            f"\"{path}\" needs torch: pip install 'lattend[torch]'; .npz and .json do not"
        ) from None
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # whatever the bytes of a damaged file lead to
        raise LattendError(
            f'cannot read "{path}": it is no file of weights alone; save layer.state_dict() with torch.save'
        ) from None
    if not isinstance(loaded, Mapping):
        kind = type(loaded).__name__
        raise NamingError(f'"{path}" holds a {kind}, not a state dict: save layer.state_dict()')
    for name in ("state_dict", "model"):  # what checkpoints call it
        loaded = loaded[name] if isinstance(loaded.get(name), Mapping) else loaded
    return {str(name): tensor for name, tensor in loaded.items()}


def _from_json(path: Path) -> Layers:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LattendError(f'cannot read "{path}" as JSON: {error}') from None
    except RecursionError:
        raise LattendError(f'"{path}" has too many brackets inside one another') from None
    if isinstance(data, Mapping) and isinstance(data.get("layers"), Mapping):
        data = data["layers"]
    if isinstance(data, Mapping) and "centres" in data:
        return _must_have(heads_of_arrays(data), path)
    if isinstance(data, Mapping) and "model_type" in data:
        raise NamingError(
            f'"{path}" is the configuration of a model, which has no heads in it: give saved weights, or a '
            f"list such as {EXAMPLE}. `lattend cost {path}` tells what the model costs"
        )
    if isinstance(data, Mapping):
        layers: Layers = {}
        for name, part in data.items():
            own = heads_of_arrays(part).get("") if isinstance(part, Mapping) else _listed(part, path)
            layers |= {name: own} if own else {}
        return _must_have(layers, path)
    return _must_have({"": _listed(data, path)}, path)


def _must_have(layers: Layers, path: Path) -> Layers:
    if not any(layers.values()):
        raise NamingError(f'"{path}" has no heads; write them as {EXAMPLE}')
    return layers


def _listed(data: Any, path: Path) -> list[Head]:
    """A list of heads, each with a centre and one of alpha, precision and covariance."""
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise NamingError(f'heads in "{path}" are a list such as {EXAMPLE}, not {data!r:.40}')
    found: list[Head] = []
    for place, one in enumerate(data):
        kinds = [kind for kind in WIDTHS[1:] if isinstance(one, Mapping) and kind in one]
        if not kinds or "centre" not in one:
            raise NamingError(f'head {place} in "{path}" needs a centre and alpha, precision or covariance')
        try:
            (y, x), width = (float(number) for number in one["centre"]), one[kinds[0]]
            numbers = [float(number) for number in width] if isinstance(width, Sequence) else float(width)
            found.append(_head((y, x), kinds[0], numbers))
        except (TypeError, ValueError):
            raise NamingError(f'head {place} in "{path}" is not made of numbers: {json.dumps(one)}') from None
        if not all(math.isfinite(number) for number in (*found[-1].centre, *found[-1].precision)):
            raise NamingError(f'head {place} in "{path}" is not finite: {json.dumps(one)}')
    return found
