"""lattend steer: the query that makes attention return wanted weights, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from lattend.cli.arguments import Json, Out
from lattend.cli.output import show
from lattend.errors import DomainError, LattendError, NamingError, TextError

EXAMPLES = (
    'lattend steer --keys "1,0;0,1" --weights 1,0 --sharpness 5',
    "lattend steer --orthonormal 100 --weights 1/2,1/2 --error 0.01",
    'lattend steer --keys "0;1;2" --weights 1/4,1/2,1/4',
    'lattend steer --keys "0,0;2,0;2,2;0,2;1,1" --weights 1/3,2/3,0,0,0 --error 1e-4 --out steer.svg',
    "lattend steer --keys keys.npy --weights weights.csv --values values.npy --scale sqrt --json",
)
ENDINGS = (".csv", ".json", ".npy")
LARGEST = 4096  # orthonormal keys


def steer(
    keys: Annotated[
        str | None,
        typer.Option(
            metavar='"1,0;0,1"|FILE',
            show_default=False,
            help="A key between semicolons; or a .csv, .json or .npy file.",
        ),
    ] = None,
    orthonormal: Annotated[
        int | None, typer.Option(metavar="M", show_default=False, help="M orthonormal keys instead.")
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="1/2,1/2,0|FILE",
            show_default=False,
            help="The wanted weight of each key; with --orthonormal those left out are 0.",
        ),
    ] = None,
    sharpness: Annotated[
        str | None,
        typer.Option(
            metavar="B", show_default=False, help="The mean wanted weight is e^B times the greatest other."
        ),
    ] = None,
    error: Annotated[
        str | None,
        typer.Option(metavar="E", show_default=False, help="At most E goes to other keys; 0.001."),
    ] = None,
    values: Annotated[
        str | None,
        typer.Option(metavar='"1,0;0,1"|FILE', show_default=False, help="A value for each key."),
    ] = None,
    scale: Annotated[str, typer.Option(metavar="S|sqrt", help="Of the logits; sqrt is 1 over root d.")] = "1",
    out: Out = None,
    json: Json = False,
) -> None:
    """The query that makes attention return the wanted weights.

    With its logits, the weights it gives, their exact error and a bound. Weights of 0 are neared as the
    sharpness grows. Where no query leads there: the nearest one, and the proof that none is better.
    """
    from lattend.steering.steer import steer as steered

    if (keys is None) == (orthonormal is None):
        raise NamingError('steer needs --keys, such as --keys "1,0;0,1", or --orthonormal with their number')
    if weights is None:
        raise NamingError("steer needs --weights, the wanted weight of each key, such as --weights 1,0")
    wanted = _read("--weights", weights)
    if orthonormal is None:
        rows = _read("--keys", keys or "", rows=True)
    else:
        rows, wanted = _orthonormal(orthonormal, wanted)
    found = steered(
        rows,
        wanted,
        sharpness=None if sharpness is None else _one("--sharpness", sharpness),
        error=None if error is None else _one("--error", error),
        values=None if values is None else _read("--values", values, rows=True),
        scale="sqrt" if scale == "sqrt" else float(_one("--scale", scale)),
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


def _read(option: str, text: str, rows: bool = False) -> Any:
    """Numbers between commas, rows between semicolons, or those of a file."""
    if text.strip().lower().endswith(ENDINGS):
        return _file(option, Path(text.strip()), rows)
    if not rows:
        return list(_numbers(option, text, text, 0))
    found: list[list[Fraction]] = []
    place = 0
    for part in text.split(";"):
        found.append(list(_numbers(option, part, text, place)))
        if len(found[-1]) != len(found[0]):
            said = f"{option} has {len(found[0])} numbers in its first row and {len(found[-1])} in this one"
            raise TextError(f"{said}; give as many in each", text, place, place + len(part))
        place += len(part) + 1
    return found


def _numbers(option: str, part: str, text: str, place: int) -> Iterator[Fraction]:
    for number in part.split(","):
        bare = number.strip()
        start = place + len(number) - len(number.lstrip())
        try:
            yield Fraction(bare)
        except (ValueError, ZeroDivisionError):
            said = f"{option}: {bare or 'nothing'} is no number; write 2, 0.5 or 1/3"
            raise TextError(said, text, start, start + len(bare)) from None
        place += len(number) + 1


def _one(option: str, text: str) -> Fraction:
    found = list(_numbers(option, text, text, 0))
    if len(found) != 1:
        raise TextError(f"{option} is one number", text, 0, len(text))
    return found[0]


def _file(option: str, path: Path, rows: bool) -> Any:
    """The numbers of a .npy or .json file, or of a .csv file with a row a line."""
    try:
        if path.suffix.lower() == ".npy":
            import numpy as np

            return np.load(path, allow_pickle=False)
        text = path.read_text()
        if path.suffix.lower() == ".json":
            import json

            return json.loads(text)
    except ValueError:
        raise LattendError(f"{option}: {path} holds no {path.suffix} numbers; save them again") from None
    lines = [line for line in text.splitlines() if line.strip()]
    return _read(option, (";" if rows else ",").join(lines), rows)
