"""replace_attention: the same outputs and gradients as the module with the rule's mask."""

from __future__ import annotations

import copy
import pickle
from math import inf
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import lattend as lt
from lattend.errors import LattendError, NamingError, TensorError

N, BATCH, D, HEADS = 13, 2, 8, 2
RULE = "k <= q and q - k <= t"
FORBIDDEN = ~torch.from_numpy(lt.rule(RULE).mask(n=N, t=3))
PADDED = torch.arange(N) >= torch.tensor([[N], [7]])  # True is padding, as torch has it


def tokens(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), requires_grad=True)


def multihead(**options: Any) -> nn.MultiheadAttention:
    torch.manual_seed(1)
    made = nn.MultiheadAttention(D, HEADS, **{"batch_first": True, **options})
    if made.in_proj_bias is not None:
        nn.init.normal_(made.in_proj_bias)
    return made


def assert_same(own: nn.Module, ours: nn.Module, wanted: Tensor, found: Tensor, *inputs: Tensor) -> None:
    """Outputs, and the gradients of inputs and parameters."""
    torch.testing.assert_close(found, wanted, atol=2e-6, rtol=2e-5)
    slope = torch.linspace(-1, 1, wanted.numel()).view(wanted.shape).cos()
    names = [name for name, _ in own.named_parameters()]
    assert [name for name, _ in ours.named_parameters()] == names
    each = [
        torch.autograd.grad(out, [*inputs, *module.parameters()], slope)
        for module, out in ((own, wanted), (ours, found))
    ]
    for name, one, other in zip([f"input {i}" for i in range(len(inputs))] + names, *each, strict=True):
        torch.testing.assert_close(other, one, atol=5e-6, rtol=2e-4, msg=name)


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"batch_first": False}])
@pytest.mark.parametrize("padded", [None, PADDED, torch.zeros(PADDED.shape).masked_fill(PADDED, -inf)])
def test_multihead_attention(options: dict[str, Any], padded: Tensor | None) -> None:
    own, x = multihead(**options), tokens(BATCH, N, D)
    ours = lt.nn.replace_attention(copy.deepcopy(own), RULE, t=3)
    given = x if own.batch_first else x.transpose(0, 1)
    forbidden = FORBIDDEN if padded is None or padded.dtype == torch.bool else torch.zeros(N, N)
    if forbidden is not FORBIDDEN:
        forbidden = forbidden.masked_fill(FORBIDDEN, -inf)
    wanted, all_weights = own(given, given, given, key_padding_mask=padded, attn_mask=forbidden)
    found, weights = ours(given, given, given, key_padding_mask=padded)
    if padded is not None:  # queries past the window of the last real key have none: NaN in torch, zeros here
        full = ours(given, given, given, key_padding_mask=padded)[0]
        assert full.isfinite().all()
        kept = (slice(0, 10), ...) if not own.batch_first else (slice(None), slice(0, 10))
        wanted, found = wanted[kept], found[kept]
        all_weights, weights = all_weights[:, :10], weights[:, :10]
        torch.testing.assert_close(found, wanted, atol=2e-6, rtol=2e-5)
    else:
        assert_same(own, ours, wanted, found, x)
    torch.testing.assert_close(weights, all_weights, atol=2e-6, rtol=2e-5)
    each = ours(given, given, given, average_attn_weights=False)[1]
    assert each.shape == (BATCH, HEADS, N, N)
    assert ours(given, given, given, need_weights=False)[1] is None


def test_other_keys_and_tokens_without_a_batch() -> None:
    own, x = multihead(kdim=5, vdim=3), tokens(BATCH, N, D)
    ours = lt.nn.replace_attention(copy.deepcopy(own), "k <= q + 4", m=17)
    keys, values = tokens(BATCH, 17, 5, seed=1), tokens(BATCH, 17, 3, seed=2)
    forbidden = torch.arange(17) > torch.arange(N)[:, None] + 4
    wanted = own(x, keys, values, attn_mask=forbidden, need_weights=False)[0]
    found = ours(x, keys, values, need_weights=False)[0]
    assert_same(own, ours, wanted, found, x, keys, values)
    wanted = own(x[0], keys[0], values[0], attn_mask=forbidden)
    torch.testing.assert_close(ours(x[0], keys[0], values[0]), wanted)


@pytest.mark.parametrize("kind", [torch.bool, torch.float32])
def test_an_attn_mask_joins_the_rule(kind: torch.dtype) -> None:
    own, x = multihead(), tokens(BATCH, N, D)
    ours = lt.nn.replace_attention(copy.deepcopy(own), "k <= q")
    window = torch.arange(N)[:, None] - torch.arange(N) > 3
    given = window if kind is torch.bool else torch.zeros(N, N).masked_fill(window, -inf)
    wanted = own(x, x, x, attn_mask=FORBIDDEN, need_weights=False)[0]
    assert_same(own, ours, wanted, ours(x, x, x, attn_mask=given, need_weights=False)[0], x)


