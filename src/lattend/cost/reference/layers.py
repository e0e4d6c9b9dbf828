"""The layers of `lt.cost` as plain code that takes the same arguments, and what one run of it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import prod
from random import Random
from typing import Any

from lattend.cost.reference import attention, nets, recurrence, shapes
from lattend.cost.reference.numbers import CountingTape, Matrix, backward, counting, depth, numbers, unit
from lattend.cost.reference.recurrence import recurrent
from lattend.cost.reference.shapes import Shape, Shapes, fill, filled
from lattend.errors import DomainError, NamingError
from lattend.rules.rule import Rule


@dataclass(frozen=True)
class PlainLayer:
    """A layer as code that is called with inputs and weights, and the shapes of both."""

    code: Callable[..., Any]
    weights: Shapes
    inputs: tuple[Shape, ...]

    @property
    def size(self) -> int:
        """How many numbers it is given."""
        return shapes.size(self.weights) + sum(map(prod, self.inputs))

    def run(self) -> Ran:
        """Runs it once on random numbers and counts."""
        return run(self.code, self.weights, *self.inputs)


def plain_layer(name: str, **arguments: Any) -> PlainLayer:
    """A layer by its name in lt.cost, every size a number.

    >>> plain_layer("linear", n=2, d_in=3, d_out=4).run().forward.multiplies  # 2*3*4
    24
    """
    if name not in _LAYERS:
        raise NamingError(f"{name} has no plain code; these have: {', '.join(_LAYERS)}")
    return _LAYERS[name](**arguments)


def _linear(n: int, d_in: int, d_out: int, bias: bool = True) -> PlainLayer:
    return PlainLayer(one(nets.linear), shapes.linear(d_in, d_out, bias), ((n, d_in),))


def _feed_forward(
    n: int, d: int, hidden: int, bias: bool = True, activation: bool = True, gated: bool = False
) -> PlainLayer:
    code = partial(nets.feed_forward, activation="gelu" if activation else None)
    return PlainLayer(one(code), shapes.feed_forward(d, hidden, bias, gated), ((n, d),))


def _norm(n: int, d: int, kind: str = "layer") -> PlainLayer:
    code = nets.layer_norm if kind == "layer" else nets.rms_norm
    return PlainLayer(one(code), shapes.norm(d, kind), ((n, d),))


def _embedding(n: int, vocabulary: int, d: int) -> PlainLayer:
    return PlainLayer(one(partial(nets.embedding, _words(n, vocabulary))), {"weight": (vocabulary, d)}, ())


def _words(n: int, vocabulary: int) -> range:
    """Different words: the gradients of one that comes twice would be added."""
    if n > vocabulary:
        raise DomainError(
            f"an embedding is priced for different tokens, and {n} are more than the {vocabulary} there are"
        )
    return range(n)


def _conv(
    rows: int,
    cols: int,
    c_in: int,
    c_out: int,
    kernel_rows: int,
    kernel_cols: int,
    stride: tuple[int, int] = (1, 1),
    dilation: tuple[int, int] = (1, 1),
    padding: tuple[int, int] | str = (0, 0),
    padding_mode: str = "zeros",
    groups: int = 1,
    bias: bool = True,
) -> PlainLayer:
    options: dict[str, Any] = {"stride": stride, "dilation": dilation, "padding": padding}
    code = partial(nets.conv2d, **options, groups=groups, padding_mode=padding_mode)
    weights = shapes.conv2d(c_in, c_out, (kernel_rows, kernel_cols), groups, bias)
    return PlainLayer(one(code), weights, ((c_in, rows, cols),))


def _recurrent(
    kind: str,
    steps: int,
    inputs: int,
    hidden: int,
    layers: int = 1,
    bias: bool = False,
    initial: bool = True,
) -> PlainLayer:
    code = partial(recurrent, kind, initial=initial)
    return PlainLayer(code, shapes.recurrent(kind, inputs, hidden, layers, bias), ((steps, inputs),))


def _rnn2d(
    rows: int,
    cols: int,
    h: int,
    c: int,
    cell: str = "rnn",
    directions: int = 1,
    layers: int = 1,
    bias: bool = False,
) -> PlainLayer:
    code = partial(recurrence.rnn2d_stack, cell=cell, directions=directions)
    return PlainLayer(code, shapes.rnn2d_stack(h, c, cell, directions, layers, bias), ((rows, cols, c),))


def _attention(
    rule: Rule,
    heads: int,
    kv_heads: int,
    D_i: int,
    D_hid: int,
    D_o: int,
    D_out: int,
    D_p: int,
    D_keys: int,
    D_values: int,
    encoding: str | None,
    projections: str | None,
    content: bool,
    learned: bool,
    radius: tuple[int, ...] | None,
    bias: bool,
    out_bias: bool,
    scaled: bool,
    cross: bool,
    **sizes: int,
) -> PlainLayer:
    """Attention under a rule: tokens, or queries, keys and values where these are given."""
    masks, n, m = _masks(rule, heads, sizes)
    between = _Between(_complete(rule, {**sizes, "heads": heads}), radius)
    width = D_p if encoding in ("relative", "quadratic") else 0
    shifts = {at: [0.1] * width for at in between.all()} if width else None
    weights = shapes.attention(
        heads, D_i, D_hid, D_o, D_out, kv_heads=kv_heads, bias=bias, out_bias=out_bias, encoding=encoding,
        content=content, D_p=D_p, positions=n, entries=between.entries, form=D_p, D_keys=D_keys,
        D_values=D_values,
    )  # fmt: skip
    tokens: list[Shape] = [(n, D_i)]
    if projections is None:
        weights = {name: shape for name, shape in weights.items() if name in ("W_r", "u", "v", "table")}
        tokens = [(heads, n, D_hid), (kv_heads, m, D_hid), (kv_heads, m, D_o)]
    elif cross:
        tokens += [(m, D_keys)] if D_keys == D_values else [(m, D_keys), (m, D_values)]
        weights |= {"p_keys": (m, D_keys)} if encoding == "absolute" else {}
    if projections == "naive":  # every head has keys of its own
        weights["W_k"] = weights["W_q"]
    fixed = () if learned else ("p", "p_keys", "v", "table")
    fixed_weights = {name: weights.pop(name) for name in fixed if name in weights}
    added = encoding in ("absolute", "sinusoidal") and projections is None  # there are no tokens to add to
    options: dict[str, Any] = {"scale": 0.5 if scaled else None, "content": content}
    options |= {"encoding": None if added else encoding}
    options |= {"shifts": shifts, "shift": between.shift, "naive": projections == "naive"}
    options |= {"entry": between.entry if encoding == "tables" else None}
    options |= {"fixed": [[0.1] * D_i] * max(n, m) if encoding == "sinusoidal" else ()}

    def code(*arguments: Any) -> Any:
        *inputs, learnt = arguments
        own = dict(zip(fixed_weights, inputs[len(tokens) :], strict=True))
        queries, keys, *values = (*inputs[: len(tokens)], *inputs[:1])[: max(2, len(tokens))]
        valued = values[0] if values else None
        return attention.attention(queries, keys, {**learnt, **own}, masks, valued=valued, **options)

    return PlainLayer(one(code), weights, (*tokens, *fixed_weights.values()))


def _complete(rule: Rule, sizes: Mapping[str, int]) -> Rule:
    return rule.complete(**{name: value for name, value in sizes.items() if name in rule.free})


def _masks(rule: Rule, heads: int, sizes: Mapping[str, int]) -> tuple[list[attention.Mask], int, int]:
    """The mask of each head, and how many queries and keys there are."""
    bound = _complete(rule, {**sizes, "heads": heads})
    n, m = (prod(bound.values[getattr(axis, side)] for axis in rule.axes) for side in ("queries", "keys"))
    mask = bound.mask().reshape(-1, n, m)
    return [mask[head % len(mask)].tolist() for head in range(heads)], n, m


@dataclass(frozen=True)
class _Between:
    """The shift between a query and a key of a rule: k - q on each axis, and its entry in a table."""

    rule: Rule
    radius: tuple[int, ...] | None

    @property
    def reach(self) -> list[tuple[int, int]]:
        """How far k - q goes down and up on each axis; at most the radius, if there is one."""
        far = [(self.rule.values[a.queries] - 1, self.rule.values[a.keys] - 1) for a in self.rule.axes]
        return far if self.radius is None else [(r, r) for r in self.radius]

    @property
    def entries(self) -> int:
        return prod(down + up + 1 for down, up in self.reach)

    def all(self) -> list[tuple[int, ...]]:
        """Every k - q there can be."""
        return list(product(*(range(-down, up + 1) for down, up in self.reach)))

    def shift(self, q: int, k: int) -> tuple[int, ...]:
        shifts: list[int] = []
        for axis in reversed(self.rule.axes):
            q, at = divmod(q, self.rule.values[axis.queries])
            k, to = divmod(k, self.rule.values[axis.keys])
            shifts.insert(0, to - at)
        return tuple(shifts)

    def entry(self, q: int, k: int) -> int:
        place = 0
        for far, (down, up) in zip(self.shift(q, k), self.reach, strict=True):
            place = place * (down + up + 1) + min(max(far, -down), up) + down
        return place


def _transformer(
    rule: Rule,
    d: int,
    heads: int,
    kv_heads: int,
    D: int,
    hidden: int,
    norms: str,
    bias: bool,
    gated: bool,
    scaled: bool,
    layers: int = 1,
    cross: int = 0,
    vocabulary: int = 0,
    tied: bool = True,
    **sizes: int,
) -> PlainLayer:
    """Stacked blocks; with a vocabulary, from words to scores of words."""
    masks, n, _ = _masks(rule, heads, sizes)
    each = shapes.block(
        d, heads, hidden, kv_heads=kv_heads, bias=bias, norms=norms, cross=cross > 0, gated=gated, D=D
    )
    weights = shapes.stack(layers, each)
    scale, memory = 0.5 if scaled else None, ((cross, d),) if cross else ()
    if not vocabulary:

        def blocks(x: Any, *rest: Any) -> Any:
            return nets.stack(x, rest[-1], masks, scale=scale, memory=rest[0] if memory else None)

        return PlainLayer(blocks, weights, ((n, d), *memory))
    weights = {"embedding.weight": (vocabulary, d)} | shapes.within("blocks", weights)
    weights |= shapes.within("norm", shapes.norm(d, norms))
    weights |= {} if tied else {"output.weight": (vocabulary, d)}

    def model(*rest: Any) -> Any:
        words = _words(n, vocabulary)
        return nets.language_model(words, rest[-1], masks, scale, rest[0] if memory else None)

    return PlainLayer(model, weights, memory)


def _vit(
    rows: int,
    cols: int,
    patch: int,
    c: int,
    d: int,
    layers: int,
    heads: int,
    D: int,
    hidden: int,
    classes: int,
) -> PlainLayer:
    tokens = (rows // patch) * (cols // patch) + 1
    blocks = shapes.stack(layers, shapes.block(d, heads, hidden, D=D))
    weights = shapes.vit(c, patch, tokens, d, classes, blocks)
    return PlainLayer(partial(nets.vit, heads=heads), weights, ((c, rows, cols),))


def _vae(n: int, d: int, hidden: int, latent: int) -> PlainLayer:
    noise: Matrix = [[0.3] * latent for _ in range(n)]
    return PlainLayer(partial(nets.vae, noise=noise), shapes.vae(d, hidden, latent), ((n, d),))


_LAYERS: dict[str, Callable[..., PlainLayer]] = {
    "linear": _linear,
    "feed_forward": _feed_forward,
    "norm": _norm,
    "embedding": _embedding,
    "conv": _conv,
    "rnn": partial(_recurrent, "rnn"),
    "lstm": partial(_recurrent, "lstm"),
    "gru": partial(_recurrent, "gru"),
    "rnn2d": _rnn2d,
    "attention": _attention,
    "transformer": _transformer,
    "vit": _vit,
    "vae": _vae,
}


@dataclass(frozen=True)
class Ran:
    """The parameters, depth and operations of a run."""

    parameters: int
    depth: int  # sequential, in units
    forward: CountingTape
    backward: CountingTape


def run(layer: Callable[..., Any], weights: Shapes, *inputs: Shape) -> Ran:
    """Runs a layer on random inputs and weights of these shapes, forward and backward.

    >>> from lattend.cost.reference.nets import linear
    >>> ran = run(linear, {"weight": (4, 3)}, (2, 3))  # two tokens: 2*3*4, and twice that going back
    >>> ran.forward.multiplies, ran.backward.multiplies
    (24, 48)
    """
    source, tape = Random(3), CountingTape()
    counted = counting(filled(weights, source), tape)
    counted_inputs = [counting(fill(shape, source), tape) for shape in inputs]
    outputs = layer(*counted_inputs, counted)
    back = backward(outputs).tape
    done = replace(tape, numbers=[])  # what the run made may go
    return Ran(len(list(numbers(counted))), depth(outputs), done, back)


def one(layer: Callable[..., Any]) -> Callable[..., Any]:
    """The layer as a single unit."""
    return lambda *given: unit(layer(*given))
