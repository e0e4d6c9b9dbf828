"""Hugging Face models with tiny random weights, eager and ours: for the tests and the table of the docs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from torch import Tensor, nn

import lattend.integrations.transformers as hub  # makes attn_implementation="lattend" known

LENGTH, PADDED = 17, 6  # tokens, and how many of the first element's are padding
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
IMAGE, TEXT_FROM = 60, 3  # the token that stands for a patch of an image; the first that is text

SMALL = {
    **{"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2},
    **{"num_attention_heads": 4, "max_position_embeddings": 128},
}
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
DECODER = {**SMALL, **TOKENS, "num_key_value_heads": 2}
WINDOW = {**DECODER, "head_dim": 8, "sliding_window": 5}
GPT2 = {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128, **TOKENS}
LLAMA4 = {
    **{**DECODER, "head_dim": 8, "intermediate_size_mlp": 48, "num_hidden_layers": 4},
    **{"num_local_experts": 2, "num_experts_per_tok": 1, "attention_chunk_size": 6},
    **{"no_rope_layers": [1, 1, 1, 0]},
}
MLA = {
    **{**DECODER, "num_key_value_heads": 4, "moe_intermediate_size": 16, "q_lora_rank": 8, "kv_lora_rank": 8},
    **{"qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 6, "n_routed_experts": 4},
    **{"num_experts_per_tok": 2, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1},
}
T5 = {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
BART = {
    **{"vocab_size": 64, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2},
    **{"encoder_attention_heads": 4, "decoder_attention_heads": 4, "decoder_start_token_id": 1},
    **{"encoder_ffn_dim": 48, "decoder_ffn_dim": 48, **TOKENS},
}
WHISPER = {**BART, "num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 64}
SIGHT = {**SMALL, "image_size": 16, "patch_size": 4, "num_channels": 1}
GEMMA3 = {**WINDOW, "num_hidden_layers": 6, "query_pre_attn_scalar": 8}
GEMMA3_IMAGES = {
    **{"text_config": GEMMA3, "vision_config": {**SIGHT, "vision_use_head": False}},
    **{"mm_tokens_per_image": 4, "image_token_index": IMAGE, "boi_token_index": 61, "eoi_token_index": 62},
}
QWEN2_VL = {
    "text_config": {**DECODER, "rope_parameters": {"rope_type": "default", "mrope_section": [1, 1, 2]}},
    "vision_config": {
        **{"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 4, "in_channels": 1},
        **{"patch_size": 4, "temporal_patch_size": 1},
    },
    **{"image_token_id": IMAGE, "vision_start_token_id": 61, "vision_end_token_id": 62},
}


def drawn(*shape: int, seed: int = 4) -> Tensor:
    """Numbers of a normal distribution."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def ids(n: int = LENGTH) -> Tensor:
    """Two rows of n tokens of text."""
    return torch.randint(TEXT_FROM, IMAGE, (2, n), generator=torch.Generator().manual_seed(1)).to(DEVICE)


def padding(side: str, n: int = LENGTH) -> dict[str, Tensor]:
    """The argument for padding on the left, on the right or none."""
    mask = torch.ones(2, n, dtype=torch.long, device=DEVICE)
    mask[0, :PADDED] = 0
    return {"left": {"attention_mask": mask}, "right": {"attention_mask": mask.flip(1)}, "none": {}}[side]


def with_image(tokens: Tensor, at: int) -> Tensor:
    """The tokens, four of which stand for an image in each row, in the second a place later."""
    tokens = tokens.clone()
    for row in range(2):
        tokens[row, at + row : at + row + 4] = IMAGE
    return tokens


def _gemma3() -> dict[str, Tensor]:
    tokens = with_image(ids(), PADDED + 1)
    return {
        **{"input_ids": tokens, "token_type_ids": (tokens == IMAGE).long()},
        "pixel_values": drawn(2, 1, 16, 16),
    }


def _qwen2_vl() -> dict[str, Tensor]:
    tokens = with_image(ids(), PADDED + 1)
    return {
        **{"input_ids": tokens, "mm_token_type_ids": (tokens == IMAGE).int()},
        **{
            "pixel_values": drawn(32, 16),
            "image_grid_thw": torch.tensor([[1, 4, 4], [1, 4, 4]], device=DEVICE),
        },
    }


def _seq2seq() -> dict[str, Tensor]:
    return {"input_ids": ids(), "decoder_input_ids": ids(7)}


@dataclass(frozen=True)
class Tiny:
    """A model: its configuration, the class that makes it, and what it is given."""

    name: str
    config: str
    numbers: dict[str, Any]
    auto: str = "AutoModelForCausalLM"
    inputs: Callable[[], dict[str, Tensor]] = lambda: {"input_ids": ids()}
    steeper: float = 3  # weights as drawn make attention nearly an average, where a wrong mask hardly shows

    def pair(self) -> tuple[Any, Any]:
        """The same model twice, eager and ours, in float32: in float64 eager's softmax still is float32."""
        made = getattr(transformers, self.config)(**self.numbers)
        torch.manual_seed(0)
        models = [
            getattr(transformers, self.auto).from_config(copy.deepcopy(made), attn_implementation=name).eval()
            for name in ("eager", hub.NAME)
        ]
        with torch.no_grad():
            for weight in models[0].parameters():
                if weight.dim() > 1:
                    weight.mul_(self.steeper) if weight.any() else weight.normal_(std=0.5)
        models[1].load_state_dict(models[0].state_dict())
        return models[0].to(DEVICE), models[1].to(DEVICE)

    @property
    def sides(self) -> list[str]:
        """Where it can be padded."""
        if "input_ids" not in self.inputs():
            return ["none"]
        return ["none", "right"] if self.auto == "AutoModel" or "Seq2Seq" in self.auto else [*SIDES]

    @property
    def generates(self) -> list[str]:
        """The ways it can generate tokens."""
        if self.auto == "AutoModel":
            return []
        return [how for how in WAYS if "left" not in how or "left" in self.sides]


