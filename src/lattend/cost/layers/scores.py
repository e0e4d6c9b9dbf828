"""Scores: the statements of attention at attended pairs, by encoding of positions and projections."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from lattend.cost.amount import Amount
from lattend.cost.layer import NOTHING, Array, Builder, Columns, Statement, columns
from lattend.cost.pairs import MOST_MASK, AttendedPairs
from lattend.cost.points import Sizes, defined, known_numbers, points, with_parameters
from lattend.cost.sizes import multiply
from lattend.errors import DomainError, NamingError, TooLarge
from lattend.rules.language import expr
from lattend.rules.language.polynomial import Polynomial
from lattend.rules.rule import Rule


class PairStatements(Builder):
    """Statements over the attended pairs of all heads, and the parameters they read."""

    def __init__(self, sizes: Sizes, pairs: AttendedPairs) -> None:
        # Without those of the rule, whose names may be those of indices here
        own = {name: size for name, size in sizes.items() if name not in pairs.rule.parameters}
        super().__init__({**own, "N": pairs.queries, "M": pairs.all_keys})
        self.pairs = pairs
        heads, kv_heads = (
            Amount.of(Polynomial.constant(1) if pairs.per_head else sizes[name])
            for name in ("heads", "kv_heads")
        )
        self.attended, self.rows = pairs.pairs * heads, pairs.rows * heads
        self.keys = pairs.keys * kv_heads

    def of(self, *names: str) -> Amount:
        """The product of these sizes."""
        return Amount.of(multiply(*(self.sizes[name] for name in names)))

    def add(
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
        recomputed: bool = True,
    ) -> None:
        """Sums of products, by default over attended pairs; scores are computed again going back."""
        where = over or ", ".join(part for part in ("attended (q, k)", and_) if part)
        self.statements.append(
            Statement(name, kind, points, reads, out, begins, where, (longest,), recomputed=recomputed)
        )

    def each(self, name: str, kind: str, *reads: Array, saves: str | None = None) -> Array:
        """One operation at every attended pair."""
        made = Array(name, self.attended)
        recomputed = kind in ("exponentials", "constant multiplies", "adds")
        self.statements.append(
            Statement(
                name,
                kind,
                self.attended,
                reads,
                made,
                over="attended (q, k)",
                saves=saves,
                recomputed=recomputed,
            )
        )
        return made


ENCODINGS = (None, "absolute", "relative", "quadratic", "sinusoidal", "tables")
PROJECTIONS = ("shared", "naive", None)
NAIVE = ("absolute", "relative", None)  # encodings that naive projections go with
SHIFT = 3  # numbers of a shift in the quadratic encoding: ‖δ‖², δ₁, δ₂


@dataclass(frozen=True)
class Options:
    """How scores are made."""

    encoding: str | None
    projections: str | None
    bias: bool
    cross: bool  # keys come from other tokens
    content: bool  # the quadratic encoding beside q · k, and not instead of it
    learned: bool
    radius: tuple[int, ...] | None  # of the tables

    def __post_init__(self) -> None:
        if self.encoding not in ENCODINGS or self.projections not in PROJECTIONS:
            raise NamingError(
                f"encoding is one of {_listed(ENCODINGS)} and projections one of {_listed(PROJECTIONS)}, "
                f"not {self.encoding!r} and {self.projections!r}"
            )
        if self.projections == "naive" and (self.encoding not in NAIVE or self.bias):
            raise NamingError(f"naive projections go with encoding {_listed(NAIVE)}, and bias=False")
        for name, value, home in (
            ("content=True", self.content, ("quadratic",)),
            ("radius", self.radius is not None, ("tables",)),
            ("learned=False", not self.learned, ("absolute", "quadratic", "tables")),
        ):
            if value and self.encoding not in home:
                raise NamingError(f"{name} goes with encoding {_listed(home)}, not {self.encoding!r}")

    @property
    def uses_content(self) -> bool:
        """Whether queries are multiplied with keys."""
        return self.encoding != "quadratic" or self.content

    @property
    def adds_positions(self) -> bool:
        """Whether positions are added to the tokens before they are projected."""
        return self.encoding in ("absolute", "sinusoidal") and self.projections == "shared"


def _listed(options: tuple[str | None, ...]) -> str:
    return ", ".join(str(option) for option in options)


class Scores(PairStatements):
    """The statements that give each attended pair its score."""

    def __init__(self, sizes: Sizes, pairs: AttendedPairs, options: Options) -> None:
        super().__init__(sizes, pairs)
        self.options = options

    def scores(self, tokens: Array, others: Array) -> Array:
        """The scores of attended pairs, by the encoding and the projections."""
        how = self.options
        if not how.uses_content:
            return self.form("scores")
        if how.projections == "naive":
            return self.naive(tokens, others)
        queries, keys = self.queries(tokens), self.key_vectors(others)
        if how.encoding == "relative":
            return self.relative(queries, keys)
        added = how.encoding in ("quadratic", "tables")
        near = self.content("q k" if added else "scores", queries, keys)
        if how.encoding == "quadratic":
            return self.each("scores", "adds", near, self.form("v r"))
        return self.each("scores", "adds", near, self.table()) if added else near

    def queries(self, tokens: Array) -> Array:
        if self.options.projections is None:
            every = self.columns("token < N and head < heads and i < D_hid")
            return Array("q", every, "input", self.rows * self.of("D_hid"))
        return self.projected("q", tokens, "N", "D_i", "heads", "D_hid", self.rows)

    def key_vectors(self, others: Array) -> Array:
        if self.options.projections is None:
            return self.kv_input("k", "D_hid")
        return self.projected("k", others, "M", "D_keys", "kv_heads", "D_hid", self.keys)

    def projected(
        self, name: str, tokens: Array, count: str, wide: str, heads: str, width: str, used: Columns
    ) -> Array:
        """Queries, keys or values of all tokens; `used` are those that are in a pair."""
        out = self.sizes[heads] * self.sizes[width]
        sizes = {"n": self.sizes[count], "d_in": self.sizes[wide], "d_out": out}
        made = self.product(tokens, sizes, name, bias=self.options.bias, head=self.of(width))
        return Array(name, made.size, touched=used * self.of(width), of=made)

    def kv_input(self, name: str, width: str) -> Array:
        """Keys or values that are given; those that are in a pair get a gradient."""
        every = self.columns(f"token < M and head < kv_heads and i < {width}")
        return Array(name, every, "input", self.keys * self.of(width))

    def content(self, name: str, queries: Array, keys: Array) -> Array:
        """The products q · k."""
        wide, result = self.of("D_hid"), Array(name, self.attended)
        self.add(name, self.attended * wide, (queries, keys), result, self.attended, wide, and_="i < D_hid")
        return result

    # Encodings

    def encoding(self, name: str, size: Columns, touched: Columns, of_head: Amount | None = None) -> Array:
        """Numbers of an encoding: parameters, or given as an input is."""
        made = Array(name, size, "parameter" if self.options.learned else "input", touched, of_head=of_head)
        if self.options.learned:
            self.parameters.append(made)
        return made

    def form(self, name: str) -> Array:
        """The products v · r_δ: D_p numbers a head, three for an image, and nothing of the tokens."""
        every = Columns.same(self.of("heads", "D_p"))
        form = self.encoding("v", every, self.pairs.any() * every, self.of("D_p"))
        shifts = Array("r", self.attended, "constant")
        result, terms = Array(name, self.attended), self.of("D_p")
        points, kind = self.attended * terms, "constant products"
        self.add(name, points, (form, shifts), result, self.attended, terms, kind=kind, and_="i < D_p")
        return result

    def table(self) -> Array:
        """A number for each shift k - q and head; with a radius, shifts further away take the end's."""
        radius = self.options.radius
        used = used_entries(self.pairs, radius)
        one = entries_of(self.pairs, radius)
        every = Columns.same(self.of("heads") * one)
        return self.encoding("table", every, used if self.pairs.per_head else used * self.of("heads"), one)

    def naive(self, tokens: Array, others: Array) -> Array:
        """Each token projected again for every pair; with positions 16D² - 1 operations an entry."""
        wide, one = self.of("D_hid"), self.of("D_i", "D_hid")
        W_q, W_k = (self.head_parameter(f"W_{name}", one) for name in "qk")
        if self.options.encoding == "relative":
            return self.naive_relative(tokens, others, W_q, W_k)
        terms, each, more = 1, 1, list[Array]()
        if self.options.encoding == "absolute":
            terms, each = 4, 2  # two of the four terms have x, two have p
            more = [Array("positions", tokens.size, "parameter", self.pairs.any() * tokens.size)]
            self.parameters += more
        sides = tuple(
            self.project_per_pair(weight, [token, *more], "D_i", each)
            for weight, token in ((W_q, tokens), (W_k, others))
        )
        scores = Array("scores", self.attended)
        self.add("scores", self.attended * wide * terms, sides, scores, self.attended, wide * terms)
        return scores

    def naive_relative(self, tokens: Array, others: Array, W_q: Array, W_k: Array) -> Array:
        """The four terms of `relative`, where each projects again what it multiplies."""
        wide, shifts = self.of("D_hid"), Array("r", self.attended, "constant")
        W_r = self.head_parameter("W̃", self.of("D_p", "D_hid"))
        u, v = (self.head_parameter(name, wide) for name in "uv")
        q, k = self.project_per_pair(W_q, [tokens], "D_i", 2), self.project_per_pair(W_k, [others], "D_i", 2)
        r = self.project_per_pair(W_r, [shifts], "D_p", 2, kind="constant products")
        scores, begins = Array("scores", self.attended), self.attended  # one sum of all four
        for name, left, right in (("q k", q, k), ("q W̃ r", q, r), ("u k", u, k), ("v W̃ r", v, r)):
            points = self.attended * wide
            self.add(name, points, (left, right), scores, begins, wide * 4, and_="i < D_hid")
            begins = NOTHING
        return scores

    def project_per_pair(
        self, weight: Array, inputs: list[Array], inner: str, each: int, kind: str = "products"
    ) -> Array:
        """Vectors of D_hid numbers that every pair makes anew, `each` of them from each of the given."""
        wide = self.of("D_hid")
        made = Array("projected again", self.attended * wide * (each * len(inputs)))
        points, begins = self.attended * self.of(inner, "D_hid") * each, self.attended * wide * each
        indices = f"term < {each}, i < {inner}, o < D_hid"
        for array in inputs:
            reads = (array, weight)
            self.add(made.name, points, reads, made, begins, self.of(inner), kind=kind, and_=indices)
        return made

    def head_parameter(self, name: str, one: Amount) -> Array:
        """A parameter of every head, which attended pairs read."""
        size = Columns.same(self.of("heads") * one)
        self.parameters.append(Array(name, size, "parameter", self.pairs.any() * size, of_head=one))
        return self.parameters[-1]

    def relative(self, queries: Array, keys: Array) -> Array:
        """x_q W_q W_kᵀ x_k + x_q W_q W̃ r_δ + u W_k x_k + v W̃ r_δ, everything shared that can be."""
        sizes = {**self.sizes, "R": self.pairs.shifts}
        keys = Array("k", keys.size, keys.kind, of=keys.of)  # u meets all of them
        one = Polynomial.constant(1)
        heads = Amount.of(one if self.pairs.per_head else sizes["heads"])
        shifts = Array("r", columns("shift < R and i < D_p", sizes), "constant")
        far = Array("W̃ r", columns("shift < R and head < heads and o < D_hid", sizes))
        wide, inner = self.of("D_hid"), self.of("D_p")
        learned = {"W̃": inner * wide, "u": wide, "v": wide}
        weight, u, v = (
            Array(name, Columns.same(self.of("heads") * each), "parameter", of_head=each)
            for name, each in learned.items()
        )
        self.parameters += [weight, u, v]
        content = Array("u k", columns("head < heads and token < M", sizes), touched=self.pairs.keys * heads)
        used = self.pairs.used_shifts() * self.of("heads")
        place = Array("v W̃ r", columns("head < heads and shift < R", sizes), touched=used)
        distant = Array("q W̃ r", self.attended)
        apart = [  # once for all pairs
            ("W̃ r", "shift < R and i < D_p and o < D_hid", (weight, shifts), far, inner),
            ("u k", "token < M and i < D_hid", (u, keys), content, wide),
            ("v W̃ r", "shift < R and i < D_hid", (v, far), place, wide),
        ]
        for name, indices, reads, out, longest in apart:
            over, kind = f"head < heads and {indices}", "constant products" if out is far else "products"
            every = columns(over, sizes)
            self.add(name, every, reads, out, out.size, longest, kind=kind, over=over, recomputed=False)
        near = self.content("q k", queries, keys)
        self.add(
            "q W̃ r", self.attended * wide, (queries, far), distant, self.attended, wide, and_="i < D_hid"
        )
        total = self.each("content and shift", "adds", near, distant)
        total = self.each("and u k", "adds", total, content)
        return self.each("scores", "adds", total, place)


