"""Hugging Face models with attn_implementation="lattend" against their own eager attention."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import Any

import pytest
import torch
import transformers
from tiny_models import (
    DECODER,
    MODELS,
    MOST,
    WHISPER,
    Tiny,
    drawn,
    errors,
    errors_of,
    ids,
    padding,
    same_tokens,
)
from torch import nn
from torch._dynamo.testing import CompileCounter

import lattend as lt
import lattend.integrations.transformers as hub
from lattend.integrations.model_mask import Repositioned


@cache
def shared(name: str) -> tuple[Any, Any]:
    """The models of that name, for tests that change nothing in them."""
    return MODELS[name].pair()


@pytest.mark.parametrize("name", MODELS)
def test_outputs_and_gradients(name: str) -> None:
    model, (eager, ours) = MODELS[name], shared(name)
    for side in model.sides:
        outputs, gradients = errors_of(model, side, eager, ours)
        assert outputs <= MOST["outputs"], side
        assert gradients <= MOST["gradients"], side


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.generates])
def test_generated_tokens(name: str) -> None:
    model, (eager, ours) = MODELS[name], shared(name)
    for how in model.generates:
        assert same_tokens(model, how, eager, ours), how


@pytest.mark.parametrize("name", ["Llama", "Gemma 3 with images", "T5", "ViT"])
def test_another_mask_would_show(name: str) -> None:
    model = MODELS[name]
    eager, ours = model.pair()
    hub.set_rule(ours, "strided(2)")
    assert errors_of(model, "none", eager, ours)[0] > 1000 * MOST["outputs"]


def test_the_rules_of_layers() -> None:
    _, ours = shared("Gemma 3")
    found = hub.layer_rules(ours, ids())
    window = "k > q - 5 and k <= q"
    assert list(found.values()) == [window] * 5 + ["k <= q"]
    assert list(found)[5] == "model.layers.5.self_attn"
    eager, ours = shared("Llama 4")
    chunks = "q // 6 == k // 6 and k <= q"
    assert list(hub.layer_rules(ours, ids()).values()) == [chunks] * 3 + ["k <= q"]
    padded = hub.layer_rules(ours, ids(), **padding("left"))
    assert padded["model.layers.0.self_attn"] == "chunk[q] == chunk[k] and k <= q"
    with pytest.raises(lt.errors.NamingError, match="the model runs another attention"):
        hub.layer_rules(eager, ids())


def agree(eager: nn.Module, ours: nn.Module, **given: Any) -> None:
    outputs, gradients = errors(eager, ours, given)
    assert outputs <= MOST["outputs"]
    assert gradients <= MOST["gradients"]


@pytest.mark.parametrize("name", ["Llama", "Llama 4", "Mistral", "Gemma 3", "gpt-oss"])
@pytest.mark.parametrize("steps", [(20, 17, 1, 1), (3, 2, 30, 4)])
def test_a_prompt_in_pieces(name: str, steps: tuple[int, ...]) -> None:
    """Pieces of any length after a past, as speculative decoding and chunked prefill give them."""
    eager, ours = shared(name)
    whole = ids(sum(steps))
    with torch.no_grad():
        wanted = eager(whole).logits
        past, found = None, []
        for piece in whole.split(steps, 1):
            out = ours(piece, past_key_values=past, use_cache=True)
            past, found = out.past_key_values, [*found, out.logits]
    torch.testing.assert_close(torch.cat(found, 1), wanted, atol=2e-6, rtol=1e-4)


def test_packed_sequences_do_not_see_each_other() -> None:
    eager, ours = MODELS["Llama"].pair()
    positions = torch.cat([torch.arange(5), torch.arange(8), torch.arange(4)]).expand(2, -1)
    agree(eager, ours, input_ids=ids(), position_ids=positions, use_cache=False)


def test_a_mask_of_pairs_is_taken_as_it_is() -> None:
    eager, ours = MODELS["Llama"].pair()
    table = torch.rand(2, 1, 17, 17, generator=torch.Generator().manual_seed(3)) < 0.4
    table |= torch.eye(17, dtype=torch.bool)
    added = torch.zeros(table.shape).masked_fill(~table, torch.finfo(torch.float32).min)
    agree(eager, ours, input_ids=ids(), attention_mask=added)
    assert torch.equal(ours(ids(), attention_mask=table).logits, ours(ids(), attention_mask=added).logits)
    hub.set_rule(ours, "strided(3)")
    with pytest.raises(lt.errors.LattendError, match="the model is given a mask of pairs too"):
        ours(ids(), attention_mask=table)


def test_a_mask_of_other_numbers_is_a_bias() -> None:
    """As ALiBi's, which falls with the distance and is 0 on the diagonal: no number of it forbids a pair."""
    eager, ours = shared("Llama")
    places = torch.arange(17)
    added = -0.2 * (places[:, None] - places).float()[None, None]
    added = added.masked_fill(places > places[:, None], torch.finfo(torch.float32).min)
    agree(eager, ours, input_ids=ids(), attention_mask=added)


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


