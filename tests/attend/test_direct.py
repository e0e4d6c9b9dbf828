"""Plain calls, and records of them, beside the operator: the same bits, and never those of another call."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import lattend as lt
from lattend.attend.kernels.tolerance import uses_tf32
from lattend.attend.operators import attention_operator
from lattend.attend.replay import plain_call
from lattend.attend.replay.compiled_call import COMPILED_CALLS
from lattend.attend.replay.recorder import Recorder
from lattend.errors import LattendError

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Watched(TorchDispatchMode):
    """Lets every operation through; attention then runs as an operator."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@contextmanager
def fresh() -> Iterator[None]:
    """Nothing is known at first, and what was known before comes back."""
    prepared, records = dict(plain_call.PREPARED), dict(COMPILED_CALLS)
    plain_call.PREPARED.clear()
    COMPILED_CALLS.clear()
    attention_operator._COMPILED_CALLS.clear()  # pyright: ignore[reportPrivateUsage]
    yield
    plain_call.PREPARED.clear()
    COMPILED_CALLS.clear()
    plain_call.PREPARED.update(prepared)
    COMPILED_CALLS.update(records)


Call = dict[str, Any]
NAMED = ["causal", "strided(3)", lt.rules.strided(t=3), lt.rules.strided(t=4), lt.rules.causal()]
RULES = ["k <= q", "k <= q and q - k <= t", "q >= 0", "windowed(4)", "k < 3 or q - k == head", *NAMED]
DOCUMENTS = "doc[q] == doc[k] and k <= q"
CHOICES: dict[str, list[Any]] = {
    "rule": [*RULES, DOCUMENTS],
    "n": [8, 12],
    "heads": [(2, 2), (4, 2)],
    "dim": [4, 8],
    "dtype": [torch.float32, torch.float64, torch.bfloat16],
    "layout": ["plain", "heads inside", "shifted", "one tensor", "apart"],
    "scale": [None, 0.5, 1, 1.0, -0.5],
    "softcap": [None, None, 2.0],
    "bias": [None, None, "slope", "table", "both"],
    "sinks": [False, True],
    "learns": ["", "q", "qkv", "qkv bias"],
    "lse": [False, True],
    "autocast": [False, False, True],
    "t": [2, 3],
}
CALLS = st.fixed_dictionaries({name: st.sampled_from(some) for name, some in CHOICES.items()})


def laid(x: Tensor, layout: str) -> Tensor:
    """The same numbers, lying otherwise in memory."""
    if layout == "heads inside":
        return x.transpose(1, 2).contiguous().transpose(1, 2)
    if layout == "shifted":
        return torch.cat([x.new_zeros(1), x.flatten()])[1:].view(x.shape)
    if layout == "apart":
        return torch.stack([x, x], -1)[..., 0]
    return x


def result(call: Call, seed: int) -> list[Tensor]:
    """The output, the log-sum-exp and all gradients of a call on numbers drawn from the seed."""
    source = torch.Generator().manual_seed(seed)
    (heads, kv), n, dim, learns = call["heads"], call["n"], call["dim"], call["learns"]

    def drawn(*shape: int, learns: bool) -> Tensor:
        return torch.randn(shape, generator=source).to(DEVICE, call["dtype"]).requires_grad_(learns)

    leaves = [drawn(2, h, n, dim, learns=name in learns) for name, h in (("q", heads), ("k", kv), ("v", kv))]
    q, k, v = (laid(x, call["layout"]) for x in leaves)
    if call["layout"] == "one tensor":
        k = v = q if heads == kv else k
    slope, table = drawn(heads, learns="bias" in learns), drawn(heads, n, n, learns="bias" in learns)
    bias: Any = {
        None: None,
        "slope": lt.Bias("slope[head]*(k - q)", slope=slope),
        "table": table,
        "both": lt.Bias("slope[head]*(k - q) + table[head, q, k]", slope=slope, table=table),
    }[call["bias"]]
    values: dict[str, Any] = {"t": call["t"]} if call["rule"] == "k <= q and q - k <= t" else {}
    if call["rule"] == DOCUMENTS:
        values["doc"] = torch.randint(3, (n,), generator=source).sort().values.to(DEVICE)
    with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=call["autocast"]):
        found: Any = lt.attention(
            q, k, v, call["rule"], scale=call["scale"], softcap=call["softcap"], bias=bias,
            sinks=slope if call["sinks"] else None, return_lse=call["lse"], kernel=call.get("kernel"),
            **values,
        )  # fmt: skip
    out, *lse = found if call["lse"] else (found,)
    end = out.float().sin().sum() + sum(x.clamp(-9, 9).float().sum() for x in lse)
    learned = [x for x in (*leaves, slope, table) if x.requires_grad]
    grads = torch.autograd.grad(end, learned, allow_unused=True) if learned else ()
    given = [x.detach() for x in (out, *lse, *grads) if x is not None]
    # without a log-sum-exp torch's own kernels may run, which lay results out as they like
    return given if call["lse"] else [x.contiguous() for x in given]