def test_an_attn_mask_for_each_head_of_each_element() -> None:
    own, x = multihead(), tokens(BATCH, N, D)
    ours = lt.nn.replace_attention(copy.deepcopy(own), RULE, t=3)
    forbidden = torch.rand(BATCH * HEADS, N, N, generator=torch.Generator().manual_seed(4)) < 0.3
    forbidden &= ~torch.eye(N, dtype=torch.bool)
    wanted = own(x, x, x, attn_mask=forbidden | FORBIDDEN, need_weights=False)[0]
    assert_same(own, ours, wanted, ours(x, x, x, attn_mask=forbidden, need_weights=False)[0], x)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_encoder(norm_first: bool, training: bool) -> None:
    torch.manual_seed(2)
    layer = nn.TransformerEncoderLayer(D, HEADS, 16, 0.0, batch_first=True, norm_first=norm_first)
    own = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first).train(training)
    ours = lt.nn.replace_attention(copy.deepcopy(own), RULE, t=3)
    x = tokens(BATCH, N, D)
    assert_same(own, ours, own(x, mask=FORBIDDEN), ours(x), x)
    with torch.no_grad():  # where torch would run a fused layer, without a rule
        torch.testing.assert_close(ours(x), own(x, mask=FORBIDDEN), atol=2e-6, rtol=2e-5)
        real = ~PADDED[1]
        padded, alone = ours(x, src_key_padding_mask=PADDED), own(x[1:, real], mask=FORBIDDEN[:7, :7])
        torch.testing.assert_close(padded[1:, real], alone, atol=2e-6, rtol=2e-5)


def test_a_decoder_changes_its_self_attention_alone() -> None:
    torch.manual_seed(3)
    own = nn.TransformerDecoderLayer(D, HEADS, 16, 0.0, batch_first=True)
    ours = lt.nn.replace_attention(copy.deepcopy(own), RULE, t=3)
    x, memory = tokens(BATCH, N, D), tokens(BATCH, 5, D, seed=1)
    assert_same(own, ours, own(x, memory, tgt_mask=FORBIDDEN), ours(x, memory), x, memory)
    assert type(ours.multihead_attn) is nn.MultiheadAttention


def test_weights_hooks_and_files_stay() -> None:
    own = multihead()
    kept, keys = list(own.parameters()), list(own.state_dict())
    ours = lt.nn.replace_attention(own, RULE, t=3)
    assert ours is own
    assert all(a is b for a, b in zip(own.parameters(), kept, strict=True))
    assert (
        list(ours.state_dict())
        == keys
        == ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]
    )
    x = tokens(BATCH, N, D)
    for twin in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert torch.equal(twin(x, x, x)[0], ours(x, x, x)[0])
    wider = lt.nn.replace_attention(ours, "full")  # again, with another rule
    torch.testing.assert_close(wider(x, x, x)[0], multihead()(x, x, x)[0])


def test_a_compiled_encoder_layer() -> None:
    own = nn.TransformerEncoderLayer(D, HEADS, 16, 0.0, batch_first=True)
    ours = lt.nn.replace_attention(copy.deepcopy(own), RULE, t=3)
    x = tokens(BATCH, N, D)
    found = torch.compile(ours, backend="aot_eager", fullgraph=True)(x)
    torch.testing.assert_close(found, own(x, src_mask=FORBIDDEN))


@pytest.mark.parametrize("training", [True, False])
def test_a_compiled_encoder_with_padding(training: bool) -> None:
    layer = nn.TransformerEncoderLayer(D, HEADS, 16, 0.0, batch_first=True)
    own = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).train(training)
    ours = lt.nn.replace_attention(copy.deepcopy(own), RULE, t=3)
    compiled = torch.compile(ours, backend="aot_eager", fullgraph=True)
    for n in (N, 9):
        x = tokens(BATCH, n, D, seed=n)
        padded = torch.arange(n) >= torch.tensor([[n], [5]])
        found = compiled(x, src_key_padding_mask=padded)
        # with gradients: torch's fused layer gives NaN where padding leaves a row without keys
        wanted = own(x, mask=FORBIDDEN[:n, :n], src_key_padding_mask=padded)
        torch.testing.assert_close(found[~padded], wanted[~padded])
    with pytest.raises(RuntimeError, match="numbers besides 0 and -inf"):
        compiled(tokens(BATCH, N, D), src_key_padding_mask=torch.ones(BATCH, N))


def test_dropout_is_for_training() -> None:
    ours = lt.nn.replace_attention(multihead(dropout=0.5), RULE, t=3)
    x = tokens(BATCH, N, D)
    assert not torch.equal(ours(x, x, x)[0], ours(x, x, x)[0])
    ours.eval()
    assert torch.equal(ours(x, x, x)[0], ours(x, x, x)[0])


# What is refused


def test_nothing_found() -> None:
    with pytest.raises(
        LattendError, match=r"no self-attention found in Linear; looked for torch\.nn\.Multihead"
    ):
        lt.nn.replace_attention(nn.Linear(2, 2), "full")


