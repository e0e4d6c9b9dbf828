"""cu_seqlens: every kernel against a loop over the sequences, written out in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend

import lattend as lt
from lattend.attend.attention import attention
from lattend.attend.call.varlen import packed_rule
from lattend.errors import DomainError, LattendError, NamingError, TensorError
from lattend.plans.plan import plan

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
RULES = (
    "causal",
    "k <= q and q - k <= 6",
    "(q - k) % 3 == 0 and k <= q",
    "k <= q and (k < 2 or q - k <= 4)",
    "q // 8 == k // 8",
    "k - q <= m - n",
    "abs(q - k) <= 1 or q < 1 or k >= m - 2",
    "q - k <= 3*head",
)
KERNELS = ("reference", "dense", "cpu", "triton")
QUERIES, KEYS = (5, 0, 1, 17, 4), (2, 3, 1, 21, 0)
pytestmark = [  # of Triton's interpreter
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def cumulative(lengths: tuple[int, ...]) -> Tensor:
    return torch.tensor([0, *torch.tensor(lengths, dtype=torch.int64).cumsum(0).tolist()], dtype=torch.int32)


def made(queries: int, keys: int, *, heads: int = 4, kv_heads: int = 2) -> list[Tensor]:
    """q, k, v, a gradient, sinks, a relative table and slopes of each sequence."""
    source = torch.Generator().manual_seed(1)
    shapes = (
        *((queries, heads, 16), (keys, kv_heads, 16), (keys, kv_heads, 16), (queries, heads, 16)),
        *((heads,), (heads, 7), (len(QUERIES), heads)),
    )
    return [torch.randn(shape, generator=source, dtype=torch.float64) for shape in shapes]


BIAS = "table[head, min(max(k - q + 3, 0), 6)] + slope[batch, head]*(k - m + 1) + slope[batch, head]*q"


def loop(
    qkv: list[Tensor], text: str, lengths: tuple[tuple[int, ...], tuple[int, ...]], extra: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """Each sequence by itself; `extra` are sinks, table and slopes, with a softcap of 2."""
    q, k, v = qkv
    rule, outs, sums = lt.rule(text), list[Tensor](), list[Tensor]()
    begin_q = begin_k = 0
    for place, (n, m) in enumerate(zip(*lengths, strict=True)):
        mine = q[begin_q : begin_q + n].transpose(0, 1)
        share = q.shape[1] // k.shape[1]
        keys, values = (x[begin_k : begin_k + m].transpose(0, 1).repeat_interleave(share, 0) for x in (k, v))
        begin_q, begin_k = begin_q + n, begin_k + m
        sizes = {"n": n, "m": m} | ({"heads": q.shape[1]} if rule.has_heads else {})
        mask = torch.as_tensor(rule.mask(**sizes))
        scores = 0.25 * mine @ keys.mT
        if extra:
            _, table, slope = extra
            scores = 2 * torch.tanh(scores / 2)
            at_q, at_k = torch.arange(n)[:, None], torch.arange(m)
            scores = scores + table[:, (at_k - at_q + 3).clamp(0, 6)]
            scores = scores + slope[place, :, None, None] * (at_k - m + 1 + at_q)
        scores = scores.masked_fill(~mask, -torch.inf)
        beside = scores if not extra else torch.cat([scores, extra[0][:, None, None].expand(-1, n, 1)], -1)
        lse = beside.logsumexp(-1) if beside.shape[-1] else torch.full((q.shape[1], n), -torch.inf).double()
        weights = (scores - lse.masked_fill(lse == -torch.inf, 0)[..., None]).exp()
        outs.append((weights @ values).transpose(0, 1))
        sums.append(lse.transpose(0, 1))
    return torch.cat(outs), torch.cat(sums)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("text", RULES)
@pytest.mark.parametrize("apart", [False, True])
def test_kernels_are_a_loop_over_sequences(kernel: str, text: str, apart: bool) -> None:
    lengths = (QUERIES, KEYS if apart else QUERIES)
    checked(kernel, text, lengths, apart, options=False)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("text", [RULES[0], pytest.param(RULES[3], marks=pytest.mark.long)])
@pytest.mark.parametrize("apart", [False, True])
def test_with_a_bias_a_softcap_and_sinks(kernel: str, text: str, apart: bool) -> None:
    checked(kernel, text, (QUERIES, KEYS if apart else QUERIES), apart, options=True)


def checked(
    kernel: str, text: str, lengths: tuple[tuple[int, ...], tuple[int, ...]], apart: bool, *, options: bool
) -> None:
    exact, device = kernel != "triton", DEVICE if kernel in ("triton", "dense") else "cpu"
    q, k, v, grad, *extra = made(sum(lengths[0]), sum(lengths[1]))
    leaves = [x.requires_grad_() for x in (q, k, v, *(extra if options else ()))]
    wanted, sums = loop(leaves[:3], text, lengths, leaves[3:])
    filled = torch.where(sums == -torch.inf, 0, sums)
    slopes = torch.autograd.grad((wanted * grad).sum() + filled.sum(), leaves, allow_unused=True)
    kind = torch.float64 if exact else torch.float32
    mine = [x.detach().to(device, kind).requires_grad_() for x in leaves]
    cu_q, cu_k = (cumulative(each).to(device) for each in lengths)
    how: dict[str, Any] = {}
    if options:
        bias = lt.Bias(BIAS, table=mine[4], slope=mine[5])
        how = {"softcap": 2.0, "sinks": mine[3], "bias": bias}
    out, lse = attention(
        mine[0], mine[1], mine[2], text, cu_seqlens=(cu_q, cu_k) if apart else cu_q, scale=0.25,
        kernel=kernel, return_lse=True, **how,
    )  # fmt: skip
    assert torch.equal(lse.cpu() == -torch.inf, sums == -torch.inf)
    summed = torch.where(lse == -torch.inf, 0, lse)
    ends = (out * grad.to(device, kind)).sum() + summed.sum()
    found = [out, summed, *torch.autograd.grad(ends, mine)]
    for one, right in zip(found, (wanted, filled, *slopes), strict=True):
        away = (one.detach().cpu().double() - right).norm() / (1e-9 + right.norm())
        assert away < (1e-11 if exact else 3e-5), f"{kernel} {text}: {away:.1e}"


@settings(max_examples=10)
@given(
    st.lists(st.tuples(st.integers(0, 70), st.integers(0, 70)), min_size=1, max_size=6),
    st.sampled_from(RULES),
    st.booleans(),
)
def test_any_lengths(pairs: list[tuple[int, int]], text: str, apart: bool) -> None:
    queries, keys = tuple(n for n, _ in pairs), tuple(m for _, m in pairs)
    keys = keys if apart else queries
    q, k, v, *_ = made(sum(queries), sum(keys))
    wanted, sums = loop([q, k, v], text, (queries, keys), [])
    cu = (cumulative(queries), cumulative(keys)) if apart else cumulative(queries)
    out, lse = lt.attention(q, k, v, text, cu_seqlens=cu, scale=0.25, return_lse=True)
    torch.testing.assert_close(out, wanted)
    torch.testing.assert_close(lse, sums)
    largest = lt.max_logits(q, k, text, cu_seqlens=cu, scale=0.25)
    assert largest.shape == sums.shape
    assert bool((largest <= sums + 1e-9).all())


def test_dropout_drops_the_same_pairs_on_every_kernel() -> None:
    total = sum(QUERIES)
    q, k, v, *_ = (x.float().to(DEVICE) for x in made(total, total))
    found = []
    for kernel in (*(("reference", "dense", "cpu") if DEVICE == "cpu" else ()), "triton"):
        torch.manual_seed(4)
        found.append(
            lt.attention(
                q, k, v, RULES[3], cu_seqlens=cumulative(QUERIES).to(DEVICE), dropout=0.4, kernel=kernel
            )
        )
    for one in found[1:]:
        torch.testing.assert_close(one, found[0], rtol=1e-4, atol=1e-5)
    assert not torch.equal(
        found[0], lt.attention(q, k, v, RULES[3], cu_seqlens=cumulative(QUERIES).to(DEVICE))
    )


def test_positions_past_the_last_sequence_form_one_more() -> None:
    q, k, v, *_ = made(12, 12)
    short, whole = (lt.attention(q, k, v, "k < 2", cu_seqlens=torch.tensor(x)) for x in ([0, 5], [0, 5, 12]))
    assert torch.equal(short, whole)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("lengths", [(4, 3), (7, 0), ()])
def test_positions_past_the_last_sequence_have_no_bias_of_a_sequence(
    kernel: str, lengths: tuple[int, ...]
) -> None:
    device, used = DEVICE if kernel in ("triton", "dense") else "cpu", sum(lengths)
    slope = torch.linspace(0.5, 1, len(lengths), device=device).requires_grad_()
    q, k, v, grad, *_ = (x.float().to(device) for x in made(12, 12))
    cu = cumulative(lengths).to(device)

    def run(total: int, cu: Tensor) -> list[Tensor]:
        leaves = [x[:total].clone().requires_grad_() for x in (q, k, v)]
        bias = lt.Bias("slope[batch]*(k - q)", slope=slope)
        one, two, three = leaves
        out, lse = attention(
            one, two, three, "causal", cu_seqlens=cu, bias=bias, kernel=kernel, return_lse=True
        )
        largest = lt.max_logits(one, two, "causal", cu_seqlens=cu, bias=bias)
        return [out, lse, largest, *torch.autograd.grad((out * grad[:total]).sum(), (*leaves, slope))]

    short, long = run(used, cu), run(12, cu)
    for one, right in zip(long[:-1], short[:-1], strict=True):
        torch.testing.assert_close(one[:used], right)
    assert not long[0][used:].any()
    assert (long[1][used:] == -torch.inf).all()
    assert (long[2][used:] == -torch.inf).all()
    assert not any(x[used:].any() for x in long[3:6])
    torch.testing.assert_close(long[-1], short[-1])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.uint16, torch.uint64])
def test_lengths_of_any_whole_numbers(dtype: torch.dtype) -> None:
    q, k, v, *_ = made(200, 200)
    cu = torch.tensor([0, 70, 120])
    assert torch.equal(
        lt.attention(q, k, v, "k < 2", cu_seqlens=cu.to(dtype)), lt.attention(q, k, v, "k < 2", cu_seqlens=cu)
    )
    with pytest.raises(DomainError, match="never fall, and end at 200 or before; got 0, 70, 60"):
        lt.attention(q, k, v, "causal", cu_seqlens=torch.tensor([0, 70, 60]).to(dtype))
    with pytest.raises(DomainError, match="never fall"):
        lt.explain("causal", like=q, cu_seqlens=torch.tensor([0, 70, 60]).to(dtype))


def test_explain_counts_no_pairs_past_the_last_sequence_where_the_bias_has_no_entry() -> None:
    bias = lt.Bias("slope[batch]*k", slope=torch.ones(2))
    cu, like = torch.tensor([0, 4, 9]), (12, 2, 16)
    assert lt.explain("causal", like=like, cu_seqlens=cu).needed == 10 + 15 + 6
    assert lt.explain("causal", like=like, cu_seqlens=cu, bias=bias).needed == 10 + 15


def test_a_compiled_call_serves_all_lengths() -> None:
    counter, compiled = CompileCounterWithBackend("aot_eager"), 0

    @torch.compile(fullgraph=True, backend=counter)
    def run(q: Tensor, k: Tensor, v: Tensor, table: Tensor, cu: Tensor) -> Tensor:
        return lt.attention(q, k, v, RULES[3], cu_seqlens=cu, bias=lt.Bias.relative(table))

    for i, lengths in enumerate([(5, 0, 1, 33), (39,), (20, 19), (10, 20, 11), (7, 8, 9, 1, 1)]):
        q, k, v, _, _, table, _ = (x.requires_grad_() for x in made(sum(lengths), sum(lengths)))
        cu = cumulative(lengths)
        out = run(q, k, v, table, cu)
        exact = lt.attention(q, k, v, RULES[3], cu_seqlens=cu, bias=lt.Bias.relative(table))
        torch.testing.assert_close(out, exact)
        for one, right in zip(
            *(torch.autograd.grad(x.sum(), (q, k, v, table)) for x in (out, exact)), strict=True
        ):
            torch.testing.assert_close(one, right)
        if i == 3:
            compiled = counter.frame_count
    assert counter.frame_count == compiled == 3


@pytest.mark.filterwarnings("ignore:torch.searchsorted")  # which vmap gives strides
def test_exported_and_mapped() -> None:
    class Layer(torch.nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor, cu: Tensor) -> Tensor:
            return lt.attention(q, k, v, "causal", cu_seqlens=cu)

    q, k, v, *_ = made(11, 11)
    cu = torch.tensor([0, 4, 11])
    total, count = torch.export.Dim("total", min=2, max=999), torch.export.Dim("count", min=2, max=99)
    shapes = {"q": {0: total}, "k": {0: total}, "v": {0: total}, "cu": {0: count}}
    program = torch.export.export(Layer(), (q, k, v, cu), dynamic_shapes=shapes).module()
    other, lengths = made(17, 17)[:3], torch.tensor([0, 1, 1, 9, 17])
    assert torch.equal(program(*other, lengths), Layer()(*other, lengths))
    stack = [torch.stack([x, x + 1]) for x in (q, k, v)]
    bias = lt.Bias("slope[batch]*k", slope=torch.tensor([0.5, 2.0]))

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return lt.attention(q, k, v, "causal", cu_seqlens=cu, bias=bias)

    each = torch.stack([run(*one) for one in zip(*stack, strict=True)])
    torch.testing.assert_close(torch.vmap(run)(*stack), each)
    lengths = torch.tensor([[0, 4, 9], [0, 0, 3]])

    def cut(x: Tensor, cu: Tensor) -> Tensor:
        return lt.attention(x, x, x, "causal", cu_seqlens=cu, bias=bias)

    each = torch.stack([cut(x, cu) for x, cu in zip(stack[0], lengths, strict=True)])
    with pytest.raises(LattendError, match="vmap maps an array of the rule, or cu_seqlens, and none of q"):
        torch.vmap(cut, in_dims=(None, 0))(made(11, 11, kv_heads=4)[0], lengths)
    torch.testing.assert_close(torch.vmap(cut)(stack[0], lengths), each)


def test_a_window_stays_a_bound_both_ways() -> None:
    for apart in (False, True):
        rule = packed_rule(lt.rule("k <= q and q - k <= 8"), apart)
        found = plan(rule.at(n=1024, m=1024) if apart else rule.at(n=1024))
        (part,) = found.parts
        assert part.same
        assert part.axes[0].lows
        assert part.knows_full
        (part,) = found.transposed
        assert part.same
        assert part.axes[0].highs
        assert part.knows_full


def test_a_rule_is_read_within_each_sequence() -> None:
    causal = packed_rule(lt.rule("k <= q"))
    assert causal.text == "seq[q] == seq[k] and k <= q"
    first = packed_rule(lt.rule("k < 4 or 2*q - k - q <= n or q + k <= n"))
    assert first.text == (
        "seq[q] == seq[k] and (k - cu[seq[q]] < 4 or "
        "2 * q - k - q <= cu[seq[q] + 1] - cu[seq[q]] or "
        "q - cu[seq[q]] + (k - cu[seq[q]]) <= cu[seq[q] + 1] - cu[seq[q]])"
    )
    apart = packed_rule(lt.rule("k <= q"), apart=True)
    assert apart.text == "seq_q[q] == seq_k[k] and k - cu_k[seq_q[q]] <= q - cu_q[seq_q[q]]"


def test_messages() -> None:
    q, k, v, *_ = made(9, 9)
    cu = torch.tensor([0, 4, 9])

    def refused(
        kind: type[LattendError], text: str, *tensors: Tensor, rule: Any = "k <= q", **how: Any
    ) -> None:
        one, two, three = tensors or (q, k, v)
        given_: dict[str, Any] = {"cu_seqlens": cu, **how}
        with pytest.raises(kind, match=text):
            attention(one, two, three, rule, **given_)

    refused(
        TensorError,
        r"q has shape \(1, 9, 4, 16\), and with cu_seqlens it is \(total, heads, D\)",
        q[None],
        k,
        v,
    )
    refused(TensorError, r"a tensor of cumulative lengths .* got list", cu_seqlens=[0, 4, 9])
    refused(TensorError, r"a row of whole numbers .* got \(3\) of float32", cu_seqlens=cu.float())
    refused(
        TensorError,
        r"q has 9 positions and k has 5: give the lengths of both",
        q,
        k[:5],
        v[:5],
        cu_seqlens=cu[:2],
    )
    refused(TensorError, "2 sequences of queries and 1 of keys", cu_seqlens=(cu, cu[::2].clone()))
    refused(
        DomainError,
        "of queries must begin with 0, never fall, and end at 9 or before; got 0, 4, 10",
        cu_seqlens=torch.tensor([0, 4, 10]),
    )
    refused(DomainError, "got 0, 5, 4", cu_seqlens=torch.tensor([0, 5, 4]))
    refused(NamingError, "leave padding out", padding=cu)
    refused(NamingError, "is on an image", rule="qy == ky")
    refused(
        NamingError, r"looks up doc\[…\]", rule=lt.rules.documents(), doc=torch.zeros(9, dtype=torch.int64)
    )
    refused(NamingError, "uses the names cu, seq", rule="q - k <= seq", seq=3)
    refused(NamingError, "has no tt; it has n, t; did you mean t", rule="q - k <= t", t=1, tt=2)
    refused(TensorError, r"bias: a tensor \(9, 9\)", bias=torch.zeros(9, 9))
    empty = lt.Bias("table[min(abs(q - k), 3)]", table=torch.ones(0))
    refused(TensorError, r"table has shape \(0\), without an entry to read", bias=empty)
    refused(
        TensorError, r"slope\[batch\] needs 2 places", bias=lt.Bias("slope[batch]*k", slope=torch.ones(1))
    )


def jagged(lengths: tuple[int, ...], width: int, seed: int) -> Tensor:
    """A nested tensor [batch, heads, j, width] that wants a gradient."""
    source = torch.Generator().manual_seed(seed)
    parts = [torch.randn(length, 2, width, generator=source) for length in lengths]
    return torch.nested.nested_tensor(parts, layout=torch.jagged).transpose(1, 2).detach().requires_grad_()


@pytest.mark.parametrize("of_keys", [(5, 3, 0), (2, 7, 4)])
def test_nested_tensors_are_sequences_of_their_own(of_keys: tuple[int, ...]) -> None:
    of_queries, rule = (5, 3, 0), lt.rules.causal(align="bottom-right")
    q, k, v = jagged(of_queries, 4, 1), jagged(of_keys, 4, 2), jagged(of_keys, 6, 3)
    out, lse = lt.attention(q, k, v, rule, return_lse=True)
    assert out.is_nested and lse.is_nested and [x.shape for x in lse.unbind()] == [(2, x) for x in of_queries]
    out.values().sum().backward()
    assert q.grad is not None and k.grad is not None and v.grad is not None
    grads = [x.grad.unbind() for x in (q, k, v) if x.grad is not None]
    attend: Any = lt.attention
    for element, found in enumerate(out.unbind()):
        one = [x.unbind()[element][None].detach().requires_grad_() for x in (q, k, v)]
        wanted = attend(*one, rule, kernel="reference")
        torch.testing.assert_close(found[None], wanted)
        for mine, theirs in zip(grads, torch.autograd.grad(wanted.sum(), one), strict=True):
            torch.testing.assert_close(mine[element][None], theirs)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")  # of the strided layout
def test_mistakes_with_nested_tensors() -> None:
    q, plain = jagged((5, 3), 4, 1), torch.randn(2, 2, 5, 4)
    with pytest.raises(TensorError, match=r"v: q, k and v must all be nested tensors \[batch, heads, j, D\]"):
        lt.attention(q, q, plain, "causal")
    strided = torch.nested.nested_tensor([torch.randn(2, 5, 4), torch.randn(2, 3, 4)])
    with pytest.raises(TensorError, match=r"q: .* of the jagged layout, without holes, as torch\.nested\."):
        lt.attention(strided, strided, strided, "causal")
    positions_first = q.transpose(1, 2)  # [batch, j, heads, D], as nested_tensor makes them
    with pytest.raises(TensorError, match=r"q: .* \[batch, heads, j, D\] of the jagged layout"):
        lt.attention(positions_first, positions_first, positions_first, "causal")
    holes = torch.nested.nested_tensor_from_jagged(
        torch.randn(8, 2, 4), torch.tensor([0, 5, 8]), lengths=torch.tensor([4, 3])
    ).transpose(1, 2)
    with pytest.raises(TensorError, match="without holes"):
        lt.attention(holes, holes, holes, "causal")
    with pytest.raises(TensorError, match=r"k has lengths \[5, 3\] and v \[4, 4\]; they must agree"):
        lt.attention(q, q, jagged((4, 4), 4, 1), "causal")
    with pytest.raises(NamingError, match="leave cu_seqlens out"):
        lt.attention(q, q, q, "causal", cu_seqlens=torch.tensor([0, 5, 8]))
