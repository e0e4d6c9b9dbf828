"""replace_attention: the self-attention of a model that is there already, under a rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

from torch import nn

from lattend.errors import LattendError, NamingError
from lattend.nn.replace import multihead, processor, qkv
from lattend.rules.reader import RuleLike, read_rule
from lattend.rules.rule import Rule

LOOKED_FOR = (
    "torch.nn.MultiheadAttention (also in torch.nn.TransformerEncoderLayer), modules with qkv, num_heads and "
    "proj as in timm, and modules with to_q, to_k, to_v, to_out and a processor as in diffusers"
)
# Parameters of timm's and torchvision's models: tokens that are no patches
BEFORE_PATCHES = ("cls_token", "class_token", "class_embedding", "dist_token", "reg_token", "register_tokens")
Module = TypeVar("Module", bound=nn.Module)


def replace_attention(module: Module, rule: RuleLike, **values: int) -> Module:
    """The module itself, whose self-attention now runs lt.attention under the rule, with the same weights.

    Changed are torch.nn.MultiheadAttention, alone or in a TransformerEncoder, modules with qkv, num_heads and
    proj as timm has them, and diffusers' modules with a processor. Attention to another sequence, in a
    TransformerDecoderLayer or to a prompt, stays as it is. `values` are the rule's parameters. Parameters,
    state_dict and hooks stay; a module that is more than attention is refused, and then nothing is changed.

    >>> layer = nn.TransformerEncoderLayer(8, 2, batch_first=True)
    >>> replace_attention(layer, "sliding_window(4)").self_attn.rule
    <Rule k <= q and q - k < window with window = 4>
    """
    if not isinstance(module, nn.Module):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise NamingError(f"replace_attention takes a torch.nn.Module, not {type(module).__name__}")
    bound = _without_gaps(read_rule(rule).at(**values))
    found = list(_attention_in(module))
    if len(bound.axes) > 1:
        _check_image(module, bound, [name for name, _, _ in found])
    if not found:
        raise LattendError(
            f"no self-attention found in {type(module).__name__}; looked for {LOOKED_FOR}. "
            "A model of Hugging Face takes lattend.integrations.transformers.set_rule"
        )
    for name, part, kind in found:
        reason = kind.why_not(part)
        if reason is not None:
            raise LattendError(f"{name or 'the module'} ({type(part).__name__}) is left as it is: {reason}")
    for _, part, kind in found:
        kind.put_rule(part, bound)
    for part in module.modules():
        if isinstance(part, nn.TransformerEncoder):
            part.use_nested_tensor = False  # else padding is cut off where attention does not see it
    return module


class Replacement(Protocol):
    """What each file of this folder has for the modules it knows."""

    def why_not(self, module: Any) -> str | None: ...

    def put_rule(self, module: Any, rule: Rule) -> None: ...


def _attention_in(module: nn.Module) -> Iterator[tuple[str, nn.Module, Replacement]]:
    """Each self-attention, with its name and the kind it is of."""
    crossed = {id(x.multihead_attn) for x in module.modules() if isinstance(x, nn.TransformerDecoderLayer)}
    for name, part in module.named_modules():
        if isinstance(part, nn.MultiheadAttention):
            if id(part) not in crossed:
                yield name, part, multihead
        elif processor.has_processor(part):
            if not processor.is_cross(part):
                yield name, part, processor
        elif qkv.is_qkv(part):
            yield name, part, qkv


def _check_image(module: nn.Module, rule: Rule, attention: list[str]) -> None:
    """Raises where the tokens of a module are not the rows and columns of an image."""
    token = _token_before_patches(module, attention)
    if token is not None:
        columns = rule.values.get(rule.axes[-1].queries, rule.axes[-1].queries)
        raise LattendError(
            f'the rule "{rule.text}" is of an image, and {type(module).__name__} puts {token} before its '
            "patches: give a rule of tokens. With one class token, which sees all and is seen by all, "
            f'that is "q == 0 or k == 0 or …"; (q - 1) // {columns} is the row of a token and '
            f"(q - 1) % {columns} its column"
        )
    missing = [axis.queries for axis in rule.axes if axis.queries not in rule.values]
    if len(missing) > 1:
        raise NamingError(
            f'the rule "{rule.text}" is of an image, and the tokens of a module are flattened: give '
            f"replace_attention(…, {', '.join(f'{name}=…' for name in missing[1:])})"
        )


def _token_before_patches(module: nn.Module, attention: list[str]) -> str | None:
    """The name of a parameter that is a class token, known by its name or by its shape.

    By its shape it is (1, 1, D) and belongs to a module that holds the blocks of all attention; what belongs
    to a block, such as the scale of a layer, is none.
    """
    for path, parameter in module.named_parameters():
        owner, _, name = path.rpartition(".")
        prefix = f"{owner}." if owner else ""
        holds_all = all(part.startswith(prefix) and "." in part[len(prefix) :] for part in attention)
        is_token = parameter.dim() == 3 and parameter.shape[:2] == (1, 1) and "mask" not in name
        if name in BEFORE_PATCHES or (attention and holds_all and is_token):
            return name
    return None


def _without_gaps(rule: Rule) -> Rule:
    """The rule, which must have all that a module's forward cannot give it."""
    open_names = [name for name in rule.parameters if name not in rule.values]
    if open_names:
        raise NamingError(
            f'rule "{rule.text}" needs {open_names[0]}: replace_attention(…, {open_names[0]}=…)'
        )
    return rule.given()
