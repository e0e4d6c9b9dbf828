"""A model under set_rule, saved and loaded: its rules are in its configuration."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tiny_models import MODELS, ids

import lattend as lt
import lattend.integrations.transformers as hub

SINKS = "k <= q and (q - k <= 2 or k < 2)"


def saved(name: str, folder: Path) -> Any:
    """A model of that name under two rules, after save_pretrained."""
    _, ours = MODELS[name].pair()
    hub.set_rule(ours, "strided", t=3)
    hub.set_rule(ours, SINKS, layers=[1])
    ours.save_pretrained(folder)
    return ours


def loaded(name: str, folder: Path, **options: Any) -> Any:
    return getattr(transformers, MODELS[name].auto).from_pretrained(folder, **options).eval().to(hub_device())


def hub_device() -> torch.device:
    return ids().device


@pytest.mark.parametrize("name", ["Llama", "GPT-2", "BERT", "T5", "Whisper", "ViT", "Gemma 3 with images"])
def test_a_saved_model_keeps_its_rules(name: str, tmp_path: Path) -> None:
    ours, given = saved(name, tmp_path), MODELS[name].inputs()
    again = loaded(name, tmp_path)
    with torch.no_grad():
        assert torch.equal(again(**given)[0], ours(**given)[0])
    assert hub.layer_rules(again, **given) == hub.layer_rules(ours, **given)
    assert not any("lattend" in key for key in vars(ours.config))  # the rules are the layers'
    hub.set_rule(again, None)
    again.save_pretrained(tmp_path / "plain")
    assert "lattend" not in (tmp_path / "plain" / "config.json").read_text()


def test_what_the_configuration_holds(tmp_path: Path) -> None:
    saved("Llama", tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    rules = {"layers.0.self_attn": "k <= q and q - k <= 3", "layers.1.self_attn": SINKS}
    assert written["lattend_rules"] == rules
    assert written["attn_implementation"] == "lattend"
    base = transformers.AutoModel.from_pretrained(tmp_path)
    assert [*hub.layer_rules(base, ids().cpu()).values()] == [*rules.values()]
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    made = transformers.AutoModelForCausalLM.from_config(config)
    assert [*hub.layer_rules(made, ids().cpu()).values()] == [*rules.values()]


def test_a_model_that_runs_without_its_rules_warns_and_keeps_them(tmp_path: Path) -> None:
    ours = saved("Llama", tmp_path)
    message = (
        'saved with rules of Lattend, such as "k <= q and q - k <= 3", and runs without them: load it with '
        'attn_implementation="lattend", not "sdpa"'
    )
    with pytest.warns(UserWarning, match=re.escape(message)):
        other = loaded("Llama", tmp_path, attn_implementation="sdpa")
    other.save_pretrained(tmp_path / "again")
    given = MODELS["Llama"].inputs()
    with torch.no_grad():
        assert torch.equal(loaded("Llama", tmp_path / "again")(**given)[0], ours(**given)[0])


def test_without_lattend_the_model_is_not_loaded(tmp_path: Path) -> None:
    saved("Llama", tmp_path)
    program = f"import transformers; transformers.AutoModelForCausalLM.from_pretrained({str(tmp_path)!r})"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode
    assert 'Specified `attn_implementation="lattend"` is not supported' in run.stderr


def test_rules_of_layers_that_the_model_does_not_have(tmp_path: Path) -> None:
    saved("Llama", tmp_path)
    file = tmp_path / "config.json"
    file.write_text(file.read_text().replace("layers.1.self_attn", "layers.7.self_attn"))
    with pytest.raises(
        lt.errors.LattendError, match=r"is for the layer layers\.7\.self_attn, which LlamaFor"
    ):
        loaded("Llama", tmp_path)
    file.write_text(
        file.read_text().replace("layers.7.self_attn", "layers.1.self_attn").replace(SINKS, "k <=")
    )
    with pytest.raises(lt.errors.TextError):
        loaded("Llama", tmp_path)
