"""Linear maps, feed-forward nets, norms and embeddings: every token for itself."""

from __future__ import annotations

from lattend.cost.amount import Amount
from lattend.cost.cost import Cost, single
from lattend.cost.layer import NO_STEP, NOTHING, Array, Builder, Columns, Layer, ReferenceRun, Statement
from lattend.cost.sizes import Size, keeps_recipe, read_sizes
from lattend.errors import NamingError

NORMS = ("layer", "rms")
TOKENS = "token < n and i < d"  # n tokens of d numbers


@keeps_recipe
def linear(*, n: Size = "n", d_in: Size = "d_in", d_out: Size = "d_out", bias: bool = True) -> Cost:
    """A linear map of n tokens.

    >>> linear(n=2, d_in=3, d_out=4).multiplies  # 2*3*4
    24
    """
    sizes = read_sizes(n=n, d_in=d_in, d_out=d_out)
    build = Builder(sizes)
    build.product(build.given("x", "token < n and i < d_in"), sizes, bias=bias)
    return single(build.layer("linear", positions=sizes["n"]), ReferenceRun("linear", sizes, {"bias": bias}))


@keeps_recipe
def feed_forward(
    *,
    n: Size = "n",
    d: Size = "d",
    hidden: Size = "hidden",
    bias: bool = True,
    activation: bool = True,
    gated: bool = False,
) -> Cost:
    """A feed-forward net on n tokens: two linear maps, d to `hidden` and back, with an activation between.

    `gated` multiplies the activation with a third map, as SwiGLU does.

    >>> feed_forward(n=1, d=2, hidden=8).parameters  # 2*8 + 8 + 8*2 + 2
    42
    """
    sizes = read_sizes(n=n, d=d, hidden=hidden)
    up = {"n": sizes["n"], "d_in": sizes["d"], "d_out": sizes["hidden"]}
    down = {"n": sizes["n"], "d_in": sizes["hidden"], "d_out": sizes["d"]}
    build, inside = Builder(sizes), "token < n and o < hidden"
    x = build.given("x", TOKENS)
    inner = build.product(x, up, "up", bias=bias)
    if activation:
        inner = build.take("activation", "functions", inside, inner)
    if gated:
        gate = build.product(x, up, "gate", bias=bias)
        inner = build.take("gated", "multiplies", inside, inner, gate)
    build.product(inner, down, "down", bias=bias)
    run = ReferenceRun("feed_forward", sizes, {"bias": bias, "activation": activation, "gated": gated})
    return single(build.layer("feed-forward", positions=sizes["n"]), run)


@keeps_recipe
def norm(*, n: Size = "n", d: Size = "d", kind: str = "layer") -> Cost:
    """Layer norm of n tokens with weight and bias; `kind="rms"` has a weight and takes no mean."""
    if kind not in NORMS:
        raise NamingError(f"kind of norm is one of {', '.join(NORMS)}, not {kind!r}")
    sizes = read_sizes(n=n, d=d)
    build, one = Builder(sizes), "token < n"
    x, rows, terms = build.given("x", TOKENS), build.columns(one), Amount.of(sizes["d"])

    def total(name: str, kind: str, *reads: Array) -> Array:
        made = Array(name, rows)
        build.statements.append(Statement(name, kind, x.size, reads, made, rows, TOKENS, (terms,)))
        return made

    centred = x
    if kind == "layer":
        mean = build.take("mean", "constant divisions", one, total("sum", "sums", x))
        centred = build.take("x - mean", "adds", TOKENS, x, mean)
    squared = total("sum of squares", "products", centred, centred)
    spread = build.take("spread", "constant divisions", one, squared)
    raised = build.take("spread + eps", "adds", one, spread)
    root = build.take("root", "functions", one, raised)
    scale = build.take("1 / root", "reciprocals", one, root)
    scaled = build.take("scaled", "multiplies", TOKENS, centred, scale)
    scaled = build.take("times weight", "multiplies", TOKENS, scaled, build.parameter("weight", "i < d"))
    if kind == "layer":
        build.take("plus bias", "adds", TOKENS, scaled, build.parameter("bias", "i < d"))
    return single(
        build.layer(f"{kind} norm", positions=sizes["n"]), ReferenceRun("norm", sizes, {"kind": kind})
    )


def residual(*, n: Size = "n", d: Size = "d") -> Cost:
    """X + f(x): one add a number, and one more backward, where the two gradients of x meet."""
    build = Builder(read_sizes(n=n, d=d))
    x = build.given("x", TOKENS, NOTHING)  # f has begun its gradient
    build.take("x + f(x)", "adds", TOKENS, x, build.given("f(x)", TOKENS))
    return single(build.layer("residual"))


def shared_input(*, n: Size = "n", d: Size = "d", to: Size = "l") -> Cost:
    """Hand n tokens to several readers: nothing forward, and their gradients meet backward."""
    build = Builder(read_sizes(n=n, d=d, l=to))
    build.take("copies", "copies", f"{TOKENS} and reader < l", build.given("x", TOKENS), saved=False)
    return single(build.layer("shared input", depth=NO_STEP))


@keeps_recipe
def embedding(*, n: Size = "n", vocabulary: Size = "vocabulary", d: Size = "d") -> Cost:
    """A table of vectors, looked up for n different tokens: parameters and no arithmetic."""
    sizes = read_sizes(n=n, vocabulary=vocabulary, d=d)
    build = Builder(sizes)
    build.parameter("table", "word < vocabulary and i < d")
    rows = Array("rows of the table", build.columns(TOKENS), "parameter")
    build.take("lookup", "copies", TOKENS, rows)
    return single(build.layer("embedding", positions=sizes["n"]), ReferenceRun("embedding", sizes))


def tied_table(*, n: Size = "n", d: Size = "d") -> Cost:
    """A table that is multiplied elsewhere too: the gradients of n lookups are added to those."""
    build = Builder(read_sizes(n=n, d=d))
    table = Array("table", build.columns(TOKENS), "parameter", NOTHING)
    build.take("copies", "copies", TOKENS, table, saved=False)
    return single(build.layer("tied table", depth=NO_STEP))


def positions(*, n: Size = "n", d: Size = "d") -> Cost:
    """A learned table of positions, added to n tokens."""
    build = Builder(read_sizes(n=n, d=d))
    build.take("x + position", "adds", TOKENS, build.given("x", TOKENS), build.parameter("table", TOKENS))
    return single(build.layer("positions"))


def loose(name: str, size: Amount) -> Layer:
    """Parameters that no statement multiplies."""
    return Layer(name, (), (Array(name, Columns.same(size), "parameter"),), NO_STEP)
