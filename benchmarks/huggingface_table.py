"""Hugging Face models with attn_implementation="lattend" beside eager: how far apart, and under which rules.

Tiny random weights in float32, on the CPU. For each model the largest difference of outputs and of the
gradients of all parameters, with and without padding, as a share of 1 and the largest number; whether
`generate` gives the same tokens in every way tried; and the rule of each layer.

    python benchmarks/huggingface_table.py            # all models; or the names of some: Llama "Gemma 3"
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import transformers

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # the models that the tests use

from tiny_models import MODELS, Tiny, errors_of, same_tokens

import lattend.integrations.transformers as hub

HEAD = "| model | outputs | gradients | the same tokens | rules of its layers |\n|---|---|---|---|---|"


def row(model: Tiny) -> str:
    """The line of a model."""
    eager, ours = model.pair()
    found = [errors_of(model, side, eager, ours) for side in model.sides]
    outputs, gradients = (f"{max(errors):.0e}".replace("e-0", "e-") for errors in zip(*found, strict=True))
    same = [same_tokens(model, how, eager, ours) for how in model.generates]
    tokens = f"{sum(same)} of {len(same)}" if same else ""
    return f"| {model.name} | {outputs} | {gradients} | {tokens} | {rules(model, ours)} |"


def rules(model: Tiny, ours: Any) -> str:
    """Each rule of the model, with how many layers have it."""
    found = [*hub.layer_rules(ours, **model.inputs()).values()]
    return ", ".join(f"{found.count(rule)} × `{rule}`" for rule in dict.fromkeys(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", help=f"some of: {', '.join(MODELS)}", metavar="model")
    names = parser.parse_args().models or [*MODELS]
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        parser.error(f"there is no model {unknown[0]}; models are {', '.join(MODELS)}")
    transformers.logging.set_verbosity_error()
    print(HEAD)
    for name in names:
        print(row(MODELS[name]), flush=True)


if __name__ == "__main__":
    main()
