"""steer on tensors: the numbers of numpy, and gradients against differences."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import steering_oracle as oracle
import torch

import lattend as lt
from lattend.study.steering.steer import Steered, SteeredHeads

NAMES = (
    *("query", "wanted", "logits", "weights", "error", "bound", "sharpness"),
    *("output", "wanted_output", "output_error", "output_bound"),
)
# Keys, wanted weights, and how these are reached
CASES = {
    "orthonormal": (np.eye(4), [0.5, 0.3, 0.2, 0], "in the limit"),
    "all orthonormal": (np.eye(3), [0.5, 0.3, 0.2], "exactly"),
    "independent": (np.random.default_rng(0).normal(size=(4, 6)), [0.5, 0.5, 0, 0], "in the limit"),
    "corners of a simplex": (np.random.default_rng(1).normal(size=(4, 3)), [0.6, 0.4, 0, 0], "in the limit"),
    "a corner": (np.random.default_rng(2).normal(size=(7, 2)), [0, 1, 0, 0, 0, 0, 0], "in the limit"),
    "a side": (np.array([[0, 0], [3, 0.2], [2.5, 2], [0, 2.2], [1, 1]]), [0.6, 0.4, 0, 0, 0], "in the limit"),
    "a best fit": (np.random.default_rng(3).normal(size=(6, 2)), [0.1, 0.3, 0.1, 0.2, 0.1, 0.2], "never"),
    "an inner key": (np.array([[0, 0.1], [4, 0], [0.2, 4], [1, 1.3], [3, 3]]), [0, 0, 0, 1, 0], "never"),
}
# Moved keys no longer lie on one face, so that this has no gradient to them
A_FACE = (np.array([[0.0, 0.0], [1, 0], [2, 0], [0, 5]]), [0.4, 0.1, 0.5, 0], "never")
VALUES = np.random.default_rng(9).normal(size=(7, 3))


@pytest.mark.parametrize("case", [*CASES.values(), A_FACE], ids=[*CASES, "a best fit on a face"])
def test_numbers_are_those_of_numpy(case: tuple[Any, Any, str]) -> None:
    keys, wanted, reach = case
    for options in ({"sharpness": 3.0}, {"error": 0.02}, {"sharpness": 1.0, "scale": "sqrt"}):
        given: dict[str, Any] = {**options, "values": VALUES[: len(keys)]}
        plain = lt.study.steer(keys, wanted, **given)
        result = lt.study.steer(torch.tensor(keys), wanted, **given)
        assert isinstance(result, Steered) and isinstance(plain, Steered)
        assert result.reach == plain.reach == reach
        for attribute in NAMES:
            tensor = getattr(result, attribute)
            assert isinstance(tensor, torch.Tensor) and tensor.dtype == torch.float64
            np.testing.assert_allclose(tensor.numpy(), getattr(plain, attribute), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    keys, wanted, _ = CASES[name]
    support = torch.tensor(wanted) > 0

    def numbers(keys: Any, logits: Any, sharpness: Any, values: Any) -> tuple[Any, ...]:
        weights = torch.where(support, logits.exp(), 0.0)
        result = lt.study.steer(keys, weights / weights.sum(), sharpness=sharpness, values=values)
        return tuple(getattr(result, attribute) for attribute in NAMES)

    logits = torch.tensor([np.log(w) if w else 0.0 for w in wanted], dtype=torch.float64)
    given = (torch.tensor(keys), logits, torch.tensor(2.5).double(), torch.tensor(VALUES[: len(keys)]))
    assert torch.autograd.gradcheck(numbers, tuple(x.requires_grad_() for x in given), atol=1e-6)


def test_gradient_of_a_wanted_error() -> None:
    keys = torch.tensor(CASES["a side"][0])

    def query(error: Any) -> Any:
        return lt.study.steer(keys, CASES["a side"][1], error=error).query

    assert torch.autograd.gradcheck(query, torch.tensor(0.03).double().requires_grad_())


def test_heads_and_dtype() -> None:
    source = torch.Generator().manual_seed(0)
    keys = torch.randn(2, 3, 9, 4, generator=source).requires_grad_()
    result = lt.study.steer(keys, torch.eye(9)[:3], error=torch.tensor([[0.1], [0.01]]))
    assert isinstance(result, SteeredHeads)
    assert result.query.shape == (2, 3, 4) and result.query.dtype == torch.float32
    weights = torch.softmax(torch.einsum("abmd,abd->abm", keys, result.query), -1)
    torch.testing.assert_close(weights, result.weights)
    assert (result.error <= result.bound).all()
    result.query.sum().backward()
    assert keys.grad is not None and keys.grad.abs().sum() > 0
    one = lt.study.steer(keys[1, 2], torch.eye(9)[2], error=0.01)
    torch.testing.assert_close(one.query, result[1, 2].query)
    assert "steered in 6 heads" in str(result) and result.json()["shape"] == [2, 3]


def test_attention_in_float32_is_found_again() -> None:
    keys = torch.randn(20, 3, generator=torch.Generator().manual_seed(1))
    query = torch.tensor([0.5, -1.0, 0.25])
    result = lt.study.steer(keys, torch.softmax(keys @ query, 0))
    assert isinstance(result, Steered) and result.exact
    torch.testing.assert_close(result.query, query, atol=1e-4, rtol=1e-4)
    assert lt.study.steer(keys.bfloat16(), torch.eye(20)[0].bfloat16()).query.dtype == torch.bfloat16


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("wanted", [[0.5, 0.5, 0, 0, 0], [1, 0, 0, 0, 0], [0.3, 0.3, 0.2, 0.1, 0.1]])
@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6, 1e-9, 0.0])
def test_near_ties(dtype: torch.dtype, wanted: list[float], gap: float) -> None:
    """The error is that of the query as it is rounded; gradients are finite, and small where keys agree."""
    rows = [[1, 0], [1, gap], [0, 1], [-1, -0.3], [0.2, 0.1]]
    keys = torch.tensor(rows, dtype=dtype).requires_grad_()
    weights = torch.tensor(wanted, dtype=dtype).requires_grad_()
    result = lt.study.steer(keys, weights, error=0.01)
    assert isinstance(result, Steered)
    reached = oracle.softmax(keys.detach().double().numpy(), result.query.detach().double().numpy())
    true = oracle.apart(reached, result.ray.wanted)
    assert result.error.item() == pytest.approx(true, rel=2 * torch.finfo(dtype).eps, abs=1e-15)
    assert result.error <= result.bound
    (result.error + result.query.sum()).backward()
    assert keys.grad is not None and weights.grad is not None
    assert keys.grad.isfinite().all() and weights.grad.isfinite().all()
    if gap < 1e-8:
        assert keys.grad.abs().max() < 20


def test_heads_that_are_reached_in_different_ways() -> None:
    keys = torch.tensor([[[0.0, 0], [4, 0], [0, 4], [1, 1]]] * 3, dtype=torch.float64).requires_grad_()
    logits = keys[0].detach() @ torch.tensor([0.3, -0.2]).double()
    wanted = torch.stack((torch.softmax(logits, 0), *torch.eye(4).double()[[1, 3]]))
    result = lt.study.steer(keys, wanted, error=0.01, values=torch.eye(4).double())
    assert isinstance(result, SteeredHeads)
    assert result.reach == ["exactly", "in the limit", "never"]
    assert [why is None for why in result.certificate] == [True, True, False]
    assert result.error[0] < 1e-14 and result.bound[1].item() == pytest.approx(0.01) and result.error[2] > 0.5
    result.output.square().sum().backward()
    assert keys.grad is not None and keys.grad[1].abs().sum() > 0 and keys.grad.isfinite().all()
    alone = keys[2].detach().clone().requires_grad_()
    lt.study.steer(
        alone, wanted[2], error=0.01, values=torch.eye(4).double()
    ).output.square().sum().backward()
    torch.testing.assert_close(keys.grad[2], alone.grad)


def test_numbers_beside_tensors() -> None:
    result = lt.study.steer(torch.eye(2), ["1/2", "1/2"], scale="1/4")
    assert isinstance(result, Steered) and result.exact and result.scale == 0.25
    with pytest.raises(lt.errors.DomainError, match=r"weights\[0\]: \"half\" is not a number"):
        lt.study.steer(torch.eye(2), ["half", "1/2"])
    with pytest.raises(lt.errors.DomainError, match=r"scale is a number or .*: None is not a number"):
        lt.study.steer(torch.eye(2), [1, 0], scale=None)  # pyright: ignore[reportArgumentType]


def test_bad_tensors() -> None:
    keys = torch.eye(2)
    with pytest.raises(lt.errors.TensorError, match=r"keys is torch\.int64; give floats, as in keys\.float"):
        lt.study.steer(keys.long(), keys[0])
    with pytest.raises(lt.errors.TensorError, match="weights is on meta and another on cpu; move one"):
        lt.study.steer(keys, keys[0].to("meta"))
    with pytest.raises(lt.errors.DomainError, match=r"keys\[0\]\[0\] is nan; give finite numbers"):
        lt.study.steer(keys * float("nan"), keys[0])
    with pytest.raises(lt.errors.DomainError, match="sum to 2, not 1"):
        lt.study.steer(keys, torch.ones(2))
    with pytest.raises(lt.errors.DomainError, match="error is 2; the share"):
        lt.study.steer(keys, keys[0], error=torch.tensor(2.0))


def test_torch_is_loaded_for_tensors_alone() -> None:
    program = (
        "import sys, lattend as lt; print(lt.study.steer([[1], [2]], [1, 0])); print('torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "False"
