"""PixelModel: a distribution over images, which sees the pixels before and no others."""

from __future__ import annotations

import itertools

import pytest
import torch
from nn.grid.drawn import CELLS, all_images, made, probabilities, seeded
from torch import Tensor
from torch.nn import functional
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from lattend.errors import DomainError, NamingError, TensorError
from lattend.nn.grid.pixels import PixelModel


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("cell", CELLS)
def test_probabilities_of_all_images_sum_to_1(cell: str, directions: int, layers: int) -> None:
    model = made(cell=cell, directions=directions, layers=layers)
    for rows, cols in ((1, 1), (2, 2), (1, 5), (5, 1), (3, 3)):
        shares = probabilities(model, all_images(2, rows, cols))
        assert abs(float(shares.sum()) - 1) < 1e-12
        assert float(shares.max()) > 1.05 / len(shares)  # not uniform, where the sum would say little


@pytest.mark.parametrize("head", ["bernoulli", "categorical"])
def test_either_head_is_a_distribution(head: str) -> None:
    model = made(head=head, directions=2)
    assert abs(float(probabilities(model, all_images(2, 2, 3)).sum()) - 1) < 1e-12


def test_three_levels_and_two_channels_sum_to_1() -> None:
    assert abs(float(probabilities(made(3), all_images(3, 2, 2)).sum()) - 1) < 1e-12
    model = made(channels=2, directions=2)
    images = all_images(2, 2, 2, 2)
    shares = probabilities(model, images)
    assert abs(float(shares.sum()) - 1) < 1e-12
    first, second = images[:, 0, 0, 0] == 1, images[:, 0, 0, 1] == 1
    both = float(shares[first & second].sum())
    apart = float(shares[first].sum()) * float(shares[second].sum())
    assert abs(both - apart) > 1e-3  # the channels of a pixel depend on each other


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("directions", [1, 2])
def test_logits_see_the_pixels_before_and_no_others(directions: int, layers: int) -> None:
    model = made(5, cell="gru", directions=directions, layers=layers, factor=1.0)
    images = torch.randint(5, (1, 4, 5), generator=seeded())
    before = model(images)
    for row, col in itertools.product(range(4), range(5)):
        changed = images.clone()
        changed[0, row, col] = (changed[0, row, col] + 1) % 5
        seen = (model(changed) != before).any(-1)[0]
        for at_row, at_col in itertools.product(range(4), range(5)):
            raster = (at_row, at_col) > (row, col)
            quadrant = raster and at_row >= row and at_col >= col
            assert bool(seen[at_row, at_col]) == (quadrant if directions == 1 else raster)


def test_nats_are_the_sum_over_pixels_of_torchs_losses() -> None:
    images = torch.randint(4, (3, 4, 5), generator=seeded())
    model = made(4)
    each = functional.cross_entropy(model(images).movedim(-1, 1), images, reduction="none")
    torch.testing.assert_close(model.nats(images), each.sum((1, 2)))
    where = torch.rand(3, 4, 5, generator=seeded()) < 0.5
    torch.testing.assert_close(model.nats(images, where), (each * where).sum((1, 2)))
    torch.testing.assert_close(model.nats(images, where[0]), (each * where[0]).sum((1, 2)))
    model, images = made(channels=2), images % 2
    images = torch.stack((images, 1 - images), -1)
    each = functional.binary_cross_entropy_with_logits(model(images), images.double(), reduction="none")
    torch.testing.assert_close(model.nats(images), each.sum((1, 2, 3)))


def test_a_bernoulli_head_is_a_categorical_one_with_a_logit_0() -> None:
    one, two = made(), made(head="categorical")
    state = {name: value for name, value in one.state_dict().items() if not name.startswith("heads")}
    two.load_state_dict(state, strict=False)
    with torch.no_grad():
        for name in ("weight", "bias"):
            logit = getattr(one.heads[0], name)
            getattr(two.heads[0], name).copy_(torch.cat((torch.zeros_like(logit), logit)))
    images = all_images(2, 2, 2)
    torch.testing.assert_close(one.nats(images), two.nats(images))


@pytest.mark.parametrize("directions", [1, 2])
def test_gradients_are_the_slopes_along_random_ways(directions: int) -> None:
    model = made(3, h=3, cell="lstm", directions=directions, layers=2, channels=2, factor=1.0)
    images = torch.randint(3, (2, 2, 3, 2), generator=seeded())
    model.nats(images).sum().backward()
    gradient = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    place = parameters_to_vector(model.parameters()).detach()
    assert gradient.shape == place.shape
    with torch.no_grad():
        for seed in range(5):
            way = 1e-5 * torch.randn(place.shape, generator=seeded(seed), dtype=torch.float64)
            ends: list[Tensor] = []
            for end in (place + way, place - way):
                vector_to_parameters(end, model.parameters())
                ends.append(model.nats(images).sum())
            torch.testing.assert_close((ends[0] - ends[1]) / 2, gradient @ way, rtol=1e-6, atol=1e-12)


def test_the_level_as_a_number_between_minus_1_and_1() -> None:
    model = PixelModel(5, 3, embedding=0)
    assert model.encode(torch.tensor([[0], [1], [4]])).tolist() == [[-1.0], [-0.5], [1.0]]
    assert model.nats(torch.zeros(2, 3, 3, dtype=torch.uint8)).shape == (2,)


# Bad input


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"levels": 1}, DomainError, "levels must be a whole number from 2 on, got 1"),
        ({"channels": 0}, DomainError, "channels must be a whole number from 1 on, got 0"),
        ({"embedding": -1}, DomainError, "embedding must be a whole number from 0 on, got -1"),
        ({"head": "normal"}, NamingError, "head is one of categorical, bernoulli, not 'normal'"),
        (
            {"head": "bernoulli"},
            DomainError,
            'head="bernoulli" has 2 levels, not 4; take head="categorical"',
        ),
        (
            {"directions": 4},
            DomainError,
            "directions is 1 or 2, not 4: what comes before a pixel is above it",
        ),
    ],
)
def test_models_that_are_not_there(options: dict[str, object], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as found:
        PixelModel(**{"levels": 4, "h": 3, **options})  # pyright: ignore[reportArgumentType]
    assert str(found.value) == text


@pytest.mark.parametrize(
    ("images", "error", "text"),
    [
        (
            torch.zeros(2, 3, 3),
            TensorError,
            "pixels are whole numbers from 0 to 3, got float32 [2, 3, 3]",
        ),
        (
            torch.zeros(3, 3, dtype=torch.long),
            TensorError,
            "images must be [batch, rows, cols] with at least one pixel, got int64 [3, 3]",
        ),
        (
            torch.zeros(1, 0, 3, dtype=torch.long),
            TensorError,
            "images must be [batch, rows, cols] with at least one pixel, got int64 [1, 0, 3]",
        ),
        (
            torch.full((1, 2, 2), 4),
            DomainError,
            "pixels are whole numbers from 0 to 3, got 4 to 4",
        ),
        (
            torch.zeros(1, 2, 2, dtype=torch.long, device="meta"),
            TensorError,
            "images are on meta and the model is on cpu; move one of them",
        ),
    ],
)
def test_images_that_do_not_fit(images: Tensor, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as found:
        PixelModel(4, 3).nats(images)
    assert str(found.value) == text
