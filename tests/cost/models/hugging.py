"""transformers' own models, made from the same fields, and a counter of the matrix products they run."""

from __future__ import annotations

import os
from math import prod
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch = pytest.importorskip("torch")
if os.environ.get("CI"):
    import transformers
else:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

transformers.logging.set_verbosity_error()  # tiny vocabularies do not hold the usual special tokens
CLASSES = {
    "ForCausalLM": "AutoModelForCausalLM",
    "LMHeadModel": "AutoModelForCausalLM",
    "ForMaskedLM": "AutoModelForMaskedLM",
    "ForPreTraining": "AutoModelForPreTraining",
    "ForSequenceClassification": "AutoModelForSequenceClassification",
    "ForImageClassification": "AutoModelForImageClassification",
    "Model": "AutoModel",
}
USUAL = {"bert": "Model", "roberta": "Model", "distilbert": "Model", "vit": "ForImageClassification"}
USUAL["modernbert"] = "Model"
USUAL["swin"] = "ForImageClassification"
SPECIAL = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), 0)


def build(fields: dict[str, Any], device: str = "meta", experts: str = "eager") -> Any:
    """transformers' model of these fields, of the class in `architectures`; of a nested one the text part."""
    inner = dict(fields.get("text_config", fields))
    named = fields.get("architectures", [USUAL.get(inner["model_type"], "ForCausalLM")])[0]
    named = named.replace("ForConditionalGeneration", "ForCausalLM")
    kind = next(kind for suffix, kind in CLASSES.items() if named.endswith(suffix))
    inner.pop("architectures", None)
    settings = {"attn_implementation": "eager"}
    if inner["model_type"] not in ("vit", "swin"):
        inner = {**SPECIAL, **inner}
    made = transformers.AutoConfig.for_model(**inner, experts_implementation=experts)
    torch.manual_seed(0)
    with torch.device(device):
        return getattr(transformers, kind).from_config(made, **settings)


def parameters(model: Any) -> int:
    """How many numbers its parameters hold, each once."""
    return sum(one.numel() for one in model.parameters())


class Products(TorchDispatchMode):
    """Counts the multiply-adds of matrix products and convolutions that run under it, forward or backward."""

    def __init__(self) -> None:
        super().__init__()
        self.multiplies = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if name in ("mm", "bmm", "addmm", "baddbmm"):
            left, right = args[1:3] if "add" in name else args[:2]
            if name != "bmm" or left.shape[-1] > 1:  # rotary angles are made as an outer product
                self.multiplies += prod(left.shape) * right.shape[-1]
        elif name == "convolution":
            self.multiplies += prod(result.shape) * prod(args[1].shape[1:])
        elif name == "convolution_backward":
            grads = sum(args[-1][:2])
            self.multiplies += grads * prod(args[0].shape) * prod(args[2].shape[1:])
        return result


def forward_inputs(model: Any, fields: dict[str, Any], length: int | None, batch: int) -> dict[str, Any]:
    """Random tokens or pixels; a seed for both."""
    torch.manual_seed(1)
    if length is None:
        size = fields["image_size"]
        rows, cols = (size, size) if isinstance(size, int) else size
        return {"pixel_values": torch.rand(batch, fields.get("num_channels", 3), rows, cols)}
    vocabulary = model.config.get_text_config().vocab_size
    return {"input_ids": torch.randint(1, vocabulary, (batch, length))}


def products(
    model: Any, inputs: dict[str, Any], *, training: bool = False, checkpointing: bool = False
) -> int:
    """Multiply-adds of one forward, or of both ways; checkpointed layers run again to their end."""
    model.train(training)
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    given = inputs if "pixel_values" in inputs else {**inputs, "use_cache": False}
    with (
        Products() as counter,
        torch.set_grad_enabled(training),
        torch.utils.checkpoint.set_checkpoint_early_stop(False),
    ):
        output = model(**given)
        if training:
            torch.stack([one.sum() for one in output.to_tuple()]).sum().backward()
    return counter.multiplies


def attended(model: Any, inputs: dict[str, Any]) -> list[Any]:
    """For each layer, which keys its queries gave a weight to: [n, n] of truths."""
    model.eval()
    with torch.no_grad():
        given = inputs if "pixel_values" in inputs else {**inputs, "use_cache": False}
        weights = model(**given, output_attentions=True).attentions
    return [(one[0] > 0).any(0).numpy() for one in weights]
