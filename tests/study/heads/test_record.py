"""Records: measures against loops over pixels, files, and what the report says."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_heads import record

from lattend.errors import DomainError, LattendError, NamingError
from lattend.study.heads.findings import OFF, Findings
from lattend.study.heads.record import EpochResult, HeadMoment, HeadRun, HeadSettings, Record, digits_record

SETTINGS = HeadSettings(
    data="drawn",
    train_images=10,
    test_images=400,
    channels=1,
    classes=2,
    rows=4,
    cols=5,
    patch=1,
    kernel=2,
    layers=3,
    width=8,
    epochs=1,
    batch=5,
    rate=1e-3,
    centre_rate=1.0,
    decay=0.0,
    spread=1.0,
    seed=0,
    device="cpu",
)


def moment(epoch: float = 0.0, far: tuple[float, ...] = (1.0, 1.0, 1.0), alpha: float = 1.0) -> HeadMoment:
    """Four heads of each layer as far from the query as `far` says, on its diagonals."""
    around = np.array([(-1, -1), (-1, 1), (1, -1), (1, 1)]) / math.sqrt(2)
    return HeadMoment.of(epoch, [length * around for length in far], np.full((len(far), 4), alpha))


def drawn(start: HeadMoment, end: HeadMoment, control: HeadMoment | None = None) -> Record:
    result = [EpochResult(1, 0.5, 0.75, 2.0)]
    runs = {"trained": HeadRun([start, end], result)}
    if control is not None:
        runs["control"] = HeadRun([start, control], [replace(result[0], accuracy=0.5)])
    return Record(SETTINGS, runs, 100)


def test_distances_and_widths_of_a_layer() -> None:
    result = HeadMoment.of(0, [[(3, 4), (0, 1), (0, 0), (-6, 8)]], [[0.5, 2, 0.125, 50]])
    assert result.centre_distances().tolist() == [4.0]  # (5 + 1 + 0 + 10)/4
    assert result.widths() == pytest.approx([0.75])  # 1, 0.5, 2 and 0.1: the middle of 0.5 and 1


def test_attention_distance_is_that_of_all_pairs_of_pixels() -> None:
    random = np.random.default_rng(0)
    result = HeadMoment.of(0, 3 * random.normal(size=(2, 4, 2)), random.uniform(0.01, 2, (2, 4)))
    rows, cols = 4, 5
    for layer, heads in enumerate(result.heads().values()):
        squares = []
        for head in heads:
            for y in range(rows):
                for x in range(cols):
                    weights = head.weights(rows, cols, (y, x))
                    places = [(u, v) for u in range(rows) for v in range(cols)]
                    squares.append(sum(weights[u, v] * ((u - y) ** 2 + (v - x) ** 2) for u, v in places))
        wanted = math.sqrt(sum(squares) / len(squares))
        assert result.attention_distances(rows, cols)[layer] == pytest.approx(wanted, rel=1e-12)


def test_a_head_far_outside_attends_to_the_edge() -> None:
    result = HeadMoment.of(0, [[(0, 1000)]], [[4.0]])
    wanted = math.sqrt(sum((4 - x) ** 2 for x in range(5)) / 5)  # of five columns always the last
    assert result.attention_distances(1, 5)[0] == pytest.approx(wanted)


def test_centres_off_their_pixels() -> None:
    result = HeadMoment.of(0, [[(0.3, -1.4), (5.0, -2.0), (0.6, 0.7), (-0.5, 0.0)]], np.ones((1, 4)))
    assert result.pixel_distances() == pytest.approx([(0.5 + 0 + 0.5 + 0.5) / 4])


def test_random_places_are_off_their_pixels_by_what_the_report_says() -> None:
    side = (np.arange(1000) + 0.5) / 1000 - 0.5
    assert np.hypot(side[:, None], side).mean() == pytest.approx(OFF, abs=1e-6)


def test_flat_heads_stay_finite() -> None:
    result = HeadMoment.of(0, [[(0, 0)]], [[0.0]])
    assert np.isfinite(result.widths()).all()
    assert result.attention_distances(1, 3)[0] == pytest.approx(math.sqrt((2 * (1 + 4) + 2) / 9))


def test_files_give_back_the_record(tmp_path: Path) -> None:
    result = record()
    path = result.save(tmp_path / "record.json")
    assert json.loads(path.read_text()) == result.json()
    for source in (path, tmp_path):
        again = Record.read(source)
        assert again.settings == result.settings
        assert again.json() == result.json()
    assert again.text() == result.text()


@pytest.mark.parametrize("content", ["hello", "[]", "{}", '{"kind": "heads in training"}', '{"kind": 1}'])
def test_what_is_no_record(tmp_path: Path, content: str) -> None:
    (tmp_path / "record.json").write_text(content)
    with pytest.raises(LattendError, match=r'record.json" is no record of heads in training; `lattend heads'):
        Record.read(tmp_path)


def test_no_file_and_no_moment() -> None:
    with pytest.raises(LattendError, match=r'there is no record "nowhere"; `lattend heads train` writes one'):
        Record.read("nowhere")
    result = drawn(moment(), moment(1))
    assert result.trained.at(1).epoch == 1
    with pytest.raises(DomainError, match="nothing was recorded at epoch 7; there are 0, 1"):
        result.trained.at(7)
    with pytest.raises(NamingError, match="this record has trained, not 'control'"):
        result.run("control")


@pytest.mark.parametrize(
    ("far", "said"),
    [
        ((1.0, 2.0, 3.0), "Every layer gains more than the one before."),
        (
            (0.5, 3.0, 2.0),
            "The last gains more than the first, but not every layer more than the one before.",
        ),
        ((3.0, 2.0, 0.0), "Later layers do not gain more."),
    ],
)
def test_what_is_said_of_depth_follows_from_the_numbers(far: tuple[float, ...], said: str) -> None:
    result = Findings(drawn(moment(), moment(1, far))).depth()
    first, last = (f"{distance:.2f} from the query and began at 1.00" for distance in (far[0], far[-1]))
    assert result == f"Centres of layer 1 end {first}; those of layer 3 {last}. {said}"


def test_gains_are_from_where_each_layer_began() -> None:
    """The last layer ends farther away, but it began there."""
    result = Findings(drawn(moment(0, (1, 1, 5)), moment(1, (2, 2, 5))))
    assert result.gains == pytest.approx([1, 1, 0], abs=1e-5)
    assert result.depth().endswith("Later layers do not gain more.")


def test_what_is_said_of_grids_follows_from_the_numbers() -> None:
    grid = [(0, 0), (0, 1), (1, 0), (1, 1)]
    heap = [(1, 1)] * 4
    start = HeadMoment.of(0, [[(2, 2)] * 4] * 3, np.ones((3, 4)))
    end = HeadMoment.of(1, [grid, heap, [(5, 5)] * 4], np.ones((3, 4)))
    result = Findings(drawn(start, end))
    assert result.nearness() == (
        "Layers 1 and 2 end nearer to a 2 × 2 grid than at first. Layer 1 ends nearer than 19 of 20 draws of "
        "heads as far from the query in random directions."
    )
    assert [fit.distance == 0 for fit in result.fits] == [True, False, False]


def test_the_report_has_the_numbers_and_the_control() -> None:
    result = drawn(moment(), moment(1, (1, 2, 3), 2.0), moment(1, alpha=0.5))
    text = result.text(80)
    assert "trained  75.0% ± 2.2 right of the test images\n" in text  # √(0.75*0.25/400)
    assert "control  50.0% ± 2.5 right of the test images, centres held fixed" in text
    assert "    3  1.00 → 3.00   2.00  0.71 → 0.50" in text
    assert "\n    3     1.00  0.71 → 1.00  " in text  # the control's
    data: dict[str, Any] = result.summary()
    assert data["accuracy"] == {"trained": 0.75, "control": 0.5}
    assert data["layers"][2]["end"]["centre_distance"] == pytest.approx(3, rel=1e-5)
    assert data["layers"][2]["moved"] == pytest.approx(2, rel=1e-5)
    assert data["layers"][1]["control"]["width"] == pytest.approx(1)
    assert max(map(len, result.text(60).splitlines())) <= 60
    assert "Control" not in drawn(moment(), moment(1)).text(80)


def test_several_records_are_compared_by_the_range_of_their_numbers() -> None:
    from lattend.study.heads.findings import compare_records

    first = drawn(moment(), moment(1, (1, 2, 3)), moment(1))
    second = replace(drawn(moment(), moment(1, (2, 1.5, 1)), moment(1)), settings=replace(SETTINGS, seed=7))
    result = compare_records([first, second])
    text = result.text(80)
    assert text.startswith("Heads in training on drawn, 1 epoch: 2 records\n\nseeds    0, 7\n")
    assert "trained  75.0% to 75.0% right\ncontrol  50.0% to 50.0% right, centres held fixed\n" in text
    assert "\n    1   1.00  1.00–2.00  0.00–1.00   0.71" in text
    said = " ".join(text.split())
    assert "than the first's in 1 of 2 records, and every layer gains more than the one before in 1." in said
    assert len(result.json()["records"]) == 2


def test_records_of_other_experiments_are_not_compared() -> None:
    from lattend.study.heads.findings import compare_records

    first = drawn(moment(), moment(1), moment(1))
    with pytest.raises(NamingError, match="in their seeds alone, and batch is 5 and 6; show them one by one"):
        compare_records([first, replace(first, settings=replace(SETTINGS, batch=6))])
    with pytest.raises(NamingError, match="some of these records have a control and some have none"):
        compare_records([first, drawn(moment(), moment(1))])


def test_the_record_of_the_package_is_that_of_the_benchmarks() -> None:
    file = Path(__file__).parents[3] / "benchmarks" / "results" / "heads_digits_0.json"
    assert digits_record().json() == Record.read(file).json()


def test_half_of_a_head_lies_inside_its_radius() -> None:
    moment = HeadMoment.of(0, [[[0.0, 0.0]]], [[0.7]])
    radius = moment.half_radii()[0, 0]
    assert 1 - math.exp(-0.7 * radius**2) == pytest.approx(0.5)  # the weight of a disc


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(kind="else"), "this is no record"),
        (lambda data: data["settings"].update(rows="many"), "rows of a record is int, got 'many'"),
        (lambda data: data["settings"].update(layers=0), "from 1 to 1,000"),
        (lambda data: data["settings"].update(layers=5), "5 layers of 9 heads are expected"),
        (lambda data: data["runs"].pop("trained"), "has the run trained"),
        (lambda data: data["runs"]["trained"].update(moments=[]), "has 1 to 1,000 moments"),
        (lambda data: data["runs"]["trained"]["epochs"][0].update(accuracy=7), "no share of the images"),
        (lambda data: data["runs"]["trained"]["moments"][0].update(epoch="x"), "not finite"),
        (lambda data: data["runs"]["trained"]["moments"][0].update(alpha=[[1]]), "expected"),
        (lambda data: data["runs"]["trained"]["moments"][0].update(centres="x"), "this is no record"),
    ],
)
def test_a_record_that_was_changed_is_refused(change: Any, message: str) -> None:
    data = digits_record().json()
    change(data)
    with pytest.raises(DomainError, match=message):
        Record.of(json.dumps(data))


@pytest.mark.parametrize("text", ["", "[]", "7", "{}", '{"kind": "heads in training"}', "[" * 100_000])
def test_what_is_no_record_is_refused(text: str) -> None:
    with pytest.raises(DomainError, match="this is no record of heads in training"):
        Record.of(text)
