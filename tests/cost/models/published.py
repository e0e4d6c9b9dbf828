"""Published models: the fields of their config.json, and how many parameters they have."""

from __future__ import annotations

from typing import Any

Fields = dict[str, Any]


def _rotary(family: str, *sizes: int, **more: Any) -> Fields:
    """The fields that Llama and those like it have in common."""
    names = (
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
    )
    return {"model_type": family, **dict(zip(names, sizes, strict=True)), **more}


def _classes(count: int) -> dict[str, str]:
    return {str(place): f"class {place}" for place in range(count)}


# name: (fields, parameters, those that one token uses with its tables whole)
PUBLISHED: dict[str, tuple[Fields, int, int]] = {
    "gpt2": (
        {
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadModel"],
            "vocab_size": 50257,
            "n_positions": 1024,
            "n_embd": 768,
            "n_layer": 12,
            "n_head": 12,
        },
        124_439_808,
        124_439_808,
    ),
    "Llama-2-7b": (
        _rotary("llama", 32000, 4096, 11008, 32, 32, 32, tie_word_embeddings=False),
        6_738_415_616,
        6_738_415_616,
    ),
    "Meta-Llama-3-8B": (
        _rotary("llama", 128256, 4096, 14336, 32, 32, 8, attention_bias=False, tie_word_embeddings=False),
        8_030_261_248,
        8_030_261_248,
    ),
    "Mistral-7B-v0.1": (
        _rotary("mistral", 32000, 4096, 14336, 32, 32, 8, sliding_window=4096, tie_word_embeddings=False),
        7_241_732_096,
        7_241_732_096,
    ),
    "Mixtral-8x7B-v0.1": (
        _rotary(
            "mixtral",
            *(32000, 4096, 14336, 32, 32, 8),
            num_local_experts=8,
            num_experts_per_tok=2,
            sliding_window=None,
            tie_word_embeddings=False,
        ),
        46_702_792_704,
        12_879_925_248,
    ),
    "Qwen2-7B": (
        _rotary(
            "qwen2",
            *(152064, 3584, 18944, 28, 28, 4),
            sliding_window=131072,
            max_window_layers=28,
            use_sliding_window=False,
            tie_word_embeddings=False,
        ),
        7_615_616_512,
        7_615_616_512,
    ),
    "Qwen2.5-0.5B": (
        _rotary("qwen2", 151936, 896, 4864, 24, 14, 2, use_sliding_window=False, tie_word_embeddings=True),
        494_032_768,
        494_032_768,
    ),
    "Qwen1.5-MoE-A2.7B": (
        _rotary(
            "qwen2_moe",
            *(151936, 2048, 5632, 24, 16, 16),
            moe_intermediate_size=1408,
            shared_expert_intermediate_size=5632,
            num_experts=60,
            num_experts_per_tok=4,
            decoder_sparse_step=1,
            use_sliding_window=False,
            tie_word_embeddings=False,
        ),
        14_315_784_192,
        2_689_173_504,
    ),
    "Qwen3-8B": (
        _rotary("qwen3", 151936, 4096, 12288, 36, 32, 8, head_dim=128, tie_word_embeddings=False),
        8_190_735_360,
        8_190_735_360,
    ),
    "Qwen3-30B-A3B": (
        _rotary(
            "qwen3_moe",
            *(151936, 2048, 6144, 48, 32, 4),
            head_dim=128,
            moe_intermediate_size=768,
            num_experts=128,
            num_experts_per_tok=8,
            mlp_only_layers=[],
            tie_word_embeddings=False,
        ),
        30_532_122_624,
        3_353_032_704,
    ),
    "gemma-7b": (
        _rotary("gemma", 256000, 3072, 24576, 28, 16, 16, head_dim=256),
        8_537_680_896,
        8_537_680_896,
    ),
    "gemma-2-9b": (
        _rotary("gemma2", 256000, 3584, 14336, 42, 16, 8, head_dim=256, sliding_window=4096),
        9_241_705_984,
        9_241_705_984,
    ),
    "gemma-3-1b": (
        _rotary(
            "gemma3_text",
            *(262144, 1152, 6912, 26, 4, 1),
            head_dim=256,
            sliding_window=512,
            sliding_window_pattern=6,
        ),
        999_885_952,
        999_885_952,
    ),
    "gemma-3-4b (text)": (
        {
            "model_type": "gemma3",
            "architectures": ["Gemma3ForConditionalGeneration"],
            "text_config": {
                "model_type": "gemma3_text",
                "hidden_size": 2560,
                "intermediate_size": 10240,
                "num_hidden_layers": 34,
                "sliding_window": 1024,
            },
            "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152},
        },
        3_880_263_168,
        3_880_263_168,
    ),
    "DeepSeek-V2-Lite": (
        _rotary(
            "deepseek_v2",
            *(102400, 2048, 10944, 27, 16, 16),
            moe_intermediate_size=1408,
            n_routed_experts=64,
            n_shared_experts=2,
            num_experts_per_tok=6,
            first_k_dense_replace=1,
            kv_lora_rank=512,
            q_lora_rank=None,
            qk_nope_head_dim=128,
            qk_rope_head_dim=64,
            v_head_dim=128,
        ),
        15_706_484_224,
        2_661_150_208,
    ),
    "DeepSeek-V3": (
        _rotary(
            "deepseek_v3",
            *(129280, 7168, 18432, 61, 128, 128),
            moe_intermediate_size=2048,
            n_routed_experts=256,
            n_shared_experts=1,
            num_experts_per_tok=8,
            first_k_dense_replace=3,
            kv_lora_rank=512,
            q_lora_rank=1536,
            qk_nope_head_dim=128,
            qk_rope_head_dim=64,
            v_head_dim=128,
            num_nextn_predict_layers=1,
            tie_word_embeddings=False,
        ),
        671_026_404_352,
        37_552_282_624,
    ),
    "Llama-4-Scout (text)": (
        {
            "model_type": "llama4",
            "architectures": ["Llama4ForConditionalGeneration"],
            "text_config": _rotary(
                "llama4_text",
                *(202048, 5120, 8192, 48, 40, 8),
                intermediate_size_mlp=16384,
                head_dim=128,
                num_local_experts=16,
                num_experts_per_tok=1,
                interleave_moe_layer_step=1,
                attention_chunk_size=8192,
                no_rope_layers=[],
                tie_word_embeddings=False,
            ),
        },
        107_769_861_120,
        17_172_894_720,
    ),
    "Phi-3-mini-4k": (
        _rotary("phi3", 32064, 3072, 8192, 32, 32, 32, sliding_window=2047, tie_word_embeddings=False),
        3_821_079_552,
        3_821_079_552,
    ),
    "phi-2": (
        _rotary("phi", 51200, 2560, 10240, 32, 32, 32, architectures=["PhiForCausalLM"]),
        2_779_683_840,
        2_779_683_840,
    ),
    "ModernBERT-base": (
        {
            "model_type": "modernbert",
            "architectures": ["ModernBertForMaskedLM"],
            "vocab_size": 50368,
            "hidden_size": 768,
            "intermediate_size": 1152,
            "num_hidden_layers": 22,
            "num_attention_heads": 12,
            "global_attn_every_n_layers": 3,
            "local_attention": 128,
        },
        149_655_232,
        149_655_232,
    ),
    "OLMo-2-1124-7B": (
        _rotary("olmo2", 100352, 4096, 11008, 32, 32, 32, tie_word_embeddings=False),
        7_298_617_344,
        7_298_617_344,
    ),
    "Olmo-3-7B": (
        _rotary("olmo3", 100278, 4096, 11008, 32, 32, 32, sliding_window=4096, tie_word_embeddings=False),
        7_298_011_136,
        7_298_011_136,
    ),
    "gpt-neox-20b": (
        {
            "model_type": "gpt_neox",
            "vocab_size": 50432,
            "hidden_size": 6144,
            "intermediate_size": 24576,
            "num_hidden_layers": 44,
            "num_attention_heads": 64,
            "tie_word_embeddings": False,
        },
        20_554_567_680,
        20_554_567_680,
    ),
    "opt-125m": (
        {
            "model_type": "opt",
            "vocab_size": 50272,
            "hidden_size": 768,
            "ffn_dim": 3072,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "max_position_embeddings": 2048,
            "word_embed_proj_dim": 768,
        },
        125_239_296,
        125_239_296,
    ),
    "opt-350m": (
        {
            "model_type": "opt",
            "vocab_size": 50272,
            "hidden_size": 1024,
            "ffn_dim": 4096,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "max_position_embeddings": 2048,
            "word_embed_proj_dim": 512,
            "do_layer_norm_before": False,
        },
        331_196_416,
        331_196_416,
    ),
    "gpt-oss-20b": (
        _rotary(
            "gpt_oss",
            *(201088, 2880, 2880, 24, 64, 8),
            head_dim=64,
            num_local_experts=32,
            num_experts_per_tok=4,
            sliding_window=128,
            attention_bias=True,
            tie_word_embeddings=False,
        ),
        20_914_757_184,
        4_187_440_704,
    ),
    "bert-base-uncased (BertModel)": (
        {
            "model_type": "bert",
            "architectures": ["BertModel"],
            "vocab_size": 30522,
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "max_position_embeddings": 512,
            "type_vocab_size": 2,
        },
        109_482_240,
        109_482_240,
    ),
    "roberta-base": (
        {
            "model_type": "roberta",
            "architectures": ["RobertaForMaskedLM"],
            "vocab_size": 50265,
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "max_position_embeddings": 514,
            "type_vocab_size": 1,
            "pad_token_id": 1,
        },
        124_697_433,
        124_697_433,
    ),
    "distilbert-base-uncased": (
        {
            "model_type": "distilbert",
            "architectures": ["DistilBertForMaskedLM"],
            "vocab_size": 30522,
            "dim": 768,
            "hidden_dim": 3072,
            "n_layers": 6,
            "n_heads": 12,
            "max_position_embeddings": 512,
        },
        66_985_530,
        66_985_530,
    ),
    "vit-base-patch16-224": (
        {
            "model_type": "vit",
            "architectures": ["ViTForImageClassification"],
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "image_size": 224,
            "patch_size": 16,
            "num_channels": 3,
            "id2label": _classes(1000),
        },
        86_567_656,
        86_567_656,
    ),
    "swin-tiny-patch4-window7-224": (
        {
            "model_type": "swin",
            "architectures": ["SwinForImageClassification"],
            "image_size": 224,
            "patch_size": 4,
            "num_channels": 3,
            "embed_dim": 96,
            "depths": [2, 2, 6, 2],
            "num_heads": [3, 6, 12, 24],
            "window_size": 7,
            "id2label": _classes(1000),
        },
        28_288_354,
        28_288_354,
    ),
}
