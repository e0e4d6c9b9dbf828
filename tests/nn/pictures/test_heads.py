"""Heads from modules, state dicts and files, and patches with their price."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

import lattend as lt
from lattend.errors import DomainError, LattendError, NamingError, TensorError
from lattend.nn.attention.gaussian_heads import Head
from lattend.nn.pictures.heads import draw_heads, make_heads
from lattend.nn.pictures.patches import draw_patches
from lattend.nn.pictures.saved_heads import heads_of_arrays, read_heads
from lattend.nn.pictures.scores import draw_scores


def model():
    torch.manual_seed(0)
    free = lt.nn.Quadratic(4, isotropic=False)
    with torch.no_grad():
        free.root.copy_(torch.rand(4, 3) + 0.2)
    layers = {
        "low": lt.nn.MultiHeadAttention(8, 4, 4, 8, 6, encoding=lt.nn.Quadratic(6, alpha=0.7)),
        "high": lt.nn.MultiHeadAttention(8, 4, 4, 8, 4, encoding=free),
    }
    return torch.nn.ModuleDict(layers)


def numbers(heads):
    return np.array([(*head.centre, *head.precision) for head in heads])


def test_a_model_its_state_and_its_file_have_one_picture(tmp_path):
    found = model()
    file = tmp_path / "model.pt"
    torch.save(found.state_dict(), file)
    saved = read_heads(file)
    for name, layer in found.items():
        assert isinstance(layer, lt.nn.MultiHeadAttention)
        assert numbers(saved[name]) == pytest.approx(numbers(layer.heads()), rel=1e-5)
    pictures = [draw_heads(source, title="t").svg() for source in (found, found.state_dict(), file)]
    assert pictures[0] == pictures[1] == pictures[2]
    torch.save({"state_dict": found.bfloat16().state_dict(), "epoch": 3}, file)
    assert list(read_heads(file)) == ["low", "high"]
    assert draw_heads(file).title == "Heads of model.pt"


def test_a_convolution_as_heads():
    layer = lt.nn.from_conv(torch.nn.Conv2d(3, 8, 3, padding=1), alpha=2.0)
    assert draw_heads(layer).table == draw_heads(make_heads(kernel=3, alpha=[2.0])).table


def test_arrays(tmp_path):
    file = tmp_path / "heads.npz"
    np.savez(file, **{"a.centres": [[0, 1], [2, 3]], "a.alpha": 2.0, "b.centres": [[1]], "b.alpha": [3]})
    found = read_heads(file)
    assert found["a"][1] == Head((2, 3), (2, 0, 2))
    assert found["b"] == [Head((0, 1), (3, 0, 3))]  # on a line: one row
    given = {"centres": [[0, 0]], "precision": [[2, 0.5, 1]]}
    assert heads_of_arrays(given)[""] == [Head((0, 0), (2, 0.5, 1))]
    flat = heads_of_arrays({"centres": [[0, 0]], "root": [0.0]})[""]
    assert flat == [Head((0, 0), (0, 0, 0))]


@pytest.mark.parametrize(
    "data",
    [
        [{"centre": [0, 1], "alpha": 2}],
        {"": [{"centre": [0, 1], "precision": [2, 0, 2]}]},
        {"layers": {"": [{"centre": [0, 1], "covariance": [0.25, 0, 0.25]}]}},
        {"centres": [[0, 1]], "alpha": [2]},
        {"": {"centres": [[0, 1]], "alpha": 2}},
    ],
)
def test_json(tmp_path, data):
    file = tmp_path / "heads.json"
    file.write_text(json.dumps(data))
    assert read_heads(file) == {"": [Head((0, 1), (2, 0, 2))]}


def test_what_a_figure_tells_can_be_read_again(tmp_path):
    file = tmp_path / "heads.json"
    made = {"low": make_heads(kernel=3), "high": make_heads(centres=[(1.5, -2)], covariance=[(1, 0.2, 2)])}
    file.write_text(json.dumps(draw_heads(made).json()))
    assert read_heads(file) == made


def test_a_file_cannot_run_code(tmp_path):
    file = tmp_path / "bad.pt"
    torch.save(model(), file)  # a pickled module, which weights_only refuses
    with pytest.raises(LattendError, match=r"it is no file of weights alone; save layer.state_dict\(\)"):
        read_heads(file)


@pytest.mark.parametrize(
    ("name", "content", "error", "said"),
    [
        ("h.txt", "x", LattendError, "the ending is not one of .json, .npz, .pt, .pth"),
        ("h.json", "{", LattendError, 'cannot read ".*h.json" as JSON'),
        ("h.json", "[]", NamingError, "has no heads; write them as"),
        ("h.json", "3", NamingError, "are a list such as .* not 3"),
        ("h.json", '[{"centre": [0, 1]}]', NamingError, "head 0 .* needs a centre and alpha, precision"),
        ("h.json", '[{"centre": [0], "alpha": 1}]', NamingError, "head 0 .* is not made of numbers"),
        ("h.json", '[{"centre": [0, NaN], "alpha": 1}]', NamingError, "head 0 .* is not finite"),
        ("h.json", '[{"centre": [0, 1], "alpha": -1}]', DomainError, "alpha must be above 0, got -1"),
        ("h.json", '{"centres": [[0, 1, 2]], "alpha": 1}', TensorError, r"are \[heads, 2\], got \[1, 3\]"),
        ("h.json", '{"centres": [[0, 1]], "alpha": [1, 2]}', TensorError, r"is \[1\] for 1 head, got \[2\]"),
        ("h.json", '{"centres": [[0, 1]], "precision": [1]}', TensorError, r"is \[1, 3\] for 1 head,"),
        ("h.json", '{"centres": [["a", 1]], "alpha": 1}', TensorError, "centres of the layer: could not"),
        ("h.npz", "junk", LattendError, "as .npz"),
        ("h.pt", "junk", LattendError, "it is no file of weights alone"),
    ],
)
def test_files_that_hold_no_heads(tmp_path, name, content, error, said):
    file = tmp_path / name
    file.write_text(content)
    with pytest.raises(error, match=said):
        read_heads(file)


def test_weights_without_heads(tmp_path):
    file = tmp_path / "linear.pt"
    torch.save(torch.nn.Linear(2, 2).state_dict(), file)
    with pytest.raises(NamingError, match=r"no centres \[heads, 2\] beside root, .*; it has weight, bias"):
        read_heads(file)
    torch.save([1, 2], file)
    with pytest.raises(NamingError, match="holds a list, not a state dict"):
        read_heads(file)
    with pytest.raises(NamingError, match="Linear has no heads with the quadratic encoding"):
        draw_heads(torch.nn.Linear(2, 2))
    with pytest.raises(LattendError, match=r'there is no file "none\.pt"'):
        read_heads("none.pt")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "heads are those of a file, of a kernel, or at centres"),
        ({"kernel": 3, "centres": [(0, 1)]}, "give one of these"),
        ({"centres": [(0, 1)], "dilation": 2}, "dilation is the distance from tap to tap of a kernel"),
        ({"kernel": 3, "alpha": [1], "covariance": [(1, 0, 1)]}, "not both"),
        ({"kernel": 3, "alpha": [1, 2]}, "9 heads have one alpha, or one each, not 2"),
    ],
)
def test_heads_that_cannot_be_made(options, said):
    with pytest.raises(NamingError, match=said):
        make_heads(**options)


@pytest.mark.parametrize("source", [3, [3], {"low": 3}, Head((0, 0), (1, 0, 1))])
def test_what_is_no_head(source):
    with pytest.raises(
        NamingError, match=r"heads are a list of .* not .*; lattend\.nn\.kernel_heads\(3\) gives"
    ):
        draw_heads(source)


def test_scores():
    found = draw_scores("quadratic", size=9, centres=[(2, 0)], alpha=[0.5])
    assert found.data["terms"][3]["values"][6][4] == pytest.approx(2.0)  # -α(0 - ‖Δ‖²)
    with pytest.raises(NamingError, match="are for the quadratic encoding, not for relative"):
        draw_scores("relative", alpha=[1])
    with pytest.raises(NamingError, match="scores are those of one head: give one of centres, not 2"):
        draw_scores("quadratic", centres=[(0, 1), (1, 0)])


@pytest.mark.parametrize(
    ("image", "patch", "stride", "padding"),
    [(224, 16, None, "error"), ((30, 40), 8, 6, "zeros"), (20, (4, 5), (3, 4), "crop")],
)
def test_the_price_of_patches(image, patch, stride, padding):
    found = draw_patches(image, patch, stride, padding, channels=3, width=8).data
    py, px = found["rows"]["patch"], found["cols"]["patch"]
    assert found["embedding"]["parameters"] == py * px * 3 * 8 + 8
    assert found["embedding"]["multiplies"] == found["tokens"] * py * px * 3 * 8
    shape = (1, 3, found["rows"]["size"], found["cols"]["size"])
    tokens = lt.nn.Patches(patch, stride, padding, flat=True)(torch.zeros(shape))
    assert tokens.shape == (1, found["tokens"], py * px * 3)


def test_half_a_price():
    with pytest.raises(NamingError, match="needs channels and width: give width too"):
        draw_patches(8, 4, channels=3)
    with pytest.raises(DomainError, match="width must be at least 1, got 0"):
        draw_patches(8, 4, channels=3, width=0)


def test_pictures_load_no_torch():
    program = (
        "import sys, lattend as lt\n"
        "lt.nn.draw_patches(8, 4).svg(); lt.nn.draw_conv().svg(); lt.nn.draw_grid(4).svg()\n"
        "lt.nn.draw_scores('absolute').svg()\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
