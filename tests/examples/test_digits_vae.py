"""The example of the digits' VAE runs, and its baseline is what it says."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

import lattend as lt
from lattend.study.image_sets import Digits

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits_vae.py"


def test_it_beats_the_table_and_writes_its_pictures(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lattend.study.generative.handwritten.K", 8)
    example.main(["--epochs", "3", "--latent", "2", "--out", str(tmp_path / "found")])
    told = capsys.readouterr().out.replace("−", "-")
    assert "1,437 digits to train on, 360 to test" in told
    elbo, tighter, alone = (
        float(re.findall(rf"^{name} +(-[\d.]+)", told, re.MULTILINE)[0])
        for name in ("ELBO", "bound", "each pixel on its own")
    )
    assert alone == pytest.approx(-107.97, abs=0.01)
    assert alone < elbo < tighter < -78
    names = {"samples", "rebuilt", "between", "latent", "training", "plane"}
    wanted = {f"vae_{name}{ending}" for name in names for ending in (".png", ".svg")}
    assert {path.name for path in (tmp_path / "found").iterdir()} == wanted


@pytest.mark.parametrize("binary", [False, True])
def test_the_table_counts_and_adds_one(example: ModuleType, binary: bool) -> None:
    levels = 2 if binary else 17
    train, test = (torch.randint(levels, (many, 8, 8)) for many in (30, 4))
    kind = {} if binary else {"decoder": "categorical", "levels": 17}
    nats = 0.0
    for image in test.tolist():
        for row in range(8):
            for col in range(8):
                like = int((train[:, row, col] == image[row][col]).sum())
                nats += math.log((like + 1) / (30 + levels))
    data = Digits(train, train[:, 0, 0], test, test[:, 0, 0], levels)
    vae = lt.study.generative.VAE((8, 8), 2, **kind)  # pyright: ignore[reportArgumentType]
    assert example.alone(vae, data) == pytest.approx(nats / 4)


def test_it_says_what_to_install(example: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(SystemExit, match="the digits come with scikit-learn: pip install scikit-learn"):
        example.main([])
