"""Training: what is recorded, the control, and interruptions that leave no trace in the numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made_heads import SMALL, images, record

from lattend.errors import DomainError, LattendError, NamingError, TensorError
from lattend.study.heads.record import Progress, Record
from lattend.study.heads.training import train


class Stop(Exception):
    pass


def without_seconds(result: Record) -> Any:
    data = result.json()
    for run in data["runs"].values():
        run["epochs"] = [{name: one[name] for name in ("epoch", "loss", "accuracy")} for one in run["epochs"]]
    return data


def test_moments_begin_with_the_start_and_stand_closer_in_the_first_epoch() -> None:
    result = record()
    for run in result.runs.values():
        assert [moment.epoch for moment in run.moments] == [
            0,
            1 / 4,
            1 / 2,
            3 / 4,
            1,
            2,
        ]  # of 4 steps an epoch
        assert [one.epoch for one in run.epochs] == [1, 2]
        assert all(moment.centres.shape == (2, 4, 2) for moment in run.moments)
        assert all(moment.alpha.shape == (2, 4) for moment in run.moments)


def test_the_control_begins_alike_and_keeps_its_centres() -> None:
    result = record()
    assert result.control is not None
    first, last = result.trained.moments[0], result.trained.moments[-1]
    for moment in result.control.moments:
        assert np.array_equal(moment.centres, first.centres)
    assert (last.centres != first.centres).all()
    assert not np.array_equal(result.control.moments[-1].alpha, first.alpha)  # widths learn in both
    assert np.array_equal(result.control.moments[0].alpha, first.alpha)
    assert record(control=False).control is None
    alone = replace(result, runs={"trained": result.trained})
    assert without_seconds(record(control=False)) == without_seconds(alone)


def test_it_learns() -> None:
    wider: dict[str, Any] = SMALL | {"width": 16}
    result = train(images(256), epochs=15, control=False, **wider)
    assert result.trained.epochs[0].loss > 0.6
    assert result.trained.epochs[-1].loss < 0.1
    assert result.trained.epochs[-1].accuracy > 0.95


def test_equal_seeds_give_equal_records_and_leave_torch_as_it_is() -> None:
    threads = torch.get_num_threads()
    torch.manual_seed(9)
    runs = [without_seconds(record(1, seed=seed)) for seed in (3, 3, 4)]
    assert torch.rand(1).item() == torch.rand(1, generator=torch.Generator().manual_seed(9)).item()
    assert torch.get_num_threads() == threads
    assert runs[0] == runs[1]
    assert runs[0]["runs"] != runs[2]["runs"]


@pytest.mark.parametrize("at", [("trained", 1), ("trained", 3), ("control", 2)])
def test_an_interrupted_run_ends_in_the_same_numbers(tmp_path: Path, at: tuple[str, int]) -> None:
    whole = record(3)

    def stop(done: Progress) -> None:
        if (done.run, done.result.epoch) == at:
            raise Stop

    with pytest.raises(Stop):
        record(3, checkpoint=tmp_path, progress=stop)
    assert {path.name for path in tmp_path.iterdir()} == {"trained.pt", *({"control.pt"} & {f"{at[0]}.pt"})}
    seen: list[tuple[str, int]] = []
    again = record(3, checkpoint=tmp_path, progress=lambda done: seen.append((done.run, done.result.epoch)))
    everything = [(run, epoch) for run in ("trained", "control") for epoch in (1, 2, 3)]
    assert seen == everything[everything.index(at) + 1 :]
    assert without_seconds(again) == without_seconds(whole)
    assert not list(tmp_path.iterdir())  # all is done


def test_an_interruption_within_an_epoch_goes_on_from_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lattend.study.heads import training

    whole, step, steps = record(2), training.take_step, []

    def stopping(self: Any, *given: Any) -> Any:
        steps.append(1)
        if len(steps) == 6:  # the second of the second epoch
            raise KeyboardInterrupt
        return step(self, *given)

    monkeypatch.setattr(training, "take_step", stopping)
    with pytest.raises(KeyboardInterrupt):
        record(2, checkpoint=tmp_path)
    assert without_seconds(record(2, checkpoint=tmp_path)) == without_seconds(whole)


def test_weights_go_on_to_the_last_bit(tmp_path: Path) -> None:
    """The record has six digits of a number; the weights have all."""
    kept: list[dict[str, Any]] = []

    def finished(folder: Path) -> None:
        kept.append(torch.load(folder / "trained.pt", weights_only=True)["weights"])

    def stop(done: Progress) -> None:
        if done.result.epoch == 1:
            raise Stop

    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    options: dict[str, Any] = {"control": False}
    with pytest.raises(Stop):
        record(2, checkpoint=tmp_path / "parts", progress=stop, **options)
    for name in ("whole", "parts"):
        folder = tmp_path / name
        record(
            2,
            checkpoint=folder,
            progress=lambda done, folder=folder: finished(folder) if done.result.epoch == 2 else None,
            **options,
        )
    assert kept[0].keys() == kept[1].keys()
    assert all(torch.equal(kept[0][name], kept[1][name]) for name in kept[0])


def test_another_run_is_not_taken_up(tmp_path: Path) -> None:
    def stop(done: Progress) -> None:
        raise Stop

    with pytest.raises(Stop):
        record(2, checkpoint=tmp_path, progress=stop)
    with pytest.raises(
        DomainError, match=r'trained.pt" is the checkpoint of a run with seed = 0, not 1; repeat'
    ):
        record(2, checkpoint=tmp_path, seed=1)
    with pytest.raises(DomainError, match="a run with other data; repeat"):
        train(images(seed=5), epochs=2, checkpoint=tmp_path, **SMALL)
    relabelled = images()._replace(train_labels=1 - images().train_labels)
    with pytest.raises(DomainError, match="a run with other labels; repeat"):
        train(relabelled, epochs=2, checkpoint=tmp_path, **SMALL)
    (tmp_path / "trained.pt").write_text("hello")
    with pytest.raises(LattendError, match=r'trained.pt" is no checkpoint of heads in training'):
        record(2, checkpoint=tmp_path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"layers": 0}, "layers must be a whole number from 1 on, got 0"),
        ({"epochs": 0}, "epochs must be a whole number from 1 on, got 0"),
        ({"kernel": 1.5}, "kernel must be a whole number from 1 on"),
        ({"kernel": 40}, "3,200 heads are more than a picture shows; give at most 1,024"),
        ({"rate": 0}, "rate must be above 0, got 0"),
        ({"rate": 1e30}, "in epoch 1 the loss is not finite; lower rate, which is 1e30"),
        ({"patch": 4}, "a side of 6 pixels is not cut into patches of 4; give a divisor"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"device": "gpu"}, '"cpu" or "cuda", not \'gpu\''),
    ],
)
def test_wrong_settings(options: dict[str, Any], said: str) -> None:
    with pytest.raises(LattendError, match=said):
        record(**({"epochs": 1} | options))


def test_wrong_images() -> None:
    with pytest.raises(NamingError, match="data is one of digits, fashion, cifar10, not 'cats'"):
        train("cats")
    with pytest.raises(NamingError, match="folder and fetch are for images by their name"):
        train(images(), fetch=True)
    with pytest.raises(TensorError, match=r"to train on are \[1, 6, 6\], those to test \[1, 7, 6\]"):
        train(images()._replace(test=np.zeros((32, 1, 7, 6), np.uint8)), epochs=1, **SMALL)


def test_arrays_may_be_read_only_and_labels_of_any_whole_type() -> None:
    given = images()
    part = given._replace(train_labels=given.train_labels.astype(np.uint8))
    part.train.setflags(write=False)
    result = train(part, epochs=1, **SMALL)
    assert without_seconds(result) == without_seconds(record(1))


def test_progress_reads_well() -> None:
    lines: list[str] = []
    record(1, control=False, progress=lambda done: lines.append(str(done)))
    assert lines[0].startswith("trained   epoch   1 of 1   loss 0.")
    assert " from the query   0 s" in lines[0]
