"""Parts: the matrices and tables of a model, and the layers they form."""

from __future__ import annotations

from dataclasses import dataclass

from lattend.cost.models.spans import Span

GROUPS = ("projections", "attention", "feed-forward", "output head", "other")
PROJECTIONS, ATTENTION, FEED_FORWARD, HEAD, OTHER = GROUPS
ONCE = (1, 1)  # rows of a part that runs once a sequence


@dataclass(frozen=True)
class ModelPart:
    """A matrix, a norm or a table: its parameters, and the multiply-adds it takes for one row.

    `active` are the parameters that one token uses: all but the experts it is not sent to. `rows` says how
    many rows are multiplied where that is not the number of tokens, without and with padding. `leads` marks
    the part that multiplies the model's input, which needs no gradient. `matrices` are those that a format of
    few bits holds in groups.
    """

    name: str
    group: str
    parameters: int
    multiply_adds: int = 0
    active: int | None = None
    rows: tuple[int, int] | None = None
    is_table: bool = False
    leads: bool = False
    matrices: tuple[tuple[int, int, int], ...] = ()  # how many, of inputs × outputs

    @property
    def used(self) -> int:
        """Parameters that one token uses."""
        return self.parameters if self.active is None else self.active


@dataclass(frozen=True)
class Attention:
    """Scores and mixing of one layer: heads, their dimensions, and which keys a query attends to.

    `latent` is how many numbers a token leaves in the cache when not its keys and values (DeepSeek), of which
    `latent_values` are mixed: decoding scores and mixes these themselves, the matrices that would make keys
    and values of them being multiplied to the query and to the output instead, at the same price a token.
    """

    span: Span
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    latent: int | None = None
    latent_values: int = 0

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds for one pair in all heads: the score and the mixing."""
        return self.heads * (self.head_dim + self.value_dim)

    @property
    def decoding(self) -> int:
        """Multiply-adds for one pair in all heads while decoding, on what the cache holds."""
        if self.latent is None:
            return self.multiply_adds
        return self.heads * (self.latent + self.latent_values)

    @property
    def recomputed(self) -> int:
        """Multiply-adds for one pair that a backward adds which saves no weights: the score again."""
        return self.heads * self.head_dim

    @property
    def cached(self) -> int:
        """Numbers a token leaves in the cache."""
        return self.latent if self.latent is not None else self.kv_heads * (self.head_dim + self.value_dim)


@dataclass(frozen=True)
class ModelLayer:
    """One layer: its parts, its attention, and a few words about its feed-forward."""

    parts: tuple[ModelPart, ...]
    attention: Attention | None
    feed_forward: str

    @property
    def parameters(self) -> int:
        return sum(part.parameters for part in self.parts)

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of its matrices for one token, attention's pairs left out."""
        return sum(part.multiply_adds for part in self.parts)


def linear(
    name: str,
    group: str,
    inputs: int,
    outputs: int,
    *,
    bias: bool = False,
    rows: tuple[int, int] | None = None,
) -> ModelPart:
    """A matrix of inputs × outputs."""
    product = inputs * outputs
    matrices = ((1, inputs, outputs),)
    return ModelPart(name, group, product + (outputs if bias else 0), product, rows=rows, matrices=matrices)


def norm(name: str, size: int, *, bias: bool = False) -> ModelPart:
    """A norm's weights, and its bias; no matrix product."""
    return ModelPart(name, OTHER, size * (2 if bias else 1))


def norms(width: int, *names: str, bias: bool = False) -> tuple[ModelPart, ...]:
    """Norms of one width."""
    return tuple(norm(name, width, bias=bias) for name in names)


def projections(
    width: int,
    heads: int,
    kv_heads: int,
    size: int,
    *,
    bias: bool = False,
    out_bias: bool = False,
    key_bias: bool = True,
    rows: tuple[int, int] | None = None,
) -> tuple[ModelPart, ...]:
    """The matrices of queries, keys, values and output; keys have no bias without `key_bias`."""
    widths = {"query": heads * size, "key": kv_heads * size, "value": kv_heads * size}
    own_bias = {"key": bias and key_bias}
    return (
        *(
            linear(name, PROJECTIONS, width, wide, bias=own_bias.get(name, bias), rows=rows)
            for name, wide in widths.items()
        ),
        linear("output", PROJECTIONS, heads * size, width, bias=out_bias, rows=rows),
    )


def table(name: str, entries: int, width: int) -> ModelPart:
    """A table of learned rows that are looked up, not multiplied."""
    return ModelPart(name, OTHER, entries * width, is_table=True)


def gated(
    width: int, hidden: int, *, bias: bool = False, name: str = "feed-forward"
) -> tuple[ModelPart, ...]:
    """Gate, up and down: three matrices."""
    return (
        linear(f"{name} gate", FEED_FORWARD, width, hidden, bias=bias),
        linear(f"{name} up", FEED_FORWARD, width, hidden, bias=bias),
        linear(f"{name} down", FEED_FORWARD, hidden, width, bias=bias),
    )


def plain(
    width: int, hidden: int, *, bias: bool = True, rows: tuple[int, int] | None = None
) -> tuple[ModelPart, ...]:
    """Up and down: two matrices."""
    return (
        linear("feed-forward up", FEED_FORWARD, width, hidden, bias=bias, rows=rows),
        linear("feed-forward down", FEED_FORWARD, hidden, width, bias=bias, rows=rows),
    )


def experts(count: int, chosen: int, width: int, hidden: int, *, bias: bool = False) -> ModelPart:
    """Gated experts, of which a token uses some: 3 matrices each."""
    product = 3 * width * hidden
    each = product + (2 * hidden + width if bias else 0)
    matrices = ((2 * count, width, hidden), (count, hidden, width))
    return ModelPart(
        "experts", FEED_FORWARD, count * each, chosen * product, active=chosen * each, matrices=matrices
    )
