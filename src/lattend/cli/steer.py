"""lattend steer: the query that makes attention return wanted weights, or why there is none."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lattend.cli.arguments import Json, Out, option, refuse
from lattend.cli.output import show, show_report
from lattend.errors import DomainError, NamingError

EXAMPLES = (
    'lattend steer --keys "1,0;0,1" --weights 1,0 --sharpness 5',
    "lattend steer --orthonormal 100 --weights 1/2,1/2 --error 0.01",
    "lattend steer --orthonormal m --weights 1/2,1/2 --formula",
    'lattend steer --keys "1,0;2,0" --query 3,0 --weights 1,0',
    'lattend steer --keys "0;1;2" --weights 1/4,1/2,1/4',
    'lattend steer --keys "0,0;2,0;2,2;0,2;1,1" --weights 1/3,2/3,0,0,0 --error 1e-4 --out steer.svg',
    "lattend steer --keys keys.npy --weights weights.csv --values values.npy --scale sqrt --json",
)
LARGEST = 4096  # orthonormal keys


def steer(
    keys: Annotated[
        str | None, option('"1,0;0,1"|FILE', "A key between semicolons; or a .json, .csv, .npy or .npz file.")
    ] = None,
    orthonormal: Annotated[
        str | None, option("M", "M orthonormal keys instead; a letter with --formula.")
    ] = None,
    weights: Annotated[
        str | None,
        option("1/2,1/2,0|FILE", "The wanted weight of each key; with --orthonormal those left out are 0."),
    ] = None,
    query: Annotated[
        str | None, option("3,0|FILE", "Try this query instead: what it returns, and how far that is off.")
    ] = None,
    formula: Annotated[
        bool, typer.Option("--formula", help="The weights of orthonormal keys as formulas in β and M.")
    ] = False,
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
    sharpness grows. Where no query leads there: the nearest one, and the proof that none is better. With
    --query, what a given query returns, and how far that is from the --weights one wishes, if any.
    """
    if (keys is None) == (orthonormal is None):
        raise NamingError('steer needs --keys, such as --keys "1,0;0,1", or --orthonormal with their number')
    if weights is None and query is None:
        raise NamingError("steer needs --weights, the wanted weight of each key, such as --weights 1,0")
    flags = {"--keys": keys, "--query": query, "--sharpness": sharpness, "--error": error, "--values": values}
    wanted = None if weights is None else _row("weights", weights)
    if formula or (orthonormal is not None and orthonormal.isidentifier()):
        refuse(flags, flags, "has no part in a formula of orthonormal keys in β and m; leave it out")
        _show_formula(orthonormal or "", wanted, out, json)
        return
    vector = None if query is None else _row("query", query)
    if orthonormal is None:
        rows = _matrix("keys", keys or "")
    else:
        rows, wanted, vector = _orthonormal(orthonormal, wanted, vector)
    options: dict[str, Any] = {
        "values": None if values is None else _matrix("values", values),
        "scale": scale,
    }
    if vector is not None:
        refuse(flags, ("--sharpness", "--error"), "is for a query that is looked for; leave it out")
        from lattend.study.steering.trial import try_query

        show(try_query(rows, vector, wanted, **options).draw(), out, json)
        return
    from lattend.study.steering.steer import steer as steered

    show(steered(rows, wanted, sharpness=sharpness, error=error, **options).draw(), out, json)


def _show_formula(many: str, wanted: Any, out: str | None, json: bool) -> None:
    from lattend.study.steering.formulas import weight_formula

    if out is not None:
        raise NamingError("a formula is printed, or with --json written as data; leave --out out")
    keys = many if many.isidentifier() else _count(many)
    show_report(weight_formula(wanted, keys), json)


def _count(text: str) -> int:
    if not text.strip().isdigit() or not 1 <= int(text) <= LARGEST:
        raise DomainError(
            f"--orthonormal is {text}; give a number of keys from 1 to {LARGEST:,}, or a letter"
        )
    return int(text)


def _orthonormal(text: str, wanted: Any, query: Any) -> tuple[Any, Any, Any]:
    """Orthonormal keys, with weights and query filled up with zeros."""
    many = _count(text)
    filled: list[Any] = []
    for name, numbers in (("--weights", wanted), ("--query", query)):
        if numbers is not None and len(numbers) > many:
            raise DomainError(f"{name} has {len(numbers)} numbers for {many} keys; give at most {many}")
        filled.append(None if numbers is None else [*numbers, *[0] * (many - len(numbers))])
    import numpy as np

    return np.eye(many), *filled


def _row(name: str, source: str) -> Any:
    """Read one row of numbers, written as a row or a column; several rows are heads."""
    rows = _matrix(name, source)
    if isinstance(rows, list) and all(isinstance(row, list) for row in rows):
        if len(rows) == 1:
            return rows[0]
        if all(len(row) == 1 for row in rows):
            return [row[0] for row in rows]
    return rows


def _matrix(name: str, source: str) -> Any:
    from lattend.cli.files import read_matrix
    from lattend.study.steering.numbers import check_number

    return read_matrix(name, source, check_number)