@pytest.mark.parametrize("steps", [(3, 1, 20, 6), (20, 4, 6)])
def test_blocks_and_chunks_after_a_past(steps: tuple[int, ...]) -> None:
    """A few queries and many, the keys of a window and all: the rows of the mask as transformers makes it."""
    n = sum(steps)
    blocks = torch.randint(-1, 4, (2, n), generator=torch.Generator().manual_seed(2))
    masks = transformers.masking_utils
    for overlay in (masks.blockwise_overlay(blocks), masks.chunked_overlay(5, torch.tensor([0, 3]))):
        function = masks.or_masks(
            masks.and_masks(masks.causal_mask_function, overlay), lambda b, h, q, k: k == q
        )
        table = transformers.masking_utils.sdpa_mask(
            2, n, n, mask_function=function, allow_is_causal_skip=False
        )
        q, k, v = (drawn(2, 2, n, 4, seed=i) for i in range(3))
        wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=table).transpose(1, 2)
        first = 0
        for step in steps:
            last = first + step
            mask = hub.attention_mask(
                2, step, last, first, mask_function=function, attention_mask=torch.ones(2, last)
            )
            found, _ = hub.attention_forward(
                nn.Module(), q[:, :, first:last], k[:, :, :last], v[:, :, :last], mask
            )
            torch.testing.assert_close(found, wanted[:, first:last], atol=1e-6, rtol=1e-5)
            first = last


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
    eager, ours = Tiny("dropout", "LlamaConfig", {**DECODER, "attention_dropout": 0.5}).pair()
    torch.testing.assert_close(ours(ids()).logits, eager(ids()).logits, atol=2e-6, rtol=1e-4)
    ours.train()
    assert not torch.equal(ours(ids()).logits, ours(ids()).logits)


@pytest.mark.parametrize("name", ["Llama", "Llama 4", "Gemma 3"])
def test_speculative_decoding(name: str) -> None:
    """Guesses from the prompt: some are accepted, and the cache is cropped where they are not."""
    eager, ours = shared(name)
    prompt = ids(6)[:1].repeat(1, 3)
    options: dict[str, Any] = {"max_new_tokens": 12, "do_sample": False, "prompt_lookup_num_tokens": 3}
    assert torch.equal(ours.generate(prompt, **options), eager.generate(prompt, **options))


@pytest.mark.parametrize("name", ["Llama", "Gemma 2", "Gemma 3"])
def test_compiled_as_one_graph(name: str) -> None:
    eager, ours = shared(name)
    torch._dynamo.reset()
    compiled = torch.compile(ours, backend="aot_eager", fullgraph=True)
    for n in (17, 9):
        wanted = eager(ids(n), use_cache=False).logits
        torch.testing.assert_close(compiled(ids(n), use_cache=False).logits, wanted, atol=2e-6, rtol=1e-4)