def same(found: list[Tensor], wanted: list[Tensor]) -> bool:
    return len(found) == len(wanted) and all(
        a.dtype == b.dtype and a.stride() == b.stride() and torch.equal(a.nan_to_num(), b.nan_to_num())
        for a, b in zip(found, wanted, strict=True)
    )


@given(first=CALLS, changed=st.sampled_from([*CHOICES]), other=CALLS)
@settings(max_examples=80, deadline=None)
def test_a_call_is_never_taken_for_another(first: Call, changed: str, other: Call) -> None:
    second = {**first, changed: other[changed]}
    with fresh():
        for seed, call in enumerate([first, second] * 3):  # checked, then known by its signature
            found = result(call, seed)
            with Watched(), fresh():
                assert same(found, result(call, seed)), (call, changed)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Triton's interpreter
@pytest.mark.parametrize(
    "kernel", ["triton", *(["sdpa", "native", "cpu", "dense"] if DEVICE == "cpu" else [])]
)
def test_layouts_in_memory_are_told_apart(kernel: str) -> None:
    call = {name: some[0] for name, some in CHOICES.items()} | {"kernel": kernel, "dim": 8, "learns": "qkv"}
    with fresh():
        for seed, layout in enumerate([*reversed(CHOICES["layout"])] * 3):
            found = result(call | {"layout": layout}, seed)
            with Watched(), fresh():
                assert same(found, result(call | {"layout": layout}, seed)), layout


@pytest.mark.parametrize("rule", RULES)
def test_a_repeated_call_has_a_record(rule: Any) -> None:
    call = {name: some[0] for name, some in CHOICES.items()} | {"rule": rule, "dim": 8, "learns": "qkv"}
    with fresh():
        result(call, 0)
        (record,) = COMPILED_CALLS.values()
        assert record.forward_pass is not None
        by_torch = record.differentiated_by_torch(*torch.ones(3, 2, 2, 8, 8, device=DEVICE))
        assert len(record.backward_passes) == (not by_torch)
        result(call, 1)
        assert [*COMPILED_CALLS.values()] == [record]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Triton's interpreter
