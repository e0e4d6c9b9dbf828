"""Exercise: tokens, matrices and rule of a piece of work, read exactly and checked to fit together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from lattend.errors import DomainError, NamingError, TensorError, TooLarge
from lattend.rules.catalogue.names import NAMES
from lattend.rules.reader import read_rule
from lattend.rules.rule import Rule, check_integer
from lattend.study.exact.numbers import exact, exact_rows
from lattend.study.exact.writing import format_exact
from lattend.wording import many

Matrix = tuple[tuple[Any, ...], ...]  # of exact numbers
MOST_PRODUCTS = 200_000  # of two numbers, in all steps together


@dataclass(frozen=True, eq=False)
class Exercise:
    """The inputs of the work: one matrix a head, and the attention mask `mask[head][query][key]`.

    Matrices are held for tokens as rows, q = x W. Where `columns` is true they were given for q = W x, and
    are held transposed. Those of `left_out` were not given, and are the identity. Where q, k and v themselves
    are given, it is `direct`: tokens are q, and memory has k and v side by side, which wk and wv take apart.
    """

    tokens: Matrix
    memory: Matrix  # where keys and values come from: the tokens, unless others are given
    wq: tuple[Matrix, ...]
    wk: tuple[Matrix, ...]
    wv: tuple[Matrix, ...]
    wo: Matrix | None
    scale: Any
    rule: Rule
    mask: tuple[tuple[tuple[bool, ...], ...], ...]
    columns: bool = False
    left_out: tuple[str, ...] = ()
    direct: bool = False

    @property
    def heads(self) -> int:
        return len(self.wq)

    @property
    def crosses(self) -> bool:
        return self.memory is not self.tokens

    @cached_property
    def divisor(self) -> Any:
        """The divisor of scores, where it is shorter than the scale: sqrt(2), not sqrt(2)/2."""
        inverse = 1 / self.scale if self.scale else self.scale
        return inverse if len(format_exact(inverse)) < len(format_exact(self.scale)) else None

    @property
    def symmetric(self) -> bool:
        """Whether no matrix changes when it is transposed, so that x W and W x are the same numbers."""
        matrices = (*self.wq, *self.wk, *self.wv, *(() if self.wo is None else (self.wo,)))
        return all(matrix == transposed(matrix) for matrix in matrices)

    @property
    def masks(self) -> bool:
        """Whether a query does not attend to some key."""
        return not all(seen for table in self.mask for row in table for seen in row)


def read(
    tokens: Any,
    wq: Any,
    wk: Any,
    wv: Any,
    rule: Any,
    scale: Any,
    heads: Any,
    wo: Any,
    memory: Any,
    columns: bool,
    sizes: Any,
) -> Exercise:
    """Everything given, as exact numbers; raises where shapes do not fit."""
    check_integer("heads", heads)
    if heads < 1:
        raise DomainError(f"heads must be at least 1, got {heads}")
    x = exact_rows("tokens", tokens)
    y = x if memory is None else exact_rows("memory", memory)
    given_matrices: dict[str, Any] = {"wq": wq, "wk": wk, "wv": wv}
    left_out = tuple(name for name, matrix in given_matrices.items() if matrix is None)
    given_matrices |= {name: np.eye(len((x if name == "wq" else y)[0]), dtype=int) for name in left_out}
    matrices = {name: _per_head(name, matrix, heads, columns) for name, matrix in given_matrices.items()}
    out = None if wo is None else _read_matrix("wo", wo, columns)
    _check_shapes(x, y, matrices, out, columns, left_out)
    _check_size(x, y, matrices, out)
    own_rule = read_rule(rule)
    _check_sizes(own_rule, sizes)
    queries, keys, values = matrices.values()
    mask = _mask(own_rule, len(x), len(y), len(queries), memory is not None, sizes)
    bound = own_rule.at(**{name: value for name, value in sizes.items() if name in own_rule.parameters})
    factor = _scale(scale, len(queries[0][0]))
    return Exercise(x, y, queries, keys, values, out, factor, bound, mask, columns, left_out)


def read_direct(q: Any, k: Any, v: Any, rule: Any, scale: Any, heads: Any, wo: Any, sizes: Any) -> Exercise:
    """Queries, keys and values that are given themselves."""
    tensors = {"q": q, "k": k, "v": v}
    missing = [name for name, rows in tensors.items() if rows is None]
    if missing:
        raise NamingError(f"q, k and v are given together; {' and '.join(missing)} still to be given")
    rows = {name: exact_rows(name, matrix) for name, matrix in tensors.items()}
    q, k, v = rows.values()
    wide, deep = len(k[0]), len(v[0])
    if len(q[0]) != wide:
        raise TensorError(f"q has rows of {len(q[0])} numbers and k of {wide}: they must be equally long")
    if len(k) != len(v):
        raise TensorError(
            f"k has {many(len(k), 'row')} and v has {len(v)}: there must be a value for each key"
        )
    for name, matrix in rows.items():
        if isinstance(heads, int) and heads > 0 and len(matrix[0]) % heads:
            raise TensorError(
                f"{name} has {many(len(matrix[0]), 'column')}, which {heads} heads cannot share equally"
            )
    parts = np.eye(wide + deep, dtype=int)
    taken = (np.eye(wide, dtype=int), parts[:, :wide], parts[:, wide:])
    both = tuple((*key, *value) for key, value in zip(k, v, strict=True))
    return replace(read(q, *taken, rule, scale, heads, wo, both, False, sizes), direct=True)


def columns(matrix: tuple[tuple[Any, ...], ...]) -> Iterator[tuple[Any, ...]]:
    """The columns of a matrix."""
    return zip(*matrix, strict=True)


def transposed(matrix: Matrix) -> Matrix:
    """The matrix with its columns as rows."""
    return tuple(columns(matrix))


def shape(matrix: Matrix) -> str:
    """`4 × 2`: rows by columns."""
    return f"{len(matrix)} × {len(matrix[0])}"


def _read_matrix(name: str, values: Any, from_left: bool) -> Matrix:
    """A matrix for tokens as rows; given for W x, it is transposed."""
    return transposed(exact_rows(name, values)) if from_left else exact_rows(name, values)


def _per_head(name: str, values: Any, heads: int, from_left: bool) -> tuple[Matrix, ...]:
    """One matrix a head: a leading axis of heads as it is, or the columns in `heads` equal parts."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    if depth(values) == 3:
        per_head = tuple(
            _read_matrix(f"{name} of head {head + 1}", part, from_left) for head, part in enumerate(values)
        )
        if heads not in (1, len(per_head)):
            raise TensorError(f"{name} has matrices for {len(per_head)} heads, and heads is {heads}")
        return per_head
    matrix = _read_matrix(name, values, from_left)
    width, left = divmod(len(matrix[0]), heads)
    if left:
        side = "rows" if from_left else "columns"
        raise TensorError(f"{name} has {len(matrix[0])} {side}, which {heads} heads cannot share equally")
    return tuple(tuple(row[head * width : (head + 1) * width] for row in matrix) for head in range(heads))