@pytest.mark.parametrize("name", ["Llama", "Whisper", "Gemma 3"])
def test_generation_compiles_no_more_programs_than_torch_s_own_attention(name: str) -> None:
    """A compiled program leaves the number of keys open: each further token runs what is compiled."""
    programs: dict[str, int] = {}
    for implementation in ("sdpa", "lattend"):
        torch.manual_seed(0)
        if name == "Whisper":
            model: Any = transformers.WhisperForCausalLM(transformers.WhisperConfig.from_dict(WHISPER)).eval()
        else:
            model = MODELS[name].pair()[0]
        model.set_attn_implementation(implementation)
        torch._dynamo.reset()
        counter = CompileCounter()
        model.forward = torch.compile(model.forward, backend=counter)
        new = {"max_new_tokens": 12, "min_new_tokens": 12, "do_sample": False}
        assert model.generate(ids(5)[:1], **new).shape[1] == 17
        programs[implementation] = counter.frame_count
    torch._dynamo.reset()
    assert programs["lattend"] == programs["sdpa"]


# Another rule


def test_set_rule_changes_the_mask_of_a_model_and_gives_it_back() -> None:
    eager, ours = MODELS["Llama"].pair()
    window = Tiny("a window", "MistralConfig", {**DECODER, "sliding_window": 4}).pair()[0]
    window.load_state_dict(eager.state_dict())
    before = ours(ids()).logits
    hub.set_rule(ours, "strided(3)")
    torch.testing.assert_close(ours(ids()).logits, window(ids()).logits, atol=2e-6, rtol=1e-4)
    options: dict[str, Any] = {"max_new_tokens": 9, "do_sample": False, **padding("left")}
    assert torch.equal(ours.generate(ids(), **options), window.generate(ids(), **options))
    hub.set_rule(ours, None)
    assert torch.equal(ours(ids()).logits, before)