@pytest.mark.parametrize("kernel", ["triton", None])
@pytest.mark.parametrize("bias", ["slope", "table", "turned", "both", "element"])
def test_a_learned_bias_is_decided_once(
    bias: str, kernel: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def step(seed: int) -> list[Tensor]:
        source = torch.Generator().manual_seed(seed)

        def drawn(*shape: int) -> Tensor:
            return torch.randn(shape, generator=source).to(DEVICE).requires_grad_()

        q, k, v, slope, whole = (
            drawn(2, 4, 9, 8),
            *(drawn(2, 2, 9, 8) for _ in "kv"),
            drawn(4),
            drawn(4, 9, 9),
        )
        apart = whole.detach().permute(2, 0, 1).contiguous().permute(1, 2, 0).requires_grad_()
        added: dict[str, tuple[Tensor, Any]] = {
            "slope": (slope, lt.Bias("-slope[head]*(q - k)", slope=slope)),
            "table": (whole, whole),
            "turned": (apart, apart),
            "both": (slope, lt.Bias("slope[head]*slope[head]*table[head, q, k]", slope=slope, table=whole)),
            "element": (each := drawn(2, 4, 9, 9), each),
        }
        learned, given = added[bias]
        out, lse = lt.attention(q, k, v, "causal", bias=given, kernel=kernel, return_lse=True)
        end = out.sin().sum() + lse.sum()
        return [out, lse, *torch.autograd.grad(end, (q, k, v, learned))]

    with fresh():
        wanted = step(1)
    with fresh():
        step(0)
        monkeypatch.setattr("lattend.attend.kernels.dispatch.prepare", None)
        monkeypatch.setattr("lattend.attend.kernels.dispatch.prepare_backward", None)
        assert same(step(1), wanted)


def test_what_is_refused_stays_refused() -> None:
    x = torch.ones(1, 2, 6, 4)
    lt.attention(x, x, x, "k <= q and q - k <= t", t=1, scale=1)
    lt.attention(x, x, x, lt.rules.strided(t=1))
    for _ in range(3):
        lt.attention(x, x, x, "k <= q and q - k <= t", t=1, scale=1)
    others: list[Call] = [{"scale": True}, {"dropout": False}, {"deterministic": 1}]
    for wrong in ({"t": True}, {"t": 1.0}, *({"t": 1, **other} for other in others)):
        with pytest.raises(LattendError):
            lt.attention(x, x, x, "k <= q and q - k <= t", **{"scale": 1, **wrong})
    with pytest.raises(LattendError, match="already has the value"):
        lt.attention(x, x, x, lt.rules.strided(t=1), t=1)


def test_a_record_holds_no_tensor_of_its_first_call() -> None:
    with fresh():
        q, k, v, table = (torch.randn(1, 2, 8, n, requires_grad=True) for n in (4, 4, 4, 8))
        out = lt.attention(q, k, v, "causal", bias=table)
        out.sum().backward()
        kept = [weakref.ref(x) for x in (q, k, v, table, out)]
        del q, k, v, table, out
        gc.collect()
        assert len(COMPILED_CALLS) == 1 and not any(x() is not None for x in kept)


def test_gradients_that_are_one_of_the_tensors_are_told_apart() -> None:
    with fresh():
        for kernel in ("cpu", "dense"):
            q, k, v = (torch.randn(1, 2, 8, 4, requires_grad=True) for _ in range(3))
            for grad in (v.detach(), None, torch.randn(1, 2, 8, 4)):
                out = lt.attention(q, k, v, "causal", kernel=kernel)
                given = out.detach() if grad is None else grad
                found = torch.autograd.grad(out, (q, k, v), given, retain_graph=True)
                with fresh():
                    assert same([*found], [*torch.autograd.grad(out, (q, k, v), given.clone())])


def test_numbers_changed_in_place_are_seen() -> None:
    x, slope = torch.randn(1, 2, 8, 4), torch.ones(2)
    bias = lt.Bias("slope[head]*(k - q)", slope=slope)
    before = lt.attention(x, x, x, "causal", bias=bias)
    slope.zero_()
    torch.testing.assert_close(lt.attention(x, x, x, "causal", bias=bias), lt.attention(x, x, x, "causal"))
    assert not torch.equal(before, lt.attention(x, x, x, "causal", bias=bias))


def test_a_tape_with_a_stranger_is_not_repeated() -> None:
    x, stranger = torch.ones(2), torch.ones(2)
    recorder = Recorder(x)
    assert recorder.steps(recorder.do(torch.add, x, x)) is not None
    assert recorder.steps(recorder.do(torch.add, x, stranger)) is None


def test_autograd_keeps_its_promises() -> None:
    x = torch.randn(1, 2, 8, 8, requires_grad=True)

    def layer(x: Tensor) -> Tensor:
        return lt.attention(x, x * 2, x * 3, "strided(3)")

    with torch.inference_mode():
        layer(x)  # what is kept from here serves training too
    (wanted,) = torch.autograd.grad(layer(x).sin().sum(), x)
    again = checkpoint(layer, x, use_reentrant=False)
    assert isinstance(again, Tensor)
    assert torch.equal(torch.autograd.grad(again.sin().sum(), x)[0], wanted)
    y = x * 1
    out = layer(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_threads_find_the_same_records() -> None:
    def work(_: int) -> list[Tensor]:
        drawn = (torch.randn(1, 2, n, 8, generator=torch.Generator().manual_seed(n)) for n in range(8, 24))
        return [lt.attention(x, x, x, "strided(5)") for x in drawn]

    with fresh(), ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(work, range(4))
        assert all(same(first, other) for other in others)


@pytest.mark.parametrize("rule", ["causal", DOCUMENTS])
def test_a_known_kind_is_not_checked_again(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, doc = torch.randn(1, 2, 8, 4, device=DEVICE), torch.arange(8, device=DEVICE) // 3
    values: dict[str, Any] = {"doc": doc} if rule == DOCUMENTS else {}
    with fresh():
        wanted = lt.attention(x, x, x, rule, **values)
        monkeypatch.setattr("lattend.attend.call.checked_call.checked_inputs", None)
        for _ in range(2):
            assert torch.equal(lt.attention(x, x, x, rule, **values), wanted)
        with pytest.raises(TypeError):
            lt.attention(x[:, :1], x, x, rule, **values)


def test_keys_that_autocast_casts_are_cast_each_time() -> None:
    x = torch.randn(1, 2, 8, 8, device=DEVICE)
    with fresh(), torch.autocast(DEVICE, dtype=torch.bfloat16):
        for rule in ("k <= q", "strided(5)"):
            first, second = (lt.attention(x.bfloat16(), x, x, rule) for _ in range(2))
            assert torch.equal(first, second)


def test_a_tensor_that_is_read_with_another_sign_is_so_each_time() -> None:
    x = torch.randn(1, 2, 8, 8, device=DEVICE)
    negative: Tensor = torch._neg_view(x)  # pyright: ignore
    with fresh():
        for _ in range(2):
            torch.testing.assert_close(
                lt.attention(negative, x, x, "causal"), lt.attention(-x, x, x, "causal")
            )


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.bool])
@pytest.mark.parametrize(
    "rule", ["seg[q] - seg[k] <= 0", "100*seg[q] >= 150*seg[k]", "seg[seg[q]] == seg[k]"]
)
def test_narrow_arrays_do_not_overflow(rule: str, dtype: torch.dtype) -> None:
    x, seg = torch.randn(1, 2, 8, 8, device=DEVICE), torch.arange(8, device=DEVICE) % 3
    seg = seg.to(dtype)
    with fresh():
        wanted = lt.attention(x, x, x, rule, seg=seg.long())
        for _ in range(2):
            torch.testing.assert_close(lt.attention(x, x, x, rule, seg=seg), wanted)


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU: on a CPU outputs lie as q does")
def test_the_output_alone_of_torchs_own_attention_is_not_copied() -> None:
    """With a log-sum-exp it lies as q does; alone as torch lays it, the first time and each time after."""
    x = torch.randn(1, 8, 4096, 64, device=DEVICE)
    with fresh():
        found = [lt.attention(x, x, x, "full", kernel="sdpa").stride() for _ in range(3)]
        both = lt.attention(x, x, x, "full", kernel="sdpa", return_lse=True)
    torchs = torch.nn.functional.scaled_dot_product_attention(x, x, x)
    assert found == [torchs.stride()] * 3
    assert both[0].stride() == x.stride()


def test_a_text_of_another_type_is_a_text() -> None:
    class Text(str):
        pass

    x, seg = torch.randn(1, 2, 8, 8, device=DEVICE), torch.arange(8, device=DEVICE) // 3
    rule = Text("seg[q] == seg[k]")
    with fresh():
        first, second = (lt.attention(x, x, x, rule, seg=seg) for _ in range(2))
        assert torch.equal(first, second)


@pytest.mark.skipif(not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="an older torch")
def test_tf32_may_be_allowed_by_its_newer_name() -> None:
    backends: Any = torch.backends
    matmul: Any = torch.backends.cuda.matmul
    before = backends.fp32_precision, matmul.fp32_precision
    try:
        for said in ("tf32", "ieee"):
            matmul.fp32_precision = said
            assert uses_tf32() == (said == "tf32")
        for whole in ("tf32", "ieee"):
            for said in ("tf32", "ieee", "none"):
                backends.fp32_precision, matmul.fp32_precision = whole, said
                assert uses_tf32() == (matmul.fp32_precision == "tf32")
    finally:
        backends.fp32_precision, matmul.fp32_precision = before


def test_tf32_may_be_allowed_by_its_older_name(monkeypatch: pytest.MonkeyPatch) -> None:
    matmul: Any = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    try:
        for said in (True, False):
            matmul.allow_tf32 = said
            assert uses_tf32() is said
            with monkeypatch.context() as older:
                older.setattr("lattend.attend.kernels.tolerance._fp32_precision", None)
                assert uses_tf32() is said
    finally:
        matmul.allow_tf32 = before
