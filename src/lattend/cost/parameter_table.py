"""Parameters matrix by matrix: those of one head, of all heads, and of the layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lattend.cost.amount import ZERO, Amount
from lattend.cost.sizes import TIED
from lattend.counts.count import Count
from lattend.counts.latex import value_maths
from lattend.errors import NamingError
from lattend.report.numbers import format_value
from lattend.report.report import Printed, Report
from lattend.report.table import Facts, Table

if TYPE_CHECKING:
    from lattend.cost.cost import Cost

HEADS, TOTAL = "the heads", "total"
ONE_HEAD, ALL_HEADS = "one head", "all heads"


@dataclass(frozen=True)
class MatrixRow:
    """A matrix or a bias: its layer, how many such layers there are, its numbers, and those of one head."""

    layer: str
    matrix: str
    numbers: Amount
    of_head: Amount | None
    layers: Amount


@dataclass(frozen=True, eq=False, repr=False)
class ParameterTable(Printed):
    """The parameters of a cost by matrix; `table["W_q"]` is the number or formula of one of them."""

    cost: Cost
    rows: tuple[MatrixRow, ...]

    def __getitem__(self, matrix: str) -> Count | int:
        """All numbers of a matrix, in all layers that have it; also "one head", "all heads" and "total"."""
        amount = self.amount(matrix)
        if amount is None:
            names = ", ".join(dict.fromkeys(row.matrix for row in self.rows))
            raise NamingError(f"{self.cost.name} has no {matrix}; it has {names or 'no parameters'}")
        return self._written(amount)

    def amount(self, matrix: str) -> Amount | None:
        """The same before it is written; None where there is no such matrix."""
        heads = [row for row in self.rows if row.of_head is not None]
        if matrix == ONE_HEAD:
            return sum((row.of_head for row in heads if row.of_head is not None), ZERO) if heads else None
        chosen = [row for row in self.rows if matrix in (row.matrix, TOTAL)]
        chosen = heads if matrix == ALL_HEADS else chosen
        return sum((row.numbers * row.layers for row in chosen), ZERO) if chosen else None

    def of_head(self, matrix: str) -> Count | int:
        """The numbers that one head has of a matrix."""
        each = [row.of_head for row in self.rows if row.of_head is not None and row.matrix == matrix]
        if not each:
            raise NamingError(f"{self.cost.name} has no {matrix} that is cut into heads")
        return self._written(each[0])

    def _written(self, amount: Amount) -> Count | int:
        return self.cost.number_or_formula(amount, "parameters")

    @property
    def heading(self) -> str:
        """`attention in heads, D_i, parameters by matrix`."""
        return f"{self.cost.needed.forward.heading}, parameters by matrix"

    def report(self) -> Report:
        """The printed table: the matrices of one layer, those of heads first; of several, layer by layer."""
        one = len(self.cost.parts) == 1 and self.cost.parts[0][0].value() == 1
        table = self._one_layer() if one else self._layers()
        parts = [table] if self.rows else []
        return Report(self.heading, [*parts, Facts([(TOTAL, self._total)]), *self._tied()])

    def _one_layer(self) -> Table:
        heads = [row for row in self.rows if row.of_head is not None]
        rows = [(row.matrix, self._head_cell(row), self._cell(row.numbers)) for row in heads]
        if heads:
            every = self._cell(sum((row.numbers for row in heads), ZERO))
            rows.append((HEADS, value_maths(self[ONE_HEAD]), every))
        rows += [(row.matrix, "", self._cell(row.numbers)) for row in self.rows if row.of_head is None]
        if heads:
            return Table(("", "of one head", "in all"), rows)
        return Table(("", "numbers"), [(name, numbers) for name, _, numbers in rows])

    def _layers(self) -> Table:
        head = ("layer", "layers", "matrix", "of one head", "in a layer")
        rows = [
            (row.layer, self._cell(row.layers), row.matrix, self._head_cell(row), self._cell(row.numbers))
            for row in self.rows
        ]
        return Table(head, rows)

    def _cell(self, amount: Amount) -> str:
        return value_maths(self._written(amount))

    def _head_cell(self, row: MatrixRow) -> str:
        return "" if row.of_head is None else self._cell(row.of_head)

    @property
    def _total(self) -> str:
        return value_maths(self.cost.parameters)

    def _tied(self) -> list[str]:
        """Which sizes are another one, since they were not given."""
        ties = {
            name: to
            for _, recipe in self.cost.recipes
            for name, to in TIED.items()
            if self.rows and name in ("D_o", "D_out") and recipe.tied(name)
        }
        if not ties:
            return []
        equations = " and ".join(f"{name} = {to}" for name, to in ties.items())
        typed = ", ".join(f"{name}={name}" for name in ties)
        return ["", f"{equations}, as nothing else is given; attention({typed}) has them apart"]

    def json(self) -> dict[str, Any]:
        """The same as plain data: numbers as numbers, formulas as text."""
        rows = [
            {
                "layer": row.layer,
                "layers": self._data(row.layers),
                "matrix": row.matrix,
                "of_head": None if row.of_head is None else self._data(row.of_head),
                "numbers": self._data(row.numbers),
            }
            for row in self.rows
        ]
        return {"layer": self.cost.name, "rows": rows, "total": self._data(self.cost.amount("parameters"))}

    def _data(self, amount: Amount) -> int | str:
        written = self._written(amount)
        return written if isinstance(written, int) else str(written)

    def __repr__(self) -> str:
        return f"<ParameterTable of {self.cost.name}: {', '.join(row.matrix for row in self.rows)}>"


def numbers_of(cost: Cost, matrix: str) -> Amount | None:
    """The numbers of a matrix, of "one head" or of "all heads"; None where a cost has no such thing."""
    return parameter_table(cost).amount(matrix) if matrix != TOTAL else None


def parameter_table(cost: Cost) -> ParameterTable:
    """The parameters of a cost by matrix; layers that are alike are put together."""
    rows: dict[tuple[str, ...], MatrixRow] = {}
    for times, layer in cost.parts:
        for array in layer.parameters:
            numbers = array.size.dense
            key = (layer.name, array.name, format_value(cost.number_or_formula(numbers, "parameters")))
            before = rows[key].layers if key in rows else ZERO
            rows[key] = MatrixRow(layer.name, array.name, numbers, array.of_head, before + times)
    return ParameterTable(cost, tuple(rows.values()))
