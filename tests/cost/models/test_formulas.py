"""The formulas of a model give the numbers of its runs, at every length and batch."""

from __future__ import annotations

import pytest
from cost.models.published import PUBLISHED

from lattend.cost import config
from lattend.cost.models.model import Model
from lattend.cost.models.parts import GROUPS
from lattend.cost.models.summary import CACHE, model_formulas
from lattend.counts.count import Count
from lattend.report.maths import Maths
from lattend.report.table import Table

LENGTHS = (1, 127, 128, 511, 512)


def sums(model: Model, n: int, b: int, *, training: bool = False) -> dict[str, int]:
    """The formulas at these numbers, added up by their parts."""
    result: dict[str, int] = dict.fromkeys((*GROUPS, CACHE), 0)
    for row in model_formulas(model, training=training):
        numbers = {"n": n, "b": b}
        for formula, times in ((row.each, row.layers), (row.needed, 1)):
            known = {name: numbers[name] for name in formula.names} if isinstance(formula, Count) else {}
            value = formula(**known) if isinstance(formula, Count) else formula
            result[row.part] += value * times
    return {part: number // 2 for part, number in result.items()}  # of one layer, and in all


@pytest.mark.parametrize("name", PUBLISHED)
def test_formulas_are_the_numbers_of_a_run(name: str) -> None:
    model = config(PUBLISHED[name][0])
    for n in (model.image,) if model.image else LENGTHS:
        run, trained, result = model.forward(n, 3), model.training(n, 3), sums(model, n, 3)
        assert {part: result[part] for part in GROUPS} == {part: run[part].needed for part in GROUPS}
        assert sums(model, n, 3, training=True)["attention"] == trained["attention"].needed
        backward = sums(model, n, 3, training=True)
        assert sum(backward[part] for part in GROUPS) == trained.multiply_adds.needed
        assert result[CACHE] == (0 if model.image else model.cache(n, 3, bytes=1))


def test_each_kind_of_layer_has_its_formula() -> None:
    fields = {"model_type": "mistral", "sliding_window": 4, "num_hidden_layers": 2, "hidden_size": 8}
    fields |= {"num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 16, "vocab_size": 10}
    (table,) = config(fields).formulas().parts
    assert isinstance(table, Table)
    rows = {row[0]: row for row in table.rows}
    # 2 layers of 2 heads of 4 + 4 numbers; 1 + 2 + 3 and then 4 keys a query: 4n - 6 pairs
    assert rows["attention"][1] == "2 layers: causal, the last 4 keys"
    assert rows["attention"][3].splitlines()[0].split("  ")[0] == "64b(2n - 3)"
    assert rows["projections"][3] == "384n*b"  # 2*(8*8 + 8*4 + 8*4 + 8*8)
    assert all(isinstance(row[3], Maths) for row in table.rows)
