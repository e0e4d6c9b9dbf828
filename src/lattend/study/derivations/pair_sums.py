"""Derivations by counting: pairs of attention, steps of a 2-D RNN, one score with naive projections."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import product
from random import Random
from typing import TYPE_CHECKING

from lattend.cost.reference.numbers import CountingTape, Matrix, Scalar, Vector, counting, dot, times, total
from lattend.counts.formula import BigO, value_at
from lattend.counts.formula_parser import parse_formula
from lattend.counts.terms.term import Term
from lattend.errors import DerivationError
from lattend.study.derivations.draft import Chain, Draft, Instances, Link
from lattend.study.derivations.evaluation import Environment, evaluate
from lattend.study.exact.numbers import exact

if TYPE_CHECKING:
    from lattend.counts.count import Count

LARGEST = 5  # number that a size or a parameter takes when two readings are compared


class Counted:
    """A rule's count, of all pairs or per query: every line must be it, exactly where its domain says."""

    def __init__(self, rule: str, per: str | None = None) -> None:
        self.rule, self.per = rule, per

    @cached_property
    def count(self) -> Count:
        from lattend.rules.reader import read_rule

        counted = read_rule(self.rule).count(per=self.per, method="closed")
        assert not isinstance(counted, int)
        return counted

    def check(self, before: Term, link: Link, after: Term) -> str:
        self._check_reading(link.formula, after)
        verdict = self.count.claim(link.formula)
        condition = verdict.where if verdict.status in ("holds", "holds only where") else ""
        if not condition:
            raise DerivationError(f"as the count of {self.rule}: {verdict}")
        if condition != link.domain:
            raise DerivationError(
                f"{link.formula} is said to hold where {link.domain}, it holds where {condition}"
            )
        return f"proved to be the number of {'keys of a query' if self.per else 'pairs'} where {condition}"

    def _check_reading(self, text: str, shown: Term) -> None:
        """Checks that both grammars read the formula with the same values."""
        names = [*self.count.names]
        claimed = parse_formula(text, names)
        if isinstance(claimed, BigO):
            raise DerivationError(f"{text} is a growth rate, not a number of pairs")
        for numbers in product(range(1, LARGEST + 1), repeat=len(names)):
            values = dict(zip(names, numbers, strict=True))
            exactly = {name: exact(number) for name, number in values.items()}
            if exact(value_at(claimed, values)) != evaluate(shown, exactly):
                raise DerivationError(f"{text} is read as two formulas, which differ at {values}")


LETTERS = "n tokens; queries q from 0; query q attends to K_q keys, and there are N pairs in all"


def causal() -> Draft:
    """N = n(n + 1)/2: query q attends to every key up to its own."""
    every = "n >= 0"
    keys = [Link("q + 1", "the query itself and the q positions before it", domain=every)]
    pairs = [
        Link("sum(q + 1, q, 0, n - 1)", "the keys of all queries", domain=every),
        Link("sum(i, i, 1, n)", "i = q + 1: counted from 1, token i attends to i keys", domain=every),
        Link(
            "(sum(i, i, 1, n) + sum(n + 1 - i, i, 1, n))/2",
            "half of the sum forwards and the sum backwards",
            domain=every,
        ),
        Link("sum(n + 1, i, 1, n)/2", "term by term, i and n + 1 − i make n + 1", domain=every),
        Link("n (n + 1)/2", "n equal terms", domain=every),
    ]
    return Draft(
        "causal",
        "The pairs of causal attention",
        LETTERS,
        [Chain("K[q]", keys, Counted("causal", "query")), Chain("N", pairs, Counted("causal"))],
    )


def strided() -> Draft:
    """N = (2n − t)(t + 1)/2: query q attends to itself and at most t positions before it."""
    below, up_to = "t < n", "t <= n"
    keys = [
        Link(
            "min(q + 1, t + 1)",
            "the query itself and t before it, or all there are",
            domain="n >= 0 and t >= 0",
        )
    ]
    pairs = [
        Link(
            "sum(q + 1, q, 0, t) + sum(t + 1, q, t + 1, n - 1)",
            "the first t + 1 queries attend to all before them, the others to t + 1 keys",
            domain=below,
        ),
        Link(
            "sum(i, i, 1, t + 1) + sum(t + 1, i, t + 2, n)",
            "i = q + 1; the bracket belongs to the sum: every term is t + 1",
            domain=below,
        ),
        Link(
            "(t + 1)(t + 2)/2 + (n - t - 1)(t + 1)",
            "the sum of the first t + 1 numbers, and n − t − 1 equal terms",
            domain=up_to,
        ),
        Link("(t + 1)(t + 2 + 2 (n - t - 1))/2", "t + 1 is in both", domain=up_to),
        Link("(2n - t)(t + 1)/2", "t + 2 + 2n − 2t − 2 = 2n − t", domain=up_to),
        Link("n t + n - t^2/2 - t/2", "multiplied out", domain=up_to),
        Link("sum(i, i, n - t, n)", "t + 1 numbers whose mean is (2n − t)/2", domain=up_to),
    ]
    return Draft(
        "strided",
        "The pairs of strided attention: at most t positions before, and itself",
        LETTERS,
        [Chain("K[q]", keys, Counted("strided", "query")), Chain("N", pairs, Counted("strided"))],
        remark="Where t > n, more previous positions than tokens, all is causal and N = n(n + 1)/2.",
    )


