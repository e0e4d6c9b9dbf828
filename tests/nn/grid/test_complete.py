"""complete and sample against running the whole model again, and against all small images."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nn.grid.drawn import CELLS, all_images, distance, frequencies, made, probabilities, seeded
from torch import Tensor
from torch.nn import functional

import lattend as lt
from lattend.errors import DomainError, NamingError, TensorError
from lattend.nn.grid import complete as incremental
from lattend.nn.grid.complete import IncrementalGrid, Race
from lattend.nn.grid.pixels import PixelModel


def slowly(model: PixelModel, image: Tensor, known: Tensor, chances: Tensor, temperature: float) -> Tensor:
    """Row by row, the whole model run again for every channel of every pixel."""
    image = image.masked_fill(~known.reshape(known.shape + (1,) * (image.dim() - 3)), 0)
    batch, rows, cols = image.shape[:3]
    pixels = image.view(batch, rows, cols, model.channels)
    for row, col, channel in itertools.product(range(rows), range(cols), range(model.channels)):
        logits = model(pixels.view(image.shape))
        if model.head == "bernoulli":
            ones = torch.sigmoid(logits.view(pixels.shape)[:, row, col, channel] / temperature)
            shares = torch.stack((1 - ones, ones), -1)
        else:
            shares = torch.softmax(logits.view(*pixels.shape, -1)[:, row, col, channel] / temperature, -1)
        for b in range(batch):
            if not known[b, row, col]:
                level, rest = 0, float(chances[b, row, col, channel])
                while rest >= shares[b, level] and level < model.levels - 1:
                    rest -= float(shares[b, level])
                    level += 1
                pixels[b, row, col, channel] = level
    return pixels.view(image.shape)


# Drawing is the slow way, fast


@settings(max_examples=100)
@given(
    cell=st.sampled_from(CELLS),
    directions=st.sampled_from([1, 2]),
    layers=st.integers(1, 3),
    levels=st.integers(2, 5),
    channels=st.integers(1, 2),
    rows=st.integers(1, 4),
    cols=st.integers(1, 4),
    share=st.sampled_from([0.0, 0.5]),
    temperature=st.sampled_from([1.0, 0.6]),
    seed=st.integers(0, 1000),
)
def test_the_same_pixels_as_running_the_model_again_for_each(
    cell: str, directions: int, layers: int, levels: int, channels: int, rows: int, cols: int, share: float,
    temperature: float, seed: int,
) -> None:  # fmt: skip
    model = made(levels, cell=cell, directions=directions, layers=layers, channels=channels, seed=seed)
    shape = (3, rows, cols) if channels == 1 else (3, rows, cols, channels)
    image = torch.randint(levels, shape, generator=seeded(seed))
    known = torch.rand(3, rows, cols, generator=seeded(seed)) < share
    chances = torch.rand(3, rows, cols, channels, generator=seeded(seed), dtype=torch.float64)
    with torch.no_grad():
        wanted = slowly(model, image, known, chances, temperature)
    for order in ("raster", "diagonal")[: 3 - directions]:
        found = lt.nn.complete(
            model, image, known, order=order, temperature=temperature, generator=seeded(seed)
        )
        assert torch.equal(found, wanted)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("cell", CELLS)
def test_the_walk_gives_the_features_of_the_net(cell: str, directions: int, layers: int) -> None:
    net = lt.nn.GridRNN(
        3, 4, cell, directions, layers=layers, shift=True, bias=layers == 2, dtype=torch.float64
    )
    x = torch.randn(2, 3, 4, 3, dtype=torch.float64)
    wanted = net(x)
    with torch.no_grad():
        running = IncrementalGrid(net, 2, 3, 4)
        for row, col in itertools.product(range(3), range(4)):
            at = torch.tensor([row]), torch.tensor([col])
            torch.testing.assert_close(running.features(*at), wanted[:, row, col : col + 1])
            running.see(*at, x[:, row, col : col + 1])


@pytest.mark.parametrize(("order", "steps"), [("raster", 5 * 7), ("diagonal", 5 + 7 - 1)])
def test_each_cell_runs_once_and_the_first_layers_twice(
    order: str, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []

    def counted(cell: object, pre: Tensor, *rest: Tensor) -> object:
        ran.append(pre.shape[2])
        return state(cell, pre, *rest)  # pyright: ignore

    state = incremental.state
    monkeypatch.setattr(incremental, "state", counted)
    monkeypatch.setattr(lt.nn.GridRNN, "forward", None)  # the whole net is never run
    told: list[tuple[int, int]] = []
    lt.nn.sample(made(layers=2), 5, 7, order=order, progress=lambda done, all_: told.append((done, all_)))
    assert sum(ran) == (2 + 1) * 5 * 7
    assert len(ran) == (2 + 1) * steps
    assert told == [(done, steps) for done in range(1, steps + 1)]


# What is drawn has the probabilities of the model


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_samples_come_as_often_as_enumeration_says(directions: int, temperature: float) -> None:
    model, images = made(cell="lstm", directions=directions, seed=3), all_images(2, 2, 2)
    logits = model(images).detach() / temperature
    each = functional.binary_cross_entropy_with_logits(logits, images.double(), reduction="none")
    shares = torch.exp(-each.sum((1, 2)))
    assert distance(shares, torch.full_like(shares, 1 / 16)) > 0.15
    for order in ("raster", "diagonal")[: 3 - directions]:
        found = lt.nn.sample(model, 2, 2, 40_000, order=order, temperature=temperature, generator=seeded(1))
        counts = frequencies(found, 2, 16) * len(found)
        chi2 = float(((counts - len(found) * shares) ** 2 / (len(found) * shares)).sum())
        assert chi2 < 37.7  # 1 in 1,000 with 15 degrees of freedom


def test_completions_given_what_comes_first() -> None:
    model, images = made(3, seed=5), all_images(3, 2, 2)
    shares = probabilities(model, images)
    image = torch.tensor([[[2, 9], [9, 9]], [[0, 9], [9, 9]]])  # 9 is no level, and not looked at
    known = torch.tensor([[True, False], [False, False]])
    found = lt.nn.complete(model, image, known, samples=30_000, generator=seeded())
    assert found.shape == (30_000, 2, 2, 2)
    for place, level in enumerate((2, 0)):
        given_first = shares * (images[:, 0, 0] == level)
        found_shares = frequencies(found[:, place], 3, 81)
        assert bool((found[:, place, 0, 0] == level).all())
        assert distance(found_shares, given_first / given_first.sum()) < 0.02


@pytest.mark.parametrize(
    ("cell", "directions", "factor", "order", "levels"),
    [
        ("rnn", 1, 5.0, "raster", [1, 1, 1]),
        ("rnn", 1, 5.0, "diagonal", [1, 1, 1]),
        ("gru", 2, 8.0, "raster", [0, 0, 1]),
    ],
)
def test_particles_take_later_pixels_into_account(
    cell: str, directions: int, factor: float, order: str, levels: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(cell=cell, directions=directions, seed=1, factor=factor)
    images, image = all_images(2, 3, 3), torch.zeros(1, 3, 3, dtype=torch.long)
    known = torch.tensor([[0, 0, 1], [0, 1, 0], [0, 0, 1]]).bool()
    image[:, known] = torch.tensor(levels)
    shares = probabilities(model, images) * ((images == image) | ~known).all(-1).all(-1)
    picked: list[int] = []
    pick = IncrementalGrid.pick

    def counted(running: IncrementalGrid, index: Tensor) -> None:
        picked.append(len(index))
        pick(running, index)

    monkeypatch.setattr(IncrementalGrid, "pick", counted)

    def far(particles: int) -> float:
        found = lt.nn.complete(
            model, image, known, samples=4_000, particles=particles, order=order, generator=seeded()
        )
        assert torch.equal(found[:, 0, known], torch.tensor(levels).expand(4_000, -1))
        return distance(frequencies(found[:, 0], 2, 512), shares / shares.sum())

    alone = far(1)
    assert alone > 0.4
    assert far(4) < 0.7 * alone
    assert far(48) < 0.05
    assert picked  # some did not go on


def test_particles_go_on_by_weight() -> None:
    generator, even, counts = seeded(), torch.full((4,), 0.25), torch.zeros(4)
    first, second = torch.tensor([0.5, 0.3, 0.1, 0.1]), torch.tensor([0.4, 0.2, 0.2, 0.2])
    for _ in range(1_000):
        race = Race(2, 4, generator, torch.device("cpu"))
        assert race.after(-torch.cat((first, second)).log()) is None  # 1/Σw² = 2.8 and 3.6: at least 4/2
        index = race.after(-torch.tensor([0.25] * 4 + [0.1, 0.1, 0.1, 1.0]).log())
        assert index is not None and index[:4].tolist() == [0, 1, 2, 3]
        counts += torch.bincount(index[4:] - 4, minlength=4)
        torch.testing.assert_close(race.logs.softmax(1).float(), torch.stack((first, even)))
    wanted = torch.tensor([2, 1, 1, 10]) / 14  # 0.04, 0.02, 0.02, 0.2: 1/Σw² = 1.85
    torch.testing.assert_close(counts / 4_000, wanted, rtol=0, atol=0.01)


def test_a_walk_goes_on_with_the_images_picked() -> None:
    net = lt.nn.GridRNN(3, 4, "lstm", 2, layers=2, shift=True, dtype=torch.float64)
    x, index = torch.randn(2, 3, 4, 3, dtype=torch.float64), torch.tensor([1, 1, 0])
    with torch.no_grad():
        wanted = net(x[index])
        running = IncrementalGrid(net, 2, 3, 4)
        for row, col in itertools.product(range(3), range(4)):
            if (row, col) == (1, 2):
                running.pick(index)
                x = x[index]
            at = torch.tensor([row]), torch.tensor([col])
            if len(x) == 3:
                torch.testing.assert_close(running.features(*at), wanted[:, row, col : col + 1])
            else:
                running.features(*at)
            running.see(*at, x[:, row, col : col + 1])


def test_the_most_likely_level_of_each_pixel_in_turn() -> None:
    model = made(4, directions=2)
    image, known = torch.zeros(2, 3, 3, dtype=torch.long), torch.zeros(3, 3, dtype=torch.bool)
    found = lt.nn.complete(model, image, known, mode="most likely")
    assert torch.equal(model(found).argmax(-1), found)
    cold = lt.nn.complete(model, image, known, temperature=1e-6, generator=seeded())
    assert torch.equal(cold, found)


def test_all_known_and_nothing_known() -> None:
    model = made(4)
    image = torch.randint(4, (2, 3, 3), generator=seeded())
    whole = torch.ones(2, 3, 3, dtype=torch.bool)
    assert torch.equal(lt.nn.complete(model, image, whole, particles=3), image)
    drawn = lt.nn.complete(model, image, ~whole, generator=seeded())
    assert drawn.shape == image.shape and not torch.equal(drawn, image)
    assert torch.equal(drawn, lt.nn.complete(model, image * 0, ~whole, generator=seeded()))
    assert lt.nn.sample(made(channels=3), 2, 5, 4).shape == (4, 2, 5, 3)


def test_autocast_changes_nothing() -> None:
    model = PixelModel(4, 5, directions=2, layers=2)
    wanted = lt.nn.sample(model, 3, 4, 5, generator=seeded())
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(lt.nn.sample(model, 3, 4, 5, generator=seeded()), wanted)


# Bad input


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"order": "spiral"}, NamingError, "order is one of raster, diagonal, not 'spiral'"),
        (
            {"order": "diagonal"},
            DomainError,
            'order="diagonal" needs a model with directions=1: with 2 a pixel also waits for the row above '
            'to its right, which later anti-diagonals bring; take order="raster"',
        ),
        (
            {"temperature": 0.0},
            DomainError,
            'temperature must be above 0, got 0.0; mode="most likely" is its limit 0',
        ),
        ({"mode": "best"}, NamingError, "mode is one of draw, most likely, not 'best'"),
        ({"samples": 0}, DomainError, "samples must be a whole number from 1 on, got 0"),
        ({"particles": 1.5}, DomainError, "particles must be a whole number from 1 on, got 1.5"),
        (
            {"particles": 3, "mode": "most likely"},
            DomainError,
            'particles=3 with mode="most likely" would all be the same; take mode="draw"',
        ),
        (
            {"known": torch.ones(3, 4, dtype=torch.bool)},
            TensorError,
            "known must be bool [2, 3, 3] or [3, 3], got bool [3, 4]",
        ),
        (
            {"known": torch.ones(3, 3)},
            TensorError,
            "known must be bool [2, 3, 3] or [3, 3], got float32 [3, 3]",
        ),
        (
            {"known": torch.ones(3, 3, dtype=torch.bool, device="meta")},
            TensorError,
            "known is on meta, the images on cpu; move one of them",
        ),
        (
            {"image": torch.full((2, 3, 3), 7)},
            DomainError,
            "pixels are whole numbers from 0 to 3, got 0 to 7",
        ),
    ],
)
def test_completions_that_cannot_be(options: dict[str, object], error: type[Exception], text: str) -> None:
    call: dict[str, object] = {"image": torch.zeros(2, 3, 3, dtype=torch.long), "known": torch.eye(3).bool()}
    with pytest.raises(error) as found:
        lt.nn.complete(PixelModel(4, 3, directions=2), **(call | options))  # pyright: ignore[reportArgumentType]
    assert str(found.value) == text


def test_sizes_of_samples() -> None:
    with pytest.raises(DomainError) as found:
        lt.nn.sample(PixelModel(4, 3), 0, 3)
    assert str(found.value) == "rows must be a whole number from 1 on, got 0"
