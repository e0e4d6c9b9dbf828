"""Hugging Face models with attn_implementation="lattend" against their own eager attention."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

import lattend as lt
import lattend.integrations.transformers as hub

SMALL = {
    **{"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2},
    **{"num_attention_heads": 4, "max_position_embeddings": 128},
}
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
DECODER = {**SMALL, **TOKENS, "num_key_value_heads": 2}
WINDOW = {**DECODER, "head_dim": 8, "sliding_window": 5}
T5 = {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
WHISPER = {
    **{"vocab_size": 64, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "num_mel_bins": 8},
    **{
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
    },
    **{"max_source_positions": 20, "max_target_positions": 64, "decoder_start_token_id": 1, **TOKENS},
}
DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", DECODER),
    "mistral": ("MistralConfig", {**DECODER, "sliding_window": 5}),
    "qwen3": ("Qwen3Config", {**DECODER, "head_dim": 8}),
    "gemma2": ("Gemma2Config", {**WINDOW, "query_pre_attn_scalar": 8}),
    "gemma3": ("Gemma3TextConfig", {**WINDOW, "num_hidden_layers": 6, "query_pre_attn_scalar": 8}),
    "gpt_oss": ("GptOssConfig", {**WINDOW, "num_local_experts": 2, "num_experts_per_tok": 1}),
    "phi": ("PhiConfig", DECODER),
    "gpt2": (
        "GPT2Config",
        {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128, **TOKENS},
    ),
}
OTHERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "bert": ("BertConfig", SMALL, "AutoModel"),
    "roberta": ("RobertaConfig", {**SMALL, "pad_token_id": 1}, "AutoModel"),
    "t5": ("T5Config", {**T5, "decoder_start_token_id": 0}, "AutoModelForSeq2SeqLM"),
    "vit": ("ViTConfig", {**SMALL, "image_size": 16, "patch_size": 4, "num_channels": 1}, "AutoModel"),
    "whisper": ("WhisperConfig", WHISPER, "AutoModelForSpeechSeq2Seq"),
}


def pair(config: str, numbers: dict[str, Any], auto: str = "AutoModelForCausalLM") -> tuple[Any, Any]:
    """The same model twice, eager and ours, in float32: in float64 eager's softmax still is float32."""
    made = getattr(transformers, config)(**numbers)
    torch.manual_seed(0)
    models = [
        getattr(transformers, auto).from_config(copy.deepcopy(made), attn_implementation=name).eval()
        for name in ("eager", "lattend")
    ]
    models[1].load_state_dict(models[0].state_dict())
    return models[0], models[1]


def ids(n: int = 17) -> Tensor:
    return torch.randint(3, 64, (2, n), generator=torch.Generator().manual_seed(1))


def padding(side: str, n: int = 17) -> dict[str, Tensor]:
    mask = torch.ones(2, n, dtype=torch.long)
    mask[0, :6] = 0
    return {"left": {"attention_mask": mask}, "right": {"attention_mask": mask.flip(1)}, "none": {}}[side]


def slopes(model: nn.Module, end: Tensor) -> list[Tensor]:
    learned = [x for x in model.parameters() if x.requires_grad]
    found = torch.autograd.grad(end, learned, allow_unused=True)
    return [torch.zeros(()) if x is None else x for x in found]


def agree(eager: nn.Module, ours: nn.Module, found: list[Tensor], real: Tensor | None = None) -> None:
    """Outputs, and the gradients of all parameters; where `real` is given, of real tokens only."""
    wanted, mine = (x if real is None else x[real] for x in found)
    torch.testing.assert_close(mine, wanted, atol=2e-6, rtol=1e-4)
    weights = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(9))
    grads = (slopes(model, (x * weights).sum()) for model, x in ((eager, wanted), (ours, mine)))
    for a, b in zip(*grads, strict=True):
        assert (a - b).abs().max() <= 1e-5 * (1 + a.abs().max())


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("side", ["none", "left", "right"])
def test_logits_and_gradients_of_decoders(name: str, side: str) -> None:
    eager, ours = pair(*DECODERS[name])
    given = padding(side)
    logits = [model(ids(), **given).logits for model in (eager, ours)]
    agree(eager, ours, logits, given["attention_mask"].bool() if given else None)


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("how", ["greedy", "left padding", "beams", "static", "static left"])
def test_generated_tokens(name: str, how: str) -> None:
    eager, ours = pair(*DECODERS[name])
    options: dict[str, Any] = {"max_new_tokens": 9, "do_sample": False, "disable_compile": True}
    options |= padding("left") if "left" in how else {}
    options |= {"num_beams": 3} if how == "beams" else {}
    options |= {"cache_implementation": "static"} if "static" in how else {}
    assert torch.equal(ours.generate(ids(), **options), eager.generate(ids(), **options))


