"""The steps of a 2-D RNN against a run that waits, what pixels see against gradients, and the prices."""

import numpy as np
import pytest
import torch

import lattend as lt
from lattend.errors import DomainError, LattendError, NamingError
from lattend.nn.pictures.grid import WAYS, GridNets, draw_grid, grid_nets


def run_steps(rows, cols, up, left):
    """When each cell can run first, by going through the grid again and again."""
    found = np.full((rows, cols), -1)
    dy, dx = (1 if up else -1), (1 if left else -1)
    step = 0
    while (found < 0).any():
        ready = []
        for y, x in np.argwhere(found < 0).tolist():
            before = [(y + dy, x), (y, x + dx)]
            inside = [(a, b) for a, b in before if 0 <= a < rows and 0 <= b < cols]
            if all(0 <= found[place] < step for place in inside):
                ready.append((y, x))
        for place in ready:
            found[place] = step
        step += 1
    return found


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (4, 4), (3, 5), (5, 2)])
def test_steps_are_the_earliest(rows, cols):
    grid = GridNets(rows, cols, 4, 3, 1)
    for (name, way), flips in zip(grid.ways.items(), WAYS[4].values(), strict=True):
        assert (way == run_steps(rows, cols, *flips)).all(), name
    assert grid.depth == rows + cols - 1 == lt.cost.rnn2d(rows=rows, cols=cols).depth
    assert grid.widest == min(rows, cols)


@pytest.mark.parametrize("directions", [1, 2, 4])
def test_a_pixel_sees_what_its_output_depends_on(directions):
    torch.manual_seed(0)
    model = lt.nn.GridRNN(1, 2, directions=directions).double()
    image = torch.randn(1, 5, 6, 1, dtype=torch.float64, requires_grad=True)
    out = model(image)
    for pixel in ((0, 0), (2, 3), (4, 5)):
        (grad,) = torch.autograd.grad(out[0, *pixel].sum(), image, retain_graph=True)
        assert (
            GridNets(5, 6, directions, 3, 1).receptive_field(pixel) == (grad[0, :, :, 0] != 0).numpy()
        ).all()


@pytest.mark.parametrize(("kernel", "layers"), [(3, 1), (3, 2), (5, 2), (2, 3)])
def test_a_convnet_pixel_sees_what_its_output_depends_on(kernel, layers):
    image = torch.randn(1, 1, 7, 8, dtype=torch.float64, requires_grad=True)
    out = image
    before, after = (kernel - 1) // 2, kernel // 2  # what torch's "same" adds, which warns of even kernels
    for _ in range(layers):
        padded = torch.nn.functional.pad(out, (before, after, before, after))
        out = torch.nn.functional.conv2d(padded, torch.ones(1, 1, kernel, kernel).double())
    for pixel in ((0, 0), (3, 4), (6, 7)):
        (grad,) = torch.autograd.grad(out[0, 0, *pixel], image, retain_graph=True)
        assert ((GridNets(7, 8, 1, kernel, layers).until(pixel) >= 0) == (grad[0, 0] != 0).numpy()).all()


def test_what_it_says():
    found = draw_grid(8, c=3, h=64)
    facts = dict(found.facts)
    assert facts["steps"] == "15, sequential: cell (row, col) runs at step col + row"
    assert facts["at once"] == "up to 8 of 64 cells"
    multiplies = 64 * 64 * 3 + 2 * 8 * 7 * 64 * 64  # n²hc + 2n(n-1)h²
    assert facts["2-D RNN"] == f"{multiplies:,} multiplies, {64 * 3 + 2 * 64 * 64:,} parameters"
    net = 22**2 * (3 * 64 + 2 * 64 * 64)
    assert facts["convnet"].startswith(
        f"3 layers of 3 × 3: {net:,} multiplies, {9 * (192 + 8192):,} parameters"
    )
    assert facts["receptive field"] == (
        "of pixel (4, 4): 25 of 64 pixels in the 2-D RNN, 49 in the convnet; 4 layers cover the whole image"
    )
    assert found.data["depth"] == 15 and found.data["steps"]["down and right"][7][7] == 14
    four = draw_grid(8, c=3, h=64, directions=4).data
    assert four["rnn2d"] == {"multiplies": 4 * multiplies, "parameters": 4 * (192 + 8192)}
    assert four["depth"] == 15 and four["receptive_field"]["rnn2d"] == 64
    assert "more layers never cover the whole image" in dict(draw_grid(4, kernel=1).facts)["receptive field"]


