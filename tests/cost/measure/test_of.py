"""of(module, inputs): attention by its mask, modules layer by layer, and what is told of the unknown."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

import lattend as lt
from lattend.cost.measure.measure import of
from lattend.errors import LattendError, TensorError

N, D = 8, 4
CAUSAL = torch.ones(N, N).tril().bool()
WINDOW = CAUSAL.triu(-2)  # three keys, or as many as there are


class One(nn.Module):
    """One attention of 8 tokens of size 4, after a 4 × 4 linear layer, in one of many ways."""

    def __init__(self, how: str, mask: Tensor | None = None) -> None:
        super().__init__()
        self.linear, self.how, self.mask = nn.Linear(D, D, bias=False), how, mask

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(x)
        match self.how:
            case "sdpa":
                return functional.scaled_dot_product_attention(x, x, x, self.mask)
            case "is_causal":
                return functional.scaled_dot_product_attention(x, x, x, is_causal=True)
            case "rule":
                rules = {N * N: lt.rules.full(), 36: lt.rules.causal(), 21: lt.rules.strided().at(t=2)}
                return lt.attention(x, x, x, rules[N * N if self.mask is None else int(self.mask.sum())])
            case "filled":
                scores = x @ x.mT * D**-0.5
                scores = scores if self.mask is None else scores.masked_fill(~self.mask, -torch.inf)
                return scores.softmax(-1) @ x
            case "added":
                mask = torch.zeros(N, N) if self.mask is None else torch.where(self.mask, 0.0, -torch.inf)
                return (x @ x.mT / D**0.5 + mask).softmax(-1) @ x
            case how:
                raise ValueError(how)


TOKENS = torch.zeros(1, 1, N, D)
MASKS = {"full": (None, 640), "causal": (CAUSAL, 416), "window of 3 keys": (WINDOW, 296)}


@pytest.mark.parametrize("how", ["sdpa", "rule", "filled", "added"])
@pytest.mark.parametrize("name", MASKS)
def test_the_example_of_every_counter(name: str, how: str) -> None:
    """Needed 640, 416 and 296 multiply-adds, where counters print one number for all three."""
    mask, needed = MASKS[name]
    result = of(One(how, mask), TOKENS, backward=True)
    assert result.forward.multiply_adds == (needed, 640, 640)
    assert result.backward.needed == 2 * (needed - 128) + 128  # no gradient of the tokens is asked for
    pairs = N * N if mask is None else int(mask.sum())
    assert result.forward.exponentials == pairs
    assert not result.unknown
    assert not result.notes


def test_the_example_in_other_words() -> None:
    assert of(One("is_causal"), TOKENS).multiply_adds.needed == 416
    assert of(One("sdpa", torch.where(WINDOW, 0.0, -torch.inf)), TOKENS).multiply_adds.needed == 296
    assert of(One("is_causal").to("meta"), TOKENS).multiply_adds.needed == 416
    with torch.inference_mode():
        assert of(One("is_causal"), TOKENS).multiply_adds.needed == 416
    for how, mask in (("sdpa", None), ("is_causal", None), ("sdpa", WINDOW)):
        module = One(how, mask)
        with FlopCounterMode(display=False) as theirs:
            module(TOKENS)
        assert theirs.get_total_flops() == 2 * 128  # the linear layer alone, on a CPU


def test_long_causal_attention_is_executed_in_tiles() -> None:
    class Attention(nn.Module):
        def forward(self, q: Tensor, k: Tensor) -> Tensor:
            return functional.scaled_dot_product_attention(q, k, k, is_causal=True)

    for device in ("cpu", "meta"):
        q = torch.zeros(2, 3, 300, 16, device=device)
        result = of(Attention(), (q, q), backward=False)
        tiles = 64 * 64 * (1 + 2 + 3 + 4) + 44 * 300
        assert result.forward.multiply_adds == (6 * 45150 * 32, 6 * tiles * 32, 6 * 300 * 300 * 32)
    q = torch.zeros(2, 3, 300, 16, dtype=torch.float64, requires_grad=True)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):  # all pairs, in products
        result = of(Attention(), (q, q), backward=True)
    assert (result.forward.needed, result.forward.executed) == (6 * 45150 * 32, 6 * 300 * 300 * 32)
    assert result.backward.multiply_adds == tuple(2 * x for x in result.forward.multiply_adds)


# Modules of torch


class Itself(nn.Module):
    def __init__(self, attention: nn.Module, **options: Any) -> None:
        super().__init__()
        self.attention, self.options = attention, options

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, **self.options)[0]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("weights", [True, False])
def test_multihead_attention(training: bool, weights: bool) -> None:
    """With its fast path, with weights written out, with masks of both kinds together."""
    batch, n, d = 2, 6, 8
    attention = nn.MultiheadAttention(d, 2, batch_first=True).train(training)
    x, causal = torch.zeros(batch, n, d), torch.ones(n, n).triu(1).bool()
    padding = torch.zeros(batch, n, dtype=torch.bool)
    padding[1, 4:] = True
    projections = batch * n * 4 * d * d
    for options, pairs in (
        ({}, 2 * 36),
        ({"attn_mask": causal}, 2 * 21),
        ({"attn_mask": causal, "is_causal": True}, 2 * 21),
        ({"key_padding_mask": padding}, 36 + 6 * 4),
        ({"attn_mask": causal, "key_padding_mask": padding}, 21 + 1 + 2 + 3 + 4 * 3),
    ):
        if weights and "is_causal" in options:
            continue
        result = of(Itself(attention, need_weights=weights, **options), x)
        assert result.multiply_adds.needed == projections + pairs * 2 * d, options
        assert result.multiply_adds.dense == projections + batch * n * n * 2 * d
        assert result.parameters == 4 * d * d + 4 * d


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_transformers(device: str) -> None:
    d, n, hidden = 8, 6, 16
    layer = nn.TransformerEncoderLayer(d, 2, hidden, batch_first=True, device=device)
    encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval()
    mask = nn.Transformer.generate_square_subsequent_mask(n)
    x = torch.zeros(1, n, d, device=device)
    products = n * (4 * d * d + 2 * d * hidden)
    assert of(encoder, x).multiply_adds.needed == 3 * (products + 36 * 2 * d)
    assert of(encoder, {"src": x, "mask": mask}).multiply_adds.needed == 3 * (products + 21 * 2 * d)
    assert of(encoder, {"src": x, "mask": mask, "is_causal": True}).multiply_adds.needed == 3 * (
        products + 21 * 2 * d
    )
    whole = nn.Transformer(d, 2, 1, 1, hidden, batch_first=True, device=device)
    result = of(whole, {"src": x, "tgt": x, "tgt_mask": mask, "tgt_is_causal": True}, backward=True)
    assert result.forward.needed == 2 * products + n * 4 * d * d + (36 + 21 + 36) * 2 * d
    assert result.forward.dense == 2 * products + n * 4 * d * d + 3 * 36 * 2 * d
    assert not result.unknown
    assert not result.notes


def test_grouped_query_heads_and_rules_with_data() -> None:
    class Grouped(nn.Module):
        def forward(self, q: Tensor, k: Tensor) -> Tensor:
            return functional.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True)

    class Documents(nn.Module):
        def forward(self, q: Tensor, doc: Tensor) -> Tensor:
            return lt.attention(q, q, q, lt.rules.documents(), doc=doc)

    assert of(Grouped(), ((1, 4, 8, 16), (1, 2, 8, 16))).multiply_adds.needed == 4 * 36 * 32
    doc = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 5, 6, 7]])
    rule = lt.rules.documents()
    pairs = sum((row[:, None] == row).tril().sum() if "k <= q" in rule.text else (row[:, None] == row).sum()
                  for row in doc)  # fmt: skip
    for device in ("cpu", "meta"):
        module = Documents()  # where its parameters are, the inputs go
        module.register_parameter("none", nn.Parameter(torch.zeros(0, device=device)))
        result = of(module, (torch.zeros(2, 3, 8, 4), doc))
        assert result.multiply_adds.needed == int(pairs) * 3 * 8
        assert not result.notes


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_a_batch_that_vmap_maps() -> None:
    class Mapped(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.vmap(lambda q: functional.scaled_dot_product_attention(q, q, q, is_causal=True))(x)

    assert of(Mapped(), torch.zeros(5, 1, 2, 8, 4)).multiply_adds.needed == 5 * 2 * 36 * 8


# The meta device


class MadeWithin(nn.Module):
    """A window made of positions while it runs, as many language models do."""

    def __init__(self, written: bool) -> None:
        super().__init__()
        self.written = written

    def forward(self, x: Tensor) -> Tensor:
        place = torch.arange(x.shape[-2], device=x.device)
        apart = place[:, None] - place
        mask = ((apart >= 0) & (apart < 3))[None, None].expand(len(x), -1, -1, -1)
        if self.written:
            low = torch.full((1,), torch.finfo(x.dtype).min, device=x.device)
            scores = x @ x.mT + torch.where(mask, torch.zeros((), device=x.device), low)
            return functional.softmax(scores, -1, dtype=torch.float32).to(x.dtype) @ x
        return functional.scaled_dot_product_attention(x, x, x, mask)


@pytest.mark.parametrize("written", [True, False])
def test_masks_made_on_the_meta_device_are_known(written: bool) -> None:
    for device in ("cpu", "meta"):
        result = of(
            MadeWithin(written), torch.zeros(2, 1, N, D, device=device, requires_grad=True), backward=True
        )
        assert result.forward.needed == 2 * 21 * 2 * D
        assert result.backward.needed == 2 * result.forward.needed
        assert not result.notes


def test_masks_that_are_not_known_are_told() -> None:
    for how in ("sdpa", "filled", "added"):
        result = of(One(how, torch.ones(N, N, dtype=torch.bool, device="meta")).to("meta"), TOKENS)
        assert result.multiply_adds.needed == 640
        assert result.notes == ("mask not known: attention in the module itself is counted dense",)
        assert "mask not known" in str(result)


def test_a_question_that_the_meta_device_cannot_answer() -> None:
    class Asks(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + 1 if bool((x > 0).all()) else x

    with pytest.raises(LattendError, match="give the inputs it depends on as tensors on the CPU"):
        of(nn.Sequential(nn.Linear(2, 2, device="meta"), Asks()), (1, 2))
    assert of(Asks(), (3,)).forward.comparisons > 0


# What backward runs again, and what is not known


class Checkpointed(nn.Module):
    def __init__(self, again: bool) -> None:
        super().__init__()
        self.linear, self.again = nn.Linear(4, 4), again

    def step(self, x: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(*[self.linear(x)[None]] * 3, is_causal=True)[0]

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.step, x, use_reentrant=False).tanh() if self.again else self.step(x).tanh()


def test_what_runs_again_is_executed_and_not_needed() -> None:
    x = torch.zeros(8, 4, requires_grad=True)
    once, twice = (of(Checkpointed(again), x, backward=True) for again in (False, True))
    assert once.forward == twice.forward
    assert once.backward.needed == twice.backward.needed == 2 * 8 * 4 * 4 + 2 * 36 * 8
    assert twice.backward.executed > once.backward.executed


def test_unknown_operators_are_listed() -> None:
    class Strange(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.linalg.svd(x)[0] @ torch.fft.fft(x).real + torch.special.bessel_j0(x)

    result = of(Strange(), torch.eye(3))
    assert set(result.unknown) == {"aten._linalg_svd", "aten._fft_r2c"}
    assert result.multiply_adds.needed == 27
    assert result.forward.functions == 9  # a function of each number, whatever it is
    unknown = "not counted: aten._linalg_svd (1 call), aten._fft_r2c (1 call)"
    lines = str(result).splitlines()
    assert lines[4].split() == ["multiply-adds,", "incomplete", "27", "=", "="]
    assert unknown in lines
    assert repr(result).endswith(f"multiply-adds needed 27, executed 27, dense 27; {unknown}>")


# The module and its inputs


def test_shared_parameters_and_calls() -> None:
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = first.weight
    result = of(nn.Sequential(first, second, first), (2, 4))
    assert (result.parameters, result.row("0").parameters, result.row("1").parameters) == (24, 20, 4)
    assert (result.row("0").calls, result.row("0").multiply_adds.needed, result.multiply_adds.needed) == (
        2,
        64,
        96,
    )
    assert "0 Linear, 2 calls" in str(result)


def test_inputs() -> None:
    bilinear = nn.Bilinear(2, 3, 4)
    shapes, tensors = ((5, 2), (5, 3)), (torch.zeros(5, 2), torch.zeros(5, 3))
    named = {"input1": shapes[0], "input2": tensors[1]}
    assert of(bilinear, shapes) == of(bilinear, tensors) == of(bilinear, named)
    tokens = of(nn.Embedding(10, 4, device="meta"), (2, 7), dtype=torch.long)
    assert (tokens.parameters, tokens.multiply_adds.dense) == (40, 0)
    assert of(nn.LazyLinear(3), (2, 5)).parameters == 18
    hooked = nn.Bilinear(3, 3, 2, bias=False)
    hooked.register_forward_pre_hook(
        lambda _, args, kwargs: (args, {**kwargs, "input2": args[0]}), with_kwargs=True
    )
    assert of(hooked, (5, 3)).parameters == 18
    several = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    with pytest.raises(TensorError, match=r"takes query, key, value: missing .*'key'\. Several inputs"):
        of(several, (1, 4, 8))
    assert of(several, ((1, 4, 8),) * 3).multiply_adds.needed == 4 * (4 * 8 * 8) + 2 * 4 * 4 * 8
    with pytest.raises(TensorError, match="inputs are a tensor, a shape such as"):
        of(bilinear, "shapes")
    with pytest.raises(LattendError, match=r"module is a torch\.nn\.Module, not function"):
        of(lambda x: x, (2,))  # pyright: ignore[reportArgumentType]
    with pytest.raises(LattendError, match="backward=True: no output depends"):
        of(nn.ReLU(), (2,), backward=True)


def test_the_module_is_as_it_was() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout())
    before, state = {name: x.clone() for name, x in module.state_dict().items()}, torch.get_rng_state()
    of(module, torch.randn(8, 4, generator=torch.Generator()), backward=True)
    assert all(torch.equal(x, before[name]) for name, x in module.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(parameter.grad is None for parameter in module.parameters())
    assert torch.backends.mha.get_fastpath_enabled()
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        of(module, (8, 5))
    assert not module._forward_hooks
    assert of(module, (8, 4)).multiply_adds.needed == 8 * 4 * 4  # nothing of the failure is left


def test_table_and_json() -> None:
    layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, device="meta")
    x = torch.zeros(1, 128, 512, device="meta", requires_grad=True)
    result = of(nn.TransformerEncoder(layer, 12, enable_nested_tensor=False), x, backward=True)
    text = str(result)
    assert "0 … 11 (12×) TransformerEncoderLayer" in text
    assert max(map(len, text.splitlines())) <= 100
    assert len(text.splitlines()) < 30
    assert f"{result.forward.needed:,}" in text
    assert max(map(len, result.text(80).splitlines())) <= 80
    assert "self_attn" not in result.text(depth=2)
    data = json.loads(json.dumps(result.json()))
    assert (
        data["multiply_adds"]["needed"]
        == result.multiply_adds.needed
        == sum(row.multiply_adds.needed for row in result.rows)
    )
    assert data["parameters"] == sum(row["parameters"] for row in data["rows"]) == result.parameters
    assert repr(result).startswith(f"<Profile of TransformerEncoder: parameters {result.parameters:,};")
    assert len(repr(result)) < 200
    page = result._repr_html_()
    assert page.count("<table>") == page.count("</table>") == 2
    assert "0 … 11 (12×) TransformerEncoderLayer" in page and len(page) < 10_000


def test_compiled_modules_are_counted_as_written() -> None:
    module = One("is_causal")
    module.compile(backend="eager")
    assert of(module, TOKENS).multiply_adds.needed == 416


def test_flex_attention() -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    class Flex(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mask = create_block_mask(
                lambda b, h, q, k: (q >= k) & (q - k < 40), None, None, 300, 300, "cpu"
            )

        def forward(self, q: Tensor) -> Tensor:
            return flex_attention(q, q, q, block_mask=self.mask)  # pyright: ignore[reportReturnType]

    result = of(Flex(), torch.zeros(2, 3, 300, 16))
    needed, executed, dense = result.multiply_adds
    assert (needed, dense) == (6 * (40 * 300 - 39 * 40 // 2) * 32, 6 * 300 * 300 * 32)
    assert needed < executed <= dense