@pytest.mark.parametrize("name", ["llama", "mistral", "gemma3", "gpt_oss"])
@pytest.mark.parametrize("steps", [(20, 17, 1, 1), (3, 2, 30, 4)])
def test_a_prompt_in_pieces(name: str, steps: tuple[int, ...]) -> None:
    """Pieces of any length after a past, as speculative decoding and chunked prefill give them."""
    eager, ours = pair(*DECODERS[name])
    whole = ids(sum(steps))
    with torch.no_grad():
        wanted = eager(whole).logits
        past, found = None, []
        for piece in whole.split(steps, 1):
            out = ours(piece, past_key_values=past, use_cache=True)
            past, found = out.past_key_values, [*found, out.logits]
    torch.testing.assert_close(torch.cat(found, 1), wanted, atol=2e-6, rtol=1e-4)


@pytest.mark.parametrize("name", OTHERS)
def test_encoders_images_and_speech(name: str) -> None:
    eager, ours = pair(*OTHERS[name])
    given: dict[str, Any] = {"input_ids": ids(), **padding("right")}
    real: Tensor | None = given["attention_mask"].bool()
    made = torch.Generator().manual_seed(4)
    if name == "t5":
        given, real = {**given, "decoder_input_ids": ids(7)}, None
    if name == "vit":
        given, real = {"pixel_values": torch.randn(2, 1, 16, 16, generator=made)}, None
    if name == "whisper":
        features = torch.randn(2, 8, 40, generator=made)
        given, real = {"input_features": features, "decoder_input_ids": ids(7)}, None
    outputs = [model(**given)[0] for model in (eager, ours)]
    agree(eager, ours, outputs, real)


@pytest.mark.parametrize("name", ["t5", "whisper"])
def test_generated_tokens_of_encoder_decoders(name: str) -> None:
    eager, ours = pair(*OTHERS[name])
    made = torch.Generator().manual_seed(4)
    given: dict[str, Any] = {"input_ids": ids(), **padding("right")}
    if name == "whisper":
        given = {"input_features": torch.randn(2, 8, 40, generator=made)}
    options: dict[str, Any] = {"max_new_tokens": 9, "do_sample": False, "disable_compile": True}
    assert torch.equal(ours.generate(**given, **options), eager.generate(**given, **options))


def test_packed_sequences_do_not_see_each_other() -> None:
    eager, ours = pair(*DECODERS["llama"])
    positions = torch.cat([torch.arange(5), torch.arange(8), torch.arange(4)]).expand(2, -1)
    logits = [model(ids(), position_ids=positions, use_cache=False).logits for model in (eager, ours)]
    agree(eager, ours, logits)


def test_a_mask_of_pairs_is_taken_as_it_is() -> None:
    eager, ours = pair(*DECODERS["llama"])
    table = torch.rand(2, 1, 17, 17, generator=torch.Generator().manual_seed(3)) < 0.4
    table |= torch.eye(17, dtype=torch.bool)
    added = torch.zeros(table.shape).masked_fill(~table, torch.finfo(torch.float32).min)
    agree(eager, ours, [eager(ids(), attention_mask=added).logits, ours(ids(), attention_mask=table).logits])


def test_blocks_of_tokens_see_themselves_whole() -> None:
    """As tokens of one image do; -1 is text, which is causal. Packed sequences are another mask."""
    blocks = torch.tensor([[-1, 0, 0, 0, -1, 1, 1, -1], [0, 0, -1, -1, -1, 1, 1, 1]])
    function = transformers.masking_utils.or_masks(
        transformers.masking_utils.causal_mask_function, transformers.masking_utils.blockwise_overlay(blocks)
    )
    mask = hub.attention_mask(2, 8, 8, mask_function=function)
    q, k, v = (torch.randn(2, 2, 8, 4, generator=torch.Generator().manual_seed(i)) for i in range(3))
    found, _ = hub.attention_forward(nn.Module(), q, k, v, mask)
    same = (blocks[:, :, None] == blocks[:, None, :]) & (blocks[:, :, None] >= 0)
    table = same | torch.ones(8, 8, dtype=torch.bool).tril()
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=table[:, None])
    torch.testing.assert_close(found, wanted.transpose(1, 2), atol=1e-6, rtol=1e-5)
    later = hub.attention_mask(2, 1, 8, 7, mask_function=function)
    with pytest.raises(lt.errors.LattendError, match="looks up blocks, which is not read after a past"):
        hub.attention_forward(nn.Module(), q[:, :, :1], k, v, later)