def depth(values: Any) -> int:
    """How many axes nested rows have at their deepest."""
    return 1 + max(map(depth, values), default=0) if isinstance(values, (list, tuple, np.ndarray)) else 0


def _check_shapes(
    x: Matrix,
    y: Matrix,
    matrices: dict[str, tuple[Matrix, ...]],
    wo: Matrix | None,
    from_left: bool,
    left_out: tuple[str, ...],
) -> None:
    heads = len(matrices["wq"])

    def written(matrix: Matrix) -> str:
        """The shape of a matrix as it was given."""
        return shape(transposed(matrix)) if from_left else shape(matrix)

    for name, given in matrices.items():
        if len(given) != heads:
            counts = f"wq has {many(heads, 'head')} and {name} has {many(len(given), 'head')}"
            raise TensorError(f"{counts}; they must be equal")
        source, rows = ("tokens", x) if name == "wq" or y is x else ("memory", y)
        for matrix in given:
            if shape(matrix) != shape(given[0]):
                raise TensorError(f"{name} has heads of {written(given[0])} and of {written(matrix)}")
            if len(matrix) != len(rows[0]):
                product, side = (f"{name} x", "columns") if from_left else (f"x {name}", "rows")
                other = (
                    f"; columns=True is {name} x" if not from_left and len(matrix[0]) == len(rows[0]) else ""
                )
                raise TensorError(
                    f"{source} has rows of {len(rows[0])} numbers and {name} is {written(matrix)}: "
                    f"in {product} the {side} of {name} must be as many, {len(rows[0])}{other}"
                )
    q, k, v = (matrices[name][0] for name in ("wq", "wk", "wv"))
    if len(q[0]) != len(k[0]):
        identity = f"; left out, {left_out[0]} is the identity" if {"wq", "wk"} & set(left_out) else ""
        raise TensorError(
            f"wq is {written(q)} and wk is {written(k)}: q and k must be equally long{identity}"
        )
    if wo is not None and len(wo) != heads * len(v[0]):
        side = f"{heads} heads of {len(v[0])} numbers" if heads > 1 else f"outputs of {len(v[0])} numbers"
        across = "columns" if from_left else "rows"
        raise TensorError(f"wo is {written(wo)}, and {side} need {heads * len(v[0])} {across}")


