"""The operator among torch's own tools: compile without recompiling, vmap, autocast, checkpoint, opcheck."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from given_tensors import each, heads_inside, qkv
from torch import Tensor
from torch._dynamo.exc import Unsupported
from torch._dynamo.testing import CompileCounterWithBackend
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint

import lattend as lt
from lattend.attend import document_ids
from lattend.attend.call.options import KernelOptions
from lattend.attend.operators import attention_operator
from lattend.attend.operators.operator_arguments import OperatorCall, short

BAND = lt.rule("k <= q and q - k <= t")
PACKED = lt.rules.documents(causal=True)
NUMBERS = ((7, 2), (9, 3), (12, 0), (2, 1), (33, 40))


def compiled(
    function: Callable[..., Any], **options: Any
) -> tuple[Callable[..., Any], CompileCounterWithBackend]:
    torch._dynamo.reset()
    counter = CompileCounterWithBackend(options.pop("backend", "aot_eager"))
    return torch.compile(function, backend=counter, fullgraph=True, **options), counter


def run(q: Tensor, k: Tensor, v: Tensor, t: int) -> Tensor:
    return lt.attention(q, k, v, BAND, t=t)


# torch.compile


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # inductor's own
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize(("dynamic", "most"), [(True, 1), (None, 2)])
def test_no_number_recompiles(backend: str, dynamic: bool | None, most: int) -> None:
    function, counter = compiled(run, backend=backend, dynamic=dynamic)
    for n, t in NUMBERS:
        given = qkv(n, grad=True)
        out, want = function(*given, t), run(*given, t)
        torch.testing.assert_close(out, want)
        grads = (torch.autograd.grad(x.square().sum(), given) for x in (out, want))
        for grad, wanted in zip(*grads, strict=True):
            torch.testing.assert_close(grad, wanted)
    assert counter.frame_count == most


def test_a_bound_number_does_not_recompile_and_another_rule_does() -> None:
    function, counter = compiled(lt.attention)
    for t in (2, 3, 0, 5):
        torch.testing.assert_close(function(*qkv(), BAND.at(t=t)), run(*qkv(), t))
    assert counter.frame_count == 2
    other = lt.rule("q <= k and k - q <= t").at(t=1)
    torch.testing.assert_close(function(*qkv(), other), lt.attention(*qkv(), other))
    assert counter.frame_count == 3


def test_images_do_not_recompile() -> None:
    rule = lt.rules.neighbourhood()
    image, images = compiled(lambda q, k, v, r: lt.attention(q, k, v, rule, r=r), dynamic=True)
    for rows, cols, r in ((9, 11, 1), (4, 5, 2), (5, 5, 0)):
        given = each(lambda x: x.unflatten(2, (rows, cols)), qkv(rows * cols))  # noqa: B023  (used at once)
        torch.testing.assert_close(image(*given, r), lt.attention(*given, rule, r=r))
    assert images.frame_count == 1
    flat, flats = compiled(lambda q, k, v, rows: lt.attention(q, k, v, rule, r=1, rows=rows), dynamic=True)
    for rows, cols in ((9, 11), (4, 5), (5, 5)):
        given = qkv(rows * cols)
        torch.testing.assert_close(flat(*given, rows), lt.attention(*given, rule, r=1, rows=rows))
    assert flats.frame_count == 1


def test_cross_attention_does_not_recompile() -> None:
    rule = BAND.at(t=3)
    function, counter = compiled(lambda q, k, v: lt.attention(q, k, v, rule, m=k.shape[2]), dynamic=True)
    for n, m in ((7, 9), (9, 9), (12, 3)):
        torch.testing.assert_close(function(*qkv(n, m)), lt.attention(*qkv(n, m), rule, m=m))
    assert counter.frame_count == 1


def test_documents_do_not_recompile() -> None:
    def packed(q: Tensor, k: Tensor, v: Tensor, cumulative: Tensor) -> Tensor:
        return lt.attention(q, k, v, PACKED, doc=document_ids(cumulative, q.shape[2]))

    function, counter = compiled(packed, dynamic=True)
    for lengths in ([3, 4], [2, 2, 3], [1, 3, 3, 2], [6]):
        given = qkv(sum(lengths))
        fixed = lt.rules.documents(lengths=lengths, causal=True)
        cumulative = torch.tensor([0, *lengths]).cumsum(0)
        torch.testing.assert_close(function(*given, cumulative), lt.attention(*given, fixed))
    assert counter.frame_count == 1


def test_arrays_of_a_rule_are_part_of_it() -> None:
    function, counter = compiled(lt.attention)
    for lengths, frames in (([3, 4], 1), ([3, 4], 1), ([2, 5], 2)):
        fixed = lt.rules.documents(lengths=lengths)
        torch.testing.assert_close(function(*qkv(), fixed), lt.attention(*qkv(), fixed))
        assert counter.frame_count == frames


def test_errors_under_compile() -> None:
    function, _ = compiled(lambda q, k, v: lt.attention(q, k, v, BAND, tt=3))
    with pytest.raises(Unsupported, match="has no tt; it has n, t; did you mean t"):
        function(*qkv())
    function, _ = compiled(lambda q, k, v: lt.attention(q, k, v[:, :, 1:], BAND, t=3))
    with pytest.raises(Unsupported, match="v has keys 6 and k has 7"):
        function(*qkv())
    strided = lt.rules.strided()
    function, _ = compiled(lambda q, k, v, t: lt.attention(q, k, v, strided, t=t))
    with pytest.raises(lt.errors.DomainError, match="needs t >= 0, got t = -3"):
        function(*qkv(), -3)


def test_export() -> None:
    class Layer(torch.nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return run(q, k, v, 2)

    n = torch.export.Dim("n", min=2, max=999)
    program = torch.export.export(Layer(), qkv(), dynamic_shapes=({2: n}, {2: n}, {2: n}))
    torch.testing.assert_close(program.module()(*qkv(9)), run(*qkv(9), 2))


# The operator itself


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("rule", [BAND, PACKED])
def test_opcheck(rule: lt.Rule, inside: bool) -> None:
    numbers = [7, 2] if rule is BAND else [7]
    data = [] if rule is BAND else [torch.tensor([0, 0, 0, 1, 1, 2, 2])]
    given = qkv(grad=True)
    if inside:
        given = each(heads_inside, given)
    call = short(OperatorCall(rule.key, numbers, data, None, []))
    torch.library.opcheck(attention_operator.ATTENTION, (*given, *call))
    plain = tuple(x.detach() for x in given)
    torch.library.opcheck(attention_operator.FORWARD, (*plain, *call))
    out, lse = attention_operator.FORWARD(*plain, *call)
    for grad_lse in (None, torch.randn_like(lse)):
        grads = (torch.randn_like(out), grad_lse)
        torch.library.opcheck(attention_operator.BACKWARD, (*grads, *plain, out, lse, True, *call))


def test_opcheck_with_a_bias() -> None:
    tensors = [torch.randn(4, requires_grad=True), torch.randn(4, 7, 7, requires_grad=True)]
    key = "slope table\nslope[head]*(q - k) + table[head, q, k]"
    given = qkv(grad=True)
    call = OperatorCall(BAND.key, [7, 2], [], key, tensors)
    torch.library.opcheck(attention_operator.ATTENTION, (*given, *short(call)))
    span = torch.tensor([[0, 5], [2, 7]], dtype=torch.int32)
    sinks = torch.randn(4, requires_grad=True)
    options = KernelOptions(dropout=0.25, softcap=3.0)
    weighed = call._replace(key_range=span, sinks=sinks, seed=torch.tensor([5]), options=options)
    torch.library.opcheck(attention_operator.ATTENTION, (*given, *short(weighed)))


def test_second_derivatives_are_refused() -> None:
    q, k, v = qkv(grad=True)
    (grad,) = torch.autograd.grad(run(q, k, v, 2).sum(), q, create_graph=True)
    with pytest.raises(
        lt.errors.LattendError, match="this kernel of attention has first derivatives only, and a second one"
    ):
        torch.autograd.grad(grad.sum(), q)


def test_shapes_without_numbers() -> None:
    q, k, v = each(lambda x: x.to("meta"), qkv(grad=True))
    out, lse = lt.attention(q, k, v, BAND, t=2, return_lse=True)
    assert (out.device.type, out.shape, lse.shape) == ("meta", (2, 4, 7, 5), (2, 4, 7))
    out.sum().backward()
    assert q.grad is not None and q.grad.shape == q.shape
    with FakeTensorMode():
        q, k, v = qkv()
        assert run(q, k, v, 2).shape == (2, 4, 7, 5)


def test_a_key_leads_back_to_its_rule_in_another_process() -> None:
    key = lt.rule("k <= q and q - k <= far").key  # the rule is gone, as where a program was saved
    given = qkv()
    out, _ = attention_operator.forward(*given, OperatorCall(key, [7, 2], [], None, []))
    torch.testing.assert_close(out, run(*given, 2))
    lost = lt.rules.documents(lengths=[1, 1, 5]).key
    with pytest.raises(
        lt.errors.NamingError, match="the array doc of a compiled rule is not in this process"
    ):
        attention_operator.forward(*given, OperatorCall(lost, [7], [], None, []))


# Around it


def test_vmap() -> None:
    q, k, v = qkv(grad=True)

    def one(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return run(q[None], k[None], v[None], 2)[0]

    torch.testing.assert_close(torch.vmap(one)(q, k, v), run(q, k, v, 2))
    grads = (
        torch.autograd.grad(f.square().sum(), (q, k, v)) for f in (torch.vmap(one)(q, k, v), run(q, k, v, 2))
    )
    for grad, want in zip(*grads, strict=True):
        torch.testing.assert_close(grad, want)
    shared = torch.vmap(one, in_dims=(0, None, None))(q, k[0], v[0])
    torch.testing.assert_close(shared, run(q, k[:1].expand_as(k), v[:1].expand_as(v), 2))
    last = torch.vmap(one, in_dims=-1, out_dims=-1)(*(x.movedim(0, -1) for x in (q, k, v)))
    torch.testing.assert_close(last.movedim(-1, 0), run(q, k, v, 2))
    twice = torch.vmap(lambda q: run(q, k, v, 2))(torch.stack([q, 2 * q]))
    torch.testing.assert_close(twice, torch.stack([run(q, k, v, 2), run(2 * q, k, v, 2)]))


@pytest.mark.parametrize("batched", [False, True])
def test_vmap_with_arrays(batched: bool) -> None:
    given, doc = qkv(), torch.tensor([[0, 0, 0, 1, 1, 2, 2], [0, 1, 1, 1, 1, 1, 1]])

    def one(q: Tensor, k: Tensor, v: Tensor, doc: Tensor) -> Tensor:
        return lt.attention(q[None], k[None], v[None], PACKED, doc=doc[None] if batched else doc)[0]

    want = lt.attention(*given, PACKED, doc=doc)
    torch.testing.assert_close(torch.vmap(one)(*given, doc), want)
    one_for_all = torch.vmap(one, in_dims=(0, 0, 0, None))(*given, doc[0])
    torch.testing.assert_close(one_for_all, lt.attention(*given, PACKED, doc=doc[0]))


def test_autocast() -> None:
    given = qkv(grad=True)
    half = each(Tensor.bfloat16, given)
    function, _ = compiled(run)
    with torch.autocast("cpu", torch.bfloat16):
        for out in (run(*given, 2), function(*given, 2)):
            assert out.dtype == torch.bfloat16
            torch.testing.assert_close(out, run(*half, 2), rtol=0, atol=0)  # its own sums stay float32
        assert run(*each(Tensor.double, given), 2).dtype == torch.float64
    out.float().sum().backward()
    assert given[0].grad is not None and given[0].grad.dtype == torch.float32


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(reentrant: bool) -> None:
    given = qkv(grad=True)
    run(*given, 2).sum().backward()
    wants = [x.grad for x in given]
    again = tuple(x.detach().requires_grad_() for x in given)
    out = checkpoint(run, *again, 2, use_reentrant=reentrant)
    assert isinstance(out, Tensor)
    out.sum().backward()
    for x, want in zip(again, wants, strict=True):
        torch.testing.assert_close(x.grad, want)
