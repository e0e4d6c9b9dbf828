"""Recurrent layers: RNN, LSTM and GRU along a line, and 2-D ones on an image."""

from __future__ import annotations

from lattend.cost.amount import ONE, ZERO, Amount
from lattend.cost.cost import Cost, single
from lattend.cost.layer import (
    NOTHING,
    Array,
    Builder,
    Columns,
    Layer,
    LayerDepth,
    ReferenceRun,
    Statement,
    columns,
    depth_of,
)
from lattend.cost.points import Sizes, points
from lattend.cost.reference.recurrence import check_cell, check_directions
from lattend.cost.sizes import Size, keeps_recipe, need_number, number_of, read_size, read_sizes
from lattend.rules.language.polynomial import Polynomial

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


IMAGE = "row < rows and col < cols"


@keeps_recipe
def rnn2d(
    *,
    n: Size = "n",
    h: Size = "h",
    c: Size = "c",
    rows: Size | None = None,
    cols: Size | None = None,
    cell: str = "rnn",
    directions: int = 1,
    layers: Size = 1,
    bias: bool = False,
) -> Cost:
    """A 2-D RNN, h = σ(W_in x + W_left h_left + W_top h_top) on an image.

    Needed leaves out the products with neighbours beyond the edge; executed and dense multiply their zeros,
    as lt.nn.GridRNN does. `cell` is "rnn", "lstm" (gates i, f, l, g, o) or "gru" (r, z, l, n). `directions`
    is 1, down and right, 2, also down and left, or 4; the layer above is given all of them. The saved
    activations are those of lt.nn.GridRNN: pixels, states, gates.

    >>> rnn2d().depth
    2n - 1
    >>> rnn2d(rows=1, cols=1, h=2, c=3, cell="lstm").multiplies  # 5*2*3, i∘g and o∘tanh c
    34
    """
    check_cell(cell)
    ways = need_number("directions", directions)
    check_directions(ways)
    down, across = (n if side is None else side for side in (rows, cols))
    sizes = read_sizes(rows=down, cols=across, h=h, c=c)
    many = read_size("layers", layers)
    steps = depth_of(IMAGE, ((0, -1), (-1, 0)), sizes)
    if ways > 1:
        steps = LayerDepth(steps.steps, f"{steps.schedule}, from the corner where its direction starts")
    first = _GridStatements(sizes, cell, ways, bias)
    parts = [(ONE, first.finished(steps))]
    if number_of(many) != 1:
        upper = {**sizes, "c": sizes["h"] * Polynomial.constant(ways)}
        later = _GridStatements(upper, cell, ways, bias, above=True).finished(_later(steps, ways, sizes))
        parts.append((Amount.of(many - Polynomial.constant(1)), later))
    options = {"cell": cell, "directions": ways, "bias": bias}
    run = ReferenceRun("rnn2d", {**sizes, "layers": many}, options)
    return Cost(first.name, tuple(parts), runs=((ONE, run),))


def _later(steps: LayerDepth, ways: int, sizes: Sizes) -> LayerDepth:
    """How much later a layer is done than the one below: its cells begin as soon as all directions allow.

    One way, the cell below is enough. Left and right, the first cell of a row waits for the last one that
    the other direction gives there, cols steps on. Up and down too, it waits for the whole image.
    """
    if ways == 1:
        return LayerDepth(ONE, "each cell one step after the one below")
    if ways == 2:
        return LayerDepth(Amount.of(sizes["cols"]), "each cell cols steps after the one below")
    return LayerDepth(steps.steps, "once the layer below is done")


