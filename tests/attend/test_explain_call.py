"""explain and counts of a whole call: padding, sequences, softcap, sinks and dropout, against enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

import lattend as lt
from lattend.attend.operators.flop_formulas import call_of
from lattend.attend.operators.operator_arguments import OperatorCall, short
from lattend.cost.measure.pairs import pairs_of_call
from lattend.errors import DomainError, LattendError, NamingError, TensorError

RULES = ("causal", "k <= q and (k < 4 or q - k <= 9)", "(q - k) % 3 == 0", "q - k <= 5*head")
LENGTHS = (50, 20, 0)
GPU: dict[str, Any] = {"device": "cuda", "dtype": "bfloat16"}


def pairs(text: str, n: int, m: int | None = None) -> np.ndarray[Any, Any]:
    """The mask [heads or 1, n, m] of a rule."""
    rule = lt.rule(text)
    sizes = {"n": n, "m": n if m is None else m} | ({"heads": 2} if rule.has_heads else {})
    return rule.mask(**sizes).reshape(sizes.get("heads", 1), n, sizes["m"])


@pytest.mark.parametrize("text", RULES)
@pytest.mark.parametrize("options", [{}, GPU], ids=["cpu", "cuda"])
def test_padding_is_not_needed(text: str, options: dict[str, Any]) -> None:
    mask = pairs(text, 50)
    wanted = sum(int(mask[..., :length].sum()) for length in LENGTHS)
    found = lt.explain(text, n=50, heads=2, padding=LENGTHS, **options)
    assert found.needed == wanted
    assert found.dense == len(LENGTHS) * mask.size
    holes = torch.rand(3, 50, generator=torch.Generator().manual_seed(0)) < 0.5
    found = lt.explain(text, n=50, heads=2, padding=holes, **options)
    assert found.needed == sum(int(mask[..., row.numpy()].sum()) for row in holes)


def test_padding_of_an_image() -> None:
    found = lt.explain("abs(qy - ky) <= 1", rows=4, cols=5, padding=[20, 7])
    mask = lt.rule("abs(qy - ky) <= 1").mask(rows=4, cols=5).reshape(20, 20)
    assert found.needed == mask.sum() + mask[:, :7].sum()


def test_steps_of_padding_are_left_out_on_a_gpu() -> None:
    n, lengths = 1024, (1024, 300, 1, 0)
    found = lt.explain("causal", n=n, padding=lengths, **GPU)
    (part,) = found.parts
    rows, step = part.rows[0], part.step
    assert step is not None
    # tile i has keys 0 … rows*(i + 1) - 1, and of these the steps that begin below the length
    keys = [[min(rows * (i + 1), length) for i in range(n // rows)] for length in lengths]
    steps = sum(-(-each // step) for row in keys for each in row)
    assert (part.steps, found.executed) == (steps, steps * rows * step)
    whole = lt.explain("causal", n=n, batch=4, **GPU)
    assert steps * rows * step < 4 * (whole.executed or 0)
    left = torch.arange(n) >= torch.tensor(
        [[0], [n - 300], [n - 1], [n]]
    )  # the same numbers on the other side
    keys = [
        [max(0, rows * (i + 1) - (n - length) // step * step) for i in range(n // rows)]
        for length in lengths[:3]
    ]
    steps = sum(-(-each // step) for row in keys for each in row)
    assert lt.explain("causal", n=n, padding=left, **GPU).parts[0].steps == steps


def test_tiles_run_all_the_same_on_a_cpu() -> None:
    alone, padded = (lt.explain("causal", n=300, padding=x, batch=2) for x in (None, (300, 10)))
    assert alone.executed is not None
    assert padded.executed == 2 * alone.executed
    assert not padded.has_tile_map


@pytest.mark.parametrize("text", RULES)
@pytest.mark.parametrize("options", [{}, GPU], ids=["cpu", "cuda"])
def test_sequences(text: str, options: dict[str, Any]) -> None:
    queries, keys = (5, 0, 130, 40), (9, 3, 100, 0)
    cu_q, cu_k = ([0, *np.cumsum(x).tolist()] for x in (queries, keys))
    found = lt.explain(text, cu_seqlens=cu_q, heads=2, **options)
    assert found.needed == sum(int(pairs(text, n).sum()) for n in queries)
    assert found.shapes[0] == (1, 2, 175, 64)
    assert found.executed is not None
    assert found.needed is not None
    assert found.needed <= found.executed
    found = lt.explain(text, cu_seqlens=(torch.tensor(cu_q), torch.tensor(cu_k)), heads=2, **options)
    assert found.needed == sum(int(pairs(text, n, m).sum()) for n, m in zip(queries, keys, strict=True))
    assert found.shapes[1] == (1, 2, 112, 64)


def test_steps_end_with_the_sequences() -> None:
    lengths = (100, 30, 870)
    found = lt.explain("causal", cu_seqlens=[0, *np.cumsum(lengths).tolist()], **GPU)
    (part,) = found.parts
    rows, step = part.rows[0], part.step
    assert step is not None
    begins = np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)  # of the sequence of each position
    steps = sum(-(-(min(i + rows, 1000) - begins[i]) // step) for i in range(0, 1000, rows))
    assert found.executed == steps * rows * step
    late = lt.explain("k - q <= m - n", cu_seqlens=([0, 100, 130, 1000], [0, 100, 130, 1000]), **GPU)
    assert late.executed == found.executed


@pytest.mark.usefixtures("without_native")
def test_what_a_call_changes_in_words() -> None:
    found = lt.explain("causal", n=64, padding=[64, 10], softcap=50.0, sinks=True, dropout=0.1, **GPU)
    assert found.notes == (
        "padding: 74 of 128 keys are real; steps of keys that are all padding are left out",
        "softcap 50: a tanh for each executed pair",
        "sinks: a logit a head joins each softmax at its end; no pair more",
        "dropout 0.1: a hash for each executed pair; no mask is held",
    )
    assert found.json()["notes"] == list(found.notes)
    assert "74 of 128 keys" in found.text(80)
    assert lt.explain("causal", n=64).notes == ()
    assert lt.explain("causal", n=64).kernel == "sdpa"
    options: list[dict[str, Any]] = [{"padding": [5]}, {"softcap": 2.0}, {"dropout": 0.5}]
    for how in options:
        asked = lt.explain("causal", n=64, **how)
        assert asked.kernel == "cpu"
        assert asked.kernels["sdpa"]
    assert lt.explain("causal", n=64, sinks=True).kernel == "sdpa"
    packed = lt.explain("k < 4", cu_seqlens=([0, 2, 9], [0, 5, 9]))
    assert packed.notes == (
        "sequences: 2 of 2 to 7 queries, 9 in all; 4 to 5 keys, 9 in all; tiles are cut to them",
    )


def test_times_say_what_they_leave_out() -> None:
    options: list[dict[str, Any]] = [{"padding": [9]}, {"softcap": 3.0}, {"softcap": 3.0, "padding": [9]}]
    bounds = [lt.explain("k <= q and q - k <= 4", n=64, **how, **GPU).forward_time.bound for how in options]
    assert bounds == ["at most", "at least", "about"]


def test_messages() -> None:
    def refused(kind: type[LattendError], text: str, **how: Any) -> None:
        with pytest.raises(kind, match=text):
            lt.explain("causal", **how)

    with pytest.raises(NamingError, match=r"takes the rule first, .* lt\.explain\(rule, like=q\)"):
        lt.explain(torch.ones(1, 1, 4, 2), "causal")  # pyright: ignore[reportArgumentType]
    asked: Any = (*[torch.ones(1, 1, 4, 2)] * 3, "causal")
    for order in (asked, asked[::-1]):
        with pytest.raises(NamingError, match=r"takes the rule first, .* or like=\(q, k, v\)"):
            lt.explain(*order)
    refused(DomainError, "padding has a length of 50, and there are 40 keys", n=40, padding=[50])
    refused(TensorError, r"padding is a mask \(2, 40\) of bool", n=40, batch=2, padding=[4])
    refused(DomainError, "end at 5 or before; got 0, 4, 6", like=(5, 2, 8), cu_seqlens=[0, 4, 6])
    refused(TensorError, r"with cu_seqlens it is \(total, heads, D\)", like=(1, 5, 2, 8), cu_seqlens=[0, 5])
    refused(NamingError, "leave padding out", padding=[4], cu_seqlens=[0, 4])
    refused(DomainError, "softcap bends", n=4, softcap=-1.0)
    refused(TensorError, "one logit for each", n=4, sinks=torch.zeros(3))


# torch's counter


def counted(run: Any) -> int:
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


@pytest.mark.parametrize("text", RULES)
def test_flops_are_those_of_real_keys_and_of_each_sequence(text: str) -> None:
    q, k, v = (torch.randn(3, 2, 50, size) for size in (8, 8, 5))
    mask = pairs(text, 50)
    each = 2 // len(mask)  # heads that share a mask
    real = sum(int(mask[..., :length].sum()) for length in LENGTHS) * each
    given: dict[str, Any] = {"padding": torch.tensor(LENGTHS)}
    assert counted(lambda: lt.attention(q, k, v, text, **given)) == 2 * (8 + 5) * real
    assert counted(lambda: lt.max_logits(q, k, text, **given)) == 2 * 8 * real
    assert counted(lambda: lt.max_logits(q, k, text)) == 2 * 8 * 3 * each * int(mask.sum())
    cu = torch.tensor([0, 7, 7, 50])
    x, y, z = (one[0].transpose(0, 1) for one in (q, k, v))
    wanted = each * sum(int(pairs(text, n).sum()) for n in (7, 43))
    assert counted(lambda: lt.attention(x, y, z, text, cu_seqlens=cu)) == 2 * (8 + 5) * wanted


def test_backward_flops_and_padding_without_values() -> None:
    q = torch.randn(2, 2, 9, 4, requires_grad=True)
    lengths = torch.tensor([9, 2])
    real = 2 * (45 + 9 + 8)  # causal: 9*10/2 pairs, and keys 0 and 1 of nine queries
    found = counted(lambda: lt.attention(q, q, q, "causal", padding=lengths).sum().backward())
    assert found == 3 * 2 * 8 * real
    blank = torch.empty(2, 2, 9, 4, device="meta")
    found = counted(lambda: lt.attention(blank, blank, blank, "causal", padding=lengths.to("meta")))
    assert found == 2 * 8 * 4 * 45


def test_measured_pairs_know_padding() -> None:
    q = torch.randn(2, 2, 40, 4)
    rule = lt.rule("causal")
    found: list[Any] = []
    for lengths in ([40, 3], [40, 4]):
        span = torch.tensor([[0, length] for length in lengths], dtype=torch.int32)
        names = zip(
            ("given", "call", "numbers"),
            short(OperatorCall(rule.key, [40], [], None, [], span)),
            strict=True,
        )
        given: dict[str, Any] = {"q": q, "k": q, "v": q, **dict(names)}
        assert call_of(given).key_range is span
        found.append(pairs_of_call(given))
    assert [one.needed for one in found] == [2 * (820 + 40 + 39 + 38), 2 * (820 + 40 + 39 + 38 + 37)]


def test_largest_scores_are_mapped() -> None:
    q, k = torch.randn(3, 2, 2, 7, 4), torch.randn(2, 2, 7, 4)
    bias = lt.Bias("slope[batch]*k", slope=torch.tensor([0.5, 2.0]))
    lengths = torch.tensor([[7, 3], [5, 1], [0, 7]])

    def run(q: Tensor, lengths: Tensor) -> Tensor:
        return lt.max_logits(q, k, "causal", bias=bias, padding=lengths)

    each = torch.stack([run(*one) for one in zip(q, lengths, strict=True)])
    torch.testing.assert_close(torch.vmap(run)(q, lengths), each)
    torch.testing.assert_close(
        torch.vmap(run, in_dims=(0, None))(q, lengths[0]), torch.stack([run(x, lengths[0]) for x in q])
    )
