"""Parts of a batch in threads of their own give what one thread gives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from layers.grid.grids import NAMES, agree, by, gradients, model, some, states_for

from lattend.layers.grid import threads
from lattend.layers.grid.threads import multiplies, parts_of, side_by_side


@pytest.fixture(autouse=True)
def four_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("directions", "batch"), [(1, 4), (1, 6), (2, 4), (4, 2)])
def test_parts_are_the_whole(name: str, directions: int, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    net = model(2, 3, name, directions, layers=2)
    x = some(batch, 3, 4, 2)
    states, mask = states_for(net, x), torch.rand(batch, 3, 4) > 0.3
    wanted = gradients(by("diagonals", net), x, states, mask)
    monkeypatch.setattr(threads, "BUSY", 1)
    for recompute in (False, True):
        agree(gradients(by("cpu", net, recompute=recompute), x, states, mask), wanted)
    with torch.inference_mode():
        torch.testing.assert_close(net(x, states, mask), wanted[0])
    assert torch.get_num_threads() == 4


def test_how_many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One a thread, if they divide the batch and have enough to do."""
    monkeypatch.setattr(threads, "BUSY", 2**19)
    left = torch.empty(1, 64, 64)
    assert multiplies(left, 4, 3, 3) == 4 * 9 * 2 * 64 * 64 // 5
    assert parts_of(left, 16, 64, 64) == 4
    assert parts_of(left, 6, 64, 64) == 3
    assert parts_of(left, 7, 64, 64) == 1
    assert parts_of(left, 16, 2, 2) == 1
    assert parts_of(torch.empty(2, 64, 64), 16, 64, 64) == 2
    assert parts_of(torch.empty(4, 64, 64), 16, 64, 64) == 1
    torch.set_num_threads(1)
    assert parts_of(left, 16, 64, 64) == 1


def test_an_error_comes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "BUSY", 1)

    def run(lane: int) -> None:
        raise ValueError(f"lane {lane}")

    with pytest.raises(ValueError, match="lane 0"):
        side_by_side(run, torch.empty(2, 1, 3, 3, 2), torch.empty(1, 2, 2))
    assert torch.get_num_threads() == 4
