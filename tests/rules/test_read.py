"""One reader of a rule: texts, names, functions and FlexAttention's mask functions, everywhere alike."""

from __future__ import annotations

import gc
import inspect
import math
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.attention.flex_attention import BlockMask, and_masks, create_block_mask, noop_mask, or_masks

import lattend as lt
from lattend.errors import DomainError, LattendError, NamingError, TextError, TraceError
from lattend.rules.reader import read_rule

WINDOW = 3


def causal(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return q_idx >= kv_idx


def sliding(window: int) -> Any:
    def near(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return q_idx - kv_idx <= window

    return near


def flex_mask(mask: Any, n: int, heads: int = 1) -> np.ndarray[Any, Any]:
    """What FlexAttention itself makes of a mask function."""
    from torch.nn.attention.flex_attention import create_mask

    return create_mask(mask, 1, heads, n, n, device="cpu")[0].numpy()


# Mask functions

MASKS: dict[str, tuple[Any, str]] = {
    "causal": (causal, "q >= k"),
    "and_masks": (and_masks(causal, sliding(2)), "q >= k and q - k <= 2"),
    "or_masks": (or_masks(causal, sliding(2)), "q >= k or q - k <= 2"),
    "nested": (or_masks(and_masks(causal, sliding(2)), causal), "q >= k and q - k <= 2 or q >= k"),
    "everything": (noop_mask, "true"),
    "nothing": (lambda b, h, q_idx, kv_idx: b.new_zeros((), dtype=torch.bool), "false"),
    "other names": (lambda b, h, q, kv: q >= kv, "q >= k"),
    "by place": (lambda a, c, i, j: j <= i, "k <= q"),
    "ours last": (lambda b, h, q, k: k <= q, "k <= q"),
    "heads": (lambda b, h, q_idx, kv_idx: q_idx - kv_idx <= h + 1, "q - k <= head + 1"),
    "hugging face": (lambda batch_idx, head_idx, q_idx, kv_idx: kv_idx > q_idx - 2, "k > q - 2"),
    "two positions": (lambda q_idx, kv_idx: kv_idx <= q_idx, "k <= q"),
    "abs": (lambda b, h, q_idx, kv_idx: torch.abs(q_idx - kv_idx) <= 2, "abs(q - k) <= 2"),
    "method": (lambda b, h, q_idx, kv_idx: (q_idx - kv_idx).abs() <= 2, "abs(q - k) <= 2"),
    "minimum": (
        lambda b, h, q_idx, kv_idx: torch.minimum(q_idx, kv_idx) < torch.maximum(kv_idx - 2, q_idx - 1),
        "min(q, k) < max(k - 2, q - 1)",
    ),
    "blocks": (lambda b, h, q_idx, kv_idx: q_idx // 4 == kv_idx // 4, "q // 4 == k // 4"),
    "div": (
        lambda b, h, q_idx, kv_idx: torch.div(q_idx, 4, rounding_mode="floor") == kv_idx // 4,
        "q // 4 == k // 4",
    ),
    "remainder": (lambda b, h, q_idx, kv_idx: torch.remainder(q_idx - kv_idx, 3) == 0, "(q - k) % 3 == 0"),
    "clamp": (lambda b, h, q_idx, kv_idx: (q_idx - 3).clamp(min=0) <= kv_idx, "max(q - 3, 0) <= k"),
    "where": (
        lambda b, h, q_idx, kv_idx: torch.where(q_idx < 4, kv_idx < 4, kv_idx <= q_idx),
        "q < 4 and k < 4 or not q < 4 and k <= q",
    ),
    "where as min and max": (
        lambda b, h, q_idx, kv_idx: torch.where(q_idx < 4, q_idx, 4) <= torch.where(kv_idx <= 3, 3, kv_idx),
        "min(q, 4) <= max(3, k)",
    ),
    "logical": (
        lambda b, h, q_idx, kv_idx: torch.logical_or(kv_idx == 0, ~torch.logical_not(q_idx == kv_idx)),
        "k == 0 or q == k",
    ),
    "a number as a tensor": (lambda b, h, q_idx, kv_idx: torch.tensor(2) >= q_idx - kv_idx, "q - k <= 2"),
    "to a device": (lambda b, h, q_idx, kv_idx: (kv_idx <= q_idx).to(q_idx.device), "k <= q"),
}


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_function_is_its_text(name: str) -> None:
    mask, text = MASKS[name]
    found = lt.rule(mask)
    heads = {"heads": 3} if "head" in text else {}
    assert (found.mask(n=9, **heads) == lt.rule(text).mask(n=9, **heads)).all()
    if len(inspect.signature(mask).parameters) == 4 and name != "minimum":
        wanted = flex_mask(mask, 9, heads.get("heads", 1))
        assert (found.mask(n=9, **heads) == (wanted if heads else wanted[0])).all()


def test_joined_masks_read_as_one_would_write_them() -> None:
    assert str(lt.rule(MASKS["and_masks"][0])) == "q >= k and q - k <= 2"
    assert str(lt.rule(MASKS["or_masks"][0])) == "q >= k or q - k <= 2"


def test_positions_of_a_mask_function_are_no_parameters() -> None:
    assert lt.rule(lambda q_idx, kv_idx: kv_idx <= q_idx).parameters == []
    assert lt.rule(causal).positions == ["q", "k"]


def test_functions_of_four_positions_stay_what_they_were() -> None:
    assert lt.rule(lambda qy, qx, ky, kx: (qy == ky) | (qx == kx)) == lt.rules.axial()
    assert lt.rule(lambda q, k, t, w: (q - k <= t) & (k < w)).parameters == ["t", "w"]
    assert lt.rule(lambda t, w, q, k: (q - k <= t) & (k < w)).parameters == ["t", "w"]


def test_a_tensor_that_is_looked_up_becomes_an_array() -> None:
    document_id = torch.tensor([0, 0, 1, 1, 1])
    allowed = torch.eye(5, dtype=torch.bool)

    def document(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return document_id[q_idx] == document_id[kv_idx]

    def some(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return allowed[q_idx, kv_idx]

    found = lt.rule(document)
    assert str(found) == "document_id[q] == document_id[k]"
    assert found.data["document_id"].tolist() == [0, 0, 1, 1, 1]
    assert (found.mask(n=5) == flex_mask(document, 5)[0]).all()
    assert lt.rule(some).mask(n=5).sum() == 5
    both = lt.rule(and_masks(document, causal))
    assert (both.mask(n=5) == flex_mask(and_masks(document, causal), 5)[0]).all()


def test_tensors_of_one_name_are_kept_apart() -> None:
    def same(ids: torch.Tensor) -> Any:
        return lambda b, h, q_idx, kv_idx: ids[q_idx] == ids[kv_idx]

    found = lt.rule(and_masks(same(torch.tensor([0, 0, 1])), same(torch.tensor([0, 1, 1]))))
    assert list(found.data) == ["ids", "ids2"]
    assert found.mask(n=3).sum() == 3
    held = {"ids": torch.tensor([0, 0, 1])}
    assert list(lt.rule(lambda b, h, q_idx, kv_idx: held["ids"][q_idx] == 0).data) == ["array"]


def test_a_function_of_a_module_without_a_name() -> None:
    scope: dict[str, Any] = {"ids": torch.tensor([0, 0, 1])}
    exec("def same(b, h, q_idx, kv_idx):\n    return ids[q_idx] == ids[kv_idx]", scope)
    assert list(lt.rule(scope["same"]).data) == ["ids"]


def test_an_array_that_differs_along_the_batch_is_given_when_attention_runs() -> None:
    document_id = torch.tensor([[0, 0, 1, 1], [0, 1, 1, 1]])

    def document(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return document_id[b, q_idx] == document_id[b, kv_idx]

    found = lt.rule(document)
    assert found.open == ("document_id",)
    q, k, v = torch.randn(3, 2, 1, 4, 8, dtype=torch.float64)
    with pytest.raises(NamingError, match="needs the array document_id: give document_id=tensor"):
        lt.attention(q, k, v, found)
    out: torch.Tensor = lt.attention(q, k, v, found, document_id=document_id)
    torch.testing.assert_close(lt.attention(q, k, v, document), out)  # what the function reads at the call
    for element, ids in enumerate(document_id):
        alone = [x[element : element + 1] for x in (q, k, v)]
        ids_alone: Any = ids.numpy()
        wanted = lt.attention(alone[0], alone[1], alone[2], lt.rules.documents(ids=ids_alone))
        torch.testing.assert_close(out[element : element + 1], wanted)
    document_id = document_id[:1]
    assert lt.rule(document).data["document_id"].tolist() == [0, 0, 1, 1]


def test_a_block_mask_gives_its_mask_function() -> None:
    made = create_block_mask(and_masks(causal, sliding(2)), None, None, 256, 256, device="cpu")
    assert lt.rule(made).same_as(lt.rules.strided(2))
    blocks = torch.zeros(1, 1, 2, dtype=torch.int32), torch.zeros(1, 1, 2, 2, dtype=torch.int32)
    alone = lt.rule(BlockMask.from_kv_blocks(*blocks))  # no block of two rows is listed
    assert alone.text == "blocks[q // 128, k // 128] > 0"
    assert not alone.mask(n=256).any()


LENGTHS = torch.tensor([3, 4])


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (lambda b, h, q_idx, kv_idx: q_idx - kv_idx <= b, "depends on b, the batch element, and a rule is "
         "the same for all of them; only an array may differ, as in document_id[b, q_idx]"),
        (lambda b, h, q_idx, kv_idx: kv_idx < LENGTHS[b], "LENGTHS[b] is one number for each batch element; "
         "write it for each position, as in keep[b, kv_idx] with keep = torch.arange(n) < LENGTHS[:, None]"),
        (lambda b, h, q_idx, kv_idx: kv_idx <= torch.where(q_idx < 4, q_idx, kv_idx),
         "where chooses between numbers here; choose between conditions"),
        (lambda b, h, q_idx, kv_idx: torch.sqrt(q_idx) < kv_idx, "torch.sqrt of q, which is symbolic"),
        (lambda b, h, q_idx, kv_idx: q_idx.sqrt() < kv_idx, ".sqrt of q, which is symbolic"),
        (lambda b, h, q_idx, kv_idx: torch.add(q_idx, kv_idx, alpha=2) < 3, "torch.add of q, which is"),
        (lambda b, h, q_idx, kv_idx: torch.div(q_idx, 4) < 3, 'write // or rounding_mode="floor"'),
        (lambda b, h, q_idx, kv_idx: q_idx - kv_idx <= LENGTHS, "is not a whole number; write an integer"),
        (lambda b, h, q_idx, kv_idx: LENGTHS[q_idx // 0] == 3, "the divisor must be at least 1"),
    ],
)  # fmt: skip
def test_what_a_mask_function_cannot_say(mask: Any, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        lt.rule(mask)
    assert message in str(caught.value)


# Options


def test_options_hold_for_names_and_rules_too() -> None:
    assert lt.rule("causal", cross=True).sizes == ["n", "m"]
    assert (
        lt.rule(lt.rules.strided(), where="t <= 5").where == lt.rule("true", where="t >= 0 and t <= 5").where
    )
    ids = np.array([0, 0, 1])
    assert lt.rule("documents", data={"doc": ids}).mask(n=3).sum() == 5
    assert lt.rule("strided(2)", cross=True).values == {"t": 2}
    with pytest.raises(NamingError, match="cross=True needs a rule on a line"):
        lt.rule("axial", cross=True)


# Positions by other letters


@pytest.mark.parametrize("text", ["j <= i", "i - t <= j", "query >= key", "kv_idx <= q_idx"])
def test_positions_are_q_and_k(text: str) -> None:
    with pytest.raises(
        TextError, match="are no positions: a query's position is q and a key's is k"
    ) as caught:
        lt.rule(text)
    assert (caught.value.start, caught.value.end) == (0, len(text.split(maxsplit=1)[0]))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("j <= i", "did you mean k <= q?"),
        ("j <= i and i - j < w", "did you mean k <= q and q - k < w?"),
        ("q_idx >= kv_idx", "did you mean q >= k?"),
        ("i <= x", "as in k <= q;"),
    ],
)
def test_the_rule_in_our_letters_is_offered(text: str, meant: str) -> None:
    with pytest.raises(TextError) as caught:
        lt.rule(text)
    assert meant in caught.value.message


def test_positions_of_functions_are_q_and_k() -> None:
    with pytest.raises(TraceError, match="function of j, i: j and i are no positions"):
        lt.rule(lambda i, j: j <= i)
    assert lt.rule("k <= q and i <= j").parameters == ["i", "j"]
    with pytest.raises(
        NamingError, match=r"needs a value for n and a and b: .*; positions are named q and k"
    ):
        lt.rule("a <= b").mask()


# Everywhere


SAME = (
    "strided(2)",
    "k <= q and q - k <= 2",
    lt.rules.strided(2),
    lambda q, k: (k <= q) & (q - k <= 2),
    and_masks(causal, sliding(2)),
)


@pytest.mark.parametrize("given", SAME)
def test_whatever_takes_a_rule_takes_all_of_these(given: Any) -> None:
    wanted = lt.rules.strided(2)
    q, k, v = torch.randn(3, 1, 2, 9, 8, dtype=torch.float64)
    torch.testing.assert_close(lt.attention(q, k, v, given), lt.attention(q, k, v, wanted))
    assert lt.explain(given, like=q).needed == 24
    cache = lt.KVCache(given, batch=1, heads=2, head_dim=8, dtype=torch.float64)
    assert cache.capacity == 3
    out = lt.attention(q, k, v, given, cache=cache)
    torch.testing.assert_close(out, lt.attention(q, k, v, wanted))
    price = lt.cost.attention(given, n=9, heads=1, D_hid=1, projections=None)
    assert price.multiplies == 48
    block = lt.cost.transformer_block(given, n=9, d=8, heads=2).multiplies
    assert isinstance(block, int) and block > 0
    layer = lt.nn.MultiHeadAttention(8, 4, 4, 8, heads=2, rule=given)
    assert layer.rule_for(torch.zeros(1, 9, 8)).same_as(wanted)
    one, x = [[1, 0], [0, 1]], [[1, 0], [0, 1], [1, 1], [2, 0]]
    worked = lt.study.work(x, one, one, one, rule=given)
    assert worked.weights.decimals() == lt.study.work(x, one, one, one, rule=wanted).weights.decimals()


def test_parameters_are_given_beside_a_name() -> None:
    q, k, v = torch.randn(3, 1, 2, 9, 8, dtype=torch.float64)
    wanted = lt.attention(q, k, v, "strided(2)")
    torch.testing.assert_close(lt.attention(q, k, v, "strided", t=2), wanted)
    torch.testing.assert_close(lt.attention(q, k, v, "sliding_window", window=3), wanted)
    torch.testing.assert_close(lt.attention(q, k, v, lambda q, k, t: (k <= q) & (q - k <= t), t=2), wanted)


NOTHING = torch.zeros(1, 1, 2, 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda rule: lt.attention(
            torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 2, 2), rule
        ),
        lambda rule: lt.explain(rule, n=4),
        lambda rule: lt.KVCache(rule, batch=1, heads=1, head_dim=2),
        lt.cost.attention,
        lambda rule: lt.nn.MultiHeadAttention(8, 4, 4, 8, heads=2, rule=rule),
        lambda rule: lt.study.work([[1]], [[1]], [[1]], [[1]], rule=rule),
    ],
    ids=["attention", "explain", "KVCache", "cost", "nn", "work"],
)
def test_what_is_no_rule_is_refused_alike(call: Any) -> None:
    with pytest.raises(TraceError, match="a rule is a text or a function of q and k, got 3"):
        call(3)
    with pytest.raises(TextError, match="no rule is named stridde; did you mean strided"):
        call("stridde")


# Remembering


def test_texts_and_plain_functions_are_read_once() -> None:
    assert read_rule("strided(7)") is read_rule("strided(7)")

    def make(t: int) -> Any:
        return lambda q, k: q - k <= t

    assert read_rule(make(3)) is read_rule(make(3))
    assert read_rule(make(3)) is not read_rule(make(4))
    assert str(read_rule(make(1))) == "q - k <= 1"
    with pytest.raises(TraceError, match="True in q - k <= True is not a whole number"):
        read_rule(make(True))  # True == 1, and is no width
    assert read_rule(sliding(5)) is read_rule(sliding(5))
    joined = and_masks(causal, sliding(5))
    assert read_rule(joined) is read_rule(and_masks(causal, sliding(5)))


def test_what_changed_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    width = 3

    def near(q: Any, k: Any) -> Any:
        return q - k <= width

    assert str(read_rule(near)) == "q - k <= 3"
    width = 4
    assert str(read_rule(near)) == "q - k <= 4"

    def near_global(q: Any, k: Any) -> Any:
        return q - k <= WINDOW

    assert str(read_rule(near_global)) == "q - k <= 3"
    monkeypatch.setitem(globals(), "WINDOW", 5)
    assert str(read_rule(near_global)) == "q - k <= 5"
    settings = {"width": 3}
    assert str(read_rule(lambda q, k: q - k <= settings["width"])) == "q - k <= 3"
    held: Any = lambda q, k: q - k <= settings["width"]  # noqa: E731
    read_rule(held)
    settings["width"] = 6
    assert str(read_rule(held)) == "q - k <= 6"
    ids = torch.tensor([0, 0, 1])

    def document(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return ids[q_idx] == ids[kv_idx]

    assert read_rule(document).mask(n=3).sum() == 5
    ids[1] = 1
    assert read_rule(document).mask(n=3).sum() == 5
    assert read_rule(document).data["ids"].tolist() == [0, 1, 1]
    monkeypatch.setattr(math, "tau", 3, raising=False)
    assert str(read_rule(lambda q, k: q - k <= math.tau)) == "q - k <= 3"


def test_arrays_are_not_kept_alive() -> None:
    def read() -> weakref.ref[torch.Tensor]:
        ids = torch.tensor([0, 0, 1])
        read_rule(lambda b, h, q_idx, kv_idx: ids[q_idx] == ids[kv_idx])
        return weakref.ref(ids)

    gone = read()
    gc.collect()
    assert gone() is None


def test_a_compiled_call_takes_texts_and_functions() -> None:
    q, k, v = torch.randn(3, 1, 2, 9, 8)
    wanted = lt.attention(q, k, v, "strided(2)")
    for given in SAME[:4]:
        compiled = torch.compile(lambda q, k, v, given=given: lt.attention(q, k, v, given), backend="eager")
        torch.testing.assert_close(compiled(q, k, v), wanted)
        torch._dynamo.reset()


def test_errors_are_lattend_errors() -> None:
    for text in ("strided(", "strided(255", "strided)", "strided(3) + (k < 4)", "strided(1"):
        with pytest.raises(LattendError):
            lt.rule(text)
    with pytest.raises(TextError, match=r"this \( is not closed"):
        lt.rule("strided(255")
    with pytest.raises(DomainError):
        lt.rules.natten(4, 5)
