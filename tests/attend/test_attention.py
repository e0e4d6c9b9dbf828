"""attention: outputs, gradients and log-sum-exps, sizes from shapes, arrays given at call time."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from given_tensors import each, expected, heads_inside, qkv
from torch import Tensor

import lattend as lt
from lattend.attend import document_ids

BAND = lt.rule("k <= q and q - k <= t")
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-6, torch.float64: 1e-14}


def mask(rule: lt.Rule, **values: int) -> Tensor:
    return torch.from_numpy(rule.mask(**values))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_outputs(dtype: torch.dtype, kv_heads: int) -> None:
    q, k, v = qkv(n=63, kv_heads=kv_heads, dtype=dtype)
    out = lt.attention(q, k, v, BAND, t=5)
    assert (out.dtype, out.shape) == (dtype, (2, 4, 63, 5))
    want = expected(q, k, v, mask(BAND, n=63, t=5))
    torch.testing.assert_close(out.double(), want, rtol=0, atol=TOLERANCE[dtype])


def test_scale_and_lse() -> None:
    q, k, v = qkv(n=9, dtype=torch.float64)
    out, lse = lt.attention(q, k, v, BAND, scale=0.25, t=3, return_lse=True)
    torch.testing.assert_close(out, expected(q, k, v, mask(BAND, n=9, t=3), scale=0.25))
    scores = (q @ k.repeat_interleave(2, 1).mT * 0.25).masked_fill(~mask(BAND, n=9, t=3), -torch.inf)
    torch.testing.assert_close(lse, scores.logsumexp(-1))
    assert lt.attention(*qkv(), BAND, t=3, return_lse=True)[1].dtype == torch.float32


def test_empty_rows_are_zero() -> None:
    before = lt.rule("k < q")
    q, k, v = qkv(n=5, dtype=torch.float64, grad=True)
    out, lse = lt.attention(q, k, v, before, return_lse=True)
    torch.testing.assert_close(out, expected(q, k, v, mask(before, n=5)))
    assert out[:, :, 0].eq(0).all() and lse[:, :, 0].isneginf().all()
    slopes = torch.full_like(lse, torch.nan).index_fill(2, torch.arange(1, 5), 1.0)
    for grad in torch.autograd.grad((out, lse), (q, k, v), (torch.ones_like(out), slopes)):
        assert grad.isfinite().all()  # merging two parts by their lse gives NaN slopes in an empty row


@pytest.mark.parametrize("n", [0, 1])
def test_small(n: int) -> None:
    q, k, v = qkv(n=1, grad=True)
    out, lse = lt.attention(q[:, :, :n], k[:, :, :n], v[:, :, :n], lt.rule("k <= q"), return_lse=True)
    assert (out.shape, lse.shape) == ((2, 4, n, 5), (2, 4, n))
    out.sum().backward()
    assert lt.attention(q[:0], k[:0], v[:0], BAND, t=1).shape == (0, 4, 1, 5)


@pytest.mark.parametrize(
    ("rule", "m", "values"),
    [
        (BAND, 5, {"t": 2}),
        (lt.rule("k < q - 1"), 5, {}),  # empty rows
        (lt.rule("k - q <= m - n"), 3, {}),
        (lt.rule("q - k <= head"), 5, {}),
    ],
)
def test_gradients(rule: lt.Rule, m: int, values: dict[str, Any]) -> None:
    q, k, v = qkv(n=5, m=m, dtype=torch.float64, grad=True)

    def run(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        out, lse = lt.attention(q, k, v, rule, return_lse=True, **values)
        return out, lse.masked_fill(lse.isneginf(), 0)

    assert torch.autograd.gradcheck(run, (q, k, v))


def test_each_gradient_alone() -> None:
    q, k, v = qkv(dtype=torch.float64, grad=True)
    out, lse = lt.attention(q, k, v, BAND, t=2, return_lse=True)
    whole = torch.autograd.grad(out.sum() + lse.sum(), (q, k, v), retain_graph=True)
    of_out = torch.autograd.grad(out.sum(), (q, k, v), retain_graph=True)
    of_lse = torch.autograd.grad(lse.sum(), (q, k, v))
    for both, one, other in zip(whole, of_out, of_lse, strict=True):
        torch.testing.assert_close(both, one + other)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_gradients_keep_the_dtype(dtype: torch.dtype) -> None:
    exact = qkv(n=9, dtype=torch.float64, grad=True)
    given = each(lambda x: x.to(dtype), exact)
    wants = torch.autograd.grad(lt.attention(*exact, BAND, t=3).sum(), exact)
    grads = torch.autograd.grad(lt.attention(*given, BAND, t=3).sum(), given)
    for grad, want in zip(grads, wants, strict=True):
        assert grad.dtype == dtype
        torch.testing.assert_close(grad.double(), want, rtol=0, atol=20 * TOLERANCE[dtype])


def test_results_lie_as_their_inputs() -> None:
    outside = qkv(grad=True)
    inside = each(heads_inside, outside)
    flat = lt.attention(*outside, BAND, t=2)
    out = lt.attention(*inside, BAND, t=2)
    assert flat.is_contiguous() and out.transpose(1, 2).is_contiguous()
    torch.testing.assert_close(out, flat, rtol=0, atol=0)
    for grad, x in zip(torch.autograd.grad(out.sum(), inside), inside, strict=True):
        assert grad.stride() == x.stride()


# Sizes


def test_keys_of_their_own_number() -> None:
    q, k, v = qkv(n=4, m=6, dtype=torch.float64)
    aligned = lt.rules.causal("bottom-right")
    torch.testing.assert_close(lt.attention(q, k, v, aligned), expected(q, k, v, mask(aligned, n=4, m=6)))
    wide = lt.attention(q, k, v, BAND, t=1, m=6)
    torch.testing.assert_close(wide, expected(q, k, v, mask(BAND, n=4, m=6, t=1)))


def test_heads_differ() -> None:
    rule = lt.rule("k <= q and q - k <= head")
    q, k, v = qkv(dtype=torch.float64)
    torch.testing.assert_close(lt.attention(q, k, v, rule), expected(q, k, v, mask(rule, n=7, heads=4)))


@pytest.mark.parametrize("given", [{"rows": 3}, {"cols": 4}, {"rows": 3, "cols": 4}])
def test_images(given: dict[str, Any]) -> None:
    rule = lt.rules.neighbourhood()
    q, k, v = qkv(n=12, dtype=torch.float64)
    attended = mask(rule, rows=3, cols=4, r=1).reshape(12, 12)
    want = expected(q, k, v, attended)
    torch.testing.assert_close(lt.attention(q, k, v, rule, r=1, **given), want)
    torch.testing.assert_close(lt.attention(q, k, v, rule.at(**given), r=1), want)
    image = each(lambda x: x.unflatten(2, (3, 4)), (q, k, v))
    out, lse = lt.attention(*image, rule.at(r=1), return_lse=True)
    torch.testing.assert_close(out, want.unflatten(2, (3, 4)))
    assert lse.shape == (2, 4, 3, 4)


def test_volumes() -> None:
    rule = lt.rules.neighbourhood(r=1, axes=3)
    q, k, v = qkv(n=24, dtype=torch.float64)
    want = expected(q, k, v, mask(rule, depth=2, rows=3, cols=4).reshape(24, 24))
    torch.testing.assert_close(lt.attention(q, k, v, rule, depth=2, cols=4), want)
    volume = each(lambda x: x.unflatten(2, (2, 3, 4)), (q, k, v))
    torch.testing.assert_close(lt.attention(*volume, rule), want.unflatten(2, (2, 3, 4)))


# Arrays


def test_arrays_in_the_rule() -> None:
    packed = lt.rules.documents(lengths=[3, 4], causal=True)
    q, k, v = qkv(dtype=torch.float64, grad=True)
    out = lt.attention(q, k, v, packed)
    torch.testing.assert_close(out, expected(q, k, v, mask(packed)))
    del packed  # the backward still has its rule
    out.sum().backward()


def test_arrays_at_call_time() -> None:
    q, k, v = qkv(dtype=torch.float64)
    lengths = [[3, 4], [1, 5, 1]]
    fixed = [lt.rules.documents(lengths=row, causal=True) for row in lengths]
    doc = torch.from_numpy(fixed[0].data["doc"].copy())
    both = torch.stack([torch.from_numpy(rule.data["doc"].copy()) for rule in fixed])
    rule = lt.rules.documents(causal=True)
    torch.testing.assert_close(lt.attention(q, k, v, rule, doc=doc), lt.attention(q, k, v, fixed[0]))
    want = torch.cat([lt.attention(q[i : i + 1], k[i : i + 1], v[i : i + 1], fixed[i]) for i in (0, 1)])
    torch.testing.assert_close(lt.attention(q, k, v, rule, doc=both), want)
    assert lt.attention(q[:0], k[:0], v[:0], rule, doc=both[:0]).shape == (0, 4, 7, 5)


def test_a_text_looks_up_the_tensors_of_its_call() -> None:
    q, k, v = qkv(dtype=torch.float64)
    doc, text = torch.tensor([0, 0, 0, 1, 1, 1, 1]), "doc[q] == doc[k] and k <= q"
    want = lt.attention(q, k, v, lt.rules.documents(causal=True), doc=doc)
    torch.testing.assert_close(lt.attention(q, k, v, text, doc=doc), want)
    compiled = torch.compile(
        lambda doc: lt.attention(q, k, v, text, doc=doc), backend="eager", fullgraph=True
    )
    torch.testing.assert_close(compiled(doc), want)
    assert lt.explain(text, like=q, doc=doc).needed == 3 * 4 // 2 + 4 * 5 // 2
    assert torch.equal(lt.max_logits(q, k, text, doc=doc), lt.max_logits(q, k, text, doc=doc + 5))
    with pytest.raises(lt.errors.NamingError, match="has no seen; it has n, doc"):
        lt.attention(q, k, v, text, doc=doc, seen=doc)
    with pytest.raises(lt.errors.NamingError, match="has no doc; it has n"):  # it holds its own
        lt.attention(q, k, v, f"doc = [0, 0, 0, 1, 1, 1, 1]; {text}", doc=doc)


def test_a_mask_mod_reads_its_tensors_at_each_call() -> None:
    """As FlexAttention has it; nobody keeps the rule that is made of it."""
    q, k, v = qkv(dtype=torch.float64)
    q.requires_grad_()
    doc = torch.tensor([0, 0, 0, 1, 1, 1, 1])

    def packed(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return (doc[q_idx] == doc[kv_idx]) & (q_idx >= kv_idx)

    def wanted() -> Tensor:
        return lt.attention(q, k, v, lt.rules.documents(causal=True), doc=doc)

    found = lt.attention(q, k, v, packed)
    torch.testing.assert_close(found, wanted())
    slopes = (torch.autograd.grad(out.sum(), q)[0] for out in (found, wanted()))
    torch.testing.assert_close(*slopes)
    doc.copy_(torch.tensor([0, 1, 1, 1, 1, 2, 2]))
    torch.testing.assert_close(lt.attention(q, k, v, packed), wanted())
    compiled = torch.compile(lambda rule: lt.attention(q, k, v, rule), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(lt.rule(packed)), wanted())
    with pytest.raises(Exception, match="reads doc, which a compiled program would keep as it is:"):
        compiled(packed)


def test_a_mask_mod_reads_the_row_of_each_element() -> None:
    q, k, v = qkv(dtype=torch.float64)
    doc = torch.tensor([[0, 0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 1, 2, 2]])

    def packed(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return (doc[b, q_idx] == doc[b, kv_idx]) & (q_idx >= kv_idx)

    def wanted() -> Tensor:
        return lt.attention(q, k, v, lt.rules.documents(causal=True), doc=doc)

    torch.testing.assert_close(lt.attention(q, k, v, packed), wanted())
    doc.copy_(doc.flip(0))
    torch.testing.assert_close(lt.attention(q, k, v, packed), wanted())
    torch.testing.assert_close(lt.attention(q, k, v, lt.rule(packed), doc=doc), wanted())


def test_full_attention_on_other_keys() -> None:
    q, k, v = qkv(dtype=torch.float64)
    q, bias = q[:, :, :3], torch.randn(3, 7, dtype=torch.float64)
    whole = lt.attention(q, k, v, "full", m=7)
    for text in ("full", "0 <= q", "k <= q or k > q", "(q - k) % 2 == 0 or (q - k) % 2 == 1"):  # one set
        torch.testing.assert_close(lt.attention(q, k, v, text), whole)
    compiled = torch.compile(lambda q: lt.attention(q, k, v, "0 <= q"), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(q), whole)
    for text in ("k <= q", "k < n", "k < 100"):
        with pytest.raises(lt.errors.TensorError, match="give m=7, and q = 0, k = 0 are the first of each"):
            lt.attention(q, k, v, text)
    want = lt.attention(q, k, v, "full", m=7, bias=bias)
    torch.testing.assert_close(lt.attention(q, k, v, "full", bias=bias), want)
    with pytest.raises(lt.errors.TensorError, match="give m=7, and q = 0, k = 0 are the first of each"):
        lt.attention(q, k, v, "full", bias=lt.Bias.alibi(4))  # which key a query's own is, it does not say


def test_two_arrays() -> None:
    rule = lt.rule("doc[q] == doc[k] and seen[head, k] == 1", data={"doc": None, "seen": None})
    q, k, v = qkv()
    doc, seen = torch.arange(7).repeat(2, 1) // 4, torch.randint(0, 2, (4, 7))
    fixed = lt.rule(rule.text, data={"doc": doc[0].numpy(), "seen": seen.numpy()})
    torch.testing.assert_close(
        lt.attention(q, k, v, rule, doc=doc, seen=seen > 0), lt.attention(q, k, v, fixed)
    )


def test_document_ids() -> None:
    assert document_ids(torch.tensor([0, 2, 2, 3]), 5).tolist() == [0, 0, 2, 3, 3]
    rows = torch.tensor([[0, 1, 3], [0, 3, 3]], dtype=torch.int32)
    assert document_ids(rows, 3).tolist() == [[0, 1, 1], [0, 0, 0]]
