"""Builder: the statements of a layer, added one by one, and the parameters they read."""

from __future__ import annotations

from typing import Any

from lattend.cost.amount import Amount
from lattend.cost.layer import Array, Columns, Layer, Statement
from lattend.cost.points import Sizes, points


def columns(over: str, sizes: Sizes, onto: tuple[str, ...] | None = None) -> Columns:
    """How many points a set has, or values its indices `onto` take: the same in all three columns."""
    return Columns.same(points(over, sizes, onto))


class Builder:
    """A layer on its way: sets are texts over its sizes."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.statements: list[Statement] = []
        self.parameters: list[Array] = []

    def columns(self, over: str, onto: tuple[str, ...] | None = None) -> Columns:
        """How many points a set has, or values its indices `onto` take."""
        return columns(over, self.sizes, onto)

    def given(self, name: str, over: str, touched: Columns | None = None) -> Array:
        """An input, one number for each point."""
        return Array(name, columns(over, self.sizes), "input", touched)

    def parameter(
        self, name: str, over: str, touched: Columns | None = None, of_head: Amount | None = None
    ) -> Array:
        """Numbers that are learned, one for each point."""
        made = Array(name, columns(over, self.sizes), "parameter", touched, of_head=of_head)
        self.parameters.append(made)
        return made

    def part(self, array: Array, over: str, kind: str = "again") -> Array:
        """Numbers of an array that are read here and nowhere else: one gate out of several."""
        return Array(array.name, self.columns(over), kind, of=array)

    def take(self, name: str, kind: str, over: str, *reads: Array, saved: bool = True) -> Array:
        """One operation at every point of a set; what is not `saved` is made again in the backward pass."""
        made = Array(name, self.columns(over), "made" if saved else "again")
        return self.write(name, kind, over, reads, made)

    def write(self, name: str, kind: str, over: str, reads: tuple[Array, ...], made: Array) -> Array:
        """The same into an array that is there already."""
        self.statements.append(Statement(name, kind, self.columns(over), reads, made, over=over))
        return made

    def product(
        self, inputs: Array, sizes: Sizes, name: str = "y", *, bias: bool = False, head: Amount | None = None
    ) -> Array:
        """Y = x W (+ b) for n tokens of d_in numbers, d_out in the result: all three in `sizes`.

        Of the d_out, each head makes as many as `head` says, if it is given.
        """
        inner = Builder(sizes)
        out = Array(name, inner.columns("token < n and o < d_out"))
        of_head = None if head is None else head * Amount.of(sizes["d_in"])
        weight = inner.parameter(f"W_{name}", "i < d_in and o < d_out", of_head=of_head)
        over, longest = "token < n and i < d_in and o < d_out", (Amount.of(sizes["d_in"]),)
        every = inner.columns(over)
        inner.statements.append(
            Statement(name, "products", every, (inputs, weight), out, out.size, over, longest)
        )
        if bias:
            offset = inner.parameter(f"b_{name}", "o < d_out", of_head=head)
            out = inner.take(f"{name} + b", "adds", "token < n and o < d_out", out, offset)
        self.statements += inner.statements
        self.parameters += inner.parameters
        return out

    def layer(self, name: str, **more: Any) -> Layer:
        """All of it as a layer."""
        return Layer(name, tuple(self.statements), tuple(self.parameters), **more)