SIDES = ("none", "left", "right")
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "left padding": padding("left"),
    "beams": {"num_beams": 3},
    "static cache": {"cache_implementation": "static"},
    "static cache, left padding": {"cache_implementation": "static", **padding("left")},
}
SEQ2SEQ, SPEECH, SEEN = "AutoModelForSeq2SeqLM", "AutoModelForSpeechSeq2Seq", "AutoModelForImageTextToText"
MODELS = {
    model.name: model
    for model in (
        Tiny("Llama", "LlamaConfig", DECODER),
        Tiny("Llama 4", "Llama4TextConfig", LLAMA4),
        Tiny("Mistral", "MistralConfig", {**DECODER, "sliding_window": 5}),
        Tiny("Qwen 3", "Qwen3Config", {**DECODER, "head_dim": 8}),
        Tiny("Qwen 2 VL", "Qwen2VLConfig", QWEN2_VL, SEEN, _qwen2_vl),
        Tiny("Gemma 2", "Gemma2Config", {**WINDOW, "query_pre_attn_scalar": 8}),
        Tiny("Gemma 3", "Gemma3TextConfig", GEMMA3),
        Tiny("Gemma 3 with images", "Gemma3Config", GEMMA3_IMAGES, SEEN, _gemma3, steeper=2),
        Tiny("gpt-oss", "GptOssConfig", {**WINDOW, "num_local_experts": 2, "num_experts_per_tok": 1}),
        Tiny("DeepSeek-V3", "DeepseekV3Config", MLA),
        Tiny("Phi", "PhiConfig", DECODER),
        Tiny("GPT-2", "GPT2Config", GPT2),
        Tiny("BERT", "BertConfig", SMALL, "AutoModel"),
        Tiny("RoBERTa", "RobertaConfig", {**SMALL, "pad_token_id": 1}, "AutoModel"),
        Tiny("ModernBERT", "ModernBertConfig", {**SMALL, **TOKENS, "local_attention": 6}, "AutoModel"),
        Tiny("T5", "T5Config", {**T5, "decoder_start_token_id": 0}, SEQ2SEQ, _seq2seq, steeper=1),
        Tiny("BART", "BartConfig", {**BART, "max_position_embeddings": 64}, SEQ2SEQ, _seq2seq),
        Tiny("ViT", "ViTConfig", SIGHT, "AutoModel", lambda: {"pixel_values": drawn(2, 1, 16, 16)}),
        Tiny(
            *("Swin", "SwinConfig"),
            {"image_size": 32, "patch_size": 4, "num_channels": 1, "embed_dim": 16, "depths": [2, 2]}
            | {"num_heads": [2, 4], "window_size": 4},
            *("AutoModel", lambda: {"pixel_values": drawn(2, 1, 32, 32)}),
        ),
        Tiny(
            *("Whisper", "WhisperConfig", WHISPER, SPEECH),
            lambda: {"input_features": drawn(2, 8, 40), "decoder_input_ids": ids(7)},
        ),
    )
}


# How far ours is from eager

MOST = {"outputs": 2e-6, "gradients": 1e-5}  # as `difference` measures it; float32 has 6e-8


def difference(found: Tensor, wanted: Tensor) -> float:
    """The largest difference, as a share of 1 and the largest number wanted."""
    return ((found - wanted).abs().max() / (1 + wanted.abs().max())).item()


def gradients(model: nn.Module, end: Tensor) -> list[Tensor]:
    """Those of all parameters."""
    learned = [x for x in model.parameters() if x.requires_grad]
    found = torch.autograd.grad(end, learned, allow_unused=True)
    return [torch.zeros((), device=end.device) if x is None else x for x in found]


def errors(eager: Any, ours: Any, given: dict[str, Any], real: Tensor | None = None) -> tuple[float, float]:
    """How far the outputs are apart, and the gradients; where `real` is given, at real tokens only."""
    outputs = [model(**given)[0] for model in (eager, ours)]
    wanted, found = (x if real is None else x[real] for x in outputs)
    weights = drawn(*wanted.shape, seed=9)
    slopes = (gradients(model, (x * weights).sum()) for model, x in ((eager, wanted), (ours, found)))
    return difference(found, wanted), max(difference(b, a) for a, b in zip(*slopes, strict=True))


def errors_of(model: Tiny, side: str, eager: Any, ours: Any) -> tuple[float, float]:
    """The same for a model on its inputs, padded on this side."""
    given: dict[str, Any] = {**model.inputs(), **padding(side)}
    tokens = "decoder_input_ids" not in given and side != "none"
    return errors(eager, ours, given, given["attention_mask"].bool() if tokens else None)


def same_tokens(model: Tiny, how: str, eager: Any, ours: Any) -> bool:
    """Whether both generate the same tokens in one of the WAYS."""
    given = {name: x for name, x in model.inputs().items() if name != "decoder_input_ids"}
    options = {"max_new_tokens": 9, "do_sample": False, "disable_compile": True, **WAYS[how]}
    found, wanted = (one.generate(**given, **options) for one in (ours, eager))
    return torch.equal(found, wanted)
