"""Attention: the price of the squares a rule marks, with its projections and encodings."""

from __future__ import annotations

from dataclasses import replace

from lattend.costs.amount import Amount
from lattend.costs.cost import Cost, single
from lattend.costs.layer import ONE_STEP, Layer
from lattend.costs.layers.simple import columns, elementwise, product
from lattend.costs.marked import Marked, marked, need_sizes, read_rule
from lattend.costs.paths import looks_across, path_of
from lattend.costs.points import Sizes
from lattend.costs.sizes import Size, number_of, read_size
from lattend.costs.statement import Array, Columns, Statement
from lattend.counts.polynomial import Polynomial
from lattend.errors import DomainError, NamingError
from lattend.rules.axes import untied
from lattend.rules.rule import Rule

ENCODINGS = (None, "absolute", "relative", "quadratic")
PROJECTIONS = ("shared", "naive", None)
SHIFT = 3  # numbers of a shift in the quadratic encoding: ‖δ‖², δ₁, δ₂


def attention(
    rule: Rule | str = "full",
    *,
    heads: Size = "heads",
    D_i: Size = "D_i",
    D_hid: Size = "D_hid",
    D_o: Size | None = None,
    D_out: Size | None = None,
    D_p: Size | None = None,
    key_heads: Size | None = None,
    encoding: str | None = None,
    projections: str | None = "shared",
    bias: bool = False,
    out_bias: bool = True,
    scaled: bool = False,
    **sizes: Size,
) -> Cost:
    """Multi-head attention under a rule.

    A head's queries and keys have D_hid numbers, its values D_o (or D_hid), tokens D_i and D_out (or D_i).
    `projections` are "shared" (each token projected once), "naive" (again for every pair, four terms, as in
    lecture notes) or None (queries, keys and values are given). 1/√D_hid costs nothing, folded into a
    projection, unless `scaled`. Sizes and parameters of the rule are given by name: n=…, t=….

    >>> attention("causal", n=4, heads=1, D_hid=2, projections=None).multiplies  # 10 squares * (2 + 2)
    40
    """
    chosen = read_rule(rule)
    if encoding not in ENCODINGS or projections not in PROJECTIONS:
        raise NamingError(
            f"encoding is one of {_listed(ENCODINGS)} and projections one of {_listed(PROJECTIONS)}, "
            f"not {encoding!r} and {projections!r}"
        )
    if projections == "naive" and (encoding in ("relative", "quadratic") or bias):
        raise NamingError('naive projections go with encoding="absolute" or None, and bias=False')
    chosen, given = _sizes(chosen, sizes)
    width = D_hid if D_o is None else D_o
    told = {
        "heads": heads,
        "D_i": D_i,
        "D_hid": D_hid,
        "D_o": width,
        "D_out": D_i if D_out is None else D_out,
    }
    told["D_p"] = D_i if D_p is None else D_p
    told["key_heads"] = heads if key_heads is None else key_heads
    given |= {name: read_size(name, size, parts=True) for name, size in told.items()}
    cross = "m" in chosen.sizes
    many, shared = number_of(given["heads"]), number_of(given["key_heads"])
    if many is not None and shared is not None and many % shared:
        raise DomainError(f"{many} heads cannot share {shared} key heads alike; key_heads must divide heads")
    builder = _Attention(given, marked(chosen, given), encoding, projections, bias=bias, cross=cross)
    builder.build(scaled=scaled, out_bias=out_bias)
    cache = builder.cache()
    return single(
        Layer(
            "attention",
            tuple(builder.statements),
            tuple(builder.parameters),
            ONE_STEP,
            looks_across(chosen),
            path_of(chosen, given),
            cache,
        )
    )


def _sizes(rule: Rule, sizes: dict[str, Size]) -> tuple[Rule, dict[str, Polynomial]]:
    """The rule, with keys of their own number if m is given, and its sizes, by name where not given."""
    if "m" in sizes and "m" not in rule.sizes and "n" in rule.sizes:
        rule = replace(rule, axes=untied(rule.axes), about=None)
    known = [*rule.sizes, *rule.parameters]
    unknown = [name for name in sizes if name not in known]
    if unknown:
        raise NamingError(f'attention under "{rule.text}" has no {unknown[0]}; it has {", ".join(known)}')
    found: dict[str, Polynomial] = {}
    for name in known:
        least = 1 if name in rule.sizes else 0
        found[name] = read_size(name, rule.values.get(name, sizes.get(name, name)), least)
    need_sizes(rule, found)
    return rule, found


