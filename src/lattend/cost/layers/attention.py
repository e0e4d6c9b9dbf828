"""Attention: the price of the pairs a rule attends, with its projections and encodings."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial

from lattend.cost.amount import ZERO, Amount
from lattend.cost.cost import Cost, single
from lattend.cost.layer import Array, Columns, ReferenceRun
from lattend.cost.layers.scores import SHIFT, Options, Scores
from lattend.cost.pairs import attended_pairs, attends_ahead, mixes_tokens, need_sizes, path_of
from lattend.cost.sizes import Size, keeps_recipe, need_number, number_of, read_size
from lattend.errors import DomainError, NamingError
from lattend.rules.axes import untied
from lattend.rules.language.polynomial import Polynomial
from lattend.rules.reader import RuleLike, read_rule
from lattend.rules.rule import Rule


@keeps_recipe
def attention(
    rule: RuleLike = "full",
    *,
    heads: Size = "heads",
    D_i: Size = "D_i",
    D_hid: Size = "D_hid",
    D_o: Size | None = None,
    D_out: Size | None = None,
    D_p: Size | None = None,
    D_keys: Size | None = None,
    D_values: Size | None = None,
    kv_heads: Size | None = None,
    encoding: str | None = None,
    content: bool = False,
    learned: bool = True,
    radius: int | tuple[int, ...] | None = None,
    projections: str | None = "shared",
    bias: bool = False,
    out_bias: bool = True,
    scaled: bool = False,
    **sizes: Size,
) -> Cost:
    """Multi-head attention under a rule.

    A head's queries and keys have D_hid numbers, its values D_o (or D_hid), tokens D_i and D_out (or D_i);
    tokens that keys and values come from may have D_keys and D_values of their own.

    `encoding` is None, "absolute" (a learned table added to the tokens of queries and keys), "sinusoidal"
    (the same, not learned), "relative" (four terms, D_p numbers a shift), "tables" (a learned number a
    shift and head, within `radius` if given) or "quadratic" (D_p numbers a head, 3 on an image; instead of
    q·k, or with `content` added to it). `learned=False` counts an encoding's numbers as given.

    `projections` are "shared" (each token projected once), "naive" (again for every pair and term, as in
    lecture notes; with absolute, relative or no encoding) or None (queries, keys and values are given).
    1/√D_hid costs nothing, folded into a projection, unless `scaled`. Sizes and parameters of the rule are
    given by name: n=…, t=….

    >>> attention("causal", n=4, heads=1, D_hid=2, projections=None).multiplies  # 10 pairs * (2 + 2)
    40
    """
    chosen, known = _sizes(*_below_zero(read_rule(rule), sizes))
    cross = "m" in chosen.sizes or D_keys is not None or D_values is not None
    if projections == "naive" and D_keys is not None:
        raise NamingError("naive projections take keys of D_i numbers; leave D_keys out")
    reach = _radius(radius, len(chosen.axes))
    options = Options(encoding, projections, bias, cross, content, learned, reach)
    own_sizes: dict[str, Size] = {"heads": heads, "D_i": D_i, "D_hid": D_hid}
    own_sizes["D_o"] = D_hid if D_o is None else D_o
    own_sizes["D_out"] = D_i if D_out is None else D_out
    own_sizes["D_p"] = D_p if D_p is not None else SHIFT if encoding == "quadratic" else D_i
    own_sizes["D_keys"] = D_i if D_keys is None else D_keys
    own_sizes["D_values"] = own_sizes["D_keys"] if D_values is None else D_values
    own_sizes["kv_heads"] = heads if kv_heads is None else kv_heads
    known |= {name: read_size(name, size, parts=True) for name, size in own_sizes.items()}
    many, shared = number_of(known["heads"]), number_of(known["kv_heads"])
    if many is not None and shared is not None and many % shared:
        raise DomainError(f"{many} heads cannot share {shared} kv heads alike; kv_heads must divide heads")
    builder = _Attention(known, attended_pairs(chosen, known), options)
    builder.build(scaled=scaled, out_bias=out_bias)
    layer = builder.layer(
        "attention",
        mixes_tokens=mixes_tokens(chosen),
        path=partial(path_of, chosen, known),
        cache=ZERO if attends_ahead(chosen) else builder.cache(),
        positions=builder.sizes["N"],
    )
    how = {"rule": chosen, **asdict(options), "out_bias": out_bias, "scaled": scaled}
    return single(layer, ReferenceRun("attention", known, how))


def _radius(radius: int | tuple[int, ...] | None, axes: int) -> tuple[int, ...] | None:
    if radius is None:
        return None
    each = radius if isinstance(radius, tuple) else (radius,) * axes
    return tuple(need_number("radius", reach, 0) for reach in each)


def _below_zero(rule: Rule, sizes: dict[str, Size]) -> tuple[Rule, dict[str, Size]]:
    """Parameters below 0 written into the rule: formulas are for letters of 0 or more."""
    below = {name: size for name, size in sizes.items() if isinstance(size, int) and size < 0}
    bound = rule.at(**{name: size for name, size in below.items() if name in rule.parameters})
    if all(bound.values.get(name, 0) >= 0 for name in rule.parameters):
        return rule, sizes
    return bound.baked(), {name: size for name, size in sizes.items() if name not in bound.values}


def _sizes(rule: Rule, sizes: dict[str, Size]) -> tuple[Rule, dict[str, Polynomial]]:
    """The rule, with keys of their own number if m is given, and its sizes, by name where not given."""
    if "m" in sizes and "m" not in rule.sizes and "n" in rule.sizes:
        rule = replace(rule, axes=untied(rule.axes), about=None)
    known = [*rule.sizes, *rule.parameters]
    unknown = [name for name in sizes if name not in known]
    if unknown:
        raise NamingError(f'attention under "{rule.text}" has no {unknown[0]}; it has {", ".join(known)}')
    size_of: dict[str, Polynomial] = {}
    for name in known:
        least = 1 if name in rule.sizes else 0
        size_of[name] = read_size(name, rule.values.get(name, sizes.get(name, name)), least)
    need_sizes(rule, size_of)
    return rule, size_of


class _Attention(Scores):
    """The statements of attention, as they are added."""

    def build(self, *, scaled: bool, out_bias: bool) -> None:
        """Scores, softmax, mixing, and the map that joins the heads."""
        tokens = self.given("x", "token < N and i < D_i")
        keyed = valued = tokens
        if self.options.cross:
            keyed = valued = self.given("y", "token < M and i < D_keys")
            if self.sizes["D_values"] != self.sizes["D_keys"]:
                valued = self.given("z", "token < M and i < D_values")
        if self.options.adds_positions:
            tokens = self.positions(tokens, "N", "D_i")
            keyed = self.positions(keyed, "M", "D_keys") if self.options.cross else tokens
        scores = self.scores(tokens, keyed)
        if scaled:
            scores = self.each("scaled scores", "constant multiplies", scores)
        # The weights alone are saved: the backward pass of a softmax needs nothing else
        made = self.each("exponentials", "exponentials", scores, saves="")
        total = Array("row sums", self.rows)
        every_key = self.of("M")
        self.add(
            "row sums", self.attended, (made,), total, self.rows, every_key, kind="sums", recomputed=False
        )
        weights = self.each("weights", "divisions", made, total, saves="")
        values = self.values(valued)
        every = Columns.same(self.of("N", "heads", "D_o"))  # rows without keys are zeros
        mixed = Array("mixed", self.rows * self.of("D_o"), touched=every)
        points = self.attended * self.of("D_o")
        self.add(
            "mixing",
            points,
            (weights, values),
            mixed,
            mixed.size,
            every_key,
            and_="o < D_o",
            recomputed=False,
        )
        if self.options.projections is not None:
            heads = self.sizes["heads"] * self.sizes["D_o"]
            sizes = {"n": self.sizes["N"], "d_in": heads, "d_out": self.sizes["D_out"]}
            self.product(mixed, sizes, "out", bias=out_bias)

    def positions(self, tokens: Array, count: str, wide: str) -> Array:
        """Tokens with their positions added, from a table that is learned or of sines and cosines."""
        if self.options.encoding == "sinusoidal":
            table = Array("positions", tokens.size, "constant")
        else:
            table = self.encoding("positions", tokens.size, tokens.size)
        over = f"token < {count} and i < {wide}"
        return self.take("x + p", "adds", over, tokens, table)

    def values(self, others: Array) -> Array:
        if self.options.projections is None:
            return self.kv_input("v", "D_o")
        return self.projected("v", others, "M", "D_values", "kv_heads", "D_o", self.keys)

    def cache(self) -> Amount:
        """Keys and values of all positions in the KV cache, where tokens are decoded one by one."""
        if not self.options.uses_content:
            return self.of("M", "kv_heads", "D_o")
        return self.of("M", "kv_heads") * (self.of("D_hid") + self.of("D_o"))