def test_cells():
    found = draw_grid((1, 1), c=3, h=2, cell="lstm", layers=1)
    assert found.data["rnn2d"]["multiplies"] == 34  # 5*2*3, i∘g and o∘tanh c
    assert found.title == "A 2-D RNN on 1 × 1 pixels, lstm cells"
    with pytest.raises(LattendError, match="cell is one of rnn, lstm, gru"):
        draw_grid(4, cell="cnn")


def test_formulas_until_there_are_numbers():
    facts = dict(draw_grid((2, 3)).facts)
    assert facts["2-D RNN"] == "h(7h + 6c) multiplies, h(2h + c) parameters"  # 6hc + (2*2 + 1*3)h²


def test_panels_and_frames():
    found = draw_grid((4, 5), directions=2)
    assert [panel.title for panel in found.panels] == [
        "steps, down and right",
        "steps, down and left",
        "receptive field, 2-D RNN",
        "receptive field, convnet",
    ]
    assert found.panels[1].labels()[0, 0] == "4"
    frames = draw_grid((4, 5), frames=True)
    assert [panel.title for panel in frames.panels] == [f"step {step}" for step in range(8)]
    assert frames.caption == ()
    many = draw_grid((40, 30), frames=True)
    assert len(many.panels) <= 33 and many.panels[-1].title == "step 68"
    assert many.caption == ("shown: every 3 steps of 69, and the last",)


def test_a_module():
    model = lt.nn.GridRNN(3, 4, cell="lstm", directions=2)
    found = draw_grid(model, size=(2, 3))
    told = draw_grid((2, 3), c=3, h=4, cell="lstm", directions=2)
    assert found.svg() == told.svg() and found.json() == told.json()
    assert found.data["rnn2d"]["parameters"] == sum(p.numel() for p in model.parameters())
    with pytest.raises(NamingError, match="a module has its own directions; leave it out"):
        draw_grid(model, directions=4)
    with pytest.raises(NamingError, match="draws a GridRNN of one layer, without shift and bias"):
        draw_grid(lt.nn.GridRNN(3, 4, layers=2))
    with pytest.raises(NamingError, match="the size is given twice"):
        draw_grid(4, size=4)


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        ((0,), {}, "an image has 1 to 1,024 rows and columns here, got 0 × 0"),
        (((8, 5000),), {}, "got 8 × 5,000"),
        (("4x6",), {}, r"give the size of the image, such as 8 or \(8, 12\), or a GridRNN .* got '4x6'"),
        (((4, 5, 6),), {}, r"got \(4, 5, 6\)"),
        ((8,), {"directions": 3}, "directions is 1, 2 or 4, not 3"),
        ((8,), {"pixel": (8, 0)}, r"pixel \(8, 0\) lies outside an image of 8 × 8"),
        ((8,), {"kernel": 0}, "kernel must be at least 1, got 0"),
        ((8,), {"layers": 0}, "layers must be at least 1, got 0"),
        ((8,), {"layers": 999}, "layers must be at most 128, got 999"),
    ],
)
def test_wrong_input(arguments, options, said):
    with pytest.raises(DomainError, match=said):
        draw_grid(*arguments, **options)


@pytest.mark.parametrize("pixel", [(0, 0), (2, 3), (4, 5)])
def test_the_raster_field_is_that_of_the_rule(pixel):
    grid = grid_nets((5, 6))
    seen = lt.rule("raster").mask(rows=5, cols=6)[pixel]
    assert (grid.raster_field(pixel) == seen).all()


def test_cells_at_once_are_those_of_the_steps():
    grid = grid_nets((3, 5), directions=2)
    for way in grid.ways.values():
        assert (
            [int((way == step).sum()) for step in range(grid.depth)] == grid.at_once == [1, 2, 3, 3, 3, 2, 1]
        )
