"""Linear maps, feed-forward nets, norms and embeddings: every token for itself."""

from __future__ import annotations

from lattend.cost.amount import Amount
from lattend.cost.cost import Cost, single
from lattend.cost.layer import NO_STEP, Layer, Run
from lattend.cost.points import Sizes, points
from lattend.cost.sizes import Size, read_size
from lattend.cost.statement import NOTHING, Array, Columns, Statement
from lattend.errors import NamingError

NORMS = ("layer", "rms")


def columns(condition: str, sizes: Sizes) -> Columns:
    """How many points a set has, the same in all three columns."""
    return Columns.same(points(condition, sizes))


def reached(condition: str, sizes: Sizes, indices: str) -> Columns:
    """How many values the named indices take on a set: the weights that its points use."""
    return Columns.same(points(condition, sizes, onto=tuple(indices.split())))


def linear(*, n: Size = "n", d_in: Size = "d_in", d_out: Size = "d_out", bias: bool = True) -> Cost:
    """A linear map of n tokens.

    >>> linear(n=2, d_in=3, d_out=4).multiplies  # 2*3*4
    24
    """
    sizes = {"n": read_size("n", n), "d_in": read_size("d_in", d_in), "d_out": read_size("d_out", d_out)}
    given = Array("x", columns("token < n and i < d_in", sizes), "input")
    _, weights, statements = product(given, sizes, bias=bias)
    return single(
        Layer("linear", statements, weights, positions=sizes["n"]), Run("linear", sizes, {"bias": bias})
    )


def product(
    given: Array, sizes: Sizes, *, name: str = "y", bias: bool = False
) -> tuple[Array, tuple[Array, ...], tuple[Statement, ...]]:
    """Y = x W (+ b) for n tokens: the result, the parameters, and the statements."""
    out = Array(name, columns("token < n and o < d_out", sizes))
    weight = Array(f"W_{name}", columns("i < d_in and o < d_out", sizes), "parameter")
    over = "token < n and i < d_in and o < d_out"
    times = Statement(
        name,
        "products",
        columns(over, sizes),
        (given, weight),
        out,
        out.size,
        over,
        (Amount.of(sizes["d_in"]),),
    )
    if not bias:
        return out, (weight,), (times,)
    offset = Array(f"b_{name}", columns("o < d_out", sizes), "parameter")
    moved = Array(f"{name} + b", out.size)
    plus = Statement(f"{name} + b", "adds", out.size, (out, offset), moved, over="token < n and o < d_out")
    return moved, (weight, offset), (times, plus)


def elementwise(name: str, kind: str, over: str, sizes: Sizes, *reads: Array) -> tuple[Array, Statement]:
    """One operation at every point of a set."""
    found = columns(over, sizes)
    made = Array(name, found)
    return made, Statement(name, kind, found, reads, made, over=over)


def feed_forward(
    *,
    n: Size = "n",
    d: Size = "d",
    hidden: Size = "hidden",
    bias: bool = True,
    activation: bool = True,
    gated: bool = False,
) -> Cost:
    """Two linear maps with an activation between; `gated` multiplies it with a third (SwiGLU)."""
    sizes = {"n": read_size("n", n), "d": read_size("d", d), "hidden": read_size("hidden", hidden)}
    up = {"n": sizes["n"], "d_in": sizes["d"], "d_out": sizes["hidden"]}
    down = {"n": sizes["n"], "d_in": sizes["hidden"], "d_out": sizes["d"]}
    given = Array("x", columns("token < n and i < d", sizes), "input")
    inner, weights, statements = product(given, up, name="up", bias=bias)
    if activation:
        inner, bend = elementwise("activation", "functions", "token < n and o < hidden", sizes, inner)
        statements += (bend,)
    if gated:
        gate, more, steps = product(given, up, name="gate", bias=bias)
        inner, both = elementwise("gated", "multiplies", "token < n and o < hidden", sizes, inner, gate)
        weights, statements = weights + more, (*statements, *steps, both)
    _, more, steps = product(inner, down, name="down", bias=bias)
    run = Run("feed_forward", sizes, {"bias": bias, "activation": activation, "gated": gated})
    return single(Layer("feed-forward", (*statements, *steps), weights + more, positions=sizes["n"]), run)