def test_cost_sees_the_rules_that_are_set() -> None:
    """64 tokens, 4 heads of 8 + 8 numbers: strided(7) has 64 * 8 - 28 pairs, causal 64 * 65 / 2."""
    _, ours = MODELS["Llama"].pair()
    tokens = torch.randint(3, 60, (1, 64), generator=torch.Generator().manual_seed(1))
    linear = 64 * 2 * (32 * 32 * 2 + 32 * 16 * 2 + 3 * 32 * 48) + 64 * 32 * 64
    window, causal = (4 * 16 * pairs for pairs in (64 * 8 - 28, 64 * 65 // 2))
    hub.set_rule(ours, "strided(7)", layers=[1])
    assert lt.cost.of(ours, tokens).multiply_adds.needed == linear + window + causal
    work = lt.cost.config(ours).forward(64)
    assert work["attention"].needed == window + causal
    assert lt.cost.config(ours).cache(64) == (64 + 8) * 2 * 2 * 8 * 2  # keys and values of 2 heads, 2 bytes
    hub.set_rule(ours, None)
    assert lt.cost.config(ours).forward(64)["attention"].needed == 2 * causal
    _, images = MODELS["ViT"].pair()
    hub.set_rule(images, "strided(7)")
    with pytest.raises(lt.errors.DomainError, match="vit attends on an image"):
        lt.cost.config(images)


def test_cost_of_a_model_without_weights() -> None:
    """4,096 tokens on the meta device: 256 * 4,096 - 255 * 256 / 2 pairs in each of 2 layers."""
    config = MODELS["Llama"].pair()[0].config
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="lattend").eval()
    hub.set_rule(model, "strided(255)")
    found = lt.cost.of(model, torch.zeros(1, 4096, dtype=torch.long)).multiply_adds
    linear = 4096 * (2 * (32 * 32 * 2 + 32 * 16 * 2 + 3 * 32 * 48) + 32 * 64)
    assert found.needed == linear + 2 * 4 * 16 * (256 * 4096 - 255 * 256 // 2)
    assert found.needed < found.executed < found.dense // 10
    assert found.dense == linear + 2 * 4 * 16 * 4096**2


def test_set_rule_of_one_layer() -> None:
    _, ours = MODELS["Gemma 3"].pair()
    sliding = {layer.self_attn.layer_idx for layer in ours.model.layers if layer.self_attn.is_sliding}
    whole = hub.set_rule(ours, "strided(4)", layers=sliding)  # its own window of 5 keys, in our words
    eager, _ = MODELS["Gemma 3"].pair()
    torch.testing.assert_close(whole(ids()).logits, eager(ids()).logits, atol=2e-6, rtol=1e-4)


def test_a_rule_that_reaches_dropped_keys_is_refused() -> None:
    _, ours = MODELS["Mistral"].pair()
    hub.set_rule(ours, "causal")
    with pytest.raises(
        lt.errors.LattendError, match="reaches key 0, and the cache of this model keeps those"
    ):
        ours.generate(ids(), max_new_tokens=4, do_sample=False)
    whole, _ = MODELS["Llama"].pair()
    whole.load_state_dict(ours.state_dict())
    options: dict[str, Any] = {"max_new_tokens": 9, "do_sample": False}
    found = ours.generate(ids(), past_key_values=transformers.DynamicCache(), **options)
    assert torch.equal(found, whole.generate(ids(), **options))


def test_a_rule_takes_its_numbers_and_one_layer() -> None:
    _, ours = MODELS["Llama"].pair()
    hub.set_rule(ours, "strided", layers=1, t=4)
    assert [*hub.layer_rules(ours, ids()).values()] == ["k <= q", "k <= q and q - k <= 4"]


def test_without_transformers_it_is_said_what_to_install() -> None:
    program = (
        "import sys; sys.modules['transformers'] = None\nimport lattend as lt\n"
        "try:\n    import lattend.integrations.transformers\n"
        "except lt.errors.ExtraMissing as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.startswith(
        "lattend.integrations.transformers needs torch and transformers 5.20 or newer"
    )
    assert run.stdout.endswith('pip install "lattend[transformers]"\n')


def test_why_transformers_cannot_be_imported() -> None:
    program = (
        "import sys, types\n"
        "def broken(name): raise ImportError('no ' + name) from OSError('libfoo.so is missing')\n"
        "sys.modules['transformers'] = types.ModuleType('transformers')\n"
        "sys.modules['transformers'].__getattr__ = broken\n"
        "import lattend as lt\n"
        "try:\n    import lattend.integrations.transformers\n"
        "except lt.errors.ExtraMissing as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "whose import failed with OSError: libfoo.so is missing. They are an extra" in run.stdout


def test_mistakes_are_told() -> None:
    eager, ours = MODELS["Llama"].pair()
    with pytest.raises(lt.errors.NamingError, match="needs a value for t"):
        hub.set_rule(ours, "strided")
    with pytest.raises(lt.errors.NamingError, match=r"layers are numbers, .* not slice\(0, 1, None\)"):
        hub.set_rule(ours, "causal", layers=slice(0, 1))  # pyright: ignore[reportArgumentType]
    with pytest.raises(lt.errors.NamingError, match="a loaded model, and got str: load it first"):
        hub.set_rule("gpt2", "causal")  # pyright: ignore[reportArgumentType]
    with pytest.raises(lt.errors.LattendError, match="not one of sequences that grow: it names n"):
        hub.set_rule(ours, "k >= n - q")
    with pytest.raises(lt.errors.LattendError, match="it is a rule of images"):
        hub.set_rule(ours, "neighbourhood(2)")
    with pytest.raises(lt.errors.NamingError, match=r"model\.set_attn_implementation"):
        hub.set_rule(eager, "causal")
    with pytest.raises(lt.errors.NamingError, match="there is no layer 7; layers are 0 to 1"):
        hub.set_rule(ours, "causal", layers=[0, 7])
    with pytest.raises(lt.errors.LattendError, match="no layer of Linear hands its attention over"):
        hub.set_rule(nn.Linear(2, 2), "causal")
    with pytest.raises(lt.errors.LattendError, match=r"of shape \(1, 17, 17\) cannot be read for 17 queries"):
        q = drawn(1, 2, 17, 4)
        hub.attention_forward(nn.Module(), q, q, q, torch.zeros(1, 17, 17))


def test_a_rule_leaves_attention_to_another_sequence_as_it_is() -> None:
    _, ours = MODELS["Whisper"].pair()
    given = MODELS["Whisper"].inputs()
    found = hub.layer_rules(hub.set_rule(ours, "strided(3)"), **given)
    assert found["model.encoder.layers.0.self_attn"] == "k <= q and q - k <= 3"
    assert found["model.decoder.layers.0.self_attn"] == "k <= q and q - k <= 3"
    assert found["model.decoder.layers.0.encoder_attn"] == "q >= 0"
    hub.set_rule(ours, None)
    hub.set_rule(ours.get_encoder(), "strided(3)", layers=[1])
    found = hub.layer_rules(ours, **given)
    assert [name for name, rule in found.items() if "3" in rule] == ["model.encoder.layers.1.self_attn"]


@pytest.mark.parametrize(
    "config",
    [
        transformers.BloomConfig(vocab_size=64, hidden_size=32, n_layer=1, n_head=4),
        transformers.MptConfig(vocab_size=64, d_model=32, n_layers=1, n_heads=4, max_seq_len=64),
        transformers.XGLMConfig(vocab_size=64, d_model=32, num_layers=1, attention_heads=4, ffn_dim=48),
    ],
    ids=lambda config: config.model_type,
)
def test_a_model_that_keeps_its_attention_to_itself_is_refused(config: Any) -> None:
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="lattend")
    with pytest.raises(lt.errors.LattendError, match="computes its attention itself"):
        model(ids())


def test_pages_of_keys_are_refused() -> None:
    """transformers names the attentions that its continuous batching takes; ours is not one."""
    q = drawn(1, 2, 5, 4)
    with pytest.raises(lt.errors.LattendError, match="in pages, which are not read: continuous batching"):
        hub.attention_forward(nn.Module(), q, q, q, None, cache=object())
    _, ours = shared("Llama")
    with pytest.raises(ValueError, match="lattend is not supported for continuous batching"):
        ours.generate_batch([[5, 6, 7], [8, 9]], max_new_tokens=2)


def test_weights_are_not_given_out() -> None:
    _, ours = shared("Llama")
    with pytest.raises(lt.errors.LattendError, match="output_attentions=True asks for the weights of all"):
        ours(ids(), output_attentions=True)


# Sequences packed one behind another


def packed(**options: Any) -> dict[str, Any]:
    """Three sequences, as a training loop without padding gets them."""
    collate = transformers.DataCollatorWithFlattening(**options)
    return collate([{"input_ids": row} for row in ids()[0].split((5, 8, 4))])


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("name", ["Llama", "Gemma 3"])
def test_lengths_of_packed_sequences(name: str, cached: bool) -> None:
    """With lengths they stay apart, also where a cache keeps eager from looking at position_ids."""
    eager, ours = shared(name)
    given = packed(return_flash_attn_kwargs=True)
    logits = ours(**given, use_cache=cached).logits
    apart = [eager(row[None], use_cache=False).logits for row in ids()[0].split((5, 8, 4))]
    torch.testing.assert_close(logits, torch.cat(apart, 1), atol=2e-6, rtol=1e-4)
    agree(eager, ours, **packed(), use_cache=False)


def test_a_set_rule_keeps_packed_sequences_apart() -> None:
    _, ours = MODELS["Llama"].pair()
    hub.set_rule(ours, "strided(3)")
    given = packed()
    apart = [ours(row[None]).logits for row in ids()[0].split((5, 8, 4))]
    found = ours(**given, use_cache=False).logits
    torch.testing.assert_close(found, torch.cat(apart, 1), atol=2e-6, rtol=1e-4)


def test_lengths_of_a_batch_are_refused() -> None:
    _, ours = shared("Llama")
    lengths = torch.tensor([0, 5, 17], dtype=torch.int32)
    with pytest.raises(lt.errors.LattendError, match="this call has a batch of 2, 17 queries and 17 keys"):
        ours(ids(), cu_seq_lens_q=lengths, cu_seq_lens_k=lengths)


# Versions of transformers, of which CI runs the oldest and the newest


@pytest.mark.parametrize("name", ["Llama", "Llama 4", "Gemma 3"])
def test_packed_sequences_as_eager_packs_them(name: str) -> None:
    """Chunks are counted from each sequence's own start since transformers 5.23, from the row's before."""
    eager, ours = shared(name)
    positions = torch.cat([torch.arange(5), torch.arange(8), torch.arange(4)]).expand(2, -1)
    agree(eager, ours, input_ids=ids(), position_ids=positions, use_cache=False)


def test_a_mask_of_positions_in_packed_sequences() -> None:
    """Pairs beside the mask function itself: chunks of 3, a prefix, blocks of tokens, and two packings."""
    packs = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 1, 2]])
    places = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3], [0, 1, 0, 1, 2, 3, 4, 0]])
    blocks = torch.tensor([[-1, 0, 0, -1, 1, 1, -1, -1], [0, 0, -1, 1, 1, -1, 2, 2]])
    masks = transformers.masking_utils
    chunks = masks.chunked_overlay(3, torch.zeros(2, dtype=torch.long))
    inner = [
        masks.causal_mask_function,
        masks.and_masks(masks.causal_mask_function, chunks),
        lambda b, h, q, k: (k < 2) | (k <= q),
        masks.or_masks(masks.causal_mask_function, masks.blockwise_overlay(blocks)),
        masks.packed_sequence_mask_function(blocks),
    ]
    b, h, q, k = torch.meshgrid(*(torch.arange(s) for s in (2, 1, 8, 8)), indexing="ij")
    x, y, z = (drawn(2, 2, 8, 4, seed=seed).cpu() for seed in range(3))
    for function in inner:
        moved = Repositioned(function, places)
        mask_function = masks.and_masks(masks.packed_sequence_mask_function(packs), moved)
        table = (packs[b, q] == packs[b, k]) & function(b, h, places[b, q], places[b, k])
        mask = hub.attention_mask(2, 8, 8, mask_function=mask_function)
        found, _ = hub.attention_forward(nn.Module(), x, y, z, mask)
        weights = (x @ y.mT / 2).masked_fill(~table, -1e30).softmax(-1) * table.any(-1, keepdim=True)
        torch.testing.assert_close(found, (weights @ z).transpose(1, 2), atol=1e-6, rtol=1e-5)


def test_a_compiled_mask_function_that_holds_a_tensor() -> None:
    """It breaks the graph, and is refused as without torch.compile; so is any that is not known yet."""

    def masked(limits: Any, size: int) -> str:
        def inner(b: Any, h: Any, q: Any, k: Any) -> Any:
            return (k <= q) & (k < limits[q] if isinstance(limits, torch.Tensor) else k < limits)

        return hub.attention_mask(1, size, size, mask_function=inner).rule

    torch._dynamo.reset()
    compiled = torch.compile(masked, backend="eager")
    assert compiled(3, 8) == masked(3, 8) == "lambda q, k: k <= q and k < 3"
    for run in (masked, compiled):
        with pytest.raises(lt.errors.LattendError, match="the mask of this model depends on limits"):
            run(torch.arange(8), 8)
