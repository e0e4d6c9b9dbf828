"""The least time of a run, and of one more token: by hand, and what binds."""

from __future__ import annotations

import pytest
from cost.models.published import PUBLISHED

from lattend.cost.models import config
from lattend.cost.models.model import chart_lengths, passing_sentence
from lattend.cost.models.serving_price import decode_time, run_time
from lattend.cost.models.summary import report_of
from lattend.errors import DomainError
from lattend.machines import Machine

LLAMA = config(PUBLISHED["Meta-Llama-3-8B"][0])
SLOW = Machine("slow", rate=1e12, bandwidth=1e11, width=2)


def test_a_token_of_llama_by_hand() -> None:
    result = decode_time(LLAMA, 1000, on=SLOW)
    matrices = 8_030_261_248 - 128256 * 4096 - 65 * 4096  # all but the table; norms multiply no matrix
    assert result.operations == 2 * (matrices + 32 * 32 * 256 * 1000)
    cache = 1000 * 32 * 8 * 256
    assert result.bytes == 2 * (matrices + 65 * 4096 + cache)
    assert result.binds == "memory"
    assert result.seconds == pytest.approx(result.bytes / 1e11)


def test_many_sequences_share_the_weights() -> None:
    one, many = (decode_time(LLAMA, 100, batch, SLOW) for batch in (1, 512))
    assert many.operations == 512 * one.operations
    assert many.bytes - one.bytes == 2 * 511 * LLAMA.cache(100, bytes=1)
    assert many.binds == "arithmetic"


def test_tokens_one_by_one_do_the_work_of_the_run() -> None:
    small = config(PUBLISHED["gpt2"][0])
    steps = sum(decode_time(small, length, on=SLOW).operations for length in range(1, 41))
    assert steps == run_time(small.forward(40), SLOW).operations


@pytest.mark.parametrize("name", ["bert-base-uncased (BertModel)", "vit-base-patch16-224"])
def test_what_makes_no_tokens(name: str) -> None:
    with pytest.raises(DomainError, match="one after another"):
        decode_time(config(PUBLISHED[name][0]), 10)


@pytest.mark.parametrize("name", PUBLISHED)
def test_attention_passes_the_matrices_just_there(name: str) -> None:
    model = config(PUBLISHED[name][0])
    result = model.attention_passes()
    if result is None:
        return
    more = [
        2 * w["attention"].needed > w.multiply_adds.needed for w in map(model.forward, (result - 1, result))
    ]
    assert more == [False, True]


def test_attention_in_windows_never_passes() -> None:
    assert config(PUBLISHED["Mistral-7B-v0.1"][0]).attention_passes() is None
    assert LLAMA.attention_passes() == 57_256


def test_charts_go_to_the_longest_sequence() -> None:
    assert chart_lengths(config(PUBLISHED["gpt2"][0]))[-1] == 1024
    assert chart_lengths(LLAMA)[:4] == [1, 2, 3, 4]
    assert chart_lengths(LLAMA, 3 << 20)[-1] == 3 << 20


def sentence(name: str) -> str:
    model = config(PUBLISHED[name][0])
    return passing_sentence(model, model.attention_passes())


def test_from_which_length_on_attention_is_most_of_the_work_is_said() -> None:
    assert sentence("Meta-Llama-3-8B").endswith("all matrices together from 57,256 tokens on.")
    assert sentence("Mistral-7B-v0.1").endswith("than attention at every length.")
    assert sentence("gpt2").endswith("at every length up to its 1,024 learned positions.")
    assert sentence("vit-base-patch16-224") == ""


def test_attention_in_chunks_is_said_to_begin_anew() -> None:
    assert sentence("Llama-4-Scout (text)") == "Attention in chunks begins anew with every chunk."


def test_what_to_type_for_a_length_may_be_left_out() -> None:
    full, short = (report_of(LLAMA, usage=usage).parts for usage in (True, False))
    left_out = [part for part in full if isinstance(part, str) and part not in short]
    assert len(full) == len(short) + 1
    assert left_out == ["attention's depend on the length: --length N, in Python forward(N)"]
