"""The example of the digits runs, and its baselines are what they say."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

EXAMPLE = Path(__file__).parents[2] / "examples" / "complete_digits.py"


def test_it_beats_the_tables_and_writes_its_picture(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example.main(["--epochs", "2", "--minutes", "9", "--out", str(tmp_path / "found" / "digits.png")])
    told = capsys.readouterr().out
    assert "1,437 digits to train on, 360 to test" in told
    net, left, alone = (float(nats) for nats in re.findall(r"^ +([\d.]+)  ", told, re.MULTILINE))
    assert net < left < alone
    assert alone == pytest.approx(107.97, abs=0.01)
    assert left == pytest.approx(101.91, abs=0.01)
    assert (tmp_path / "found" / "digits.png").read_bytes().startswith(b"\x89PNG")
    assert "drawn 3" in (tmp_path / "found" / "digits.svg").read_text()


@pytest.mark.parametrize("left", [False, True])
def test_the_tables_count_and_add_one(example: ModuleType, left: bool) -> None:
    train, test = (torch.randint(17, (many, 8, 8)) for many in (30, 4))
    nats = 0.0
    for image in test.tolist():
        for row in range(8):
            for col in range(8):
                like = [
                    other[row][col]
                    for other in train.tolist()
                    if not (left and col) or other[row][col - 1] == image[row][col - 1]
                ]
                nats -= math.log((like.count(image[row][col]) + 1) / (len(like) + 17))
    assert example.table_nats(train, test, left) == pytest.approx(nats / 4)


def test_it_says_what_to_install(example: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(SystemExit, match="the digits come with scikit-learn: pip install scikit-learn"):
        example.main([])