def _check_size(x: Matrix, y: Matrix, matrices: dict[str, tuple[Matrix, ...]], wo: Matrix | None) -> None:
    products = 0
    for name, matrix in matrices.items():
        rows = x if name == "wq" else y
        products += len(matrix) * len(rows) * len(matrix[0]) * len(matrix[0][0])
    heads, width, deep = len(matrices["wq"]), len(matrices["wq"][0][0]), len(matrices["wv"][0][0])
    products += heads * len(x) * len(y) * (width + deep)
    products += 0 if wo is None else len(x) * len(wo) * len(wo[0])
    if products > MOST_PRODUCTS:
        raise TooLarge(
            f"working this out multiplies {products:,} pairs of numbers, and at most {MOST_PRODUCTS:,} are "
            "written out; take fewer tokens, or lt.attention"
        )


def _scale(scale: Any, width: int) -> Any:
    if isinstance(scale, str) and scale.strip() == "sqrt":
        return exact(f"1/sqrt({width})")
    try:
        return exact(scale)
    except DomainError as error:
        raise DomainError(f'scale is a number, or "sqrt" for 1/sqrt(D): {error}') from None


def _check_sizes(rule: Rule, sizes: dict[str, Any]) -> None:
    for name in sizes:
        if name in NAMES and name not in rule.parameters:
            raise NamingError(f'{name} is the name of a rule; give it as rule="{name}"')


def _mask(
    rule: Rule, queries: int, keys: int, heads: int, crosses: bool, sizes: dict[str, Any]
) -> tuple[tuple[tuple[bool, ...], ...], ...]:
    """The attention mask of the rule at these sizes; those of a line come from the tokens."""
    own = {"n": queries} if rule.axes[0].query == "q" else _sides(rule, queries, sizes)
    if "n" in own and (crosses or "m" in rule.sizes):
        own["m"] = keys
    if rule.has_heads:
        own["heads"] = heads
    for name, length in own.items():
        chosen = sizes.get(name, rule.values.get(name, length))
        if chosen != length:
            raise DomainError(f"{name} = {chosen} is given, but there are {length}; leave {name} out")
    unbound = {name: size for name, size in own.items() if name not in rule.values}
    attended = rule.mask(**{**unbound, **sizes}).reshape(heads if rule.has_heads else 1, -1)
    if attended.shape[1] != queries * keys:
        side = f"{queries} queries" if crosses else f"{queries} tokens"
        raise DomainError(
            f'rule "{rule}" has {attended.shape[1]:,} pairs at these sizes, and {side} with {keys} keys '
            f"have {queries * keys:,}"
        )
    tables = np.broadcast_to(attended, (heads, queries * keys)).reshape(heads, queries, keys)
    return tuple(tuple(tuple(map(bool, row)) for row in table) for table in tables)


def _sides(rule: Rule, tokens: int, sizes: dict[str, Any]) -> dict[str, int]:
    """The one side of an image that is not given, where the others divide the tokens."""
    known = {**rule.values, **sizes}
    names = [axis.queries for axis in rule.axes]
    missing = [name for name in names if name not in known]
    area = prod(known[name] for name in names if isinstance(known.get(name), int))
    return {missing[0]: tokens // area} if len(missing) == 1 and area > 0 and tokens % area == 0 else {}