def norm(*, n: Size = "n", d: Size = "d", kind: str = "layer") -> Cost:
    """Layer norm with weight and bias, or "rms" with a weight, of n tokens."""
    if kind not in NORMS:
        raise NamingError(f"kind of norm is one of {', '.join(NORMS)}, not {kind!r}")
    sizes = {"n": read_size("n", n), "d": read_size("d", d)}
    each, one = "token < n and i < d", "token < n"
    x = Array("x", columns(each, sizes), "input")
    every, rows, terms = x.size, columns(one, sizes), Amount.of(sizes["d"])
    weight = Array("weight", columns("i < d", sizes), "parameter")
    steps: list[Statement] = []

    def take(name: str, how: str, over: str, *reads: Array) -> Array:
        made, statement = elementwise(name, how, over, sizes, *reads)
        steps.append(statement)
        return made

    centred, parameters = x, (weight,)
    if kind == "layer":
        total = Array("sum", rows)
        steps.append(Statement("sum", "sums", every, (x,), total, rows, each, (terms,)))
        mean = take("mean", "constant divisions", one, total)
        centred = take("x - mean", "adds", each, x, mean)
    squared = Array("sum of squares", rows)
    steps.append(
        Statement("sum of squares", "products", every, (centred, centred), squared, rows, each, (terms,))
    )
    spread = take("spread", "constant divisions", one, squared)
    raised = take("spread + eps", "adds", one, spread)
    root = take("root", "functions", one, raised)
    scale = take("1 / root", "reciprocals", one, root)
    found = take("scaled", "multiplies", each, centred, scale)
    found = take("times weight", "multiplies", each, found, weight)
    if kind == "layer":
        bias = Array("bias", weight.size, "parameter")
        parameters = (weight, bias)
        take("plus bias", "adds", each, found, bias)
    layer = Layer(f"{kind} norm", tuple(steps), parameters, positions=sizes["n"])
    return single(layer, Run("norm", sizes, {"kind": kind}))


def residual(*, n: Size = "n", d: Size = "d") -> Cost:
    """X + f(x): one add a number, and one more backward, where the two gradients of x meet."""
    sizes = {"n": read_size("n", n), "d": read_size("d", d)}
    over = "token < n and i < d"
    x = Array("x", columns(over, sizes), "input", NOTHING)  # f has begun its gradient
    f = Array("f(x)", x.size, "input")
    _, statement = elementwise("x + f(x)", "adds", over, sizes, x, f)
    return single(Layer("residual", (statement,)))


def shared_input(*, n: Size = "n", d: Size = "d", to: Size = "l") -> Cost:
    """Hand n tokens to several readers: nothing forward, and their gradients meet backward."""
    sizes = {"n": read_size("n", n), "d": read_size("d", d), "l": read_size("to", to)}
    x = Array("x", columns("token < n and i < d", sizes), "input")
    many = columns("token < n and i < d and reader < l", sizes)
    copied = Statement("copies", "copies", many, (x,), Array("copies", many, "again"))
    return single(Layer("shared input", (copied,), depth=NO_STEP))


def embedding(*, n: Size = "n", vocabulary: Size = "vocabulary", d: Size = "d") -> Cost:
    """A table of vectors, looked up for n different tokens: parameters and no arithmetic."""
    names = {"n": n, "vocabulary": vocabulary, "d": d}
    sizes = {name: read_size(name, size) for name, size in names.items()}
    many = columns("token < n and i < d", sizes)
    table = Array("table", columns("word < vocabulary and i < d", sizes), "parameter")
    rows = Array("rows of the table", many, "parameter")
    copied = Statement("lookup", "copies", many, (rows,), Array("x", many), over="token < n and i < d")
    return single(Layer("embedding", (copied,), (table,), positions=sizes["n"]), Run("embedding", sizes))


def tied_table(*, n: Size = "n", d: Size = "d") -> Cost:
    """A table that is multiplied elsewhere too: the gradients of n lookups are added to those."""
    sizes = {"n": read_size("n", n), "d": read_size("d", d)}
    many = columns("token < n and i < d", sizes)
    table = Array("table", many, "parameter", NOTHING)
    copied = Statement("copies", "copies", many, (table,), Array("copies", many, "again"))
    return single(Layer("tied table", (copied,), depth=NO_STEP))


def positions(*, n: Size = "n", d: Size = "d") -> Cost:
    """A learned table of positions, added to n tokens."""
    sizes = {"n": read_size("n", n), "d": read_size("d", d)}
    over = "token < n and i < d"
    x = Array("x", columns(over, sizes), "input")
    table = Array("table", x.size, "parameter")
    _, statement = elementwise("x + position", "adds", over, sizes, x, table)
    return single(Layer("positions", (statement,), (table,)))


def loose(name: str, size: Amount) -> Layer:
    """Parameters that no statement multiplies."""
    return Layer(name, (), (Array(name, Columns.same(size), "parameter"),), NO_STEP)
