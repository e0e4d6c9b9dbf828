"""replace_attention on models of timm and diffusers themselves; skipped where these are not installed.

They are no development packages: timm needs a torchvision built for the very torch that is installed, and
diffusers is 61 MB. The look-alikes in the other files have their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import lattend as lt

RULE = "abs(q - k) <= 5 or k == 0"


@contextmanager
def masked() -> Iterator[list[int]]:
    """torch's attention under RULE wherever queries are as many as keys; yields the lengths it saw."""
    plain, seen = nn.functional.scaled_dot_product_attention, list[int]()

    def attend(q: Tensor, k: Tensor, v: Tensor, *others: Any, **options: Any) -> Tensor:
        if q.shape[2] == k.shape[2]:
            seen.append(q.shape[2])
            places = torch.arange(q.shape[2])
            options["attn_mask"] = torch.as_tensor(_holds(places[:, None], places))
        return plain(q, k, v, *others, **options)

    nn.functional.scaled_dot_product_attention = attend
    try:
        yield seen
    finally:
        nn.functional.scaled_dot_product_attention = plain


def _holds(q: Tensor, k: Tensor) -> Tensor:
    """RULE, by hand."""
    return ((q - k).abs() <= 5) | (k == 0)


def check(model: nn.Module, run: Callable[[Any], Tensor]) -> None:
    """The model under the rule is the model whose every softmax was masked; without a rule it is another."""
    model.eval()
    with torch.no_grad():
        plain = run(model)
        with masked() as seen:
            wanted = run(model)
        assert seen, "torch's attention was not called"
        lt.nn.replace_attention(model, "full")
        torch.testing.assert_close(run(model), plain, atol=1e-5, rtol=1e-4)
        lt.nn.replace_attention(model, RULE)
        found = run(model)
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)
    assert (found - plain).abs().max() > 1e-3 * plain.abs().max()


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


# timm


@pytest.mark.parametrize(
    "name", ["vit_tiny_patch16_224", "deit3_small_patch16_224", "vit_base_patch16_siglip_224"]
)
def test_vision_transformers_of_timm(name: str) -> None:
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, img_size=96, depth=2)
    for weight in model.parameters():
        weight.data.mul_(4 if weight.dim() == 2 else 1)  # steeper attention: a wrong mask shows
    check(model, lambda model: model.forward_features(drawn(2, 3, 96, 96)))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("swin_tiny_patch4_window7_224", "relative_position_bias_table"),
        ("beit_base_patch16_224", "relative_position_bias_table"),
        ("cait_xxs24_224", "proj_l, proj_w"),
        ("xcit_nano_12_p16_224", "temperature"),
    ],
)
def test_attention_of_timm_that_is_more_is_refused(name: str, reason: str) -> None:
    timm = pytest.importorskip("timm")
    model = timm.create_model(name, pretrained=False)
    with pytest.raises(lt.errors.LattendError, match=f"{reason}.*which no rule expresses"):
        lt.nn.replace_attention(model, "full")


# diffusers


def test_a_unet_of_diffusers() -> None:
    """Its self-attention follows the rule; attention to the prompt, which has other keys, stays."""
    diffusers = pytest.importorskip("diffusers")
    torch.manual_seed(0)
    model = diffusers.UNet2DConditionModel(
        sample_size=16,
        block_out_channels=(32, 64),
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=32,
        attention_head_dim=8,
        norm_num_groups=8,
    )
    check(model, lambda model: model(drawn(2, 4, 16, 16), 3, drawn(2, 5, 32)).sample)


def test_transformers_of_diffusers() -> None:
    diffusers = pytest.importorskip("diffusers")
    from diffusers.models.attention import BasicTransformerBlock  # pyright: ignore[reportMissingImports]

    torch.manual_seed(0)
    block: nn.Module = BasicTransformerBlock(32, 4, 8, cross_attention_dim=32)
    check(block, lambda block: block(drawn(2, 16, 32), encoder_hidden_states=drawn(2, 5, 32)))
    whole = diffusers.DiTTransformer2DModel(
        num_attention_heads=2, attention_head_dim=8, in_channels=4, num_layers=2, sample_size=16
    )
    steps = torch.tensor([1, 2])
    for weight in whole.parameters():
        weight.data.mul_(3 if weight.dim() == 2 else 1)
    check(whole, lambda whole: whole(drawn(2, 4, 16, 16), steps, steps).sample)


def test_joint_attention_of_diffusers_is_refused() -> None:
    diffusers = pytest.importorskip("diffusers")
    model = diffusers.SD3Transformer2DModel(
        sample_size=16, in_channels=4, num_layers=1, attention_head_dim=8, num_attention_heads=2,
        joint_attention_dim=32, caption_projection_dim=16, pooled_projection_dim=16, out_channels=4,
    )  # fmt: skip
    with pytest.raises(lt.errors.LattendError, match="its processor is JointAttnProcessor2_0"):
        lt.nn.replace_attention(model, "full")
