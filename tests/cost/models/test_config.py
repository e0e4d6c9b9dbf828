"""config: where it reads from, what it says of itself, and what it refuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cost.models.published import PUBLISHED
from cost.models.small import ENCODER_DECODER, SMALL, TEXT

from lattend.cost.models import Model, config
from lattend.cost.models.configuration import FAMILIES, read_fields
from lattend.errors import DomainError, LattendError, NamingError

MISTRAL = PUBLISHED["Mistral-7B-v0.1"][0]


def test_every_family_is_tested() -> None:
    tested = [*SMALL.values(), *ENCODER_DECODER.values()]
    assert {fields["model_type"] for fields in tested} == set(FAMILIES)


def test_a_file_a_folder_and_a_dict_are_one(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(MISTRAL))
    result: list[Model] = [config(one) for one in (path, str(path), tmp_path, MISTRAL)]
    assert len({(model.layers, model.outside) for model in result}) == 1
    assert result[0].source == str(path)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_fields_that_are_read_cost_the_same(name: str) -> None:
    fields = PUBLISHED[name][0]
    kept = read_fields({**fields, "torch_dtype": "bfloat16", "transformers_version": "4.40"})
    model = config(kept)
    whole = config(fields)
    assert (model.layers, model.outside, model.notes) == (whole.layers, whole.outside, whole.notes)
    assert len(json.dumps(kept)) < 1000
    assert read_fields(kept) == kept


@pytest.mark.parametrize("many", [10**4 + 1, 10**30])
def test_more_layers_than_any_model_has(many: int) -> None:
    for fields in (MISTRAL, PUBLISHED["gpt2"][0], PUBLISHED["DeepSeek-V3"][0]):
        name = "n_layer" if "n_layer" in fields else "num_hidden_layers"
        with pytest.raises(LattendError, match="layers up to 10,000"):
            config(fields, **{name: many})
    with pytest.raises(LattendError, match="at most 10,000 layers"):
        config(PUBLISHED["swin-tiny-patch4-window7-224"][0], depths=[2, 2, many, 2])


def test_overrides_replace_fields() -> None:
    assert len(config(MISTRAL, num_hidden_layers=3).layers) == 3
    full = config(MISTRAL, sliding_window=None)
    assert full.forward(8192)["attention"].needed > config(MISTRAL).forward(8192)["attention"].needed
    nested = config(PUBLISHED["gemma-3-4b (text)"][0], num_hidden_layers=6)
    seen = [layer.attention.span.words for layer in nested.layers if layer.attention]
    assert seen == [*["causal, the last 1,024 keys"] * 5, "causal"]


@pytest.mark.parametrize("name", [*PUBLISHED, *SMALL])
def test_the_summary_fits_and_adds_up(name: str) -> None:
    model = config(PUBLISHED[name][0] if name in PUBLISHED else SMALL[name])
    shown = str(model)
    assert max(len(line) for line in shown.splitlines()) <= 100
    assert f"{model.parameters:,}" in shown
    data = json.loads(json.dumps(model.json()))
    counts = data["parameters"]
    assert counts["total"] == sum(counts[part] for part in ("embedding", "layers", "output head", "other"))
    assert (
        sum((run["last"] - run["first"] + 1) * run["parameters"] for run in data["layers"])
        == counts["layers"]
    )
    length = None if model.image else 16
    work = model.forward(length)
    matrices = sum(data["multiply_adds_a_token"].values()) * (1 if model.image else 16)
    assert work.multiply_adds.needed - work["attention"].needed == matrices + data["multiply_adds_a_sequence"]
    assert json.loads(json.dumps(work.json()))["multiply_adds"]["dense"] == work.multiply_adds.dense
    assert max(len(line) for line in str(work).splitlines()) <= 100


def test_the_summary_as_printed() -> None:
    assert str(config(MISTRAL)) == "\n".join(
        [
            "mistral: causal language model; 32 layers, width 4,096",
            "",
            "parameters",
            "total        7,241,732,096",
            "active       7,110,660,096  used by one token, tables left out",
            "embedding      131,072,000  looked up, not multiplied",
            "layers       6,979,584,000",
            "output head    131,072,000",
            "other                4,096",
            "",
            "layers  attention                    heads                 feed-forward         parameters",
            "0-31    causal, the last 4,096 keys  32 × 128, 8 kv heads  gated, 14,336 wide  218,112,000",
            "",
            "multiply-adds a token",
            "projections            1,342,177,280",
            "feed-forward           5,637,144,576",
            "output head              131,072,000",
            "other                              0",
            "attention's depend on the length: --length N, in Python forward(N)",
            "",
            "KV cache: 65,536 numbers a token over all layers",
            "KV cache: layers that drop keys keep at most 4,096 tokens",
        ]
    )


def test_the_work_as_printed() -> None:
    small = {**TEXT["gpt2"], "n_layer": 1, "n_embd": 4, "n_head": 2, "vocab_size": 11}
    assert str(config(small).forward(8, batch=2)) == "\n".join(
        [
            "gpt2, forward, length 8, batch 2",
            "",
            "               needed  executed, 64 × 64 tiles  dense",
            "parameters        420                        =      =",
            "multiply-adds   4,352                   69,312  4,800",
            "",
            "multiply-adds  needed  executed  dense",
            "projections     1,024     1,024  1,024",  # 16 tokens, 4*4*4
            "attention         576    65,536  1,024",  # 2 sequences, 2 heads, 2 + 2; 36, 64*64, 64 pairs
            "feed-forward    2,048     2,048  2,048",  # 16 tokens, 2*4*16
            "output head       704       704    704",  # 16 tokens, 4*11
            "other               0         0      0",
        ]
    )


def test_what_the_config_leaves_out_is_said() -> None:
    gemma = config(PUBLISHED["gemma-3-4b (text)"][0])
    assert dict(gemma.defaults) == {
        "vocab_size": 262_208,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
    }
    assert gemma.notes == ("the text part of gemma3; its image part is not counted",)
    silent = {name: value for name, value in MISTRAL.items() if name != "sliding_window"}
    assert config(silent).defaults == (("sliding_window", 4096),)
    assert (
        config(PUBLISHED["DeepSeek-V3"][0]).notes[0].startswith("1 more layer that predicts further tokens")
    )


def without(name: str, field: str) -> dict[str, Any]:
    return {key: value for key, value in TEXT[name].items() if key != field}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            {"model_type": "mamba"},
            "the config is of the family mamba, which is not known; known are bart, bert, deepseek_v2",
        ),
        (
            {},
            'the config has no "model_type", so its family is not known; add it, or give',
        ),
        (
            without("llama", "hidden_size"),
            'the config has no "hidden_size", which llama needs; add it, or give',
        ),
        (without("mistral", "num_key_value_heads"), 'has no "num_key_value_heads", which mistral needs'),
        (without("mixtral", "num_experts_per_tok"), 'has no "num_experts_per_tok", which mixtral needs'),
        (
            {**TEXT["llama"], "hidden_size": "24"},
            '"hidden_size" of the config must be a whole number of at least 1',
        ),
        (
            {**TEXT["llama"], "vocab_size": 0},
            '"vocab_size" of the config must be a whole number of at least 1, got 0',
        ),
        ({**TEXT["llama"], "mlp_bias": 1}, '"mlp_bias" of the config must be true or false, got 1'),
        (
            {**TEXT["llama"], "num_attention_heads": 5, "num_key_value_heads": 5},
            "24 is not a multiple of 5 heads",
        ),
        ({**TEXT["llama"], "num_key_value_heads": 3}, "must be a divisor of the 4 heads, got 3"),
        ({**TEXT["mixtral"], "num_experts_per_tok": 6}, "must be at most the 5 experts, got 6"),
        (
            {**TEXT["qwen2"], "layer_types": ["full_attention"]},
            "must be a list of 3, one a layer, got '1 of them'",
        ),
        (
            {**TEXT["qwen2"], "layer_types": ["linear_attention"] * 3},
            "made of full_attention, sliding_attention or",
        ),
        ({**TEXT["qwen2"], "layer_types": 3}, '"layer_types" of the config must be a list of texts, got 3'),
        (
            {**TEXT["llama"], "architectures": ["LlamaForTokenClassification"]},
            "whose head is not known for llama",
        ),
        ({**TEXT["bert"], "architectures": ["BertForQuestionAnswering"]}, "whose head is not known for bert"),
        ({**TEXT["gpt2"], "add_cross_attention": True}, "cross-attention to an encoder is not counted"),
        (
            {**TEXT["gemma"], "use_bidirectional_attention": True},
            "only causal attention is known for this family",
        ),
        ({"model_type": "llama4"}, 'the config has no "text_config", which llama4 needs'),
        (5, "give a config.json, a folder with one, a dict, or a configuration of transformers, not int"),
        (
            "nowhere/config.json",
            "there is no nowhere/config.json; give a config.json, a folder with one, a dict",
        ),
        ("someone/model-3.1", "of transformers; of a name: AutoConfig.from_pretrained('someone/model-3.1')"),
    ],
)
def test_what_cannot_be_read(source: Any, message: str) -> None:
    with pytest.raises(LattendError, match=re.escape(message)):
        config(source)


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(without("llama", "vocab_size")))
    with pytest.raises(NamingError, match=re.escape(f'{path} has no "vocab_size", which llama needs')):
        config(tmp_path)
    path.write_text("{")
    with pytest.raises(LattendError, match=re.escape(f"{path} is not JSON: ")):
        config(path)
    path.write_text("[1]")
    with pytest.raises(LattendError, match=re.escape(f"{path} holds list, not the fields of a model")):
        config(path)


def test_an_override_that_nothing_reads_is_refused() -> None:
    with pytest.raises(
        NamingError, match="mistral has no field hiden_size; it reads architectures, head_dim"
    ):
        config(MISTRAL, hiden_size=8)


def test_lengths_that_do_not_fit() -> None:
    gpt2 = config(PUBLISHED["gpt2"][0])
    assert gpt2.forward(1024).length == 1024
    with pytest.raises(
        DomainError, match=r"length 1,025 does not fit: this gpt2 has 1,024 learned positions"
    ):
        gpt2.training(1025)
    assert config(PUBLISHED["roberta-base"][0]).longest == 512  # of 514: positions begin after padding's
    vit = config(PUBLISHED["vit-base-patch16-224"][0])
    with pytest.raises(DomainError, match=r"this vit has 197 tokens, which its image size sets, not 196"):
        vit.forward(196)
    with pytest.raises(DomainError, match="batch must be at least 1, got 0"):
        gpt2.forward(8, batch=0)
    with pytest.raises(DomainError, match="length must be an integer"):
        gpt2.forward(8.0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(NamingError, match='no format of weights is named "fp64"; there are fp32, bf16, fp8'):
        gpt2.weights("fp64")


def test_neither_torch_nor_transformers_is_loaded() -> None:
    program = (
        "import sys\nfrom lattend.cost.models import config\n"
        f"model = config({MISTRAL!r})\nmodel.training(8192), str(model)\n"
        "print(sorted({'torch', 'transformers', 'sympy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
