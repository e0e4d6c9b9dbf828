"""Small models of every family: sizes odd and all different, fields off their usual values."""

from __future__ import annotations

from typing import Any

Fields = dict[str, Any]
LONG = 23  # longer than every window and chunk here


def _rotary(family: str, **more: Any) -> Fields:
    usual = {
        "vocab_size": 53,
        "hidden_size": 24,
        "intermediate_size": 37,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "tie_word_embeddings": False,
    }
    return {"model_type": family, **usual, **more}


_EXPERTS = {"num_experts_per_tok": 2, "num_local_experts": 5}
_QWEN_EXPERTS = {"num_experts_per_tok": 3, "num_experts": 7, "moe_intermediate_size": 11}
_DEEPSEEK = {
    "num_key_value_heads": 4,
    "moe_intermediate_size": 11,
    "n_routed_experts": 8,
    "n_shared_experts": 2,
    "num_experts_per_tok": 3,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 7,
    "q_lora_rank": 9,
    "qk_nope_head_dim": 6,
    "qk_rope_head_dim": 4,
    "v_head_dim": 5,
    "n_group": 1,
    "topk_group": 1,
}
_BERT = {
    "vocab_size": 53,
    "hidden_size": 24,
    "intermediate_size": 37,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 31,
}
_SWIN = {
    "model_type": "swin",
    "image_size": 32,
    "patch_size": 2,
    "embed_dim": 12,
    "depths": [2, 2],
    "num_heads": [2, 3],
    "window_size": 4,
    "num_channels": 3,
    "num_labels": 9,
    "drop_path_rate": 0.0,
}
TEXT: dict[str, Fields] = {
    "gpt2": {
        "model_type": "gpt2",
        "vocab_size": 53,
        "n_positions": 31,
        "n_embd": 24,
        "n_layer": 3,
        "n_head": 4,
    },
    "gpt2, inner, untied": {
        "model_type": "gpt2",
        "vocab_size": 53,
        "n_positions": 31,
        "n_embd": 20,
        "n_layer": 2,
        "n_head": 5,
        "n_inner": 33,
        "tie_word_embeddings": False,
    },
    "gpt2, no head": {
        "model_type": "gpt2",
        "architectures": ["GPT2Model"],
        "vocab_size": 53,
        "n_positions": 31,
        "n_embd": 24,
        "n_layer": 2,
        "n_head": 4,
    },
    "llama": _rotary("llama"),
    "llama, all biases, tied": _rotary(
        "llama", attention_bias=True, mlp_bias=True, head_dim=10, tie_word_embeddings=True
    ),
    "llama, no kv heads said": {k: v for k, v in _rotary("llama").items() if k != "num_key_value_heads"},
    "llama, classifier": _rotary("llama", architectures=["LlamaForSequenceClassification"], num_labels=6),
    "mistral": _rotary("mistral", sliding_window=5, head_dim=8),
    "mistral, no window": _rotary("mistral", sliding_window=None),
    "mixtral": _rotary("mixtral", **_EXPERTS, sliding_window=7),
    "qwen2": _rotary("qwen2", use_sliding_window=True, sliding_window=5, max_window_layers=1),
    "qwen2, layer types": _rotary(
        "qwen2",
        use_sliding_window=True,
        sliding_window=5,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
    "qwen2, window unused": _rotary("qwen2", use_sliding_window=False, sliding_window=5, max_window_layers=1),
    "qwen2_moe": _rotary(
        "qwen2_moe",
        **_QWEN_EXPERTS,
        shared_expert_intermediate_size=13,
        mlp_only_layers=[1],
        use_sliding_window=True,
        sliding_window=5,
        max_window_layers=2,
    ),
    "qwen2_moe, every second": _rotary(
        "qwen2_moe",
        **_QWEN_EXPERTS,
        shared_expert_intermediate_size=13,
        decoder_sparse_step=2,
        qkv_bias=False,
    ),
    "qwen3": _rotary("qwen3", head_dim=10, use_sliding_window=True, sliding_window=5, max_window_layers=2),
    "qwen3_moe": _rotary("qwen3_moe", **_QWEN_EXPERTS, attention_bias=True, mlp_only_layers=[0]),
    "qwen3_moe, window": _rotary("qwen3_moe", **_QWEN_EXPERTS, use_sliding_window=True, sliding_window=6),
    "gemma": _rotary("gemma", head_dim=10, tie_word_embeddings=True),
    "gemma2": _rotary("gemma2", head_dim=10, sliding_window=5, tie_word_embeddings=True),
    "gemma3_text": _rotary(
        "gemma3_text", head_dim=10, sliding_window=5, sliding_window_pattern=3, tie_word_embeddings=True
    ),
    "gemma3_text, both sides": _rotary(
        "gemma3_text",
        head_dim=10,
        sliding_window=5,
        sliding_window_pattern=2,
        use_bidirectional_attention=True,
        tie_word_embeddings=True,
    ),
    "olmo2": _rotary("olmo2", attention_bias=True),
    "olmo3": _rotary("olmo3", sliding_window=5, num_hidden_layers=4),
    "phi3": _rotary("phi3", sliding_window=5),
    "llama4_text": _rotary(
        "llama4_text",
        **{**_EXPERTS, "num_hidden_layers": 4},
        head_dim=6,
        intermediate_size_mlp=29,
        interleave_moe_layer_step=2,
        no_rope_layer_interval=3,
        attention_chunk_size=5,
    ),
    "gpt_oss": _rotary("gpt_oss", **_EXPERTS, head_dim=10, sliding_window=5),
    "deepseek_v2": _rotary("deepseek_v2", **{**_DEEPSEEK, "kv_lora_rank": 8}, attention_bias=True),
    "deepseek_v3": _rotary("deepseek_v3", **_DEEPSEEK),
    "deepseek_v3, plain queries": _rotary("deepseek_v3", **{**_DEEPSEEK, "q_lora_rank": None}),
    "gpt_neox": {
        k: v for k, v in _rotary("gpt_neox", attention_bias=False).items() if k != "num_key_value_heads"
    },
    "opt": {
        "model_type": "opt",
        "vocab_size": 53,
        "hidden_size": 24,
        "ffn_dim": 37,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 31,
        "word_embed_proj_dim": 14,
        "do_layer_norm_before": False,
        "layerdrop": 0.0,
    },
    "opt, no biases": {
        "model_type": "opt",
        "vocab_size": 53,
        "hidden_size": 24,
        "ffn_dim": 37,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 31,
        "enable_bias": False,
        "layer_norm_elementwise_affine": False,
    },
    "phi": _rotary("phi", hidden_size=32),
    "phi, norms of queries, tied": _rotary(
        "phi", hidden_size=32, qk_layernorm=True, tie_word_embeddings=True
    ),
    "phi, classifier": _rotary(
        "phi", hidden_size=32, architectures=["PhiForSequenceClassification"], num_labels=6
    ),
    "modernbert": {
        "model_type": "modernbert",
        **_BERT,
        "local_attention": 7,
        "global_attn_every_n_layers": 2,
    },
    "modernbert, masked, all biases": {
        "model_type": "modernbert",
        "architectures": ["ModernBertForMaskedLM"],
        **_BERT,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "local_attention": 6,
        **dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias", "classifier_bias"), True),
    },
    "modernbert, masked, no bias": {
        "model_type": "modernbert",
        "architectures": ["ModernBertForMaskedLM"],
        **_BERT,
        "decoder_bias": False,
        "tie_word_embeddings": False,
    },
    "modernbert, classifier": {
        "model_type": "modernbert",
        "architectures": ["ModernBertForSequenceClassification"],
        "num_labels": 6,
        **_BERT,
    },
    "bert": {"model_type": "bert", **_BERT, "type_vocab_size": 3},
    "bert, masked": {"model_type": "bert", "architectures": ["BertForMaskedLM"], **_BERT},
    "bert, pretraining": {"model_type": "bert", "architectures": ["BertForPreTraining"], **_BERT},
    "bert, classifier": {
        "model_type": "bert",
        "architectures": ["BertForSequenceClassification"],
        "num_labels": 6,
        **_BERT,
    },
    "bert, causal": {"model_type": "bert", "architectures": ["BertLMHeadModel"], "is_decoder": True, **_BERT},
    "roberta": {"model_type": "roberta", **_BERT, "type_vocab_size": 1},
    "roberta, masked": {"model_type": "roberta", "architectures": ["RobertaForMaskedLM"], **_BERT},
    "roberta, classifier": {
        "model_type": "roberta",
        "architectures": ["RobertaForSequenceClassification"],
        "num_labels": 6,
        **_BERT,
    },
    "distilbert": {
        "model_type": "distilbert",
        "vocab_size": 53,
        "dim": 24,
        "hidden_dim": 37,
        "n_layers": 2,
        "n_heads": 4,
        "max_position_embeddings": 31,
    },
    "distilbert, classifier": {
        "model_type": "distilbert",
        "architectures": ["DistilBertForSequenceClassification"],
        "num_labels": 6,
        "vocab_size": 53,
        "dim": 24,
        "hidden_dim": 37,
        "n_layers": 2,
        "n_heads": 4,
        "max_position_embeddings": 31,
    },
}
IMAGES: dict[str, Fields] = {
    "vit": {
        "model_type": "vit",
        "hidden_size": 24,
        "intermediate_size": 37,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "image_size": [12, 20],
        "patch_size": [3, 4],
        "num_channels": 2,
        "qkv_bias": False,
        "num_labels": 7,
    },
    "vit, no head": {
        "model_type": "vit",
        "architectures": ["ViTModel"],
        "hidden_size": 24,
        "intermediate_size": 37,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "image_size": 16,
        "patch_size": 4,
        "pooler_output_size": 10,
    },
    "swin": _SWIN,
    "swin, padded": {**_SWIN, "image_size": [31, 38], "mlp_ratio": 2.5, "qkv_bias": False},
    "swin, absolute, no head": {**_SWIN, "architectures": ["SwinModel"], "use_absolute_embeddings": True},
    "swin, one window": {**_SWIN, "image_size": 16, "depths": [1, 2]},
}
SMALL = {**TEXT, **IMAGES}
_T5 = {"vocab_size": 53, "d_model": 24, "d_kv": 7, "d_ff": 37, "num_layers": 3, "num_heads": 4}
_SIDES = {
    "vocab_size": 53,
    "d_model": 24,
    "encoder_layers": 3,
    "encoder_attention_heads": 4,
    "encoder_ffn_dim": 37,
    "decoder_layers": 2,
    "decoder_attention_heads": 6,
    "decoder_ffn_dim": 29,
}
ENCODER_DECODER: dict[str, Fields] = {
    "t5": {"model_type": "t5", **_T5},
    "t5, gated, fewer decoder layers": {
        "model_type": "t5",
        **_T5,
        "num_decoder_layers": 2,
        "feed_forward_proj": "gated-gelu",
        "relative_attention_num_buckets": 9,
    },
    "t5, no head": {"model_type": "t5", "architectures": ["T5Model"], **_T5},
    "mt5": {"model_type": "mt5", **_T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": True},
    "bart": {"model_type": "bart", **_SIDES, "max_position_embeddings": 31},
    "bart, no head": {
        "model_type": "bart",
        "architectures": ["BartModel"],
        **_SIDES,
        "max_position_embeddings": 31,
    },
    "whisper": {
        "model_type": "whisper",
        **_SIDES,
        "num_mel_bins": 5,
        "max_source_positions": 17,
        "max_target_positions": 31,
    },
}
