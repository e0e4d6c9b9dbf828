"""replace_attention on modules with the parts of timm's and diffusers' attention."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from nn.replace.shapes import (
    DiffusersAttention,
    JointAttnProcessor2_0,
    RotaryAttention,
    TimmAttention,
    TurnedAttention,
    WindowAttention,
)
from torch import Tensor, nn

import lattend as lt
from lattend.errors import LattendError

N, D, HEADS = 16, 8, 2
NEAR = "abs(q - k) <= 2"
ALLOWED = torch.from_numpy(lt.rule(NEAR).mask(n=N))


def tokens(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), requires_grad=True)


def assert_same(own: nn.Module, ours: nn.Module, wanted: Tensor, found: Tensor, x: Tensor) -> None:
    torch.testing.assert_close(found, wanted, atol=2e-6, rtol=2e-5)
    slope = torch.linspace(-1, 1, wanted.numel()).view(wanted.shape).cos()
    one, other = (
        torch.autograd.grad(out, [x, *module.parameters()], slope)
        for module, out in ((own, wanted), (ours, found))
    )
    torch.testing.assert_close(other, one, atol=5e-6, rtol=2e-4)


@pytest.mark.parametrize("norm", [False, True])
def test_qkv(norm: bool) -> None:
    torch.manual_seed(1)
    own, x = TimmAttention(D, HEADS, norm), tokens(2, N, D)
    ours = lt.nn.replace_attention(nn.Sequential(copy.deepcopy(own)), NEAR)
    assert_same(own, ours, own(x, ALLOWED), ours(x), x)
    assert list(ours[0].state_dict()) == list(own.state_dict())
    for twin in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert torch.equal(twin(x), ours(x))
    again = lt.nn.replace_attention(ours, "full")
    torch.testing.assert_close(again(x), own(x))
    with pytest.raises(LattendError, match='attn_mask and is_causal: the rule "true" says who attends'):
        ours[0](x, attn_mask=ALLOWED)


def test_images_row_by_row() -> None:
    own, x = TimmAttention(D, HEADS), tokens(2, N, D)
    ours = lt.nn.replace_attention(
        copy.deepcopy(own), "abs(qy - ky) <= 1 and abs(qx - kx) <= 1", rows=4, cols=4
    )
    places = torch.arange(N)
    near = [(y[:, None] - y).abs() <= 1 for y in (places // 4, places % 4)]
    assert_same(own, ours, own(x, near[0] & near[1]), ours(x), x)


def test_more_than_attention_is_refused() -> None:
    with pytest.raises(LattendError, match="besides qkv and proj it has relative_position_bias_table"):
        lt.nn.replace_attention(WindowAttention(D, HEADS), NEAR)
    with pytest.raises(LattendError, match="its forward takes rope, which no rule expresses"):
        lt.nn.replace_attention(RotaryAttention(D, HEADS), NEAR)
    turned = TurnedAttention(D, HEADS)
    with pytest.raises(LattendError, match="where all tokens attend to all, its output is not proj"):
        lt.nn.replace_attention(turned, NEAR)
    assert type(turned) is TurnedAttention
    with pytest.raises(LattendError, match="on the meta device"):
        lt.nn.replace_attention(TimmAttention(D, HEADS).to("meta"), NEAR)


@pytest.mark.parametrize("image", [False, True])
def test_processor(image: bool) -> None:
    torch.manual_seed(1)
    own, x = DiffusersAttention(D, HEADS, image), tokens(2, D, 4, 4) if image else tokens(2, N, D)
    ours = lt.nn.replace_attention(copy.deepcopy(own), NEAR)
    assert_same(own, ours, own(x, attention_mask=ALLOWED), ours(x), x)
    with pytest.raises(LattendError, match="attention_mask cannot be given with it"):
        ours(x, attention_mask=ALLOWED)
    assert torch.equal(pickle.loads(pickle.dumps(ours))(x), ours(x))


def test_attention_to_a_prompt_stays() -> None:
    both = nn.ModuleList([DiffusersAttention(D, HEADS), DiffusersAttention(D, HEADS, other=5)])
    lt.nn.replace_attention(both, NEAR)
    assert [type(part.processor).__name__ for part in both] == ["RuleProcessor", "AttnProcessor2_0"]


def test_an_unknown_processor_is_refused() -> None:
    module = DiffusersAttention(D, HEADS)
    module.set_processor(JointAttnProcessor2_0())
    with pytest.raises(LattendError, match=r"its processor is JointAttnProcessor2_0; AttnProcessor and"):
        lt.nn.replace_attention(module, NEAR)
