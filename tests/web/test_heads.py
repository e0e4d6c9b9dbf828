"""Heads in training on the page: the record's own numbers, and files that are none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lattend.study.heads.record import Record, digits_record
from lattend.web.worker import reply

PANELS = ("heads", "heads_moment", "heads_findings")


def ask(panel: str, **question: Any) -> tuple[int, dict[str, Any]]:
    status, _, body = reply(panel, "", json.dumps(question).encode())
    return status, json.loads(body)


@pytest.fixture(scope="module")
def other() -> str:
    """A record of one's own: the digits' without the control, for three moments."""
    record = digits_record()
    data = record.json()
    data["runs"] = {"trained": {**data["runs"]["trained"], "moments": data["runs"]["trained"]["moments"][:3]}}
    return json.dumps(data)


def test_every_moment_of_the_record_is_there() -> None:
    status, found = ask("heads")
    record = digits_record()
    assert status == 200
    assert [run["name"] for run in found["runs"]] == list(record.runs)
    for shown, run in zip(found["runs"], record.runs.values(), strict=True):
        assert [one["centres"] for one in shown["moments"]] == [
            moment.centres.tolist() for moment in run.moments
        ]
        assert shown["accuracy"] == [one.accuracy for one in run.epochs]


def test_a_moment_in_numbers_is_the_librarys() -> None:
    _, found = ask("heads_moment", moment=4, run="control")
    moment = digits_record().runs["control"].moments[4]
    assert [row[1] for row in found["table"]["rows"]] == [f"{far:.2f}" for far in moment.centre_distances()]
    assert "centres held fixed" in found["title"]


def test_the_findings_are_the_reports() -> None:
    _, found = ask("heads_findings")
    assert found["findings"] == list(digits_record().summary()["findings"].values())
    assert [one["title"] for one in found["spreads"]][-1] == "test accuracy"
    assert not {part["text"] for part in found["report"]["parts"]} & set(found["findings"])


def test_a_record_of_ones_own_is_read(other: str) -> None:
    status, found = ask("heads", record=other)
    assert status == 200
    assert [(run["name"], len(run["moments"])) for run in found["runs"]] == [("trained", 3)]
    assert ask("heads_moment", record=other, moment=2)[0] == 200
    status, found = ask("heads_moment", record=other, moment=3)
    assert (status, found["message"]) == (422, "the run has 3 moments, numbered from 0, and no 3")
    status, found = ask("heads_moment", record=other, run="control")
    assert (status, found["message"]) == (422, "this record has trained, not 'control'")
    assert Record.of(other).control is None


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("text", ["x", "{}", "[" * 5000, '{"kind": "heads in training", "runs": 3}', "null"])
def test_another_file_says_that_it_is_none(panel: str, text: str) -> None:
    status, found = ask(panel, record=text)
    assert status == 422
    assert found["message"] == "this is no record of heads in training; `lattend heads train` writes one"


def test_the_picture_is_of_the_moment() -> None:
    status, _, body = reply("heads_moment", "svg", json.dumps({"moment": 0}).encode())
    assert status == 200
    assert b"before training" in body


def test_no_circle_that_fits_into_the_image_is_cut_off() -> None:
    _, found = ask("heads")
    side = found["reach"] + 0.5
    record = digits_record()
    most = max(record.settings.rows, record.settings.cols) - 0.5
    cut = 0
    for run in record.runs.values():
        for moment in run.moments:
            ends = abs(moment.centres).max(-1) + moment.half_radii()
            assert ((ends <= side) | (ends > most)).all()
            cut += int((ends > 4.5).sum())
    assert cut  # which a frame of the centres alone would cut off