@pytest.mark.parametrize("option", ["add_bias_kv", "add_zero_attn"])
def test_keys_besides_the_tokens(option: str) -> None:
    both = nn.ModuleList([multihead(), multihead(**{option: True})])
    with pytest.raises(
        LattendError, match=f"^1 \\(MultiheadAttention\\) is left as it is: {option}=True adds"
    ):
        lt.nn.replace_attention(both, "full")
    assert type(both[0]) is nn.MultiheadAttention  # nothing is changed


def test_what_a_forward_cannot_give() -> None:
    with pytest.raises(NamingError, match=r"needs t: replace_attention\(…, t=…\)"):
        lt.nn.replace_attention(multihead(), RULE)
    with pytest.raises(NamingError, match="gets ids when attention runs"):
        lt.nn.replace_attention(multihead(), lt.rule("ids[q] == ids[k]", data={"ids": None}))


def test_masks_that_are_not_taken() -> None:
    ours, x = lt.nn.replace_attention(multihead(), "full"), tokens(BATCH, N, D)
    with pytest.raises(LattendError, match=r"is_causal=True tells torch what attn_mask holds"):
        ours(x, x, x, is_causal=True)
    with pytest.raises(
        TensorError, match=r"attn_mask is \(13, 13\), or \(4, 13, 13\) with one for each head"
    ):
        ours(x, x, x, attn_mask=torch.zeros(BATCH, N, N))
    with pytest.raises(TensorError, match="numbers besides 0 and -inf"):
        ours(x, x, x, key_padding_mask=torch.ones(BATCH, N))
    with pytest.raises(TensorError, match=r"key_padding_mask is \(2, 13\), True where a key is padding"):
        ours(x, x, x, key_padding_mask=torch.zeros(BATCH, N + 1).bool())
    with pytest.raises(TensorError, match=r"query has 4 tokens and key has 13, .* lt\.rule\(…, cross=True\)"):
        ours(x[:, :4], x, x)
    crossed = lt.nn.replace_attention(multihead(), lt.rule("k <= q + 2", cross=True))
    allowed = torch.from_numpy(lt.rule("k <= q + 2", cross=True).mask(n=4, m=N))
    wanted = multihead()(x[:, :4], x, x, attn_mask=~allowed)[0]
    torch.testing.assert_close(crossed(x[:, :4], x, x)[0], wanted)


def test_a_printed_module_tells_its_rule() -> None:
    layer = nn.TransformerEncoderLayer(D, HEADS, batch_first=True)
    assert "rule='k <= q and q - k <= t with t = 3'" in repr(lt.nn.replace_attention(layer, RULE, t=3))


class WithClassToken(nn.Module):
    """As timm's and torchvision's vision transformers."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.register_parameter(name, nn.Parameter(torch.zeros(1, 1, D)))
        self.layer = nn.TransformerEncoderLayer(D, HEADS, batch_first=True)


@pytest.mark.parametrize("name", ["cls_token", "class_token", "reg_token", "cls", "summary"])
def test_a_rule_of_images_and_a_class_token(name: str) -> None:
    vit = WithClassToken(name)
    with pytest.raises(
        LattendError, match=f"WithClassToken puts {name} before its patches: .* \\(q - 1\\) // 4 is the"
    ):
        lt.nn.replace_attention(vit, "neighbourhood(3)", rows=4, cols=4)
    assert type(vit.layer.self_attn) is nn.MultiheadAttention  # nothing is changed
    with pytest.raises(LattendError, match=r"\(q - 1\) // cols is the row of a token"):
        lt.nn.replace_attention(vit, "neighbourhood(3)")
    near = "abs((q - 1) // 4 - (k - 1) // 4) <= 1 and abs((q - 1) % 4 - (k - 1) % 4) <= 1"
    rule = lt.rule(f"q == 0 or k == 0 or {near}")
    assert (rule.mask(n=17)[1:, 1:] == lt.rule("neighbourhood(1)").mask(rows=4, cols=4).reshape(16, 16)).all()
    assert lt.nn.replace_attention(vit, rule).layer(tokens(1, 17, D)).shape == (1, 17, D)


@pytest.mark.parametrize("path", ["mask_token", "layer.scale"])
def test_a_parameter_that_is_no_class_token(path: str) -> None:
    module = WithClassToken("mask_token")
    if path == "layer.scale":
        module.layer.register_parameter("scale", nn.Parameter(torch.ones(1, 1, D)))
    replaced = lt.nn.replace_attention(module, "neighbourhood(1)", cols=4)
    assert replaced.layer(tokens(1, 16, D)).shape == (1, 16, D)


def test_a_rule_of_images_needs_its_columns() -> None:
    layer = nn.TransformerEncoderLayer(D, HEADS, batch_first=True)
    with pytest.raises(
        NamingError, match=r"tokens of a module are flattened: give replace_attention\(…, cols=…\)"
    ):
        lt.nn.replace_attention(layer, "neighbourhood(1)")
    assert lt.nn.replace_attention(layer, "neighbourhood(1)", cols=4)(tokens(1, 16, D)).shape == (1, 16, D)