class _GridStatements(Builder):
    """The statements of one layer, all its directions, as they are added."""

    def __init__(self, sizes: Sizes, cell: str, ways: int, bias: bool, *, above: bool = False) -> None:
        super().__init__(sizes)
        self.cell, self.bias, self.above = cell, bias, above
        self.name = "rnn2d" if cell == "rnn" else f"rnn2d of {cell} cells"
        self.way = "" if ways == 1 else f"way < {ways} and "
        self.units = f"{self.way}{IMAGE} and o < h"
        self.left = f"{self.way}row < rows and 1 <= col and col < cols and o < h"
        self.top = f"{self.way}1 <= row and row < rows and col < cols and o < h"
        self.some = f"{self.units} and 1 <= row + col"  # all but the corner
        self.row = points(f"{self.way}col < cols and o < h", sizes)
        # One direction of the layer below is saved as its states; several lie side by side, a copy
        kind = "again" if above and ways == 1 else "input"
        self.x = Array("x", columns(f"{IMAGE} and i < c", sizes), kind)
        # All states are outputs, with gradients from outside; those of the zeros beyond the edge begin here
        self.edge = Columns.of(ZERO, points(f"{self.way}row < rows and o < h", sizes) + self.row)
        self.h = Array("h", self.columns(self.units), touched=self.edge)

    def finished(self, depth: LayerDepth) -> Layer:
        """The layer, which runs cell by cell with a row of states for each direction."""
        {"rnn": self.rnn, "lstm": self.lstm, "gru": self.gru}[self.cell]()
        border = self.row * (2 if self.cell == "lstm" else 1)
        name, path = (f"{self.name}, upper layer", None) if self.above else (self.name, depth.steps)
        how = {"depth": depth, "mixes_tokens": True, "path": path, "cache": border, "streams": True}
        return Builder.layer(self, name, **how, positions=self.sizes["rows"] * self.sizes["cols"])

    def rnn(self) -> None:
        total = self.sum("", ("in", "left", "top"))
        self.write("σ", "functions", self.units, (total,), self.h)

    def lstm(self) -> None:
        gates = self.sum("gate < 5 and ", ("in", "left", "top"))
        four = f"gate < 4 and {self.units}"
        opened = self.take("σ", "functions", four, self.part(gates, four))
        g = self.take("g", "functions", self.units, self.part(gates, self.units))
        new = self.take("i * g", "multiplies", self.units, self.part(opened, self.units), g)
        # tanh c begins the gradient of c, and those from the next cells are added to it
        c = Array("c", self.columns(self.units), touched=self.edge)
        old = self.take(
            "f * mixed", "multiplies", self.some, self.part(opened, self.some), self.mixed(opened, c)
        )
        new = self.take("c", "adds", self.some, self.part(new, self.some), old)
        bent = self.take("tanh c", "functions", self.units, self.part(new, self.units), saved=False)
        self.write("o * tanh c", "multiplies", self.units, (self.part(opened, self.units), bent), self.h)

    def gru(self) -> None:
        pre = self.sum("gate < 4 and ", ("in",))
        near = self.sum("gate < 3 and ", ("left", "top"))
        m = self.sum("", ("left", "top"), of=" of m")
        some, three = f"gate < 3 and {self.some}", f"gate < 3 and {self.units}"
        gates = self.take("pre + neighbours", "adds", some, self.part(pre, some), near)
        opened = self.take("σ", "functions", three, self.part(gates, three))
        past = self.take("r * m", "multiplies", self.some, self.part(opened, self.some), m)
        new = self.take("pre + r * m", "adds", self.some, self.part(pre, self.some), past)
        n = self.take("n", "functions", self.units, self.part(new, self.units))
        z = self.part(opened, self.units)
        rest = self.take("1 - z", "adds", self.units, z, saved=False)
        new = self.take("(1 - z) * n", "multiplies", self.units, rest, n)
        old = self.take("z * mixed", "multiplies", self.some, z, self.mixed(opened, self.h))
        self.write("h", "adds", self.some, (self.part(new, self.some), old), self.h)

    # Parts of a cell

    def columns(self, over: str, onto: tuple[str, ...] | None = None) -> Columns:
        """The points of a set; executed and dense without conditions `1 <= …`: that a neighbour is there."""
        every = " and ".join(part for part in over.split(" and ") if not part.startswith("1 <= "))
        return Columns.of(points(over, self.sizes, onto), points(every, self.sizes, onto))

    def mixed(self, opened: Array, states: Array) -> Array:
        """l∘left + (1 - l)∘top of the states before; made again in the backward pass."""
        share = self.part(opened, self.some)
        lefts = self.take("l * left", "multiplies", self.left, share, states)
        other = self.take("1 - l", "adds", self.top, share, saved=False)
        tops = self.take("(1 - l) * top", "multiplies", self.top, other, states)
        both = f"{self.top} and 1 <= col"
        convex = self.take("mixed", "adds", both, self.part(lefts, both), self.part(tops, both), saved=False)
        return self.part(convex, self.some)

    def sum(self, gate: str, sources: tuple[str, ...], of: str = "") -> Array:
        """The products with pixels and neighbours that go into one sum, and the bias with the pixels."""
        from_pixel = "in" in sources
        units = f"{gate}{self.units}"
        begun = self.columns(units if from_pixel else f"{gate}{self.some}")
        total = Array(f"sum{of}", self.columns(units), touched=begun)
        ways = {
            "in": (self.units, "c", self.x),
            "left": (self.left, "h", self.h),
            "top": (self.top, "h", self.h),
        }
        terms = sum((Amount.of(self.sizes[ways[source][1]]) for source in sources), ZERO)
        # Without the pixel it is the left neighbour that begins a sum; in the first column, the one above
        begins = {sources[0]: self.columns(f"{gate}{ways[sources[0]][0]}")}
        if not from_pixel:
            begins["top"] = Columns.of(points(f"{gate}{self.top} and col == 0", self.sizes), ZERO)
        for source in sources:
            outputs, width, reads = ways[source]
            over, shape = f"{gate}{outputs} and i < {width}", f"{gate}{self.way}o < h and i < {width}"
            used = self.columns(over, ("gate", "way", "o", "i"))
            weight = self.parameter(f"W_{source}{of}", shape, used)
            name, start, every = f"{source}{of}", begins.get(source, NOTHING), self.columns(over)
            self.statements.append(
                Statement(name, "products", every, (reads, weight), total, start, over, (terms,))
            )
        if not from_pixel or not self.bias:
            return total
        bias = self.parameter("b", f"{gate}{self.way}o < h")
        return self.take("bias", "adds", units, total, bias)
