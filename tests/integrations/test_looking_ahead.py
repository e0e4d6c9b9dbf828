"""Rules that let queries attend to keys after them, set for a model that has a cache."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_models import MODELS, ids, padding
from torch import Tensor

import lattend as lt
import lattend.integrations.transformers as hub
from lattend.integrations.looking_ahead import looks_ahead

GREEDY: dict[str, Any] = {"max_new_tokens": 6, "do_sample": False}
N = 17


def table(text: str, n: int) -> Tensor:
    """The rule as numbers to add, made without the rule language."""
    q, k = torch.arange(n)[:, None], torch.arange(n)
    attended = eval(text, {"q": q, "k": k})[None, None]
    return torch.zeros(attended.shape).masked_fill(~attended, torch.finfo(torch.float32).min)


def generated(model: Any, text: str) -> Tensor:
    """Greedy tokens of whole passes, with the mask of pairs given anew at each length."""
    tokens = ids()
    for _ in range(GREEDY["max_new_tokens"]):
        with torch.no_grad():
            logits = model(tokens, attention_mask=table(text, tokens.shape[1]), use_cache=False).logits
        tokens = torch.cat([tokens, logits[:, -1].argmax(-1, keepdim=True)], 1)
    return tokens


@pytest.mark.parametrize(
    ("text", "ahead"),
    [
        ("k <= q", False),
        ("q - k >= 0 and q - k <= 7", False),
        ("k <= q + 3", True),
        ("k <= q or k < 4", True),
        ("k <= q and (q - k)*(q - k) <= 100", False),
        ("(q - k)*(q - k) <= 100", True),
    ],
)
def test_what_looks_ahead(text: str, ahead: bool) -> None:
    assert looks_ahead(text) is ahead


def test_a_rule_that_looks_ahead_decodes_without_a_cache_only() -> None:
    eager, ours = MODELS["Llama"].pair()
    hub.set_rule(ours, "k <= q + 3")
    message = (
        r'"k <= q \+ 3" lets query 14 attend to key 17, and with a cache it is answered before that key is '
        r"there: generate\(…, use_cache=False\)"
    )
    for how in ({}, padding("left"), {"num_beams": 2}):
        with pytest.raises(lt.errors.LattendError, match=message):
            ours.generate(ids(), **GREEDY, **how)
    wanted = generated(eager, "k <= q + 3")
    assert torch.equal(ours.generate(ids(), use_cache=False, **GREEDY), wanted)
    assert not torch.equal(wanted, generated(eager, "k <= q"))


def test_a_static_cache_has_places_without_keys() -> None:
    _, ours = MODELS["Llama"].pair()
    hub.set_rule(ours, "k <= q + 3")
    with pytest.raises(lt.errors.LattendError, match="lets query 14 attend to key 17"):
        ours.generate(ids(), cache_implementation="static", disable_compile=True, **GREEDY)


@pytest.mark.parametrize("how", [{}, {"cache_implementation": "static", "disable_compile": True}])
def test_a_prefix_goes_on_once_it_is_there(how: dict[str, Any]) -> None:
    """Of `k <= q or k < 9`, no query attends to a key after position 8 that is after it."""
    eager, ours = MODELS["Llama"].pair()
    hub.set_rule(ours, "k <= q or k < 9")
    assert torch.equal(ours.generate(ids(), **GREEDY, **how), generated(eager, "(k <= q) | (k < 9)"))
    with pytest.raises(lt.errors.LattendError, match="lets query 0 attend to key 5"):
        ours.generate(ids()[:, :5], **GREEDY)


def test_heads_that_look_ahead() -> None:
    _, ours = MODELS["Llama"].pair()
    hub.set_rule(ours, "lambda head, q, k: (k <= q) | ((head == 3) & (k <= q + 2))")
    assert ours(ids()).logits.shape[1] == N
    with pytest.raises(lt.errors.LattendError, match="lets query 15 attend to key 17"):
        ours.generate(ids(), **GREEDY)


def test_a_compiled_step_cannot_find_out() -> None:
    _, ours = MODELS["Llama"].pair()
    hub.set_rule(ours, "k <= q + 3")
    with torch.no_grad():
        past = ours(ids(), use_cache=True).past_key_values
        torch._dynamo.reset()
        compiled = torch.compile(ours, backend="eager", fullgraph=True)
        with pytest.raises(Exception, match="cannot be found out in a compiled step with a cache"):
            compiled(ids()[:, :1], past_key_values=past)
