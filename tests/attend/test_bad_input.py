"""Bad input to attention: one clear error each, which names the argument and the way out."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from given_tensors import qkv

import lattend as lt
from lattend.errors import DomainError, LattendError, NamingError, TensorError, TraceError

BAND = lt.rule("k <= q and q - k <= t")
Q, K, V = qkv()
IMAGE = lt.rule("qx == kx")
PACKED = lt.rules.documents()
DOC = torch.zeros(7, dtype=torch.int64)
HUGE = torch.empty(1, 1, 1, 1).expand(1, 1, 2**31, 1)

CASES: dict[str, tuple[type[LattendError], str, tuple[Any, ...], dict[str, Any]]] = {
    # tensors
    "a list": (TensorError, "q must be a tensor, got list", ([1], K, V, BAND), {"t": 1}),
    "three axes": (
        TensorError,
        'q has shape (4, 7, 8), and the rule "k <= q and q - k <= t" on a line takes (batch, heads, n, D)',
        (Q[0], K[0], V[0], BAND),
        {"t": 1},
    ),
    "five axes on a line": (TensorError, "q has shape (2, 4, 7, 8, 1)", (Q[..., None], K, V, BAND), {"t": 1}),
    "an image of three axes": (
        TensorError,
        'the rule "qx == kx" on an image takes (batch, heads, rows, cols, D), or (batch, heads, n, D) with '
        "rows=… or cols=…",
        (Q[0], K[0], V[0], IMAGE),
        {},
    ),
    "axes that differ": (
        TensorError,
        "k has 3 axes and q has 4: k is (2, 7, 8), and the rule",
        (Q, K[0], V, BAND),
        {"t": 1},
    ),
    "batches": (
        TensorError,
        "k has batch 1 and q has 2 (axis 0); they must be equal: k is (1, 2, 7, 8), q is (2, 4, 7, 8)",
        (Q, K[:1], V, BAND),
        {"t": 1},
    ),
    "heads of k and v": (TensorError, "v has heads 1 and k has 2 (axis 1)", (Q, K, V[:, :1], BAND), {"t": 1}),
    "heads of q and k": (
        TensorError,
        "q has 3 heads and k has 2; the heads of q must be a multiple of those of k",
        (Q[:, :3], K, V, BAND),
        {"t": 1},
    ),
    "no heads": (TensorError, "q has 4 heads and k has 0", (Q, K[:, :0], V[:, :0], BAND), {"t": 1}),
    "keys and values": (
        TensorError,
        "v has keys 6 and k has 7 (axis 2)",
        (Q, K, V[:, :, 1:], BAND),
        {"t": 1},
    ),
    "head dimensions": (
        TensorError,
        "k has head dimension 7 and q has 8 (axis -1)",
        (Q, K[..., 1:], V, BAND),
        {"t": 1},
    ),
    "no head dimension": (
        TensorError,
        "its head dimension, the last axis, must be at least 1",
        (Q[..., :0], K[..., :0], V, BAND),
        {"t": 1},
    ),
    "too long": (
        TensorError,
        "q has 2,147,483,648 positions, and at most 2,147,483,647 can be addressed; cut it into parts",
        (HUGE, HUGE, HUGE, BAND),
        {"t": 1},
    ),
    "devices": (
        TensorError,
        "q is on cpu and v on meta; move one: v.to(q.device)",
        (Q, K, V.to("meta"), BAND),
        {"t": 1},
    ),
    "a sparse tensor": (
        TensorError,
        "k is sparse, and attention takes dense tensors: k.to_dense()",
        (Q, K.to_sparse(), V, BAND),
        {"t": 1},
    ),
    "a dtype": (
        TensorError,
        "q is int64, and attention takes float16, bfloat16, float32, float64; cast it first",
        (Q.long(), K.long(), V.long(), BAND),
        {"t": 1},
    ),
    "dtypes": (
        TensorError,
        "q is float32 and k is float16; cast one: k.to(q.dtype)",
        (Q, K.half(), V, BAND),
        {"t": 1},
    ),
    # sizes
    "one size for both": (
        TensorError,
        'q has 5 positions and k has 7, but the rule "k <= q and q - k <= t" has one size n for both; give m',
        (Q[:, :, :5], K, V, BAND),
        {"t": 1},
    ),
    "a bias of more heads": (
        TensorError,
        "bias: slope has shape (5); slope[head] needs 4 places on axis 0, one for each head",
        (Q, K, V, BAND),
        {"t": 1, "bias": lt.Bias.alibi(5)},
    ),
    "another n": (
        DomainError,
        "n = 8 is given, but the tensors have n = 7; leave it out",
        (Q, K, V, BAND),
        {"t": 1, "n": 8},
    ),
    "another bound n": (
        DomainError,
        'the rule "k <= q and q - k <= t" is for n = 8, and the tensors have n = 7',
        (Q, K, V, BAND.at(n=8)),
        {"t": 1},
    ),
    "another m": (
        DomainError,
        "m = 8 is given, but the tensors have m = 7",
        (Q, K, V, BAND),
        {"t": 1, "m": 8},
    ),
    "other heads": (
        DomainError,
        "heads = 2 is given, but the tensors have heads = 4",
        (Q, K, V, lt.rule("q <= head")),
        {"heads": 2},
    ),
    "no rows": (NamingError, "q is flattened to 7 positions: give rows=… or cols=…", (Q, K, V, IMAGE), {}),
    "no depth": (
        NamingError,
        "q is flattened to 7 positions: give two of depth=…, rows=… and cols=…",
        (Q, K, V, lt.rule("qz == kz")),
        {"rows": 7},
    ),
    "rows that do not divide": (
        TensorError,
        "q has 7 positions, which rows = 2 does not cut into rows × cols",
        (Q, K, V, IMAGE),
        {"rows": 2},
    ),
    "no rows at all": (TensorError, "which rows = 0 does not cut", (Q, K, V, IMAGE), {"rows": 0}),
    "another image of keys": (
        TensorError,
        "k has positions 7 and q has 1 (axis 2); they must be equal",
        (Q.unflatten(2, (1, 7)), K.unflatten(2, (7, 1)), V.unflatten(2, (7, 1)), IMAGE),
        {},
    ),
    # names
    "not a rule": (
        TraceError,
        "a rule is a text or a function of q and k, got 3",
        (Q, K, V, 3),
        {},
    ),
    "missing": (
        NamingError,
        'rule "k <= q and q - k <= t" needs a value for t: give t=…',
        (Q, K, V, BAND),
        {},
    ),
    "unknown": (
        NamingError,
        'rule "k <= q and q - k <= t" has no tt; it has n, t; did you mean t?',
        (Q, K, V, BAND),
        {"t": 1, "tt": 2},
    ),
    "misspelt argument": (
        NamingError,
        "has no sofcap; it has n; did you mean softcap?",
        (Q, K, V, "causal"),
        {"sofcap": 30.0},
    ),
    "torch's dropout": (
        NamingError,
        "has no dropout_p; it has n; write dropout=…",
        (Q, K, V, "causal"),
        {"dropout_p": 0.1},
    ),
    "the largest scores": (
        NamingError,
        "it has n; write return_max_logit=True, or lt.max_logits(q, k, rule) for the largest scores alone",
        (Q, K, V, "causal"),
        {"max_logits": True},
    ),
    "torch's mask": (NamingError, "it has n; a mask is the rule", (Q, K, V, "causal"), {"attn_mask": DOC}),
    "a tokenizer's mask": (
        NamingError,
        "write padding=attention_mask.bool()",
        (Q, K, V, "causal"),
        {"attention_mask": DOC},
    ),
    "FlashAttention's lengths": (
        NamingError,
        "write cu_seqlens=cu, or cu_seqlens=(cu_q, cu_k)",
        (Q, K, V, "causal"),
        {"cu_seqlens_q": DOC},
    ),
    "no rule": (
        NamingError,
        'needs a rule: "causal", "k <= q and q - k <= 255", a mask_mod, or "full" for all pairs',
        (Q, K, V),
        {},
    ),
    "torch's causal": (
        NamingError,
        'for all pairs; is_causal: it is a rule here: lt.attention(q, k, v, "causal")',
        (Q, K, V),
        {"is_causal": True},
    ),
    "lengths in a cache": (
        NamingError,
        "has no cache_seqlens; it has n; lt.KVCache counts the lengths of its rows: cache=lt.KVCache(rule, ",
        (Q, K, V, "k <= q"),
        {"cache_seqlens": torch.zeros(2, dtype=torch.int32)},
    ),
    "pages": (
        NamingError,
        "has no block_table; it has n; there are no pages here: lt.KVCache has a row of memory for each",
        (Q, K, V, "k <= q"),
        {"block_table": torch.zeros(2, 3, dtype=torch.int32)},
    ),
    "unknown array": (
        NamingError,
        "has no docs; it has n, doc; did you mean doc?",
        (Q, K, V, PACKED),
        {"docs": DOC},
    ),
    "m on an image": (
        NamingError,
        'rule "qx == kx" has no m; it has rows, cols',
        (Q, K, V, IMAGE),
        {"rows": 7, "m": 7},
    ),
    "twice": (NamingError, "t already has the value 3; give it once", (Q, K, V, BAND.at(t=3)), {"t": 3}),
    "a float": (DomainError, "t must be an integer, got 1.5", (Q, K, V, BAND), {"t": 1.5}),
    "a bool": (DomainError, "t must be an integer, got True", (Q, K, V, BAND), {"t": True}),
    "a huge number": (
        DomainError,
        "is more than 64 bits hold; take a smaller one",
        (Q, K, V, BAND),
        {"t": 10**30},
    ),
    "outside the domain": (DomainError, "needs t >= 0, got t = -1", (Q, K, V, lt.rules.strided()), {"t": -1}),
    "an argument's name": (
        NamingError,
        "scale is an argument of attention too; bind the rule's first: rule.at(scale=…)",
        (Q, K, V, lt.rule("q - k <= scale")),
        {},
    ),
    # options
    "a kernel": (
        NamingError,
        "not 'fast'; leave it out for the best",
        (Q, K, V, BAND),
        {"t": 1, "kernel": "fast"},
    ),
    "a scale": (
        NamingError,
        "scale must be a number, got Tensor; multiply q by it instead",
        (Q, K, V, BAND),
        {"t": 1, "scale": torch.ones(1)},
    ),
    # arrays
    "no array": (
        NamingError,
        'rule "doc[q] == doc[k]" needs the array doc: give doc=tensor',
        (Q, K, V, PACKED),
        {},
    ),
    "an array as a list": (
        TensorError,
        "doc must be a tensor, got list: torch.as_tensor(doc)",
        (Q, K, V, PACKED),
        {"doc": [0] * 7},
    ),
    "an array of floats": (
        TensorError,
        "doc must hold whole numbers, got float32",
        (Q, K, V, PACKED),
        {"doc": DOC.float()},
    ),
    "an array elsewhere": (
        TensorError,
        "q is on cpu and doc on meta; move one: doc.to(q.device)",
        (Q, K, V, PACKED),
        {"doc": DOC.to("meta")},
    ),
    "a short array": (
        TensorError,
        "doc has shape (5); doc[q] needs 7 places on axis 0, one for each q",
        (Q, K, V, PACKED),
        {"doc": DOC[:5]},
    ),
    "an array of another batch": (
        TensorError,
        "doc has shape (3, 7); doc[q] takes 1 axes, or 2 with the batch of 2 first",
        (Q, K, V, PACKED),
        {"doc": DOC.expand(3, 7)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_clear_error(name: str) -> None:
    error, message, given, values = CASES[name]
    with pytest.raises(error) as caught:
        lt.attention(*given, **values)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "look",
    [
        lambda: PACKED.mask(n=7),
        PACKED.count,
        lambda: PACKED.count(n=7),
        lambda: PACKED.draw(n=7),
        lambda: PACKED.keys(3, n=7),
        lambda: PACKED.contains(3, 3, n=7),
        PACKED.reach,
        lambda: PACKED.same_as(BAND),
    ],
)
def test_an_open_array_is_asked_for(look: Any) -> None:
    with pytest.raises(NamingError, match=r'rule "doc\[q\] == doc\[k\]" gets doc when attention runs'):
        look()
