"""Pictures of a record, and the moments one after another."""

from __future__ import annotations

import json
import math
import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from made_heads import record
from PIL import Image

from lattend.errors import DomainError, LattendError, NamingError
from lattend.study.heads.pictures import wider
from lattend.study.heads.record import HeadMoment, Record


@pytest.fixture(scope="module")
def result() -> Record:
    return record()


def test_a_moment_shows_every_layer(result: Record) -> None:
    first, last = result.draw(0), result.draw()
    assert first.title == "Heads before training on bars"
    assert last.title == "Heads after 2 of 2 epochs on bars"
    assert [panel.title for panel in last.panels] == ["layer 1", "layer 2"]
    assert first.panels[0].cells.shape == last.panels[0].cells.shape  # one frame for all moments
    assert result.draw(0.5, "control").title == "Heads after 0.5 of 2 epochs on bars, centres held fixed"
    shown = last.json()["layers"]["layer 2"][3]
    assert shown["centre"] == result.trained.moments[-1].centres[1, 3].tolist()
    with pytest.raises(DomainError, match=r"nothing was recorded at epoch 1\.5"):
        result.draw(1.5)
    with pytest.raises(NamingError, match="this record has trained and control, not 'other'"):
        result.draw(run="other")


def test_heads_that_no_frame_holds_are_counted() -> None:
    at = [(0.0, 0.0), (0.0, 0.0), (3.0, 4.0), (9.0, 0.0)]
    radii = np.array([5.6, 5.7, 10.6, 10.7])  # the corner is √(4² + 4²) = 5.66 away, √(7² + 8²) = 10.63, 13.6
    result = HeadMoment.of(0, [at, at], np.stack([math.log(2) / radii**2, np.ones(4)]))
    assert wider(result, 4.0) == [1, 0]


def test_paths_run_from_start_to_end(result: Record) -> None:
    picture = result.draw_paths()
    assert [chart.title for chart in picture.charts] == ["layer 1", "layer 2"]
    assert picture.charts[0].names() == ["path", "taps of a 2 × 2 kernel", "start", "end"]
    path = picture.charts[1].lines[2].points
    centres = [moment.centres[1, 2].tolist() for moment in result.trained.moments]
    assert [(-y, x) for x, y in path] == [tuple(centre) for centre in centres]  # rows count downwards
    ends = [dots for dots in picture.charts[1].dots if dots.name == "end"]
    assert [dots.labels for dots in ends] == [["0"], ["1"], ["2"], ["3"]]
    assert "layer 2" in picture.terminal(80, colour=False)


def test_the_spread_has_a_line_for_each_layer(result: Record) -> None:
    charts = {chart.title: chart for chart in result.draw_spread().charts}
    assert list(charts) == [
        "centres from the query",
        "distance from a 2 × 2 grid",
        "width (median)",
        "attention distance",
        "attention distance of the control",
        "test accuracy",
    ]
    line = charts["centres from the query"].lines[1]
    assert line.name == "layer 2"
    moments = result.trained.moments
    assert list(line.points) == [(moment.epoch, moment.centre_distances()[1]) for moment in moments]
    assert [line.name for line in charts["test accuracy"].lines] == ["trained", "control"]
    alone = Record(result.settings, {"trained": result.trained}, result.parameters).draw_spread()
    assert len(alone.charts) == 5


def test_a_gif_has_a_frame_for_each_moment(result: Record, tmp_path: Path) -> None:
    path = result.animate(tmp_path / "heads.gif")
    with Image.open(path) as image:
        assert image.format == "GIF"
        assert getattr(image, "n_frames", 1) == len(result.trained.moments)
        assert image.info["loop"] == 0
        size = image.size
    with Image.open(BytesIO(result.draw().png(1.0))) as still:
        assert size == still.size


def test_a_page_holds_all_moments_and_needs_nothing_else(result: Record, tmp_path: Path) -> None:
    text = result.animate(tmp_path / "heads.html", "control").read_text()
    assert set(re.findall(r"https?://[^\"'\s]+", text)) == {
        "http://www.w3.org/2000/svg"
    }  # a name, not a link
    assert not re.search(r"<(link|img|iframe)|\bsrc=|@import|url\(", text)
    assert not re.search(r"\$(title|record|reach|colours)\b", text)
    held = re.search(r"const record = (.*), reach = (\d+), colours = ", text)
    assert held is not None
    moments = json.loads(held[1].replace("<\\/", "</"))
    assert list(moments) == ["control", "trained"]  # the one that is asked for stands first
    assert moments["trained"] == [moment.json() for moment in result.trained.moments]


def test_other_endings_and_folders(result: Record, tmp_path: Path) -> None:
    with pytest.raises(LattendError, match=r"the ending is not one of .gif, .html"):
        result.animate(tmp_path / "heads.mp4")
    with pytest.raises(LattendError, match=r"there is no folder .*; make it first"):
        result.animate(tmp_path / "no" / "heads.gif")
