"""Recurrent layers on a line: cells that wait for others."""

from __future__ import annotations

from lattend.cost.amount import Amount
from lattend.cost.cost import Cost, single
from lattend.cost.layer import NOTHING, Array, Builder, ReferenceRun, Statement, depth_of
from lattend.cost.points import Sizes, points
from lattend.cost.recipe import keeps_recipe
from lattend.cost.sizes import Size, number_of, read_sizes

CELL = "layer < l and step < t"


@keeps_recipe
def rnn(
    *,
    steps: Size = "t",
    inputs: Size = "c",
    hidden: Size = "h",
    layers: Size = 1,
    bias: bool = False,
    initial: bool = True,
) -> Cost:
    """A plain RNN, h' = tanh(W x + U h); `initial=False` leaves the zero state out at the first step.

    >>> rnn(layers="l").depth  # layers overlap: cell (layer, step) waits for two others
    l + t - 1
    """
    return _recurrent("rnn", steps, inputs, hidden, layers, bias, initial)


@keeps_recipe
def lstm(
    *,
    steps: Size = "t",
    inputs: Size = "c",
    hidden: Size = "h",
    layers: Size = 1,
    bias: bool = False,
    initial: bool = True,
) -> Cost:
    """An LSTM: four gates, and a cell state beside the hidden one.

    >>> lstm(steps=7, inputs=4, hidden=5).multiply_adds.needed  # 7*4*5*(4 + 5) in four gates
    1260
    """
    return _recurrent("lstm", steps, inputs, hidden, layers, bias, initial)


@keeps_recipe
def gru(
    *,
    steps: Size = "t",
    inputs: Size = "c",
    hidden: Size = "h",
    layers: Size = 1,
    bias: bool = False,
    initial: bool = True,
) -> Cost:
    """A GRU: three gates, of which the reset gate multiplies U h, as torch has it.

    >>> gru(steps=7, inputs=4, hidden=5).multiply_adds.needed  # 7*3*5*(4 + 5) in three gates
    945
    """
    return _recurrent("gru", steps, inputs, hidden, layers, bias, initial)


def _recurrent(
    name: str, steps: Size, inputs: Size, hidden: Size, layers: Size, bias: bool, initial: bool
) -> Cost:
    known = read_sizes(steps=steps, inputs=inputs, hidden=hidden, layers=layers)
    sizes = dict(zip("tchl", known.values(), strict=True))
    builder = _RecurrentStatements(sizes, bias, initial, keeps_state=name != "rnn")
    {"rnn": builder.rnn, "lstm": builder.lstm, "gru": builder.gru}[name]()
    depth = depth_of(CELL, ((0, -1), (-1, 0)), sizes)
    state = points("layer < l and o < h", sizes) * (2 if name == "lstm" else 1)
    how = {"depth": depth, "mixes_tokens": True, "path": Amount.of(sizes["t"]), "cache": state}
    layer = builder.layer(name, **how, streams=True, positions=sizes["t"])
    return single(layer, ReferenceRun(name, known, {"bias": bias, "initial": initial}))