class _Attention:
    """The statements of attention, as they are put down."""

    def __init__(
        self,
        sizes: dict[str, Polynomial],
        squares: Marked,
        encoding: str | None,
        projections: str | None,
        *,
        bias: bool,
        cross: bool,
    ) -> None:
        self.sizes = {**sizes, "N": squares.queries, "M": squares.all_keys}
        self.squares, self.encoding, self.projections, self.bias = squares, encoding, projections, bias
        self.cross = cross
        heads, key_heads = (
            Amount.of(Polynomial.constant(1) if squares.per_head else sizes[name])
            for name in ("heads", "key_heads")
        )
        self.marked, self.rows, self.keys = (
            squares.squares * heads,
            squares.rows * heads,
            squares.keys * key_heads,
        )
        self.statements: list[Statement] = []
        self.parameters: list[Array] = []

    def build(self, *, scaled: bool, out_bias: bool) -> None:
        """Scores, softmax, mixing, and the map that joins the heads."""
        tokens = Array("x", columns("token < N and i < D_i", self.sizes), "input")
        others = tokens
        if self.cross:
            others = Array("y", columns("token < M and i < D_i", self.sizes), "input")
        if self.encoding == "absolute" and self.projections == "shared":
            tokens = self.positions(tokens, "N")
            others = self.positions(others, "M") if self.cross else tokens
        scores = self.scores(tokens, others)
        if scaled:
            scores = self.each("scaled scores", "constant multiplies", scores)
        # The weights alone are kept: the backward pass of a softmax needs nothing else
        made = self.each("exponentials", "exponentials", scores, keeps="")
        total = Array("row sums", self.rows)
        every_key = self.of("M")
        self.put("row sums", self.marked, (made,), total, self.rows, every_key, kind="sums", again=False)
        weights = self.each("weights", "divisions", made, total, keeps="")
        values = self.values(others)
        every = Columns.same(self.of("N", "heads", "D_o"))  # rows without keys are zeros
        mixed = Array("mixed", self.rows * self.of("D_o"), touched=every)
        points = self.marked * self.of("D_o")
        self.put(
            "mixing", points, (weights, values), mixed, mixed.size, every_key, and_="o < D_o", again=False
        )
        if self.projections is not None:
            heads = self.sizes["heads"] * self.sizes["D_o"]
            sizes = {"n": self.sizes["N"], "d_in": heads, "d_out": self.sizes["D_out"]}
            self.take(mixed, sizes, "out", out_bias)

    # Parts

    def of(self, *names: str) -> Amount:
        """The product of these sizes."""
        total = Polynomial.constant(1)
        for name in names:
            total = total * self.sizes[name]
        return Amount.of(total)

    def put(
        self,
        name: str,
        points: Columns,
        reads: tuple[Array, ...],
        out: Array,
        begins: Columns,
        longest: Amount,
        *,
        kind: str = "products",
        and_: str = "",
        over: str = "",
        again: bool = True,
    ) -> None:
        """Sums of products, by default over marked squares; scores are computed again going back."""
        where = over or ", ".join(part for part in ("marked (q, k)", and_) if part)
        self.statements.append(
            Statement(name, kind, points, reads, out, begins, where, (longest,), again=again)
        )

    def each(self, name: str, kind: str, *reads: Array, keeps: str | None = None) -> Array:
        """One operation at every marked square."""
        made = Array(name, self.marked)
        again = kind in ("exponentials", "constant multiplies", "adds")
        self.statements.append(
            Statement(name, kind, self.marked, reads, made, over="marked (q, k)", keeps=keeps, again=again)
        )
        return made

    def take(self, given: Array, sizes: Sizes, name: str, bias: bool) -> Array:
        """A product with a matrix that is learned."""
        made, weights, statements = product(given, sizes, name=name, bias=bias)
        self.statements += statements
        self.parameters += weights
        return made

    def positions(self, tokens: Array, count: str) -> Array:
        """Tokens with a learned table of positions added."""
        table = Array("positions", tokens.size, "parameter")
        over = f"token < {count} and i < D_i"
        moved, statement = elementwise("x + p", "adds", over, self.sizes, tokens, table)
        self.parameters.append(table)
        self.statements.append(statement)
        return moved

    def projected(self, name: str, tokens: Array, count: str, heads: str, width: str, used: Columns) -> Array:
        """Queries, keys or values of all tokens; `used` are those that have a square."""
        out = self.sizes[heads] * self.sizes[width]
        sizes = {"n": self.sizes[count], "d_in": self.sizes["D_i"], "d_out": out}
        made = self.take(tokens, sizes, name, self.bias)
        return Array(name, made.size, touched=used * self.of(width), of=made)

    def given(self, name: str, width: str) -> Array:
        """Keys or values that are given; those that have a square get a gradient."""
        every = columns(f"token < M and head < key_heads and i < {width}", self.sizes)
        return Array(name, every, "input", self.keys * self.of(width))

    def values(self, others: Array) -> Array:
        if self.projections is None:
            return self.given("v", "D_o")
        return self.projected("v", others, "M", "key_heads", "D_o", self.keys)

    # Scores

    def scores(self, tokens: Array, others: Array) -> Array:
        """The scores of marked squares, by the encoding and the projections."""
        if self.encoding == "quadratic":
            return self.quadratic()
        if self.projections == "naive":
            return self.naive(tokens, others)
        if self.projections is None:
            every = columns("token < N and head < heads and i < D_hid", self.sizes)
            queries = Array("q", every, "input", self.rows * self.of("D_hid"))
            keys = self.given("k", "D_hid")
        else:
            queries = self.projected("q", tokens, "N", "heads", "D_hid", self.rows)
            keys = self.projected("k", others, "M", "key_heads", "D_hid", self.keys)
        if self.encoding == "relative":
            return self.relative(queries, keys)
        wide, found = self.of("D_hid"), Array("scores", self.marked)
        self.put("scores", self.marked * wide, (queries, keys), found, self.marked, wide, and_="i < D_hid")
        return found

    def quadratic(self) -> Array:
        """The scores v · r_δ: three numbers a head, no queries and no keys."""
        every = Columns.same(self.of("heads") * SHIFT)
        form = Array("v of a head", every, "parameter", self.squares.any() * every)
        shifts = Array("r", self.marked, "constant")
        self.parameters.append(form)
        found, three = Array("scores", self.marked), Amount.number(SHIFT)
        points, kind = self.marked * SHIFT, "constant products"
        self.put("scores", points, (form, shifts), found, self.marked, three, kind=kind, and_="i < 3")
        return found

    def naive(self, tokens: Array, others: Array) -> Array:
        """Each token projected again for every pair; with positions 16D² - 1 operations an entry."""
        terms = 4 if self.encoding == "absolute" else 1
        each = max(1, terms // 2)  # two of the four terms have x, two have p
        size = columns("head < heads and i < D_i and o < D_hid", self.sizes)
        weights = [Array(f"W_{name}", size, "parameter", self.squares.any() * size) for name in "qk"]
        table = Array("positions", tokens.size, "parameter", self.squares.any() * tokens.size)
        self.parameters += [*weights, table] if terms == 4 else weights
        wide, sides = self.of("D_hid"), list[Array]()
        for weight, token in zip(weights, (tokens, others), strict=True):
            side = Array("projected again", self.marked * wide * terms)
            points, begins = self.marked * self.of("D_i", "D_hid") * each, self.marked * wide * each
            for given in (token, table) if terms == 4 else (token,):
                indices = f"term < {each}, i < D_i, o < D_hid"
                self.put(
                    "projected again", points, (given, weight), side, begins, self.of("D_i"), and_=indices
                )
            sides.append(side)
        found, longest = Array("scores", self.marked), wide * terms
        self.put("scores", self.marked * wide * terms, tuple(sides), found, self.marked, longest)
        return found

    def relative(self, queries: Array, keys: Array) -> Array:
        """x_q W_q W_kᵀ x_k + x_q W_q W̃ r_δ + u W_k x_k + v W̃ r_δ, everything shared that can be."""
        sizes = {**self.sizes, "R": self.squares.shifts}
        keys = Array("k", keys.size, keys.kind, of=keys.of)  # u looks at all of them
        one = Polynomial.constant(1)
        heads = Amount.of(one if self.squares.per_head else sizes["heads"])
        shifts = Array("r", columns("shift < R and i < D_p", sizes), "constant")
        far = Array("W̃ r", columns("shift < R and head < heads and o < D_hid", sizes))
        weight = Array("W̃", columns("i < D_p and head < heads and o < D_hid", sizes), "parameter")
        u, v = (Array(name, columns("head < heads and i < D_hid", sizes), "parameter") for name in "uv")
        self.parameters += [weight, u, v]
        content = Array(
            "u k", columns("head < heads and token < M", sizes), touched=self.squares.keys * heads
        )
        used = self.squares.used_shifts() * self.of("heads")
        place = Array("v W̃ r", columns("head < heads and shift < R", sizes), touched=used)
        near, distant = (Array(name, self.marked) for name in ("q k", "q W̃ r"))
        wide, inner = self.of("D_hid"), self.of("D_p")
        apart = [  # once for all pairs
            ("W̃ r", "shift < R and i < D_p and o < D_hid", (weight, shifts), far, inner),
            ("u k", "token < M and i < D_hid", (u, keys), content, wide),
            ("v W̃ r", "shift < R and i < D_hid", (v, far), place, wide),
        ]
        for name, indices, reads, out, longest in apart:
            over, kind = f"head < heads and {indices}", "constant products" if out is far else "products"
            every = columns(over, sizes)
            self.put(name, every, reads, out, out.size, longest, kind=kind, over=over, again=False)
        for name, reads, out in (("q k", (queries, keys), near), ("q W̃ r", (queries, far), distant)):
            self.put(name, self.marked * wide, reads, out, self.marked, wide, and_="i < D_hid")
        total = self.each("content and shift", "adds", near, distant)
        total = self.each("and u k", "adds", total, content)
        return self.each("scores", "adds", total, place)

    def cache(self) -> Amount:
        """Keys and values of all positions that are kept."""
        if self.encoding == "quadratic":
            return self.of("M", "key_heads", "D_o")
        return self.of("M", "key_heads") * (self.of("D_hid") + self.of("D_o"))


def _listed(options: tuple[str | None, ...]) -> str:
    return ", ".join(str(option) for option in options)
