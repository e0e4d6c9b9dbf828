"""lattend steer: the query that makes attention return wanted weights, or why there is none."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lattend.cli.arguments import Json, Out, option
from lattend.cli.output import show
from lattend.errors import DomainError, NamingError

EXAMPLES = (
    'lattend steer --keys "1,0;0,1" --weights 1,0 --sharpness 5',
    "lattend steer --orthonormal 100 --weights 1/2,1/2 --error 0.01",
    'lattend steer --keys "0;1;2" --weights 1/4,1/2,1/4',
    'lattend steer --keys "0,0;2,0;2,2;0,2;1,1" --weights 1/3,2/3,0,0,0 --error 1e-4 --out steer.svg',
    "lattend steer --keys keys.npy --weights weights.csv --values values.npy --scale sqrt --json",
)
LARGEST = 4096  # orthonormal keys


def steer(
    keys: Annotated[
        str | None, option('"1,0;0,1"|FILE', "A key between semicolons; or a .json, .csv, .npy or .npz file.")
    ] = None,
    orthonormal: Annotated[int | None, option("M", "M orthonormal keys instead.")] = None,
    weights: Annotated[
        str | None,
        option("1/2,1/2,0|FILE", "The wanted weight of each key; with --orthonormal those left out are 0."),
    ] = None,
    sharpness: Annotated[
        str | None, option("B", "The mean wanted weight is e^B times the greatest other.")
    ] = None,
    error: Annotated[str | None, option("E", "At most E goes to other keys; 0.001.")] = None,
    values: Annotated[str | None, option('"1,0;0,1"|FILE', "A value for each key.")] = None,
    scale: Annotated[str, typer.Option(metavar="S|sqrt", help="Of the logits; sqrt is 1/sqrt(D).")] = "1",
    out: Out = None,
    json: Json = False,
) -> None:
    """The query that makes attention return the wanted weights.

    With its logits, the weights it gives, their exact error and a bound. Weights of 0 are neared as the
    sharpness grows. Where no query leads there: the nearest one, and the proof that none is better.
    """
    from lattend.study.steering.steer import steer as steered

    if (keys is None) == (orthonormal is None):
        raise NamingError('steer needs --keys, such as --keys "1,0;0,1", or --orthonormal with their number')
    if weights is None:
        raise NamingError("steer needs --weights, the wanted weight of each key, such as --weights 1,0")
    wanted = _weights(weights)
    if orthonormal is None:
        rows = _matrix("keys", keys or "")
    else:
        rows, wanted = _orthonormal(orthonormal, wanted)
    found = steered(
        rows,
        wanted,
        sharpness=sharpness,
        error=error,
        values=None if values is None else _matrix("values", values),
        scale=scale,
    )
    show(found.draw(), out, json)


def _orthonormal(many: int, weights: Any) -> tuple[Any, Any]:
    """The unit vectors, and as many weights."""
    if not 1 <= many <= LARGEST:
        raise DomainError(f"--orthonormal is {many}; give a number of keys from 1 to {LARGEST:,}")
    if len(weights) > many:
        raise DomainError(f"--weights has {len(weights)} numbers for {many} keys; give at most {many}")
    import numpy as np

    return np.eye(many), [*weights, *[0] * (many - len(weights))]


def _matrix(name: str, given: str) -> Any:
    from lattend.cli.files import read_matrix
    from lattend.study.steering.numbers import check_number

    return read_matrix(name, given, check_number)


def _weights(given: str) -> Any:
    """The wanted weights: one row, one column, or a row for each head."""
    rows = _matrix("weights", given)
    if isinstance(rows, list) and all(isinstance(row, list) for row in rows):
        if len(rows) == 1:
            return rows[0]
        if all(len(row) == 1 for row in rows):
            return [row[0] for row in rows]
    return rows