class _RecurrentStatements(Builder):
    """The statements of a recurrent layer, as they are added."""

    def __init__(self, sizes: Sizes, bias: bool, initial: bool, *, keeps_state: bool) -> None:
        super().__init__(sizes)
        self.bias, self.initial = bias, initial
        self.units = f"{CELL} and o < h"
        self.one_layer = number_of(sizes["l"]) == 1
        self.cells_before = CELL if initial else "layer < l and 1 <= step and step < t"
        self.states = f"{self.cells_before} and o < h"  # numbers of states that a cell finds
        self.begun = self.columns("layer < l and o < h") if initial else NOTHING  # initial states
        # Outputs are the states of the top layer; their gradients come from outside
        read = self.columns(f"{self.units} and layer + 1 < l")
        self.input = self.given("x", "step < t and i < c")
        self.below = Array("h below", self.columns(f"{self.units} and 1 <= layer"), "again", NOTHING)
        kind = "made" if keeps_state else "again"
        self.before = Array("h", self.columns(self.states), kind, read + self.begun)

    def rnn(self) -> None:
        self.take("tanh", "functions", self.units, self.sum("h'", 1, "both"))

    def lstm(self) -> None:
        gates = self.sum("gates", 4, "both")
        three = f"gate < 3 and {self.units}"
        opened = self.take("σ", "functions", three, self.part(gates, three))
        candidate = self.take("candidate", "functions", self.units, self.part(gates, self.units))
        state = Array("c", self.columns(self.states), touched=self.begun)
        old = self.take("f * c", "multiplies", self.states, self.part(opened, self.states), state)
        new = self.take("i * candidate", "multiplies", self.units, self.part(opened, self.units), candidate)
        total = self.take("c'", "adds", self.states, old, self.part(new, self.states))
        bent = self.take("tanh c'", "functions", self.units, self.part(total, self.units))
        self.take("o * tanh c'", "multiplies", self.units, self.part(opened, self.units), bent)

    def gru(self) -> None:
        ahead = self.sum("W x", 3, "input")
        back = self.sum("U h", 3, "state")
        some = self.units if self.bias else self.states  # where there is a U h, if only its bias
        both, gate_units = f"gate < 2 and {self.units}", f"gate < 2 and {some}"
        summed = self.take(
            "W x + U h", "adds", gate_units, self.part(ahead, gate_units), self.part(back, gate_units)
        )
        opened = self.take("σ", "functions", both, self.part(summed, both))
        past = self.take(
            "r * U h", "multiplies", some, self.part(opened, some), self.part(back, some, "made")
        )
        total = self.take("W x + r * U h", "adds", some, self.part(ahead, some), past)
        candidate = self.take("candidate", "functions", self.units, self.part(total, self.units))
        update = self.part(opened, self.units)
        rest = self.take("1 - z", "adds", self.units, update)
        new = self.take("(1 - z) * candidate", "multiplies", self.units, rest, candidate)
        old = self.take("z * h", "multiplies", self.states, update, self.before)
        self.take("h'", "adds", self.states, self.part(new, self.states), old)

    # Parts of a cell

    def sum(self, name: str, gates: int, which: str) -> Array:
        """The products that go into gates and their biases; both sides join in one sum, or have their own."""
        gate = f"gate < {gates} and "
        total = Array(name, self.columns(f"{gate}{self.units}"))
        if which != "state":
            self.products("W", f"{gate}layer == 0 and step < t and o < h", "c", self.input, total)
            if not self.one_layer:
                self.products("W above", f"{gate}1 <= layer and {self.units}", "h", self.below, total)
            total = self.offset("b_W", gate, total)
        if which != "input":
            over = f"{gate}{self.states}"
            self.products("U", over, "h", self.before, total, joins=which == "both")
            total = self.offset("b_U", gate, total, alone=which == "state" and not self.initial)
        return total

    def products(
        self, weights: str, outputs: str, width: str, inputs: Array, made: Array, *, joins: bool = False
    ) -> None:
        """Products with weights of their own; `joins` where they go into a sum that has begun."""
        over = f"{outputs} and i < {width}"
        onto = ("gate", "layer", "o", "i")
        size = self.columns(over if self.initial else over.replace("1 <= step and ", ""), onto)
        weight = Array(weights, size, "parameter", self.columns(over, onto))
        self.parameters.append(weight)
        begins = NOTHING if joins else self.columns(outputs)
        one, two = Amount.of(self.sizes[width]), Amount.of(self.sizes["c"]) + Amount.of(self.sizes["h"])
        upper = () if self.one_layer else (Amount.of(self.sizes["h"]) * 2,)
        longest = (two, *upper) if joins else (one,)
        every = self.columns(over)
        self.statements.append(
            Statement(made.name, "products", every, (inputs, weight), made, begins, over, longest)
        )

    def offset(self, name: str, gate: str, sums: Array, *, alone: bool = False) -> Array:
        """The sums with a bias added, if there is one; `alone` where at the first step it is all there is."""
        if not self.bias:
            return sums
        bias = self.parameter(name, f"{gate}layer < l and o < h")
        if not alone:
            return self.take("bias", "adds", f"{gate}{self.units}", sums, bias)
        self.take("bias", "copies", f"{gate}layer < l and step == 0 and o < h", bias)
        sums = self.part(sums, f"{gate}{self.states}")
        return self.take("bias", "adds", f"{gate}{self.states}", sums, bias)
