"""Utilisation: four ways to count, and words for those that cannot be."""

from __future__ import annotations

import json
import re

import pytest
from cost.models.published import PUBLISHED

from lattend.cost.models import config, mfu
from lattend.errors import DomainError, LattendError, NamingError

MISTRAL = PUBLISHED["Mistral-7B-v0.1"][0]
LAYERS, WIDTH, HEADS = 32, 4096, 32
# queries and output, keys and values, gate up down, head
MATRICES = LAYERS * (2 * WIDTH * WIDTH + 2 * WIDTH * 1024 + 3 * WIDTH * 14336) + 32000 * WIDTH
N = MATRICES + LAYERS * 2 * WIDTH + WIDTH  # with the norms


def test_a_window_brings_dense_above_100_percent_and_needed_below() -> None:
    length, rate, peak = 32768, 11_000, 989.4e12
    result = mfu(MISTRAL, rate, "H200", length=length)
    pairs = 4096 * 4097 // 2 + (length - 4096) * 4096
    attention = LAYERS * HEADS * (128 + 128) * pairs / length  # multiply-adds a token
    assert result.needed == pytest.approx(2 * 3 * (MATRICES + attention) * rate / peak)
    assert result.dense == pytest.approx((6 * N + 12 * LAYERS * WIDTH * length) * rate / peak)
    assert result.causal_halved == pytest.approx((6 * N + 6 * LAYERS * WIDTH * length) * rate / peak)
    assert result.needed < 1 < result.dense
    assert result.words[0] == (
        "dense is above 100% because it counts all 32,768² pairs in each of 32 layers, 8.5 times those "
        "that are attended: in all 32 layers a query attends to at most 4,096 keys. It is the formula "
        "that is wrong."
    )


def test_halving_is_not_enough_for_a_window() -> None:
    result = mfu(MISTRAL, 12_000, "H200", length=131_072)
    assert result.causal_halved is not None
    assert result.needed < 1 < result.causal_halved < result.dense
    assert any(text.startswith("causal-halved is above 100% too: in all 32 layers") for text in result.words)


def test_halving_is_enough_without_windows() -> None:
    # Megatron-LM's issue 831: at 16k and more, counting later keys passes the peak of an A100
    fields = {**PUBLISHED["Llama-2-7b"][0], "hidden_size": 1024, "intermediate_size": 2816}
    result = mfu(config(fields), 12_000, "A100", length=65_536)
    assert result.causal_halved is not None
    assert result.needed == pytest.approx(result.causal_halved, rel=2e-3)
    assert result.causal_halved < 1 < result.dense
    assert result.words[0].endswith("a query attends to no later key. It is the formula that is wrong.")
    assert len(result.words) == 1


def test_a_window_longer_than_the_sequence_is_not_blamed() -> None:
    assert "at most" not in " ".join(mfu(MISTRAL, 1000, "H200", length=4096).words)


def test_alternating_windows_are_named() -> None:
    result = mfu(PUBLISHED["gemma-2-9b"][0], 8000, "H100", length=65_536)
    assert "in 21 of 42 layers a query attends to at most 4,096 keys" in " ".join(result.words)


def test_too_many_tokens_are_not_a_matter_of_counting() -> None:
    result = mfu(MISTRAL, 30_000, "H200", length=4096)
    assert result.needed > 1
    assert result.words[0].startswith("Even the needed work is ")
    assert "tokens_per_s, peak or devices" in result.words[0]
    shared = mfu(MISTRAL, 30_000, "H200", length=4096, devices=8)
    assert shared.needed == pytest.approx(result.needed / 8)


def test_checkpointing_is_executed_and_not_needed() -> None:
    plain = mfu(MISTRAL, 5000, "H200", length=8192)
    again = mfu(MISTRAL, 5000, "H200", length=8192, checkpointing=True)
    assert (again.needed, again.dense) == (plain.needed, plain.dense)
    model = config(MISTRAL)
    more = (
        model.training(8192, checkpointing=True).multiply_adds.executed
        - model.training(8192).multiply_adds.executed
    )
    forward = model.forward(8192)
    assert more == forward.multiply_adds.executed - forward["output head"].executed
    assert again.executed - plain.executed == pytest.approx(2 * more / 8192 * 5000 / 989.4e12)
    [line] = [line for line in again.conventions if line.name == "dense, recomputed"]
    assert line.utilisation == pytest.approx(4 / 3 * plain.dense)  # 8N + 16·l·d·n
    assert again.words[-1] == "Checkpointing runs the layers again: executed, but not needed."


def test_idle_experts_are_not_multiplied() -> None:
    result = mfu(PUBLISHED["Mixtral-8x7B-v0.1"][0], 6000, 989e12, length=4096)
    [line] = [line for line in result.conventions if line.name == "all experts"]
    assert result.dense < 1 < line.utilisation
    assert "33,822,867,456 parameters that a token is not sent to" in result.words[-1]


def test_encoders_have_no_half() -> None:
    assert mfu(PUBLISHED["roberta-base"][0], 1000, "A100", length=512).causal_halved is None
    image = mfu(PUBLISHED["vit-base-patch16-224"][0], 197 * 1000, "A100")
    assert image.length == 197
    assert image.causal_halved is None
    assert image.dense == pytest.approx(image.needed)


def test_the_table() -> None:
    result = mfu(MISTRAL, 11_000, "H200", length=32768, batch=4)
    lines = str(result).splitlines()
    assert lines[0] == "mistral, training, length 32,768, batch 4: 11,000 tokens/s"
    assert lines[1] == "1 × H200 SXM, dense bf16: 9.894e14 operations/s at most"
    assert [line.split("  ")[0] for line in lines[4:8]] == ["needed", "causal-halved", "dense", "executed"]
    assert re.search(r"dense +9\.4204e10 +104\.7%  6N \+ 12·l·d·n, N = 7,110,660,096$", lines[6])
    assert result.seconds == pytest.approx(4 * 32768 / 11_000)
    for checkpointing in (False, True):
        shown = str(mfu(MISTRAL, 1e6, "A100", length=131_072, checkpointing=checkpointing))
        assert max(len(line) for line in shown.splitlines()) <= 100
    assert json.loads(json.dumps(result.json()))["conventions"][0]["name"] == "needed"


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"peak": "H300"}, NamingError, "peak 'H300' is not known; give operations a second, or H200, H100"),
        ({"peak": -1.0}, DomainError, "peak must be a number above 0, got -1.0"),
        ({"tokens_per_s": 0}, DomainError, "tokens_per_s must be a number above 0, got 0"),
        ({"tokens_per_s": float("inf")}, DomainError, "tokens_per_s must be a number above 0, got inf"),
        ({"devices": 0}, DomainError, "devices must be at least 1, got 0"),
        ({"length": None}, DomainError, "mistral takes sequences of any length: say which"),
        ({"length": 0}, DomainError, "length must be at least 1, got 0"),
        ({"model": {"model_type": "mamba"}}, LattendError, "is of the family mamba, which is not known"),
    ],
)
def test_what_cannot_be(change: dict[str, object], kind: type[Exception], message: str) -> None:
    given: dict[str, object] = {
        "model": MISTRAL,
        "tokens_per_s": 1000,
        "peak": "H200",
        "length": 4096,
        **change,
    }
    model, rate, peak = (given.pop(name) for name in ("model", "tokens_per_s", "peak"))
    with pytest.raises(kind, match=re.escape(message)):
        mfu(model, rate, peak, **given)  # pyright: ignore[reportArgumentType]
