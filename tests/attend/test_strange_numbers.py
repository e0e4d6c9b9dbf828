"""Where a NaN may go: which rows of outputs and gradients a strange number changes, by kernel and placement.

    python tests/attend/test_strange_numbers.py         # the table of all kernels on this machine
    python tests/attend/test_strange_numbers.py --kernels native cpu

A strange number is a NaN, an infinity or 1e38. It fills rows of q, k, v or the gradient of the output. A row
of a result may change only where attended pairs lead from it to such a row; see `Placement.may_change`.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf, nan
from typing import Any

import pytest
import torch
from torch import Tensor

import lattend as lt
from lattend.attend.attention import attention
from lattend.errors import LattendError

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
N, HEADS, HEAD_DIM = 40, 2, 16
ON_CPU = ("native", "cpu", "dense", "sdpa", "reference", "reference by torch", "default")
KERNELS = ("default", "triton") if DEVICE.type == "cuda" else (*ON_CPU, "triton")  # in Triton's interpreter
WITH_TRITON = ("triton",) if DEVICE.type == "cuda" else ("reference", "dense", "cpu", "native", "triton")
# "unused q" is q where the gradient of the output is 0 in the same rows, as under a loss without them
FILLED = ("q", "k", "v", "grad", "unused q")
NUMBERS = (nan, inf, 1e38)
RESULTS = ("out", "dq", "dk", "dv")
RULE = lt.rules.strided(t=3)
pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # NumPy's, in the reference and the interpreter
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@dataclass(frozen=True)
class Placement:
    """A call, the rows that hold strange numbers [batch, n], and the attended pairs [batch, n, n]."""

    rule: str
    strange: Tensor
    attended: Tensor
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def packed(self) -> bool:
        return "cu_seqlens" in self.options

    def may_change(self, filled: str) -> dict[str, Tensor]:
        """The rows [batch, n] of each result that a strange number may change."""
        nobody = torch.zeros_like(self.strange)
        if filled in ("k", "v"):
            queries = (self.attended & self.strange[:, None]).any(2)
        else:
            queries = self.strange & self.attended.any(2)
        keys = (self.attended & queries[:, :, None]).any(1)
        return {
            "out": nobody if filled == "grad" else queries,
            "dq": queries,
            "dk": nobody if filled == "unused q" else keys,
            "dv": nobody if filled in ("v", "unused q") else keys,
        }


def _pairs(q_minus_k: Tensor, window: int = N) -> Tensor:
    return (q_minus_k >= 0) & (q_minus_k < window)


def placements() -> dict[str, Placement]:
    """Where strange numbers are. All hold for sequences that other numbers must never reach."""
    at = torch.arange(N)
    causal = _pairs(at[:, None] - at)[None]
    lengths = torch.tensor([N, 13])
    right = at < lengths[:, None]
    left = right.flip(1)
    between = right & (at % 3 != 1)
    cu, ids = torch.tensor([0, 10, 30]), torch.repeat_interleave(torch.arange(3), torch.tensor([10, 20, 10]))
    same = (ids[:, None] == ids)[None]
    second, last = (ids == 1)[None], (ids == 2)[None]
    every = torch.ones(2, N, N, dtype=torch.bool)
    found = {
        "padding on the right": Placement("k <= q", ~right, causal & right[:, None], {"padding": lengths}),
        "padding on the left": Placement("k <= q", ~left, causal & left[:, None], {"padding": left}),
        "padding between": Placement("k <= q", ~between, causal & between[:, None], {"padding": between}),
        "padding, all pairs": Placement("full", ~right, every & right[:, None], {"padding": lengths}),
        "tail of cu_seqlens": Placement("full", last, same, {"cu_seqlens": cu}),
        "other sequence": Placement("full", second, same, {"cu_seqlens": torch.tensor([0, 10, 30, N])}),
        "other sequence, causal": Placement("k <= q", second, same & causal, {"cu_seqlens": cu}),
        "document by ids": Placement("doc[q] == doc[k]", second, same, {"doc": ids}),
        "later key": Placement("k <= q", (at == 23)[None], causal),
        "key outside a window": Placement(
            "k <= q and q - k <= 7", (at == 12)[None], _pairs(at[:, None] - at, 8)[None]
        ),
    }  # fmt: skip
    return found


PLACEMENTS = placements()


def promised(kernel: str, where: str) -> tuple[str, ...]:
    """What may be filled with strange numbers: anything, but for kernels of a GPU."""
    if kernel in ON_CPU and DEVICE.type == "cpu":
        return FILLED
    if where.startswith("padding"):
        return ("k", "v", "unused q")
    return ("q", "k", "v", "grad") if PLACEMENTS[where].packed else ()


def tensors(placement: Placement) -> dict[str, Tensor]:
    """q, k, v and the gradient of the output, [batch, heads, n, head_dim]."""
    source = torch.Generator().manual_seed(0)
    shape = len(placement.strange), HEADS, N, HEAD_DIM
    return {name: torch.randn(shape, generator=source) for name in ("q", "k", "v", "grad")}


def results(
    kernel: str, placement: Placement, numbers: dict[str, Tensor], dtype: torch.dtype
) -> list[Tensor]:
    """The output and the gradients of q, k and v, [batch, n, heads, head_dim]."""
    q, k, v, grad = (x.to(DEVICE, dtype) for x in numbers.values())
    options = {name: x.to(DEVICE) for name, x in placement.options.items()}
    if placement.packed:
        q, k, v, grad = (x[0].transpose(0, 1) for x in (q, k, v, grad))
    by_torch = kernel == "reference by torch"
    name = None if kernel == "default" else kernel.removesuffix(" by torch")
    learned = [x.detach().clone().requires_grad_() for x in (q, k, v)]
    attend: Any = lt.attention
    out = attend(*learned, placement.rule, kernel=name, **options)
    grads = torch.autograd.grad(out, learned, grad, create_graph=by_torch)
    found = [x.detach().float().cpu() for x in (out, *grads)]
    return [x[None] if placement.packed else x.transpose(1, 2) for x in found]


@lru_cache(maxsize=1024)
def plain_results(kernel: str, where: str, unused: bool, dtype: torch.dtype) -> list[Tensor]:
    """The results without strange numbers."""
    placement = PLACEMENTS[where]
    numbers = tensors(placement)
    if unused:
        numbers["grad"] = numbers["grad"].masked_fill(placement.strange[:, None, :, None], 0)
    return results(kernel, placement, numbers, dtype)


def leaks(
    kernel: str, where: str, filled: str, number: float, dtype: torch.dtype = torch.float32
) -> list[str]:
    """The results in which a strange number changed a row that it must not change."""
    placement = PLACEMENTS[where]
    rows = placement.strange[:, None, :, None]
    plain = plain_results(kernel, where, filled == "unused q", dtype)
    numbers = tensors(placement)
    if filled == "unused q":
        numbers["grad"] = numbers["grad"].masked_fill(rows, 0)
    name = filled.removeprefix("unused ")
    numbers[name] = numbers[name].masked_fill(rows, number)
    found = results(kernel, placement, numbers, dtype)
    limit = 1e-5 if dtype == torch.float32 else 2e-2
    wrong: list[str] = []
    for result, mine, wanted in zip(RESULTS, found, plain, strict=True):
        same = ~placement.may_change(filled)[result]
        if not torch.allclose(mine[same], wanted[same], rtol=limit, atol=limit):
            wrong.append(result)
    return wrong


@lru_cache(maxsize=128)
def runs(kernel: str, where: str) -> bool:
    """Whether the kernel takes such calls."""
    try:
        plain_results(kernel, where, False, torch.float32)
    except LattendError:
        return False
    return True


def table(kernels: tuple[str, ...] = KERNELS) -> Iterator[str]:
    """The lines of the table, kernels by placements: ok, or what leaks into which results."""
    width = max(map(len, PLACEMENTS))
    yield " " * width + "".join(f"  {kernel:18}" for kernel in kernels)
    details: list[str] = []
    for where in PLACEMENTS:
        cells: list[str] = []
        for kernel in kernels:
            if not promised(kernel, where) or not runs(kernel, where):
                cells.append("-")
                continue
            found = {
                (filled, number): wrong
                for filled in promised(kernel, where)
                for number in NUMBERS
                if (wrong := leaks(kernel, where, filled, number))
            }
            cases = len(promised(kernel, where)) * len(NUMBERS)
            cells.append(f"leaks {len(found)} of {cases}" if found else f"ok, {cases} cases")
            details += [
                f"{kernel}, {where}: {filled} = {number} changes {', '.join(wrong)}"
                for (filled, number), wrong in found.items()
            ]
        yield f"{where:{width}}" + "".join(f"  {cell:18}" for cell in cells).rstrip()
    yield from details


@pytest.mark.parametrize("where", PLACEMENTS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_strange_numbers_stay_where_attended_pairs_lead(kernel: str, where: str) -> None:
    if not promised(kernel, where):
        pytest.skip("kernels of a GPU promise nothing here")
    if not runs(kernel, where):
        pytest.skip("this kernel does not take such calls")
    found = {
        (filled, number): leaks(kernel, where, filled, number)
        for filled in promised(kernel, where)
        for number in NUMBERS
    }
    assert not {case: wrong for case, wrong in found.items() if wrong}


def given() -> list[torch.Tensor]:
    source = torch.Generator().manual_seed(0)
    return [torch.randn(2, 2, 20, 16, generator=source).to(DEVICE) for _ in range(3)]


@pytest.mark.skipif(DEVICE.type == "cuda", reason="of the kernels of a CPU")
def test_which_kernels_take_which_placements() -> None:
    refused = {kernel: [where for where in PLACEMENTS if not runs(kernel, where)] for kernel in ON_CPU}
    with_arrays = ["tail of cu_seqlens", "other sequence", "other sequence, causal", "document by ids"]
    assert refused.pop("sdpa") == [where for where in PLACEMENTS if where != "later key"]
    assert refused.pop("native") == with_arrays
    assert not any(refused.values())


@pytest.mark.parametrize("kernel", WITH_TRITON)
def test_who_attends_to_a_nan_has_it(kernel: str) -> None:
    q, k, v = given()
    v[:, :, 7, 3] = nan
    found = attention(q, k, v, RULE, kernel=kernel)
    assert found[:, :, 7:11, 3].isnan().all()


@pytest.mark.parametrize(
    "kernel", [None] if DEVICE.type == "cuda" else ["native", "cpu", "dense", "reference"]
)
@pytest.mark.parametrize("options", ["bias", "softcap", "dropout", "sinks", "float16"])
def test_options_leave_strange_numbers_in_padding(kernel: str | None, options: str) -> None:
    if (kernel, options) == ("native", "dropout"):
        pytest.skip("native takes no dropout")
    dtype = torch.float16 if options == "float16" else torch.float32
    lengths = torch.tensor([20, 13], device=DEVICE)
    how: dict[str, Any] = {
        "bias": {"bias": torch.randn(2, 20, 20, device=DEVICE)},
        "softcap": {"softcap": 2.0},
        "dropout": {"dropout": 0.3},
        "sinks": {"sinks": torch.ones(2, device=DEVICE)},
    }.get(options, {})
    runs: list[list[Tensor]] = []
    attend: Any = attention
    for strange in (0.0, nan, inf):
        learned = [x.to(dtype) for x in given()]
        for x in learned[1:]:
            x[1, :, 13:] = strange
        learned = [x.requires_grad_() for x in learned]
        torch.manual_seed(1)
        out = attend(*learned, "full", kernel=kernel, padding=lengths, **how)
        runs.append([out.detach(), *torch.autograd.grad(out.square().sum(), learned)])
    for found in runs[1:]:
        for mine, wanted in zip(found, runs[0], strict=True):
            torch.testing.assert_close(mine, wanted)


@pytest.mark.parametrize("kernel", ["dense"] if DEVICE.type == "cuda" else ["cpu", "dense", "reference"])
def test_the_largest_scores_know_nothing_of_keys_left_out(kernel: str) -> None:
    q, k, _ = given()
    plain = lt.max_logits(q, k, RULE, kernel=kernel)
    k[:, :, 7] = nan
    rows = [*range(7), *range(11, 20)]
    torch.testing.assert_close(lt.max_logits(q, k, RULE, kernel=kernel)[:, :, rows], plain[:, :, rows])


@pytest.mark.parametrize("kernel", WITH_TRITON)
@pytest.mark.parametrize("strange", [nan, inf, -inf])
def test_in_a_query_it_stays_in_its_row(kernel: str, strange: float) -> None:
    q, k, v = given()
    plain = attention(q, k, v, RULE, kernel=kernel)
    q[1, 0, 7, 3] = strange
    found = attention(q, k, v, RULE, kernel=kernel)
    same = torch.ones(2, 2, 20, dtype=torch.bool, device=DEVICE)
    same[1, 0, 7] = False
    torch.testing.assert_close(found[same], plain[same])


@pytest.mark.parametrize("kernel", WITH_TRITON)
@pytest.mark.parametrize("strange", [nan, inf])
@pytest.mark.parametrize("where", ["k", "v"])
def test_in_a_key_or_value_it_stays_in_its_head(kernel: str, strange: float, where: str) -> None:
    q, k, v = given()
    plain = attention(q, k, v, RULE, kernel=kernel)
    {"k": k, "v": v}[where][1, 0, 7, 3] = strange
    found = attention(q, k, v, RULE, kernel=kernel)
    same = torch.ones(2, 2, dtype=torch.bool, device=DEVICE)
    same[1, 0] = False
    torch.testing.assert_close(found[same], plain[same])
    if kernel != "triton":
        rows = [*range(7), *range(11, 20)]  # those that do not attend to key 7
        torch.testing.assert_close(found[1, 0, rows], plain[1, 0, rows])


@pytest.mark.parametrize("kernel", WITH_TRITON)
def test_rows_without_keys_give_zeros_and_no_gradient(kernel: str) -> None:
    rule = lt.rule("k <= q and q - k <= 3 and q >= 5")
    q, k, v = (x.requires_grad_() for x in given())
    out, lse = attention(q, k, v, rule, kernel=kernel, return_lse=True)
    assert (out[:, :, :5] == 0).all()
    assert (lse[:, :, :5] == -inf).all()
    (out.sum() + lse[:, :, 5:].sum()).backward()
    for x in (q, k, v):
        assert x.grad is not None
        assert torch.isfinite(x.grad).all()
    assert q.grad is not None
    assert (q.grad[:, :, :5] == 0).all()


@pytest.mark.parametrize("kernel", WITH_TRITON)
def test_gradients_are_the_same_on_every_run(kernel: str) -> None:
    runs = []
    for _ in range(2):
        q, k, v = (x.requires_grad_() for x in given())
        attention(q, k, v, lt.rules.sparse_strided(l=4), kernel=kernel).square().sum().backward()
        runs.append([q.grad, k.grad, v.grad])
    for one, other in zip(*runs, strict=True):
        assert one is not None
        assert torch.equal(one, other)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernels", nargs="+", default=KERNELS, metavar="NAME", help=", ".join(KERNELS))
    for line in table(tuple(parser.parse_args().kernels)):
        print(line, flush=True)