def windowed() -> Draft:
    """N = n(w + 1)/2 where w divides n: causal inside windows of w."""
    every = "n >= 0 and w >= 1"
    keys = [Link("(q % w) + 1", "the query itself and those before it in its window", domain=every)]
    pairs = [
        Link(
            "sum(sum(i, i, 1, w), j, 1, n // w) + sum(i, i, 1, n % w)",
            "the whole windows, and the remainder",
            domain=every,
        ),
        Link(
            "(n // w) (w (w + 1)/2) + (n % w)((n % w) + 1)/2",
            "each is causal attention of its own",
            domain=every,
        ),
        Link("n (w + 1)/2", "where no remainder is left, n/w windows", domain="w divides n"),
    ]
    return Draft(
        "windowed",
        "The pairs of windowed attention: causal inside windows of w",
        LETTERS,
        [Chain("K[q]", keys, Counted("windowed", "query")), Chain("N", pairs, Counted("windowed"))],
    )


MOST = 6  # cells on a side, and numbers in a token, that are tried


def rnn2d() -> Draft:
    """2n − 1 steps are enough for the n² cells of a 2-D RNN: cells of one anti-diagonal run at once."""
    sides = iter(range(2, MOST + 1))
    cells = Instances(
        f"exactly, for every inner cell of grids of 2 to {MOST} cells on a side",
        lambda random: _grid(next(sides)),
        many=MOST - 1,
        over=("i", "j"),
    )
    every = iter(range(1, MOST + 1))
    last = Instances(
        f"exactly, for grids of 1 to {MOST} cells on a side", lambda random: _grid(next(every)), many=MOST
    )
    step = [
        Link("1 + max(T[i - 1, j], T[i, j - 1])", "one step after the later of its neighbours, left and top"),
        Link("1 + max(i + j, i + j)", "each of them is one nearer: suppose that it ends after i + j"),
        Link("i + j + 1", "then this cell ends after i + j + 1, as on the edges, with one neighbour"),
    ]
    steps = [
        Link("T[n - 1, n - 1]", "the corner that is farthest from the start ends last"),
        Link("(n - 1) + (n - 1) + 1", "the sum of its column and its row, and 1"),
        Link("2n - 1", "added"),
    ]
    return Draft(
        "rnn2d",
        "The steps of a 2-D RNN",
        "an n × n grid, columns i and rows j from 0; cell (i, j) ends after step T_(i,j), the last after S",
        [Chain("T[i, j]", step, cells), Chain("S", steps, last)],
        remark="n² cells in 2n − 1 steps: up to n of them at once, one at the corners.",
    )


def _grid(n: int) -> Environment:
    """When each cell of a grid can end, found by running what is ready, step by step."""
    ends: dict[tuple[int, int], int] = {}
    step = 0
    while len(ends) < n * n:
        step += 1
        ready = [
            (i, j)
            for i in range(n)
            for j in range(n)
            if (i, j) not in ends and all(cell in ends for cell in _before(i, j))
        ]
        ends |= dict.fromkeys(ready, step)
    inner = range(1, n)
    return {
        **{"T": {cell: exact(t) for cell, t in ends.items()}, "S": exact(step), "n": exact(n)},
        **{"each i": [exact(i) for i in inner], "each j": [exact(j) for j in inner]},
    }


def _before(i: int, j: int) -> Iterator[tuple[int, int]]:
    """The neighbours that a cell waits for."""
    if i:
        yield i - 1, j
    if j:
        yield i, j - 1


def naive() -> Draft:
    """16D² − 1 operations for one score of absolute encodings, with every projection made again."""
    sizes = iter(range(1, MOST + 1))
    ground = Instances(
        f"by running it on numbers that count their operations, for D = 1 to {MOST}",
        lambda random: _score(next(sizes), random),
        many=MOST,
    )
    links = [
        Link("4 N_term + 3", "(x_q + p_q) W_q W_kᵀ (x_k + p_k)ᵀ multiplied out: four terms, three adds"),
        Link("4 (2 N_matrix + N_dot) + 3", "a term is a row times two matrices, and an inner product"),
        Link("4 (2 D N_dot + N_dot) + 3", "a row times a D × D matrix is D inner products"),
        Link("4 (2D (2D - 1) + 2D - 1) + 3", "an inner product: D multiplies and D − 1 adds"),
        Link("4 (4D^2 - 1) + 3", "(2D + 1)(2D − 1)"),
        Link("16D^2 - 1", "multiplied out: of order D², not D³"),
    ]
    return Draft(
        "naive",
        "One score with naive projections",
        "tokens x and positions p of D numbers, D × D matrices W_q and W_k; N counts adds and multiplies",
        [Chain("N", links, ground)],
    )


def _score(D: int, random: Random) -> Environment:
    """One score computed on counting numbers, and the operations of its parts."""

    def matrix() -> list[list[float]]:
        return [[random.random() for _ in range(D)] for _ in range(D)]

    tape = CountingTape()
    query, key, x_q, p_q = (counting(matrix(), tape) for _ in range(4))
    x_k, p_k = (counting(matrix(), tape)[0] for _ in range(2))

    def spent() -> int:
        return tape.adds + tape.multiplies

    def term(left: Matrix, right: Vector) -> Scalar:
        return dot(times(key, times(query, left[0])), right)

    seen = {"dot": lambda: dot(x_k, p_k), "matrix": lambda: times(query, x_k), "term": lambda: term(x_q, x_k)}
    environment: Environment = {"D": exact(D)}
    for name, work in seen.items():
        before = spent()
        work()
        environment[f"N_{name}"] = exact(spent() - before)
    before = spent()
    total(term(left, right) for left in (x_q, p_q) for right in (x_k, p_k))
    return {**environment, "N": exact(spent() - before)}