def entries_of(pairs: AttendedPairs, radius: tuple[int, ...] | None) -> Amount:
    """The entries of one head's table: one for each shift k - q, or 2r + 1 an axis."""
    return Amount.of(pairs.shifts) if radius is None else Amount.number(prod(2 * r + 1 for r in radius))


def used_entries(pairs: AttendedPairs, radius: tuple[int, ...] | None) -> Columns:
    """The entries that pairs read, in one head, or in all of them where heads differ.

    Without a radius there is one for each shift k - q; with one, shifts beyond it share those at the end.
    """
    rule, sizes = pairs.rule, pairs.sizes
    if radius is None and not pairs.per_head:
        return pairs.used_shifts()
    if radius is not None and len(radius) != len(rule.axes):
        many = len(rule.axes)
        raise DomainError(
            f'radius has one number an axis of the rule "{rule.text}", {many} in all, not {radius}'
        )
    every = entries_of(pairs, radius)
    every = every * Amount.of(sizes["heads"]) if pairs.per_head else every
    known = known_numbers(rule, sizes)
    if expr.arrays(rule.condition) and len(known) == len(rule.free):
        return Columns.of(Amount.number(_from_mask(rule.at(**known), radius)), every)
    bare = with_parameters(rule, known)
    bounds, onto = [expr.text(bare.condition)], list[str]()
    for index, axis in enumerate(bare.axes):
        away, entry = f"{axis.key} - {axis.query}", f"entry{index}"
        if radius is None:
            bounds.append(f"{entry} == {away} + {axis.queries} - 1")
        else:
            bounds.append(f"{entry} == min(max({away} + {radius[index]}, 0), {2 * radius[index]})")
        bounds += [f"{axis.query} < {axis.queries}", f"{axis.key} < {axis.keys}"]
        onto.append(entry)
    if pairs.per_head:
        bounds.append("head < heads")
        onto.append("head")
    condition = " and ".join(f"({part})" for part in bounds)
    used = points(condition, sizes, tuple(onto), expr.text(defined(bare)), rule.budget)
    return Columns.of(used, every)


def _from_mask(bound: Rule, radius: tuple[int, ...] | None) -> int:
    """The same from the pairs of a rule that looks up data."""
    if bound.dense > MOST_MASK:
        raise TooLarge(f"entries are looked up in a mask of at most {MOST_MASK:,} pairs")
    places, axes = np.argwhere(bound.mask()), len(bound.axes)
    shifts = places[:, -axes:] - places[:, -2 * axes : -axes]
    if radius is not None:
        shifts = np.clip(shifts, -np.array(radius), radius)
    return len(np.unique(np.hstack([places[:, : -2 * axes], shifts]), axis=0))
