"""lattend steer: the query that makes attention return wanted weights, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lattend.cli.arguments import out_option
from lattend.cli.command import Answer, Command, flag, option, setting
from lattend.errors import DomainError, NamingError

if TYPE_CHECKING:
    from lattend.study.steering.formulas import WeightFormula

LARGEST = 4096  # orthonormal keys


@dataclass(frozen=True)
class SteerCommand(Command):
    """The query that makes attention return the wanted weights.

    With its logits, the weights it gives, their exact error and a bound. Weights of 0 are neared as the
    sharpness grows. Where no query leads there: the nearest one, and the proof that none is better. With
    --query, what a given query returns, and how far that is from the --weights one wishes, if any.

        lattend steer --keys "1,0;0,1" --weights 1,0 --sharpness 5
        lattend steer --orthonormal 100 --weights 1/2,1/2 --error 0.01
        lattend steer --orthonormal m --weights 1/2,1/2 --formula
        lattend steer --keys "1,0;2,0" --query 3,0 --weights 1,0
        lattend steer --keys "0;1;2" --weights 1/4,1/2,1/4
        lattend steer --keys "0,0;2,0;2,2;0,2;1,1" --weights 1/3,2/3,0,0,0 --error 1e-4 --out steer.svg
        lattend steer --keys keys.npy --weights weights.csv --values values.npy --scale sqrt --json
    """

    keys: str | None = option(
        '"1,0;0,1"|FILE', "A key between semicolons; or a .json, .csv, .npy or .npz file."
    )
    orthonormal: str | None = option("M", "M orthonormal keys instead; a letter with --formula.")
    weights: str | None = option(
        "1/2,1/2,0|FILE", "The wanted weight of each key; with --orthonormal those left out are 0."
    )
    query: str | None = option(
        "3,0|FILE", "Try this query instead: what it returns, and how far that is off."
    )
    formula: bool = flag("The weights of orthonormal keys as formulas in β and M.")
    sharpness: str | None = option("B", "The mean wanted weight is e^B times the greatest other.")
    error: str | None = option("E", "At most E goes to other keys; 0.001.")
    values: str | None = option('"1,0;0,1"|FILE', "A value for each key.")
    scale: str = setting("S|sqrt", "Of the logits; sqrt is 1/sqrt(D).", "1")
    out: str | None = out_option()

    def answer(self) -> Answer:
        if (self.keys is None) == (self.orthonormal is None):
            raise NamingError(
                'steer needs --keys, such as --keys "1,0;0,1", or --orthonormal with their number'
            )
        if self.weights is None and self.query is None:
            raise NamingError("steer needs --weights, the wanted weight of each key, such as --weights 1,0")
        wanted = None if self.weights is None else _row("weights", self.weights)
        if self.formula or (self.orthonormal is not None and self.orthonormal.isidentifier()):
            self.refuse(
                ("keys", "query", "sharpness", "error", "values"),
                "has no part in a formula of orthonormal keys in β and m; leave it out",
            )
            return _formula(self.orthonormal or "", wanted, self.out)
        vector = None if self.query is None else _row("query", self.query)
        if self.orthonormal is None:
            rows = _matrix("keys", self.keys or "")
        else:
            rows, wanted, vector = _orthonormal(self.orthonormal, wanted, vector)
        options: dict[str, Any] = {
            "values": None if self.values is None else _matrix("values", self.values),
            "scale": self.scale,
        }
        if vector is not None:
            self.refuse(("sharpness", "error"), "is for a query that is looked for; leave it out")
            from lattend.study.steering.trial import try_query

            return try_query(rows, vector, wanted, **options).draw()
        from lattend.study.steering.steer import steer as steered

        return steered(rows, wanted, sharpness=self.sharpness, error=self.error, **options).draw()


def _formula(many: str, wanted: Any, out: str | None) -> WeightFormula:
    from lattend.study.steering.formulas import weight_formula

    if out is not None:
        raise NamingError("a formula is printed, or with --json written as data; leave --out out")
    keys = many if many.isidentifier() else _count(many)
    return weight_formula(wanted, keys)


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
