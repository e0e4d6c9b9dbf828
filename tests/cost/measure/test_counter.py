"""FlopCounter beside torch's FlopCounterMode: the same where that is right, and right where it is not."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

import lattend as lt
from lattend.attend.explain.explain import explain
from lattend.cost.measure.measure import FlopCounter, of
from lattend.errors import NamingError
from lattend.rules.rule import Rule

R = lt.rules


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.blocks = nn.ModuleList(
            [nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)) for _ in "ab"]
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x).flatten(2).mT
        for block in self.blocks:
            y = y + block(y)
        return y


def test_same_counts_as_torch() -> None:
    """By module and operator, forward and backward."""
    model, x = Net(), torch.zeros(2, 3, 5, 5, requires_grad=True)
    result = []
    for kind in (FlopCounterMode, FlopCounter):
        with kind(display=False) as counter:
            model(x).sum().backward()
        result.append(counter.get_flop_counts())
    theirs, ours = result
    assert ours == theirs
    assert "Net.blocks.0.2" in ours


def test_table() -> None:
    model, x = Net(), torch.zeros(2, 3, 5, 5)
    with FlopCounter(display=False) as counter:
        model(x)
    lines = counter.get_table().splitlines()
    assert lines[0].split() == ["Module", "FLOP", "%", "Total"]
    assert lines[1].split() == ["Net", "23,600", "100%"]
    assert any("Net.conv" in line for line in lines)
    assert not any("Net.blocks.0" in line for line in lines)
    assert any("Net.blocks.0.2" in line for line in counter.get_table(depth=4).splitlines())
    assert "Global" in FlopCounter(display=False).get_table()


def test_display_and_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    with FlopCounter():
        torch.mm(torch.ones(2, 3), torch.ones(3, 4))
    assert "aten.mm" in capsys.readouterr().out
    with pytest.warns(UserWarning, match="mods argument is not needed"):
        FlopCounter(Net(), display=False)
    with pytest.raises(NamingError, match="count is one of needed, executed, dense, not 'all'"):
        FlopCounter(count="all")  # pyright: ignore[reportArgumentType]
    with FlopCounter(display=False, custom_mapping={torch.ops.aten.sin: lambda x, out_shape: 7}) as counter:
        torch.ones(3).sin()
        torch.ones(3).cos()
    assert counter.get_total_flops() == 6  # of halves, the whole ones


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_masked_attention(device: str) -> None:
    n, d = 300, 16
    q, k, v = (torch.zeros(2, 3, n, d, device=device, requires_grad=True) for _ in "qkv")
    place = torch.arange(n, device=device)
    window = (place[:, None] >= place) & (place[:, None] - place < 40)
    cases: list[tuple[dict[str, Any], int]] = [
        ({}, n * n), ({"is_causal": True}, n * (n + 1) // 2), ({"attn_mask": window}, 40 * n - 39 * 40 // 2),
    ]  # fmt: skip
    for options, pairs in cases:
        counts = {}
        for count in ("needed", "executed", "dense"):
            with FlopCounter(display=False, count=count) as counter:
                if "attn_mask" in options and device == "meta":  # known where it is made
                    place = torch.arange(n, device=device)
                    options["attn_mask"] = (place[:, None] >= place) & (place[:, None] - place < 40)
                functional.scaled_dot_product_attention(q, k, v, **options).sum().backward()
            counts[count] = counter.get_total_flops()
        assert counts["needed"] == 2 * 6 * pairs * 2 * d * (1 + 2)
        assert counts["dense"] == 2 * 6 * n * n * (2 * d + 5 * d)
        assert counts["needed"] <= counts["executed"] <= counts["dense"]


CALLS: list[tuple[Rule, tuple[int, ...], dict[str, Any]]] = [
    (R.full(), (2, 3, 40, 8), {}),
    (R.causal(), (2, 3, 40, 8), {}),
    (R.strided(), (2, 3, 40, 8), {"t": 5}),
    (R.windowed(), (1, 2, 40, 8), {"w": 7}),
    (R.sparse_strided(), (1, 2, 40, 8), {"l": 6}),
    (R.neighbourhood(), (1, 2, 6, 7, 8), {"r": 1}),
    (lt.rule("k <= q and q - k <= t*head"), (2, 3, 40, 8), {"t": 5}),
]


@pytest.mark.parametrize(
    ("rule", "shape", "values"), CALLS, ids=lambda x: x.text if isinstance(x, Rule) else ""
)
def test_torchs_own_counter_knows_our_rules(
    rule: Rule, shape: tuple[int, ...], values: dict[str, Any]
) -> None:
    q = torch.randn(shape, requires_grad=True)
    members = shape[0] * shape[1]
    plan = explain(rule, like=q, **values)
    assert plan.needed is not None
    assert plan.executed is not None
    needed, executed = (x * members // plan.grids * 2 * shape[-1] for x in (plan.needed, plan.executed))
    with FlopCounterMode(display=False) as theirs:
        lt.attention(q, q, q, rule, **values)
    assert theirs.get_total_flops() == 2 * needed
    with FlopCounterMode(display=False) as theirs, FlopCounter(display=False) as ours:
        lt.attention(q, q, q, rule, **values).sum().backward()
    assert theirs.get_total_flops() == 2 * 3 * needed
    assert ours.get_total_flops() == 2 * 3 * needed
    with FlopCounter(display=False, count="executed") as ours:
        lt.attention(q, q, q, rule, **values)
    assert ours.get_total_flops() == 2 * max(needed, executed)


def test_meta_tensors_are_taken_to_be_somewhere() -> None:
    class Ruled(nn.Module):
        def forward(self, q: Tensor) -> Tensor:
            return lt.attention(q, q, q, R.strided(), t=255)

    q = torch.zeros(1, 2, 8192, 64, dtype=torch.bfloat16, device="meta")
    for device in ("cpu", "cuda"):
        plan = explain(R.strided(), like=q, device=device, t=255)
        result = of(Ruled(), q, device=device)
        assert plan.executed is not None
        assert result.multiply_adds.executed == plan.executed * 2 * 128
        assert result.multiply_adds.needed == plan.needed * 2 * 128  # pyright: ignore[reportOptionalOperand]


def test_decoding_with_a_cache() -> None:
    """Each new query needs the keys that its rule attends to, and no others."""
    rule = R.strided().at(t=3)
    cache = lt.KVCache(rule, batch=1, heads=2, head_dim=4)
    q = torch.randn(1, 2, 1, 4)
    pairs = []
    for _ in range(6):
        with FlopCounter(display=False) as counter:
            lt.attention(q, q, q, rule, cache=cache)
        pairs.append(counter.get_total_flops() // (2 * 2 * 8))
    assert pairs == [1, 2, 3, 4, 4, 4]


def test_users_own_operators() -> None:
    library = torch.library.Library("lattend_test", "DEF")
    library.define("thrice(Tensor x) -> Tensor")
    library.impl("thrice", lambda x: x * 3, "CompositeExplicitAutograd")
    thrice = torch.ops.lattend_test.thrice
    with FlopCounter(display=False) as counter:
        thrice(torch.ones(4))
    assert counter.unknown == {"lattend_test.thrice": 1}
    with FlopCounter(
        display=False, custom_mapping={thrice: lambda shape, out_shape: 2 * shape[0]}
    ) as counter:
        thrice(torch.ones(4))
    assert (counter.get_total_flops(), counter.unknown) == (8, {})
    library._destroy()


def test_notes() -> None:
    q, mask = torch.zeros(1, 1, 4, 2, device="meta"), torch.ones(4, 4, dtype=torch.bool, device="meta")
    with FlopCounter(display=False) as counter:
        functional.scaled_dot_product_attention(q, q, q, mask)
    assert counter.notes == ("mask not known: attention in the module itself is counted dense",)


def test_the_first_call_of_a_process_is_counted_by_torch() -> None:
    """The kernels are loaded inside the counter, which took its formulas before."""
    program = """
import torch, lattend as lt
from torch.utils.flop_counter import FlopCounterMode
q = torch.zeros(1, 2, 8, 4, requires_grad=True)
with FlopCounterMode(display=False) as counter:
    lt.attention(q, q, q, lt.rules.causal()).sum().backward()
print(counter.get_total_flops())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) == 3 * 2 * 2 * 36 * 8  # forward, and twice that back


def test_pairs_that_are_not_known_are_counted_dense_aloud() -> None:
    q = torch.zeros(1, 2, 8, 4, device="meta")
    with (
        pytest.warns(UserWarning, match="attention is counted dense, its attended pairs are not known: doc"),
        FlopCounterMode(display=False) as counter,
    ):
        lt.attention(q, q, q, lt.rules.documents(), doc=torch.zeros(8, dtype=torch.long, device="meta"))
    assert counter.get_total_flops() == 2 * 2 * 64 * 8
