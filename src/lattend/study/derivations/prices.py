"""Prices that are derived by counting: the steps of a 2-D RNN, and one score with naive projections."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from lattend.cost.reference.numbers import CountingTape, Scalar, counting
from lattend.cost.reference.vectors import Matrix, Vector, dot, times, total
from lattend.study.derivations.draft import Chain, Draft, Instances, Link
from lattend.study.derivations.evaluation import Environment
from lattend.study.exact.numbers import exact

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
