"""lattend complete: progress, picture, files, and what it says to wrong input."""

import json

import pytest

from lattend.study import image_sets
from lattend.study.image_sets import Digits


@pytest.fixture
def few(monkeypatch):
    """Few digits, so that it takes no time."""
    data = image_sets.digits()
    small = Digits(
        data.train[:64], data.train_labels[:64], data.test[:60], data.test_labels[:60], data.levels
    )
    monkeypatch.setattr("lattend.study.generative.completion.digits", lambda: small)


def test_it_tells_its_nats_and_draws(lattend, few):
    ran = lattend("complete", "--epochs", "2", "--samples", "1")
    assert ran.code == 0
    assert [line[:12] for line in ran.err.splitlines()] == ["epoch 1 of 2", "epoch 2 of 2"]
    assert ran.out.startswith("Digits completed by a 2-D RNN\nthe top half is given, the rest drawn")
    for name in ("2-D RNN", "each pixel given the one on its left", "each pixel on its own"):
        assert f"\n{name} " in ran.out


def test_a_file_and_json(lattend, few, tmp_path):
    path = tmp_path / "digits.png"
    ran = lattend("complete", "--epochs", "1", "--given", "left", "--out", str(path), "--json")
    data = json.loads(ran.out)
    assert data["file"] == str(path) and data["given"] == "left" and len(data["epochs"]) == 1
    assert set(data["nats"]) == {"2-D RNN", "each pixel given the one on its left", "each pixel on its own"}
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--given", "right"), "given is one of top, left, not 'right'"),
        (("--epochs", "0"), "epochs must be a whole number from 1 on, got 0"),
        (("--epochs", "few"), "--epochs is a whole number, got few"),
    ],
)
def test_wrong_input(lattend, arguments, message):
    ran = lattend("complete", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"lattend: {message}")