def test_one_query_with_a_mask_of_pairs_or_dropout() -> None:
    q, k, v = (torch.randn(2, 2, n, 4, generator=torch.Generator().manual_seed(n)) for n in (1, 8, 8))
    table = torch.rand(2, 1, 1, 8, generator=torch.Generator().manual_seed(3)) < 0.6
    found, _ = hub.attention_forward(nn.Module(), q, k, v, table)
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=table)
    torch.testing.assert_close(found, wanted.transpose(1, 2), atol=1e-6, rtol=1e-5)
    mask = hub.ModelMask("q >= 0")
    dropped, plain = (hub.attention_forward(nn.Module(), q, k, v, mask, dropout=p)[0] for p in (0.5, 0.0))
    assert not torch.equal(dropped, plain)


def test_dropout_is_drawn_in_training_only() -> None:
    eager, ours = pair("LlamaConfig", {**DECODER, "attention_dropout": 0.5})
    torch.testing.assert_close(ours(ids()).logits, eager(ids()).logits, atol=2e-6, rtol=1e-4)
    ours.train()
    assert not torch.equal(ours(ids()).logits, ours(ids()).logits)


@pytest.mark.parametrize("name", ["llama", "gemma2", "gemma3"])
def test_compiled_as_one_graph(name: str) -> None:
    eager, ours = pair(*DECODERS[name])
    torch._dynamo.reset()
    compiled = torch.compile(ours, backend="aot_eager", fullgraph=True)
    for n in (17, 9):
        wanted = eager(ids(n), use_cache=False).logits
        torch.testing.assert_close(compiled(ids(n), use_cache=False).logits, wanted, atol=2e-6, rtol=1e-4)


# Another rule


def test_set_rule_changes_the_mask_of_a_model_and_gives_it_back() -> None:
    eager, ours = pair(*DECODERS["llama"])
    window = pair("MistralConfig", {**DECODER, "sliding_window": 4})[0]
    window.load_state_dict(eager.state_dict())
    before = ours(ids()).logits
    hub.set_rule(ours, "strided(3)")
    torch.testing.assert_close(ours(ids()).logits, window(ids()).logits, atol=2e-6, rtol=1e-4)
    options: dict[str, Any] = {"max_new_tokens": 9, "do_sample": False, **padding("left")}
    assert torch.equal(ours.generate(ids(), **options), window.generate(ids(), **options))
    hub.set_rule(ours, None)
    assert torch.equal(ours(ids()).logits, before)


def test_set_rule_of_one_layer() -> None:
    _, ours = pair(*DECODERS["gemma3"])
    sliding = {layer.self_attn.layer_idx for layer in ours.model.layers if layer.self_attn.is_sliding}
    whole = hub.set_rule(ours, "strided(4)", layers=sliding)  # its own window of 5 keys, in our words
    eager, _ = pair(*DECODERS["gemma3"])
    torch.testing.assert_close(whole(ids()).logits, eager(ids()).logits, atol=2e-6, rtol=1e-4)


def test_a_rule_that_reaches_dropped_keys_is_refused() -> None:
    _, ours = pair(*DECODERS["mistral"])
    hub.set_rule(ours, "causal")
    with pytest.raises(
        lt.errors.LattendError, match="reaches key 0, and the cache of this model keeps those"
    ):
        ours.generate(ids(), max_new_tokens=4, do_sample=False)
    whole, _ = pair("LlamaConfig", DECODER)
    whole.load_state_dict(ours.state_dict())
    options: dict[str, Any] = {"max_new_tokens": 9, "do_sample": False}
    found = ours.generate(ids(), past_key_values=transformers.DynamicCache(), **options)
    assert torch.equal(found, whole.generate(ids(), **options))


def test_mistakes_are_told() -> None:
    eager, ours = pair(*DECODERS["llama"])
    with pytest.raises(lt.errors.NamingError, match="needs a value for t"):
        hub.set_rule(ours, "strided")
    with pytest.raises(lt.errors.LattendError, match="not one of sequences that grow: it names n"):
        hub.set_rule(ours, "k >= n - q")
    with pytest.raises(lt.errors.LattendError, match="it is a rule of images"):
        hub.set_rule(ours, "neighbourhood(2)")
    with pytest.raises(lt.errors.NamingError, match=r"model\.set_attn_implementation"):
        hub.set_rule(eager, "causal")
    with pytest.raises(lt.errors.NamingError, match="there is no layer 7; layers are 0 to 1"):
        hub.set_rule(ours, "causal", layers=[0, 7])
    with pytest.raises(lt.errors.LattendError, match="no attention layers are found in Linear"):
        hub.set_rule(nn.Linear(2, 2), "causal")
    odd = torch.full((1, 1, 17, 17), 0.5)
    with pytest.raises(
        lt.errors.LattendError, match="adds other numbers than 0 and minus infinity is a bias"
    ):
        ours(ids(), attention_mask=odd)
